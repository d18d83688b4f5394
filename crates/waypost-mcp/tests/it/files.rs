//! The files that tools read and write: plans by their names, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use waypost_mcp::Toolset;
use waypost_testkit::SeededRng;

use crate::session::{Session, World};

fn begin(world: &World, agent: &str) -> Session {
    let session = world.session(Toolset::Native, agent);
    session.call("plan_create", json!({ "title": "T", "tasks": ["a"] }));
    session
}

#[test]
fn an_export_creates_plans_and_replaces_only_its_own() {
    let world = World::new();
    let session = begin(&world, "main");
    let export = |file: &str, overwrite: bool| {
        session.ask("plan_export", json!({ "file": file, "overwrite": overwrite }))
    };
    let file = world.folder().join("release-plan.md");
    assert!(!export("release-plan.md", false).is_error);
    fs::write(&file, "edited").unwrap();
    assert!(export("release-plan.md", false).is_error);
    assert!(!export("release-plan.md", true).is_error);
    assert!(fs::read_to_string(&file).unwrap().contains("T"));

    fs::write(world.folder().join("old-plan.md"), "a person's").unwrap();
    for overwrite in [false, true] {
        let told = export("old-plan.md", overwrite);
        assert!(told.is_error && told.text.contains("nothing was written"), "{}", told.text);
    }
    assert_eq!(fs::read_to_string(world.folder().join("old-plan.md")).unwrap(), "a person's");
    let said = session.refused("plan_export", json!({ "file": "old-plan.md", "overwrite": true }));
    assert!(said.contains("was not written by a tool"), "{said}");
    assert!(said.contains("name it .waypost/files/old-plan.md"), "{said}");
}

#[test]
fn frctls_index_beside_an_exported_plan_is_kept_where_tools_may_write_it() {
    let world = World::new();
    let session = begin(&world, "main");
    let scratch = world.folder().join(".waypost/files");
    fs::create_dir_all(&scratch).unwrap();
    let index = r#"{"plans":[{"id":"old","title":"Old"}],"last_updated":"2026-01-01T00:00:00Z"}"#;
    fs::write(scratch.join("index.json"), index).unwrap();
    let export = |file: &str| session.call("plan_export", json!({ "file": file, "format": "frctl" }));
    let told = export(".waypost/files/release.json");
    let plan = told.value["plan"].as_str().unwrap();
    let kept: Value = serde_json::from_str(&fs::read_to_string(scratch.join("index.json")).unwrap()).unwrap();
    let ids: Vec<&str> =
        kept["plans"].as_array().unwrap().iter().map(|plan| plan["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["old", plan], "{kept}");
    assert_eq!(told.value.get("notes"), None);
    // A person's index is not a tool's to write: the reply says so.
    fs::write(world.folder().join("index.json"), index).unwrap();
    let told = export("release-plan.json");
    assert_eq!(fs::read_to_string(world.folder().join("index.json")).unwrap(), index);
    let note = "index.json does not list the plan: `waypost export` by a person updates it";
    assert_eq!(told.value["notes"], json!([note]));
    // A file that is called like an index and is none is left alone.
    fs::write(scratch.join("index.json"), "{\"a\": 1}").unwrap();
    export(".waypost/files/release2.json");
    assert_eq!(fs::read_to_string(scratch.join("index.json")).unwrap(), "{\"a\": 1}");
}

#[test]
fn a_file_that_a_tool_created_is_replaced_by_every_server_of_the_workspace() {
    let world = World::new();
    fs::create_dir(world.folder().join(".waypost")).unwrap();
    begin(&world, "main").call("plan_export", json!({ "file": "release-plan.md" }));
    let export = json!({ "file": "release-plan.md", "overwrite": true, "format": "clido" });
    let before = fs::read_to_string(world.folder().join("release-plan.md")).unwrap();
    begin(&world, "other").call("plan_export", export);
    assert_ne!(fs::read_to_string(world.folder().join("release-plan.md")).unwrap(), before);
}

#[test]
fn other_names_are_refused_with_a_name_that_is_accepted() {
    let world = World::new();
    let session = begin(&world, "main");
    for (file, accepted) in [
        ("Makefile", "Makefile-plan.md"),
        ("package.json", "package-plan.json"),
        ("compose.yaml", "compose-plan.yaml"),
        ("CLAUDE.md", "CLAUDE-plan.md"),
        (".envrc", "envrc-plan.md"),
        (".github/workflows/x.yml", "x-plan.yml"),
        ("build.rs", "build-plan.md"),
        (".zed/settings.json", "settings-plan.json"),
    ] {
        let said = session.refused("plan_export", json!({ "file": file }));
        assert!(said.contains(file) && said.ends_with(&format!("or create {accepted}")), "{said}");
        assert!(!world.folder().join(file).exists());
        session.call("plan_export", json!({ "file": accepted, "format": "native" }));
    }
}

#[test]
fn a_file_is_read_in_a_format_that_fits_its_name() {
    let world = World::new();
    let session = begin(&world, "main");
    let write = |name: &str, text: &str| fs::write(world.folder().join(name), text).unwrap();
    write("keys.json", "{\"key\": \"SECRET\"}");
    write("list.json", "- [ ] SECRET");
    write("keys.yaml", "key: SECRET");
    for file in ["keys.json", "list.json", "keys.yaml"] {
        for format in ["markdown", "checklist", "backlog", ""] {
            for tool in ["plan_create", "plan_update"] {
                let said = session.refused(tool, json!({ "file": file, "format": format }));
                assert!(said.contains(file) && !said.contains("SECRET"), "{said}");
            }
        }
    }
    let orchestrator = world.session(Toolset::Orchestrator, "main");
    let said = orchestrator.refused("run_submit", json!({ "file": "keys.json", "format": "markdown" }));
    assert!(said.starts_with("keys.json is read only as a plan in JSON"), "{said}");
    write("notes.txt", "- [ ] one");
    session.call("plan_create", json!({ "file": "notes.txt", "format": "checklist" }));
}

#[test]
fn the_configuration_opens_further_files() {
    let world = World::with_config("[files]\nwrite = [\"docs/STATUS.md\"]\n");
    fs::create_dir(world.folder().join("docs")).unwrap();
    fs::write(world.folder().join("docs/STATUS.md"), "old").unwrap();
    let session = begin(&world, "main");
    session.call("plan_export", json!({ "file": "docs/STATUS.md", "overwrite": true }));
    session.refused("plan_export", json!({ "file": "docs/OTHER.md", "overwrite": true }));
}

/// All files below a folder with their texts. Links are not followed.
fn contents(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            contents(&path, all);
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
}

/// The rule again, in other words: a plan by its name, or something in the scratch folder.
fn may_be_written(path: &Path) -> bool {
    let text = path.to_str().unwrap().to_lowercase();
    let endings = [".md", ".json", ".yaml", ".yml", ".mmd", ".dot", ".graphml", ".svg", ".txt"];
    let Some(stem) = endings.iter().find_map(|ending| text.strip_suffix(ending)) else { return false };
    if let Some(scratch) = text.strip_prefix(".waypost/files/") {
        return !scratch.starts_with('.') && !scratch.contains("/.");
    }
    let inner = text.strip_prefix(".claude/plans/").unwrap_or(&text);
    let name = stem.rsplit('/').next().unwrap();
    let words = ["plan", "todo"];
    let is_plan = words.contains(&name)
        || ["-", "_", "."]
            .iter()
            .any(|mark| words.iter().any(|word| name.ends_with(&format!("{mark}{word}"))));
    !inner.starts_with('.')
        && !inner.contains("/.")
        && (is_plan || inner.len() < text.len() && text.ends_with(".md"))
}

#[test]
fn whatever_path_is_named_only_new_plans_and_scratch_files_are_written() {
    const PIECES: [&str; 22] = [
        "plan", "todo", "Plan", "x-plan", "Makefile", "src", "link", "swap", "..", ".", "", "/", ".git",
        ".waypost", "files", ".claude", "plans", ".env", "settings", "a_todo", "\u{202e}", "config",
    ];
    const ENDINGS: [&str; 9] = ["", ".md", ".json", ".MD", ".sh", ".toml", ".yml", ".md.sh", "/"];
    let mut dice = SeededRng::new(7);
    let world = World::new();
    let folder = world.folder().to_owned();
    let outside = folder.with_extension("outside");
    for inner in [&folder.join("src"), &folder.join("swap"), &folder.join(".git"), &outside] {
        fs::create_dir_all(inner).unwrap();
    }
    for file in ["Makefile", "src/plan.md", ".git/config", ".env", "config.toml"] {
        fs::write(folder.join(file), "a person's").unwrap();
    }
    fs::write(outside.join("plan.md"), "outside").unwrap();
    symlink(&outside, folder.join("link")).unwrap();
    symlink(&outside, folder.join("other")).unwrap();
    symlink(outside.join("new-plan.md"), folder.join("x-plan.md")).unwrap();
    fs::hard_link(folder.join("config.toml"), folder.join("Plan.md")).unwrap();
    let session = begin(&world, "main");
    let mut before = BTreeMap::new();
    contents(&folder, &mut before);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Meanwhile a folder and a link that leads out change places.
        scope.spawn(|| {
            let (one, other) = (folder.join("swap"), folder.join("other"));
            while !ended.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..600 {
            let pieces: Vec<&str> = (0..=dice.below(4)).map(|_| *dice.pick(&PIECES)).collect();
            let file = format!("{}{}", pieces.join("/"), dice.pick(&ENDINGS));
            let format = *dice.pick(&["native", "markdown", "clido"]);
            session
                .ask("plan_export", json!({ "file": file, "format": format, "overwrite": dice.chance(50) }));
        }
        ended.store(true, Ordering::Relaxed);
    });
    let mut after = BTreeMap::new();
    contents(&folder, &mut after);
    for (path, text) in &before {
        assert_eq!(after.get(path), Some(text), "{}", path.display());
    }
    let new: Vec<&Path> = after
        .keys()
        .filter(|path| !before.contains_key(*path))
        .map(|path| path.strip_prefix(&folder).unwrap())
        .collect();
    assert!(new.len() > 5, "{new:?}");
    let own = [".waypost/.gitignore", ".waypost/created-files"].map(Path::new);
    for path in new.into_iter().filter(|path| !own.contains(path)) {
        assert!(may_be_written(path), "{}", path.display());
    }
    let mut beyond = BTreeMap::new();
    contents(&outside, &mut beyond);
    assert_eq!(beyond, BTreeMap::from([(outside.join("plan.md"), b"outside".to_vec())]));
    fs::remove_dir_all(outside).unwrap();
}
