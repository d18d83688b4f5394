"""A local AWS for tests: moto answers for ECS, Batch and CloudWatch Logs, behind a proxy that verifies every signature and that
runs the commands of containers as programs of this machine.

moto checks no signatures and runs no Fargate tasks; both are this program's part. Once it listens, it prints its address, a subnet
and a security group as a JSON list. It ends at the end of its standard input.

    fake_aws.py FOLDER NAME=COMMAND...    each NAME is a task definition and a job definition whose container runs COMMAND by sh
"""

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ.update(AWS_ACCESS_KEY_ID="setup", AWS_SECRET_ACCESS_KEY="setup", AWS_DEFAULT_REGION="eu-north-1")

import boto3  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

REGION, ACCESS, SECRET = "eu-north-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ECS = "AmazonEC2ContainerServiceV20141113."
LOG_GROUP = {"ecs": "waypost", "batch": "/aws/batch/job"}


def expected_signature(method, path, headers, body):
    """Recomputes the signature of a request from what arrived. Returns it and the one that the request has."""
    words = dict(word.strip().split("=", 1) for word in headers["authorization"].split(" ", 1)[1].split(","))
    access, day, region, service, end = words["Credential"].split("/")
    if access != ACCESS or end != "aws4_request" or region != REGION:
        return None, words["Signature"]
    names = words["SignedHeaders"].split(";")
    for needed in ("host", "x-amz-date"):
        if needed not in names:
            return None, words["Signature"]
    lines = [method, path, ""] + [f"{name}:{headers[name].strip()}" for name in names]
    lines += ["", ";".join(names), hashlib.sha256(body).hexdigest()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], f"{day}/{region}/{service}/aws4_request", digest])
    key = ("AWS4" + SECRET).encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), words["Signature"]


class Machine:
    """Runs what containers would run."""

    def __init__(self, moto, folder, commands):
        self.folder, self.commands, self.lock = folder, commands, threading.Lock()
        self.jobs, self.tokens, self.names, self.refused = {}, {}, {}, 0
        self.logs = boto3.client("logs", endpoint_url=moto)
        for group in LOG_GROUP.values():
            self.logs.create_log_group(logGroupName=group)
        ecs = boto3.client("ecs", endpoint_url=moto)
        ecs.create_cluster(clusterName="work")
        ec2 = boto3.client("ec2", endpoint_url=moto)
        self.subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        self.security_group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        iam = boto3.client("iam", endpoint_url=moto)
        role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        batch = boto3.client("batch", endpoint_url=moto)
        environment = batch.create_compute_environment(
            computeEnvironmentName="machines", type="UNMANAGED", state="ENABLED", serviceRole=role
        )["computeEnvironmentArn"]
        batch.create_job_queue(
            jobQueueName="work", state="ENABLED", priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
        )
        for name in commands:
            ecs.register_task_definition(
                family=name, networkMode="awsvpc", requiresCompatibilities=["FARGATE"], cpu="256", memory="512",
                containerDefinitions=[{"name": "worker", "image": "worker", "memory": 256}],
            )
            batch.register_job_definition(
                jobDefinitionName=name, type="container",
                containerProperties={"image": "worker", "vcpus": 1, "memory": 256, "command": ["true"]},
            )

    def start(self, service, job, definition, environment, stream):
        env = {"PATH": os.environ["PATH"]} | {one["name"]: one["value"] for one in environment}
        name = definition.rsplit("/", 1)[-1].split(":")[0]
        process = subprocess.Popen(
            ["sh", "-c", self.commands[name]], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        entry = {"process": process, "code": None, "stopped": False, "stream": stream}
        self.jobs[job] = entry

        def follow():
            lines = process.stdout.read().splitlines()
            code = process.wait()
            group = LOG_GROUP[service]
            self.logs.create_log_stream(logGroupName=group, logStreamName=stream)
            if lines:
                now = int(time.time() * 1000)
                events = [{"timestamp": now + at, "message": line} for at, line in enumerate(lines)]
                self.logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
            entry["code"] = code

        threading.Thread(target=follow, daemon=True).start()

    def stop(self, job):
        entry = self.jobs.get(job)
        if entry and entry["code"] is None:
            entry["stopped"] = True
            os.killpg(entry["process"].pid, signal.SIGKILL)

    def ecs(self, action, asked, forward):
        if action == "RunTask":
            token = asked["clientToken"]
            if token in self.tokens:
                return self.tokens[token]
            answer = self.tokens[token] = forward()
            if answer[0] == 200:
                task = json.loads(answer[1])["tasks"][0]["taskArn"]
                override = asked["overrides"]["containerOverrides"][0]
                stream = f"waypost/{override['name']}/{task.rsplit('/', 1)[-1]}"
                self.start("ecs", task, asked["taskDefinition"], override["environment"], stream)
            return answer
        if action == "StopTask":
            self.stop(asked["task"])
            return 200, b"{}"
        status, body = forward()
        if action == "DescribeTasks" and status == 200:
            answer = json.loads(body)
            for task in answer["tasks"]:
                entry = self.jobs[task["taskArn"]]
                over = entry["code"] is not None
                task["lastStatus"] = "STOPPED" if over else "RUNNING"
                container = {"name": "worker"}
                if over and not entry["stopped"]:
                    container["exitCode"] = entry["code"]
                task["containers"] = [container]
            body = json.dumps(answer).encode()
        return status, body

    def batch(self, action, asked, forward):
        if action == "listjobs":
            wanted = asked["filters"][0]["values"]
            found = [{"jobId": job, "jobName": name} for job, name in self.names.items() if name in wanted]
            return 200, json.dumps({"jobSummaryList": found}).encode()
        if action == "terminatejob":
            self.stop(asked["jobId"])
            return 200, b"{}"
        status, body = forward()
        if action == "submitjob" and status == 200:
            job = json.loads(body)["jobId"]
            self.names[job] = asked["jobName"]
            environment = asked["containerOverrides"]["environment"]
            self.start("batch", job, asked["jobDefinition"], environment, f"{asked['jobDefinition']}/default/{job}")
        if action == "describejobs" and status == 200:
            answer = json.loads(body)
            for job in answer["jobs"]:
                entry = self.jobs[job["jobId"]]
                over = entry["code"] is not None
                job["status"] = ("SUCCEEDED" if entry["code"] == 0 else "FAILED") if over else "RUNNING"
                job["container"] = {"logStreamName": entry["stream"]} if over else {}
                if over:
                    job["container"]["exitCode"] = entry["code"]
            body = json.dumps(answer).encode()
        return status, body


def handler(moto, machine):
    class Proxy(BaseHTTPRequestHandler):
        def log_message(self, *words):
            pass

        def do_GET(self):
            jobs = {job: entry["code"] for job, entry in machine.jobs.items()}
            self.answer(200, json.dumps({"jobs": jobs, "refused": machine.refused}).encode())

        def do_POST(self):
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            expected, found = expected_signature("POST", self.path, headers, body)
            if expected is None or not hmac.compare_digest(expected, found):
                machine.refused += 1
                text = {"__type": "InvalidSignatureException", "message": "the signature does not match"}
                return self.answer(403, json.dumps(text).encode())

            def forward():
                kept = {name: headers[name] for name in headers if name not in ("host", "content-length")}
                request = urllib.request.Request(moto + self.path, data=body, headers=kept, method="POST")
                try:
                    with urllib.request.urlopen(request) as answer:
                        return answer.status, answer.read()
                except urllib.error.HTTPError as error:
                    return error.code, error.read()

            target = headers.get("x-amz-target", "")
            asked = json.loads(body or b"{}")
            with machine.lock:
                if target.startswith(ECS):
                    answer = machine.ecs(target[len(ECS):], asked, forward)
                elif self.path.startswith("/v1/"):
                    answer = machine.batch(self.path[4:], asked, forward)
                else:
                    answer = forward()
            self.answer(*answer)

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Proxy


def main():
    folder, commands = sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:])
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    moto = f"http://127.0.0.1:{port}"
    config = json.dumps({"batch": {"use_docker": False}}).encode()
    urllib.request.urlopen(urllib.request.Request(moto + "/moto-api/config", data=config, method="POST")).read()
    machine = Machine(moto, folder, commands)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler(moto, machine))
    address = f"http://127.0.0.1:{proxy.server_port}"
    print(json.dumps([address, machine.subnet, machine.security_group]), flush=True)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    sys.stdin.read()
    for job in list(machine.jobs):
        machine.stop(job)
    os._exit(0)


if __name__ == "__main__":
    main()
