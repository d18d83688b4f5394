//! How this program was started: by its name, or by a package runner that keeps it in its cache, and with which folder and store.
//! The commands that are printed start with the runner, because `waypost` alone is not found, and name the same folder and
//! store, because they would find other plans without. Starts nothing.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use waypost_text::shell_word;

/// The name of this program on PATH.
pub const NAME: &str = "waypost";
/// Runners that need nothing of ours installed, with what they need in front of our own arguments.
pub const RUNNERS: [(&str, &[&str]); 2] = [("npx", &["-y", NAME]), ("uvx", &[NAME])];

/// The runner that keeps the program at this path in its cache, if one does.
pub fn runner_of(program: &Path) -> Option<&'static str> {
    let folders: Vec<_> = program.iter().filter_map(|part| part.to_str()).collect();
    let is_in_uv = |pair: &[&str]| pair[0] == "uv" && pair[1].starts_with("archive-v");
    if folders.contains(&"_npx") {
        Some("npx")
    } else if folders.windows(2).any(is_in_uv) {
        Some("uvx")
    } else {
        None
    }
}

/// Commands that do the same in every folder and for every store.
const PLACELESS: [&str; 3] = ["demo", "help", "schema"];

/// The options that every printed command gets, with a space before them.
static PLACE: OnceLock<String> = OnceLock::new();

/// Adds these options, which say where this program works, to all commands that are printed from now on.
pub fn keep_place(options: &[String]) {
    let words = options.iter().map(|option| format!(" {}", shell_word(option)));
    // A process has one command line, so that nobody says anything else later.
    let _said = PLACE.set(words.collect());
}

/// The configuration that the command line names, as an option with a space before it.
static CONFIG: OnceLock<String> = OnceLock::new();
/// Which commands take it.
static TAKES_CONFIG: OnceLock<fn(&str) -> bool> = OnceLock::new();

/// Adds the configuration that the command line names to the commands that take one and are printed from now on.
pub fn keep_config(path: Option<&PathBuf>, takes_config: fn(&str) -> bool) {
    let Some(path) = path else { return };
    let option = format!(" --config {}", shell_word(&path.display().to_string()));
    let _said = CONFIG.set(option).is_ok() && TAKES_CONFIG.set(takes_config).is_ok();
}

/// The actor that the command line names, as an option with a space before it.
static ACTOR: OnceLock<String> = OnceLock::new();
/// What whoever is told of it does next, and nobody else.
const OF_CALLER: [&str; 7] = ["ask", "done", "fail", "next", "progress", "release", "skip"];

/// Adds the actor that the command line names to the commands that this actor is told to go on with.
pub fn keep_actor(name: Option<&str>) {
    let Some(name) = name else { return };
    let _said = ACTOR.set(format!(" --as {}", shell_word(name)));
}

/// Returns a text whose commands (`waypost …` in backquotes) can be typed where this program was started.
pub fn typeable(text: &str) -> Cow<'_, str> {
    let mut parts = text.split("`waypost ");
    let mut typeable = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        let typeable = typeable.to_mut();
        typeable.push('`');
        typeable.push_str(&completed(part));
    }
    typeable
}

/// Returns a command of this program (`waypost …`) as it can be typed where this program was started.
pub fn command(line: &str) -> Cow<'_, str> {
    match line.strip_prefix(NAME) {
        Some(rest) => Cow::Owned(completed(rest.trim_start())),
        None => Cow::Borrowed(line),
    }
}

/// The command with these arguments, which may be followed by other words.
fn completed(arguments: &str) -> String {
    let end = arguments.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(arguments.len());
    let (verb, rest) = arguments.split_at(end);
    // A command that begins with an option says itself where it works.
    let has_place = verb.starts_with('-') || PLACELESS.contains(&verb);
    let place = PLACE.get().filter(|_| !has_place).map_or("", String::as_str);
    let takes_config = || !has_place && TAKES_CONFIG.get().is_some_and(|takes_config| takes_config(verb));
    let config = CONFIG.get().filter(|_| takes_config()).map_or("", String::as_str);
    let actor = ACTOR.get().filter(|_| OF_CALLER.contains(&verb)).map_or("", String::as_str);
    let start = started_by().unwrap_or(NAME);
    let space = if verb.is_empty() { "" } else { " " };
    format!("{start}{place}{actor}{space}{verb}{config}{rest}")
}

/// The command that does something with a task, for a shell: ids of tasks are text of the plan. Arguments behind the task and options
/// are given with a space before them.
pub fn on_task(verb: &str, plan: impl Display, task: impl Display, arguments: &str, options: &str) -> String {
    let task = task.to_string();
    let word = shell_word(&task);
    // Whatever is behind `--` is no option.
    match task.starts_with('-') {
        true => format!("{NAME} {verb} {plan}{options} -- {word}{arguments}"),
        false => format!("{NAME} {verb} {plan} {word}{arguments}{options}"),
    }
}

/// What starts this program again, unless that is its name.
fn started_by() -> Option<&'static str> {
    static WORDS: OnceLock<Option<String>> = OnceLock::new();
    let words = || {
        let program = std::env::current_exe().ok()?;
        words_for(&program, &std::env::var_os("PATH").unwrap_or_default())
    };
    WORDS.get_or_init(words).as_deref()
}

/// Returns the words that start this program from a shell elsewhere: its name if that is on PATH, its runner, or its path.
pub fn start_words() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::current_exe().map_or_else(|_| NAME.to_owned(), |program| start_words_for(&program, &path))
}

fn start_words_for(program: &Path, path: &OsStr) -> String {
    match words_for(program, path) {
        Some(words) => words,
        None if is_installed(path) => NAME.to_owned(),
        None => shell_word(&program.display().to_string()).into_owned(),
    }
}

/// Whether the name of this program is on PATH. While it runs, a runner has its own cache there.
fn is_installed(path: &OsStr) -> bool {
    let is_there = |folder: &Path| runner_of(folder).is_none() && folder.join(NAME).is_file();
    std::env::split_paths(path).any(|folder| is_there(&folder))
}

fn words_for(program: &Path, path: &OsStr) -> Option<String> {
    let runner = runner_of(program)?;
    if is_installed(path) {
        return None;
    }
    let (_, arguments) = RUNNERS.into_iter().find(|(name, _)| *name == runner)?;
    Some(std::iter::once(runner).chain(arguments.iter().copied()).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NPX: &str = "/home/ada/.npm/_npx/0a1b/node_modules/@waypost/linux-x64/bin/waypost";
    const UVX: &str = "/home/ada/.cache/uv/archive-v0/x7/bin/waypost";

    #[test]
    fn a_program_in_the_cache_of_a_runner_is_started_by_that_runner() {
        let check = |program: &str, expected| assert_eq!(runner_of(Path::new(program)), expected);
        check(NPX, Some("npx"));
        check(UVX, Some("uvx"));
        check("/home/ada/.local/share/uv/tools/waypost/bin/waypost", None);
        check("/usr/lib/node_modules/@waypost/linux-x64/bin/waypost", None);
        check("/usr/bin/waypost", None);
    }

    #[test]
    fn what_is_not_on_path_is_started_by_its_path() {
        let check = |program: &str, expected: &str| {
            assert_eq!(start_words_for(Path::new(program), OsStr::new("/nowhere")), expected);
        };
        check("/opt/way post/waypost", "'/opt/way post/waypost'");
        check(NPX, "npx -y waypost");
    }

    #[test]
    fn a_shell_reads_any_id_of_a_task_as_one_word() {
        let check = |task: &str, expected: &str| {
            assert_eq!(on_task("done", "p", task, "", " --attempt 1"), expected);
        };
        check("t1", "waypost done p t1 --attempt 1");
        check("auth/keys.2", "waypost done p auth/keys.2 --attempt 1");
        check("a b", "waypost done p 'a b' --attempt 1");
        check("$(touch x)", "waypost done p '$(touch x)' --attempt 1");
        check("it's;x", r"waypost done p 'it'\''s;x' --attempt 1");
        check("-x", "waypost done p --attempt 1 -- -x");
        check("-`id`", "waypost done p --attempt 1 -- '-`id`'");
        assert_eq!(on_task("answer", "p", "-x", " yes", " --sign"), "waypost answer p --sign -- -x yes");
    }

    #[test]
    fn commands_start_with_the_runner_unless_the_name_is_on_path() {
        let check = |program: &str, path: &str, expected: Option<&str>| {
            assert_eq!(words_for(Path::new(program), OsStr::new(path)).as_deref(), expected, "{path}");
        };
        check(NPX, "/nowhere", Some("npx -y waypost"));
        check(UVX, "", Some("uvx waypost"));
        check("/usr/bin/waypost", "/nowhere", None);
        let folder = std::env::temp_dir().join(format!("waypost-runner-{}", std::process::id()));
        let (installed, cached) = (folder.join("bin"), folder.join("_npx/0a1b/node_modules/.bin"));
        for place in [&installed, &cached] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join(NAME), "").unwrap();
        }
        let path =
            |folders: &[&std::path::PathBuf]| std::env::join_paths(folders).unwrap().into_string().unwrap();
        check(NPX, &path(&[&cached]), Some("npx -y waypost"));
        check(NPX, &path(&[&cached, &installed]), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
