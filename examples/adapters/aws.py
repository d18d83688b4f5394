#!/usr/bin/env python3
"""Runs jobs of Waypost as AWS ECS tasks (Fargate or EC2) or as AWS Batch jobs.

Speaks the protocol of `target = "program"` in docs/executors.md: one call is one question, a JSON object on standard input and
one on standard output. Needs only Python 3.9. Requests are signed here (Signature Version 4), so no AWS software is needed.

    aws.py ecs      settings: cluster, task_definition, container; subnets and security_groups (comma-separated) for awsvpc;
                    launch_type (FARGATE), assign_public_ip (DISABLED), log_group, log_prefix
    aws.py batch    settings: job_queue, job_definition; log_group (/aws/batch/job)

Both also: region. The container gets the job in the variable WAYPOST_JOB, and its output is the last line of its log that begins
with `waypost:output `. Without a log group, a job has no output. Credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
AWS_SESSION_TOKEN, or those of the container that this program runs in. AWS_ENDPOINT_URL names another service for tests.
"""

import datetime
import hashlib
import hmac
import json
import os
import sys
import urllib.error
import urllib.request

OUTPUT_MARK = "waypost:output "
NOT_NOW, REFUSED = 75, 1
# What a service says when it may answer later.
TEMPORARY = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "ServerException", "ServiceUnavailable", "InternalFailure")
# ECS takes at most 8192 characters of overrides, and Batch 30 KiB of a job.
INPUT_BYTES_MAX = {"ecs": 7000, "batch": 20000}


class Problem(Exception):
    def __init__(self, message, code=REFUSED):
        super().__init__(message)
        self.code = code


def credentials():
    env = os.environ
    if env.get("AWS_ACCESS_KEY_ID"):
        return env["AWS_ACCESS_KEY_ID"], env.get("AWS_SECRET_ACCESS_KEY", ""), env.get("AWS_SESSION_TOKEN")
    if env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        url = "http://169.254.170.2" + env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]
        with urllib.request.urlopen(url, timeout=5) as answer:
            found = json.load(answer)
        return found["AccessKeyId"], found["SecretAccessKey"], found["Token"]
    raise Problem("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in `environment` or `secrets`")


def signed_headers(service, region, method, host, path, headers, body, now):
    """Returns the headers of a request with its signature."""
    access, secret, token = credentials()
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = dict(headers, host=host)
    headers["x-amz-date"] = moment
    if token:
        headers["x-amz-security-token"] = token
    names = sorted(headers)
    canonical = "\n".join(
        [method, path, "", *(f"{name}:{headers[name].strip()}" for name in names), "", ";".join(names),
         hashlib.sha256(body).hexdigest()]
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (moment[:8], region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return headers


class Aws:
    def __init__(self, settings):
        self.region = settings.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not self.region:
            raise Problem("no region: set `region` in `settings`, or AWS_REGION")

    def ask(self, service, target, path, question):
        """Sends one request and returns the answer."""
        base = os.environ.get("AWS_ENDPOINT_URL") or f"https://{service}.{self.region}.amazonaws.com"
        body = json.dumps(question).encode()
        headers = {"content-type": "application/x-amz-json-1.1" if target else "application/json"}
        if target:
            headers["x-amz-target"] = target
        host = base.split("://", 1)[1].rstrip("/")
        now = datetime.datetime.now(datetime.timezone.utc)
        headers = signed_headers(service, self.region, "POST", host, path, headers, body, now)
        request = urllib.request.Request(base.rstrip("/") + path, data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            kind = error.headers.get("x-amzn-errortype", "") + said
            message = f"{service} answered {error.code} to {target or path}: {said[:300]}"
            temporary = error.code >= 500 or error.code == 429 or any(word in kind for word in TEMPORARY)
            raise Problem(message, NOT_NOW if temporary else REFUSED) from error
        except OSError as error:
            raise Problem(f"{base} cannot be reached: {error}", NOT_NOW) from error

    def output(self, group, stream):
        """Returns the output in a log, which may be missing."""
        found, token = None, None
        while True:
            question = {"logGroupName": group, "logStreamName": stream, "startFromHead": True}
            if token:
                question["nextToken"] = token
            try:
                answer = self.ask("logs", "Logs_20140328.GetLogEvents", "/", question)
            except Problem as problem:
                if "ResourceNotFound" in str(problem):
                    return found
                raise
            for event in answer["events"]:
                print(event["message"], file=sys.stderr)
                if event["message"].startswith(OUTPUT_MARK):
                    found = event["message"][len(OUTPUT_MARK):]
            # The end of a log is a token that does not change.
            if answer.get("nextForwardToken") == token or not answer["events"]:
                return found
            token = answer.get("nextForwardToken")


def done(output):
    if output is None:
        return {"state": "done"}
    try:
        return {"state": "done", "output": json.loads(output)}
    except ValueError:
        return {"state": "done", "result": output}


def variables(question):
    return [
        {"name": "WAYPOST_JOB", "value": json.dumps(question["input"], separators=(",", ":"))},
        {"name": "WAYPOST_IDEMPOTENCY_KEY", "value": question["key"]},
    ] + [{"name": name, "value": os.environ[name]} for name in sorted(os.environ) if name in PASSED]


PASSED = ("WAYPOST_PLAN", "WAYPOST_TASK", "WAYPOST_ATTEMPT", "WAYPOST_FENCE", "TRACEPARENT")


def need(settings, name):
    if not settings.get(name):
        raise Problem(f"`settings.{name}` is missing")
    return settings[name]


def listed(text):
    return [word.strip() for word in (text or "").split(",") if word.strip()]


class Ecs:
    """One task of ECS for each job. `clientToken` makes a second submission return the first task."""

    def __init__(self, settings):
        self.aws, self.settings = Aws(settings), settings
        self.cluster = settings.get("cluster", "default")

    def ask(self, action, question):
        target = f"AmazonEC2ContainerServiceV20141113.{action}"
        return self.aws.ask("ecs", target, "/", dict(question, cluster=self.cluster))

    def submit(self, question):
        settings = self.settings
        override = {"name": need(settings, "container"), "environment": variables(question)}
        asked = {
            "taskDefinition": need(settings, "task_definition"),
            "launchType": settings.get("launch_type", "FARGATE"),
            "count": 1,
            "clientToken": hashlib.sha256(question["key"].encode()).hexdigest(),
            "startedBy": question["name"][-36:],
            "overrides": {"containerOverrides": [override]},
            "tags": [{"key": "waypost:key", "value": question["key"][:256]}],
        }
        if settings.get("subnets"):
            asked["networkConfiguration"] = {
                "awsvpcConfiguration": {
                    "subnets": listed(settings["subnets"]),
                    "securityGroups": listed(settings.get("security_groups")),
                    "assignPublicIp": settings.get("assign_public_ip", "DISABLED"),
                }
            }
        answer = self.ask("RunTask", asked)
        if answer.get("failures"):
            reasons = ", ".join(failure.get("reason", "") for failure in answer["failures"])
            # The cluster has no room now.
            raise Problem(f"ECS could not place the task: {reasons}", NOT_NOW)
        return {"job": answer["tasks"][0]["taskArn"]}

    def find(self, question):
        found = []
        for status in ("RUNNING", "STOPPED"):
            asked = {"startedBy": question["name"][-36:], "desiredStatus": status}
            found += self.ask("ListTasks", asked)["taskArns"]
        return {"job": found[0] if found else None}

    def task(self, job):
        tasks = self.ask("DescribeTasks", {"tasks": [job]})["tasks"]
        return tasks[0] if tasks else None

    def poll(self, question):
        task = self.task(question["job"])
        if task is None:
            return {"state": "unknown"}
        if task["lastStatus"] != "STOPPED":
            return {"state": "running", "progress": f"the task is {task['lastStatus']}"}
        name = need(self.settings, "container")
        container = next((one for one in task["containers"] if one["name"] == name), {})
        output, group = None, self.settings.get("log_group")
        if group:
            prefix = self.settings.get("log_prefix", "waypost")
            output = self.aws.output(group, f"{prefix}/{name}/{question['job'].rsplit('/', 1)[-1]}")
        code = container.get("exitCode")
        if code == 0:
            return done(output)
        why = container.get("reason") or task.get("stoppedReason") or "it gave no reason"
        if code is None or code == NOT_NOW:
            return {"state": "lost", "error": f"the task ended without a result: {why}"}
        return {"state": "failed", "error": f"the task ended with exit code {code}: {why}"}

    def cancel(self, question):
        task = self.task(question["job"])
        if task is None or task["lastStatus"] == "STOPPED":
            return {"state": "ended"}
        self.ask("StopTask", {"task": question["job"], "reason": "cancelled by Waypost"})
        return {"state": "ending", "wait_seconds": 1}


class Batch:
    """One job of AWS Batch for each job. Batch has no idempotency key, so that a job is found by its name."""

    def __init__(self, settings):
        self.aws, self.settings = Aws(settings), settings

    def ask(self, action, question):
        return self.aws.ask("batch", None, f"/v1/{action}", question)

    def submit(self, question):
        asked = {
            "jobName": question["name"],
            "jobQueue": need(self.settings, "job_queue"),
            "jobDefinition": need(self.settings, "job_definition"),
            # Waypost decides about retries.
            "retryStrategy": {"attempts": 1},
            "containerOverrides": {"environment": variables(question)},
            "tags": {"waypost:key": question["key"][:256]},
        }
        if question.get("timeout_seconds"):
            asked["timeout"] = {"attemptDurationSeconds": max(60, question["timeout_seconds"])}
        return {"job": self.ask("submitjob", asked)["jobId"]}

    def find(self, question):
        asked = {
            "jobQueue": need(self.settings, "job_queue"),
            "filters": [{"name": "JOB_NAME", "values": [question["name"]]}],
        }
        jobs = [job for job in self.ask("listjobs", asked)["jobSummaryList"] if job["jobName"] == question["name"]]
        jobs.sort(key=lambda job: job.get("createdAt", 0))
        return {"job": jobs[0]["jobId"] if jobs else None}

    def job(self, job):
        jobs = self.ask("describejobs", {"jobs": [job]})["jobs"]
        return jobs[0] if jobs else None

    def poll(self, question):
        job = self.job(question["job"])
        if job is None:
            return {"state": "unknown"}
        if job["status"] not in ("SUCCEEDED", "FAILED"):
            return {"state": "running", "progress": f"the job is {job['status']}"}
        container = job.get("container", {})
        output, stream = None, container.get("logStreamName")
        if stream:
            output = self.aws.output(self.settings.get("log_group", "/aws/batch/job"), stream)
        if job["status"] == "SUCCEEDED":
            return done(output)
        code, why = container.get("exitCode"), job.get("statusReason") or "it gave no reason"
        if code == NOT_NOW or why.startswith("Host EC2"):
            return {"state": "lost", "error": f"the job ended without a result: {why}"}
        return {"state": "failed", "error": f"the job failed with exit code {code}: {why}"}

    def cancel(self, question):
        job = self.job(question["job"])
        if job is None or job["status"] in ("SUCCEEDED", "FAILED"):
            return {"state": "ended"}
        self.ask("terminatejob", {"jobId": question["job"], "reason": "cancelled by Waypost"})
        return {"state": "ending", "wait_seconds": 1}


def main():
    services = {"ecs": Ecs, "batch": Batch}
    if len(sys.argv) != 2 or sys.argv[1] not in services:
        raise Problem("usage: aws.py ecs|batch")
    question = json.load(sys.stdin)
    if question.get("protocol") != 1:
        raise Problem("this program speaks protocol 1")
    calls = ("submit", "find", "poll", "cancel")
    if question.get("call") not in calls:
        raise Problem(f"unknown call: {question.get('call')}")
    size = len(json.dumps(question.get("input")).encode())
    if size > INPUT_BYTES_MAX[sys.argv[1]]:
        raise Problem(f"the input has {size} bytes; AWS takes {INPUT_BYTES_MAX[sys.argv[1]]}: pass larger data by reference")
    service = services[sys.argv[1]](question.get("settings", {}))
    print(json.dumps(getattr(service, question["call"])(question)))


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.code)
