//! Plans whose work is done by AWS ECS on Fargate and by AWS Batch, by way of the adapter in `examples/adapters`. moto answers
//! for AWS, behind a proxy that verifies every signature (`aws/fake_aws.py`).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use waypost_core::{Phase, Status};

use crate::examples::{self, stored};
use crate::run::text;
use crate::slurm::wait_for;
use crate::transcript::Workspace;

/// The variable with a Python interpreter that has moto.
const PYTHON: &str = "WAYPOST_TEST_MOTO_PYTHON";
/// The secret that the fake knows.
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// What a container of an example's worker runs.
const CONTAINER: &str =
    "out=$(printf '%s' \"$WAYPOST_JOB\" | sh examples/workers/NAME.sh) && echo \"waypost:output $out\"";

struct Aws {
    workspace: Workspace,
    fake: Child,
    address: String,
}

impl Drop for Aws {
    fn drop(&mut self) {
        // It stops what it runs at the end of its input.
        drop(self.fake.stdin.take());
        let _ended = self.fake.wait();
    }
}

impl Aws {
    /// A workspace with the examples, whose containers run these commands.
    fn new(code_edit: &str, verify: &str) -> Self {
        let python = std::env::var(PYTHON).unwrap_or_else(|_| {
            panic!("these tests need Python with moto: run `cargo xtask test`, which installs it, or set {PYTHON}")
        });
        let workspace = examples::workspace();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/aws/fake_aws.py");
        let mut fake = Command::new(python)
            .args([script, workspace.work().to_str().unwrap()])
            .args([format!("code-edit={code_edit}"), format!("verify={verify}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(fake.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let [address, subnet, group]: [String; 3] = serde_json::from_str(&line).unwrap();
        let config = workspace.work().join("examples/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        let text = text.replace("subnet-1", &subnet).replace("sg-1", &group);
        let text = text.replace("settings = {", "poll_seconds = 1\nsettings = {");
        fs::write(config, format!("{text}\n[retry]\nbackoff_seconds = 0\n")).unwrap();
        Self { workspace, fake, address }
    }

    fn run(&self, plan: &str, target: &str) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.args(["run", plan, "--config", "examples/config.toml", "--target", target]);
        // Where the tests run, python3 may be elsewhere.
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", path).env("AWS_ENDPOINT_URL", &self.address).env("AWS_REGION", "eu-north-1");
        command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    /// What the fake has run, and how many requests it has refused.
    fn seen(&self) -> Value {
        let address = self.address.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn jobs(&self) -> Vec<Value> {
        self.seen()["jobs"].as_object().unwrap().values().cloned().collect()
    }

    /// A plan with one task, and a run of it that is killed as soon as its job runs.
    fn kill_a_run(&self, target: &str) {
        let inputs = json!({ "subagent": "code-edit", "workerInput": {} });
        let task = json!({ "id": "a", "locks": ["k"], "work": { "executor": "dispatch", "inputs": inputs } });
        let plan = json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": [task] });
        fs::write(self.workspace.work().join("p.json"), plan.to_string()).unwrap();
        let mut run = self.run("p.json", target).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("the job", || (self.jobs().len() == 1).then_some(()));
        run.kill().unwrap();
        run.wait().unwrap();
    }
}

#[test]
#[ignore = "needs Python with moto"]
fn the_fan_out_plan_runs_unchanged_on_fargate_and_on_batch() {
    for target in ["fargate", "batch"] {
        let aws = Aws::new(&CONTAINER.replace("NAME", "code-edit"), &CONTAINER.replace("NAME", "verify"));
        let output = aws.run("examples/fanout.json", target).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{target}: {:?}", text(&output));
        let plan = stored(&aws.workspace, "rename-fanout");
        assert_eq!(plan.state().phase, Phase::Completed);
        let output = |task: &str| plan.task(task).unwrap().state.output.as_ref().unwrap().value();
        assert_eq!(output("verify"), json!({ "files_checked": 3, "left": 0 }), "{target}");
        assert_eq!(output("edit-store")["file"], "store.ts", "{target}");
        assert_eq!(aws.seen()["refused"], 0);
        assert_eq!(aws.jobs(), [0, 0, 0, 0].map(Value::from), "{target}");
    }
}

#[test]
#[ignore = "needs Python with moto"]
fn a_job_on_aws_that_outlives_its_run_is_followed_and_one_that_nobody_wants_is_stopped() {
    for target in ["fargate", "batch"] {
        let waits = "until [ -e go ]; do sleep 0.1; done; echo 'waypost:output 7'";
        let aws = Aws::new(waits, "true");
        aws.kill_a_run(target);
        fs::write(aws.workspace.work().join("go"), "").unwrap();
        let output = aws.run("p.json", target).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{target}: {:?}", text(&output));
        let plan = stored(&aws.workspace, "p");
        let state = &plan.task("a").unwrap().state;
        assert_eq!((state.status, state.attempt), (Status::Done, 2), "{target}");
        assert_eq!(state.output.as_ref().unwrap().value(), json!(7), "{target}");
        assert_eq!(aws.jobs(), [json!(0)], "{target}: nothing was started again");

        let aws = Aws::new("sleep 1000", "true");
        aws.kill_a_run(target);
        assert!(aws.workspace.waypost(&["cancel", "p"]).status.success());
        let other = json!({ "format": "waypost/1", "id": "q", "title": "q", "tasks": [{ "id": "b", "work": { "executor": "noop" } }] });
        fs::write(aws.workspace.work().join("q.json"), other.to_string()).unwrap();
        let output = aws.run("q.json", target).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{target}: {:?}", text(&output));
        assert_eq!(aws.jobs(), [json!(-9)], "{target}: it was stopped");
    }
}

#[test]
#[ignore = "needs Python with moto"]
fn a_wrong_signature_is_refused_and_an_unknown_target_runs_nothing() {
    for target in ["fargate", "batch"] {
        let aws = Aws::new("true", "true");
        let output =
            aws.run("examples/fanout.json", target).env("AWS_SECRET_ACCESS_KEY", "wrong").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{target}: {:?}", text(&output));
        let plan = stored(&aws.workspace, "rename-fanout");
        let error = plan.task("edit-store").unwrap().state.error.clone().unwrap();
        assert!(error.contains("InvalidSignatureException"), "{target}: {error}");
        assert_eq!(aws.jobs(), [Value::Null; 0]);
        assert_ne!(aws.seen()["refused"], 0);
    }
    let aws = Aws::new("true", "true");
    let output = aws.run("examples/fanout.json", "moon").output().unwrap();
    let (_, complaint) = text(&output);
    assert!(complaint.contains("no executor has workers for the target moon"), "{complaint}");
    assert!(complaint.contains("name one of batch, fargate"), "{complaint}");
}
