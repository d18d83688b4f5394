//! The MCP Inspector as a command-line program: one server process per call, over stdio.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::workspace::Workspace;
use crate::exec::output;
use crate::npm::Packages;

/// What is checked of a toolset: a call that creates a plan, and one that reads it.
struct Set {
    name: &'static str,
    tools: &'static [&'static str],
    make: (&'static str, Value),
    /// The field of the reply with the plan's id.
    id: &'static str,
    /// A call about that plan, with `ID` for its id. `found` is expected in its reply.
    look: (&'static str, Value),
    found: (&'static str, Value),
}

const TITLE: &str = "Seen by the Inspector";

fn sets() -> Vec<Set> {
    let program =
        json!({ "format": "waypost/1", "title": TITLE, "tasks": [{ "id": "a", "description": "Look" }] });
    vec![
        Set {
            name: "native",
            tools: &crate::agent_hosts::TOOLS,
            make: (
                "plan_create",
                json!({ "title": TITLE, "tasks": ["Look", { "description": "Say", "depends_on": ["t1"] }] }),
            ),
            id: "/plan",
            look: ("plan_get", json!({ "plan": "ID" })),
            found: ("/total", json!(2)),
        },
        Set {
            name: "jaato",
            tools: &[
                "createPlan",
                "startPlan",
                "setStepStatus",
                "getPlanStatus",
                "completePlan",
                "addStep",
                "subscribeToTasks",
                "addDependentStep",
                "completeStepWithOutput",
                "getBlockedSteps",
                "getTaskEvents",
                "listSubscriptions",
                "unsubscribe",
            ],
            make: ("createPlan", json!({ "title": TITLE, "steps": ["Look", "Say"] })),
            id: "/plan_id",
            look: ("getPlanStatus", json!({ "plan_id": "ID" })),
            found: ("/progress/total", json!(2)),
        },
        Set {
            name: "plans",
            tools: &[
                "write_plan",
                "read_plan",
                "update_plan_from_file",
                "export_plan_to_file",
                "set_plan_status",
                "get_plan_status",
                "list_plans",
                "delete_plan",
            ],
            make: ("write_plan", json!({ "name": "inspected", "title": TITLE, "content": "# Look\n" })),
            id: "/name",
            look: ("read_plan", json!({ "name": "ID" })),
            found: ("/content", json!("# Look\n")),
        },
        Set {
            name: "orchestrator",
            tools: &["run_submit", "run_status", "run_watch", "run_cancel", "run_why"],
            make: ("run_submit", json!({ "text": program.to_string(), "id": "submitted" })),
            id: "/id",
            look: ("run_why", json!({ "plan": "ID", "task": "a" })),
            found: ("/task", json!("a")),
        },
    ]
}

pub(super) fn run(packages: &Packages, waypost: &Path) -> Result<()> {
    println!("── MCP Inspector");
    let begin = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let checks = sets().into_iter().map(|set| scope.spawn(move || check(packages, waypost, &set)));
        let checks: Vec<_> = checks.collect();
        for check in checks {
            check.join().map_err(|_| anyhow!("an Inspector check panicked"))??;
        }
        Ok(())
    })?;
    println!("── MCP Inspector: ok after {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn check(packages: &Packages, waypost: &Path, set: &Set) -> Result<()> {
    let workspace = Workspace::empty(&format!("inspector-{}", set.name))?;
    let inspector = Inspector { packages, waypost, workspace: &workspace, toolset: set.name };
    inspector.check(set).with_context(|| format!("MCP Inspector, toolset {}", set.name))
}

struct Inspector<'a> {
    packages: &'a Packages,
    waypost: &'a Path,
    workspace: &'a Workspace,
    toolset: &'a str,
}

impl Inspector<'_> {
    fn check(&self, set: &Set) -> Result<()> {
        // `--strict` also checks the schemas: one that is not portable among clients is an error.
        let listed = self.ask("tools/list", &["--strict"])?;
        let names: Vec<&str> = texts(&listed, "tools", "name");
        if let Some(missing) = set.tools.iter().find(|tool| !names.contains(tool)) {
            bail!("tools/list has no {missing}: {names:?}");
        }
        let made = self.call(set.make.0, &set.make.1)?;
        let id = made
            .pointer(set.id)
            .and_then(Value::as_str)
            .with_context(|| format!("{}: {made}", set.make.0))?;
        let arguments: Value = serde_json::from_str(&set.look.1.to_string().replace("ID", id))?;
        let seen = self.call(set.look.0, &arguments)?;
        if seen.pointer(set.found.0) != Some(&set.found.1) {
            bail!("{} should answer {} at {}: {seen}", set.look.0, set.found.1, set.found.0);
        }
        self.resources(id)?;
        self.prompts(id)
    }

    fn resources(&self, id: &str) -> Result<()> {
        let address = format!("waypost://plans/{id}");
        let listed = self.ask("resources/list", &[])?;
        let addresses = texts(&listed, "resources", "uri");
        for expected in ["waypost://plans", &address] {
            if !addresses.contains(&expected) {
                bail!("resources/list has no {expected}: {addresses:?}");
            }
        }
        let read = self.ask("resources/read", &["--uri", &address])?;
        let text =
            read.pointer("/contents/0/text").and_then(Value::as_str).context("resources/read: no text")?;
        let plan: Value =
            serde_json::from_str(text).with_context(|| format!("{address} is not JSON: {text}"))?;
        if plan["title"] != TITLE {
            bail!("{address} has the wrong title: {plan}");
        }
        Ok(())
    }

    fn prompts(&self, id: &str) -> Result<()> {
        let listed = self.ask("prompts/list", &[])?;
        let names = texts(&listed, "prompts", "name");
        for expected in ["plan", "work_through_plan"] {
            if !names.contains(&expected) {
                bail!("prompts/list has no {expected}: {names:?}");
            }
            let argument = format!("plan={id}");
            let got = self.ask("prompts/get", &["--prompt-name", expected, "--prompt-args", &argument])?;
            let text = got.pointer("/messages/0/content/text").and_then(Value::as_str).unwrap_or_default();
            if !text.contains(TITLE) {
                bail!("the prompt {expected} does not name the plan: {got}");
            }
        }
        Ok(())
    }

    /// Returns the structured content of a tool's reply. The text of the reply contains at least the same.
    fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let arguments = arguments.to_string();
        let answer = self.ask("tools/call", &["--tool-name", tool, "--tool-args-json", &arguments])?;
        let text = answer.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
        if answer["isError"] == true || text.is_empty() {
            bail!("{tool} {arguments}: {answer}");
        }
        Ok(answer["structuredContent"].clone())
    }

    fn ask(&self, method: &str, options: &[&str]) -> Result<Value> {
        let mut command: Command = self.packages.run("inspector");
        self.workspace.enter(&mut command);
        // A busy machine needs longer than the default of 15 s.
        command.args(["--cli", "--connect-timeout", "300000", "--format", "json", "--method", method]);
        command.args(options).arg("--cwd");
        command.arg(&self.workspace.folder).arg("--").arg(self.waypost);
        command.args(["mcp", "--toolset", self.toolset, "--agent", "inspector"]);
        let answer: Value = serde_json::from_str(&output(&mut command)?)?;
        Ok(answer["result"].clone())
    }
}

fn texts<'a>(answer: &'a Value, list: &str, field: &str) -> Vec<&'a str> {
    let items = answer[list].as_array().into_iter().flatten();
    items.filter_map(|item| item[field].as_str()).collect()
}
