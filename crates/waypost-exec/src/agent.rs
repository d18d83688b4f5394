//! Runs an agent's command-line program with a prompt. The configuration alone decides what the program may do: a
//! plan's text reaches only the prompt, which is passed on standard input or as one argument.

use serde_json::{Value, json};
use waypost_core::Json;
use waypost_text::{fence, tail_bytes, truncate_bytes};

use super::attempt::{Attempt, SAID_BYTES_MAX, done, inside};
use super::process::{self, Environment, Escaped, ProcessResult, Program};
use super::prompt::Facts;
use super::worktree::Worktree;
use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;
use waypost_config::{Agent, Answer, PROMPT_MARK, PinnedFiles, Prompt, PromptTo};
use waypost_store::{log_path, log_tail};

/// Bytes that the system accepts in one argument.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;
/// Bytes at the end of an earlier attempt's log that a prompt repeats.
const FAILURE_BYTES_MAX: usize = 4 * 1024;

pub(super) fn run(
    attempt: &mut Attempt<'_>,
    agent: &Agent,
    facts: &Facts,
    pinned: Option<&(PinnedFiles, String)>,
) -> AttemptOutcome {
    let ending = if agent.worktree {
        in_worktree(attempt, agent, facts, pinned)
    } else {
        inside(&attempt.around.workspace, &agent.process.directory)
            .and_then(|directory| asked(attempt, agent, facts.clone(), directory))
    };
    let ending = ending.unwrap_or_else(|error| AttemptOutcome::Failed { error });
    if let AttemptOutcome::Failed { error } | AttemptOutcome::TryAgain { error } = &ending {
        // The prompt of the next attempt quotes the end of this log.
        attempt.log.say(&format!("waypost: {error}"), Secrets::NONE);
        attempt.log.finish(Secrets::NONE);
    }
    ending
}

/// Runs the agent in a worktree of its own and commits its changes to a branch.
fn in_worktree(
    attempt: &mut Attempt<'_>,
    agent: &Agent,
    facts: &Facts,
    pinned: Option<&(PinnedFiles, String)>,
) -> Result<AttemptOutcome, String> {
    let worktree = Worktree::make(attempt, facts.branch_before.as_deref())?;
    let mut facts = facts.clone();
    facts.set("branch", worktree.branch().to_owned());
    let asked = pinned
        .map_or(Ok(()), |(pinned, table)| worktree.check_pinned(pinned, table))
        .and_then(|()| worktree.directory(&agent.process.directory))
        .and_then(|directory| asked(attempt, agent, facts.clone(), directory));
    // Before any git command: it would read what the agent wrote.
    let asked = worktree.check_git_files(attempt).and(asked);
    let kept = match asked {
        Ok(AttemptOutcome::Done { result, output }) => {
            let title = format!("{}: {}", attempt.job.key.task, facts.get("description"));
            worktree.commit(attempt, &title, agent.author.as_deref()).map(|changes| (changes, result, output))
        }
        Ok(ending) => Err(ending),
        Err(error) => Err(AttemptOutcome::Failed { error }),
    };
    match kept {
        Ok((changes, result, output)) => {
            worktree.remove(attempt);
            let mut given = json!({
                "branch": worktree.branch(),
                "commit": changes.commit,
                "base": worktree.base(),
                "files": changes.files,
                "insertions": changes.insertions,
                "deletions": changes.deletions,
            });
            if let (Some(fields), Some(output)) = (given.as_object_mut(), output) {
                fields.insert("agent".to_owned(), output.value());
            }
            Ok(AttemptOutcome::Done { result, output: Some(Json::of(&given)) })
        }
        Err(ending) => {
            let place = worktree.leave(attempt);
            let with_place = |error: String| match &place {
                Some(place) => format!("{error} (its worktree is kept in {place})"),
                None => error,
            };
            Ok(match ending {
                AttemptOutcome::TryAgain { error } => AttemptOutcome::TryAgain { error: with_place(error) },
                AttemptOutcome::Failed { error } => AttemptOutcome::Failed { error: with_place(error) },
                AttemptOutcome::Done { .. } | AttemptOutcome::Asked(_) | AttemptOutcome::Checked { .. } => {
                    ending
                }
            })
        }
    }
}

/// Renders the prompt, runs the program and reads its answer.
fn asked(
    attempt: &mut Attempt<'_>,
    agent: &Agent,
    mut facts: Facts,
    directory: std::path::PathBuf,
) -> Result<AttemptOutcome, String> {
    let Prompt::Known(template) = &agent.prompt else {
        return Err("its prompt template was not loaded".to_owned());
    };
    facts.set("failure", earlier_failure(attempt));
    let prompt = template.render(&|place| facts.get(place));
    let mut process = agent.process.clone();
    let input = match agent.prompt_to {
        PromptTo::Stdin => prompt.as_str(),
        PromptTo::Argument => {
            for word in &mut process.command {
                *word = as_argument(word, &prompt)?;
            }
            ""
        }
    };
    let (input, environment) = (input.as_bytes(), Environment::Configured);
    let escaped = Escaped::End;
    let program = Program { process: &process, directory, input, environment, escaped };
    let spoken = process::follow(attempt, &program)?;
    Ok(match process::judged(attempt, &spoken) {
        Some(ending) => with_answer(ending, agent.answer, &spoken),
        None => answered(agent.answer, &spoken),
    })
}

/// Replaces the placeholder of an argument with the prompt. Text from a plan never becomes a flag.
fn as_argument(word: &str, prompt: &str) -> Result<String, String> {
    let gap = if word.starts_with(PROMPT_MARK) && prompt.starts_with('-') { " " } else { "" };
    let filled = word.replace(PROMPT_MARK, &format!("{gap}{prompt}"));
    if filled.len() > ARGUMENT_BYTES_MAX {
        let bytes = filled.len();
        return Err(format!(
            "its prompt has {bytes} bytes, and an argument can have {ARGUMENT_BYTES_MAX}: let it read the prompt from its standard input"
        ));
    }
    Ok(filled)
}

/// Returns the end of the previous attempt's log.
fn earlier_failure(attempt: &Attempt<'_>) -> String {
    let key = &attempt.job.key;
    let Some(before) = key.attempt.checked_sub(1).filter(|&before| before > 0) else { return String::new() };
    let path = log_path(&attempt.around.logs, &key.plan, &key.task, before);
    let (text, _) = log_tail(&path, FAILURE_BYTES_MAX as u64).unwrap_or_default();
    let end = tail_bytes(&text, FAILURE_BYTES_MAX);
    if end.trim().is_empty() { String::new() } else { fence(end.trim()) }
}

/// Parses the answer in an agent's output; `Err` if the agent reports a failure.
fn answer(kind: Answer, text: &str) -> Option<Result<String, String>> {
    let value: Value = match kind {
        Answer::Plain => return None,
        Answer::Claude | Answer::Gemini => serde_json::from_str(text.trim()).ok()?,
    };
    let text_of = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match kind {
        Answer::Plain => None,
        Answer::Claude => {
            let said = text_of(value.get("result"));
            let failed = value.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            match (said, failed) {
                (Some(said), false) => Some(Ok(said)),
                (said, _) => Some(Err(said.or_else(|| text_of(value.get("subtype"))).unwrap_or_default())),
            }
        }
        Answer::Gemini => match value.get("error").filter(|error| !error.is_null()) {
            Some(error) => Some(Err(text_of(error.get("message")).unwrap_or_else(|| error.to_string()))),
            None => text_of(value.get("response")).map(Ok),
        },
    }
}

fn answered(kind: Answer, spoken: &ProcessResult) -> AttemptOutcome {
    let text = String::from_utf8_lossy(&spoken.output);
    match answer(kind, &text) {
        Some(Ok(said)) => done(&said, &spoken.secrets),
        Some(Err(said)) => {
            let said = spoken.secrets.redact(&said);
            let said = truncate_bytes(&said, SAID_BYTES_MAX);
            AttemptOutcome::Failed { error: format!("the agent says that it failed: {said}") }
        }
        None => done(&text, &spoken.secrets),
    }
}

/// Adds the agent's own error message to a failure, if there is one: some agents write it to their standard output.
fn with_answer(ending: AttemptOutcome, kind: Answer, spoken: &ProcessResult) -> AttemptOutcome {
    let AttemptOutcome::Failed { error } = ending else { return ending };
    let text = String::from_utf8_lossy(&spoken.output);
    match answer(kind, &text) {
        Some(Ok(said) | Err(said)) if !said.trim().is_empty() => {
            let said = spoken.secrets.redact(said.trim());
            AttemptOutcome::Failed {
                error: format!("{error}; the agent says: {}", truncate_bytes(&said, SAID_BYTES_MAX)),
            }
        }
        Some(_) | None => AttemptOutcome::Failed { error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_one_argument_and_never_a_flag() {
        assert_eq!(as_argument("{prompt}", "--help me").unwrap(), " --help me");
        assert_eq!(as_argument("--prompt={prompt}", "-x").unwrap(), "--prompt=-x");
        assert_eq!(as_argument("-p", "{prompt}").unwrap(), "-p");
        assert!(as_argument("{prompt}", &"x".repeat(ARGUMENT_BYTES_MAX + 1)).is_err());
        assert!(as_argument("{prompt}", &"x".repeat(ARGUMENT_BYTES_MAX)).is_ok());
    }

    #[test]
    fn the_answer_is_found_in_what_each_agent_writes() {
        let claude = r#"{"type":"result","subtype":"success","is_error":false,"result":"all good"}"#;
        assert_eq!(answer(Answer::Claude, claude), Some(Ok("all good".to_owned())));
        let limit = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#;
        assert_eq!(answer(Answer::Claude, limit), Some(Err("error_max_turns".to_owned())));
        let gemini = r#"{"response":"yes","stats":{}}"#;
        assert_eq!(answer(Answer::Gemini, gemini), Some(Ok("yes".to_owned())));
        let quota = r#"{"error":{"message":"quota"}}"#;
        assert_eq!(answer(Answer::Gemini, quota), Some(Err("quota".to_owned())));
        assert_eq!(answer(Answer::Gemini, "plain words"), None);
        assert_eq!(answer(Answer::Plain, claude), None);
    }
}
