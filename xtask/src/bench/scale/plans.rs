//! The plans of the modelled store: decided by the plans themselves, as in the real one, and numbered after the commit.

use std::collections::{BTreeSet, HashMap};

use anyhow::Result;
use waypost_config::{Config, Definitions};
use waypost_core::{
    Actor, ApprovalKind, ApprovedWork, Command, Draft, Event, Json, Plan, PlanId, Proof, Refusal, Task,
    TaskId, TaskSpec, Timestamp, Work,
};
use waypost_service::{Approved, Authenticator, preview_digest};
use waypost_store::VersionRecord;

/// Tasks of a plan.
pub(super) const PLAN_TASKS: usize = 20;

/// One plan with its history.
pub(super) struct StoredPlan {
    pub(super) plan: Plan,
    versions: Vec<VersionRecord>,
    /// The latest version that is on disk.
    durable: u64,
}

#[derive(Default)]
pub(super) struct StoredPlans {
    plans: Vec<StoredPlan>,
    places: HashMap<PlanId, usize>,
    /// Plans that have not ended, by the time of their creation.
    pub(super) active: BTreeSet<usize>,
    /// The versions with their numbers in the log.
    order: Vec<(usize, u64)>,
    /// Versions that are on disk and have no number yet.
    unnumbered: Vec<(usize, u64)>,
}

/// Which of the commands of a write must be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requirement {
    Whole,
    Possible,
}

impl StoredPlans {
    pub(super) fn place(&self, id: &PlanId) -> usize {
        self.places[id]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        self.plans.iter().map(|stored| &stored.plan)
    }

    pub(super) fn get(&self, place: usize) -> &Plan {
        &self.plans[place].plan
    }

    /// Stores an active plan of independent tasks that its author runs.
    pub(super) fn add(&mut self, config: &Config, now: Timestamp, tasks: usize) -> Result<usize> {
        let place = self.plans.len();
        let id = PlanId::new(format!("p{place}"))?;
        let author = Actor::person("ada");
        let mut draft = Draft::new(format!("plan {place}"));
        draft.tasks = (0..tasks).map(|number| Ok(Task::new(spec(number)?))).collect::<Result<_>>()?;
        let mut plan = Plan::blank(id.clone());
        let create = Command::Create { draft: draft.into(), approval_required: Some(false) };
        for command in [create, Command::Activate] {
            let events = plan.decide(&author, now, &command)?;
            plan.advance(&events, now);
        }
        let record = own_record(config, &plan, &author, now)?;
        let events = plan.decide(&author, now, &record)?;
        plan.advance(&events, now);
        plan.take_touched();
        let durable = plan.version();
        self.plans.push(StoredPlan { plan, versions: Vec::new(), durable });
        self.places.insert(id, place);
        self.active.insert(place);
        self.unnumbered.push((place, durable));
        Ok(place)
    }

    /// Writes commands as one version, which is not on disk yet.
    pub(super) fn write(
        &mut self,
        now: Timestamp,
        by: &Actor,
        place: usize,
        commands: &[Command],
        extent: Requirement,
    ) -> Result<(u64, Vec<Refusal>), Refusal> {
        let stored = &mut self.plans[place];
        let before = (extent == Requirement::Whole).then(|| stored.plan.clone());
        let at = now.max(stored.plan.state().updated_at.unwrap_or(now));
        let (mut events, mut refusals): (Vec<Event>, Vec<Refusal>) = (Vec::new(), Vec::new());
        for command in commands {
            match (stored.plan.decide(by, at, command), &before) {
                (Ok(decided), _) => {
                    decided.iter().for_each(|event| stored.plan.evolve(event, at));
                    events.extend(decided);
                }
                (Err(refusal), Some(before)) => {
                    stored.plan = before.clone();
                    return Err(refusal);
                }
                (Err(refusal), None) => refusals.push(refusal),
            }
        }
        if !events.is_empty() {
            stored.plan.finish_version(at);
            stored.plan.take_touched();
            let (plan, version) = (stored.plan.id().clone(), stored.plan.version());
            let (actor, command) = (by.clone(), String::new());
            stored.versions.push(VersionRecord { sequence: 0, plan, version, at, actor, command, events });
        }
        Ok((stored.plan.version(), refusals))
    }

    /// The latest write of a plan is on disk.
    pub(super) fn flushed(&mut self, place: usize) {
        let stored = &mut self.plans[place];
        for version in stored.durable + 1..=stored.plan.version() {
            self.unnumbered.push((place, version));
        }
        stored.durable = stored.plan.version();
        if stored.plan.state().phase.is_finished() {
            self.active.remove(&place);
        }
    }

    /// Gives the versions on disk their numbers.
    pub(super) fn number(&mut self) {
        self.order.append(&mut self.unnumbered);
    }

    pub(super) fn latest(&self) -> usize {
        self.order.len()
    }

    /// Returns the plans of the next versions of the log, with their latest versions there, and where the log was read to.
    pub(super) fn written_since(&self, seen: usize, limit: usize) -> (Vec<(usize, u64)>, usize) {
        let up_to = self.order.len().min(seen + limit);
        let mut plans: HashMap<usize, u64> = HashMap::new();
        for &(place, version) in &self.order[seen..up_to] {
            plans.insert(place, version);
        }
        let mut plans: Vec<(usize, u64)> = plans.into_iter().collect();
        plans.sort_unstable();
        (plans, up_to)
    }

    /// Returns the versions of a plan that are on disk, after one of them.
    pub(super) fn versions_since(&self, place: usize, known: u64, up_to: u64) -> Vec<VersionRecord> {
        let stored = &self.plans[place];
        let is_wanted = |entry: &&VersionRecord| entry.version > known && entry.version <= up_to;
        let from = stored.versions.partition_point(|entry| entry.version <= known);
        stored.versions[from..].iter().filter(is_wanted).cloned().collect()
    }

    pub(super) fn durable(&self, place: usize) -> u64 {
        self.plans[place].durable
    }
}

fn spec(number: usize) -> Result<TaskSpec> {
    let work = Work { executor: "run".to_owned(), inputs: Json::empty_object(), shape: None };
    let id = TaskId::new(format!("t{number}"))?;
    Ok(TaskSpec { work: Some(Box::new(work)), ..TaskSpec::new(id, "") })
}

/// Returns the record that the service writes when people run plans of their own: workers start nothing without it.
fn own_record(config: &Config, plan: &Plan, author: &Actor, now: Timestamp) -> Result<Command> {
    let (digest, _) = preview_digest(&Definitions::of(config), plan);
    let work = ApprovedWork {
        digest,
        definitions: Json::empty_object(),
        proof: Proof::Presence,
        via: "terminal".to_owned(),
        kind: ApprovalKind::Own,
        attestation: None,
        gates: Vec::new(),
        as_of: None,
    };
    let approved = Approved { plan: plan.id(), by: author, version: plan.version(), note: "" };
    let work = Authenticator::default()
        .attest(&config.approval, approved, work, now, None)
        .map_err(|error| anyhow::anyhow!("the record of a plan cannot be made: {error:?}"))?;
    Ok(Command::Approve { version: plan.version(), note: String::new(), work: Some(Box::new(work)) })
}
