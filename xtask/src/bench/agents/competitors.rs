//! The same work with other servers. Where one has no tool for a step, the closest documented one is used, and the
//! cheaper one if there are two.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::session::{Session, Transcript};
use super::work::{RETITLE, RETITLED, REWRITE, REWRITTEN, pieces};
use crate::npm::Packages;
use crate::python;

const BEADS: &[&str] = &["beads-mcp==1.3.2"];
const STAND_IN: &str = include_str!("bd_stand_in.py");

/// task-master with its `standard` tools, the smallest set that can create tasks by hand. Without a model key it cannot
/// change texts, so status changes replace those changes. It has no export, so its list of tasks replaces that.
pub(super) fn task_master(packages: &Packages, scratch: &Path) -> Result<Transcript> {
    let folder = scratch.join("task-master");
    std::fs::create_dir_all(&folder)?;
    let mut command = packages.run("task-master-mcp");
    // It refuses to work in a home directory.
    command.current_dir(&folder).env("HOME", scratch).env("TASK_MASTER_TOOLS", "standard");
    let mut session = Session::start(&mut command, &scratch.join("task-master.log"))?;
    session.list()?;
    let root = folder.display().to_string();
    let mut call = |tool: &str, mut arguments: Value| {
        arguments["projectRoot"] = Value::from(root.as_str());
        session.call(tool, &arguments)
    };
    let flags = json!({ "skipInstall": true, "addAliases": false, "initGit": false, "storeTasksInGit": false, "yes": true });
    call("initialize_project", flags)?;
    for piece in pieces() {
        let after: Vec<String> = piece.after.iter().map(|place| (place + 1).to_string()).collect();
        let mut arguments = json!({ "title": piece.title, "description": piece.description });
        if !after.is_empty() {
            arguments["dependencies"] = Value::from(after.join(","));
        }
        call("add_task", arguments)?;
    }
    call("next_task", json!({}))?;
    call("set_task_status", json!({ "id": "1", "status": "in-progress" }))?;
    call("set_task_status", json!({ "id": "1", "status": "done" }))?;
    call("next_task", json!({}))?;
    call("get_tasks", json!({}))?;
    let ids =
        |places: &[usize]| places.iter().map(|place| (place + 1).to_string()).collect::<Vec<_>>().join(",");
    call("set_task_status", json!({ "id": ids(&RETITLED), "status": "deferred" }))?;
    call("get_tasks", json!({}))?;
    call("set_task_status", json!({ "id": ids(&REWRITTEN), "status": "review" }))?;
    Ok(std::mem::take(&mut session.transcript))
}

/// beads. It has no export, so the tasks to rewrite are read one by one.
pub(super) fn beads(scratch: &Path) -> Result<Transcript> {
    let python = python::with_packages("beads", BEADS)?;
    let folder = scratch.join("beads");
    std::fs::create_dir_all(folder.join(".beads"))?;
    // These files mark a folder as one of its projects.
    std::fs::write(folder.join(".beads/metadata.json"), "{}")?;
    std::fs::write(folder.join(".beads/beads.db"), "")?;
    let bd = folder.join("bd");
    std::fs::write(&bd, format!("#!{}\n{STAND_IN}", python.display()))?;
    std::fs::set_permissions(&bd, std::fs::Permissions::from_mode(0o755))?;
    let server = python.with_file_name("beads-mcp");
    let mut command = Command::new(server);
    command.current_dir(&folder).env("HOME", &folder).env("BEADS_PATH", &bd).env("BEADS_ACTOR", "bench");
    // It works on the enclosing repository, and this folder is inside ours.
    command.env("GIT_CEILING_DIRECTORIES", scratch);
    let mut session = Session::start(&mut command, &scratch.join("beads.log"))?;
    session.list()?;
    session.call("context", &json!({ "workspace_root": folder }))?;
    let mut ids: Vec<String> = Vec::new();
    for piece in pieces() {
        let after: Vec<&str> = piece.after.iter().map(|&place| ids[place].as_str()).collect();
        let mut arguments = json!({ "title": piece.title, "description": piece.description });
        if !after.is_empty() {
            arguments["deps"] = json!(after);
        }
        let made = session.call("create", &arguments)?;
        let id =
            made["structuredContent"]["id"].as_str().or(made["structuredContent"]["result"]["id"].as_str());
        ids.push(id.with_context(|| format!("create returned no id: {made}"))?.to_owned());
    }
    let first = json!({ "limit": 1 });
    session.call("ready", &first)?;
    session.call("claim", &json!({ "issue_id": ids[0] }))?;
    session.call("show", &json!({ "issue_id": ids[0] }))?;
    session.call("close", &json!({ "issue_id": ids[0] }))?;
    let ready = session.call("ready", &first)?;
    if !ready.to_string().contains(&ids[1]) {
        bail!("the second issue should be ready: {ready}");
    }
    session.call("claim", &json!({ "issue_id": ids[1] }))?;
    session.call("show", &json!({ "issue_id": ids[1] }))?;
    session.call("stats", &json!({}))?;
    let pieces = pieces();
    for place in RETITLED {
        let title = format!("{RETITLE}{}", pieces[place].title);
        session.call("update", &json!({ "issue_id": ids[place], "title": title }))?;
    }
    for place in REWRITTEN {
        session.call("show", &json!({ "issue_id": ids[place] }))?;
        session.call("update", &json!({ "issue_id": ids[place], "description": REWRITE }))?;
    }
    Ok(std::mem::take(&mut session.transcript))
}
