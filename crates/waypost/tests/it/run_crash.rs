//! A run that is killed at random moments and resumed: every task ends, nothing that was acknowledged as done is done
//! again, and no lock is ever held by two.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use waypost_core::{PlanId, Status};
use waypost_store::{Durability, Plans, open};

use crate::run::{configure, text};
use crate::transcript::Workspace;

const TASKS: usize = 100;
const KILLS: usize = 12;

/// What each attempt does: it notes its start, holds its lock in a way that ends with the process, and notes its end. One
/// that got no job, because the run died before it could be told, does nothing. Only an exit code of 1 says that somebody
/// else has the lock: when a group is killed, `flock` may go before its shell.
const WORKER: &str = "echo \"start $WAYPOST_TASK $WAYPOST_ATTEMPT\" >> journal; lock=$(sed -n 's/.*\"lock\":\"\\([a-z]*\\)\".*/\\1/p'); [ -n \"$lock\" ] || exit 1; exec 9> \"lock.$lock\"; flock -n 9; [ $? -ne 1 ] || echo \"clash $WAYPOST_TASK\" >> journal; sleep 0.02; echo \"end $WAYPOST_TASK $WAYPOST_ATTEMPT\" >> journal";

#[test]
fn a_run_that_is_killed_again_and_again_comes_to_its_end() {
    let workspace = Workspace::new();
    let line = serde_json::to_string(WORKER).unwrap();
    configure(
        &workspace,
        &format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line}]\n"),
    );
    let tasks: Vec<serde_json::Value> = (0..TASKS)
        .map(|number| {
            let lock = ["x", "y", "z"][number % 3];
            let depends: Vec<String> =
                if number < 10 { Vec::new() } else { vec![format!("t{}", number - 10)] };
            serde_json::json!({
                "id": format!("t{number}"), "depends_on": depends, "locks": [lock],
                "work": { "executor": "run", "inputs": { "lock": lock } },
            })
        })
        .collect();
    let plan = serde_json::json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    let store = format!("sqlite:{}", workspace.work().join(".waypost/waypost.db").display());
    let id = PlanId::new("p").unwrap();
    // The same instants in every run of this test, as far as the machine lets them be.
    let mut seed = 7u64;
    let mut acknowledged: BTreeMap<String, u32> = BTreeMap::new();
    for kill in 0..KILLS {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        let words = ["run", "p.json", "--json"];
        let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lines = (seed >> 33) as usize % 20;
        let read = BufReader::new(child.stdout.take().unwrap()).lines().take(lines).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(read <= lines, "kill {kill}");
        let plans = Plans::new(open(&store, Durability::default()).unwrap());
        let done = plans.look(&id, |plan| {
            let done = plan.tasks().filter(|(task, _)| task.state.status == Status::Done);
            done.map(|(task, _)| (task.spec.id.to_string(), task.state.attempt)).collect::<BTreeMap<_, _>>()
        });
        // The very first run may have been killed before there was a plan.
        for (task, attempt) in done.unwrap_or_default() {
            acknowledged.entry(task).or_insert(attempt);
        }
    }
    let output = workspace.waypost(&["run", "p.json"]);
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    let plans = Plans::new(open(&store, Durability::default()).unwrap());
    let attempts: BTreeMap<String, u32> = plans
        .look(&id, |plan| {
            plan.tasks().map(|(task, _)| (task.spec.id.to_string(), task.state.attempt)).collect()
        })
        .unwrap();
    assert_eq!(plans.look(&id, |plan| plan.counts().done as usize).unwrap(), TASKS);
    for (task, attempt) in &acknowledged {
        assert_eq!(attempts[task], *attempt, "{task} was done and was done again");
    }
    let journal = fs::read_to_string(workspace.work().join("journal")).unwrap();
    assert!(!journal.contains("clash"), "a lock was held by two: {journal}");
    let ends: BTreeSet<&str> = journal.lines().filter_map(|line| line.strip_prefix("end ")).collect();
    for (task, attempt) in &attempts {
        assert!(
            ends.contains(format!("{task} {attempt}").as_str()),
            "{task} says done at attempt {attempt} and was not"
        );
    }
    let more = attempts.values().filter(|&&attempt| attempt > 1).count();
    assert!(
        more > 0 && acknowledged.len() > 5,
        "{more} tasks were tried again, {} acknowledged",
        acknowledged.len()
    );
    assert_eq!(plans.doctor(false).unwrap(), []);
}
