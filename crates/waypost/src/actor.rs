//! Who asks: what the command line says, or the environment, or who is logged in. Decides nothing about what they may.

use waypost_core::{Actor, ActorKind};

use crate::error::{Failure, Outcome};

/// Variables that agents set for the commands they run, and the agent's name.
const AGENT_VARIABLES: &[(&str, &str)] = &[
    ("CLAUDECODE", "claude-code"),
    ("CLAUDE_CODE", "claude-code"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"),
    ("CODEX_CI", "codex"),
    ("CODEX_SESSION_ID", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_TOOL_CALL_ID", "codex"),
    ("CURSOR_AGENT", "cursor"),
    ("CURSOR_TRACE_ID", "cursor"),
    ("GEMINI_CLI", "gemini-cli"),
    ("QWEN_CODE", "qwen-code"),
    ("OPENCODE", "opencode"),
    ("CLINE_ACTIVE", "cline"),
    ("GOOSE_TERMINAL", "goose"),
    ("AUGMENT_AGENT", "augment"),
];
/// A variable whose value is the agent's name.
const AGENT_NAME_VARIABLE: &str = "AI_AGENT";
/// The variable that says who asks.
const ACTOR_VARIABLE: &str = "WAYPOST_ACTOR";
/// The name of a person whom nothing names.
const NOBODY: &str = "someone";

/// Who asks: the flag, then `WAYPOST_ACTOR`, then the agent whose environment this is, then the user.
pub(crate) fn find(flag: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Outcome<Actor> {
    // One that was emptied still tells whose environment this is.
    let agent = agent(&variable);
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let (said, by) = match (flag, variable(ACTOR_VARIABLE)) {
        (Some(flag), _) => (flag.to_owned(), "--as"),
        (None, Some(value)) => (value, ACTOR_VARIABLE),
        (None, None) => {
            let person = || Actor::person(variable("USER").unwrap_or_else(|| NOBODY.to_owned()));
            return Ok(agent.map_or_else(person, |(_, name)| Actor::agent(name)));
        }
    };
    let example = "for example --as person:ada or --as agent:planner";
    let actor: Actor = said.parse().map_err(|error| Failure::usage(format!("{by}: {error}"), example))?;
    match (actor.kind, agent) {
        (ActorKind::System, _) => Err(Failure::usage(format!("{by}: {actor} cannot be a caller"), example)),
        (ActorKind::Person | ActorKind::Worker, Some((seen, name))) => {
            let message =
                format!("{by}: this runs inside {name} ({seen} is set), which cannot act as {actor}");
            let hint = "leave it out, or name an agent; actions for people need a terminal of their own";
            Err(Failure { code: "not_that_actor".to_owned(), ..Failure::failed(message, hint) })
        }
        (ActorKind::Agent, _) | (ActorKind::Person | ActorKind::Worker, None) => Ok(actor),
    }
}

/// The agent whose environment this is, with the variable that tells.
fn agent(variable: &impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    let known = AGENT_VARIABLES.iter().find(|(name, _)| variable(name).is_some());
    let known = known.map(|&(seen, name)| (seen, name.to_owned()));
    let named = || variable(AGENT_NAME_VARIABLE).filter(|name| !name.is_empty());
    known.or_else(|| named().map(|name| (AGENT_NAME_VARIABLE, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flag: Option<&str>, variables: &[(&str, &str)], expected: Result<&str, &str>) {
        let found = find(flag, |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        });
        let found = found.map(|actor| actor.to_string()).map_err(|failure| failure.message);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn the_flag_wins_then_the_variable_then_the_agent_then_the_user() {
        let all = [("WAYPOST_ACTOR", "agent:b"), ("CLAUDECODE", "1"), ("USER", "ada")];
        check(Some("agent:a"), &all, Ok("agent:a"));
        check(None, &all, Ok("agent:b"));
        check(None, &all[1..], Ok("agent:claude-code"));
        check(None, &all[2..], Ok("person:ada"));
        check(None, &[], Ok("person:someone"));
        check(None, &[("WAYPOST_ACTOR", ""), ("USER", "ada")], Ok("person:ada"));
        check(None, &[("AI_AGENT", "robin")], Ok("agent:robin"));
        check(None, &[("CODEX_THREAD_ID", "7"), ("USER", "ada")], Ok("agent:codex"));
        check(None, &[("CLAUDECODE", ""), ("USER", "ada")], Ok("agent:claude-code"));
    }

    #[test]
    fn an_agent_cannot_ask_as_a_person() {
        let inside = "--as: this runs inside codex (CODEX_SANDBOX is set), which cannot act as person:ada";
        check(Some("person:ada"), &[("CODEX_SANDBOX", "seatbelt")], Err(inside));
        let inside =
            "WAYPOST_ACTOR: this runs inside cursor (CURSOR_AGENT is set), which cannot act as worker:w";
        check(None, &[("WAYPOST_ACTOR", "worker:w"), ("CURSOR_AGENT", "1")], Err(inside));
        check(Some("system:lease"), &[], Err("--as: system:lease cannot be a caller"));
        let nobody = "--as: \"ada\" names nobody: write person:NAME, agent:NAME or worker:NAME";
        check(Some("ada"), &[], Err(nobody));
    }
}
