//! Many agents at once, each with a server process of its own on one store: nothing that was acknowledged is lost, and
//! of two who knew the same version one wins.

use std::collections::BTreeSet;
use std::sync::Barrier;

use serde_json::{Value, json};
use waypost_core::{Event, PlanId};
use waypost_store::{Durability, PlanStore, Query, open};

use crate::front_ends::{McpClient, Reply};
use crate::transcript::Workspace;

fn begin(workspace: &Workspace, name: &str) -> McpClient {
    McpClient::with_arguments(workspace, name, &["--toolset", "plans"])
}

/// Calls a tool that has to do it, and says the version.
fn write(client: &mut McpClient, tool: &str, arguments: Value) -> u64 {
    client.call(tool, arguments).accepted()["version"].as_u64().unwrap()
}

fn plans(workspace: &Workspace) -> PlanStore {
    let location = format!("sqlite:{}", workspace.work().join(".waypost/waypost.db").display());
    PlanStore::new(open(&location, Durability::default()).unwrap())
}

#[test]
fn twenty_agents_write_fifty_times_each_to_one_plan_and_nothing_is_lost() {
    const AGENTS: usize = 20;
    const WRITES: usize = 50;
    let workspace = Workspace::new();
    let mut first = begin(&workspace, "first");
    assert_eq!(write(&mut first, "create_plan", json!({ "name": "shared", "content": "begun" })), 1);
    first.end();
    let acknowledged: Vec<(u64, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AGENTS)
            .map(|agent| {
                let workspace = &workspace;
                scope.spawn(move || {
                    let mut client = begin(workspace, &format!("agent-{agent}"));
                    let written = (0..WRITES).map(|number| {
                        let content = format!("write {number} of agent {agent}\n");
                        let arguments = json!({ "name": "shared", "content": content });
                        (write(&mut client, "update_plan", arguments), content)
                    });
                    let written: Vec<_> = written.collect();
                    client.end();
                    written
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let total = (AGENTS * WRITES) as u64;
    let versions: BTreeSet<u64> = acknowledged.iter().map(|(version, _)| *version).collect();
    assert!(versions.iter().copied().eq(2..=total + 1), "every version is one agent's, and none is missing");
    let history = plans(&workspace).history(&PlanId::new("shared").unwrap(), 1, 2 * total as usize).unwrap();
    assert_eq!(history.len() as u64, total);
    for (version, content) in acknowledged {
        let entry = &history[version as usize - 2];
        assert_eq!(entry.version, version);
        let kept = entry.events.iter().find_map(|event| match event {
            Event::PlanRevised { body, .. } => body.as_ref(),
            _ => None,
        });
        assert_eq!(kept, Some(&content), "version {version} holds what its writer was told that it holds");
    }
}

#[test]
fn eight_agents_create_a_hundred_plans_each_and_nothing_is_lost() {
    const AGENTS: usize = 8;
    const PLANS: usize = 100;
    let workspace = Workspace::new();
    std::thread::scope(|scope| {
        for agent in 0..AGENTS {
            let workspace = &workspace;
            scope.spawn(move || {
                let mut client = begin(workspace, &format!("agent-{agent}"));
                for number in 0..PLANS {
                    let name = format!("plan-{agent}-{number}");
                    let content = format!("of agent {agent}");
                    assert_eq!(
                        write(&mut client, "create_plan", json!({ "name": name, "content": content })),
                        1
                    );
                }
                client.end();
            });
        }
    });
    let plans = plans(&workspace);
    let page = plans.heads(&Query { limit: 2 * AGENTS * PLANS, ..Query::default() }).unwrap();
    assert_eq!(page.items.len(), AGENTS * PLANS);
    for head in page.items {
        let agent = head.id.as_str().split('-').nth(1).unwrap().to_owned();
        let body = plans.with_plan(&head.id, |plan| plan.spec().body.clone()).unwrap();
        assert_eq!((head.version, body), (1, format!("of agent {agent}")));
    }
    assert_eq!(plans.latest().unwrap(), (AGENTS * PLANS) as u64, "the log has no gaps");
}

#[test]
fn of_two_processes_that_knew_the_same_version_exactly_one_wins_every_round() {
    const ROUNDS: u64 = 60;
    let workspace = Workspace::new();
    let mut first = begin(&workspace, "first");
    write(&mut first, "create_plan", json!({ "name": "shared", "content": "round 0" }));
    first.end();
    let barrier = Barrier::new(2);
    let won: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let threads: Vec<_> = ["left", "right"]
            .map(|name| {
                let (workspace, barrier) = (&workspace, &barrier);
                scope.spawn(move || {
                    let mut client = begin(workspace, name);
                    let rounds = (1..=ROUNDS).map(|known| {
                        let content = format!("{name} {known}");
                        let arguments =
                            json!({ "name": "shared", "content": content, "last_known_version": known });
                        barrier.wait();
                        let (did, answer) = match client.call("write_plan", arguments) {
                            Reply::Accepted(answer) => (true, answer),
                            Reply::Refused { answer, .. } => (false, answer),
                        };
                        assert_eq!(
                            answer["version"],
                            known + 1,
                            "winner and loser are told the same version"
                        );
                        assert!(did || answer["code"] == "conflict", "{answer}");
                        did
                    });
                    let rounds = rounds.collect();
                    client.end();
                    rounds
                })
            })
            .into_iter()
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (round, (left, right)) in won[0].iter().zip(&won[1]).enumerate() {
        assert!(left ^ right, "round {round}: left {left}, right {right}");
    }
    let version = plans(&workspace).with_plan(&PlanId::new("shared").unwrap(), waypost_core::Plan::version);
    assert_eq!(version.unwrap(), ROUNDS + 1);
}
