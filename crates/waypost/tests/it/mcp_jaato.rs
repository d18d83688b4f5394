//! Two agents in two processes on one store: the parent and its subagent of the jaato document, from beginning to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::transcript::Workspace;

/// A server process of an agent, and a client that speaks lines of JSON with it.
pub(crate) struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Agent {
    fn begin(workspace: &Workspace, name: &str) -> Self {
        Self::with_toolset(workspace, "jaato", name)
    }

    pub(crate) fn with_toolset(workspace: &Workspace, toolset: &str, name: &str) -> Self {
        Self::in_folder(workspace, &workspace.work(), toolset, name)
    }

    pub(crate) fn in_folder(workspace: &Workspace, folder: &Path, toolset: &str, name: &str) -> Self {
        let mut process = workspace
            .command(env!("CARGO_BIN_EXE_waypost"))
            .current_dir(folder)
            .args(["mcp", "--toolset", toolset, "--agent", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        let mut agent = Self { process, input, output, number: 0 };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        agent.request("initialize", hello);
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    /// Ends the server and returns what it has said besides its answers.
    pub(crate) fn end(mut self) -> String {
        drop(self.input.take());
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let number = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": parameters }));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "{method}: the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == number && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool that has to do what it is asked.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to refuse, and returns its words.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Makes a plan, and lets a person approve it at the command line.
    fn started(&mut self, workspace: &Workspace, title: &str, steps: &[&str]) -> String {
        let made = self.call("createPlan", json!({ "title": title, "steps": steps }));
        let plan = made["plan_id"].as_str().unwrap().to_owned();
        assert_eq!(self.call("startPlan", json!({ "timeout": 0 }))["confirmed"], false);
        let approved = workspace.at_terminal(&["approve", &plan]);
        assert!(approved.status.success(), "{}", String::from_utf8_lossy(&approved.stderr));
        plan
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A server ends with its input.
        drop(self.input.take());
        let _ended = self.process.wait();
    }
}

#[test]
fn a_parent_and_a_subagent_in_two_processes_work_together() {
    let workspace = Workspace::new();
    let mut parent = Agent::begin(&workspace, "main");
    let mut child = Agent::begin(&workspace, "implementer");
    // 1. The parent subscribes before it spawns the subagent.
    parent.call(
        "subscribeToTasks",
        json!({ "event_types": ["plan_created", "step_completed", "step_unblocked"] }),
    );
    parent.started(&workspace, "Deliver", &["Prepare"]);
    // 2. The subagent makes its own plan.
    child.started(&workspace, "Implement", &["Write code", "Finish"]);
    // 3. The parent sees it and adds a step that waits.
    let seen = parent
        .call("setStepStatus", json!({ "step_id": "step_1", "status": "completed", "result": "Prepared" }));
    assert_eq!(seen["events"][0]["event_type"], "plan_created", "{seen}");
    assert_eq!(seen["events"][0]["source_agent"], "implementer");
    let last = seen["events"][0]["payload"]["steps"][1]["step_id"].clone();
    let review = json!({ "description": "Review implementation results",
        "depends_on": [{ "agent_id": "implementer", "step_id": last }] });
    let added = parent.call("addDependentStep", review);
    assert_eq!(
        (&added["status"], &added["message"]),
        (&json!("blocked"), &json!("Step added with 1 dependencies (BLOCKED)"))
    );
    // 4. The parent's process dies; the subagent completes with an output.
    drop(parent);
    child.call("setStepStatus", json!({ "step_id": "step_1", "status": "completed" }));
    let output = json!({ "passed": true, "results": ["file1.py created", "tests pass"], "errors": [] });
    child.call(
        "completeStepWithOutput",
        json!({ "step_id": last, "output": output, "result": "Implementation completed successfully" }),
    );
    child.call("completePlan", json!({ "status": "completed", "summary": "Implemented" }));
    // 5. A new process of the parent finds its plan, its subscription, what happened meanwhile and the output.
    let mut parent = Agent::begin(&workspace, "main");
    let status = parent.call("getPlanStatus", json!({}));
    let kinds: Vec<&Value> =
        status["events"].as_array().unwrap().iter().map(|event| &event["event_type"]).collect();
    assert_eq!(kinds, ["step_completed", "step_completed", "step_unblocked"]);
    assert_eq!(status["received_outputs"]["implementer"], output);
    assert_eq!(status["steps"][1]["status"], "pending");
    assert_eq!(parent.call("getBlockedSteps", json!({}))["message"], "No blocked steps");
    parent.call("setStepStatus", json!({ "step_id": "step_2", "status": "completed", "result": "All good" }));
    let ended = parent.call("completePlan", json!({ "status": "completed", "summary": "Delivered" }));
    assert_eq!(ended["progress"]["percentage"], 100);
}

#[test]
fn a_call_in_one_process_waits_for_what_another_does() {
    let workspace = Workspace::new();
    let mut parent = Agent::begin(&workspace, "main");
    let mut child = Agent::begin(&workspace, "child");
    child.started(&workspace, "Work", &["Work"]);
    let told = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            parent.call(
                "getTaskEvents",
                json!({ "agent_id": "child", "event_types": ["step_completed"], "timeout": 30 }),
            )
        });
        child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
        waits.join().unwrap()
    });
    assert_eq!(told["events"][0]["payload"]["output"], json!({ "n": 1 }), "{told}");
}
