//! All plans of all stores: pages of heads, filtered and sorted by the stores and merged here. Holds no plan.

mod draw;
mod merge;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use waypost_core::{Command, PlanChanges};
use waypost_store::{Head, Query, Shelf, Sort};

use crate::app::{Answer, Context, Effect, Event, Flow, Heads, NotSaved, NoteKind, PlanKey, Screen, Trouble};
use crate::dialog::{Choice, Dialog};
use crate::editor::Editor;
use crate::input::Input;
use crate::keys::Action;

/// Heads that are asked for at a time.
pub const HEADS_PAGE: usize = 200;
/// Heads of one store that are held at most; the filter finds the others.
pub const HEADS_HELD_MAX: usize = 5_000;

/// What is known of one store.
#[derive(Debug, Default)]
struct Side {
    heads: Vec<Head>,
    total: u64,
    next: Option<String>,
    /// The question that is on its way.
    asked: Option<u64>,
    /// Whether the page on its way goes on behind what is held.
    goes_on: bool,
    /// Whether somebody wrote since it was asked.
    stale: bool,
    trouble: Option<Trouble>,
    warnings: Vec<String>,
}

/// What a text that is asked for is about.
#[derive(Clone, Debug)]
enum Asked {
    Title(usize),
    Status(PlanKey, u64),
}

/// The list of plans.
#[derive(Debug)]
pub struct Browser {
    sides: Vec<Side>,
    /// The plans that are shown, as (store, place in what is held of it).
    list: Vec<(usize, usize)>,
    filter: Input,
    typing: bool,
    sort: Sort,
    shelf: Shelf,
    selected: usize,
    top: usize,
    tickets: u64,
    asked: Option<Asked>,
    /// The plan whose status is being written.
    writing: Option<PlanKey>,
}

impl Default for Browser {
    fn default() -> Self {
        Self::new()
    }
}

impl Browser {
    /// An empty list, to be filled when it is shown.
    pub fn new() -> Self {
        Self {
            sides: Vec::new(),
            list: Vec::new(),
            filter: Input::line(""),
            typing: false,
            sort: Sort::Updated,
            shelf: Shelf::Current,
            selected: 0,
            top: 0,
            tickets: 0,
            asked: None,
            writing: None,
        }
    }

    /// Whether something on it changes as time goes by: the ages do.
    pub fn has_a_clock(&self) -> bool {
        !self.list.is_empty()
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.typing
    }

    /// The plan that is selected.
    pub fn selected(&self) -> Option<PlanKey> {
        self.head(self.selected).map(|(store, head)| PlanKey { store, id: head.id.clone() })
    }

    fn head(&self, at: usize) -> Option<(usize, &Head)> {
        let &(store, place) = self.list.get(at)?;
        Some((store, self.sides.get(store)?.heads.get(place)?))
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) -> Flow {
        let flow = match event {
            Event::Shown => {
                self.sides.resize_with(context.settings.stores.len(), Side::default);
                self.reload(context);
                Flow::Stay
            }
            Event::Action(action) => self.act(action, context),
            Event::Key(key) => {
                if self.typing {
                    self.type_key(key, context);
                }
                Flow::Stay
            }
            Event::Paste(text) => {
                if self.typing {
                    self.filter.insert(text);
                    self.reload(context);
                }
                Flow::Stay
            }
            Event::Mouse(mouse) => self.mouse(mouse, context),
            Event::Answer(answer) => self.answer(answer, context),
            Event::Written(store, _) => {
                self.written(store, context);
                Flow::Stay
            }
            Event::Chosen(choice, typed) => self.chosen(choice, typed, context),
            Event::Tick => Flow::Stay,
        };
        self.settle(context);
        flow
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) -> Flow {
        let page = draw::rows(context.area).max(1);
        match action {
            Action::Up => self.selected = self.selected.saturating_sub(1),
            Action::Down => self.selected += 1,
            Action::PageUp => self.selected = self.selected.saturating_sub(page),
            Action::PageDown => self.selected += page,
            Action::First => self.selected = 0,
            Action::Last => self.selected = self.list.len(),
            Action::Open => return self.open(),
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
                    Shelf::Current => Shelf::Archived,
                    Shelf::Archived => Shelf::All,
                    Shelf::All => Shelf::Current,
                };
                self.selected = 0;
                self.reload(context);
            }
            Action::Refresh => self.reload(context),
            Action::New => return self.ask_title(context),
            Action::Status => return self.ask_status(),
            Action::Quit => return Flow::Quit,
            Action::Back if !self.filter.text().is_empty() => {
                self.filter = Input::line("");
                self.reload(context);
            }
            Action::Back => return Flow::Pop,
            _ => {}
        }
        Flow::Stay
    }

    fn open(&self) -> Flow {
        self.selected().map_or(Flow::Stay, |plan| Flow::Push(Screen::Editor(Box::new(Editor::new(plan)))))
    }

    fn ask_title(&mut self, context: &Context<'_>) -> Flow {
        let store = self.selected().map_or(0, |plan| plan.store);
        let name = context.settings.stores.get(store).cloned().unwrap_or_default();
        self.asked = Some(Asked::Title(store));
        Flow::Ask(Dialog::ask("New plan", vec![format!("Its title. It is kept in the store `{name}`.")], ""))
    }

    fn ask_status(&mut self) -> Flow {
        let Some((store, head)) = self.head(self.selected) else { return Flow::Stay };
        let lines = vec![
            "Where it stands, in your own words; no machine reads them. Empty takes them away.".to_owned(),
        ];
        let dialog = Dialog::ask(format!("Status of {}", head.id), lines, &head.status);
        self.asked = Some(Asked::Status(PlanKey { store, id: head.id.clone() }, head.version));
        Flow::Ask(dialog)
    }

    fn chosen(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) -> Flow {
        let (Choice::Take, Some(asked)) = (choice, self.asked.take()) else { return Flow::Stay };
        match asked {
            Asked::Title(_) if typed.trim().is_empty() => {
                context.say(NoteKind::Warning, "a plan needs a title")
            }
            Asked::Title(store) => {
                context.effects.push(Effect::CreatePlan { store, title: typed.trim().to_owned() });
            }
            Asked::Status(plan, version) => {
                let changes = PlanChanges { status: Some(typed.trim().to_owned()), ..PlanChanges::default() };
                let commands = vec![Command::RevisePlan(Box::new(changes))];
                self.writing = Some(plan.clone());
                context.effects.push(Effect::Save { plan, version, commands });
            }
        }
        Flow::Stay
    }

    fn type_key(&mut self, key: KeyEvent, context: &mut Context<'_>) {
        match key.code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter = Input::line("");
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

    fn mouse(&mut self, mouse: MouseEvent, context: &Context<'_>) -> Flow {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.selected = self.selected.saturating_sub(3),
            MouseEventKind::ScrollDown => self.selected += 3,
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(row) = draw::row_at(context.area, mouse.row) {
                    let at = self.top + row;
                    if at == self.selected {
                        return self.open();
                    }
                    if at < self.list.len() {
                        self.selected = at;
                    }
                }
            }
            _ => {}
        }
        Flow::Stay
    }

    fn query(&self, limit: usize, after: Option<String>) -> Box<Query> {
        let text = Some(self.filter.text().trim().to_owned()).filter(|text| !text.is_empty());
        Box::new(Query { shelf: self.shelf, text, sort: self.sort, limit, after, ..Query::default() })
    }

    /// Asks every store again, from the first plan to as far as one has come.
    fn reload(&mut self, context: &mut Context<'_>) {
        for store in 0..self.sides.len() {
            self.reload_store(store, context);
        }
    }

    fn reload_store(&mut self, store: usize, context: &mut Context<'_>) {
        self.tickets += 1;
        let ticket = self.tickets;
        let limit = self.sides[store].heads.len().clamp(HEADS_PAGE, HEADS_HELD_MAX);
        let query = self.query(limit, None);
        let side = &mut self.sides[store];
        (side.asked, side.goes_on, side.stale) = (Some(ticket), false, false);
        context.effects.push(Effect::LoadHeads { store, ticket, query });
    }

    /// One question is on its way at a time: who writes without pause must not be answered without pause.
    fn written(&mut self, store: usize, context: &mut Context<'_>) {
        match self.sides.get_mut(store) {
            Some(side) if side.asked.is_some() => side.stale = true,
            Some(_) => self.reload_store(store, context),
            None => {}
        }
    }

    fn answer(&mut self, answer: &Answer, context: &mut Context<'_>) -> Flow {
        match answer {
            Answer::Heads { store, ticket, heads } => self.take(*store, *ticket, heads, context),
            Answer::Created { plan: Ok(plan) } => {
                return Flow::Push(Screen::Editor(Box::new(Editor::new(plan.clone()))));
            }
            Answer::Created { plan: Err(trouble) } => context.say(NoteKind::Wrong, told(trouble)),
            // What the editor writes is told there.
            Answer::Saved { plan, saved } if self.writing.take_if(|writing| writing == plan).is_some() => {
                match saved {
                    Ok(version) => {
                        context.say(NoteKind::Good, format!("{} is at version {version} now", plan.id));
                        self.written(plan.store, context);
                    }
                    Err(NotSaved::Conflict(conflict)) => {
                        let text = format!(
                            "{} was changed meanwhile (version {}); look, and try again",
                            plan.id, conflict.current
                        );
                        context.say(NoteKind::Warning, text);
                        self.written(plan.store, context);
                    }
                    Err(NotSaved::Refused(trouble)) => context.say(NoteKind::Wrong, told(trouble)),
                }
            }
            _ => {}
        }
        Flow::Stay
    }

    fn take(
        &mut self,
        store: usize,
        ticket: u64,
        heads: &Result<Box<Heads>, Trouble>,
        context: &mut Context<'_>,
    ) {
        let selected = self.selected();
        let Some(side) = self.sides.get_mut(store).filter(|side| side.asked == Some(ticket)) else { return };
        side.asked = None;
        match heads {
            Ok(heads) => {
                if !side.goes_on {
                    side.heads.clear();
                }
                side.heads.extend(heads.page.items.iter().cloned());
                (side.total, side.next) = (heads.page.total, heads.page.next.clone());
                (side.trouble, side.warnings) = (None, heads.warnings.clone());
            }
            Err(trouble) => side.trouble = Some(trouble.clone()),
        }
        let stale = side.stale;
        self.list = merge::merge(
            self.sides.iter().map(|side| (side.heads.as_slice(), side.next.is_some())),
            self.sort,
        );
        // The plan that was selected stays so, wherever it stands now.
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

    /// The selection stays on the list, and near its end more is asked for.
    fn settle(&mut self, context: &mut Context<'_>) {
        self.selected = self.selected.min(self.list.len().saturating_sub(1));
        let rows = draw::rows(context.area).max(1);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows));
        self.top = self.top.min(self.list.len().saturating_sub(rows));
        if self.selected + 2 * rows < self.list.len() {
            return;
        }
        let wanting = self.sides.iter().enumerate().filter(|(_, side)| {
            side.next.is_some() && side.asked.is_none() && side.heads.len() < HEADS_HELD_MAX
        });
        let stores: Vec<usize> = wanting.map(|(store, _)| store).collect();
        for store in stores {
            self.tickets += 1;
            let ticket = self.tickets;
            let query = self.query(HEADS_PAGE, self.sides[store].next.clone());
            let side = &mut self.sides[store];
            (side.asked, side.goes_on) = (Some(ticket), true);
            context.effects.push(Effect::LoadHeads { store, ticket, query });
        }
    }
}

/// Trouble in one line.
pub(crate) fn told(trouble: &Trouble) -> String {
    if trouble.hint.is_empty() { trouble.what.clone() } else { format!("{}; {}", trouble.what, trouble.hint) }
}
