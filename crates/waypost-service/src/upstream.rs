//! What stands in other plans before the work of a plan, as an approver sees it: open tasks for people, and tasks with a check
//! or machine work. Agents may change those plans at any time, so an answer names what was seen.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::canonical::CanonicalHasher;
use waypost_core::{Dependency, ExternalTaskRef, GateAhead, PlanId, Task, TaskId};
use waypost_text::hex;

use crate::error::ServiceError;
use crate::gate::is_human;
use crate::human_answer::words_digest;
use crate::service::Service;

/// A task of another plan that work waits for, and what shows that it was done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgreedTask {
    plan: PlanId,
    task: TaskId,
    pub(crate) has_check: bool,
    pub(crate) has_work: bool,
}

/// What stands in other plans before the work of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    /// The open tasks for people.
    pub(crate) gates: Vec<GateAhead>,
    /// The words of each, as an approver reads them.
    words: Vec<String>,
    /// The tasks with a check or machine work.
    agreed: BTreeSet<AgreedTask>,
    /// The sequence number of the latest version of any plan.
    pub(crate) as_of: u64,
}

impl Upstream {
    /// Returns the digest by which a person names what they have seen: that of the work, and what stands before it.
    pub(crate) fn seen_digest(&self, work: &str) -> String {
        let Self { gates, words: _, agreed, as_of: _ } = self;
        if gates.is_empty() && agreed.is_empty() {
            return work.to_owned();
        }
        let mut hasher = CanonicalHasher::new("seen", 1);
        hasher.text(work);
        hasher.list(gates.iter(), |hasher, GateAhead { plan, task, before, question }| {
            hasher.text(plan.as_str()).text(task.as_str()).text(question);
            hasher.list(before.iter(), |hasher, task| hasher.text(task.as_str()))
        });
        hasher.list(agreed.iter(), |hasher, AgreedTask { plan, task, has_check, has_work }| {
            hasher.text(plan.as_str()).text(task.as_str());
            hasher.number(u64::from(*has_check)).number(u64::from(*has_work))
        });
        format!("sha256:{}", hex(&hasher.finish()))
    }

    /// Returns what an approver reads, by name.
    pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {
        let gate = |(GateAhead { plan, task, before, .. }, words): (&GateAhead, &String)| {
            let before: Vec<&str> = before.iter().map(TaskId::as_str).collect();
            format!("{plan}/{task} {words:?} (before {})", before.join(", "))
        };
        let agreed = |AgreedTask { plan, task, has_check, .. }: &AgreedTask| {
            format!("{plan}/{task} ({})", if *has_check { "checked" } else { "done by a machine" })
        };
        let join = |lines: Vec<String>| lines.join("; ");
        let texts = [
            ("waits for people in other plans", join(self.gates.iter().zip(&self.words).map(gate).collect())),
            ("waits for work in other plans", join(self.agreed.iter().map(agreed).collect())),
        ];
        texts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
    }
}

impl Service {
    /// Returns what stands in other plans before the work of a plan.
    pub(crate) fn upstream(&self, plan: &PlanId) -> Result<Upstream, ServiceError> {
        // Taken first: what others write meanwhile is not what a person agrees to.
        let as_of = self.plans().latest()?;
        let mut waits: BTreeMap<ExternalTaskRef, Vec<TaskId>> = BTreeMap::new();
        self.view(plan, |plan, _| {
            for (Task { spec, .. }, _) in plan.tasks() {
                for on in spec.depends_on.iter().filter_map(Dependency::external) {
                    waits.entry(on.clone()).or_default().push(spec.id.clone());
                }
            }
        })?;
        let mut gates: BTreeMap<(PlanId, TaskId), BTreeSet<TaskId>> = BTreeMap::new();
        let mut agreed = BTreeSet::new();
        for (on, waiting) in waits {
            for gate in self.open_gates(&on)? {
                gates.entry(gate).or_default().extend(waiting.iter().cloned());
            }
            for source in self.plans_named(&on)? {
                agreed.extend(self.agreed_task(&source, &on.task, as_of)?);
            }
        }
        let mut upstream = Upstream { gates: Vec::new(), words: Vec::new(), agreed, as_of };
        for ((plan, task), before) in gates {
            let (question, words) = self.gate_words(&plan, &task)?;
            upstream.gates.push(GateAhead { plan, task, before: before.into_iter().collect(), question });
            upstream.words.push(words);
        }
        Ok(upstream)
    }

    /// Returns the digest of the words of a task for people, and what it says first.
    pub(crate) fn gate_words(&self, plan: &PlanId, task: &TaskId) -> Result<(String, String), ServiceError> {
        let found = self.read(plan, |plan| {
            let found = plan.task(task.as_str()).map(|task| &task.spec);
            found.map(|spec| (words_digest(spec), spec.description.clone())).unwrap_or_default()
        });
        match found {
            Err(ServiceError::NoSuchPlan(_)) => Ok(Default::default()),
            found => found,
        }
    }

    /// Returns what showed that a task of another plan was done, when this sequence number was the latest; `None` if nothing did.
    pub(crate) fn agreed_task(
        &self,
        plan: &PlanId,
        task: &TaskId,
        sequence: u64,
    ) -> Result<Option<AgreedTask>, ServiceError> {
        let Some(then) = self.plan_then(plan, sequence)? else { return Ok(None) };
        let Some(Task { spec, .. }) = then.task(task.as_str()) else { return Ok(None) };
        let config = self.config()?;
        let has_check = spec.check.is_some();
        let has_work = spec.work.as_deref().is_some_and(|work| !is_human(&config, work));
        let (plan, task) = (plan.clone(), task.clone());
        Ok((has_check || has_work).then_some(AgreedTask { plan, task, has_check, has_work }))
    }
}
