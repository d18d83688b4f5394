//! Draws the run view: the progress, the tasks, and details of the selected task.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use waypost_core::{Counts, EffectiveStatus, Phase, Timestamp};
use waypost_run::Control;
use waypost_text::StatusSign;

use super::layout::parts;
use super::{Focus, Group, LocalRun, PlanSnapshot, Preview, PreviewLine, Row, RunView, is_write};
use crate::frame::{self, put};
use crate::keys::Action;
use crate::screen::{DrawContext, Settings};
use crate::text;
use crate::theme::{Theme, phase_word, sign};

const ID_COLUMNS: usize = 24;
/// Maximum number of lines of the description above a log.
const DESCRIPTION_LINES: usize = 3;
/// Maximum number of lines of the result or a question above a log.
const SAID_LINES: usize = 4;

impl RunView {
    /// The number of visible tasks. If the snapshot leaves tasks out, the last row is reserved for their number.
    pub(super) fn list_rows(&self, area: Rect) -> usize {
        let leaves_out = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.left_out > 0);
        usize::from(parts(area).list.height.saturating_sub(2 + u16::from(leaves_out))).max(1)
    }

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts_of: frame::Parts) {
        let theme = context.settings.theme;
        let (title, facts) = self.heading(context, theme);
        frame::heading(theme, frame, parts_of.heading, &title, &facts);
        let parts = parts(parts_of.body);
        self.draw_summary(context, frame, parts.summary);
        self.draw_list(context, frame, parts.list);
        self.draw_text(theme, frame, parts.text, context.now);
        frame::footer(context, frame, parts_of.footer, &self.keys(context.settings));
    }

    fn heading(&self, context: DrawContext<'_>, theme: Theme) -> (String, Vec<Span<'static>>) {
        let id = &self.plan.id;
        let Some(snapshot) = &self.snapshot else { return (format!("Run of {id}"), Vec::new()) };
        let title = if snapshot.title.is_empty() { id.to_string() } else { snapshot.title.clone() };
        let mut facts = Vec::new();
        if context.settings.dry_run {
            facts.push(Span::styled("DRY RUN ", theme.warning()));
        }
        facts.push(Span::styled(phase_word(snapshot.phase), theme.phase(snapshot.phase)));
        facts.push(Span::styled(format!("  {id} v{}", snapshot.version), theme.quiet()));
        (format!("Run: {title}"), facts)
    }

    /// The available keys, the most useful first.
    pub(crate) fn keys(&self, settings: &Settings) -> Vec<Action> {
        let mut keys = Vec::new();
        let phase = self.snapshot.as_ref().map(|snapshot| snapshot.phase);
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.needs_approval) {
            keys.extend([Action::Approve, Action::Reject]);
        }
        if self.row().is_some_and(|row| row.question.is_some()) {
            keys.push(Action::Answer);
        }
        match self.local_run {
            LocalRun::Running | LocalRun::Stopping(_) => keys.push(Action::Stop),
            LocalRun::NotRunning | LocalRun::Starting => {
                if phase.is_some_and(|phase| !phase.is_finished()) {
                    keys.push(Action::Execute);
                }
            }
        }
        match phase {
            Some(Phase::Active | Phase::Paused) => keys.extend([Action::Pause, Action::Cancel]),
            Some(Phase::Failed | Phase::Cancelled) => keys.push(Action::RetryAll),
            Some(Phase::Draft | Phase::AwaitingApproval | Phase::Completed) | None => {}
        }
        match self.row().map(|row| row.group) {
            Some(Group::Failed) => keys.push(Action::Retry),
            Some(Group::Waiting) => keys.push(Action::Hold),
            Some(Group::Asking | Group::Running | Group::Ended) | None => {}
        }
        keys.extend([Action::Focus, Action::History, Action::Back]);
        if settings.dry_run {
            keys.retain(|key| *key != Action::Stop && !is_write(*key));
        }
        keys
    }

    fn draw_summary(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, area: Rect) {
        let theme = context.settings.theme;
        let Some(snapshot) = &self.snapshot else {
            let words = match &self.error {
                Some(error) => format!("{}: {}", error.what, error.hint),
                None => "loading …".to_owned(),
            };
            return put(frame.buffer_mut(), (area.x + 1, area.y), area.width, &words, theme.quiet());
        };
        let bar_columns = usize::from(area.width / 4).clamp(10, 40);
        let bar = bar(&snapshot.counts, bar_columns);
        let room = area.width.saturating_sub(bar_columns as u16 + 3);
        put(frame.buffer_mut(), (area.x + 1, area.y), bar_columns as u16, &bar, bar_style(theme, snapshot));
        let counts = text::truncate(&counted(&snapshot.counts), usize::from(room)).into_owned();
        put(frame.buffer_mut(), (area.x + bar_columns as u16 + 2, area.y), room, &counts, theme.text());
        if area.height > 1 {
            let (words, style) = self.state_line(snapshot, context);
            let words = text::truncate(&words, usize::from(area.width.saturating_sub(2)));
            put(frame.buffer_mut(), (area.x + 1, area.y + 1), area.width, &words, style);
        }
    }

    /// Where the plan runs, for how long and how fast, or why it does not run.
    fn state_line(&self, snapshot: &PlanSnapshot, context: DrawContext<'_>) -> (String, Style) {
        let theme = context.settings.theme;
        let key = |action: Action| {
            let place = crate::keys::Place::Run;
            context.settings.keys.hint(place, action).map(|(key, _)| key).unwrap_or_default()
        };
        let plain = |words: &str| (words.to_owned(), theme.text());
        let (first, style) = match (snapshot.phase, self.local_run) {
            _ if snapshot.needs_approval => {
                let (yes, no) = (key(Action::Approve), key(Action::Reject));
                let words = match (&snapshot.refused, &snapshot.rejected) {
                    (Some(refused), _) => refused.clone(),
                    (None, Some(reason)) => format!("rejected: {reason}  ·  {yes} approves it anyway"),
                    (None, None) if context.settings.dry_run => "waiting for approval".to_owned(),
                    (None, None) => format!("waiting for approval: {yes} approves, {no} rejects"),
                };
                (words, theme.warning())
            }
            (_, LocalRun::Starting) => plain("starting …"),
            (_, LocalRun::Stopping(Control::Drain)) => {
                plain("no new tasks start here; waiting for running tasks")
            }
            (_, LocalRun::Stopping(Control::Stop)) => plain("stopping running tasks"),
            (Phase::Paused, _) => (format!("paused: {} resumes it", key(Action::Pause)), theme.warning()),
            (_, LocalRun::Running) => plain("running here"),
            (Phase::Active, LocalRun::NotRunning) if snapshot.counts.in_progress() > 0 => {
                plain("running elsewhere")
            }
            (Phase::Active, LocalRun::NotRunning) => {
                plain(&format!("nothing is running: {} runs it here", key(Action::Execute)))
            }
            (Phase::Draft | Phase::AwaitingApproval, LocalRun::NotRunning) => {
                plain(&format!("not started: {} runs it here", key(Action::Execute)))
            }
            (Phase::Completed, LocalRun::NotRunning) => ("completed".to_owned(), theme.good()),
            (Phase::Failed | Phase::Cancelled, LocalRun::NotRunning) => {
                let (phase, again) = (snapshot.phase.as_str(), key(Action::RetryAll));
                (format!("{phase}: {again} retries what failed"), theme.wrong())
            }
        };
        let mut words = vec![first];
        if let Some(started) = snapshot.started_at {
            words.push(text::duration(snapshot.ended_at.unwrap_or(context.now).since(started)));
        }
        if snapshot.ended_at.is_none() && snapshot.rate > 0 {
            words.push(format!("{} a minute", snapshot.rate));
        }
        if let Some(approved) = &snapshot.approved {
            words.push(format!("approved: {approved}"));
        }
        (words.join("  ·  "), style)
    }

    fn draw_list(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, area: Rect) {
        let theme = context.settings.theme;
        let inside = frame::framed(theme, frame, area, "Tasks", self.focus == Focus::Tasks);
        let Some(snapshot) = &self.snapshot else { return };
        let selected = self.selected();
        let widest = snapshot.rows.iter().map(|row| text::width(row.id.as_str())).max().unwrap_or(0);
        let id_columns = widest.min(ID_COLUMNS).min(usize::from(inside.width / 3));
        let rows = snapshot.rows.iter().enumerate().skip(self.top);
        let room = self.list_rows(context.area);
        for (y, (at, row)) in (inside.y..inside.bottom()).zip(rows.take(room)) {
            let line = text::fit(&row_line(row, id_columns, context.now), usize::from(inside.width));
            let style = theme.task_status(row.standing);
            let style = if at == selected { style.patch(theme.selected()) } else { style };
            put(frame.buffer_mut(), (inside.x, y), inside.width, &line, style);
        }
        if snapshot.left_out > 0 && inside.height > 1 {
            let words = format!("  … and {}", text::count(snapshot.left_out, "more task"));
            put(frame.buffer_mut(), (inside.x, inside.bottom() - 1), inside.width, &words, theme.quiet());
        }
    }

    fn draw_text(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect, now: Timestamp) {
        let lines = self.lines(theme, area, now);
        let title = match (self.shows_preview(), self.row()) {
            (true, _) => "What will run".to_owned(),
            (false, Some(row)) => row.id.to_string(),
            (false, None) => String::new(),
        };
        let inside = frame::framed(theme, frame, area, &title, self.focus == Focus::Text);
        let rows = usize::from(inside.height);
        // The head of a task stays in place; the log below it scrolls.
        let head = lines.head.len().min(rows);
        let room = rows - head;
        let from = match self.shows_preview() {
            true => self.preview_top.min(lines.tail.len().saturating_sub(room)),
            false => lines.tail.len().saturating_sub(self.behind.saturating_add(room)),
        };
        let shown = lines.head.iter().take(head).chain(lines.tail.iter().skip(from).take(room));
        for (y, (line, style)) in (inside.y..inside.bottom()).zip(shown) {
            put(frame.buffer_mut(), (inside.x, y), inside.width, line, *style);
        }
    }

    /// Wraps the preview once per width, not at every key.
    pub(super) fn wrap_preview(&mut self, area: Rect) {
        let columns = usize::from(parts(area).text.width.saturating_sub(2));
        if let Some(preview) = &self.preview
            && self.preview_lines.as_ref().is_none_or(|(known, _)| *known != columns)
        {
            self.preview_lines = Some((columns, wrapped_preview(preview, columns)));
        }
    }

    /// The number of lines that scroll.
    pub(super) fn text_lines(&self, area: Rect) -> usize {
        let parts = parts(area);
        self.lines(Theme::Plain, parts.text, Timestamp::from_micros(0)).tail.len()
    }

    fn lines(&self, theme: Theme, area: Rect, now: Timestamp) -> Lines {
        let columns = usize::from(area.width.saturating_sub(2));
        match (&self.preview, self.row()) {
            (Some(preview), _) if self.shows_preview() => {
                let mut lines = Lines::default();
                lines.head.push((preview.describe(), theme.heading()));
                let known = self.preview_lines.as_ref().filter(|(known, _)| *known == columns);
                let now;
                let broken = match known {
                    Some((_, broken)) => broken,
                    None => {
                        now = wrapped_preview(preview, columns);
                        &now
                    }
                };
                lines.tail.extend(broken.iter().map(|(line, begins)| {
                    (line.clone(), if *begins { theme.heading() } else { theme.text() })
                }));
                lines
            }
            (_, Some(row)) => self.task_lines(theme, row, columns, now),
            (_, None) => Lines::default(),
        }
    }

    fn task_lines(&self, theme: Theme, row: &Row, columns: usize, now: Timestamp) -> Lines {
        let mut lines = Lines::default();
        let mut add = |text: &str, most: usize, style: Style| {
            lines.head.extend(text::wrap(text, columns, most).into_iter().map(|line| (line, style)));
        };
        add(&row.description, DESCRIPTION_LINES, theme.heading());
        add(&status_line(row, now), 2, theme.task_status(row.standing));
        if let Some(asked) = &row.question {
            add(&format!("? {}", asked.text), SAID_LINES, theme.warning());
            if !asked.choices.is_empty() {
                add(&format!("  {}", asked.choices.join(" | ")), 2, theme.warning());
            }
        }
        add(&row.said, SAID_LINES, theme.text());
        let detail = self.detail.as_ref().filter(|(task, _)| *task == row.id).map(|(_, detail)| detail);
        let Some(detail) = detail else { return lines };
        // A task for a person does not wait for a worker.
        for why in detail.why.iter().filter(|_| row.question.is_none()) {
            add(&format!("waits for {why}"), SAID_LINES, theme.quiet());
        }
        let about_log = match (detail.log.is_empty(), detail.log_note.as_str()) {
            (true, "") => String::new(),
            (true, note) => note.to_owned(),
            (false, "") => "log".to_owned(),
            (false, note) => format!("log, {note}"),
        };
        if !about_log.is_empty() {
            add(&format!("── {about_log} ──"), 1, theme.quiet());
        }
        // Programs colour their output; without its escape sequences it is plain text.
        lines.tail = waypost_text::terminal_text(&detail.log, false)
            .lines()
            .flat_map(|line| match text::wrap(line, columns, 20) {
                empty if empty.is_empty() => vec![String::new()],
                broken => broken,
            })
            .map(|line| (line, theme.text()))
            .collect();
        lines
    }
}

/// The text next to the tasks: a fixed head, and a tail that scrolls.
#[derive(Debug, Default)]
struct Lines {
    head: Vec<(String, Style)>,
    tail: Vec<(String, Style)>,
}

/// Everything that will run, with its inputs: an approval requires all of it to be visible.
fn wrapped_preview(preview: &Preview, columns: usize) -> Vec<PreviewLine> {
    let mut lines = Vec::new();
    for (indent, line, begins) in preview.lines() {
        let broken = text::wrap(&text::reveal_lines(&line), columns.saturating_sub(indent), usize::MAX);
        lines.extend(broken.into_iter().map(|line| (format!("{:indent$}{line}", ""), begins)));
    }
    if preview.left_out() > 0 {
        lines.push((format!("  … and {} not shown", text::count(preview.left_out(), "task")), true));
    }
    lines
}

fn row_line(row: &Row, id_columns: usize, now: Timestamp) -> String {
    let took = match (row.standing, row.started_at, row.finished_at) {
        (EffectiveStatus::Running, Some(from), _) => text::duration(now.since(from)),
        (_, Some(from), Some(to)) => text::duration(to.since(from)),
        (_, _, None) | (_, None, _) => String::new(),
    };
    let again = if row.attempt > 1 { format!("#{} ", row.attempt) } else { String::new() };
    let id = text::fit(row.id.as_str(), id_columns);
    let about = if row.said.is_empty() { &row.description } else { &row.said };
    format!(" {} {id} {} {again}{about}", sign_of(row), text::fit_right(&took, 6))
}

/// The sign of a task. Tasks for a person have their own.
fn sign_of(row: &Row) -> &'static str {
    match row.group {
        Group::Asking if row.standing != EffectiveStatus::Asking => StatusSign::Person.glyph(),
        Group::Asking => sign(EffectiveStatus::Asking),
        Group::Running | Group::Failed | Group::Waiting | Group::Ended => sign(row.standing),
    }
}

fn status_line(row: &Row, now: Timestamp) -> String {
    let mut words = vec![format!("{} {}", sign_of(row), row.standing.as_str())];
    if row.attempt > 0 {
        words.push(format!("attempt {}", row.attempt));
    }
    match (row.standing, row.started_at, row.finished_at) {
        (EffectiveStatus::Running, Some(from), _) => words.push(text::duration(now.since(from))),
        (_, Some(from), Some(to)) => words.push(format!("took {}", text::duration(to.since(from)))),
        (_, _, None) | (_, None, _) => {}
    }
    if let Some(worker) = &row.worker {
        words.push(worker.clone());
    }
    words.join(" · ")
}

fn bar_style(theme: Theme, snapshot: &PlanSnapshot) -> Style {
    if snapshot.counts.failed > 0 { theme.wrong() } else { theme.good() }
}

/// `██████░░░░`: finished tasks of all tasks.
fn bar(counts: &Counts, columns: usize) -> String {
    let total = u64::from(counts.total.max(1));
    let full = (u64::from(counts.finished()) * columns as u64 / total) as usize;
    format!("{}{}", "█".repeat(full.min(columns)), "░".repeat(columns - full.min(columns)))
}

/// `12/20 done (60%), 2 running, …`.
fn counted(counts: &Counts) -> String {
    if counts.total == 0 {
        return "no tasks".to_owned();
    }
    let percent = u64::from(counts.done) * 100 / u64::from(counts.total);
    let mut words = format!("{}/{} done ({percent}%)", counts.done, counts.total);
    let others = [
        (counts.running, "running"),
        (counts.queued, "queued"),
        (counts.failed, "failed"),
        (counts.ready, "ready"),
        (counts.reported, "reported"),
        (counts.asking, "asking"),
        (counts.held, "held"),
        (counts.blocked, "blocked"),
        (counts.skipped, "skipped"),
        (counts.cancelled, "cancelled"),
    ];
    for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
        words.push_str(&format!(", {count} {word}"));
    }
    words
}
