//! The table of key bindings. A key means the same on every screen that has it, and the same as in the dashboard. The footer,
//! the help screen and the commands of the palette are drawn from it, and `[tui.keys]` in the configuration changes it.

mod chord;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use ratatui::crossterm::event::KeyEvent;
use waypost_core::nearest;

pub use chord::Chord;

/// Where a key binding applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Place {
    Anywhere,
    #[strum(serialize = "browser")]
    PlanList,
    Editor,
    Form,
    Picker,
    Run,
    History,
    Text,
}

impl Place {
    /// All places in the order of the help screen, with their titles.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::PlanList, "Plans"),
        (Self::Editor, "Plan editor"),
        (Self::Form, "Task form"),
        (Self::Picker, "Task picker"),
        (Self::Run, "Run view"),
        (Self::History, "History"),
        (Self::Text, "Text of a plan"),
        (Self::Anywhere, "Everywhere"),
    ];

    /// Its name in `[tui.keys]`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An action that keys are bound to. Its name in `[tui.keys]` is the variant in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    Help,
    Palette,
    Quit,
    Filter,
    Next,
    Previous,
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
    Upstream,
    Downstream,
    Graph,
    Fold,
    Set,
    Status,
    NextField,
    PreviousField,
    Accept,
    Toggle,
    Focus,
    Zoom,
    Follow,
    Times,
    Approve,
    Questions,
    Reject,
    Pause,
    Hold,
    Cancel,
    CancelPlan,
    Retry,
    RetryAll,
    Stop,
    ViewTasks,
    Watch,
    History,
    ViewText,
    Mark,
    Restore,
    Suspend,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub place: Place,
    pub action: Action,
    pub keys: &'static [&'static str],
    /// A word or two for the footer.
    pub hint: &'static str,
    /// The line of the help screen.
    pub help: &'static str,
}

impl Binding {
    /// Its name in `[tui.keys]`: `editor.delete`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.place.as_str(), <&str>::from(self.action))
    }
}

/// An action, its keys, the hint for the footer, and the line of the help screen.
type Row = (Action, &'static [&'static str], &'static str, &'static str);

const PLAN_LIST: &[Row] = &[
    (Action::Open, &["enter"], "open", "open the plan: a draft in the editor, another plan in its run view"),
    (Action::Approve, &["a"], "review", "review the plan for approval"),
    (Action::Questions, &["Q"], "", "answer what clones of the repository disagree about"),
    (Action::Filter, &["/"], "filter", "show only plans with this text in their name or title"),
    (Action::Next, &["n"], "next", "go to the next plan that needs you"),
    (Action::Previous, &["p"], "", "go to the previous plan that needs you"),
    (Action::New, &["N", "insert"], "new", "create a new plan"),
    (Action::Set, &["="], "set", "set the status, note, queue or owner of the plan"),
    (Action::RetryAll, &["T"], "retry all", "retry everything of the plan that failed or was cancelled"),
    (Action::Pause, &["P"], "pause", "pause the plan: start no new tasks, here or elsewhere; or resume it"),
    (Action::Edit, &["e"], "", "open the plan in the editor"),
    (Action::Status, &["i"], "note", "set the note on the plan"),
    (Action::Sort, &["o"], "sort", "choose the order"),
    (Action::Archived, &["."], "archived", "show current, archived or all plans"),
    (Action::Refresh, &["f5", "ctrl+l"], "", "reload the list"),
    (Action::ViewTasks, &["1"], "", "show the tasks of the plan, to edit them"),
    (Action::Watch, &["2", "w"], "run", "follow the progress of the plan"),
    (Action::History, &["3", "h"], "history", "show the versions of the plan"),
    (Action::ViewText, &["4"], "text", "read the text of the plan"),
];

const EDITOR: &[Row] = &[
    (
        Action::Edit,
        &["enter", "e"],
        "edit",
        "edit the task: description, notes, complexity, priority, executor, parent, dependencies, tools, skip",
    ),
    (Action::Save, &["s", "ctrl+s"], "save", "save the edits as one version"),
    (Action::Execute, &["x"], "execute", "run the plan in this process"),
    (Action::New, &["N", "insert"], "new", "add a task below this one"),
    (Action::Delete, &["D", "delete"], "delete", "delete the task; dependants are listed first"),
    (Action::Set, &["="], "set", "choose the status or another field of the task or the plan"),
    (Action::Undo, &["z"], "undo", "undo the last edit"),
    (Action::Redo, &["Z", "ctrl+r", "ctrl+y"], "", "redo an undone edit"),
    (Action::Dependencies, &["b"], "depends on", "choose what the task depends on"),
    (Action::Skip, &["S"], "skip", "skip the task, or not"),
    (Action::Zoom, &["f"], "focus", "show everything about the task on the whole screen, or not"),
    (Action::Filter, &["/"], "find", "go to the next task with this text"),
    (Action::Next, &["n"], "next", "go to the next match of the search, or to the next problem"),
    (Action::Previous, &["p"], "", "go to the previous match or problem"),
    (Action::Fold, &["space"], "fold", "show or hide the subtasks"),
    (Action::Upstream, &["u"], "", "go to a task that this one depends on"),
    (Action::Downstream, &["d"], "", "go to a task that depends on this one"),
    (Action::MoveUp, &["K", "alt+up"], "", "move the task up among its siblings"),
    (Action::MoveDown, &["J", "alt+down"], "", "move the task down among its siblings"),
    (Action::Indent, &[">", "alt+right"], "", "make it a subtask of the task above"),
    (Action::Outdent, &["<", "alt+left"], "", "move it out of its parent"),
    (Action::Graph, &["g"], "graph", "show or hide the drawn graph"),
    (Action::External, &["E"], "$EDITOR", "edit the whole plan as text in $EDITOR"),
    (Action::Approve, &["a"], "review", "review the plan for approval"),
    (Action::Questions, &["Q"], "", "answer what clones of the repository disagree about"),
    (Action::Watch, &["2", "w"], "run", "follow the progress of the plan"),
    (Action::History, &["3", "h"], "history", "show the versions of the plan"),
    (Action::ViewText, &["4"], "text", "read the text of the plan"),
];

const FORM: &[Row] = &[
    (Action::NextField, &["tab", "down"], "next field", "go to the next field"),
    (Action::PreviousField, &["backtab", "up"], "previous", "go to the previous field"),
    (Action::Accept, &["enter", "ctrl+s"], "keep", "keep the changes"),
    (Action::External, &["ctrl+e"], "$EDITOR", "edit the field in $EDITOR"),
    (Action::Back, &["esc"], "discard", "discard the changes"),
];

const PICKER: &[Row] = &[
    (Action::Toggle, &["tab"], "choose", "choose the task, or not"),
    (Action::Accept, &["enter", "ctrl+s"], "keep", "keep the choice"),
    (Action::Back, &["esc"], "discard", "discard the choice"),
];

const RUN: &[Row] = &[
    (
        Action::Open,
        &["enter"],
        "open",
        "answer the question of the task, complete a task for a person, or show the task on the whole screen",
    ),
    (Action::Approve, &["a"], "review", "review what will run, to approve or reject it (only a person can)"),
    (Action::Reject, &["R"], "reject", "reject it, with a reason"),
    (Action::Questions, &["Q"], "questions", "answer what clones of the repository disagree about"),
    (Action::Execute, &["x"], "execute", "run the plan in this process"),
    (
        Action::Stop,
        &["X"],
        "stop",
        "start no new tasks in the run of this process; again: stop running tasks",
    ),
    (Action::Set, &["="], "set", "choose the status of the task"),
    (Action::Pause, &["P"], "pause", "pause the plan: start no new tasks, here or elsewhere; or resume it"),
    (Action::Hold, &["H"], "hold", "hold the task, so that it does not start; or lift the hold"),
    (Action::Cancel, &["c"], "cancel", "cancel the task"),
    (Action::CancelPlan, &["C"], "", "cancel the whole plan"),
    (Action::Retry, &["r", "t"], "retry", "retry the task, and what was skipped because of it"),
    (Action::RetryAll, &["T"], "retry all", "retry everything that failed or was cancelled"),
    (Action::Zoom, &["f"], "focus", "show the task and its log on the whole screen, or not"),
    (Action::Filter, &["/"], "find", "search the log"),
    (Action::Next, &["n"], "next", "go to the next match in the log, or to the next error"),
    (Action::Previous, &["p"], "", "go to the previous match or error"),
    (Action::Times, &["L"], "times", "show when each line of the log was written, or no longer"),
    (Action::Follow, &["F"], "follow", "follow the most interesting task and the end of its log"),
    (Action::Focus, &["tab"], "log", "move the focus between the tasks and the text"),
    (Action::Edit, &["e", "1"], "edit", "open the plan in the editor"),
    (Action::History, &["3", "h"], "history", "show the versions of the plan"),
    (Action::ViewText, &["4"], "text", "read the text of the plan"),
];

const HISTORY: &[Row] = &[
    (Action::Mark, &["m"], "compare from", "compare other versions with this one, or not"),
    (Action::Restore, &["v"], "restore", "restore this version, as a new version"),
    (Action::Focus, &["tab"], "differences", "move the focus between versions and differences"),
    (Action::Zoom, &["f"], "focus", "show the differences on the whole screen, or not"),
    (Action::Approve, &["a"], "", "review the plan for approval"),
    (Action::Edit, &["e", "1"], "edit", "open the plan in the editor"),
    (Action::Watch, &["2", "w"], "run", "follow the progress of the plan"),
    (Action::ViewText, &["4"], "text", "read the text of the plan"),
];

const TEXT: &[Row] = &[
    (Action::Filter, &["/"], "find", "search the text"),
    (Action::Next, &["n"], "next", "go to the next match, or to the next heading"),
    (Action::Previous, &["p"], "previous", "go to the previous match or heading"),
    (Action::Approve, &["a"], "", "review the plan for approval"),
    (Action::Edit, &["e", "1"], "edit", "open the plan in the editor"),
    (Action::Watch, &["2", "w"], "run", "follow the progress of the plan"),
    (Action::History, &["3", "h"], "history", "show the versions of the plan"),
];

const ANYWHERE: &[Row] = &[
    (Action::Up, &["up", "k"], "", "one up"),
    (Action::Down, &["down", "j"], "", "one down"),
    (Action::PageUp, &["pageup", "ctrl+b"], "", "a page up"),
    (Action::PageDown, &["pagedown", "ctrl+f"], "", "a page down"),
    (Action::First, &["home"], "", "go to the first"),
    (Action::Last, &["end", "G"], "", "go to the last"),
    (Action::Palette, &["ctrl+k"], "go to", "go to a plan, a task or a command"),
    (Action::Help, &["?", "f1"], "help", "show the keys"),
    (Action::Back, &["esc", "q"], "back", "go back"),
    (Action::Quit, &["ctrl+c"], "quit", "quit Waypost"),
    (Action::Suspend, &["ctrl+z"], "suspend", "suspend; `fg` returns"),
];

fn rows_of(place: Place) -> &'static [Row] {
    match place {
        Place::PlanList => PLAN_LIST,
        Place::Editor => EDITOR,
        Place::Form => FORM,
        Place::Picker => PICKER,
        Place::Run => RUN,
        Place::History => HISTORY,
        Place::Text => TEXT,
        Place::Anywhere => ANYWHERE,
    }
}

/// The whole table.
pub fn bindings() -> impl Iterator<Item = Binding> {
    Place::ALL.into_iter().flat_map(|(place, _)| {
        let rows = rows_of(place).iter();
        rows.map(move |&(action, keys, hint, help)| Binding { place, action, keys, hint, help })
    })
}

/// Names that earlier versions had, and today's.
const RENAMED: [(&str, &str); 3] =
    [("browser.retry", "browser.retry_all"), ("editor.problems", "editor.next"), ("run.answer", "run.open")];

/// An invalid entry of `[tui.keys]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKeys {
    /// The name of the entry.
    pub name: String,
    /// The problem, and what to write instead.
    pub why: String,
}

impl fmt::Display for BadKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[tui.keys] {}: {}", self.name, self.why)
    }
}

/// The problem with an unknown name, with the nearest known one.
fn unknown(name: &str) -> String {
    let names: Vec<String> = bindings().map(|binding| binding.name()).collect();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("unknown action; did you mean `{near}`?"),
        None => "unknown action; docs/tui.md lists them".to_owned(),
    }
}

/// The table with the user's changes.
#[derive(Clone, Debug)]
pub struct Keys {
    rows: Vec<(Binding, Vec<Chord>)>,
}

impl Default for Keys {
    fn default() -> Self {
        let chords = |binding: &Binding| binding.keys.iter().filter_map(|key| Chord::parse(key)).collect();
        Self { rows: bindings().map(|binding| (binding, chords(&binding))).collect() }
    }
}

impl Keys {
    /// The table with other keys for some actions: `editor.delete` → `["D"]`.
    pub fn with(changes: &BTreeMap<String, Vec<String>>) -> Result<Self, Vec<BadKeys>> {
        let mut keys = Self::default();
        let mut bad = Vec::new();
        for (name, wanted) in changes {
            let new = RENAMED.iter().find(|(old, _)| old == name).map_or(name.as_str(), |(_, new)| new);
            let Some((_, chords)) = keys.rows.iter_mut().find(|(binding, _)| binding.name() == new) else {
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

    /// Keys that are bound twice in one place.
    fn clashes(&self) -> Vec<BadKeys> {
        let mut seen: HashMap<(Place, Chord), &Binding> = HashMap::new();
        let mut bad = Vec::new();
        for (binding, chords) in &self.rows {
            for &chord in chords {
                if let Some(other) = seen.insert((binding.place, chord), binding) {
                    let why = format!("{chord} is also the key of {}", other.name());
                    bad.push(BadKeys { name: binding.name(), why });
                }
            }
        }
        bad
    }

    /// The action of `key` in `place`. The place's own bindings take precedence over those of [`Place::Anywhere`].
    pub fn action(&self, place: Place, key: KeyEvent) -> Option<Action> {
        self.action_only(place, key).or_else(|| self.action_only(Place::Anywhere, key))
    }

    /// The action of `key` among the place's own bindings. For places where other keys are text.
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

    /// The first key of an action in a place, and its hint for the footer.
    pub fn hint(&self, place: Place, action: Action) -> Option<(String, &'static str)> {
        let found = self
            .rows(place)
            .chain(self.rows(Place::Anywhere))
            .find(|(binding, _)| binding.action == action)?;
        Some((found.1.first()?.to_string(), found.0.hint))
    }
}
