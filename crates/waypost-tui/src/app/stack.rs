//! The screens on the stack, as one type: each call goes to the screen that it is about.

use ratatui::crossterm::event::KeyEvent;

use crate::editor::Editor;
use crate::help::Help;
use crate::history::History;
use crate::keys::{Action, Place};
use crate::plan::PlanKey;
use crate::plan_list::PlanList;
use crate::plan_text::TextView;
use crate::run_view::RunView;
use crate::screen::{Context, Destination, Event, Settings};

/// Identifies a screen.
pub(super) type ScreenName = (Place, Option<PlanKey>);

/// A screen. Screens lower on the stack keep their state.
#[derive(Debug)]
pub enum Screen {
    PlanList(Box<PlanList>),
    Editor(Box<Editor>),
    Run(Box<RunView>),
    History(Box<History>),
    Text(Box<TextView>),
    Help(Box<Help>),
}

impl From<Destination> for Screen {
    fn from(destination: Destination) -> Self {
        match destination {
            Destination::Editor(plan) => Self::Editor(Box::new(Editor::new(plan))),
            Destination::Task(plan, task) => Self::Editor(Box::new(Editor::at_task(plan, task))),
            Destination::Text(plan) => Self::Text(Box::new(TextView::new(plan))),
            Destination::Run(plan, intent) => Self::Run(Box::new(RunView::new(plan, intent))),
            Destination::History(plan) => Self::History(Box::new(History::new(plan))),
            Destination::HistorySince(plan, version) => {
                Self::History(Box::new(History::since(plan, version)))
            }
            Destination::Help(place) => Self::Help(Box::new(Help::new(place))),
        }
    }
}

impl Screen {
    /// The actions that the footer shows.
    pub(super) fn actions(&self, settings: &Settings) -> Vec<Action> {
        match self {
            Self::PlanList(_) => PlanList::KEYS.to_vec(),
            Self::Editor(_) => Editor::KEYS.to_vec(),
            Self::Run(run) => run.keys(settings),
            Self::History(_) => History::KEYS.to_vec(),
            Self::Text(_) => TextView::KEYS.to_vec(),
            Self::Help(_) => vec![Action::Back],
        }
    }

    /// The place whose key bindings apply.
    pub fn place(&self) -> Place {
        match self {
            Self::PlanList(_) => Place::PlanList,
            Self::Editor(editor) => editor.place(),
            Self::Run(_) => Place::Run,
            Self::History(_) => Place::History,
            Self::Text(_) => Place::Text,
            Self::Help(_) => Place::Anywhere,
        }
    }

    /// Whether typed characters are text; only the bindings of the focused part apply then.
    pub fn is_typing(&self) -> bool {
        match self {
            Self::PlanList(plan_list) => plan_list.is_typing(),
            Self::Editor(editor) => editor.is_typing(),
            Self::Run(run) => run.is_typing(),
            Self::Text(text) => text.is_typing(),
            Self::History(_) | Self::Help(_) => false,
        }
    }

    /// Whether a key that is not typed goes to the screen before it becomes an action: a digit chooses an answer.
    pub(super) fn takes(&self, key: KeyEvent) -> bool {
        match self {
            Self::Run(run) => run.choice_of(key).is_some(),
            Self::PlanList(_) | Self::Editor(_) | Self::History(_) | Self::Text(_) | Self::Help(_) => false,
        }
    }

    /// Identifies the screen, independent of which part has the focus.
    pub(super) fn name(&self) -> ScreenName {
        match self {
            Self::PlanList(_) => (Place::PlanList, None),
            Self::Editor(editor) => (Place::Editor, Some(editor.plan().clone())),
            Self::Run(run) => (Place::Run, Some(run.plan().clone())),
            Self::History(history) => (Place::History, Some(history.plan().clone())),
            Self::Text(text) => (Place::Text, Some(text.plan().clone())),
            Self::Help(_) => (Place::Anywhere, None),
        }
    }

    /// The plan that other screens can be opened for.
    pub(super) fn plan(&self) -> Option<PlanKey> {
        match self {
            Self::PlanList(plan_list) => plan_list.selected(),
            Self::Editor(editor) => Some(editor.plan().clone()),
            Self::Run(run) => Some(run.plan().clone()),
            Self::History(history) => Some(history.plan().clone()),
            Self::Text(text) => Some(text.plan().clone()),
            Self::Help(_) => None,
        }
    }

    pub(super) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        match self {
            Self::PlanList(plan_list) => plan_list.update(event, context),
            Self::Editor(editor) => editor.update(event, context),
            Self::Run(run) => run.update(event, context),
            Self::History(history) => history.update(event, context),
            Self::Text(text) => text.update(event, context),
            Self::Help(help) => help.update(event, context),
        }
    }
}
