//! The list of plans of all stores: pages of summaries, filtered and sorted by the stores and merged here. Holds no plans.

mod draw;
mod merge;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use waypost_core::PlanChanges;
use waypost_service::EditOp;
use waypost_store::{ArchiveFilter, Page, PlanSummary, Query, Sort};

use crate::dialog::{Choice, Dialog};
use crate::keys::Action;
use crate::messages::{Effect, Reply, SaveError};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::PlanKey;
use crate::screen::{Context, Destination, Event, Flow};
use crate::text_input::TextInput;

/// Number of plans loaded at a time.
pub const PLANS_PAGE_SIZE: usize = 200;
/// Maximum number of plans loaded from one store; others can be found with the filter.
pub const PLANS_LOADED_MAX: usize = 5_000;

/// The loaded plans of one store.
#[derive(Debug, Default)]
struct StoreList {
    heads: Vec<PlanSummary>,
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

/// What the open text dialog is for.
#[derive(Clone, Debug)]
enum Prompt {
    Title(usize),
    Status(PlanKey, u64),
}

/// The list of plans. Loaded when it is shown.
#[derive(Debug, Default)]
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
    /// The plan whose note is being saved.
    writing: Option<PlanKey>,
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
        self.head(self.selected).map(|(store, head)| PlanKey { store, id: head.id.clone() })
    }

    fn head(&self, at: usize) -> Option<(usize, &PlanSummary)> {
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
            Event::Tick => {}
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
                self.sort = match self.sort {
                    Sort::Updated => Sort::Created,
                    Sort::Created => Sort::Title,
                    Sort::Title => Sort::Id,
                    Sort::Id => Sort::Urgency,
                    Sort::Urgency => Sort::Attention,
                    Sort::Attention => Sort::Updated,
                };
                self.selected = 0;
                self.reload(context);
            }
            Action::Archived => {
                self.shelf = match self.shelf {
                    ArchiveFilter::Current => ArchiveFilter::Archived,
                    ArchiveFilter::Archived => ArchiveFilter::All,
                    ArchiveFilter::All => ArchiveFilter::Current,
                };
                self.selected = 0;
                self.reload(context);
            }
            Action::Refresh => self.reload(context),
            Action::New => self.ask_title(context),
            Action::Status => self.ask_status(context),
            Action::Quit => context.go(Flow::Quit),
            Action::Back if !self.filter.text().is_empty() => {
                self.filter = TextInput::line("");
                self.reload(context);
            }
            Action::Back => context.go(Flow::Pop),
            _ => {}
        }
    }

    fn open(&self, context: &mut Context<'_>) {
        if let Some(plan) = self.selected() {
            context.go(Flow::Open(Destination::Editor(plan)));
        }
    }

    fn ask_title(&mut self, context: &mut Context<'_>) {
        let store = self.selected().map_or(0, |plan| plan.store);
        let name = context.settings.stores.get(store).cloned().unwrap_or_default();
        self.prompt = Some(Prompt::Title(store));
        let lines = vec![format!("The title. The plan is stored in `{name}`.")];
        context.ask(Dialog::ask("New plan", lines, "", "create"));
    }

    fn ask_status(&mut self, context: &mut Context<'_>) {
        let Some((store, head)) = self.head(self.selected) else { return };
        let lines = vec!["A note for readers; it has no effect. Leave it empty to remove it.".to_owned()];
        let dialog = Dialog::ask(format!("Note on {}", head.id), lines, &head.status, "save");
        self.prompt = Some(Prompt::Status(PlanKey { store, id: head.id.clone() }, head.version));
        context.ask(dialog);
    }

    fn chosen(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) {
        let (Choice::Take, Some(prompt)) = (choice, self.prompt.take()) else { return };
        match prompt {
            Prompt::Title(_) if typed.trim().is_empty() => {
                context.notify(NoteKind::Warning, "a plan needs a title")
            }
            Prompt::Title(store) => {
                context.effects.push(Effect::CreatePlan { store, title: typed.trim().to_owned() });
            }
            Prompt::Status(plan, version) => {
                let changes = PlanChanges { status: Some(typed.trim().to_owned()), ..PlanChanges::default() };
                let edits = vec![EditOp::RevisePlan(Box::new(changes))];
                self.writing = Some(plan.clone());
                context.effects.push(Effect::Save { plan, version, edits });
            }
        }
    }

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

    /// Reloads every store, from the first plan up to as many as are loaded.
    fn reload(&mut self, context: &mut Context<'_>) {
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
            _ => {}
        }
    }

    fn take(
        &mut self,
        store: usize,
        ticket: u64,
        heads: &Result<Box<Page<PlanSummary>>, ErrorMessage>,
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
        // The same plan stays selected, even if its position changed.
        let again = |(store, place): &(usize, usize)| {
            selected
                .as_ref()
                .is_some_and(|plan| plan.store == *store && plan.id == self.sides[*store].heads[*place].id)
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

/// The number of plans that fit: one row is for the column names, one for the filter and warnings.
fn rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(2))
}

/// The plan in a row of the terminal, counted from the first visible plan.
fn row_at(area: Rect, row: u16) -> Option<usize> {
    let first = area.y + 1;
    (first..first + rows(area) as u16).contains(&row).then(|| usize::from(row - first))
}
