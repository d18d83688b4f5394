//! The form of one task. Changes nothing until it is accepted.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_core::{Complexity, Dependency, TaskId, TaskSpec};

use crate::keys::{Action, Keys, Place};
use crate::text_input::TextInput;

/// The fields, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Description,
    Notes,
    Complexity,
    DependsOn,
    Tools,
    Skip,
}

impl Field {
    pub(crate) const ALL: [Self; 6] =
        [Self::Description, Self::Notes, Self::Complexity, Self::DependsOn, Self::Tools, Self::Skip];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Description => "Description",
            Self::Notes => "Notes",
            Self::Complexity => "Complexity",
            Self::DependsOn => "Depends on",
            Self::Tools => "Tools",
            Self::Skip => "Skip",
        }
    }

    /// The help text of the field.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Description | Self::Notes => "Alt-Enter: new line · Ctrl-E: $EDITOR",
            Self::Complexity => "←/→: change",
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
    Choose,
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
            Field::Complexity | Field::DependsOn | Field::Skip => None,
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

    fn value_key(&mut self, key: KeyEvent) -> Outcome {
        match self.focus {
            Field::Description | Field::Notes | Field::Tools => {
                if let Some(input) = self.input() {
                    input.key(key);
                }
            }
            Field::Complexity => match key.code {
                KeyCode::Right | KeyCode::Char(' ' | 'l') => self.complexity = harder(self.complexity),
                KeyCode::Left | KeyCode::Char('h') => {
                    self.complexity = harder(harder(harder(self.complexity)));
                }
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
