//! Who the caller is.

use waypost_account::{ANCESTORS_MAX, Evidence, Process};
use waypost_core::ActorKind;
use waypost_testkit::SeededRng;

/// How many random callers are tried.
const CALLERS: usize = 20_000;

fn owned(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[track_caller]
fn check_below(
    flag: Option<&str>,
    variables: &[(&str, &str)],
    ancestors: &[(u32, &[(&str, &str)])],
    expected: Result<&str, &str>,
) {
    let ancestors = ancestors.iter().map(|(id, variables)| Process::new(Some(*id), owned(variables)));
    let found = Evidence::of(owned(variables), ancestors).caller(flag, "ada");
    let found = found.map(|actor| actor.to_string()).map_err(|error| error.to_string());
    assert_eq!(found.as_deref().map_err(String::as_str), expected);
}

#[track_caller]
fn check(flag: Option<&str>, variables: &[(&str, &str)], expected: Result<&str, &str>) {
    check_below(flag, variables, &[], expected);
}

#[test]
fn the_flag_wins_then_the_variable_then_the_agent_then_the_account() {
    let all = [("WAYPOST_ACTOR", "agent:b"), ("CLAUDECODE", "1"), ("USER", "mallory")];
    check(Some("agent:a"), &all, Ok("agent:a"));
    check(None, &all, Ok("agent:b"));
    check(None, &all[1..], Ok("agent:claude-code"));
    check(None, &all[2..], Ok("person:ada"));
    check(None, &[("WAYPOST_ACTOR", "")], Ok("person:ada"));
    check(None, &[("WAYPOST_ACTOR", "person:grace")], Ok("person:grace"));
    check(None, &[("AI_AGENT", "robin")], Ok("agent:robin"));
    check(None, &[("CODEX_THREAD_ID", "7")], Ok("agent:codex"));
    check(None, &[("CLAUDECODE", "")], Ok("agent:claude-code"));
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
    check(None, &[("AGENT", "")], Ok("person:ada"));
    check(None, &[("AGENT", "amp")], Ok("agent:amp"));
    check(None, &[("CURSOR_TRACE_ID", "1")], Ok("person:ada"));
    check(None, &[("CURSOR_TRACE_ID", "1"), ("PAGER", "head -n 10000 | cat")], Ok("agent:cursor"));
    check(None, &[("CURSOR_EXTENSION_HOST_ROLE", "agent-exec")], Ok("agent:cursor"));
    check(None, &[("CURSOR_EXTENSION_HOST_ROLE", "user")], Ok("person:ada"));
}

#[test]
fn an_agent_cannot_ask_as_a_person() {
    let inside = "--as: this runs inside codex (CODEX_SANDBOX is set), so it cannot act as person:ada";
    check(Some("person:ada"), &[("CODEX_SANDBOX", "seatbelt")], Err(inside));
    let inside = "WAYPOST_ACTOR: this runs inside cursor (CURSOR_AGENT is set), so it cannot act as worker:w";
    check(None, &[("WAYPOST_ACTOR", "worker:w"), ("CURSOR_AGENT", "1")], Err(inside));
    check(Some("system:lease"), &[], Err("--as: system:lease cannot be a caller"));
    let nobody = "--as: \"ada\" is not an actor: write person:NAME, agent:NAME or worker:NAME";
    check(Some("ada"), &[], Err(nobody));
}

#[test]
fn variables_of_an_ancestor_count_after_the_program_unset_them() {
    let host: (u32, &[(&str, &str)]) = (4711, &[("CLAUDECODE", "1")]);
    check_below(None, &[], &[(4712, &[]), host], Ok("agent:claude-code"));
    let inside = "--as: this runs inside claude-code (CLAUDECODE is set in process 4711, which started it), \
                  so it cannot act as person:ada";
    check_below(Some("person:ada"), &[], &[(4712, &[]), host], Err(inside));
    check_below(Some("agent:a"), &[], &[host], Ok("agent:a"));
    let inside = "WAYPOST_ACTOR: this runs inside claude-code (CLAUDECODE is set in process 4711, which started \
                  it), so it cannot act as worker:w";
    check_below(None, &[("WAYPOST_ACTOR", "worker:w")], &[host], Err(inside));

    let task: (u32, &[(&str, &str)]) =
        (22, &[("WAYPOST_ACTOR", "worker:kq3"), ("WAYPOST_ATTEMPT", "1"), ("WAYPOST_PLAN", "kq3")]);
    check_below(None, &[], &[task], Ok("worker:kq3"));
    let inside = "--as: this runs inside a task of a plan (WAYPOST_ACTOR is set in process 22, which started it), \
                  so it cannot act as person:ada";
    check_below(Some("person:ada"), &[], &[task], Err(inside));
    // Both: a task whose program is an agent, and an agent that started a worker.
    check_below(None, &[("CLAUDECODE", "1")], &[task], Ok("worker:kq3"));
    check_below(None, &[], &[task, host], Ok("worker:kq3"));
    // A name that is none still tells the kind; a person's name above says nothing.
    check_below(None, &[], &[(1, &[("WAYPOST_ACTOR", "worker:")])], Ok("worker:someone"));
    check_below(None, &[], &[(1, &[("WAYPOST_ACTOR", "person:eve")])], Ok("person:ada"));
}

#[test]
fn at_most_so_many_ancestors_are_examined() {
    let caller = |distance: usize| {
        let mut ancestors = vec![Process::default(); distance];
        ancestors[distance - 1] = Process::new(Some(9), owned(&[("CLAUDECODE", "1")]));
        Evidence::of([], ancestors).caller(None, "ada").unwrap().to_string()
    };
    assert_eq!(caller(ANCESTORS_MAX), "agent:claude-code");
    assert_eq!(caller(ANCESTORS_MAX + 1), "person:ada");
}

#[test]
fn no_caller_exceeds_the_least_that_the_evidence_implies() {
    const VARIABLES: [(&str, &str); 12] = [
        ("CLAUDECODE", "1"),
        ("CODEX_CI", ""),
        ("AGENT", "amp"),
        ("AGENT", ""),
        ("CURSOR_TRACE_ID", "1"),
        ("PAGER", "head -n 10000 | cat"),
        ("WAYPOST_ATTEMPT", "1"),
        ("WAYPOST_WORKER", "w"),
        ("WAYPOST_PLAN", "kq3"),
        ("WAYPOST_ACTOR", "worker:kq3"),
        ("WAYPOST_ACTOR", "agent:b"),
        ("WAYPOST_ACTOR", "person:eve"),
    ];
    const FLAGS: [Option<&str>; 5] =
        [None, Some("person:ada"), Some("agent:a"), Some("worker:kq3"), Some("worker:other")];
    let rng = &mut SeededRng::new(6);
    let some = |rng: &mut SeededRng| -> Vec<(&str, &str)> {
        (0..rng.below(4)).map(|_| *rng.pick(&VARIABLES)).collect()
    };
    let mut refused = 0;
    for _ in 0..CALLERS {
        let own = some(rng);
        let above: Vec<_> = (0..rng.below(4)).map(|_| some(rng)).collect();
        let flag = *rng.pick(&FLAGS);
        // A reference that looks at all processes alike. A later value of a variable replaces an earlier one.
        let processes: Vec<_> = std::iter::once(&own).chain(&above).collect();
        let get = |process: &[(&str, &str)], name: &str| {
            process.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let says = |process: &[(&str, &str)], kind: &str| {
            get(process, "WAYPOST_ACTOR").is_some_and(|actor| actor.starts_with(kind))
        };
        let is_worker = processes.iter().any(|process| {
            get(process, "WAYPOST_ATTEMPT").is_some()
                || get(process, "WAYPOST_WORKER").is_some()
                || says(process, "worker:")
        });
        let is_agent = processes.iter().any(|process| {
            get(process, "CLAUDECODE").is_some()
                || get(process, "CODEX_CI").is_some()
                || get(process, "AGENT").is_some_and(|name| !name.is_empty())
                || get(process, "CURSOR_TRACE_ID").is_some() && get(process, "PAGER").is_some()
                || says(process, "agent:")
        });
        let least = match (is_worker, is_agent) {
            (true, _) => ActorKind::Worker,
            (false, true) => ActorKind::Agent,
            (false, false) => ActorKind::Person,
        };
        let ancestors = above.iter().enumerate().map(|(id, of)| Process::new(Some(id as u32), owned(of)));
        match Evidence::of(owned(&own), ancestors).caller(flag, "ada") {
            Ok(actor) => assert!(actor.kind >= least, "{actor} by {flag:?} {own:?} {above:?}"),
            Err(_) => refused += 1,
        }
    }
    assert!((CALLERS / 100..CALLERS).contains(&refused), "{refused} were refused");
}
