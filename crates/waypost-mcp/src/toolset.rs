//! The toolsets: native, jaato, plan documents, orchestrator. A server offers one or several of them.

use crate::hints::HintPhrases;
use crate::tool::Tool;
use crate::{documents, jaato, native, orchestrator};

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Toolset {
    /// A few tools for everything, made for small contexts.
    Native,
    /// The tools of the jaato todo plugin, under their names.
    Jaato,
    /// Plan documents: a text, a version and a free-text status.
    Plans,
    /// For agents that submit work to machines.
    Orchestrator,
}

impl Toolset {
    /// All toolsets.
    pub const ALL: [Self; 4] = [Self::Native, Self::Jaato, Self::Plans, Self::Orchestrator];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub(crate) fn tools(self) -> Vec<Tool> {
        match self {
            Self::Native => native::tools(),
            Self::Jaato => jaato::tools(),
            Self::Plans => documents::tools(),
            Self::Orchestrator => orchestrator::tools(),
        }
    }

    /// The phrases of its hints.
    pub(crate) fn hints(self) -> &'static HintPhrases {
        match self {
            Self::Native => &native::HINTS,
            Self::Jaato => &jaato::HINTS,
            Self::Plans => &documents::HINTS,
            Self::Orchestrator => &orchestrator::HINTS,
        }
    }

    /// Other names under which its tools can be called. They are not listed: every listed tool costs the model's context.
    pub(crate) fn synonyms(self) -> Vec<Tool> {
        match self {
            Self::Plans => documents::synonyms(),
            Self::Native | Self::Jaato | Self::Orchestrator => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use strum::EnumCount;
    use waypost_core::{Actor, ActorKind, Phase, PlanId, Refusal, Status, TaskId};
    use waypost_service::{IdOf, ServiceError};
    use waypost_store::StoreError;

    use super::*;
    use crate::hints::about;

    /// Every refusal, some in several forms: a new variant fails the test until it is listed here.
    fn all_refusals() -> Vec<Refusal> {
        let task = || "t1".to_owned();
        let mut all = vec![
            Refusal::Invalid { problems: Vec::new() },
            Refusal::NoSuchTask { task: task(), nearest: None },
            Refusal::NoSuchTask { task: task(), nearest: Some("t2".to_owned()) },
            Refusal::NeedsApproval {},
            Refusal::OnlyAPerson { what: "approve", by: Actor::agent("b") },
            Refusal::HumanGate {
                plan: "p1".to_owned(),
                task: task(),
                whom: "a person".to_owned(),
                by: "agent:b".to_owned(),
                wanted: "end it",
            },
            Refusal::NotItsTask { plan: "p1".to_owned(), by: "worker:w".to_owned() },
            Refusal::StoppedByPerson {
                by: "person:ada".to_owned(),
                did: "paused the plan".to_owned(),
                reason: String::new(),
                wanted: "resume it",
            },
            Refusal::NotWhatWasLookedAt { looked_at: 1, current: 2 },
            Refusal::StaleAttempt { task: task(), given: 1, current: 2 },
            Refusal::StaleAttempt { task: task(), given: 2, current: 1 },
            Refusal::AlreadyRunning { task: task(), worker: "agent:b".to_owned() },
            Refusal::Blocked { task: task(), waits_for: vec![task()] },
            Refusal::Held { task: task(), by: "person:ada".to_owned(), reason: String::new() },
            Refusal::HasDependants { task: task(), dependants: vec![task()] },
            Refusal::IsParent { task: task() },
            Refusal::MachineWork { task: task(), executor: "build".to_owned(), by: ActorKind::Agent },
            Refusal::AwaitsCheck { task: task(), reported_by: "agent:b".to_owned() },
            Refusal::AwaitsAnswer { task: task(), question: "?".to_owned() },
            Refusal::NoQuestion { task: task() },
            Refusal::NotAChoice { task: task(), answer: "x".to_owned(), choices: vec!["y".to_owned()] },
            Refusal::NoEvidence { task: task(), why: "none" },
            Refusal::NotAwaited { task: task(), dependency: "x".to_owned() },
            Refusal::StillRunning { running: vec![task()] },
            Refusal::LockHeld { task: task(), key: "k".to_owned(), holder: "t2".to_owned() },
            Refusal::QueueFull { task: task(), queue: "default".to_owned(), concurrency: 1 },
            Refusal::Archived { stopped_by: None },
            Refusal::Archived { stopped_by: Some(Actor::person("ada")) },
            Refusal::AlreadyExists {},
            Refusal::NotCreated {},
        ];
        all.extend(Status::ALL.map(|status| {
            let (queued, wanted, stopped_by) = (false, "done", None);
            Refusal::WrongStatus { task: task(), status, queued, wanted, stopped_by }
        }));
        all.extend(Phase::ALL.map(|phase| Refusal::wrong_phase(phase, "paused")));
        all.extend(Phase::ALL.map(|phase| Refusal::wrong_phase(phase, "cancelled")));
        let kinds: HashSet<_> = all.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), Refusal::COUNT, "each variant is there");
        all
    }

    /// All hints of a toolset.
    fn all_hints(set: Toolset) -> Vec<String> {
        let plan = || PlanId::new("kq3").unwrap();
        let (task, agent) = (TaskId::new("t1").unwrap(), "a".to_owned());
        let (what, prefix, candidates) = (IdOf::Plan, "k".to_owned(), vec!["kq3".to_owned()]);
        let mut errors: Vec<ServiceError> = all_refusals().into_iter().map(ServiceError::Refused).collect();
        errors.extend([
            ServiceError::NoSuchPlan("kq3".to_owned()),
            ServiceError::Ambiguous { what, prefix, candidates, more: false },
            ServiceError::NoSuchVersion { plan: plan(), wanted: 9, current: 2 },
            ServiceError::IdUsed(plan()),
            ServiceError::HeldByOtherSession { task, agent, until: None },
            ServiceError::Store(StoreError::Busy),
            ServiceError::Store(StoreError::Database("x".to_owned())),
        ]);
        errors.iter().map(|error| about(error, set.hints())).collect()
    }

    #[test]
    fn every_definition_of_a_tool_has_a_handler() {
        let tools: BTreeSet<String> = Toolset::ALL
            .into_iter()
            .flat_map(Toolset::tools)
            .chain(crate::documents::synonyms())
            .map(|tool| tool.definition.name.into())
            .collect();
        for definitions in [
            include_str!("native/tools.json"),
            include_str!("jaato/tools.json"),
            include_str!("documents/tools.json"),
            include_str!("documents/synonyms.json"),
            include_str!("orchestrator/tools.json"),
        ] {
            let definitions: Vec<serde_json::Value> = serde_json::from_str(definitions).unwrap();
            for definition in definitions {
                let name = definition["name"].as_str().unwrap();
                assert!(tools.contains(name), "{name} is defined, and nothing handles it");
            }
        }
    }

    #[test]
    fn a_caller_on_another_machine_is_told_of_no_command() {
        for hint in Toolset::ALL.into_iter().flat_map(all_hints) {
            let remote = crate::hints::for_remote(&hint);
            assert!(!remote.contains("`waypost"), "{remote}");
        }
        let remote = crate::hints::for_remote("it is paused; a person runs `waypost resume kq3`, then wait");
        assert_eq!(remote, "it is paused; a person does it in the dashboard (resume), then wait");
    }

    #[test]
    fn a_command_is_named_only_where_a_person_is_to_run_it() {
        for set in Toolset::ALL {
            for hint in all_hints(set) {
                let commands = hint.matches("`waypost ").count();
                assert_eq!(
                    commands,
                    hint.matches("a person runs `waypost ").count(),
                    "{}: {hint}",
                    set.name()
                );
            }
        }
    }

    #[test]
    fn a_hint_names_tools_of_the_set_that_was_called_and_no_others() {
        let names = |set: Toolset| -> BTreeSet<String> {
            set.tools().into_iter().map(|tool| tool.definition.name.into()).collect()
        };
        for set in Toolset::ALL {
            let own = names(set);
            let others: BTreeSet<String> =
                Toolset::ALL.into_iter().flat_map(names).filter(|name| !own.contains(name)).collect();
            let mut named = 0;
            for hint in all_hints(set) {
                let is_word = |character: char| character.is_alphanumeric() || character == '_';
                for word in hint.split(|character| !is_word(character)) {
                    // `events` is also an ordinary word.
                    assert!(!others.contains(word) || word == "events", "{}: {hint}", set.name());
                    named += usize::from(own.contains(word));
                    assert!(
                        !word.contains('_')
                            || own.contains(word)
                            || word == "take_over"
                            || word == "in_progress"
                            || word == "plan_id",
                        "{hint}"
                    );
                }
            }
            assert!(named > 0, "{} names its tools", set.name());
        }
    }
}
