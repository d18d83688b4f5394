//! The table of key bindings; the editor's are those of clido. The footer and the help screen are drawn from it, and
//! `[tui.keys]` of the configuration changes it.

mod chord;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use ratatui::crossterm::event::KeyEvent;
use waypost_core::nearest;

pub use chord::Chord;

/// Where a key has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Anywhere,
    PlanList,
    Editor,
    Form,
    Picker,
    /// In the run view.
    Run,
    /// In the history of a plan.
    History,
}

impl Place {
    /// All of them, in the order of the help screen.
    pub const ALL: [Self; 7] =
        [Self::PlanList, Self::Editor, Self::Form, Self::Picker, Self::Run, Self::History, Self::Anywhere];

    /// The word for it, as `[tui.keys]` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::PlanList => "browser",
            Self::Editor => "editor",
            Self::Form => "form",
            Self::Picker => "picker",
            Self::Run => "run",
            Self::History => "history",
        }
    }

    /// What the help screen calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Anywhere => "Everywhere",
            Self::PlanList => "Plans",
            Self::Editor => "Plan editor",
            Self::Form => "Task form",
            Self::Picker => "Task picker",
            Self::Run => "Run view",
            Self::History => "History",
        }
    }
}

macro_rules! actions {
    ($($action:ident),* $(,)?) => {
        /// What a key can ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Action { $($action),* }
    };
}

actions![
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    Help,
    Quit,
    Filter,
    Sort,
    Archived,
    Refresh,
    New,
    Edit,
    Delete,
    Skip,
    MoveUp,
    MoveDown,
    Indent,
    Outdent,
    Save,
    Execute,
    Undo,
    Redo,
    External,
    Dependencies,
    Graph,
    Problems,
    Fold,
    Status,
    NextField,
    PreviousField,
    Accept,
    Toggle,
    Focus,
    Follow,
    Approve,
    Reject,
    Pause,
    Cancel,
    CancelPlan,
    Retry,
    RetryAll,
    Answer,
    Stop,
    Watch,
    History,
    Mark,
    Restore,
    Suspend,
];

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub place: Place,
    pub action: Action,
    /// Its name in `[tui.keys]`, after the place: `editor.delete`.
    pub name: &'static str,
    /// The keys that do it.
    pub keys: &'static [&'static str],
    /// What it does, for the help screen.
    pub help: &'static str,
    /// What it does in a word or two, for the footer.
    pub hint: &'static str,
}

const fn row(
    place: Place,
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding { place, action, name, keys, help, hint }
}

pub const BINDINGS: &[Binding] = &[
    row(Place::PlanList, Action::Open, "open", &["enter"], "open", "open the plan in the editor"),
    row(
        Place::PlanList,
        Action::Filter,
        "filter",
        &["/"],
        "filter",
        "show only plans with this text in their name or title",
    ),
    row(
        Place::PlanList,
        Action::Sort,
        "sort",
        &["o"],
        "sort",
        "change the order: updated, created, title, name, urgency, waiting for you",
    ),
    row(
        Place::PlanList,
        Action::Archived,
        "archived",
        &["z"],
        "archived",
        "show current, archived or all plans",
    ),
    row(Place::PlanList, Action::New, "new", &["n"], "new", "create a plan"),
    row(Place::PlanList, Action::Status, "status", &["s"], "note", "set the note on the plan"),
    row(Place::PlanList, Action::Refresh, "refresh", &["f5", "ctrl+l"], "refresh", "reload the list"),
    row(Place::PlanList, Action::Watch, "watch", &["w"], "run view", "follow the progress of the plan"),
    row(Place::PlanList, Action::History, "history", &["h"], "history", "show the versions of the plan"),
    row(
        Place::Editor,
        Action::Edit,
        "edit",
        &["enter"],
        "edit",
        "edit the task: description, notes, complexity, dependencies, tools, skip",
    ),
    row(Place::Editor, Action::New, "new", &["n"], "new", "add a task below this one"),
    row(
        Place::Editor,
        Action::Delete,
        "delete",
        &["d", "delete"],
        "delete",
        "delete the task; dependants are listed first",
    ),
    row(Place::Editor, Action::Skip, "skip", &["space"], "skip", "skip the task, or not"),
    row(
        Place::Editor,
        Action::MoveUp,
        "move_up",
        &["r", "alt+up"],
        "up",
        "move the task up among its siblings",
    ),
    row(
        Place::Editor,
        Action::MoveDown,
        "move_down",
        &["f", "alt+down"],
        "down",
        "move the task down among its siblings",
    ),
    row(
        Place::Editor,
        Action::Indent,
        "indent",
        &[">", "alt+right"],
        "indent",
        "make it a subtask of the task above",
    ),
    row(
        Place::Editor,
        Action::Outdent,
        "outdent",
        &["<", "alt+left"],
        "outdent",
        "move it out of its parent",
    ),
    row(
        Place::Editor,
        Action::Dependencies,
        "dependencies",
        &["a"],
        "depends on",
        "choose what the task depends on",
    ),
    row(Place::Editor, Action::Fold, "fold", &["tab"], "fold", "show or hide the subtasks"),
    row(Place::Editor, Action::Undo, "undo", &["u"], "undo", "undo the last edit"),
    row(Place::Editor, Action::Redo, "redo", &["ctrl+r", "ctrl+y"], "redo", "redo an undone edit"),
    row(Place::Editor, Action::Filter, "filter", &["/"], "find", "go to the next task with this text"),
    row(
        Place::Editor,
        Action::Problems,
        "problems",
        &["p"],
        "problems",
        "go to the next task with a problem",
    ),
    row(Place::Editor, Action::Graph, "graph", &["g"], "graph", "show or hide the drawn graph"),
    row(
        Place::Editor,
        Action::External,
        "external",
        &["e"],
        "$EDITOR",
        "edit the whole plan as text in $EDITOR",
    ),
    row(Place::Editor, Action::Save, "save", &["s", "ctrl+s"], "save", "save the edits as one version"),
    row(Place::Editor, Action::Execute, "execute", &["x"], "execute", "run the plan"),
    row(Place::Editor, Action::Watch, "watch", &["w"], "run view", "follow the progress of the plan"),
    row(Place::Editor, Action::History, "history", &["h"], "history", "show the versions of the plan"),
    row(Place::Form, Action::NextField, "next_field", &["tab", "down"], "next field", "go to the next field"),
    row(
        Place::Form,
        Action::PreviousField,
        "previous_field",
        &["backtab", "up"],
        "previous",
        "go to the previous field",
    ),
    row(Place::Form, Action::Accept, "accept", &["enter", "ctrl+s"], "keep", "keep the changes"),
    row(Place::Form, Action::External, "external", &["ctrl+e"], "$EDITOR", "edit the field in $EDITOR"),
    row(Place::Form, Action::Back, "back", &["esc"], "discard", "discard the changes"),
    row(Place::Picker, Action::Toggle, "toggle", &["tab"], "choose", "choose the task, or not"),
    row(Place::Picker, Action::Accept, "accept", &["enter", "ctrl+s"], "keep", "keep the choice"),
    row(Place::Picker, Action::Back, "back", &["esc"], "discard", "discard the choice"),
    row(Place::Run, Action::Execute, "execute", &["x"], "run here", "run the plan in this process"),
    row(
        Place::Run,
        Action::Stop,
        "stop",
        &["s"],
        "stop",
        "start no new tasks in the run of this process; again: stop running tasks",
    ),
    row(
        Place::Run,
        Action::Approve,
        "approve",
        &["a"],
        "approve",
        "approve what is shown (only a person can)",
    ),
    row(Place::Run, Action::Reject, "reject", &["R"], "reject", "reject it, with a reason"),
    row(
        Place::Run,
        Action::Answer,
        "answer",
        &["enter", "i"],
        "answer",
        "answer the question of the task, or complete a task for a person",
    ),
    row(
        Place::Run,
        Action::Pause,
        "pause",
        &["p"],
        "pause",
        "start no new tasks of the plan, here or elsewhere; or resume it",
    ),
    row(Place::Run, Action::Cancel, "cancel", &["c"], "cancel", "cancel the task"),
    row(Place::Run, Action::CancelPlan, "cancel_plan", &["C"], "cancel plan", "cancel the whole plan"),
    row(
        Place::Run,
        Action::Retry,
        "retry",
        &["t"],
        "retry",
        "retry the task, and what was skipped because of it",
    ),
    row(
        Place::Run,
        Action::RetryAll,
        "retry_all",
        &["T"],
        "retry all",
        "retry everything that failed or was cancelled",
    ),
    row(
        Place::Run,
        Action::Follow,
        "follow",
        &["f"],
        "follow",
        "follow the most interesting task and the end of its log",
    ),
    row(Place::Run, Action::Focus, "focus", &["tab"], "log", "move the focus between the tasks and the text"),
    row(Place::Run, Action::Edit, "edit", &["e"], "edit", "open the plan in the editor"),
    row(Place::Run, Action::History, "history", &["h"], "history", "show the versions of the plan"),
    row(
        Place::History,
        Action::Mark,
        "mark",
        &["space", "m"],
        "compare from",
        "compare other versions with this one, or not",
    ),
    row(
        Place::History,
        Action::Restore,
        "restore",
        &["r"],
        "restore",
        "restore this version, as a new version",
    ),
    row(
        Place::History,
        Action::Focus,
        "focus",
        &["tab"],
        "differences",
        "move the focus between versions and differences",
    ),
    row(Place::Anywhere, Action::Up, "up", &["up", "k"], "", "one up"),
    row(Place::Anywhere, Action::Down, "down", &["down", "j"], "", "one down"),
    row(Place::Anywhere, Action::PageUp, "page_up", &["pageup", "ctrl+b"], "", "a page up"),
    row(Place::Anywhere, Action::PageDown, "page_down", &["pagedown", "ctrl+f"], "", "a page down"),
    row(Place::Anywhere, Action::First, "first", &["home"], "", "go to the first"),
    row(Place::Anywhere, Action::Last, "last", &["end", "G"], "", "go to the last"),
    row(Place::Anywhere, Action::Help, "help", &["?", "f1"], "help", "show the keys"),
    row(Place::Anywhere, Action::Back, "back", &["esc", "q"], "back", "go back"),
    row(Place::Anywhere, Action::Quit, "quit", &["ctrl+c"], "quit", "quit Waypost"),
    row(Place::Anywhere, Action::Suspend, "suspend", &["ctrl+z"], "suspend", "suspend; `fg` returns"),
];

/// A line of `[tui.keys]` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKeys {
    /// The name of the line.
    pub name: String,
    /// What is wrong with it, and what to write instead.
    pub why: String,
}

impl fmt::Display for BadKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[tui.keys] {}: {}", self.name, self.why)
    }
}

/// Why a name means nothing, with the nearest one that does.
fn unknown(name: &str) -> String {
    let names: Vec<String> =
        BINDINGS.iter().map(|binding| format!("{}.{}", binding.place.as_str(), binding.name)).collect();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("unknown action; did you mean `{near}`?"),
        None => "unknown action; docs/tui.md lists them".to_owned(),
    }
}

/// The table as it holds for one person.
#[derive(Clone, Debug)]
pub struct Keys {
    rows: Vec<(Binding, Vec<Chord>)>,
}

impl Default for Keys {
    fn default() -> Self {
        let chords = |binding: &Binding| binding.keys.iter().filter_map(|key| Chord::parse(key)).collect();
        Self { rows: BINDINGS.iter().map(|binding| (*binding, chords(binding))).collect() }
    }
}

impl Keys {
    /// The table with other keys for some actions: `editor.delete` → `["D"]`.
    pub fn with(changes: &BTreeMap<String, Vec<String>>) -> Result<Self, Vec<BadKeys>> {
        let mut keys = Self::default();
        let mut bad = Vec::new();
        for (name, wanted) in changes {
            let found = keys
                .rows
                .iter_mut()
                .find(|(binding, _)| name.split_once('.') == Some((binding.place.as_str(), binding.name)));
            let Some((_, chords)) = found else {
                bad.push(BadKeys { name: name.clone(), why: unknown(name) });
                continue;
            };
            let parsed: Vec<Option<Chord>> = wanted.iter().map(|key| Chord::parse(key)).collect();
            for (key, _) in wanted.iter().zip(&parsed).filter(|(_, chord)| chord.is_none()) {
                let why = format!("{key:?} is not a key; write one such as d, ctrl+s, alt+up, f5 or space");
                bad.push(BadKeys { name: name.clone(), why });
            }
            *chords = parsed.into_iter().flatten().collect();
        }
        bad.extend(keys.clashes());
        if bad.is_empty() { Ok(keys) } else { Err(bad) }
    }

    /// Keys that would do two things in one place.
    fn clashes(&self) -> Vec<BadKeys> {
        let mut seen: HashMap<(Place, Chord), &Binding> = HashMap::new();
        let mut bad = Vec::new();
        for (binding, chords) in &self.rows {
            for &chord in chords {
                if let Some(other) = seen.insert((binding.place, chord), binding) {
                    let why = format!("{chord} is also the key of {}.{}", other.place.as_str(), other.name);
                    bad.push(BadKeys { name: format!("{}.{}", binding.place.as_str(), binding.name), why });
                }
            }
        }
        bad
    }

    /// What `key` asks for in `place`. The place's own keys go before those of every screen.
    pub fn action(&self, place: Place, key: KeyEvent) -> Option<Action> {
        let chord = Chord::of(key);
        let in_place = |wanted: Place| {
            self.rows
                .iter()
                .find(|(binding, chords)| binding.place == wanted && chords.contains(&chord))
                .map(|(binding, _)| binding.action)
        };
        in_place(place).or_else(|| in_place(Place::Anywhere))
    }

    /// What `key` asks for in `place` alone, where other keys are text.
    pub fn action_only(&self, place: Place, key: KeyEvent) -> Option<Action> {
        let chord = Chord::of(key);
        self.rows(place).find(|(_, chords)| chords.contains(&chord)).map(|(binding, _)| binding.action)
    }

    /// The rows of a place, in the order of the table.
    pub fn rows(&self, place: Place) -> impl Iterator<Item = (&Binding, &[Chord])> {
        self.rows
            .iter()
            .filter(move |(binding, _)| binding.place == place)
            .map(|(binding, chords)| (binding, chords.as_slice()))
    }

    /// The first key of an action in a place and its hint, for the footer.
    pub fn hint(&self, place: Place, action: Action) -> Option<(String, &'static str)> {
        let found = self
            .rows(place)
            .chain(self.rows(Place::Anywhere))
            .find(|(binding, _)| binding.action == action)?;
        Some((found.1.first()?.to_string(), found.0.hint))
    }
}
