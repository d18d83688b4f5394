//! `waypost init --git-hooks`: a `prepare-commit-msg` hook that names the claimed task in each commit. A hook that is there already
//! runs first, and alone decides whether the commit is made.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use waypost_core::ActorKind;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::prompt;
use waypost_cli::repository;
use waypost_cli::runner;

const NAME: &str = "prepare-commit-msg";
/// The name of a hook that was there before, beside ours.
const EARLIER: &str = "prepare-commit-msg.before-waypost";
/// The beginning of our hook. `waypost` that is gone, fails or hangs changes no commit.
const HOOK_BEGIN: &str = "#!/bin/sh\n\
# Written by `waypost init --git-hooks`. Names the task that this session has claimed in a Waypost-Task trailer.\n\
earlier=\"$0.before-waypost\"\n\
if [ -x \"$earlier\" ]; then \"$earlier\" \"$@\" || exit; fi\n";
const EXECUTABLE: u32 = 0o755;

/// What the hook runs. Git starts it where the name of this program may not be found.
fn call() -> String {
    format!("{} commit-trailer \"$@\" </dev/null >/dev/null 2>&1", runner::start_words())
}

/// Our hook.
fn hook() -> String {
    format!("{HOOK_BEGIN}{}\nexit 0\n", call())
}

/// The line for hooks that another program manages.
fn line() -> String {
    format!("{} || true", call())
}

/// Writes the hook, or prints it.
pub(super) fn install(context: &mut Context, only_print: bool, says_yes: bool) -> Outcome {
    let folders = context.folders()?;
    let Some(repository) = repository::around(&folders.workspace) else {
        let message = format!("{} is not in a git repository", folders.workspace.display());
        return Err(Failure::failed(message, "run `git init`, or change to a folder of a repository"));
    };
    if let Some(elsewhere) =
        repository.hooks_path().map_err(|error| Failure::failed(error.to_string(), error.hint()))?
    {
        let message = format!("core.hooksPath is {elsewhere}, so another program manages the hooks here");
        return Err(Failure::failed(message, format!("add this line to its {NAME} hook: {}", line())));
    }
    let hook = hook();
    let folder = repository.common_folder().join("hooks");
    let path = folder.join(NAME);
    let old = fs::read(&path).ok();
    let result = match old.as_deref() {
        Some(old) if old == hook.as_bytes() => "unchanged",
        Some(_) if is_chained(&folder, old.as_deref()) => "changed",
        Some(_) => "chained",
        None => "created",
    };
    if result == "chained" && !only_print {
        check_consent(context, &path, says_yes)?;
    }
    if result != "unchanged" && !only_print {
        write(&folder, &path, &hook, result == "chained").map_err(|error| Failure::file(&path, &error))?;
    }
    if context.out.json {
        let shown = only_print.then_some(&hook);
        return context
            .out
            .value(&json!({ "hook": path, "result": result, "written": !only_print, "text": shown }));
    }
    if only_print {
        context.out.text(&hook);
        return Ok(());
    }
    context.out.line(format!("{}: {result}", path.display()));
    if result == "chained" {
        context.out.say(format!("the hook that was there runs first, as {EARLIER}"));
    }
    Ok(())
}

/// Whether our hook of another version is there, with the earlier one beside it or alone.
fn is_chained(folder: &Path, old: Option<&[u8]>) -> bool {
    let is_ours = old.is_some_and(|old| String::from_utf8_lossy(old).contains("waypost init --git-hooks"));
    is_ours || folder.join(EARLIER).symlink_metadata().is_ok()
}

/// A hook of somebody else is moved only when a person says so.
fn check_consent(context: &Context, path: &Path, says_yes: bool) -> Outcome {
    let what = format!("{} is there already", path.display());
    if context.actor()?.kind != ActorKind::Person {
        return Err(Failure::failed(
            what,
            "a person runs `waypost init --git-hooks`, which keeps it and runs it first",
        ));
    }
    if says_yes {
        return Ok(());
    }
    if !prompt::can_ask() || context.out.json {
        return Err(Failure::failed(what, "with --yes it is kept as it is, and runs first"));
    }
    match prompt::confirm(&format!("keep {} and run it before ours? [y/N]", path.display()))? {
        true => Ok(()),
        false => {
            Err(Failure::failed("nothing was changed", format!("add this line to it yourself: {}", line())))
        }
    }
}

/// Writes our hook in one step. The earlier one is copied first, so that it runs at any time.
fn write(folder: &Path, path: &Path, hook: &str, keeps_earlier: bool) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    if keeps_earlier {
        // What a link leads to is changed there, and not here.
        match fs::read_link(path) {
            Ok(to) => symlink(to, folder.join(EARLIER))?,
            Err(_) => drop(fs::copy(path, folder.join(EARLIER))?),
        }
    }
    let new: PathBuf = folder.join(".prepare-commit-msg.waypost-new");
    fs::write(&new, hook)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(EXECUTABLE))?;
    fs::rename(&new, path)
}
