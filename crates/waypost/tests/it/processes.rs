//! What happens around a process: a reader that goes away, Ctrl-C, several writers at once.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::slurm::wait_for;
use crate::transcript::Workspace;

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let workspace = Workspace::new();
    let tasks: Vec<String> =
        (0..2_000).map(|number| format!("--task=Task number {number} of many")).collect();
    let mut words = vec!["new", "Long", "--id", "long"];
    words.extend(tasks.iter().map(String::as_str));
    assert!(workspace.waypost(&words).status.success());
    let script = "{ waypost show long --full; echo $? >&2; } | head -1";
    let output = workspace.command("sh").arg("-c").arg(script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n");
}

#[test]
fn ctrl_c_ends_it_as_shells_expect() {
    let workspace = Workspace::new();
    // Whoever runs the tests in the background may ignore the signal, and children would inherit that.
    let mut child = workspace
        .command("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_waypost"), "import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Again and again: as long as it is not yet the program itself, nobody may heed it.
    let status = wait_for("the end of what was interrupted", || {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.try_wait().unwrap()
    });
    // A shell tells death by signal 2 as exit code 130.
    assert_eq!(status.signal(), Some(2));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    const WRITERS: usize = 4;
    const TASKS: usize = 10;
    let workspace = Workspace::new();
    assert!(workspace.waypost(&["new", "Shared", "--id", "shared"]).status.success());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let workspace = &workspace;
            scope.spawn(move || {
                for number in 0..TASKS {
                    let description = format!("Task {number} of writer {writer}");
                    let output = workspace.waypost(&["add", "shared", &description]);
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                }
            });
        }
    });
    let output = workspace.waypost(&["show", "shared", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["tasks_total"], WRITERS * TASKS);
    assert_eq!(shown["version"], 1 + WRITERS * TASKS);
}

#[test]
fn one_of_several_claimants_gets_each_task() {
    const CLAIMANTS: usize = 4;
    let workspace = Workspace::new();
    let words =
        ["new", "Shared", "--id", "shared", "--task", "a", "--task", "b", "--task", "c", "--task", "d"];
    assert!(workspace.waypost(&words).status.success());
    let taken: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLAIMANTS)
            .map(|claimant| {
                let workspace = &workspace;
                scope.spawn(move || {
                    let who = format!("agent:worker-{claimant}");
                    let output = workspace.waypost(&["next", "shared", "--claim", "--json", "--as", &who]);
                    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                    answer["task"]["id"].as_str().unwrap().to_owned()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut names = taken;
    names.sort();
    assert_eq!(names, ["t1", "t2", "t3", "t4"]);
}
