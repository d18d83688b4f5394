//! The examples of the repository, run with the real program in a copy of the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use waypost_core::{Phase, Plan, PlanId, Status};
use waypost_store::{Durability, PlanStore, open};

use crate::run::{configure, text};
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
    let config = fs::read_to_string(root.join("examples/config.toml")).unwrap();
    configure(&workspace, &config.replace("\"workers/", "\"../examples/workers/"));
    workspace
}

/// A plan as the store of a workspace has it.
pub(crate) fn stored(workspace: &Workspace, id: &str) -> Plan {
    let store = format!("sqlite:{}", workspace.work().join(".waypost/waypost.db").display());
    let plans = PlanStore::new(open(&store, Durability::default()).unwrap());
    plans.with_plan(&PlanId::new(id).unwrap(), Plan::clone).unwrap()
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
    workspace.trust();
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

/// Runs an example and returns its plan; a second run does nothing.
#[track_caller]
fn run(workspace: &Workspace, file: &str, id: &str) -> Plan {
    let file = format!("examples/{file}");
    for words in [&["run", &file, "--dry-run"][..], &["run", &file], &["run", &file]] {
        let output = workspace.waypost(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {:?}", text(&output));
    }
    let plan = stored(workspace, id);
    assert_eq!(plan.state().phase, Phase::Completed);
    plan
}

#[track_caller]
fn scratch(workspace: &Workspace, name: &str) -> String {
    let path = workspace.work().join("examples/scratch").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_clido_plan_renames_what_it_says_and_skips_what_it_says() {
    let workspace = workspace();
    let plan = run(&workspace, "refactor.clido.json", "plan-7e11a0de");
    assert_eq!((plan.counts().done, plan.counts().skipped), (6, 1));
    for name in ["parser.ts", "store.ts"] {
        let edited = scratch(&workspace, &format!("plan-7e11a0de/{name}"));
        assert!(edited.contains("Entry") && !edited.contains("Item"), "{edited}");
    }
    assert!(!workspace.work().join("examples/scratch/plan-7e11a0de/views.ts").exists());
}

#[test]
fn the_frctl_tree_counts_its_leaves_and_its_groups_end_with_them() {
    let workspace = workspace();
    let plan = run(&workspace, "goals.frctl.json", "source-size");
    assert_eq!(plan.counts().done, 6, "leaves");
    assert!(plan.tasks().all(|(task, _)| task.state.status == Status::Done), "groups as well");
    let lines = |name: &str| {
        fs::read_to_string(workspace.work().join("examples/fixture").join(name)).unwrap().lines().count()
    };
    let sum = lines("parser.ts") + lines("store.ts");
    assert_eq!(scratch(&workspace, "source-size/size.txt"), format!("{sum} lines\n"));
}

#[test]
fn the_jaato_plan_hands_outputs_from_step_to_step() {
    let workspace = workspace();
    run(&workspace, "team.jaato.json", "plan_team");
    let lines = |name: &str| scratch(&workspace, &format!("plan_team/{name}")).lines().count();
    let sum = lines("parser.ts") + lines("views.ts");
    assert_eq!(scratch(&workspace, "plan_team/report.txt"), format!("{sum} lines\n"));
    assert!(!scratch(&workspace, "plan_team/views.ts").contains("Item"));
}

#[test]
fn a_sentence_that_the_hands_do_not_know_or_that_leads_elsewhere_fails_and_does_nothing() {
    let workspace = workspace();
    let sentences =
        ["Delete everything", "Fetch ../../.waypost/config.toml", "Rename Item to x;id in parser.ts"];
    for (number, sentence) in sentences.iter().enumerate() {
        let id = format!("odd{number}");
        assert!(workspace.waypost(&["new", "Odd", "--id", &id, "--task", sentence]).status.success());
        let output = workspace.waypost(&["run", &id]);
        assert_eq!(output.status.code(), Some(1), "{:?}", text(&output));
        let left = fs::read_dir(workspace.work().join("examples/scratch").join(&id));
        assert_eq!(left.map_or(0, Iterator::count), 0, "{sentence}");
    }
}

/// Parts of the release.
const PARTS: usize = 38;

/// The release plan: every part is compiled upon parts of the tier before it, tested, documented, packaged and signed;
/// then everything is bundled, listed, announced, tagged and published.
fn release() -> String {
    let mut tasks: Vec<String> = Vec::new();
    let mut task =
        |id: &str, what: &str, after: &[String], inputs: serde_json::Value, more: serde_json::Value| {
            let mut task = serde_json::json!({ "id": id, "description": what, "depends_on": after });
            let fields = task.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            let work =
                serde_json::json!({ "executor": "release", "shape": "release-step", "inputs": inputs });
            fields.insert("work".to_owned(), work);
            tasks.push(task.to_string());
        };
    let lock = |key: &str, mode: &str| serde_json::json!([{ "key": key, "mode": mode }]);
    let (none, part_name) = (serde_json::json!({}), |number: usize| format!("p{number:02}"));
    let exclusive = serde_json::json!({ "locks": ["VERSION"], "priority": 20 });
    task("version", "Choose the version", &[], serde_json::json!({ "do": "version" }), exclusive);
    for number in 0..PARTS {
        let part = part_name(number);
        // Tiers of ten: two parts of the tier before.
        let from: Vec<String> = if number < 10 {
            Vec::new()
        } else {
            let before = number / 10 * 10 - 10;
            vec![part_name(before + number % 10), part_name(before + (number * 3 + 1) % 10)]
        };
        let mut after: Vec<String> = from.iter().map(|other| format!("compile-{other}")).collect();
        after.push("version".to_owned());
        let step = |step: &str| serde_json::json!({ "do": step, "part": part });
        let upon = |step: &str| serde_json::json!({ "do": step, "part": part, "from": from });
        let steps = |names: &[&str]| names.iter().map(|name| format!("{name}-{part}")).collect::<Vec<_>>();
        let shared = serde_json::json!({ "locks": lock("VERSION", "shared"), "priority": 10 });
        task(&format!("compile-{part}"), &format!("Compile {part}"), &after, upon("compile"), shared);
        task(
            &format!("test-{part}"),
            &format!("Test {part}"),
            &steps(&["compile"]),
            upon("test"),
            none.clone(),
        );
        let late = serde_json::json!({ "priority": -5 });
        let version = ["version".to_owned()];
        task(&format!("document-{part}"), &format!("Document {part}"), &version, step("document"), late);
        let ready = steps(&["test", "document"]);
        task(&format!("package-{part}"), &format!("Package {part}"), &ready, step("package"), none.clone());
        let key = serde_json::json!({ "locks": ["signing-key"] });
        task(&format!("sign-{part}"), &format!("Sign {part}"), &steps(&["package"]), step("sign"), key);
    }
    let signed: Vec<String> = (0..PARTS).map(|number| format!("sign-{}", part_name(number))).collect();
    for system in ["linux", "mac", "windows", "source"] {
        let inputs = serde_json::json!({ "do": "bundle", "part": system });
        task(&format!("bundle-{system}"), &format!("Bundle for {system}"), &signed, inputs, none.clone());
    }
    let bundles = ["linux", "mac", "windows", "source"].map(|system| format!("bundle-{system}"));
    let list = |name: &str| vec![name.to_owned()];
    let step = |step: &str| serde_json::json!({ "do": step });
    task("manifest", "List every package", &bundles, step("manifest"), none.clone());
    task("announce", "Write the announcement", &list("manifest"), step("announce"), none.clone());
    task("tag", "Tag the release", &list("manifest"), step("tag"), none.clone());
    let patient = serde_json::json!({
        "retry": { "attempts": 3, "backoff_seconds": 1 }, "timeout_seconds": 30,
        "check": { "executor": "release", "shape": "release-step", "inputs": { "do": "verify" } },
    });
    let last = ["announce".to_owned(), "tag".to_owned()];
    task("publish", "Publish, and check what was published", &last, step("publish"), patient);
    let close = serde_json::json!({ "do": "announce" });
    task("close", "Announce it once more, now that it is there", &list("publish"), close, none);
    let tasks: Vec<String> = tasks.iter().map(|task| format!("    {task}")).collect();
    format!(
        "{{\n  \"format\": \"waypost/1\",\n  \"id\": \"release-2\",\n  \"title\": \"Release 2.0.0 of {PARTS} parts\",\n  \"tasks\": [\n{}\n  ]\n}}\n",
        tasks.join(",\n")
    )
}

#[test]
fn the_release_plan_is_fresh_and_releases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/release.json");
    let made = release();
    if std::env::var_os("WAYPOST_UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), made, "WAYPOST_UPDATE=1 writes it anew");
    let workspace = workspace();
    let plan = run(&workspace, "release.json", "release-2");
    assert_eq!((plan.len(), plan.counts().done), (200, 200));
    assert_eq!(plan.task("publish").unwrap().state.attempt, 2, "the mirror was busy once");
    let read = |name: &str| scratch(&workspace, &format!("release/{name}"));
    assert_eq!(read("MANIFEST").lines().count(), PARTS);
    assert_eq!(read("ANNOUNCEMENT"), format!("Release 2.0.0 has {PARTS} packages.\n"));
    assert!(read("PUBLISHED").ends_with("v2.0.0\n"));
    assert_eq!(read("build/p37.o").lines().count(), 3, "compiled upon two others");
}

#[test]
fn the_demo_runs_for_every_caller_and_leaves_nothing() {
    for (variable, value) in [("LC_ALL", "C.UTF-8"), ("CLAUDECODE", "1"), ("WAYPOST_ACTOR", "worker:p")] {
        let workspace = Workspace::new();
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        if value == "worker:p" {
            command.env("WAYPOST_PLAN", "p").env("WAYPOST_TASK", "t").env("WAYPOST_ATTEMPT", "1");
        }
        let output = command.env(variable, value).arg("demo").output().unwrap();
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(0), "{variable}: {out}{err}");
        assert!(out.contains("plan demo is completed"), "{variable}: {out}{err}");
        assert_eq!(std::fs::read_dir(workspace.root.join("tmp")).unwrap().count(), 0, "{variable}");
        assert!(!workspace.work().join(".waypost").exists(), "{variable}");
    }
}
