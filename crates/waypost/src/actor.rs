//! Determines the caller: the least privileged actor that any mark of the process implies. Flags and variables can
//! lower the caller's privileges but never raise them. The absence of marks does not prove that the caller is a person.

use waypost_core::{Actor, ActorKind};

use crate::error::{Failure, Outcome};

/// Variables that agent hosts set for the commands they run, and the host's name. They count even if they are empty.
const HOST_VARIABLES: &[(&str, &str)] = &[
    ("CLAUDECODE", "claude-code"),
    ("CLAUDE_CODE", "claude-code"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"),
    ("CODEX_CI", "codex"),
    ("CODEX_SESSION_ID", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_TOOL_CALL_ID", "codex"),
    ("CURSOR_AGENT", "cursor"),
    ("GEMINI_CLI", "gemini-cli"),
    ("QWEN_CODE", "qwen-code"),
    ("OPENCODE", "opencode"),
    ("COPILOT_CLI", "copilot"),
    ("COPILOT_AGENT_SESSION_ID", "copilot"),
    ("CLINE_ACTIVE", "cline"),
    ("GOOSE_TERMINAL", "goose"),
    ("AUGMENT_AGENT", "augment"),
];
/// Variables that count only with this value.
const HOST_VALUES: &[(&str, &str, &str)] = &[("CURSOR_EXTENSION_HOST_ROLE", "agent-exec", "cursor")];
/// Variables whose value is the agent's name.
const AGENT_NAME_VARIABLES: &[&str] = &["AI_AGENT", "AGENT"];
/// Cursor sets the first variable in a person's terminal as well; only its agent sets this pager.
const CURSOR_TRACE: (&str, &str, &str) = ("CURSOR_TRACE_ID", "PAGER", "head -n 10000 | cat");
/// Variables that a worker sets for the programs of its tasks.
const WORKER_VARIABLES: &[&str] = &["WAYPOST_ATTEMPT", "WAYPOST_WORKER"];
/// The variable that names the caller.
const ACTOR_VARIABLE: &str = "WAYPOST_ACTOR";
/// The name of a person when nothing names them.
const NOBODY: &str = "someone";

/// Marks a process as started by an agent or a worker.
struct Mark {
    /// The most privileged actor that the caller can be.
    actor: Actor,
    /// The variable that sets the limit.
    variable: &'static str,
}

/// Returns the caller: the one that the flag or the variable names, if the environment's marks allow it.
pub(crate) fn find(flag: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Outcome<Actor> {
    let mark = mark(&variable)?;
    let Some(flag) = flag else {
        if let Some(mark) = mark {
            return Ok(mark.actor);
        }
        let named = variable(ACTOR_VARIABLE).filter(|value| !value.is_empty());
        let user = || Actor::person(variable("USER").unwrap_or_else(|| NOBODY.to_owned()));
        return named.map_or_else(|| Ok(user()), |named| parse(ACTOR_VARIABLE, &named));
    };
    let actor = parse("--as", flag)?;
    match mark {
        Some(mark) if !mark.allows(&actor) => Err(mark.refuse("--as", &actor)),
        Some(_) | None => Ok(actor),
    }
}

impl Mark {
    /// Whether a caller with this mark may act as this actor.
    fn allows(&self, actor: &Actor) -> bool {
        match self.actor.kind {
            ActorKind::Worker => *actor == self.actor,
            ActorKind::Agent | ActorKind::Person | ActorKind::System => actor.kind == ActorKind::Agent,
        }
    }

    fn refuse(&self, by: &str, actor: &Actor) -> Failure {
        let Self { actor: found, variable } = self;
        let inside = match found.kind {
            ActorKind::Worker => "a task of a plan",
            ActorKind::Agent | ActorKind::Person | ActorKind::System => found.name.as_str(),
        };
        let message =
            format!("{by}: this runs inside {inside} ({variable} is set), so it cannot act as {actor}");
        let hint = "a person does this in a terminal of their own";
        Failure { code: "not_that_actor".to_owned(), ..Failure::failed(message, hint) }
    }
}

fn parse(by: &str, text: &str) -> Outcome<Actor> {
    let example = "for example --as person:ada or --as agent:planner";
    let actor: Actor = text.parse().map_err(|error| Failure::usage(format!("{by}: {error}"), example))?;
    if actor.kind == ActorKind::System {
        return Err(Failure::usage(format!("{by}: {actor} cannot be a caller"), example));
    }
    Ok(actor)
}

/// The mark with the least privileges in the environment.
fn mark(variable: &impl Fn(&str) -> Option<String>) -> Outcome<Option<Mark>> {
    let host = host(variable);
    let named = variable(ACTOR_VARIABLE).filter(|value| !value.is_empty());
    let named = named.map(|named| parse(ACTOR_VARIABLE, &named)).transpose()?;
    let worker = WORKER_VARIABLES.iter().find(|name| variable(name).is_some());
    match (named, worker) {
        (Some(actor), _) if actor.kind == ActorKind::Worker => match host {
            // A worker's program that starts an agent: neither may pose as the other.
            Some(host) if worker.is_none() => Err(host.refuse(ACTOR_VARIABLE, &actor)),
            Some(_) | None => Ok(Some(Mark { actor, variable: ACTOR_VARIABLE })),
        },
        (_, Some(&variable_name)) => {
            let name = variable("WAYPOST_PLAN").unwrap_or_else(|| NOBODY.to_owned());
            Ok(Some(Mark { actor: Actor::worker(name), variable: variable_name }))
        }
        (Some(actor), None) if actor.kind == ActorKind::Agent => {
            Ok(Some(Mark { actor, variable: host.map_or(ACTOR_VARIABLE, |host| host.variable) }))
        }
        (Some(actor), None) => match host {
            Some(host) => Err(host.refuse(ACTOR_VARIABLE, &actor)),
            None => Ok(None),
        },
        (None, None) => Ok(host),
    }
}

/// The agent whose host set this environment.
fn host(variable: &impl Fn(&str) -> Option<String>) -> Option<Mark> {
    let mark = |variable, name: &str| Mark { actor: Actor::agent(name), variable };
    let has = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    if let Some(&(seen, name)) = HOST_VARIABLES.iter().find(|(name, _)| variable(name).is_some()) {
        return Some(mark(seen, name));
    }
    if let Some(&(seen, _, name)) = HOST_VALUES.iter().find(|(name, value, _)| has(name, value)) {
        return Some(mark(seen, name));
    }
    let (trace, pager, value) = CURSOR_TRACE;
    if variable(trace).is_some() && has(pager, value) {
        return Some(mark(trace, "cursor"));
    }
    AGENT_NAME_VARIABLES.iter().find_map(|&seen| {
        let name = variable(seen).filter(|name| !name.is_empty())?;
        Some(mark(seen, &name))
    })
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
    fn a_tasks_program_and_an_agent_named_by_a_variable_cannot_raise_themselves() {
        let task = [("WAYPOST_ACTOR", "worker:kq3"), ("WAYPOST_ATTEMPT", "1"), ("WAYPOST_PLAN", "kq3")];
        check(None, &task, Ok("worker:kq3"));
        check(Some("worker:kq3"), &task, Ok("worker:kq3"));
        let inside = "--as: this runs inside a task of a plan (WAYPOST_ACTOR is set), so it cannot act as";
        for other in ["person:ada", "agent:a", "worker:other"] {
            check(Some(other), &task, Err(&format!("{inside} {other}")));
        }
        // The program unset or changed the variable that names it.
        check(None, &task[1..], Ok("worker:kq3"));
        let changed = [("WAYPOST_ACTOR", "person:ada"), task[1], task[2]];
        check(None, &changed, Ok("worker:kq3"));
        let inside = "--as: this runs inside a task of a plan (WAYPOST_ATTEMPT is set), so it cannot act as";
        check(Some("person:ada"), &changed, Err(&format!("{inside} person:ada")));
        let agent = [("WAYPOST_ACTOR", "agent:planner")];
        let inside = "--as: this runs inside planner (WAYPOST_ACTOR is set), so it cannot act as person:ada";
        check(Some("person:ada"), &agent, Err(inside));
        check(Some("agent:other"), &agent, Ok("agent:other"));
    }

    #[test]
    fn some_variables_count_with_a_value_only() {
        check(None, &[("AGENT", ""), ("USER", "ada")], Ok("person:ada"));
        check(None, &[("AGENT", "amp"), ("USER", "ada")], Ok("agent:amp"));
        check(None, &[("CURSOR_TRACE_ID", "1"), ("USER", "ada")], Ok("person:ada"));
        let agents = [("CURSOR_TRACE_ID", "1"), ("PAGER", "head -n 10000 | cat"), ("USER", "ada")];
        check(None, &agents, Ok("agent:cursor"));
        check(None, &[("CURSOR_EXTENSION_HOST_ROLE", "agent-exec")], Ok("agent:cursor"));
        check(None, &[("CURSOR_EXTENSION_HOST_ROLE", "user"), ("USER", "ada")], Ok("person:ada"));
    }

    #[test]
    fn an_agent_cannot_ask_as_a_person() {
        let inside = "--as: this runs inside codex (CODEX_SANDBOX is set), so it cannot act as person:ada";
        check(Some("person:ada"), &[("CODEX_SANDBOX", "seatbelt")], Err(inside));
        let inside =
            "WAYPOST_ACTOR: this runs inside cursor (CURSOR_AGENT is set), so it cannot act as worker:w";
        check(None, &[("WAYPOST_ACTOR", "worker:w"), ("CURSOR_AGENT", "1")], Err(inside));
        check(Some("system:lease"), &[], Err("--as: system:lease cannot be a caller"));
        let nobody = "--as: \"ada\" is not an actor: write person:NAME, agent:NAME or worker:NAME";
        check(Some("ada"), &[], Err(nobody));
    }
}
