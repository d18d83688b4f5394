//! The examples of the repository, run with the real program in a copy of the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use waypost_core::{Phase, Plan, PlanId};
use waypost_store::{Durability, Plans, open};

use crate::run::text;
use crate::transcript::Workspace;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, path) = entry.map(|entry| (entry.file_name(), entry.path())).unwrap();
        // What somebody's own run of the examples has left is no part of them.
        if entry == "scratch" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(entry));
        } else {
            fs::copy(path, to.join(entry)).unwrap();
        }
    }
}

/// A workspace with the examples and the repository's configuration.
pub(crate) fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    copy(&root.join("examples"), &workspace.work().join("examples"));
    fs::create_dir_all(workspace.work().join(".waypost")).unwrap();
    fs::copy(root.join(".waypost/config.toml"), workspace.work().join(".waypost/config.toml")).unwrap();
    workspace
}

/// A plan as the store of a workspace has it.
pub(crate) fn stored(workspace: &Workspace, id: &str) -> Plan {
    let store = format!("sqlite:{}", workspace.work().join(".waypost/waypost.db").display());
    let plans = Plans::new(open(&store, Durability::default()).unwrap());
    plans.look(&PlanId::new(id).unwrap(), Plan::clone).unwrap()
}

/// How often each of the two forms of agora's example is run.
const RUNS: usize = 100;

/// Runs the worker after it, and notes when its work began and ended. Of edits that may overlap, each waits until all
/// three have begun: if they do not really overlap, it gives up and fails.
const TIMED: &str = r#"#!/bin/sh
set -eu
note() { printf '%s %s %s\n' "$1" "$WAYPOST_TASK" "$(date +%s%N)" >> times; }
note start
case "$WAYPOST_TASK" in
    edit-*)
        tries=0
        while [ -e meet ] && [ "$(grep -c '^start edit-' times)" -lt 3 ]; do
            tries=$((tries + 1))
            [ "$tries" -lt 1500 ] || { echo "the others did not begin" >&2; exit 1; }
            sleep 0.02
        done ;;
esac
sh "$@"
note end
"#;

/// When the work of each task began and ended, in nanoseconds.
fn spans(workspace: &Workspace) -> BTreeMap<String, (u128, u128)> {
    let mut spans: BTreeMap<String, (u128, u128)> = BTreeMap::new();
    for line in fs::read_to_string(workspace.work().join("times")).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let at: u128 = words[2].parse().unwrap();
        let span = spans.entry(words[1].to_owned()).or_default();
        match words[0] {
            "start" => assert_eq!(std::mem::replace(&mut span.0, at), 0, "{} was started twice", words[1]),
            _ => span.1 = at,
        }
    }
    spans
}

fn fan_out(common_lock: bool) {
    let workspace = workspace();
    let put = |name: &str, text: &str| fs::write(workspace.work().join(name), text).unwrap();
    let get = |name: &str| fs::read_to_string(workspace.work().join(name)).unwrap();
    // The same workers, timed and without the pause that lets people watch.
    put("timed.sh", TIMED);
    let config = get(".waypost/config.toml");
    assert!(config.contains("[\"sh\", \"examples/workers/code-edit.sh\"]"), "{config}");
    put(".waypost/config.toml", &config.replace("[\"sh\", \"examples", "[\"sh\", \"timed.sh\", \"examples"));
    let worker = get("examples/workers/code-edit.sh");
    assert!(worker.contains("sleep 0.4\n"));
    put("examples/workers/code-edit.sh", &worker.replace("sleep 0.4\n", ""));
    if common_lock {
        let mut plan: serde_json::Value = serde_json::from_str(&get("examples/fanout.json")).unwrap();
        for item in plan["items"].as_array_mut().unwrap().iter_mut().take(3) {
            item["resourceLocks"] = serde_json::json!(["repository"]);
        }
        put("examples/fanout.json", &plan.to_string());
    } else {
        put("meet", "");
    }
    let output = workspace.waypost(&["run", "examples/fanout.json"]);
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    let plan = stored(&workspace, "rename-fanout");
    assert_eq!(plan.state().phase, Phase::Completed);
    let recorded = |name: &str| {
        let state = &plan.task(name).unwrap().state;
        let micros = |at: Option<waypost_core::Timestamp>| at.unwrap().as_micros() as u128 * 1_000;
        (micros(state.started_at), micros(state.finished_at))
    };
    let worked = spans(&workspace);
    let edits = ["edit-parser", "edit-store", "edit-views"];
    // What the workers noted, and what the plan says.
    for span in [&|name: &str| worked[name], &recorded as &dyn Fn(&str) -> (u128, u128)] {
        let mut edits: Vec<(u128, u128)> = edits.iter().map(|name| span(name)).collect();
        edits.sort_unstable();
        if common_lock {
            assert!(edits.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two edits overlap: {edits:?}");
        } else {
            let first_end = edits.iter().map(|edit| edit.1).min();
            assert!(edits[2].0 < first_end.unwrap(), "the edits do not all overlap: {edits:?}");
        }
        let last_end = edits.iter().map(|edit| edit.1).max().unwrap();
        assert!(last_end <= span("verify").0, "verify began before the edits had ended");
    }
}

#[test]
fn three_edits_overlap_verify_starts_after_all_and_with_a_common_lock_they_never_overlap() {
    std::thread::scope(|scope| {
        for common_lock in [false, true] {
            scope.spawn(move || (0..RUNS).for_each(|_| fan_out(common_lock)));
        }
    });
}
