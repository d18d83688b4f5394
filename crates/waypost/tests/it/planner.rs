//! Models that write plans, break goals down and digest work, played by a scripted server: whatever it says, there is a sound
//! plan or a bounded refusal, and nothing is paid for twice.

mod accounts;
mod crash;
mod decompose;
mod digest;
mod generate;

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::Plan;
use waypost_store::{Durability, PlanStore, open};
use waypost_testkit::fake_llm::{ModelServer, ScriptedReply, Seen};

use crate::run::configure;
use crate::transcript::Workspace;

/// How long anything here may take before it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace whose only model is a scripted server.
struct Stage {
    workspace: Workspace,
    server: ModelServer,
}

impl Stage {
    fn directed(director: impl FnMut(&Seen) -> ScriptedReply + Send + 'static) -> Self {
        Self::configured(ModelServer::directed(director), "retries = 0\n", "")
    }

    fn playing(plays: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::configured(ModelServer::playing(plays), "retries = 0\n", "")
    }

    fn configured(server: ModelServer, model: &str, planner: &str) -> Self {
        let stage = Self { workspace: Workspace::new(), server };
        stage.configure(model, planner);
        stage
    }

    fn configure(&self, model: &str, planner: &str) {
        let url = self.server.openai();
        configure(
            &self.workspace,
            &format!(
                "[models.scripted]\napi = \"openai\"\nbase_url = {url:?}\nmodel = \"m\"\nprice_in = 1.0\nprice_out = 2.0\n{model}\n[planner]\nrepairs = 2\n{planner}"
            ),
        );
    }

    /// From now on, another server answers: it counts nothing that a killed process had sent.
    fn answered_by(&mut self, director: impl FnMut(&Seen) -> ScriptedReply + Send + 'static) {
        self.server = ModelServer::directed(director);
        self.configure("retries = 0\n", "");
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs, and must go well: the JSON on stdout.
    #[track_caller]
    fn does(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs, and must fail with this exit code: the error.
    #[track_caller]
    fn fails(&self, code: i32, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        let line = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        serde_json::from_str::<Value>(&line).unwrap()["error"].clone()
    }

    /// Begins something that goes on beside the test.
    fn begins(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn plans(&self) -> PlanStore {
        let path = self.workspace.work().join(".waypost/waypost.db");
        PlanStore::new(open(&format!("sqlite:{}", path.display()), Durability::default()).unwrap())
    }

    fn plan(&self, id: &str) -> Plan {
        self.plans().with_plan(&id.parse().unwrap(), Clone::clone).unwrap()
    }

    /// Everything that stands in the journal of a plan.
    fn journal(&self, id: &str) -> Vec<Value> {
        let path = self.workspace.work().join(format!(".waypost/planning/{id}.jsonl"));
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The only plan there is.
    fn only(&self) -> String {
        let list = self.does(&["list"]);
        assert_eq!(list["total"], 1, "{list}");
        list["plans"][0]["id"].as_str().unwrap().to_owned()
    }

    /// What the plan was charged with is what its journal has; each task, and the plan.
    #[track_caller]
    fn tokens_are_true(&self, id: &str) -> i64 {
        let plan = self.plan(id);
        // What an answer has cost, or a call that broke off.
        let spent = |line: &Value| match line["kind"].as_str() {
            Some("answered") => line["answer"].clone(),
            _ => line["lost"].clone(),
        };
        let tokens = |line: &Value| {
            spent(line)["tokens_in"].as_i64().unwrap() + spent(line)["tokens_out"].as_i64().unwrap()
        };
        let mut lines = self.journal(id);
        lines.retain(|line| spent(line).is_object());
        let sum: i64 = lines.iter().map(tokens).sum();
        assert_eq!(plan.state().tokens_used, sum, "the plan was charged with what was spent");
        assert_eq!(plan.state().calls, lines.len() as u64);
        let of_tasks: i64 =
            plan.tasks().filter_map(|(task, _)| task.spec.thinking.as_ref()).map(|one| one.tokens).sum();
        let of_plan: i64 = lines.iter().filter(|line| line["task"].is_null()).map(tokens).sum();
        assert_eq!(of_tasks + of_plan, sum, "and each task with its part");
        sum
    }
}

fn said(output: &Output) -> String {
    format!(
        "exit {:?}\n{}\n{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Waits until it is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    let (_tell, never) = std::sync::mpsc::channel::<()>();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        let _timeout = never.recv_timeout(Duration::from_millis(5));
    }
}

/// What a question is for.
fn purpose(seen: &Seen) -> String {
    seen.json()["response_format"]["json_schema"]["name"].as_str().unwrap_or_default().to_owned()
}

/// All that the model is told.
fn told(seen: &Seen) -> String {
    let messages = seen.json()["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The text that a question is about.
fn data(seen: &Seen, name: &str) -> String {
    let told = told(seen);
    let begin = format!("<data name=\"{name}\">\n");
    let from = told.find(&begin).map_or(told.len(), |at| at + begin.len());
    told[from..].split("\n</data>").next().unwrap_or_default().to_owned()
}

fn say(answer: Value) -> ScriptedReply {
    ScriptedReply::Say(answer.to_string())
}

/// A sound plan of three tasks.
fn three() -> Value {
    json!({ "goal": "g", "tasks": [
        { "id": "read", "description": "Read the session code", "depends_on": [], "complexity": "low", "notes": "", "tools": null },
        { "id": "add", "description": "Add the token crate", "depends_on": ["read"], "complexity": "medium", "notes": "pin it", "tools": ["cargo"] },
        { "id": "test", "description": "Test the logins", "depends_on": ["add"], "complexity": "high", "notes": "", "tools": null },
    ] })
}

const GOAL: &str = "Refactor auth to JWT";

/// A model that breaks a machine down into parts and parts into steps, which are small enough. The second part waits for the
/// first, so the rest is refined as well.
fn machine(seen: &Seen) -> ScriptedReply {
    let goal = data(seen, "goal");
    let is_step = goal.starts_with("step");
    match purpose(seen).as_str() {
        "atomicity" => say(json!({ "reasoning": format!("because of {goal}"), "is_atomic": is_step })),
        "decompose" => {
            let parts: Vec<String> = if goal.starts_with("Build") {
                [
                    "part frame: bolt beams together",
                    "part motor: wind copper coils",
                    "part cover: press sheet steel",
                ]
                .map(str::to_owned)
                .into()
            } else {
                let name = goal.split([' ', ':']).nth(1).unwrap_or("x").to_owned();
                vec![format!("step {name} one: order supplies"), format!("step {name} two: inspect results")]
            };
            let parts: Vec<Value> = parts
                .iter()
                .map(|part| json!({ "description": part, "complexity": "low", "notes": "" }))
                .collect();
            say(json!({ "reasoning": "it has parts", "sub_goals": parts }))
        }
        "dependencies" => {
            let children = data(seen, "children");
            let ids: Vec<&str> =
                children.lines().filter_map(|line| line.strip_prefix("- ")?.split(':').next()).collect();
            let second = json!({ "goal_id": ids[1], "depends_on": [ids[0]] });
            say(json!({ "reasoning": "in order", "dependencies": [second] }))
        }
        "refine" => say(json!({ "reasoning": "all is well", "revise": [], "drop": [], "add": [] })),
        other => ScriptedReply::status(400, "script", &format!("unexpected purpose {other}")),
    }
}

const MACHINE: &str = "Build the big machine of the factory";
