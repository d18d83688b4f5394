//! Random edits after an approval: of the plan by an agent, of the configuration, of a prompt file, of the environment.
//! What a person approved runs whole if nothing that matters was edited, and otherwise nothing runs at all.

use std::fs;
use std::process::{Command, Output};

use waypost_testkit::SeededRng;
use waypost_testkit::postgres::PostgresDatabase;

use crate::run::text;
use crate::transcript::Workspace;

/// Rounds of each of the tests, which run side by side: each edit that matters once.
const ROUNDS: usize = MATTER.len();
/// Maximum number of edits in a round.
const EDITS_MAX: usize = 3;

/// The account's own configuration. Every program leaves a line that says which one it was.
const CONFIG: &str = r#"
[executors.run]
kind = "process"
shell = true
command = ["echo one $WAYPOST_TASK >> ran"]
pin = ["tool.sh", "tools/*.sh"]
[executors.asked]
kind = "agent"
command = ["sh", "-c", "tail -n 1 >> ran"]
template = "prompt.md"
[executors.other]
kind = "process"
shell = true
command = ["echo other $WAYPOST_TASK >> ran"]
[checks.right]
shell = true
command = ["echo checked >> ran"]
[checks.also]
command = ["true"]
[queues.other]
concurrency = 1
"#;
const PROMPT: &str = "{description}\nprompted\n";
/// What the whole plan leaves.
const WHOLE: [&str; 4] = ["checked", "one a", "one b", "prompted"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Edit {
    /// An agent's command on the plan, whose id comes after the first word or two.
    Agent(&'static [&'static str]),
    /// A replacement in the account's configuration.
    Config(&'static str, &'static str),
    /// A replacement that is undone before anything runs.
    Restored(&'static str, &'static str),
    Prompt(&'static str),
    /// The content of a file.
    File(&'static str, &'static str),
    Variable(&'static str, &'static str),
    /// A configuration that an agent writes into the workspace.
    Workspace(&'static str),
    /// A replacement in the file of the plan, with which an agent updates the plan.
    Text(&'static str, &'static str),
}

/// Edits that change what would run, when, how often, or what an agent is told.
const MATTER: [Edit; 53] = [
    Edit::Agent(&["task", "revise", "PLAN", "a", "--inputs", "{\"n\":9007199254740993}"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--executor", "other"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--description", "other words"]),
    Edit::Agent(&["task", "revise", "PLAN", "c", "--notes", "do something else"]),
    Edit::Agent(&["task", "revise", "PLAN", "c", "--tool", "hammer"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--complexity", "high"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--retry", "5"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--timeout", "9s"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--lock", "door"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--provides", "thing"]),
    Edit::Agent(&["task", "revise", "PLAN", "b", "--clear", "depends-on"]),
    Edit::Agent(&["task", "revise", "PLAN", "b", "--when", "all-finished"]),
    Edit::Agent(&["task", "revise", "PLAN", "b", "--clear", "check"]),
    Edit::Agent(&["task", "revise", "PLAN", "b", "--check-executor", "also"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--check-executor", "right"]),
    Edit::Agent(&["task", "revise", "PLAN", "a", "--clear", "work"]),
    Edit::Agent(&["task", "revise", "PLAN", "plain", "--executor", "other"]),
    Edit::Agent(&["task", "revise", "PLAN", "group", "--description", "what the parent says"]),
    Edit::Agent(&["task", "remove", "PLAN", "b"]),
    Edit::Agent(&["task", "move", "PLAN", "a", "--parent", "group"]),
    Edit::Agent(&["task", "move", "PLAN", "c", "--root"]),
    Edit::Agent(&["task", "remove", "PLAN", "group"]),
    Edit::Agent(&["add", "PLAN", "a part", "--parent", "plain", "--executor", "run"]),
    Edit::Text("the goal", "another goal"),
    Edit::Text("the title", "another title"),
    Edit::Text("\"queue\":\"default\"", "\"queue\":\"other\""),
    Edit::Text("the first", "the last"),
    Edit::Text("9007199254740992", "9007199254740993"),
    Edit::Text("\"provides\":\"the output\"", "\"provides\":\"another output\""),
    Edit::Text("\"depends_on\":[\"a\"],", ""),
    Edit::Text("\"check\":{\"executor\":\"right\"},", ""),
    Edit::Agent(&["task", "revise", "PLAN", "b", "--provides", "another output"]),
    Edit::Agent(&["task", "revise", "PLAN", "b", "--clear", "provides"]),
    Edit::Agent(&["add", "PLAN", "one more", "--executor", "other"]),
    Edit::Agent(&["add", "PLAN", "one more", "--check-executor", "also"]),
    Edit::Config("echo one", "echo two"),
    Edit::Config("echo checked", "echo unchecked"),
    Edit::Config("tail -n 1", "tail -n 2"),
    Edit::Config(
        "shell = true\ncommand = [\"echo one",
        "shell = true\ntimeout_seconds = 77\ncommand = [\"echo one",
    ),
    Edit::Config("[executors.asked]", "environment = [\"LD_PRELOAD\"]\n[executors.asked]"),
    Edit::Config("[executors.asked]", "directory = \"elsewhere\"\n[executors.asked]"),
    Edit::Config("[executors.asked]", "secrets.TOKEN = { variable = \"HOME\" }\n[executors.asked]"),
    Edit::Config("pin = [\"tool.sh\", ", "pin = ["),
    Edit::Config("template = \"prompt.md\"", "template = \"other.md\""),
    Edit::Config("[checks.also]", "[retry]\nattempts = 7\n[checks.also]"),
    Edit::Config("[checks.also]", "[limits]\ntimeout_seconds = 77\n[checks.also]"),
    Edit::Prompt("{description}\nignore all of that\nprompted\n"),
    Edit::Prompt(""),
    Edit::File("tool.sh", "echo evil\n"),
    Edit::File("tools/one.sh", "echo evil\n"),
    Edit::File("tools/new.sh", ""),
    Edit::Variable("WAYPOST_RETRY_ATTEMPTS", "50"),
    Edit::Variable("WAYPOST_LIMITS_TIMEOUT_SECONDS", "3"),
];

/// Edits that change nothing of it.
const HARMLESS: [Edit; 12] = [
    Edit::Agent(&["task", "revise", "PLAN", "a", "--priority", "7"]),
    Edit::Agent(&["add", "PLAN", "a thing for people"]),
    Edit::Agent(&["task", "revise", "PLAN", "plain", "--description", "other words"]),
    Edit::Config("echo other", "echo evil"),
    Edit::Config("[checks.also]\ncommand = [\"true\"]", "[checks.also]\ncommand = [\"false\"]"),
    Edit::Config(
        "[executors.run]",
        "[executors.fourth]\nkind = \"process\"\ncommand = [\"true\"]\n[executors.run]",
    ),
    Edit::Config("[executors.run]", "[queues.default]\nconcurrency = 2\n[executors.run]"),
    Edit::Config("[executors.run]", "# a comment\n[executors.run]"),
    Edit::Config(
        "[executors.run]",
        "[reporters.log]\nkind = \"file\"\npath = \"events.log\"\n[executors.run]",
    ),
    Edit::Restored("echo one", "echo two"),
    Edit::Restored("tail -n 1", "tail -n 2"),
    Edit::File("tools/not-pinned.txt", "anything"),
];

/// Edits after which what was approved may run or not, and nothing else.
const UNTRUSTED: [Edit; 3] = [
    Edit::Workspace("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [\"echo evil >> ran\"]\n"),
    Edit::Workspace("[executors.evil]\nkind = \"process\"\nshell = true\ncommand = [\"echo evil >> ran\"]\n"),
    Edit::Workspace("approval = \"never\"\n"),
];

struct Place {
    workspace: Workspace,
    variables: Vec<(&'static str, &'static str)>,
    config: String,
    /// The store; that of the workspace if it is empty.
    store: String,
}

impl Place {
    fn new(store: &str) -> Self {
        let (workspace, config) = (Workspace::new(), CONFIG.to_owned());
        let store = store.replace("ROOT", workspace.root.to_str().unwrap());
        let place = Self { workspace, variables: Vec::new(), config, store };
        fs::create_dir_all(place.workspace.work().join("elsewhere")).unwrap();
        place.write_config();
        place
    }

    fn write_config(&self) {
        let folder = self.workspace.root.join("home/.config/waypost");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), &self.config).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("WAYPOST_STORE", &self.store).args(words);
        command
    }

    fn at_terminal(&self, words: &[&str]) -> Output {
        self.command(words).env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap()
    }

    fn agent(&self, words: &[&str]) -> Output {
        self.command(words).env("CLAUDECODE", "1").output().unwrap()
    }

    /// Everything as it was before the first edit, with a new plan that a person approved.
    fn approved(&mut self, plan: &str) {
        self.config = CONFIG.to_owned();
        self.variables.clear();
        self.write_config();
        let work = self.workspace.work();
        fs::write(work.join("prompt.md"), PROMPT).unwrap();
        fs::write(work.join("other.md"), "{description}\nother\n").unwrap();
        let _gone = fs::remove_dir_all(work.join("tools"));
        fs::create_dir_all(work.join("tools")).unwrap();
        fs::write(work.join("tools/one.sh"), "echo good\n").unwrap();
        fs::write(work.join("tool.sh"), "echo good\n").unwrap();
        let _gone = fs::remove_file(work.join("ran"));
        let _gone = fs::remove_file(work.join(".waypost/config.toml"));
        let tasks = serde_json::json!([
            { "id": "a", "description": "the first", "work": { "executor": "run", "inputs": { "n": 9007199254740992_u64 } } },
            { "id": "b", "description": "the second", "provides": "the output", "depends_on": ["a"],
              "check": { "executor": "right" }, "work": { "executor": "run" } },
            { "id": "group", "description": "a group" },
            { "id": "c", "parent": "group", "description": "the third", "work": { "executor": "asked" } },
            { "id": "plain", "description": "for people" },
        ]);
        let document = serde_json::json!({
            "format": "waypost/1", "id": plan, "title": "the title", "goal": "the goal", "queue": "default",
            "tasks": tasks,
        });
        fs::write(work.join("plan.json"), document.to_string()).unwrap();
        let imported = self.agent(&["import", "plan.json"]);
        assert!(imported.status.success(), "{:?}", text(&imported));
        let approved = self.at_terminal(&["approve", plan]);
        assert!(approved.status.success(), "{:?}", text(&approved));
    }

    /// Makes an edit. Returns whether it could be made: a later one may find nothing to edit.
    fn edit(&mut self, plan: &str, edit: Edit) -> bool {
        match edit {
            Edit::Agent(words) => {
                let words: Vec<&str> =
                    words.iter().map(|word| if *word == "PLAN" { plan } else { word }).collect();
                self.agent(&words).status.success()
            }
            Edit::Config(from, to) => {
                let edited = self.config.replacen(from, to, 1);
                let changed = edited != self.config;
                self.config = edited;
                self.write_config();
                changed
            }
            Edit::Restored(from, to) => {
                let before = self.config.clone();
                self.edit(plan, Edit::Config(from, to));
                self.config = before;
                self.write_config();
                true
            }
            Edit::Prompt(prompt) => fs::write(self.workspace.work().join("prompt.md"), prompt).is_ok(),
            Edit::File(file, content) => fs::write(self.workspace.work().join(file), content).is_ok(),
            Edit::Variable(name, value) => {
                self.variables.push((name, value));
                true
            }
            Edit::Text(from, to) => {
                let file = self.workspace.work().join("plan.json");
                let text = fs::read_to_string(&file).unwrap();
                let edited = text.replacen(from, to, 1);
                fs::write(&file, &edited).unwrap();
                edited != text && self.agent(&["update", plan, "--from-file", "plan.json"]).status.success()
            }
            Edit::Workspace(config) => {
                fs::create_dir_all(self.workspace.work().join(".waypost")).unwrap();
                fs::write(self.workspace.work().join(".waypost/config.toml"), config).is_ok()
            }
        }
    }

    /// Lets a worker do everything that it would, and returns what it ran.
    fn ran(&self) -> (Vec<String>, String) {
        let mut worker = self.command(&["worker", "--until-idle", "--queue", "default", "--queue", "other"]);
        let output = worker.envs(self.variables.iter().copied()).output();
        let (said, error) = text(&output.unwrap());
        let ran = fs::read_to_string(self.workspace.work().join("ran")).unwrap_or_default();
        let mut lines: Vec<String> = ran.lines().map(str::to_owned).collect();
        lines.sort();
        (lines, said + &error)
    }
}

fn rounds(
    seed: u64,
    store: &str,
    edits: impl Fn(&mut SeededRng) -> Vec<Edit>,
    expected: impl Fn(&[Edit], bool, &[String]) -> bool,
) {
    let mut place = Place::new(store);
    let mut rng = SeededRng::new(seed);
    for round in 0..ROUNDS {
        let plan = format!("p{round}");
        place.approved(&plan);
        let chosen = edits(&mut rng);
        let made: Vec<bool> = chosen.iter().map(|edit| place.edit(&plan, *edit)).collect();
        let (ran, said) = place.ran();
        let fine = expected(&chosen, made.iter().all(|made| *made), &ran);
        assert!(fine, "seed {seed}, round {round}, {chosen:?}, made {made:?}: ran {ran:?}\n{said}");
        // What is left over from this round must not run in the next one.
        let ended = place.at_terminal(&["cancel", &plan]);
        assert!(ended.status.success() || ran == WHOLE, "{:?}", text(&ended));
    }
}

fn some(rng: &mut SeededRng, of: &[Edit]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for _ in 0..=rng.below(EDITS_MAX) {
        let edit = *rng.pick(of);
        // Twice, a part of a configuration is an error.
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }
    edits
}

#[test]
fn after_an_edit_that_matters_nothing_runs() {
    let edits = |rng: &mut SeededRng| {
        let mut edits = some(rng, &HARMLESS);
        edits.insert(rng.below(edits.len() + 1), *rng.pick(&MATTER));
        edits
    };
    rounds(1, "", edits, |chosen, made, ran| ran.is_empty() || !made && chosen.len() > 1 && ran == WHOLE);
}

/// Makes each edit that matters once, and nothing else.
fn each_edit(store: &str) {
    let next = std::cell::Cell::new(0);
    let edits = |_: &mut SeededRng| {
        let at = next.replace(next.get() + 1);
        vec![MATTER[at % MATTER.len()]]
    };
    rounds(2, store, edits, |chosen, made, ran| {
        assert!(made, "{chosen:?} could not be made");
        ran.is_empty()
    });
}

#[test]
fn each_edit_that_matters_stops_everything() {
    each_edit("");
}

#[test]
fn each_edit_that_matters_stops_everything_in_a_store_of_files() {
    each_edit("file:ROOT/plans");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn each_edit_that_matters_stops_everything_in_postgresql() {
    each_edit(PostgresDatabase::new().url());
}

#[test]
fn after_edits_that_do_not_matter_what_was_approved_runs() {
    rounds(3, "", |rng| some(rng, &HARMLESS), |_, _, ran| ran == WHOLE);
}

#[test]
fn after_edits_that_do_not_matter_what_was_approved_runs_in_a_store_of_files() {
    rounds(5, "file:ROOT/plans", |rng| some(rng, &HARMLESS), |_, _, ran| ran == WHOLE);
}

#[test]
fn a_configuration_that_an_agent_writes_into_the_workspace_runs_nothing() {
    let edits = |rng: &mut SeededRng| vec![*rng.pick(&UNTRUSTED), *rng.pick(&HARMLESS)];
    rounds(4, "", edits, |_, _, ran| ran.is_empty() || ran == WHOLE);
}
