//! The screens of `waypost tui` in a real terminal: what needs the person is seen, chosen and read.

use std::fs;

use crate::run::configure;
use crate::tmux::Tmux;
use crate::transcript::Workspace;

/// An executor that fails with a coloured log of two screens, and one for people.
const CONFIGURATION: &str = "\
[executors.compile]
kind = \"process\"
shell = true
command = [\"exec >&2; printf '\\\\033[1;34mbuilding\\\\033[0m\\\\n'; seq -f 'unit %g' 60; \
printf '\\\\033[31merror[E0308]\\\\033[0m: mismatched types\\\\n'; seq -f 'note %g' 60; exit 3\"]
[executors.ask]
kind = \"human\"
";

#[track_caller]
fn says(workspace: &Workspace, words: &[&str]) -> String {
    let output = workspace.waypost(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Stores a plan with these tasks, in the name of an actor.
fn import(workspace: &Workspace, by: &str, id: &str, title: &str, tasks: &serde_json::Value) {
    let plan = serde_json::json!({ "format": "waypost/1", "title": title, "tasks": tasks });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    says(workspace, &["--as", by, "import", "--id", id, "p.json"]);
}

fn work(executor: &str) -> serde_json::Value {
    serde_json::json!({ "executor": executor, "inputs": {} })
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, CONFIGURATION);
    workspace
}

/// Runs a plan of one task that fails.
fn failed(workspace: &Workspace) {
    let tasks = serde_json::json!([{ "id": "build", "description": "Build it", "work": work("compile") }]);
    import(workspace, "person:ada", "nightly", "Nightly build", &tasks);
    assert!(workspace.at_terminal(&["submit", "nightly"]).status.success());
    assert!(!workspace.waypost(&["run", "nightly"]).status.success());
}

#[test]
#[ignore = "needs tmux"]
fn the_list_shows_what_needs_the_person_and_leads_to_the_review() {
    let workspace = workspace();
    let tasks = serde_json::json!([{ "id": "t1", "description": "Compile it", "work": work("compile") }]);
    import(&workspace, "person:ada", "later", "A draft", &tasks);
    import(&workspace, "agent:robin", "theirs", "Move the tables", &tasks);
    says(&workspace, &["--as", "agent:robin", "request-approval", "theirs"]);
    failed(&workspace);
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost tui");
    let screen = tmux.wait("2 need you");
    let order = ["! needs approval", "✗ failed", "✎ draft"].map(|state| screen.find(state));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{screen}");
    assert!(screen.contains("1 task, version 2"), "what the selected plan is about: {screen}");
    tmux.press(&["n"]);
    tmux.wait("it ended with exit code 3");
    tmux.press(&["p", "a"]);
    tmux.wait("R reject");
    tmux.press(&["R"]);
    tmux.wait("Reject the plan");
    tmux.type_in("too wide");
    tmux.press(&["Enter"]);
    tmux.wait("rejected: too wide");
    tmux.press(&["Escape"]);
    tmux.wait("← rejected");
}

#[test]
#[ignore = "needs tmux"]
fn answers_are_chosen_and_an_enter_too_many_sends_none() {
    let workspace = workspace();
    let tasks = serde_json::json!([
        { "id": "name", "description": "Choose the name" },
        { "id": "sign", "description": "Sign the contract", "notes": "Both pages.", "work": work("ask") },
    ]);
    import(&workspace, "person:ada", "names", "Names", &tasks);
    assert!(workspace.at_terminal(&["submit", "names"]).status.success());
    says(&workspace, &["--as", "agent:robin", "claim", "names", "name"]);
    let asked = ["ask", "names", "name", "Which one?", "--choice", "Entry", "--choice", "Record"];
    says(&workspace, &[&["--as", "agent:robin"], &asked[..]].concat());
    let tmux = Tmux::new(&workspace, 80, 24);
    tmux.line("waypost tui names --watch");
    tmux.wait("2 Record");
    tmux.press(&["Enter"]);
    tmux.wait("Enter choose");
    tmux.press(&["Enter", "Enter"]);
    tmux.wait("Enter choose");
    tmux.press(&["2"]);
    tmux.wait("answered name");
    tmux.press(&["Enter"]);
    let screen = tmux.wait("Your task sign");
    assert!(screen.contains("Both pages.") && screen.contains("1 Done"), "{screen}");
    tmux.press(&["2"]);
    tmux.wait("The result");
    tmux.type_in("on paper");
    tmux.press(&["Enter"]);
    tmux.wait("answered sign");
    let events = says(&workspace, &["events", "--json"]);
    assert!(events.contains("Record") && events.contains("on paper"), "{events}");
}

#[test]
#[ignore = "needs tmux"]
fn a_status_is_chosen_from_a_list() {
    let workspace = workspace();
    let tasks = serde_json::json!([{ "id": "t1", "description": "Read it" }]);
    import(&workspace, "person:ada", "small", "Small", &tasks);
    assert!(workspace.at_terminal(&["submit", "small"]).status.success());
    let tmux = Tmux::new(&workspace, 80, 24);
    tmux.line("waypost tui small --watch");
    tmux.wait("Read it");
    tmux.press(&["="]);
    tmux.wait("Status of t1");
    tmux.press(&["1"]);
    tmux.wait("1/1 done (100%)");
    // Escape and the next key at once would be one key with Alt.
    tmux.press(&["Escape"]);
    tmux.wait("STATE");
    tmux.press(&["="]);
    tmux.wait("Set in small");
    tmux.press(&["1"]);
    tmux.wait("no longer listed");
    tmux.press(&["Up", "Enter"]);
    tmux.wait("small: archived");
}

#[test]
#[ignore = "needs tmux"]
fn a_log_has_its_colours_opens_at_its_error_and_is_searched() {
    let workspace = workspace();
    failed(&workspace);
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost tui nightly --watch");
    let screen = tmux.wait("error[E0308]: mismatched types");
    assert!(!screen.contains("note 59"), "the error is shown, not the end: {screen}");
    let coloured = tmux.screen_with_colours();
    let line = coloured.lines().find(|line| line.contains("error[E0308]")).unwrap();
    assert!(line.contains("38;5;1m") || line.contains("[31m"), "{line:?}");
    tmux.press(&["/"]);
    tmux.type_in("unit 17");
    tmux.wait("1 line");
    tmux.press(&["Enter"]);
    tmux.wait("1 line with “unit 17”");
    tmux.press(&["f"]);
    let whole = tmux.wait_gone("╭ Tasks");
    assert!(whole.contains("description") && whole.contains("Build it"), "{whole}");
    tmux.press(&["F"]);
    tmux.wait("note 59");
    tmux.press(&["Escape"]);
    tmux.wait("╭ Tasks");
}

#[test]
#[ignore = "needs tmux"]
fn the_palette_leads_to_a_task_of_any_plan() {
    let workspace = workspace();
    let tasks = serde_json::json!([{ "id": "a", "description": "Water the plants" }]);
    import(&workspace, "person:ada", "garden", "Garden", &tasks);
    let others = serde_json::json!([{ "id": "b", "description": "Paint the door" }]);
    import(&workspace, "person:ada", "house", "House", &others);
    let tmux = Tmux::new(&workspace, 80, 24);
    tmux.line("waypost tui");
    tmux.wait("Garden");
    tmux.press(&["C-k"]);
    tmux.wait("Go to a plan, a task or a command");
    tmux.type_in("plants");
    tmux.wait("task of garden");
    tmux.press(&["Enter"]);
    tmux.wait("Tasks 1/1");
    tmux.wait("Water the plants");
    tmux.press(&["C-k"]);
    tmux.type_in("read the text");
    tmux.wait_until("only the command is left", |screen| screen.contains("read the text of the plan"));
    tmux.press(&["Enter"]);
    tmux.wait("This plan has no text");
}

#[test]
#[ignore = "needs tmux"]
fn a_document_is_read_as_its_text() {
    let workspace = workspace();
    let text = "# Notes\n\nSome *text*:\n\n- one\n- two\n\n## Details\n\n| a | b |\n|---|--:|\n| x | 1 |\n";
    fs::write(workspace.work().join("notes.md"), text).unwrap();
    says(&workspace, &["import", "--id", "notes", "notes.md"]);
    let tmux = Tmux::new(&workspace, 80, 24);
    tmux.line("waypost tui");
    tmux.wait("text");
    tmux.press(&["Enter"]);
    let screen = tmux.wait("• two");
    assert!(screen.contains("a │ b") && !screen.contains("##"), "{screen}");
    let headings = tmux.screen_with_colours();
    assert!(headings.contains("Details"), "{headings}");
}
