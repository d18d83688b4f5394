//! Draws the list of plans: what state each is in, and of the selected one what it is about and who works on it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use waypost_store::{ArchiveFilter, Sort};
use waypost_text::{PlanGroup, StatusSign};

use super::{PlanList, detail_rows, rows};
use crate::frame::{self, Parts, draw_input, footer, heading, put};
use crate::keys::Action;
use crate::plan::ListedPlan;
use crate::screen::DrawContext;
use crate::theme::Theme;
use crate::{text, theme};

/// The widths of the columns; 0 hides a column.
struct Columns {
    scope: usize,
    name: usize,
    title: usize,
    state: usize,
    now: usize,
    queue: usize,
    owner: usize,
    version: usize,
    progress: usize,
    bar: usize,
    age: usize,
}

const GAP: usize = 2;
/// Columns of the status sign.
const SIGN_COLUMNS: u16 = 2;

/// The keys while the filter is typed.
const TYPING_KEYS: [(&str, &str); 3] = [("Enter", "apply"), ("Esc", "clear"), ("↑ ↓", "select")];

/// The greatest widths of what the plans on screen say; 0 if none of them says it.
struct Widths {
    state: usize,
    name: usize,
    title: usize,
    now: usize,
    queue: usize,
    owner: usize,
}

impl Widths {
    fn of<'a>(plans: impl Iterator<Item = &'a ListedPlan>) -> Self {
        let mut widths = Self { state: 0, name: 0, title: 0, now: 0, queue: 0, owner: 0 };
        for plan in plans {
            let head = &plan.summary;
            let note = if head.status.trim().is_empty() { 0 } else { text::width(head.status.trim()) + 3 };
            let own = [
                (&mut widths.state, text::width(&state(plan))),
                (&mut widths.name, text::width(head.id.as_str())),
                (&mut widths.title, text::width(&head.title) + note),
                (&mut widths.now, text::width(&now(plan))),
                (&mut widths.queue, text::width(&head.queue)),
                (&mut widths.owner, text::width(&head.owner)),
            ];
            own.into_iter().for_each(|(widest, own)| *widest = own.max(*widest));
        }
        widths
    }
}

impl Columns {
    /// Widths for the plans on screen: what none of them says takes no room.
    fn of(width: usize, stores: usize, wanted: &Widths) -> Self {
        let if_wide = |from: usize, columns: usize| if width >= from { columns } else { 0 };
        let at_most = |wanted: usize, most: usize| if wanted > 0 { wanted.clamp(5, most) } else { 0 };
        let mut columns = Self {
            scope: if stores > 1 { 5 } else { 0 },
            name: wanted.name.clamp(6, if width >= 110 { 24 } else { 12 }),
            title: 0,
            state: wanted.state.clamp(5, if width >= 100 { 24 } else { 16 }),
            now: 0,
            queue: if_wide(140, at_most(wanted.queue, 10)),
            owner: if_wide(140, at_most(wanted.owner, 14)),
            version: if_wide(100, 5),
            progress: 9,
            bar: if_wide(110, 10),
            age: 4,
        };
        let used: usize =
            columns.fixed().into_iter().filter(|columns| *columns > 0).map(|one| one + GAP).sum();
        let rest = width.saturating_sub(used + usize::from(SIGN_COLUMNS) + 1);
        // What is going on has the greater part of a wide screen, and leaves what it does not need to the titles.
        let most = (rest * 11 / 20).max(rest.saturating_sub(wanted.title + GAP));
        columns.now = if_wide(140, wanted.now.min(most));
        columns.title = rest.saturating_sub(if columns.now > 0 { columns.now + GAP } else { 0 });
        columns
    }

    fn fixed(&self) -> [usize; 9] {
        let Self { scope, name, state, queue, owner, version, progress, bar, age, .. } = *self;
        [scope, name, state, queue, owner, version, progress, bar, age]
    }
}

impl PlanList {
    pub(crate) const KEYS: [Action; 13] = [
        Action::Open,
        Action::Approve,
        Action::Filter,
        Action::New,
        Action::Set,
        Action::Palette,
        Action::Next,
        Action::RetryAll,
        Action::Pause,
        Action::Watch,
        Action::History,
        Action::Sort,
        Action::Back,
    ];

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts: Parts) {
        let theme = context.settings.theme;
        heading(theme, frame, parts.heading, "Plans", &self.facts(theme));
        let area = parts.body;
        let shown = self.list.iter().skip(self.top).take(rows(area));
        let heads = || shown.clone().map(|&(store, place)| &self.sides[store].heads[place]);
        let stores = context.settings.stores.len();
        let columns = Columns::of(usize::from(area.width), stores, &Widths::of(heads()));
        draw_head(&columns, theme, frame, area);
        for (row, (at, &(store, place))) in (area.y + 1..).zip(shown.enumerate()) {
            let scope = context.settings.stores.get(store).map_or("", String::as_str);
            let line = Rect::new(area.x, row, area.width, 1);
            draw_plan(&columns, (scope, &self.sides[store].heads[place]), context, frame, line);
            if self.top + at == self.selected {
                frame.buffer_mut().set_style(line, theme.selected());
            }
        }
        if self.list.is_empty() {
            self.draw_empty(theme, frame, area);
        }
        self.draw_detail(theme, frame, area);
        self.draw_bottom(theme, frame, Rect::new(area.x, area.bottom().saturating_sub(1), area.width, 1));
        if self.typing && context.note.is_none() {
            frame::typing_footer(theme, frame, parts.footer, &TYPING_KEYS);
        } else {
            footer(context, frame, parts.footer, &Self::KEYS);
        }
    }

    /// How many plans need the user, how many run, and how many there are.
    fn facts(&self, theme: Theme) -> Vec<Span<'static>> {
        let heads = || self.sides.iter().flat_map(|side| &side.heads);
        let needing = heads().filter(|head| head.status.needs_you).count();
        let is_running = |head: &&ListedPlan| head.status.sign.plan_group().0 == PlanGroup::Running;
        let running = heads().filter(is_running).count();
        let mut facts = Vec::new();
        if needing > 0 {
            let verb = if needing == 1 { "needs" } else { "need" };
            let style = theme.role(StatusSign::Approval.role());
            facts.push(Span::styled(format!("{needing} {verb} you"), style));
            facts.push(Span::styled(" · ", theme.quiet()));
        }
        if running > 0 {
            let style = theme.role(StatusSign::Running.role());
            facts.push(Span::styled(format!("{running} running"), style));
            facts.push(Span::styled(" · ", theme.quiet()));
        }
        let total: u64 = self.sides.iter().map(|side| side.total).sum();
        let order = match self.sort {
            Sort::Attention => "",
            Sort::Updated => " · last changed",
            Sort::Created => " · newest",
            Sort::Title => " · by title",
            Sort::Id => " · by name",
            Sort::Urgency => " · most urgent",
        };
        let shelf = match self.shelf {
            ArchiveFilter::Current => "",
            ArchiveFilter::Archived => " · archived",
            ArchiveFilter::All => " · with archived",
        };
        let plans = text::count(usize::try_from(total).unwrap_or(usize::MAX), "plan");
        facts.push(Span::styled(format!("{plans}{order}{shelf}"), theme.quiet()));
        facts
    }

    fn draw_empty(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let said = if self.sides.iter().any(|side| side.request.is_some()) {
            "loading …"
        } else if !self.filter.text().is_empty() {
            "no plan has this text in its name or title"
        } else {
            "no plans yet: N creates one, `waypost import FILE` imports one"
        };
        put(frame.buffer_mut(), (area.x + 2, area.y + 2), area.width.saturating_sub(2), said, theme.quiet());
    }

    /// Draws what the selected plan is about, in full, and who works on it.
    fn draw_detail(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let height = detail_rows(area);
        let Some((_, head)) = self.head(self.selected).filter(|_| height > 0) else { return };
        let top = area.bottom().saturating_sub(height + 1);
        let rule = "─".repeat(usize::from(area.width));
        put(frame.buffer_mut(), (area.x, top), area.width, &rule, theme.edge());
        let style = theme.role(head.status.sign.role());
        let title = format!(" {} {} · {} ", head.status.sign.glyph(), head.summary.id, head.status.label);
        let title = text::truncate(&title, usize::from(area.width.saturating_sub(4)));
        put(frame.buffer_mut(), (area.x + 1, top), area.width, &title, style);
        let columns = usize::from(area.width.saturating_sub(2));
        let mut lines = Vec::new();
        if !head.workers.is_empty() {
            lines.push((format!("worked on by {}", head.workers.join(", ")), theme.text()));
        }
        lines.push((head.status.detail.clone(), theme.text()));
        lines.push((head.summary.title.clone(), theme.quiet()));
        if !head.summary.status.trim().is_empty() {
            lines.push((format!("note: {}", head.summary.status), theme.quiet()));
        }
        let all = lines.into_iter().filter(|(line, _)| !line.trim().is_empty());
        let wrapped = all.flat_map(|(line, style)| {
            text::wrap(&line, columns, usize::from(height)).into_iter().map(move |line| (line, style))
        });
        for (row, (line, style)) in (top + 1..top + height).zip(wrapped) {
            put(frame.buffer_mut(), (area.x + 1, row), area.width, &line, style);
        }
    }

    /// Draws the filter, and read errors, in as many rows as they need.
    fn draw_bottom(&self, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let mut x = area.x + 1;
        if self.typing || !self.filter.text().is_empty() {
            put(frame.buffer_mut(), (x, area.y), area.width, "/", theme.accent());
            let columns = (area.width / 3).max(16);
            let place = Rect::new(x + 1, area.y, columns, 1).intersection(area);
            if self.typing {
                draw_input(frame, place, &self.filter, Style::new());
            } else {
                let typed = text::truncate(self.filter.text(), usize::from(columns));
                put(frame.buffer_mut(), (place.x, place.y), place.width, &typed, Style::new());
            }
            x = place.right() + 1;
        }
        let warnings: Vec<&String> = self.sides.iter().flat_map(|side| &side.warnings).collect();
        let error = self.sides.iter().find_map(|side| side.error.as_ref());
        let room = area.right().saturating_sub(x);
        let line = match (error, warnings.first()) {
            (Some(error), _) => format!("✗ {}", error.line()),
            (None, Some(first)) => {
                format!("! {} could not be read: {first}", text::count(warnings.len(), "plan"))
            }
            (None, None) => return,
        };
        let style = if error.is_some() { theme.wrong() } else { theme.warning() };
        let lines = text::wrap(&line, usize::from(room), usize::from(area.y / 2).max(1));
        let top = (area.y + 1).saturating_sub(lines.len() as u16);
        for (row, line) in (top..).zip(lines) {
            let line = text::fit(&line, usize::from(room));
            put(frame.buffer_mut(), (x, row), room, &line, style);
        }
    }
}

/// Draws values one after the other, with gaps; skips hidden columns.
struct Pen<'f, 'b> {
    frame: &'f mut Frame<'b>,
    x: u16,
    y: u16,
}

impl Pen<'_, '_> {
    fn put(&mut self, columns: usize, shown: &str, style: Style) {
        if columns > 0 {
            put(self.frame.buffer_mut(), (self.x, self.y), columns as u16, shown, style);
            self.x += (columns + GAP) as u16;
        }
    }
}

/// The status of a plan in words.
fn state(plan: &ListedPlan) -> String {
    let label = &plan.status.label;
    if plan.summary.archived { format!("archived, {label}") } else { label.clone() }
}

/// What is going on in a plan. Who runs tasks says nothing about a task that failed or asks.
fn now(plan: &ListedPlan) -> String {
    match plan.workers.as_slice() {
        workers if workers.is_empty() || plan.status.sign != StatusSign::Running => {
            plan.status.detail.clone()
        }
        workers => format!("{}: {}", workers.join(", "), plan.status.detail),
    }
}

fn draw_head(columns: &Columns, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let style = theme.quiet();
    let mut pen = Pen { frame, x: area.x + 1 + SIGN_COLUMNS, y: area.y };
    pen.put(columns.state, "STATE", style);
    pen.put(columns.name, "NAME", style);
    pen.put(columns.title, "TITLE", style);
    pen.put(columns.now, "NOW", style);
    pen.put(columns.queue, "QUEUE", style);
    pen.put(columns.owner, "OWNER", style);
    pen.put(columns.scope, "SCOPE", style);
    pen.put(columns.version, &text::fit_right("V", columns.version), style);
    pen.put(columns.bar, "", style);
    pen.put(columns.progress, &text::fit_right("DONE", columns.progress), style);
    pen.put(columns.age, &text::fit_right("AGE", columns.age), style);
}

fn draw_plan(
    columns: &Columns,
    (scope, listed): (&str, &ListedPlan),
    context: DrawContext<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let theme = context.settings.theme;
    let ListedPlan { summary: head, status, .. } = listed;
    let mut pen = Pen { frame, x: area.x + 1, y: area.y };
    let style = theme.role(status.sign.role());
    put(pen.frame.buffer_mut(), (pen.x, area.y), SIGN_COLUMNS, status.sign.glyph(), style);
    pen.x += SIGN_COLUMNS;
    pen.put(columns.state, &text::truncate(&state(listed), columns.state), style);
    pen.put(columns.name, &text::truncate(head.id.as_str(), columns.name), theme.accent());
    let title_x = pen.x;
    let now = now(listed);
    // A title may take the place of what is not going on.
    let columns_of_title = match now.is_empty() && columns.now > 0 {
        true => columns.title + GAP + columns.now,
        false => columns.title,
    };
    let note = if head.status.trim().is_empty() {
        String::new()
    } else {
        let room = (columns_of_title / 2).saturating_sub(3).max(8);
        format!("[{}]", text::truncate(head.status.trim(), room))
    };
    let room = columns_of_title.saturating_sub(if note.is_empty() { 0 } else { text::width(&note) + 1 });
    let title = text::truncate(if head.title.trim().is_empty() { "(no title)" } else { &head.title }, room);
    put(pen.frame.buffer_mut(), (pen.x, area.y), columns_of_title as u16, &title, theme.heading());
    pen.x += (columns.title + GAP) as u16;
    if !note.is_empty() {
        let x = title_x + (text::width(&title) + 1) as u16;
        put(pen.frame.buffer_mut(), (x, area.y), text::width(&note) as u16, &note, theme.text());
    }
    pen.put(columns.now, &text::truncate(&now, columns.now), theme.text());
    pen.put(columns.queue, &text::truncate(&head.queue, columns.queue), theme.quiet());
    pen.put(columns.owner, &text::truncate(&head.owner, columns.owner), theme.quiet());
    pen.put(columns.scope, &text::truncate(scope, columns.scope), theme.quiet());
    pen.put(columns.version, &text::fit_right(&format!("v{}", head.version), columns.version), theme.quiet());
    let counts = &head.counts;
    pen.put(columns.bar, &theme::bar(counts.done, counts.total, columns.bar), style);
    let style = if counts.failed > 0 { theme.wrong() } else { theme.text() };
    let failed = if counts.failed > 0 { StatusSign::Failed.glyph() } else { "" };
    let progress = match (head.is_document(), listed.has_text) {
        (true, true) => "text".to_owned(),
        (true, false) => "no tasks".to_owned(),
        (false, _) => format!("{failed}{}/{}", counts.done, counts.total),
    };
    pen.put(columns.progress, &text::fit_right(&progress, columns.progress), style);
    let age = head.updated_at.map(|at| text::age(context.now.since(at))).unwrap_or_default();
    pen.put(columns.age, &text::fit_right(&age, columns.age), theme.quiet());
}
