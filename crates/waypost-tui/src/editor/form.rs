//! The form of one task. Changes nothing until it is accepted.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_core::{Complexity, Dependency, Json, TaskId, TaskSpec, Work};

use crate::keys::{Action, Keys, Place};
use crate::text_input::TextInput;

/// The fields, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Description,
    Notes,
    Complexity,
    Priority,
    Executor,
    Parent,
    DependsOn,
    Tools,
    Skip,
}

impl Field {
    pub(crate) const ALL: [Self; 9] = [
        Self::Description,
        Self::Notes,
        Self::Complexity,
        Self::Priority,
        Self::Executor,
        Self::Parent,
        Self::DependsOn,
        Self::Tools,
        Self::Skip,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Description => "Description",
            Self::Notes => "Notes",
            Self::Complexity => "Complexity",
            Self::Priority => "Priority",
            Self::Executor => "Executor",
            Self::Parent => "Part of",
            Self::DependsOn => "Depends on",
            Self::Tools => "Tools",
            Self::Skip => "Skip",
        }
    }

    /// The help text of the field.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Description | Self::Notes => "Alt-Enter: new line · Ctrl-E: $EDITOR",
            Self::Complexity => "←/→: change · Space: choose",
            Self::Priority => "←/→: change · Space: choose; a higher one starts first",
            Self::Executor => "Space: choose what runs it",
            Self::Parent => "Space: choose the task that it is part of",
            Self::DependsOn => "Space: choose tasks",
            Self::Tools => "names, separated by commas; a hint for the worker",
            Self::Skip => "Space: toggle",
        }
    }
}

/// What the form edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An existing task.
    Task(TaskId),
    /// A new task, after this one.
    New(Option<TaskId>),
}

#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) target: Target,
    pub(crate) before: TaskSpec,
    pub(crate) description: TextInput,
    pub(crate) notes: TextInput,
    pub(crate) complexity: Option<Complexity>,
    pub(crate) priority: i32,
    /// What runs it; `None` for an agent or a person.
    pub(crate) executor: Option<String>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) depends_on: Vec<Dependency>,
    pub(crate) tools: TextInput,
    pub(crate) skip: bool,
    pub(crate) focus: Field,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Kept,
    Discarded,
    /// Choose the dependencies.
    Choose,
    /// Choose the value of the focused field.
    Pick,
    External,
}

impl Form {
    pub(crate) fn new(target: Target, spec: &TaskSpec) -> Self {
        Self {
            target,
            before: spec.clone(),
            description: TextInput::lines(spec.description.clone()),
            notes: TextInput::lines(spec.notes.clone()),
            complexity: spec.complexity,
            priority: spec.priority,
            executor: spec.work.as_deref().map(|work| work.executor.clone()),
            parent: spec.parent.clone(),
            depends_on: spec.depends_on.clone(),
            tools: TextInput::line(spec.tools.as_deref().unwrap_or_default().join(", ")),
            skip: spec.skip,
            focus: Field::Description,
        }
    }

    /// The focused field, if it is a text.
    pub(crate) fn input(&mut self) -> Option<&mut TextInput> {
        match self.focus {
            Field::Description => Some(&mut self.description),
            Field::Notes => Some(&mut self.notes),
            Field::Tools => Some(&mut self.tools),
            Field::Complexity
            | Field::Priority
            | Field::Executor
            | Field::Parent
            | Field::DependsOn
            | Field::Skip => None,
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, keys: &Keys) -> Outcome {
        let by_alt = key.modifiers.contains(KeyModifiers::ALT);
        let by_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let line_break = key.code == KeyCode::Enter && by_alt || key.code == KeyCode::Char('j') && by_control;
        if line_break {
            if let Some(input) = self.input() {
                input.insert("\n");
            }
            return Outcome::Open;
        }
        // In a text of several lines, up and down move the cursor as long as there is a line to move to.
        let inside = matches!(key.code, KeyCode::Up | KeyCode::Down)
            && self.input().is_some_and(|input| input.key(key));
        if inside {
            return Outcome::Open;
        }
        match keys.action_only(Place::Form, key) {
            Some(Action::NextField) => self.focus = self.neighbour(1),
            Some(Action::PreviousField) => self.focus = self.neighbour(Field::ALL.len() - 1),
            Some(Action::Accept) => return Outcome::Kept,
            Some(Action::Back) => return Outcome::Discarded,
            Some(Action::External) if matches!(self.focus, Field::Description | Field::Notes) => {
                return Outcome::External;
            }
            Some(_) | None => return self.value_key(key),
        }
        Outcome::Open
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn value_key(&mut self, key: KeyEvent) -> Outcome {
        match self.focus {
            Field::Description | Field::Notes | Field::Tools => {
                if let Some(input) = self.input() {
                    input.key(key);
                }
            }
            Field::Complexity => match key.code {
                KeyCode::Char(' ') => return Outcome::Pick,
                KeyCode::Right | KeyCode::Char('l') => self.complexity = harder(self.complexity),
                KeyCode::Left | KeyCode::Char('h') => {
                    self.complexity = harder(harder(harder(self.complexity)));
                }
                _ => {}
            },
            Field::Priority => match key.code {
                KeyCode::Char(' ') => return Outcome::Pick,
                KeyCode::Right | KeyCode::Char('l') => self.priority = self.priority.saturating_add(1),
                KeyCode::Left | KeyCode::Char('h') => self.priority = self.priority.saturating_sub(1),
                _ => {}
            },
            Field::Executor | Field::Parent => match key.code {
                KeyCode::Char(' ') | KeyCode::Right => return Outcome::Pick,
                KeyCode::Backspace | KeyCode::Delete if self.focus == Field::Parent => self.parent = None,
                KeyCode::Backspace | KeyCode::Delete => self.executor = None,
                _ => {}
            },
            Field::DependsOn => match key.code {
                KeyCode::Char(' ') | KeyCode::Right => return Outcome::Choose,
                KeyCode::Backspace | KeyCode::Delete => {
                    self.depends_on.pop();
                }
                _ => {}
            },
            Field::Skip => {
                if matches!(key.code, KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right) {
                    self.skip = !self.skip;
                }
            }
        }
        Outcome::Open
    }

    fn neighbour(&self, by: usize) -> Field {
        let at = Field::ALL.iter().position(|field| *field == self.focus).unwrap_or(0);
        Field::ALL[(at + by) % Field::ALL.len()]
    }

    /// Replaces the text of the focused field.
    pub(crate) fn set_text(&mut self, text: &str) {
        if let Some(input) = self.input() {
            *input = if input.has_many_lines() {
                TextInput::lines(text.trim_end())
            } else {
                TextInput::line(text.trim_end())
            };
        }
    }

    /// The task with the values of the form.
    pub(crate) fn spec(&self) -> TaskSpec {
        let names: Vec<String> = self
            .tools
            .text()
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let had_some = self.before.tools.is_some();
        let tools = if names.is_empty() && !had_some { None } else { Some(names) };
        TaskSpec {
            description: self.description.text().to_owned(),
            notes: self.notes.text().to_owned(),
            complexity: self.complexity,
            priority: self.priority,
            work: with_executor(self.before.work.as_deref(), self.executor.as_deref()),
            parent: self.parent.clone(),
            depends_on: self.depends_on.clone(),
            tools: tools
                .filter(|names| !names.is_empty() || self.before.tools.as_ref().is_some_and(Vec::is_empty)),
            skip: self.skip,
            ..self.before.clone()
        }
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.spec() != self.before
    }
}

fn harder(complexity: Option<Complexity>) -> Option<Complexity> {
    match complexity {
        None => Some(Complexity::Low),
        Some(Complexity::Low) => Some(Complexity::Medium),
        Some(Complexity::Medium) => Some(Complexity::High),
        Some(Complexity::High) => None,
    }
}

/// The work with another executor; its inputs stay.
pub(super) fn with_executor(work: Option<&Work>, executor: Option<&str>) -> Option<Box<Work>> {
    let executor = executor?.to_owned();
    Some(Box::new(match work {
        Some(work) => Work { executor, ..work.clone() },
        None => Work { executor, inputs: Json::empty_object(), shape: None },
    }))
}
