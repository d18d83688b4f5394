//! The list of plans of all stores: pages of summaries, filtered and sorted by the stores and merged here. Holds no plans.

mod draw;
mod field;
mod merge;
mod set;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use waypost_core::{Phase, Timestamp};
use waypost_store::{ArchiveFilter, Page, Query, Sort};

use self::field::{PlanField, SORTS};
use crate::dialog::Dialog;
use crate::dialog::menu::Menu;
use crate::keys::Action;
use crate::messages::{Effect, Reply, SaveError};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::{ListedPlan, PlanKey};
use crate::run_view::{Intent, PlanAction};
use crate::screen::{Context, Destination, Event, Flow};
use crate::text_input::TextInput;

/// Number of plans loaded at a time.
pub const PLANS_PAGE_SIZE: usize = 200;
/// How long a list in which something runs or waits for a worker stands before it is read again: progress and workers make
/// no version.
const REFRESH_SECONDS: i64 = 5;
/// Maximum number of plans loaded from one store; others can be found with the filter.
pub const PLANS_LOADED_MAX: usize = 5_000;

/// The loaded plans of one store.
#[derive(Debug, Default)]
struct StoreList {
    heads: Vec<ListedPlan>,
    total: u64,
    next: Option<String>,
    /// The ticket of the pending request.
    request: Option<u64>,
    /// Whether the requested page follows the loaded ones.
    is_next_page: bool,
    /// Whether the store changed after the request.
    stale: bool,
    error: Option<ErrorMessage>,
    warnings: Vec<String>,
}

/// What the open dialog is for.
#[derive(Clone, Debug)]
enum Prompt {
    Title(usize),
    /// A text for a field of a plan at this version; the texts that can be chosen.
    Field(PlanField, PlanKey, u64, Vec<String>),
    /// Which field of a plan is set.
    Fields(Vec<PlanField>),
    /// What is done with a plan.
    Actions(PlanKey, Vec<PlanAction>),
    Retry(PlanKey),
    Sort,
}

/// The list of plans. Loaded when it is shown.
#[derive(Debug)]
pub struct PlanList {
    sides: Vec<StoreList>,
    /// The listed plans, as (store, index into its loaded plans).
    list: Vec<(usize, usize)>,
    filter: TextInput,
    typing: bool,
    sort: Sort,
    shelf: ArchiveFilter,
    selected: usize,
    top: usize,
    tickets: u64,
    prompt: Option<Prompt>,
    /// The plan of which a field is being saved.
    writing: Option<PlanKey>,
    /// When the list was last read.
    read_at: Option<Timestamp>,
}

impl Default for PlanList {
    /// What needs the user comes first.
    fn default() -> Self {
        Self {
            sides: Vec::new(),
            list: Vec::new(),
            filter: TextInput::default(),
            typing: false,
            sort: Sort::Attention,
            shelf: ArchiveFilter::default(),
            selected: 0,
            top: 0,
            tickets: 0,
            prompt: None,
            writing: None,
            read_at: None,
        }
    }
}

impl PlanList {
    /// The displayed ages change with time.
    pub fn needs_tick(&self) -> bool {
        !self.list.is_empty()
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.typing
    }

    pub fn selected(&self) -> Option<PlanKey> {
        self.head(self.selected).map(|(store, head)| PlanKey { store, id: head.summary.id.clone() })
    }

    fn head(&self, at: usize) -> Option<(usize, &ListedPlan)> {
        let &(store, place) = self.list.get(at)?;
        Some((store, self.sides.get(store)?.heads.get(place)?))
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        match event {
            Event::Shown => {
                self.sides.resize_with(context.settings.stores.len(), StoreList::default);
                self.reload(context);
            }
            Event::Action(action) => self.act(action, context),
            Event::Key(key) => {
                if self.typing {
                    self.type_key(key, context);
                }
            }
            Event::Paste(text) => {
                if self.typing {
                    self.filter.insert(text);
                    self.reload(context);
                }
            }
            Event::Mouse(mouse) => self.mouse(mouse, context),
            Event::Reply(reply) => self.reply(reply, context),
            Event::Written(store, _) => self.written(store, context),
            Event::Chosen(choice, typed) => self.chosen(choice, typed, context),
            Event::Tick => self.refresh_progress(context),
            Event::DialogClosed => {}
        }
        self.settle(context);
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) {
        let page = rows(context.area).max(1);
        match action {
            Action::Up => self.selected = self.selected.saturating_sub(1),
            Action::Down => self.selected += 1,
            Action::PageUp => self.selected = self.selected.saturating_sub(page),
            Action::PageDown => self.selected += page,
            Action::First => self.selected = 0,
            Action::Last => self.selected = self.list.len(),
            Action::Open => self.open(context),
            Action::Filter => self.typing = true,
            Action::Sort => {
                let at = SORTS.iter().position(|(sort, _)| *sort == self.sort).unwrap_or(0);
                let menu = Menu::new(SORTS.iter().map(|(_, option)| option()).collect()).at(at);
                self.prompt = Some(Prompt::Sort);
                context.ask(Dialog::choose_from("Order of the plans", Vec::new(), menu, "sort"));
            }
            Action::Archived => {
                self.shelf = match self.shelf {
                    ArchiveFilter::Current => ArchiveFilter::Archived,
                    ArchiveFilter::Archived => ArchiveFilter::All,
                    ArchiveFilter::All => ArchiveFilter::Current,
                };
                self.reload_from_first(context);
            }
            Action::Refresh => self.reload(context),
            Action::New => self.ask_title(context),
            Action::Status => self.ask_field(PlanField::Note, context),
            Action::Set => self.ask_what_to_set(context),
            Action::RetryAll => self.ask_to_retry(context),
            Action::Pause => self.pause_or_resume(context),
            Action::Next => self.next_needing(false, context),
            Action::Previous => self.next_needing(true, context),
            Action::Edit | Action::ViewTasks => {
                if let Some(plan) = self.selected() {
                    context.go(Flow::Open(Destination::Editor(plan)));
                }
            }
            Action::Quit => context.go(Flow::Quit),
            Action::Back if !self.filter.text().is_empty() => {
                self.filter = TextInput::line("");
                self.reload(context);
            }
            Action::Back => context.go(Flow::Pop),
            Action::Help
            | Action::Palette
            | Action::Delete
            | Action::Skip
            | Action::MoveUp
            | Action::MoveDown
            | Action::Indent
            | Action::Outdent
            | Action::Save
            | Action::Execute
            | Action::Undo
            | Action::Redo
            | Action::External
            | Action::Dependencies
            | Action::Upstream
            | Action::Downstream
            | Action::Graph
            | Action::Fold
            | Action::NextField
            | Action::PreviousField
            | Action::Accept
            | Action::Toggle
            | Action::Focus
            | Action::Zoom
            | Action::Follow
            | Action::Times
            | Action::Approve
            | Action::Questions
            | Action::Reject
            | Action::Hold
            | Action::Cancel
            | Action::CancelPlan
            | Action::Retry
            | Action::Stop
            | Action::Watch
            | Action::History
            | Action::ViewText
            | Action::Mark
            | Action::Restore
            | Action::Suspend => {}
        }
    }

    /// Opens a draft in the editor, a plan without tasks as text, and any other plan in its run view.
    fn open(&self, context: &mut Context<'_>) {
        let Some((store, head)) = self.head(self.selected) else { return };
        let plan = PlanKey { store, id: head.summary.id.clone() };
        let is_text = head.summary.is_document() && head.has_text;
        context.go(Flow::Open(match head.summary.phase {
            _ if is_text => Destination::Text(plan),
            Phase::Draft => Destination::Editor(plan),
            Phase::AwaitingApproval
            | Phase::Active
            | Phase::Paused
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled => Destination::Run(plan, Intent::Watch),
        }));
    }

    /// Goes to the next plan that needs the user.
    fn next_needing(&mut self, is_back: bool, context: &mut Context<'_>) {
        let count = self.list.len();
        let places = (1..=count).map(|step| match is_back {
            true => (self.selected + count - step) % count,
            false => (self.selected + step) % count,
        });
        let needs = |at: &usize| self.head(*at).is_some_and(|(_, head)| head.status.needs_you);
        match places.into_iter().find(needs) {
            Some(at) => self.selected = at,
            None => context.notify(NoteKind::Good, "no plan in this list needs you"),
        }
    }

    /// Reads the list again from time to time while something runs or waits for a worker.
    fn refresh_progress(&mut self, context: &mut Context<'_>) {
        let is_due = self
            .read_at
            .is_none_or(|at| context.now.as_micros() - at.as_micros() >= REFRESH_SECONDS * 1_000_000);
        let is_live = |head: &ListedPlan| head.summary.phase == Phase::Active;
        let is_reading = self.sides.iter().any(|side| side.request.is_some());
        if is_due && !is_reading && self.sides.iter().flat_map(|side| &side.heads).any(is_live) {
            self.reload(context);
        }
    }

    fn ask_title(&mut self, context: &mut Context<'_>) {
        let store = self.selected().map_or(0, |plan| plan.store);
        let name = context.settings.stores.get(store).cloned().unwrap_or_default();
        self.prompt = Some(Prompt::Title(store));
        let lines = vec![format!("The title. The plan is stored in `{name}`.")];
        context.ask(Dialog::ask("New plan", lines, "", "create"));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn type_key(&mut self, key: KeyEvent, context: &mut Context<'_>) {
        match key.code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter = TextInput::line("");
                self.reload(context);
            }
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.typing = false,
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected += 1,
            _ => {
                let before = self.filter.text().to_owned();
                self.filter.key(key);
                if before != self.filter.text() {
                    self.selected = 0;
                    self.reload(context);
                }
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    fn mouse(&mut self, mouse: MouseEvent, context: &mut Context<'_>) {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.selected = self.selected.saturating_sub(3),
            MouseEventKind::ScrollDown => self.selected += 3,
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(row) = row_at(context.area, mouse.row) {
                    let at = self.top + row;
                    if at == self.selected {
                        return self.open(context);
                    }
                    if at < self.list.len() {
                        self.selected = at;
                    }
                }
            }
            _ => {}
        }
    }

    fn query(&self, limit: usize, after: Option<String>) -> Box<Query> {
        let text = Some(self.filter.text().trim().to_owned()).filter(|text| !text.is_empty());
        Box::new(Query { shelf: self.shelf, text, sort: self.sort, limit, after, ..Query::default() })
    }

    /// Reloads a list that is another one now. Its first plan is selected.
    fn reload_from_first(&mut self, context: &mut Context<'_>) {
        self.list.clear();
        (self.selected, self.top) = (0, 0);
        self.reload(context);
    }

    /// Reloads every store, from the first plan up to as many as are loaded.
    fn reload(&mut self, context: &mut Context<'_>) {
        self.read_at = Some(context.now);
        for store in 0..self.sides.len() {
            self.reload_store(store, context);
        }
    }

    fn reload_store(&mut self, store: usize, context: &mut Context<'_>) {
        self.tickets += 1;
        let ticket = self.tickets;
        let limit = self.sides[store].heads.len().clamp(PLANS_PAGE_SIZE, PLANS_LOADED_MAX);
        let query = self.query(limit, None);
        let side = &mut self.sides[store];
        (side.request, side.is_next_page, side.stale) = (Some(ticket), false, false);
        context.effects.push(Effect::LoadPlanPage { store, ticket, query });
    }

    /// Keeps at most one request pending, so that continuous writes do not cause continuous reloads.
    fn written(&mut self, store: usize, context: &mut Context<'_>) {
        match self.sides.get_mut(store) {
            Some(side) if side.request.is_some() => side.stale = true,
            Some(_) => self.reload_store(store, context),
            None => {}
        }
    }

    fn reply(&mut self, reply: &Reply, context: &mut Context<'_>) {
        match reply {
            Reply::PlanPage { store, ticket, heads } => self.take(*store, *ticket, heads, context),
            Reply::Created { plan: Ok(plan) } => context.go(Flow::Open(Destination::Editor(plan.clone()))),
            Reply::Created { plan: Err(error) } => context.notify_error(error),
            // The editor reports its own saves.
            Reply::Saved { plan, saved } if self.writing.take_if(|writing| writing == plan).is_some() => {
                match saved {
                    Ok(version) => {
                        context.notify(NoteKind::Good, format!("saved as version {version} of {}", plan.id));
                        self.written(plan.store, context);
                    }
                    Err(SaveError::Conflict(conflict)) => {
                        let text = format!(
                            "{} changed meanwhile (version {}); review it and try again",
                            plan.id, conflict.current
                        );
                        context.notify(NoteKind::Warning, text);
                        self.written(plan.store, context);
                    }
                    Err(SaveError::Refused(error)) => context.notify_error(error),
                }
            }
            Reply::Plan { .. }
            | Reply::Text(..)
            | Reply::Found(..)
            | Reply::Saved { .. }
            | Reply::Edited { .. }
            | Reply::Note(_)
            | Reply::Run(_)
            | Reply::History(_) => {}
        }
    }

    fn take(
        &mut self,
        store: usize,
        ticket: u64,
        heads: &Result<Box<Page<ListedPlan>>, ErrorMessage>,
        context: &mut Context<'_>,
    ) {
        let selected = self.selected();
        let Some(side) = self.sides.get_mut(store).filter(|side| side.request == Some(ticket)) else {
            return;
        };
        side.request = None;
        match heads {
            Ok(heads) => {
                if !side.is_next_page {
                    side.heads.clear();
                }
                side.heads.extend(heads.items.iter().cloned());
                (side.total, side.next) = (heads.total, heads.next.clone());
                (side.error, side.warnings) = (None, heads.warnings.clone());
            }
            Err(error) => side.error = Some(error.clone()),
        }
        let stale = side.stale;
        self.list = merge::merge(
            self.sides.iter().map(|side| (side.heads.as_slice(), side.next.is_some())),
            self.sort,
        );
        if self.sort == Sort::Attention {
            let group =
                |&(store, place): &(usize, usize)| self.sides[store].heads[place].status.sign.plan_group();
            self.list.sort_by_key(group);
        }
        // The same plan stays selected, even if its position changed.
        let again = |(store, place): &(usize, usize)| {
            selected.as_ref().is_some_and(|plan| {
                plan.store == *store && plan.id == self.sides[*store].heads[*place].summary.id
            })
        };
        self.selected = self.list.iter().position(again).unwrap_or(self.selected);
        if stale {
            self.reload_store(store, context);
        }
    }

    /// Keeps the selection inside the list, and loads more plans near its end.
    fn settle(&mut self, context: &mut Context<'_>) {
        self.selected = self.selected.min(self.list.len().saturating_sub(1));
        let rows = rows(context.area).max(1);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows));
        self.top = self.top.min(self.list.len().saturating_sub(rows));
        if self.selected + 2 * rows < self.list.len() {
            return;
        }
        let wanting = self.sides.iter().enumerate().filter(|(_, side)| {
            side.next.is_some() && side.request.is_none() && side.heads.len() < PLANS_LOADED_MAX
        });
        let stores: Vec<usize> = wanting.map(|(store, _)| store).collect();
        for store in stores {
            self.tickets += 1;
            let ticket = self.tickets;
            let query = self.query(PLANS_PAGE_SIZE, self.sides[store].next.clone());
            let side = &mut self.sides[store];
            (side.request, side.is_next_page) = (Some(ticket), true);
            context.effects.push(Effect::LoadPlanPage { store, ticket, query });
        }
    }
}

/// Rows below the plans: what the selected plan is about, under a line with its name.
fn detail_rows(area: Rect) -> u16 {
    match area.height {
        0..16 => 0,
        16..30 => 4,
        _ => 6,
    }
}

/// The number of plans that fit: one row is for the column names, one for the filter and warnings.
fn rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(2 + detail_rows(area)))
}

/// The plan in a row of the terminal, counted from the first visible plan.
fn row_at(area: Rect, row: u16) -> Option<usize> {
    let first = area.y + 1;
    (first..first + rows(area) as u16).contains(&row).then(|| usize::from(row - first))
}
