//! Parses agent executors, and knows the flags of some agents.

use std::io;

use super::reader::Table;
use crate::executor::{Agent, Answer, Process, Prompt, PromptTo};
use crate::parse::values::{one_of, stays_inside};
use crate::problem::ConfigProblem;
use crate::template::{self, Template};

/// The placeholder for the prompt in an argument.
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

/// What the operator allows an agent to do.
#[derive(Default)]
struct Permissions {
    model: Option<String>,
    mode: Option<String>,
    tools: Vec<String>,
}

impl Preset {
    /// The flags for unattended use. The prompt is passed on standard input.
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

impl Table<'_> {
    pub(super) fn agent(&mut self) -> Option<Agent> {
        let preset = self.preset();
        let command = match preset {
            // A preset knows the name of its program; `command` is only needed if the program is elsewhere.
            Some((name, _)) if self.is_without("command") => {
                let _known = self.strings("command");
                Some((self.at, vec![name.to_owned()]))
            }
            None if !self.is_without("agent") => self.strings_at("command"),
            Some(_) | None => self.command(),
        };
        let allowed = self.permissions(preset.map(|(_, preset)| preset));
        let prompt_to =
            self.choice("prompt_to", &[("stdin", PromptTo::Stdin), ("argument", PromptTo::Argument)]);
        let prompt = self.prompt();
        let worktree = self.flag("worktree").unwrap_or(false);
        let author = self.author();
        let directory = self.directory();
        let environment = self.environment();
        let timeout_seconds = self.timeout();
        let secrets = self.secrets();
        let ((command_at, mut command), directory) = (command?, directory?);
        if let Some((_, preset)) = preset {
            command.extend(preset.arguments(&allowed));
        }
        let path = &self.path;
        let marks = command.iter().filter(|word| word.contains(PROMPT_MARK)).count();
        let prompt_to = match (prompt_to, marks) {
            (None | Some(PromptTo::Stdin), 0) => PromptTo::Stdin,
            (None | Some(PromptTo::Argument), 1) if !command[0].contains(PROMPT_MARK) => PromptTo::Argument,
            (Some(PromptTo::Argument), 0) => {
                let what = format!("{path} has `prompt_to` = \"argument\", and no argument is for it");
                let hint = format!("write {PROMPT_MARK} as one word of `command`");
                return self.refuse(command_at, what, hint);
            }
            (_, _) => {
                let what = format!("the command of {path} has {PROMPT_MARK} where no prompt can go");
                let hint = "write it once, as an argument, and leave `prompt_to` out";
                return self.refuse(command_at, what, hint);
            }
        };
        let process = Process { command, shell: false, directory, environment, secrets, timeout_seconds };
        let answer = preset.map_or(Answer::Plain, |(_, preset)| preset.answer());
        Some(Agent { process, prompt_to, prompt: prompt?, answer, worktree, author })
    }

    fn preset(&mut self) -> Option<(&'static str, Preset)> {
        let (at, word) = self.text_at("agent")?;
        let found = PRESETS.into_iter().find(|(name, _)| *name == word);
        if found.is_none() {
            let hint = one_of(&word, &PRESETS.map(|(name, _)| name));
            let hint = format!("{hint}; any other agent is called by its `command` alone");
            self.wrong(at, format!("{} has the unknown agent {word:?}", self.path), hint);
        }
        found
    }

    fn permissions(&mut self, preset: Option<Preset>) -> Permissions {
        let model = self.text("model");
        let mode = self.text("permission_mode");
        let tools = self.strings("allowed_tools");
        let path = &self.path;
        if preset.is_none() && self.is_without("agent") {
            let said = [
                ("model", model.is_some()),
                ("permission_mode", mode.is_some()),
                ("allowed_tools", tools.is_some()),
            ];
            for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
                let what = format!("{path} has `{key}`, which this command cannot be given");
                self.wrong(self.place(key), what, "write the flags into `command`, or name an `agent`");
            }
        }
        if let (Some(Preset::Codex), Some(_)) = (preset, &tools) {
            let what = format!("{path} has `allowed_tools`, and codex has no such list");
            self.wrong(self.place("allowed_tools"), what, "use `permission_mode`, which is codex's sandbox");
        }
        for (key, word) in [("model", &model), ("permission_mode", &mode)] {
            if let Some(word) = word.as_ref().filter(|word| word.is_empty() || word.starts_with('-')) {
                let what = format!("{path} has {word:?} where a name is meant");
                self.wrong(self.place(key), what, "correct the value");
            }
        }
        Permissions { model, mode, tools: tools.unwrap_or_default() }
    }

    fn prompt(&mut self) -> Option<Prompt> {
        let (text, file) = (self.text_at("prompt"), self.text_at("template"));
        let path = &self.path;
        match (text, file) {
            (Some((at, _)), Some(_)) => {
                self.refuse(at, format!("{path} has both `prompt` and `template`"), "keep one of them")
            }
            (Some((at, text)), None) => {
                let wrong = |(_, what, hint): (usize, String, String)| {
                    self.wrong(at, format!("{path}.prompt: {what}"), hint);
                };
                Template::parse(&text).map(Prompt::Known).map_err(wrong).ok()
            }
            (None, Some((at, file))) if !stays_inside(&file) || file.is_empty() => {
                let what = format!("{path} has its template in {file:?}, outside of the workspace");
                self.refuse(at, what, "name a file of the workspace, relative to it")
            }
            (None, Some((at, file))) => {
                let (place, line) = self.place_of(at);
                Some(Prompt::File { file, place, line })
            }
            (None, None) => Template::parse(template::DEFAULT).ok().map(Prompt::Known),
        }
    }

    fn author(&mut self) -> Option<String> {
        let (at, author) = self.text_at("author")?;
        let parts = author.split_once(" <").filter(|(name, rest)| {
            !name.trim().is_empty() && rest.len() > 1 && rest.find('>') == Some(rest.len() - 1)
        });
        if parts.is_none() || author.chars().any(char::is_control) {
            let what = format!("{} has the author {author:?}", self.path);
            return self.refuse(at, what, "write it as \"Name <name@example.org>\"");
        }
        Some(author)
    }
}

/// Reads and parses a prompt that is in a file. Returns the problem, if there is one.
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
