//! Runs a transcript and compares: lines after `$ ` are given to a shell in a private folder with a cleared environment;
//! `| ` is what came to stdout, `! ` what came to stderr, `= N` an exit code other than 0. Other lines are comments.
//! `> ` continues a command. With `WAYPOST_UPDATE=1` the file is rewritten with what really happened.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use waypost_testkit::{injected_account, program_path};

/// A private folder that is gone at the end.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// The store of all commands, if it is not the folder's own.
    pub(crate) store: Option<String>,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-it-{}-{number}", std::process::id()));
        // Left by a process of this number that was killed.
        let _none = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("repo")).unwrap();
        fs::create_dir_all(root.join("home")).unwrap();
        fs::create_dir_all(root.join("tmp")).unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        std::os::unix::fs::symlink(fs::canonicalize(examples).unwrap(), root.join("examples")).unwrap();
        let root = fs::canonicalize(root).unwrap();
        Self { root, store: None }
    }

    /// The folder that commands start in.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("repo")
    }

    /// The program with nothing of this process's environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_waypost"));
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", format!("{}:{}", binary.parent().unwrap().display(), program_path()))
            .env("HOME", self.root.join("home"))
            .env("TMPDIR", self.root.join("tmp"))
            .env("USER", "ada")
            .envs(injected_account(&self.root.join("home")))
            .env("COLUMNS", "80")
            .env("LC_ALL", "C.UTF-8")
            .envs(self.store.iter().map(|store| ("WAYPOST_STORE", store)))
            .stdin(Stdio::null());
        command
    }

    /// Runs `waypost` with these words.
    pub(crate) fn waypost(&self, words: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_waypost")).args(words).output().unwrap()
    }

    /// Runs `waypost` with these words at a terminal where a person types `yes`.
    pub(crate) fn at_terminal(&self, words: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("WAYPOST_INJECTED_TERMINAL", "yes").args(words).output().unwrap()
    }

    /// Writes the user's own configuration.
    pub(crate) fn configure_user(&self, text: &str) {
        let folder = self.root.join("home/.config/waypost");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// Lets the person at the terminal trust the configuration as it is now. A wrong one cannot be trusted, and is reported
    /// by the commands that need it.
    pub(crate) fn trust(&self) {
        let output = self.at_terminal(&["trust"]);
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.root);
    }
}

/// Runs the transcript of this name and compares.
pub(crate) fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts").join(format!("{name}.txt"));
    let expected = fs::read_to_string(&path).unwrap();
    let workspace = Workspace::new();
    let mut actual = String::new();
    let mut lines = expected.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("| ")
            || line.starts_with("! ")
            || line.starts_with("= ")
            || line == "|"
            || line == "!"
        {
            continue;
        }
        actual.push_str(line);
        actual.push('\n');
        let Some(first) = line.strip_prefix("$ ") else { continue };
        let mut script = first.to_owned();
        while let Some(more) = lines.peek().and_then(|line| line.strip_prefix('>')) {
            actual.push_str(&format!(">{more}\n"));
            script.push('\n');
            script.push_str(more.strip_prefix(' ').unwrap_or(more));
            lines.next();
        }
        let output = workspace.command("sh").arg("-c").arg(&script).output().unwrap();
        actual.push_str(&shown(&output, &workspace.root));
    }
    if std::env::var_os("WAYPOST_UPDATE").is_some() {
        fs::write(&path, &actual).unwrap();
    } else if actual != expected {
        let first = actual.lines().zip(expected.lines()).position(|(a, b)| a != b);
        let at = first.unwrap_or_else(|| actual.lines().count().min(expected.lines().count()));
        let part =
            |text: &str| text.lines().skip(at.saturating_sub(3)).take(14).collect::<Vec<_>>().join("\n");
        panic!(
            "{name}.txt differs from line {}\n--- expected\n{}\n--- actual\n{}\n(WAYPOST_UPDATE=1 rewrites it)",
            at + 1,
            part(&expected),
            part(&actual)
        );
    }
}

fn shown(output: &Output, root: &Path) -> String {
    let mut shown = String::new();
    for (mark, bytes) in [('|', &output.stdout), ('!', &output.stderr)] {
        let text = normal(&String::from_utf8_lossy(bytes), root);
        for line in text.lines() {
            shown.push_str(format!("{mark} {line}").trim_end());
            shown.push('\n');
        }
    }
    if output.status.code() != Some(0) {
        shown.push_str(&format!(
            "= {}\n",
            output.status.code().map_or("signal".to_owned(), |code| code.to_string())
        ));
    }
    shown
}

/// The text without what differs from run to run: paths, moments, ages, microseconds, process ids.
fn normal(text: &str, root: &Path) -> String {
    let text = text.replace(&root.display().to_string(), "[ROOT]");
    let mut normal = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        normal.push_str(before);
        let length = number.find(|character: char| !is_part_of_moment(character)).unwrap_or(number.len());
        let word = number[..length].trim_end();
        let after = &number[word.len()..];
        let digits = word.chars().take_while(char::is_ascii_digit).count();
        if is_moment(word) {
            normal.push_str("[TIME]");
            rest = after;
        } else if before.ends_with("draft is kept in [ROOT]/tmp/") || is_private_name(before) {
            normal.push_str("[PID]");
            rest = &number[digits..];
        } else if number[digits..].starts_with(" bytes)") || before.ends_with("\"bytes\":") {
            // Moments are written as short as they can be, so files with them differ in length.
            normal.push_str("[BYTES]");
            rest = &number[digits..];
        } else if digits >= 16 {
            normal.push_str("[MICROS]");
            rest = &number[digits..];
        } else if digits <= 2 && is_age(before, &number[digits..]) {
            normal.push_str("now");
            rest = &number[digits + 1..];
            rest = rest.strip_prefix(" ago").unwrap_or(rest);
        } else {
            normal.push_str(&number[..digits]);
            rest = &number[digits..];
        }
    }
    normal.push_str(rest);
    normal
}

fn is_part_of_moment(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '-' | ':' | '.' | 'T' | 'Z' | ' ')
}

fn is_moment(word: &str) -> bool {
    let pattern = "dddd-dd-dd?dd:dd:dd";
    word.len() >= pattern.len()
        && word.chars().zip(pattern.chars()).all(|(found, wanted)| match wanted {
            'd' => found.is_ascii_digit(),
            '?' => matches!(found, 'T' | ' '),
            wanted => found == wanted,
        })
}

fn is_age(before: &str, after: &str) -> bool {
    let alone = before.chars().next_back().is_none_or(|character| matches!(character, ' ' | '('));
    alone && (after.starts_with("s  ") || after.starts_with("s ago"))
}

fn is_private_name(before: &str) -> bool {
    before.rsplit('/').next().is_some_and(|name| name.starts_with("waypost-") && name.ends_with('-'))
        && before.contains("[ROOT]/tmp/")
}
