//! How this program was started: by its name, or by a package runner that keeps it in its cache, and with which folder and store.
//! The commands that are printed start with the runner, because `waypost` alone is not found, and name the same folder and
//! store, because they would find other plans without. Starts nothing.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;
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

/// Returns a text whose commands (`waypost …` in backquotes) can be typed where this program was started.
pub fn typeable(text: &str) -> Cow<'_, str> {
    let mut parts = text.split("`waypost ");
    let mut typeable = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        let typeable = typeable.to_mut();
        typeable.push('`');
        typeable.push_str(&start_of(part));
        typeable.push(' ');
        typeable.push_str(part);
    }
    typeable
}

/// Returns a command of this program (`waypost …`) as it can be typed where this program was started.
pub fn command(line: &str) -> Cow<'_, str> {
    match line.strip_prefix(NAME) {
        Some(rest) => Cow::Owned(format!("{}{rest}", start_of(rest.trim_start()))),
        None => Cow::Borrowed(line),
    }
}

/// What a command with these arguments begins with.
fn start_of(arguments: &str) -> String {
    let verb = arguments.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
    // A command that begins with an option says itself where it works.
    let has_place = verb.starts_with('-') || PLACELESS.contains(&verb);
    let place = PLACE.get().filter(|_| !has_place).map_or("", String::as_str);
    format!("{}{place}", started_by().unwrap_or(NAME))
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

fn words_for(program: &Path, path: &OsStr) -> Option<String> {
    let runner = runner_of(program)?;
    // While it runs, a runner has its own cache on PATH.
    let is_installed = |folder: &Path| runner_of(folder).is_none() && folder.join(NAME).is_file();
    if std::env::split_paths(path).any(|folder| is_installed(&folder)) {
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
