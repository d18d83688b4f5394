//! The terminal UI: the cost of one key while scrolling a large plan.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_core::{Actor, Command as Order, Plan, PlanId, Timestamp};
use waypost_formats::{Dialect, Form};
use waypost_store::watch_file;
use waypost_testkit::layered;
use waypost_tui::app::{App, Screen, render, update};
use waypost_tui::editor::Editor;
use waypost_tui::keys::Keys;
use waypost_tui::messages::{Message, Reply};
use waypost_tui::plan::{LoadedPlan, PlanKey};
use waypost_tui::screen::Settings;
use waypost_tui::theme::Theme;

use super::measure::{median, timed};
use super::report::Report;
use crate::exec::binary;
use crate::exec::{DISTRIBUTED, cache_dir, output};

/// Tasks in the plan.
const TASKS: usize = 10_000;
/// Number of key presses.
const KEYS: usize = 300;
/// Maximum CPU time of one key, in milliseconds.
const BUDGET: f64 = 10.0;
/// Maximum time until the first screen is drawn.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(report: &mut Report) -> Result<()> {
    update_and_draw(report)?;
    whole(report)
}

/// Measures update and draw alone, without a terminal.
fn update_and_draw(report: &mut Report) -> Result<()> {
    let (id, now) = (PlanId::new("big")?, Timestamp::from_micros(1_800_000_000_000_000));
    let mut plan = Plan::blank(id.clone());
    let create = Order::Create { draft: layered(TASKS, 3, 1_000, 7).into(), approval_required: None };
    let events = plan.decide(&Actor::person("bench"), now, &create)?;
    plan.advance(&events, now);
    for (columns, rows) in [(80, 24), (200, 50)] {
        let settings = Settings {
            stores: vec!["repo".to_owned()],
            dry_run: false,
            keys: Keys::default(),
            theme: Theme::Colours,
        };
        let key = PlanKey { store: 0, id: id.clone() };
        let editor = Screen::Editor(Box::new(Editor::new(key.clone())));
        let (mut app, _) = App::new(settings, editor, now, (columns, rows));
        let loaded = Ok(Box::new(LoadedPlan::of(&plan)));
        update(&mut app, Message::Reply(Reply::Plan { plan: key, loaded }));
        let mut terminal = Terminal::new(TestBackend::new(columns, rows))?;
        let mut samples = Vec::new();
        for number in 0..KEYS {
            let code = if number % 3 == 0 { KeyCode::PageDown } else { KeyCode::Down };
            let (drawn, took) = timed(|| {
                update(&mut app, Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
                terminal.draw(|frame| render(&app, frame)).map(drop)
            });
            drawn?;
            samples.push(took.as_secs_f64() * 1e3);
        }
        let what = format!("tui, {TASKS} tasks, {columns}×{rows}: one key, update and draw");
        report.at_most(&what, median(samples), BUDGET, "ms");
    }
    Ok(())
}

/// Measures the whole program in a terminal of tmux.
fn whole(report: &mut Report) -> Result<()> {
    let scratch = cache_dir().join("bench-tui");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(&scratch)?;
    let file = scratch.join("plan.json");
    let draft = layered(TASKS, 3, 1_000, 7);
    std::fs::write(&file, waypost_formats::write(&draft, Dialect::Native, Form::AsRead)?.text)?;
    let store = format!("sqlite:{}", scratch.join("waypost.db").display());
    let waypost = binary(DISTRIBUTED);
    let file = file.display().to_string();
    output(Command::new(&waypost).args([
        "--store",
        &store,
        "--as",
        "person:bench",
        "import",
        "--id",
        "big",
        &file,
    ]))?;
    let line = format!("'{}' --store '{store}' --as person:bench tui big", waypost.display());
    for (columns, rows) in [(80_u16, 24_u16), (200, 50)] {
        let pane = Pane::open(&scratch, columns, rows, &line)?;
        let found = pane.scroll();
        pane.close();
        let what = format!("tui, {TASKS} tasks, {columns}×{rows}: processor time of one key, whole process");
        report.at_most(&what, found?, BUDGET, "ms");
    }
    Ok(())
}

/// A pane of a private tmux server that runs the program.
struct Pane<'a> {
    scratch: &'a Path,
    /// A socket of its own: a server that is ending still listens on that of the pane before.
    socket: String,
}

impl<'a> Pane<'a> {
    fn open(scratch: &'a Path, columns: u16, rows: u16, line: &str) -> Result<Self> {
        let pane = Self { scratch, socket: format!("tmux-{columns}") };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        pane.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, line])?;
        Ok(pane)
    }

    fn tmux(&self, words: &[&str]) -> Result<String> {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.scratch.join(&self.socket)).args(["-f", "/dev/null"]).args(words);
        output(&mut tmux)
    }

    /// Returns the CPU time of one key, in milliseconds.
    fn scroll(&self) -> Result<f64> {
        let process: u32 = self.tmux(&["display-message", "-p", "#{pane_pid}"])?.trim().parse()?;
        self.wait_for("t0")?;
        let mut before = self.at_rest(process)?;
        let begun = before;
        for number in 0..KEYS {
            let key = if number % 3 == 0 { "PageDown" } else { "Down" };
            self.tmux(&["send-keys", key])?;
            before = cpu_milliseconds(process)?.max(before);
        }
        let spent = self.at_rest(process)? - begun;
        ensure!(spent > 0.0, "the program did not react to the keys");
        Ok(spent / KEYS as f64)
    }

    fn wait_for(&self, text: &str) -> Result<()> {
        let begun = Instant::now();
        while !self.tmux(&["capture-pane", "-p"])?.contains(text) {
            if begun.elapsed() > START_TIMEOUT {
                bail!("the screen did not show {text:?} within {START_TIMEOUT:?}");
            }
            pause(self.scratch)?;
        }
        Ok(())
    }

    /// Returns the CPU time of the program once it is idle.
    fn at_rest(&self, process: u32) -> Result<f64> {
        let mut known = cpu_milliseconds(process)?;
        loop {
            for _ in 0..3 {
                pause(self.scratch)?;
            }
            let now = cpu_milliseconds(process)?;
            if now <= known {
                return Ok(now);
            }
            known = now;
        }
    }

    fn close(&self) {
        let _gone = self.tmux(&["kill-server"]);
    }
}

/// Waits a tenth of a second: the watched file never changes.
fn pause(scratch: &Path) -> Result<()> {
    watch_file(&scratch.join("never")).wait(Duration::from_millis(100))?;
    Ok(())
}

/// Returns the user and system time of a process so far.
fn cpu_milliseconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).context("stat")?.parse()?) };
    // A tick is a hundredth of a second on every Linux.
    Ok((ticks(11)? + ticks(12)?) * 10.0)
}
