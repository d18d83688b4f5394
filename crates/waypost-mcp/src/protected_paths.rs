//! Protected paths: files that no tool reads or writes, because they decide what is allowed here or what others run. An agent
//! that could change them could let a plan do what no person has allowed.

use std::fs;
use std::path::{Component, Path, PathBuf};

use waypost_config::FileRole;

use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Folders and files with these names are neither read nor written, wherever they are.
const CLOSED: [&str; 2] = [".waypost", ".git"];
/// Folders with programs that git runs: not written.
const HOOKS: [&str; 2] = [".husky", ".githooks"];
/// Folders that configure what agent hosts and editors run: not written, except for their plans.
const HOSTS: [&str; 5] = [".claude", ".codex", ".cursor", ".gemini", ".vscode"];
/// The subfolder of those plans.
const HOST_PLANS: &str = "plans";
/// Files of the same kind.
const HOST_FILES: [&str; 1] = [".mcp.json"];
/// Maximum bytes of a git file that is read.
const GIT_BYTES_MAX: u64 = 1024 * 1024;

/// The hint for a protected path.
const ELSEWHERE: &str = "name another file of the workspace";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Refuses a protected path. `names` are the path components below the workspace; `said` is the path as the caller wrote it.
pub(crate) fn refuse(
    workspace: &Workspace,
    said: &str,
    names: &[String],
    access: Access,
) -> Result<(), ToolError> {
    // Ignore case: some file systems do.
    let is_one = |name: &&String, of: &[&str]| of.iter().any(|closed| name.eq_ignore_ascii_case(closed));
    if let Some(closed) = names.iter().find(|name| is_one(name, &CLOSED)) {
        let message = format!("{said}: what is in {closed} is neither read nor written by tools");
        return Err(ToolError::new(message, ELSEWHERE));
    }
    let wanted = names.iter().fold(workspace.folder.clone(), |path, name| path.join(name));
    not_the_store(workspace, said, &wanted)?;
    not_named(workspace, said, &wanted, access)?;
    if access == Access::Write {
        not_of_a_host(said, names)?;
        not_run_by_git(workspace, said, names)?;
    }
    Ok(())
}

/// Refuses settings of agent hosts and editors: they decide which programs run.
fn not_of_a_host(said: &str, names: &[String]) -> Result<(), ToolError> {
    let is_one = |name: &String, of: &[&str]| of.iter().any(|closed| name.eq_ignore_ascii_case(closed));
    let folder = names.iter().position(|name| is_one(name, &HOSTS));
    let is_a_plan = |at: usize| {
        names.len() > at + 2 && names.get(at + 1).is_some_and(|name| name.eq_ignore_ascii_case(HOST_PLANS))
    };
    if folder.is_none_or(is_a_plan) && !names.last().is_some_and(|name| is_one(name, &HOST_FILES)) {
        return Ok(());
    }
    let message = format!("{said} cannot be written by tools: agent hosts or editors execute it");
    Err(ToolError::new(message, format!("{ELSEWHERE}; a person can change this one")))
}

/// Resolves the existing part of a path; the rest is kept as written.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if folder != path => real(folder).join(name),
        _ => path.to_owned(),
    }
}

/// Folds the case of a path, because some file systems ignore it.
fn folded(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(component),
        }
    }
    plain
}

/// Refuses files of the store, wherever it is: only commands change plans.
fn not_the_store(workspace: &Workspace, said: &str, wanted: &Path) -> Result<(), ToolError> {
    let location = workspace.plans().store().location();
    let Some(("sqlite" | "file", store)) = location.split_once(':') else { return Ok(()) };
    let (store, wanted) = (folded(&real(Path::new(store))), folded(&real(wanted)));
    // A database has files beside it whose names begin with its own.
    let beside = store
        .file_name()
        .zip(wanted.file_name())
        .is_some_and(|(store, wanted)| wanted.as_encoded_bytes().starts_with(store.as_encoded_bytes()));
    if wanted.starts_with(&store) || beside && wanted.parent() == store.parent() {
        return Err(ToolError::new(format!("{said} belongs to the store of the plans"), ELSEWHERE));
    }
    Ok(())
}

/// Refuses to write files that the configuration names, and to read its secrets.
fn not_named(workspace: &Workspace, said: &str, wanted: &Path, access: Access) -> Result<(), ToolError> {
    let wanted = [folded(wanted), folded(&real(wanted))];
    for named in workspace.config.named_files() {
        let is_closed = match named.role {
            FileRole::Secret => true,
            FileRole::Read | FileRole::Run | FileRole::EventLog => access == Access::Write,
        };
        let path = plain(&workspace.folder.join(&named.path));
        if is_closed && (wanted.contains(&folded(&path)) || wanted.contains(&folded(&real(&path)))) {
            let verb = if access == Access::Write { "written" } else { "read" };
            let message = format!("{said} is not {verb} by tools: {}", named.role.describe());
            return Err(ToolError::new(message, format!("{ELSEWHERE}; a person can change this one")));
        }
    }
    Ok(())
}

/// Refuses files that git runs or is configured by: hook folders, and the inside of git directories such as bare repositories.
fn not_run_by_git(workspace: &Workspace, said: &str, names: &[String]) -> Result<(), ToolError> {
    let refused = |why: &str| {
        let message = format!("{said} is not written by tools: {why}");
        Err(ToolError::new(message, format!("{ELSEWHERE}; a person can change this one")))
    };
    if names.iter().any(|name| HOOKS.iter().any(|hooks| name.eq_ignore_ascii_case(hooks))) {
        return refused("git runs what is there");
    }
    let mut folder = workspace.folder.clone();
    for name in names {
        if is_repository(&folder) {
            return refused("it is inside of a git repository's own folder");
        }
        folder.push(name);
    }
    let wanted = folded(&real(&folder));
    let hooks = workspace.folder.ancestors().find(|folder| folder.join(".git").exists()).and_then(hooks_of);
    match hooks {
        Some(hooks) if wanted.starts_with(folded(&real(&hooks))) => {
            refused("git runs what is there (core.hooksPath)")
        }
        _ => Ok(()),
    }
}

fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// Returns the hook folder that a repository's configuration names (`core.hooksPath`), if any.
fn hooks_of(root: &Path) -> Option<PathBuf> {
    let text = |path: &Path| -> Option<String> {
        let size = fs::metadata(path).ok()?.len();
        if size > GIT_BYTES_MAX { None } else { fs::read_to_string(path).ok() }
    };
    let git = root.join(".git");
    // In a worktree `.git` is a file that names the worktree's git directory, which in turn names the repository's.
    let own = match text(&git) {
        Some(said) => root.join(said.trim().strip_prefix("gitdir:")?.trim()),
        None => git,
    };
    let common = text(&own.join("commondir")).map_or_else(|| own.clone(), |said| own.join(said.trim()));
    let config = text(&common.join("config"))?;
    let keys = config.lines().filter_map(|line| line.split_once('='));
    let mut hooks = keys.filter(|(key, _)| key.trim().eq_ignore_ascii_case("hookspath"));
    let (_, path) = hooks.next_back()?;
    Some(root.join(path.trim().trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use waypost_config::{Config, Layer, Origin};
    use waypost_store::{MemoryStore, PlanStore};

    use super::*;

    const CONFIG: &str = r#"
        [executors.build]
        kind = "process"
        command = ["./scripts/build.sh", "ci.toml"]
        [executors.build.secrets]
        TOKEN = { file = "keys/token" }
    "#;

    struct Place(Workspace);

    impl Place {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("waypost-closed-{name}-{}", std::process::id()));
            let _old = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            let layer =
                Layer { origin: Origin::User, name: "waypost.toml".to_owned(), text: CONFIG.to_owned() };
            let config = Config::load(&[layer], []).unwrap();
            let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
            let own = folder.join(".waypost");
            Self(Workspace::new(plans, Arc::new(config), folder, own))
        }

        fn ask(&self, path: &str, access: Access) -> Option<String> {
            let names: Vec<String> = path.split('/').map(str::to_owned).collect();
            refuse(&self.0, path, &names, access).err().map(|refused| refused.message)
        }

        #[track_caller]
        fn is_closed(&self, path: &str, access: Access, why: &str) {
            let found = self.ask(path, access).unwrap_or_default();
            assert!(found.contains(why), "{path}: {found:?}");
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0.folder);
        }
    }

    #[test]
    fn what_the_configuration_names_is_not_written_and_its_secrets_are_not_read() {
        let place = Place::new("named");
        place.is_closed("scripts/build.sh", Access::Write, "runs it");
        place.is_closed("Scripts/BUILD.sh", Access::Write, "runs it");
        place.is_closed("ci.toml", Access::Write, "gives it to a program");
        place.is_closed("waypost.toml", Access::Write, "is read from it");
        place.is_closed("keys/token", Access::Write, "a secret");
        place.is_closed("keys/token", Access::Read, "not read by tools: the configuration takes a secret");
        for (path, access) in [("scripts/build.sh", Access::Read), ("plan.md", Access::Write)] {
            assert_eq!(place.ask(path, access), None);
        }
        fs::create_dir(place.0.folder.join("real")).unwrap();
        std::os::unix::fs::symlink("real", place.0.folder.join("scripts")).unwrap();
        place.is_closed("real/build.sh", Access::Write, "runs it");
    }

    #[test]
    fn what_tells_a_host_what_to_run_is_not_written_but_plans_of_it_are() {
        let place = Place::new("hosts");
        for path in
            [".mcp.json", "sub/.MCP.json", ".claude/settings.json", ".vscode/plans", "a/.Cursor/mcp.json"]
        {
            place.is_closed(path, Access::Write, "execute it");
            assert_eq!(place.ask(path, Access::Read), None);
        }
        for path in [".claude/plans/a.md", ".cursor/plans/b/c.plan.md", "mcp.json", "AGENTS.md"] {
            assert_eq!(place.ask(path, Access::Write), None);
        }
    }

    #[test]
    fn what_git_runs_is_not_written() {
        let place = Place::new("git");
        let folder = &place.0.folder;
        place.is_closed(".husky/pre-commit", Access::Write, "git runs");
        assert_eq!(place.ask("hooks/pre-commit", Access::Write), None);
        for inner in ["bare/objects", "bare/refs", "bare/hooks", "main/.git/worktrees/here"] {
            fs::create_dir_all(folder.join(inner)).unwrap();
        }
        fs::write(folder.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
        place.is_closed("bare/hooks/post-receive", Access::Write, "own folder");
        place.is_closed("notes/.git", Access::Write, "neither read nor written");
        // A worktree whose repository configures a hook folder.
        fs::write(folder.join(".git"), "gitdir: main/.git/worktrees/here\n").unwrap();
        fs::write(folder.join("main/.git/worktrees/here/commondir"), "../..\n").unwrap();
        fs::write(folder.join("main/.git/config"), "[core]\n\tbare = false\n\thooksPath = hooks\n").unwrap();
        place.is_closed("hooks/pre-commit", Access::Write, "core.hooksPath");
        assert_eq!(place.ask("plan.md", Access::Write), None);
    }
}
