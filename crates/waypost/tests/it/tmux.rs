//! A terminal of one's own for a test: a private tmux server whose keys are pressed and whose screen is read. Every wait
//! has a bound, and what stood on the screen is told when it runs out.

use std::process::Command;
use std::time::{Duration, Instant};

use waypost_store::watch_file;

use crate::transcript::Workspace;

/// How long a text may take to appear, on a slow machine with a build for tests.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often a server is started before the test gives up.
const STARTS_MAX: usize = 3;
/// Between two looks at the screen.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// One pane of a private server.
pub(crate) struct Tmux<'a> {
    workspace: &'a Workspace,
}

impl<'a> Tmux<'a> {
    /// A shell in the workspace, so many columns and rows large. The prompt is `$ `.
    pub(crate) fn new(workspace: &'a Workspace, columns: u16, rows: u16) -> Self {
        let tmux = Self { workspace };
        std::fs::write(
            workspace.root.join("tmux.conf"),
            "set -g status off\nset -s escape-time 0\nset -g default-terminal tmux-256color\n",
        )
        .unwrap();
        let size = [columns.to_string(), rows.to_string()];
        let start = || {
            let words = ["new-session", "-d", "-x", &size[0], "-y", &size[1], "env PS1='$ ' ENV= sh -i"];
            tmux.command().args(words).output().unwrap()
        };
        // On a busy machine the client of tmux may give up before its server answers.
        let mut started = start();
        for _ in 1..STARTS_MAX {
            if !started.status.success() {
                let _not_there = tmux.command().arg("kill-server").output();
                started = start();
            }
        }
        assert!(started.status.success(), "tmux: {}", String::from_utf8_lossy(&started.stderr));
        tmux.wait("$");
        tmux
    }

    fn command(&self) -> Command {
        let mut command = self.workspace.command("tmux");
        // This one is real.
        command.env_remove("WAYPOST_INJECTED_TERMINAL");
        command.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("TERM", "xterm-256color");
        command
            .arg("-S")
            .arg(self.workspace.root.join("tmux"))
            .arg("-f")
            .arg(self.workspace.root.join("tmux.conf"));
        command
    }

    /// Runs a command of tmux and returns what it prints.
    #[track_caller]
    pub(crate) fn tmux(&self, words: &[&str]) -> String {
        let output = self.command().args(words).output().unwrap();
        assert!(output.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, by tmux's names for them.
    #[track_caller]
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a text as it is.
    #[track_caller]
    pub(crate) fn type_in(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Types a line of the shell.
    #[track_caller]
    pub(crate) fn line(&self, line: &str) {
        self.type_in(line);
        self.press(&["Enter"]);
    }

    /// What stands on the screen.
    #[track_caller]
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with its colours.
    #[track_caller]
    pub(crate) fn screen_with_colours(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Makes the pane another size.
    #[track_caller]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// A value that tmux knows of the pane, such as `pane_current_command`.
    #[track_caller]
    pub(crate) fn value(&self, name: &str) -> String {
        self.tmux(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned()
    }

    /// Waits until a text stands on the screen, and returns the screen.
    #[track_caller]
    pub(crate) fn wait(&self, text: &str) -> String {
        self.wait_until(&format!("{text:?} appears"), |screen| screen.contains(text))
    }

    /// Waits until a text is gone from the screen, and returns the screen.
    #[track_caller]
    pub(crate) fn wait_gone(&self, text: &str) -> String {
        self.wait_until(&format!("{text:?} goes away"), |screen| !screen.contains(text))
    }

    /// Waits until the screen is as `is_so` wants it.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        // Nothing ever happens to this file: waiting for it lets time pass.
        let mut pause = watch_file(&self.workspace.root.join("never"));
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < WAIT_MAX, "waited {WAIT_MAX:?} until {what}; the screen is:\n{screen}");
            pause.wait(LOOK_INTERVAL).unwrap();
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _gone = self.command().arg("kill-server").output();
    }
}
