//! Draws the run view: the progress, the tasks, and details of the selected task.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use waypost_core::{Counts, EffectiveStatus, Phase, Timestamp};
use waypost_run::Control;
use waypost_service::MergeQuestion;
use waypost_text::{Role, StatusSign};

use super::{
    Focus, Group, LocalRun, PlanSnapshot, Preview, PreviewLine, Row, RunView, is_write, merge_questions,
    task_text::log_note,
};
use crate::frame::{self, put};
use crate::keys::Action;
use crate::screen::{DrawContext, Settings};
use crate::text;
use crate::theme::{Theme, phase_word};

const ID_COLUMNS: usize = 24;
/// The keys while the search is typed.
const TYPING_KEYS: [(&str, &str); 2] = [("Enter", "find"), ("Esc", "clear")];
/// Maximum number of lines of the description above a log.
const DESCRIPTION_LINES: usize = 3;
/// Maximum number of lines of the result or a question above a log.
const SAID_LINES: usize = 4;

impl RunView {
    /// The number of visible tasks. If the snapshot leaves tasks out, the last row is reserved for their number.
    pub(super) fn list_rows(&self, area: Rect) -> usize {
        let leaves_out = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.left_out > 0);
        usize::from(self.parts(area).list.height.saturating_sub(2 + u16::from(leaves_out))).max(1)
    }

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts_of: frame::Parts) {
        let theme = context.settings.theme;
        let (title, facts) = self.heading(context, theme);
        frame::heading(theme, frame, parts_of.heading, &title, &facts);
        let parts = self.parts(parts_of.body);
        self.draw_summary(context, frame, parts.summary);
        if self.snapshot.is_some() && !self.is_zoomed {
            self.draw_list(context, frame, parts.list);
        }
        if self.snapshot.is_some() {
            self.draw_text(theme, frame, parts.text, context.now);
        }
        match self.typed_search() {
            Some((find, found)) if context.note.is_none() => {
                frame::search_footer(theme, frame, parts_of.footer, find, found, &TYPING_KEYS);
            }
            Some(_) | None => frame::footer(context, frame, parts_of.footer, &self.keys(context.settings)),
        }
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
        let id = frame::heading_id(id);
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
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.conflicts_total > 0) {
            keys.push(Action::Questions);
        }
        keys.push(Action::Open);
        if !self.text.marks().is_empty() {
            keys.push(Action::Next);
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
        keys.extend([Action::Zoom, Action::Filter, Action::Focus, Action::Palette]);
        keys.extend([Action::History, Action::ViewText, Action::Back]);
        if settings.dry_run {
            let answers = self.row().is_some_and(|row| row.question.is_some());
            keys.retain(|key| *key != Action::Stop && !is_write(*key) && !(answers && *key == Action::Open));
        }
        keys
    }

    fn draw_summary(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, area: Rect) {
        let theme = context.settings.theme;
        let Some(snapshot) = &self.snapshot else {
            let words = match &self.error {
                Some(error) => error.line(),
                None => "loading …".to_owned(),
            };
            let style = if self.error.is_some() { theme.wrong() } else { theme.quiet() };
            let lines = text::wrap(&words, usize::from(area.width.saturating_sub(2)), 8);
            for (row, line) in (area.y..).zip(lines) {
                put(frame.buffer_mut(), (area.x + 1, row), area.width, &line, style);
            }
            return;
        };
        let bar_columns = usize::from(area.width / 4).clamp(10, 40);
        let bar = bar(&snapshot.counts, bar_columns);
        let room = area.width.saturating_sub(bar_columns as u16 + 3);
        put(frame.buffer_mut(), (area.x + 1, area.y), bar_columns as u16, &bar, bar_style(theme, snapshot));
        let counts = text::truncate(&counted(snapshot), usize::from(room)).into_owned();
        put(frame.buffer_mut(), (area.x + bar_columns as u16 + 2, area.y), room, &counts, theme.text());
        if area.height > 1 {
            let (words, style) = self.state_line(snapshot, context.settings, context.now);
            let columns = usize::from(area.width.saturating_sub(2));
            let lines = text::wrap(&words, columns, usize::from(area.height - 1));
            for (row, line) in (area.y + 1..).zip(lines) {
                put(frame.buffer_mut(), (area.x + 1, row), area.width, &line, style);
            }
        }
    }

    /// The rows that the state takes: why a worker refuses a plan is not cut.
    pub(super) fn state_rows(&self, settings: &Settings, now: Timestamp, area: Rect) -> u16 {
        let Some(snapshot) = &self.snapshot else { return 1 };
        let (words, _) = self.state_line(snapshot, settings, now);
        let most = usize::from(area.height / 4).max(1);
        text::wrap(&words, usize::from(area.width.saturating_sub(2)), most).len() as u16
    }

    /// Where the plan runs, for how long and how fast, or why it does not run.
    fn state_line(&self, snapshot: &PlanSnapshot, settings: &Settings, now: Timestamp) -> (String, Style) {
        let theme = settings.theme;
        let key = |action: Action| {
            let place = crate::keys::Place::Run;
            settings.keys.hint(place, action).map(|(key, _)| key).unwrap_or_default()
        };
        let plain = |words: &str| (words.to_owned(), theme.text());
        let (first, style) = match (snapshot.phase, self.local_run) {
            _ if snapshot.needs_approval => {
                let (yes, no) = (key(Action::Approve), key(Action::Reject));
                let words = match (&snapshot.refused, &snapshot.rejected) {
                    (Some(refused), _) => refused.clone(),
                    (None, Some(reason)) => format!("rejected: {reason}  ·  {yes} reviews it again"),
                    (None, None) if settings.dry_run => "waiting for approval".to_owned(),
                    (None, None) => format!("waiting for approval: {yes} reviews, {no} rejects"),
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
            (Phase::Active, LocalRun::NotRunning) if snapshot.waits_for_person() => {
                let (answer, run) = (key(Action::Open), key(Action::Execute));
                let words = format!("waiting for you: {answer} answers  ·  {run} runs the rest here");
                (words, theme.role(Role::You))
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
        if snapshot.conflicts_total > 0 {
            let things = text::count(snapshot.conflicts_total, "thing");
            words.push(format!("clones disagree about {things}: {} answers", key(Action::Questions)));
        }
        if let Some(started) = snapshot.started_at {
            words.push(text::duration(snapshot.ended_at.unwrap_or(now).since(started)));
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
        // One long id takes no room from the words of all tasks.
        let widths = snapshot.rows.iter().map(|row| text::width(row.id.as_str()));
        let widest = widths.filter(|columns| *columns <= ID_COLUMNS).max().unwrap_or(ID_COLUMNS);
        let id_columns = widest.min(usize::from(inside.width / 3));
        let rows = snapshot.rows.iter().enumerate().skip(self.top);
        let room = self.list_rows(context.area);
        for (y, (at, row)) in (inside.y..inside.bottom()).zip(rows.take(room)) {
            let line = text::fit(&row_line(row, id_columns, context.now), usize::from(inside.width));
            let style = theme.role(row.sign.role());
            let style = if at == selected { style.patch(theme.selected()) } else { style };
            put(frame.buffer_mut(), (inside.x, y), inside.width, &line, style);
        }
        if snapshot.left_out > 0 && inside.height > 1 {
            let words = format!("  … and {}", text::count(snapshot.left_out, "more task"));
            put(frame.buffer_mut(), (inside.x, inside.bottom() - 1), inside.width, &words, theme.quiet());
        }
    }

    fn draw_text(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect, now: Timestamp) {
        let columns = usize::from(area.width.saturating_sub(2));
        let head = self.head(theme, columns, now);
        let height = area.height.saturating_sub(2);
        let rows = head.len().min(self.head_rows_max(height));
        let title = self.text_title(usize::from(height) - rows);
        let inside = frame::framed(theme, frame, area, &title, self.focus == Focus::Text);
        for (y, (line, style)) in (inside.y..inside.bottom()).zip(head.iter().take(rows)) {
            put(frame.buffer_mut(), (inside.x, y), inside.width, line, *style);
        }
        // The head of a task stays in place; the text below it scrolls.
        let below =
            Rect { y: inside.y + rows as u16, height: inside.height.saturating_sub(rows as u16), ..inside };
        let room = usize::from(below.height);
        if !self.shows_preview() && self.has_text() {
            let top = self.text.rows().saturating_sub(self.behind.saturating_add(room));
            return self.text.draw(frame.buffer_mut(), below, top, theme, self.marked);
        }
        if !self.shows_preview() {
            return;
        }
        let lines = self.preview_lines.as_ref().map_or(&[][..], |(_, lines)| lines);
        let top = self.preview_top.min(lines.len().saturating_sub(room));
        for (y, (line, begins)) in (below.y..below.bottom()).zip(lines.iter().skip(top)) {
            let style = if *begins { theme.heading() } else { theme.text() };
            put(frame.buffer_mut(), (below.x, y), below.width, line, style);
        }
    }

    /// Whether the loaded text is that of the selected task.
    fn has_text(&self) -> bool {
        let selected = self.row().map(|row| &row.id);
        self.detail.as_ref().is_some_and(|(task, _)| Some(task) == selected)
    }

    /// The selected task, and what can be found in its log; of a preview that does not fit, the lines that are shown.
    fn text_title(&self, room: usize) -> String {
        if self.shows_preview() {
            let total = self.preview_lines.as_ref().map_or(0, |(_, lines)| lines.len());
            let from = self.preview_top.min(total.saturating_sub(room));
            return match total > room {
                true => format!("What will run · lines {}–{} of {total}", from + 1, from + room),
                false => "What will run".to_owned(),
            };
        }
        let Some(row) = self.row() else { return String::new() };
        let mut words = vec![row.id.to_string()];
        if !self.has_text() {
            return words.remove(0);
        }
        match (self.search.is_empty(), self.text.marks().len()) {
            (false, _) => {
                words.push(format!(
                    "{} with “{}”",
                    text::count(self.text.found().len(), "line"),
                    self.search
                ));
            }
            (true, 0) => {}
            (true, errors) => words.push(text::count(errors, "error")),
        }
        if row.standing == EffectiveStatus::Running && !self.text.is_empty() {
            words.push(if self.behind == 0 { "following" } else { "F follows" }.to_owned());
        }
        words.join(" · ")
    }

    /// Wraps the preview once per width, not at every key.
    pub(super) fn wrap_preview(&mut self, area: Rect) {
        let columns = usize::from(self.parts(area).text.width.saturating_sub(2));
        if let Some(preview) = &self.preview
            && self.preview_lines.as_ref().is_none_or(|(known, _)| *known != columns)
        {
            self.preview_lines = Some((columns, wrapped_preview(preview, columns)));
        }
    }

    /// The rows that stay above the text.
    pub(super) fn head_rows(&self, area: Rect) -> usize {
        let columns = usize::from(self.parts(area).text.width.saturating_sub(2));
        let most = self.head_rows_max(self.parts(area).text.height.saturating_sub(2));
        self.head(Theme::Plain, columns, Timestamp::from_micros(0)).len().min(most)
    }

    /// A log has at least half of the rows.
    fn head_rows_max(&self, height: u16) -> usize {
        let height = usize::from(height);
        if self.text.is_empty() || !self.has_text() || self.shows_preview() {
            height
        } else {
            height.div_ceil(2)
        }
    }

    fn head(&self, theme: Theme, columns: usize, now: Timestamp) -> Vec<(String, Style)> {
        match (&self.preview, self.row()) {
            (Some(preview), _) if self.shows_preview() => vec![(preview.describe(), theme.heading())],
            (_, Some(row)) if self.is_zoomed => {
                let style = theme.role(row.sign.role());
                let status = text::wrap(&status_line(row, now), columns, 2).into_iter();
                let mut lines: Vec<_> = status.map(|line| (line, style)).collect();
                let disputed =
                    self.conflicts_of(row).flat_map(|one| merge_questions::brief_lines(&one.conflict));
                for line in disputed {
                    let wrapped = text::wrap(&line, columns, SAID_LINES).into_iter();
                    lines.extend(wrapped.map(|line| (line, theme.role(Role::You))));
                }
                lines
            }
            (_, Some(row)) => self.task_head(theme, row, columns, now),
            (_, None) => Vec::new(),
        }
    }

    fn conflicts_of(&self, row: &Row) -> impl Iterator<Item = &MergeQuestion> {
        let open = self.snapshot.iter().flat_map(|snapshot| &snapshot.conflicts);
        open.filter(|question| question.conflict.task.as_ref() == Some(&row.id))
    }

    fn task_head(&self, theme: Theme, row: &Row, columns: usize, now: Timestamp) -> Vec<(String, Style)> {
        let mut lines = Vec::new();
        let mut add = |text: &str, most: usize, style: Style| {
            lines.extend(text::wrap(text, columns, most).into_iter().map(|line| (line, style)));
        };
        add(&row.description, DESCRIPTION_LINES, theme.heading());
        add(&status_line(row, now), 2, theme.role(row.sign.role()));
        if let Some(asked) = row.question.as_ref().filter(|asked| !asked.is_for_person) {
            add(&format!("? {}", asked.text), SAID_LINES, theme.role(Role::You));
            for (number, choice) in asked.choices.iter().enumerate() {
                add(&format!("  {} {choice}", number + 1), 1, theme.role(Role::You));
            }
        }
        for question in self.conflicts_of(row) {
            for line in merge_questions::brief_lines(&question.conflict) {
                add(&line, SAID_LINES, theme.role(Role::You));
            }
        }
        add(&row.said, SAID_LINES, theme.text());
        let detail = self.detail.as_ref().filter(|(task, _)| *task == row.id).map(|(_, detail)| detail);
        let Some(detail) = detail else { return lines };
        for remark in &detail.remarks {
            add(remark, SAID_LINES, theme.quiet());
        }
        // A task for a person does not wait for a worker.
        for why in detail.why.iter().filter(|_| row.question.is_none()) {
            add(&format!("waits for {why}"), SAID_LINES, theme.quiet());
        }
        let about_log = log_note(detail, self.shows_times && !detail.log_times.is_empty());
        if !about_log.is_empty() {
            add(&format!("── {about_log} ──"), 1, theme.quiet());
        }
        lines
    }
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
    let disputed = match row.conflicts.is_empty() {
        true => String::new(),
        false => format!("{} {}: ", StatusSign::Disputed.glyph(), row.conflicts.join(", ")),
    };
    format!(" {} {id} {} {again}{disputed}{about}", row.sign.glyph(), text::fit_right(&took, 6))
}

fn status_line(row: &Row, now: Timestamp) -> String {
    let mut words = vec![format!("{} {}", row.sign.glyph(), row.sign.label())];
    if row.attempt > 0 {
        words.push(format!("attempt {}", row.attempt));
    }
    match (row.standing, row.started_at, row.finished_at) {
        (EffectiveStatus::Running, Some(from), _) => words.push(text::duration(now.since(from))),
        (_, Some(from), Some(to)) => words.push(format!("took {}", text::duration(to.since(from)))),
        (_, _, None) | (_, None, _) => {}
    }
    if let Some(worker) = &row.worker {
        words.push(waypost_store::worker_place(worker).to_owned());
    }
    words.join(" · ")
}

fn bar_style(theme: Theme, snapshot: &PlanSnapshot) -> Style {
    if snapshot.counts.failed > 0 { theme.wrong() } else { theme.good() }
}

/// `██████░░░░`: done tasks of all tasks, as the percentage beside it says.
fn bar(counts: &Counts, columns: usize) -> String {
    let total = u64::from(counts.total.max(1));
    let full = (u64::from(counts.done) * columns as u64 / total) as usize;
    format!("{}{}", "█".repeat(full.min(columns)), "░".repeat(columns - full.min(columns)))
}

/// `12/20 done (60%), 2 running, …`.
fn counted(snapshot: &PlanSnapshot) -> String {
    let PlanSnapshot { counts, for_people, .. } = snapshot;
    if counts.total == 0 {
        return "no tasks".to_owned();
    }
    let percent = u64::from(counts.done) * 100 / u64::from(counts.total);
    let mut words = format!("{}/{} done ({percent}%)", counts.done, counts.total);
    let others = [
        (counts.running, "running"),
        (counts.queued, "queued"),
        (counts.failed, "failed"),
        (*for_people, "for you"),
        (counts.ready.saturating_sub(*for_people), "ready"),
        (counts.reported, "reported"),
        (counts.asking, "asking"),
        (counts.held, "held"),
        (counts.disputed, "disputed"),
        (counts.blocked, "blocked"),
        (counts.skipped, "skipped"),
        (counts.cancelled, "cancelled"),
    ];
    for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
        words.push_str(&format!(", {count} {word}"));
    }
    words
}
