//! `waypost tui` as a person uses it: keys into a real terminal, text from its screen.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::run::configure;
use crate::tmux::Tmux;
use crate::transcript::Workspace;

/// Work that leaves a trace and takes long enough to be seen; tasks that are only words are done at once.
const CONFIGURATION: &str = "\
default_executor = \"noop\"
[executors.touch]
kind = \"process\"
shell = true
command = [\"echo words of $WAYPOST_TASK >&2; sleep 0.3; touch ran-$WAYPOST_TASK\"]
";

/// A workspace with a plan of two tasks that a person wrote.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, CONFIGURATION);
    let work = serde_json::json!({ "executor": "touch", "inputs": {} });
    let plan = serde_json::json!({
        "format": "waypost/1", "id": "demo", "title": "Rename a type",
        "tasks": [
            { "id": "read", "description": "Read the module", "work": work },
            { "id": "write", "description": "Write it anew", "depends_on": ["read"], "work": work },
        ],
    });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    says(&workspace, &["import", "p.json"]);
    workspace
}

/// Runs a plan of the store: it is shown first, and approved.
fn runs_after_a_look(tmux: &Tmux) {
    tmux.press(&["x"]);
    tmux.wait("Run: Rename a type");
    tmux.wait("What will run");
    tmux.press(&["a"]);
    tmux.wait("approve and run");
    tmux.press(&["A"]);
}

/// What a command prints.
#[track_caller]
fn says(workspace: &Workspace, words: &[&str]) -> String {
    let output = workspace.waypost(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The settings of the terminal, as the shell's own tool tells them.
fn settings(tmux: &Tmux<'_>, workspace: &Workspace, name: &str) -> String {
    tmux.line(&format!("stty -a > {name}; echo told-$?"));
    tmux.wait("told-0");
    tmux.line("clear");
    tmux.wait_gone("told-0");
    fs::read_to_string(workspace.work().join(name)).unwrap()
}

/// That nothing of a whole screen is left over in the terminal.
#[track_caller]
fn is_sane(tmux: &Tmux<'_>) {
    for (flag, wanted) in
        [("alternate_on", "0"), ("mouse_any_flag", "0"), ("mouse_button_flag", "0"), ("cursor_flag", "1")]
    {
        assert_eq!(tmux.value(flag), wanted, "{flag}; the screen is:\n{}", tmux.screen());
    }
}

/// The program that was started in the workspace.
fn process_of(workspace: &Workspace) -> Pid {
    let is_ours = |process: &i32| {
        let here = fs::read_link(format!("/proc/{process}/cwd")).is_ok_and(|here| here == workspace.work());
        let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        here && command.starts_with("waypost\0tui")
    };
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let mut processes = names.filter_map(|name| name.to_str()?.parse().ok());
    Pid::from_raw(processes.find(is_ours).expect("the program runs")).unwrap()
}

#[test]
#[ignore = "needs tmux"]
fn a_plan_is_edited_broken_mended_saved_and_run_while_another_process_edits_it() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 120, 35);
    tmux.line("waypost tui; echo left-$?");
    tmux.wait("Rename a type");
    tmux.press(&["Enter"]);
    tmux.wait("Write it anew");
    // A cycle is told with its path as soon as it is there, and is not saved.
    tmux.press(&["b"]);
    tmux.type_in("write");
    tmux.press(&["Tab", "Enter"]);
    tmux.wait("read → write → read");
    tmux.press(&["s"]);
    tmux.wait("not saved");
    tmux.press(&["z"]);
    tmux.wait_gone("read → write → read");
    // A new task, and meanwhile one from the shell.
    tmux.press(&["N"]);
    tmux.type_in("Tell the others 日本");
    tmux.press(&["Enter"]);
    tmux.wait("Tell the others 日本");
    says(&workspace, &["add", "demo", "From another shell"]);
    tmux.wait("your edits are kept");
    tmux.press(&["s"]);
    tmux.wait("This plan changed while you were editing");
    tmux.wait("From another shell");
    tmux.press(&["r"]);
    // Both added a t1: the later one gets the next free id, and its author is told.
    tmux.wait("your new task t1 is t2 now");
    tmux.press(&["b"]);
    tmux.press(&["s"]);
    tmux.wait("saved as version");
    let shown = says(&workspace, &["show", "demo"]);
    assert!(shown.contains("Tell the others") && shown.contains("From another shell"), "{shown}");
    // It runs here, is seen running, and ends.
    runs_after_a_look(&tmux);
    tmux.wait("4/4 done (100%)");
    tmux.wait("completed");
    for task in ["read", "write"] {
        assert!(workspace.work().join(format!("ran-{task}")).exists(), "{task} ran");
    }
    // The log of a task that is done can still be read.
    tmux.wait("words of write");
    tmux.press(&["C-c"]);
    tmux.wait("left-0");
    is_sane(&tmux);
    let history = says(&workspace, &["history", "demo"]);
    assert!(history.contains("person:ada"), "{history}");
}

#[test]
#[ignore = "needs tmux"]
fn a_plan_of_an_agent_runs_nothing_before_the_person_at_the_terminal_has_seen_and_approved_it() {
    let workspace = workspace();
    says(&workspace, &["--as", "agent:planner", "import", "--id", "theirs", "p.json"]);
    let tmux = Tmux::new(&workspace, 80, 24);
    tmux.line("waypost tui theirs");
    tmux.wait("Write it anew");
    tmux.press(&["x"]);
    tmux.wait("What will run");
    tmux.wait("ran-$WAYPOST_TASK");
    assert!(!workspace.work().join("ran-read").exists());
    // Typed ahead: nothing was on screen yet.
    tmux.type_in("aAAAA");
    tmux.wait("approve and run");
    assert!(!says(&workspace, &["history", "theirs"]).contains("approved"));
    tmux.press(&["A"]);
    tmux.wait("2/2 done (100%)");
    assert!(says(&workspace, &["history", "theirs"]).contains("approved version 1"));
}

#[test]
#[ignore = "needs tmux"]
fn a_cloned_repository_runs_nothing_unless_it_is_trusted() {
    let workspace = workspace();
    assert!(workspace.at_terminal(&["submit", "demo"]).status.success());
    // As on a machine where nobody has trusted it.
    fs::remove_dir_all(workspace.root.join("home/.local")).unwrap();
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost tui demo");
    tmux.wait("trust this folder?");
    tmux.line("n");
    tmux.wait("Write it anew");
    tmux.press(&["x"]);
    tmux.wait("no executor is called touch");
    assert!(!workspace.work().join("ran-read").exists());
}

#[test]
#[ignore = "needs tmux"]
fn a_folder_that_others_can_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = workspace();
    let shared = workspace.root.join("shared");
    fs::create_dir_all(shared.join("mine")).unwrap();
    // Planted by somebody, with a plan that waits to be run.
    fs::rename(workspace.work().join(".waypost"), shared.join(".waypost")).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let tmux = Tmux::new(&workspace, 200, 30);
    tmux.line(&format!("cd {}; waypost tui demo; echo ended-$?", shared.join("mine").display()));
    let screen = tmux.wait("ended-5");
    assert!(screen.contains("which others can write, and is not used"), "{screen}");
    tmux.line("clear; waypost tui");
    tmux.wait("no plans yet");
    assert!(!tmux.screen().contains("Rename a type"), "{}", tmux.screen());
}

#[test]
#[ignore = "needs tmux"]
fn what_others_run_is_followed_paused_and_resumed_and_history_is_restored() {
    let workspace = workspace();
    says(&workspace, &["task", "revise", "demo", "read", "--description", "Read it twice"]);
    assert!(workspace.at_terminal(&["submit", "demo"]).status.success());
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost tui demo --watch");
    tmux.wait("nothing is running");
    tmux.press(&["P"]);
    tmux.wait("paused");
    assert!(says(&workspace, &["show", "demo", "--json"]).contains("\"paused\""));
    tmux.press(&["P"]);
    tmux.wait("nothing is running");
    // Another process runs it; this one follows.
    says(&workspace, &["run", "demo"]);
    tmux.wait("2/2 done (100%)");
    tmux.press(&["h"]);
    tmux.wait("Versions");
    tmux.press(&["End"]);
    tmux.wait("Version 1: created");
    tmux.press(&["v"]);
    tmux.wait("Restore version 1");
    tmux.press(&["r"]);
    tmux.wait("restored version 1 as version");
    assert!(says(&workspace, &["show", "demo"]).contains("Read the module"));
}

#[test]
#[ignore = "needs tmux"]
fn ctrl_z_gives_the_shell_its_terminal_and_fg_comes_back() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 100, 30);
    let before = settings(&tmux, &workspace, "before");
    tmux.line("waypost tui demo");
    tmux.wait("Write it anew");
    tmux.press(&["C-z"]);
    tmux.wait("Stopped");
    is_sane(&tmux);
    assert_eq!(settings(&tmux, &workspace, "while"), before);
    // Whatever is written meanwhile is seen after coming back.
    says(&workspace, &["add", "demo", "Written meanwhile"]);
    tmux.line("fg");
    tmux.wait("Written meanwhile");
    assert_eq!(tmux.value("alternate_on"), "1");
    tmux.press(&["C-c"]);
    tmux.wait_gone("Written meanwhile");
    tmux.line("echo left-$?");
    tmux.wait("left-0");
    assert_eq!(settings(&tmux, &workspace, "after"), before);
}

#[test]
#[ignore = "needs tmux"]
fn the_terminal_is_as_it_was_after_the_program_is_ended_from_outside() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 100, 30);
    let before = settings(&tmux, &workspace, "before");
    for (number, signal) in [Signal::TERM, Signal::HUP].into_iter().enumerate() {
        tmux.line("waypost tui demo --watch");
        tmux.wait("Write it anew");
        kill_process(process_of(&workspace), signal).unwrap();
        // What is typed before it has ended goes to it, and not to the shell.
        tmux.wait("asked to end");
        tmux.line(&format!("echo ended-{number}-$?"));
        tmux.wait(&format!("ended-{number}-130"));
        is_sane(&tmux);
        tmux.line("clear");
        tmux.wait_gone("ended-");
        assert_eq!(settings(&tmux, &workspace, &format!("after-{number}")), before);
    }
}

#[test]
#[ignore = "needs tmux"]
fn edits_that_nobody_could_save_are_kept_in_a_file_when_the_program_is_ended_from_outside() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 100, 30);
    for (number, signal) in [Signal::TERM, Signal::HUP].into_iter().enumerate() {
        tmux.line("TMPDIR=$PWD waypost tui demo");
        tmux.wait("Write it anew");
        tmux.press(&["N"]);
        tmux.wait("Complexity");
        tmux.type_in("Never saved");
        tmux.wait("Never saved");
        kill_process(process_of(&workspace), signal).unwrap();
        // What is typed before it has ended goes to it, and not to the shell.
        tmux.wait("asked to end");
        tmux.line(&format!("echo ended-{number}-$?"));
        let shown = tmux.wait(&format!("ended-{number}-130"));
        assert!(shown.contains("your unsaved edits of plan demo are kept in"), "{shown}");
        let files = fs::read_dir(workspace.work()).unwrap().map(|entry| entry.unwrap().path());
        let kept: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
        let [kept] = kept.as_slice() else { panic!("{kept:?}") };
        let text = fs::read_to_string(kept).unwrap();
        assert!(text.contains("Never saved") && text.contains("Write it anew"), "{text}");
        fs::remove_file(kept).unwrap();
        tmux.line("clear");
        tmux.wait_gone("ended-");
    }
}

#[test]
#[ignore = "needs tmux"]
fn a_window_that_says_twice_that_it_is_closed_leaves_no_task_that_seems_to_run() {
    let workspace = workspace();
    // Work that takes its time to end when it is asked to.
    let slow = CONFIGURATION.replace("sleep 0.3", "trap 'sleep 1; exit 1' TERM; sleep 600 & wait");
    configure(&workspace, &slow);
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost tui demo");
    tmux.wait("Write it anew");
    runs_after_a_look(&tmux);
    tmux.wait("words of read");
    let process = process_of(&workspace);
    kill_process(process, Signal::HUP).unwrap();
    tmux.wait_gone("words of read");
    // Either it still ends what it ran, or it has done so.
    let _gone = kill_process(process, Signal::HUP);
    tmux.line("echo ended-$?");
    tmux.wait("ended-130");
    let shown = says(&workspace, &["show", "demo", "--json"]);
    assert!(!shown.contains("\"status\":\"running\"") && !shown.contains("\"running\":1"), "{shown}");
}

#[test]
#[ignore = "needs tmux"]
fn an_editor_of_the_persons_choice_gets_the_terminal_and_gives_it_back() {
    let workspace = workspace();
    let script = workspace.root.join("editor");
    fs::write(&script, "#!/bin/sh\nsed -i 's/Read the module/Read all modules/' \"$1\"\n").unwrap();
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line(&format!("EDITOR='sh {}' waypost tui demo", script.display()));
    tmux.wait("Read the module");
    tmux.press(&["E"]);
    tmux.wait("Read all modules");
    tmux.press(&["s"]);
    tmux.wait("saved as version 2");
    assert!(says(&workspace, &["show", "demo"]).contains("Read all modules"));
}

#[test]
#[ignore = "needs tmux"]
fn a_screen_that_shrinks_and_grows_is_drawn_anew_and_never_garbled() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 200, 50);
    tmux.line("waypost tui demo");
    tmux.wait("Write it anew");
    for (columns, rows) in [(60, 15), (80, 24), (59, 14), (200, 50), (60, 15)] {
        tmux.resize(columns, rows);
        let wanted = if columns < 60 { "Waypost needs 60×15" } else { "Write it anew" };
        let fits = |screen: &str| {
            let heading = screen.lines().next().unwrap_or_default().contains("waypost");
            screen.contains(wanted) && heading == (columns >= 60)
        };
        let screen = tmux.wait_until(&format!("the screen is drawn at {columns}×{rows}"), fits);
        assert!(screen.lines().count() <= usize::from(rows), "{screen}");
    }
    tmux.press(&["?"]);
    tmux.wait("Plan editor");
    tmux.press(&["Escape"]);
    tmux.wait("Write it anew");
}

#[test]
#[ignore = "needs tmux"]
fn colours_are_the_terminals_own_and_no_color_takes_them_away() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 100, 30);
    let colours = |screen: &str| -> Vec<String> {
        let codes =
            screen.split("\u{1b}[").skip(1).filter_map(|rest| Some(rest.split_once('m')?.0.to_owned()));
        codes.filter(|code| code.contains("38;") || code.starts_with('3') && code != "39").collect()
    };
    tmux.line("waypost tui demo --watch");
    tmux.wait("Write it anew");
    let coloured = tmux.screen_with_colours();
    let of_palette = |code: &String| {
        let number = code.rsplit_once("38;5;").map(|(_, number)| number.parse::<u32>().unwrap());
        number.is_none_or(|number| number < 16) && !code.contains("38;2;")
    };
    let found = colours(&coloured);
    assert!(!found.is_empty() && found.iter().all(of_palette), "{found:?} of {coloured:?}");
    tmux.press(&["C-c"]);
    tmux.wait("$ waypost tui");
    tmux.line("clear; NO_COLOR=1 waypost tui demo --watch");
    tmux.wait("Write it anew");
    let plain = tmux.screen_with_colours();
    assert!(colours(&plain).is_empty(), "{plain:?}");
}

#[test]
#[ignore = "needs tmux"]
fn it_says_kindly_where_it_cannot_be_shown() {
    let workspace = workspace();
    let output = workspace.waypost(&["tui"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("there is no terminal") && error.contains("hint: start it in a terminal"),
        "{error}"
    );
    let output = workspace.waypost(&["tui", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let tmux = Tmux::new(&workspace, 120, 30);
    tmux.line("TERM=dumb waypost tui; echo ended-$?");
    tmux.wait("ended-1");
    assert!(tmux.screen().contains("this terminal (TERM=dumb) can only print lines"), "{}", tmux.screen());
    tmux.line("waypost tui nothing; echo ended-again-$?");
    tmux.wait("ended-again-5");
    assert!(tmux.screen().contains("no plan is called nothing"), "{}", tmux.screen());
}

#[test]
#[ignore = "needs tmux"]
fn keys_of_the_configuration_hold_and_mistakes_in_them_are_named() {
    let workspace = workspace();
    configure(&workspace, "[tui]\nmouse = false\n[tui.keys]\nrun.history = \"v\"\n");
    let tmux = Tmux::new(&workspace, 160, 30);
    tmux.line("waypost tui demo --watch");
    tmux.wait("v history");
    assert_eq!(tmux.value("mouse_any_flag"), "0");
    tmux.press(&["v"]);
    tmux.wait("Versions");
    tmux.press(&["C-c"]);
    configure(&workspace, "[tui.keys]\neditor.sav = \"w\"\neditor.undo = \"nokey\"\n");
    tmux.line("clear; waypost tui; echo ended-$?");
    tmux.wait("ended-4");
    let screen = tmux.screen();
    assert!(screen.contains("config.toml:2: `tui.keys.editor.sav`"), "{screen}");
    // The lines are as long as the path of the file makes them, and wrap somewhere.
    let unwrapped: String = screen.split_whitespace().collect();
    assert!(unwrapped.contains("didyoumean`editor.save`?"), "{screen}");
    assert!(unwrapped.contains("\"nokey\"isnotakey;writeonesuchas"), "{screen}");
}

#[test]
#[ignore = "needs tmux"]
fn a_run_can_be_shown_as_a_whole_screen_and_ends_as_a_run_does() {
    let workspace = workspace();
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost run p.json --tui; echo ended-$?");
    tmux.wait("2/2 done (100%)");
    tmux.press(&["C-c"]);
    tmux.wait("ended-0");
    assert!(tmux.screen().contains("plan demo is completed"), "{}", tmux.screen());
}

#[test]
#[ignore = "needs tmux"]
fn approving_takes_an_answer_that_is_typed_at_the_terminal_after_everything_was_shown() {
    let workspace = workspace();
    says(&workspace, &["--as", "agent:planner", "import", "--id", "theirs", "p.json"]);
    let tmux = Tmux::new(&workspace, 100, 50);
    // What comes from stdin is no answer, and what runs in the background asks nobody.
    tmux.line("yes | waypost approve theirs & wait $!; echo ended-$?");
    tmux.wait("ended-1");
    assert!(tmux.screen().contains("this runs in the background of one"), "{}", tmux.screen());
    tmux.line("clear; yes | waypost run theirs; echo ended-$?");
    tmux.wait("Type yes to approve");
    assert!(tmux.screen().contains("ran-$WAYPOST_TASK"), "{}", tmux.screen());
    tmux.type_in("no");
    tmux.press(&["Enter"]);
    tmux.wait("ended-1");
    assert!(!workspace.work().join("ran-read").exists());
    // What is typed before the question is no answer, so the first question has to be gone.
    tmux.line("clear; echo once''more; waypost run theirs; echo ended-$?");
    tmux.wait("oncemore");
    tmux.wait("Type yes to approve");
    tmux.type_in("yes");
    tmux.press(&["Enter"]);
    tmux.wait("ended-0");
    assert!(workspace.work().join("ran-write").exists());
}

#[test]
#[ignore = "needs tmux"]
fn a_preview_that_does_not_fit_on_the_screen_asks_for_the_characters_at_its_end() {
    let workspace = workspace();
    says(&workspace, &["--as", "agent:planner", "import", "--id", "theirs", "p.json"]);
    let tmux = Tmux::new(&workspace, 100, 10);
    tmux.line("waypost approve theirs; echo ended-$?");
    let screen = tmux.wait("to approve (it is longer than the screen):");
    assert!(!screen.contains("Type yes"), "{screen}");
    tmux.type_in("yes");
    tmux.press(&["Enter"]);
    tmux.wait("ended-1");
    // Another terminal, where the first question does not stand.
    drop(tmux);
    let tmux = Tmux::new(&workspace, 100, 10);
    tmux.line("waypost approve theirs; echo ended-$?");
    let screen = tmux.wait("to approve (it is longer than the screen):");
    let (_, asked) = screen.split_once("Type ").unwrap();
    tmux.type_in(asked.split_whitespace().next().unwrap());
    tmux.press(&["Enter"]);
    tmux.wait("ended-0");
}

#[test]
#[ignore = "needs tmux"]
fn leaving_while_something_runs_asks_and_stops_it_and_the_plan_can_go_on() {
    let workspace = workspace();
    let slow = CONFIGURATION.replace("sleep 0.3", "[ -e fast ] || sleep 600");
    configure(&workspace, &slow);
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line("waypost tui demo; echo ended-$?");
    tmux.wait("Write it anew");
    runs_after_a_look(&tmux);
    tmux.wait("words of read");
    tmux.press(&["Escape"]);
    tmux.wait("keep running");
    tmux.press(&["l"]);
    // The editor is usable while the run goes on.
    tmux.wait("Enter edit");
    tmux.press(&["C-c"]);
    tmux.wait("stop and quit");
    tmux.press(&["s"]);
    tmux.wait("ended-0");
    is_sane(&tmux);
    let shown = says(&workspace, &["show", "demo", "--json"]);
    assert!(!shown.contains("\"running\":1"), "{shown}");
    fs::write(workspace.work().join("fast"), "").unwrap();
    assert!(says(&workspace, &["run", "demo"]).contains("plan demo is completed"));
}

#[test]
#[ignore = "needs tmux"]
fn a_plan_that_cannot_be_read_is_named_and_the_others_are_listed() {
    let workspace = workspace();
    let store = format!("file:{}", workspace.root.join("files").display());
    for id in ["good", "bad"] {
        says(&workspace, &["--store", &store, "import", "--id", id, "p.json"]);
    }
    let history = workspace.root.join("files/history/bad.jsonl");
    fs::write(&history, "no history\n").unwrap();
    let tmux = Tmux::new(&workspace, 100, 30);
    tmux.line(&format!("waypost --store {store} tui"));
    tmux.wait("good");
    tmux.wait("bad.jsonl");
}
