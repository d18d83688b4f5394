//! The part of a configuration file that says how agents are called, and what is known about some of them.

use std::io;

use super::reader::{Reader, Table};
use crate::executor::{Agent, Answer, Process, Prompt, PromptTo};
use crate::parse::values::{one_of, stays_inside};
use crate::problem::ConfigProblem;
use crate::template::{self, Template};

/// What stands in an argument for the prompt.
pub const PROMPT_MARK: &str = "{prompt}";

/// Agents whose flags are known.
#[derive(Clone, Copy)]
enum Preset {
    Claude,
    Codex,
    Gemini,
}

const PRESETS: [(&str, Preset); 3] =
    [("claude", Preset::Claude), ("codex", Preset::Codex), ("gemini", Preset::Gemini)];

/// What an operator lets an agent do.
#[derive(Default)]
struct Permissions {
    model: Option<String>,
    mode: Option<String>,
    tools: Vec<String>,
}

impl Preset {
    /// The flags that make it work without anybody at the keyboard. The prompt comes on its standard input.
    fn arguments(self, allowed: &Permissions) -> Vec<String> {
        let (first, mode, tools): (&[&str], &str, &str) = match self {
            Self::Claude => (&["--print", "--output-format", "json"], "--permission-mode", "--allowedTools"),
            Self::Codex => (&["exec", "--color", "never", "--skip-git-repo-check"], "--sandbox", ""),
            Self::Gemini => (&["--output-format", "json"], "--approval-mode", "--allowed-tools"),
        };
        let mut words: Vec<String> = first.iter().map(|word| (*word).to_owned()).collect();
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(model) = &allowed.model {
            flag("--model", model.clone());
        }
        if let Some(word) = &allowed.mode {
            flag(mode, word.clone());
        }
        if !allowed.tools.is_empty() && !tools.is_empty() {
            flag(tools, allowed.tools.join(","));
        }
        if let Self::Codex = self {
            words.push("-".to_owned());
        }
        words
    }

    fn answer(self) -> Answer {
        match self {
            Self::Claude => Answer::Claude,
            Self::Codex => Answer::Plain,
            Self::Gemini => Answer::Gemini,
        }
    }
}

impl Reader<'_> {
    pub(super) fn agent(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Agent> {
        let preset = self.preset(path, table);
        let command = match &preset {
            // A preset knows the name of its program; `command` is for one that lies elsewhere.
            Some((name, _)) if table.is_without("command") => {
                let _known = table.strings(self, "command");
                Some((at, vec![(*name).to_owned()]))
            }
            None if !table.is_without("agent") => table.strings(self, "command"),
            Some(_) | None => self.command(path, at, table),
        };
        let allowed = self.permissions(path, preset.map(|(_, preset)| preset), table);
        let prompt_to = self.prompt_to(path, table);
        let prompt = self.prompt(path, table);
        let worktree = table.flag(self, "worktree").unwrap_or(false);
        let author = self.author(path, table);
        let directory = self.directory(path, table);
        let environment = self.environment(table);
        let timeout_seconds = self.timeout(table);
        let secrets = self.secrets(path, table);
        let ((command_at, mut command), directory) = (command?, directory?);
        if let Some((_, preset)) = preset {
            command.extend(preset.arguments(&allowed));
        }
        let marks = command.iter().filter(|word| word.contains(PROMPT_MARK)).count();
        let prompt_to = match (prompt_to, marks) {
            (None | Some(PromptTo::Stdin), 0) => PromptTo::Stdin,
            (None | Some(PromptTo::Argument), 1) if !command[0].contains(PROMPT_MARK) => PromptTo::Argument,
            (Some(PromptTo::Argument), 0) => {
                let what = format!("{path} has `prompt_to` = \"argument\", and no argument is for it");
                self.wrong(command_at, what, format!("write {PROMPT_MARK} as one word of `command`"));
                return None;
            }
            (_, _) => {
                let what = format!("the command of {path} has {PROMPT_MARK} where no prompt can go");
                self.wrong(command_at, what, "write it once, as an argument, and leave `prompt_to` out");
                return None;
            }
        };
        let process = Process { command, shell: false, directory, environment, secrets, timeout_seconds };
        let answer = preset.map_or(Answer::Plain, |(_, preset)| preset.answer());
        Some(Agent { process, prompt_to, prompt: prompt?, answer, worktree, author })
    }

    fn preset(&mut self, path: &str, table: &mut Table<'_>) -> Option<(&'static str, Preset)> {
        let (at, word) = table.text(self, "agent")?;
        let found = PRESETS.into_iter().find(|(name, _)| *name == word);
        if found.is_none() {
            let hint = one_of(&word, &PRESETS.map(|(name, _)| name));
            let hint = format!("{hint}; any other agent is called by its `command` alone");
            self.wrong(at, format!("{path} has the unknown agent {word:?}"), hint);
        }
        found
    }

    fn permissions(&mut self, path: &str, preset: Option<Preset>, table: &mut Table<'_>) -> Permissions {
        let model = table.text(self, "model");
        let mode = table.text(self, "permission_mode");
        let tools = table.strings(self, "allowed_tools");
        if preset.is_none() && table.is_without("agent") {
            for (key, at) in [
                ("model", model.as_ref().map(|(at, _)| *at)),
                ("permission_mode", mode.as_ref().map(|(at, _)| *at)),
                ("allowed_tools", tools.as_ref().map(|(at, _)| *at)),
            ] {
                if let Some(at) = at {
                    let what = format!("{path} has `{key}`, which this command cannot be given");
                    self.wrong(at, what, "write the flags into `command`, or name an `agent`");
                }
            }
        }
        if let (Some(Preset::Codex), Some((at, _))) = (preset, &tools) {
            let what = format!("{path} has `allowed_tools`, and codex has no such list");
            self.wrong(*at, what, "use `permission_mode`, which is codex's sandbox");
        }
        for (at, word) in [&model, &mode].into_iter().flatten() {
            if word.is_empty() || word.starts_with('-') {
                self.wrong(*at, format!("{path} has {word:?} where a name is meant"), "correct the value");
            }
        }
        let (model, mode) = (model.map(|(_, word)| word), mode.map(|(_, word)| word));
        Permissions { model, mode, tools: tools.map(|(_, tools)| tools).unwrap_or_default() }
    }

    fn prompt_to(&mut self, path: &str, table: &mut Table<'_>) -> Option<PromptTo> {
        let (at, word) = table.text(self, "prompt_to")?;
        match word.as_str() {
            "stdin" => Some(PromptTo::Stdin),
            "argument" => Some(PromptTo::Argument),
            other => {
                let hint = one_of(other, &["stdin", "argument"]);
                self.wrong(at, format!("{path} has `prompt_to` = {other:?}"), hint);
                None
            }
        }
    }

    fn prompt(&mut self, path: &str, table: &mut Table<'_>) -> Option<Prompt> {
        match (table.text(self, "prompt"), table.text(self, "template")) {
            (Some((at, _)), Some(_)) => {
                let what = format!("{path} has both `prompt` and `template`");
                self.wrong(at, what, "keep one of them");
                None
            }
            (Some((at, text)), None) => match Template::parse(&text) {
                Ok(template) => Some(Prompt::Known(template)),
                Err((_, what, hint)) => {
                    self.wrong(at, format!("{path}.prompt: {what}"), hint);
                    None
                }
            },
            (None, Some((at, file))) if !stays_inside(&file) || file.is_empty() => {
                let what = format!("{path} has its template in {file:?}, outside of the workspace");
                self.wrong(at, what, "name a file of the workspace, relative to it");
                None
            }
            (None, Some((at, file))) => {
                Some(Prompt::File { file, place: self.name().to_owned(), line: self.line(at) })
            }
            (None, None) => Template::parse(template::DEFAULT).ok().map(Prompt::Known),
        }
    }

    fn author(&mut self, path: &str, table: &mut Table<'_>) -> Option<String> {
        let (at, author) = table.text(self, "author")?;
        let parts = author.split_once(" <").filter(|(name, rest)| {
            !name.trim().is_empty() && rest.len() > 1 && rest.find('>') == Some(rest.len() - 1)
        });
        if parts.is_none() || author.chars().any(char::is_control) {
            let what = format!("{path} has the author {author:?}");
            self.wrong(at, what, "write it as \"Name <name@example.org>\"");
            return None;
        }
        Some(author)
    }
}

/// Reads a prompt that stands in a file; gives what is wrong with it.
pub(crate) fn read_prompt(
    prompt: &mut Prompt,
    read: &dyn Fn(&str) -> io::Result<String>,
) -> Option<ConfigProblem> {
    let Prompt::File { file, place, line } = prompt else { return None };
    let text = match read(file) {
        Ok(text) => text,
        Err(error) => {
            return Some(ConfigProblem {
                place: place.clone(),
                line: Some(*line),
                what: format!("the template {file:?} cannot be read: {error}"),
                hint: "name a file of the workspace, relative to it".to_owned(),
            });
        }
    };
    match Template::parse(&text) {
        Ok(template) => {
            *prompt = Prompt::Known(template);
            None
        }
        Err((at, what, hint)) => {
            let line = Some(text[..at].matches('\n').count() + 1);
            Some(ConfigProblem { place: file.clone(), line, what, hint })
        }
    }
}
