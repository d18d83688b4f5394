//! Clones of one plan under random commands, with random exchanges of records. Whatever they do, all come to the same plan,
//! nothing is lost, the plan is sound, and every question can be answered.
//!
//! A failure prints its seed; `WAYPOST_SEED=17 cargo test -p waypost-operation clones` reproduces it, and `WAYPOST_SEEDS=9000`
//! runs more seeds.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{
    Actor, Command, Dependency, Event, MergeRequest, PLAN_ENDED, Phase, Plan, PlannerNotes, Status, StopKind,
    Task, TaskId, TaskSpec, Timestamp, validate,
};
use waypost_operation::{
    Answer, AnswerKind, CloneTag, Conflict, ConflictKind, Disposition, Inserted, Merged, OperationSet,
    ParsedRecord, Record, RecordId, Stamp, answer, derive, merge, merge_request, settle_request, share,
};
use waypost_testkit::SeededRng;

use crate::commands::Commands;
use crate::kit::{ada, at, plan_id};

const SEEDS: u64 = 100;
const STEPS: usize = 150;

#[test]
fn whatever_clones_do_they_come_to_the_same_plan() {
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let one = number("WAYPOST_SEED");
    let seeds = one.map_or(0..number("WAYPOST_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in seeds {
        let run = std::panic::catch_unwind(|| World::new(seed).run());
        match run {
            Ok(saw) => saw.into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count),
            Err(_) => panic!("the simulation failed with WAYPOST_SEED={seed}"),
        }
    }
    if std::env::var_os("WAYPOST_SHOW").is_some() {
        println!("{seen:#?}");
    }
    if one.is_none() {
        for what in [
            "applied",
            "superseded",
            "set_aside",
            "disputed",
            "dismissed",
            "gone",
            "removal",
            "outcome",
            "forged",
            "record",
        ] {
            assert!(seen.get(what).is_some_and(|&count| count > 0), "{what} came up: {seen:?}");
        }
    }
}

struct Clone {
    plan: Plan,
    set: OperationSet,
    tag: CloneTag,
    commands: Commands,
}

struct World {
    dice: SeededRng,
    clones: Vec<Clone>,
    seconds: u64,
    acknowledged: BTreeSet<RecordId>,
    seen: BTreeMap<String, usize>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = SeededRng::new(seed);
        let count = 2 + dice.below(3);
        let clones = (0..count).map(|number| Clone {
            plan: Plan::blank(plan_id()),
            set: OperationSet::new(plan_id()),
            tag: CloneTag::new(format!("c{number}")).unwrap(),
            commands: Commands::new(seed.wrapping_mul(31).wrapping_add(number as u64)),
        });
        let clones = clones.collect();
        Self { dice, clones, seconds: 0, acknowledged: BTreeSet::new(), seen: BTreeMap::new() }
    }

    fn now(&self) -> Timestamp {
        at(self.seconds)
    }

    fn run(mut self) -> BTreeMap<String, usize> {
        self.create();
        for _ in 0..STEPS {
            self.seconds += 1 + self.dice.below(20) as u64;
            let clone = self.dice.below(self.clones.len());
            if self.dice.chance(75) || self.clones[clone].plan.version() == 0 {
                self.act(clone);
            } else if self.dice.chance(5) {
                self.forge(clone);
            } else {
                let from = self.dice.below(self.clones.len());
                let percent = if self.dice.chance(80) { 100 } else { 60 };
                self.receive(clone, from, percent);
            }
        }
        self.quiesce();
        self.count_dispositions();
        self.answer_everything();
        self.quiesce();
        self.count_dispositions();
        *self.seen.entry("record".to_owned()).or_default() += self.acknowledged.len();
        self.seen
    }

    fn count_dispositions(&mut self) {
        for disposition in merge(&self.clones[0].set).dispositions {
            *self.seen.entry(disposition.disposition.as_str().to_owned()).or_default() += 1;
        }
    }

    /// The first clone creates the plan, works on it and shares it.
    fn create(&mut self) {
        while self.clones[0].plan.version() == 0 {
            let draft = self.clones[0].commands.draft();
            let command = Command::Create { draft: draft.into(), approval_required: None };
            self.decide(0, &ada(), &command);
        }
        for _ in 0..self.dice.below(8) {
            self.seconds += 1;
            let seconds = self.seconds;
            let Clone { plan, commands, .. } = &mut self.clones[0];
            let (by, command) = commands.next(plan, seconds);
            self.decide(0, &by, &command);
        }
        let clone = &self.clones[0];
        let stamp = Stamp { at: self.now(), by: ada(), from: clone.tag.clone() };
        let records = share(&clone.set, &clone.plan, &stamp).unwrap();
        assert_eq!(records, share(&clone.set, &clone.plan, &stamp).unwrap(), "the same bytes");
        self.acknowledge(0, records);
        self.agrees(0, "after it was shared");
        for clone in 1..self.clones.len() {
            self.receive(clone, 0, 100);
        }
    }

    /// Decides a command without records.
    fn decide(&mut self, clone: usize, by: &Actor, command: &Command) {
        let now = self.now();
        let plan = &mut self.clones[clone].plan;
        if let Ok(events) = plan.decide(by, now, command)
            && (!events.is_empty() || plan.version() == 0)
        {
            plan.advance(&events, now);
        }
    }

    fn acknowledge(&mut self, clone: usize, records: Vec<Record>) {
        for record in records {
            let line = record.to_line();
            let parsed = Record::parse(line.as_bytes()).unwrap();
            assert_eq!(parsed, ParsedRecord::from(record.clone()), "{line}");
            assert_eq!(self.clones[clone].set.insert(parsed), Inserted::New);
            self.acknowledged.insert(record.id());
        }
    }

    /// A clone does something, and turns it into records.
    fn act(&mut self, clone: usize) {
        let now = self.now();
        let seconds = self.seconds;
        let Clone { plan, set, tag, commands } = &mut self.clones[clone];
        if plan.version() == 0 {
            return;
        }
        let (by, command) = commands.next(plan, seconds);
        let Ok(events) = plan.decide(&by, now, &command) else { return };
        if events.is_empty() {
            return;
        }
        let had_conflicts = !merge(set).conflicts.is_empty();
        let before = plan.clone();
        plan.advance(&events, now);
        let stamp = Stamp { at: now, by, from: tag.clone() };
        let records = derive(set, &before, plan, &events, &stamp).unwrap();
        assert_eq!(records, derive(set, &before, plan, &events, &stamp).unwrap(), "the same bytes");
        let made: Vec<RecordId> = records.iter().map(Record::id).collect();
        self.acknowledge(clone, records);
        let set = &self.clones[clone].set;
        let merged = merge(set);
        if had_conflicts || !merged.renamed.is_empty() {
            // What was set aside may hold now, and names that were taken may be free.
            let request = settle_request(set, &merged, &made);
            return self.import_as(clone, request);
        }
        self.agrees(clone, &format!("after {command:?} → {events:?}"));
    }

    /// Somebody who may push answers a question in the name of an agent, as no clone lets one.
    fn forge(&mut self, clone: usize) {
        let asked: Vec<Conflict> = merge(&self.clones[clone].set).conflicts;
        let answerable = |conflict: &&Conflict| {
            matches!(conflict.kind, ConflictKind::Field(_) | ConflictKind::Outcome | ConflictKind::Removal)
        };
        let Some(conflict) = asked.iter().find(answerable) else { return };
        let given = self.some_answer(conflict);
        let (now, set) = (self.now(), &self.clones[clone].set);
        let from = CloneTag::new("zzz").unwrap();
        let actions = answer(set, conflict, &given).unwrap();
        let record = set.record(now, Actor::agent("eve"), from, actions).unwrap();
        let id = record.id();
        self.acknowledge(clone, vec![record]);
        *self.seen.entry("forged".to_owned()).or_default() += 1;
        let left = merge(&self.clones[clone].set).conflicts;
        let is_left = |other: &Conflict| (&other.task, &other.subject) == (&conflict.task, &conflict.subject);
        assert!(left.iter().any(is_left), "{given:?} of an agent answers {conflict:?}");
        self.import(clone, &[id]);
    }

    /// A clone gets records of another one, in any order, some of them twice.
    fn receive(&mut self, clone: usize, from: usize, percent: u64) {
        let mut lines: Vec<String> = self.clones[from].set.records().map(ParsedRecord::to_line).collect();
        lines.retain(|_| self.dice.chance(percent));
        for place in (1..lines.len()).rev() {
            let other = self.dice.below(place + 1);
            lines.swap(place, other);
        }
        if let Some(first) = lines.first().cloned() {
            lines.push(first);
        }
        let mut new = Vec::new();
        for line in lines {
            let record = Record::parse(line.as_bytes()).unwrap();
            let id = record.id();
            if self.clones[clone].set.insert(record) == Inserted::New {
                new.push(id);
            }
        }
        if !new.is_empty() {
            self.import(clone, &new);
        }
    }

    fn import(&mut self, clone: usize, new: &[RecordId]) {
        let set = &self.clones[clone].set;
        self.import_as(clone, merge_request(set, &merge(set), new));
    }

    fn import_as(&mut self, clone: usize, request: MergeRequest) {
        let now = self.now();
        let set = &self.clones[clone].set;
        let next = Command::Merge(Box::new(merge_request(set, &merge(set), &[])));
        let command = Command::Merge(Box::new(request));
        let by = Actor::system("sync");
        let plan = &mut self.clones[clone].plan;
        let before = plan.clone();
        let events = plan.decide(&by, now, &command).unwrap();
        if !events.is_empty() {
            plan.advance(&events, now);
        }
        starts_nothing(&before, plan, &events);
        let again = plan.decide(&by, now, &next).unwrap();
        assert_eq!(again, [], "the same import changes nothing more, after {events:?}");
        assert_eq!(
            derive(
                &OperationSet::new(plan_id()),
                &before,
                plan,
                &events,
                &Stamp { at: now, by, from: CloneTag::new("x").unwrap() }
            )
            .unwrap()
            .len(),
            0
        );
        self.agrees(clone, &format!("after the import {events:?}"));
    }

    /// The plan of a clone is what its records say.
    fn agrees(&self, clone: usize, what: &str) {
        let Clone { plan, set, .. } = &self.clones[clone];
        let merged = merge(set);
        is_sound(set, &merged);
        let differences = unlike(plan, &merged);
        assert!(
            differences.is_empty(),
            "clone {clone} differs from its records {what}:\n{}",
            differences.join("\n")
        );
    }

    /// Everything reaches everybody.
    fn quiesce(&mut self) {
        for _ in 0..2 {
            for clone in 0..self.clones.len() {
                for from in 0..self.clones.len() {
                    self.receive(clone, from, 100);
                }
            }
        }
        let said: Vec<String> = self.clones.iter().map(|clone| said(&merge(&clone.set))).collect();
        let ids = |clone: &Clone| clone.set.records().map(ParsedRecord::id).collect::<BTreeSet<RecordId>>();
        for (clone, text) in self.clones.iter().zip(&said) {
            assert_eq!(ids(clone), self.acknowledged, "nothing that was acknowledged is lost");
            assert_eq!(clone.set.heads(), self.clones[0].set.heads());
            assert!(*text == said[0], "clones come to different plans");
        }
        self.is_the_same_in_any_order(&said[0]);
        self.ends_are_the_same();
    }

    /// Once nothing runs any more, tasks have the same statuses in all clones in which the plan has begun.
    fn ends_are_the_same(&mut self) {
        let begun = self.clones.iter().map(|clone| &clone.plan).filter(|plan| {
            // What other plans delivered does not travel.
            let mut tasks = plan.tasks();
            plan.state().started_at.is_some() && tasks.all(|(task, _)| task.state.received.is_empty())
        });
        let plans: Vec<Plan> = begun.map(|plan| at_rest(plan.clone(), self.now())).collect();
        let Some((first, others)) = plans.split_first() else { return };
        for other in others {
            let mut differences = Vec::new();
            for (here, _) in first.tasks() {
                let there = other.task(here.spec.id.as_str()).unwrap();
                // What its author passes over is passed over when its turn comes, and a check counts only where it ran.
                let above = |id: &TaskId| first.task(id.as_str())?.spec.parent.clone();
                let mut line = std::iter::successors(Some(here.spec.id.clone()), above);
                let is_passed_over = line.any(|id| first.task(id.as_str()).unwrap().spec.skip);
                let is_group = !first.sibling_ids(Some(here.spec.id.as_str())).is_empty();
                let is_checked = here.spec.check.is_some();
                // What was skipped stays so in a plan that somebody ended, until somebody opens it in that clone.
                let is_kept =
                    |plan: &Plan, task: &Task| plan.state().closed && task.state.status == Status::Skipped;
                let is_exempt = is_passed_over || is_group || is_checked;
                let is_exempt = is_exempt || is_kept(first, here) || is_kept(other, there);
                if !is_exempt && here.state.status != there.state.status {
                    differences.push(format!("{}: {:?}\n    {:?}", here.spec.id, here.state, there.state));
                }
            }
            let phases = (first.state(), other.state());
            assert!(differences.is_empty(), "{phases:?}\n{}", differences.join("\n"));
        }
    }

    fn is_the_same_in_any_order(&mut self, said_before: &str) {
        let mut records: Vec<ParsedRecord> = self.clones[0].set.records().cloned().collect();
        records.reverse();
        let place = self.dice.below(records.len());
        records.rotate_left(place);
        let mut set = OperationSet::new(plan_id());
        let mut subset = OperationSet::new(plan_id());
        for record in records {
            if self.dice.chance(70) {
                subset.insert(record.clone());
            }
            set.insert(record);
        }
        assert!(said(&merge(&set)) == said_before, "the order of arrival matters");
        is_sound(&subset, &merge(&subset));
    }

    /// Answers one question after the other, until none is left.
    fn answer_everything(&mut self) {
        for round in 0.. {
            let clone = self.dice.below(self.clones.len());
            let merged = merge(&self.clones[clone].set);
            let Some(conflict) = merged.conflicts.first().cloned() else { break };
            assert!(round < 2_000, "every question can be answered: {conflict:?}");
            *self.seen.entry(conflict.subject.clone()).or_default() += 1;
            assert!(!conflict.text.is_empty() && !conflict.answers.is_empty());
            let given = self.some_answer(&conflict);
            let clone_set = &self.clones[clone].set;
            let actions = answer(clone_set, &conflict, &given).unwrap();
            let tag = self.clones[clone].tag.clone();
            let record = clone_set.record(self.now(), ada(), tag, actions).unwrap();
            let id = record.id();
            self.acknowledge(clone, vec![record]);
            let left = merge(&self.clones[clone].set).conflicts;
            let is_left = |other: &Conflict| {
                (&other.task, &other.text, &other.versions)
                    == (&conflict.task, &conflict.text, &conflict.versions)
            };
            assert!(!left.iter().any(is_left), "{given:?} answers {conflict:?}");
            self.import(clone, &[id]);
            for other in 0..self.clones.len() {
                self.receive(other, clone, 100);
            }
        }
    }

    fn some_answer(&mut self, conflict: &Conflict) -> Answer {
        match *self.dice.pick(&conflict.answers) {
            AnswerKind::Take => {
                let place = self.dice.below(conflict.versions.len());
                Answer::Take(conflict.versions[place].record)
            }
            AnswerKind::Text => Answer::Text("both".to_owned()),
            AnswerKind::Keep => Answer::Keep,
            AnswerKind::Remove => Answer::Remove,
            AnswerKind::Dismiss => Answer::Dismiss,
        }
    }
}

#[test]
fn a_plan_of_a_hundred_thousand_tasks_is_shared_in_parts_and_merged() {
    let mut draft = waypost_core::Draft::new("large");
    draft.tasks = waypost_testkit::chain(100_000).tasks;
    let mut plan = Plan::blank(plan_id());
    let create = Command::Create { draft: draft.into(), approval_required: None };
    plan.advance(&plan.decide(&ada(), at(0), &create).unwrap(), at(0));
    let mut set = OperationSet::new(plan_id());
    let stamp = Stamp { at: at(1), by: ada(), from: CloneTag::new("k7f").unwrap() };
    let records = share(&set, &plan, &stamp).unwrap();
    assert!(records.len() > 1, "a record has at most 10,000 actions");
    for record in records {
        set.insert(Record::parse(record.to_line().as_bytes()).unwrap());
    }
    let merged = merge(&set);
    assert_eq!(unlike(&plan, &merged), Vec::<String>::new());
    // One more record costs one task.
    let task = plan.tasks().nth(50_000).unwrap().0.spec.id.clone();
    let changes = waypost_core::TaskChanges { notes: Some("with care".into()), ..Default::default() };
    let revise = Command::ReviseTask { task, changes: Box::new(changes) };
    let before = plan.clone();
    let events = plan.decide(&ada(), at(2), &revise).unwrap();
    plan.advance(&events, at(2));
    let more = derive(&set, &before, &plan, &events, &stamp).unwrap();
    assert_eq!((more.len(), more[0].actions().len()), (1, 1));
    let mut other = Plan::blank(plan_id());
    let request = merge_request(&set, &merged, &[]);
    let by = Actor::system("sync");
    other.advance(&other.decide(&by, at(3), &Command::Merge(Box::new(request))).unwrap(), at(3));
    assert_eq!(other.len(), 100_000);
}

/// The plan after all its running tasks were released.
fn at_rest(mut plan: Plan, now: Timestamp) -> Plan {
    let running: Vec<TaskId> = plan.in_progress().map(|task| task.spec.id.clone()).collect();
    for task in running {
        let release = Command::ReleaseTask { task, attempt: None, reason: "the end".into() };
        let events = plan.decide(&ada(), now, &release).unwrap();
        plan.advance(&events, now);
    }
    plan
}

/// What a merge says, as text.
fn said(merged: &Merged) -> String {
    let parts = (
        &merged.draft,
        &merged.conflicts,
        &merged.dispositions,
        &merged.claims,
        &merged.questions,
        &merged.stop,
    );
    serde_json::to_string(&parts).unwrap()
}

/// A merged plan is valid, and every action has one disposition; those that are set aside or disputed are in a question.
fn is_sound(set: &OperationSet, merged: &Merged) {
    assert_eq!(validate(&merged.draft), [], "{:#?}", merged.draft);
    let ids: BTreeSet<&TaskId> = merged.draft.tasks.iter().map(|task| &task.spec.id).collect();
    assert_eq!(ids.len(), merged.draft.tasks.len(), "names are unique");
    let mut dispositions = merged.dispositions.iter();
    let refused: BTreeSet<RecordId> = set.refused().into_iter().map(|(id, _)| id).collect();
    for record in
        set.records().filter_map(ParsedRecord::known).filter(|record| !refused.contains(&record.id()))
    {
        for index in 0..record.actions().len() as u32 {
            let disposition = dispositions.next().unwrap();
            assert_eq!(
                (disposition.record, disposition.index),
                (record.id(), index),
                "every action has one disposition, in order"
            );
            let is_open =
                matches!(disposition.disposition, Disposition::SetAside { .. } | Disposition::Disputed);
            let text = serde_json::to_string(&merged.conflicts).unwrap();
            assert!(
                !is_open || text.contains(&record.id().to_string()),
                "{disposition:?} {:?} is in a question: {text}",
                record.actions()[index as usize]
            );
        }
    }
    assert!(dispositions.next().is_none());
}

/// An import makes nothing active, starts nothing and approves nothing.
fn starts_nothing(before: &Plan, after: &Plan, events: &[Event]) {
    let (old, new) = (before.state(), after.state());
    if new.phase == Phase::Active {
        assert_eq!(old.phase, Phase::Active, "an import made the plan active: {events:?}");
    }
    if new.approval.is_some() {
        assert_eq!(old.approval, new.approval);
    }
    for task in after.in_progress() {
        let old = before.task(task.spec.id.as_str()).unwrap();
        assert_eq!(
            (old.state.status, old.state.attempt),
            (Status::Running, task.state.attempt),
            "{events:?}"
        );
    }
    // Its id means another task now.
    let is_other = |task: &TaskId| {
        let mut removed = events.iter().filter_map(|event| match event {
            Event::TasksRemoved { tasks } => Some(tasks),
            _ => None,
        });
        removed.any(|tasks| tasks.contains(task))
    };
    for (task, _) in before.tasks() {
        if !is_other(&task.spec.id)
            && task.state.held().is_some_and(|hold| hold.by.kind != waypost_core::ActorKind::System)
            && let Some(new) = after.task(task.spec.id.as_str())
        {
            assert!(new.state.held().is_some(), "an import lifted a hold: {events:?}");
        }
    }
    if old.phase == Phase::Paused {
        assert!(
            new.phase != Phase::Active && (new.phase != Phase::Draft || new.stopped_by.is_some()),
            "{events:?}"
        );
    }
    if new.phase == Phase::Active && before.has_machine_work() {
        assert_eq!(before.work_digest(), after.work_digest(), "active, and other work would run: {events:?}");
    }
}

/// How the plan of a clone differs from what its records say.
fn unlike(plan: &Plan, merged: &Merged) -> Vec<String> {
    let mut found = Vec::new();
    let local = plan.to_draft();
    let mut check = |what: String, here: String, there: String| {
        if without_suffixes(&here) != without_suffixes(&there) {
            found.push(format!("{what}: here {here}, merged {there}"));
        }
    };
    check("the plan".into(), format!("{:?}", local.spec), format!("{:?}", merged.draft.spec));
    let ids =
        |tasks: &[Task]| tasks.iter().map(|task| task.spec.id.to_string()).collect::<Vec<_>>().join(" ");
    check("tasks".into(), ids(&local.tasks), ids(&merged.draft.tasks));
    let groups: BTreeSet<&TaskId> =
        merged.draft.tasks.iter().filter_map(|task| task.spec.parent.as_ref()).collect();
    for (here, there) in local.tasks.iter().zip(&merged.draft.tasks) {
        let id = here.spec.id.to_string();
        check(id.clone(), format!("{:?}", plain(&here.spec)), format!("{:?}", plain(&there.spec)));
        let said = |task: &Task| {
            let state = &task.state;
            let said = format!("{:?} {:?} {:?}", state.labels(), state.assignee(), state.comments());
            // An author is proved in the own clone alone.
            said.replace(" (unverified)", "")
        };
        check(format!("what is said about {id}"), said(here), said(there));
        if groups.contains(&here.spec.id) {
            continue;
        }
        let (status, wanted) = (here.state.status, there.state.status);
        let is_checked =
            there.spec.check.is_some() && (here.state.reported().is_some() || status == Status::Running);
        let fits = match wanted {
            Status::Pending | Status::Running => {
                matches!(status, Status::Pending | Status::Running)
                    || status == Status::Skipped
                    || status == Status::Done && there.state.reported().is_some()
            }
            Status::Done => {
                // Reported here until its check has passed, and the plan ended before that: the next import ends it.
                let follows =
                    matches!(status, Status::Skipped | Status::Cancelled) && there.spec.check.is_some();
                status == Status::Done || is_checked || follows
            }
            Status::Failed | Status::Skipped => status == wanted,
            // A task that its author passes over is skipped here, or one that was open when the plan was ended. If that ends,
            // the next import cancels it.
            Status::Cancelled => {
                matches!(status, Status::Cancelled | Status::Skipped | Status::Pending)
                    && (here.state.because_of.is_none() || there.state.reason.as_deref() == Some(PLAN_ENDED))
            }
        };
        if !fits {
            check(format!("status of {id}"), format!("{:?}", here.state), format!("{:?}", there.state));
        }
        let is_open = !there.state.status.is_finished() && !here.state.status.is_finished();
        if is_open && there.state.held().is_some() && here.state.held().is_none() {
            check(format!("hold of {id}"), "none".into(), format!("{:?}", there.state.held()));
        }
    }
    if let Some(stop) = merged.stop.as_ref().filter(|stop| stop.kind.is_end()) {
        check("phase".into(), local.state.phase.as_str().into(), ended_as(stop.kind).as_str().into());
    }
    found
}

fn ended_as(kind: StopKind) -> Phase {
    match kind {
        StopKind::Completed => Phase::Completed,
        StopKind::Failed => Phase::Failed,
        StopKind::Cancelled => Phase::Cancelled,
        StopKind::Paused | StopKind::Rejected => unreachable!("no end"),
    }
}

/// A text without what follows the names of tasks that another one has: which of them is called how may change with a
/// command, and a clone follows with the next import.
fn without_suffixes(text: &str) -> String {
    let mut parts = text.split('~');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_alphanumeric()))
}

/// The author's part with lists as sets.
fn plain(spec: &TaskSpec) -> TaskSpec {
    let mut spec = spec.clone();
    let sorted = |list: &mut Vec<Dependency>| {
        list.sort();
        list.dedup();
    };
    sorted(&mut spec.depends_on);
    spec.locks.sort();
    spec.tools = spec.tools.filter(|tools| !tools.is_empty());
    if let Some(tools) = &mut spec.tools {
        tools.sort();
        tools.dedup();
    }
    spec.thinking = spec.thinking.filter(|notes| **notes != PlannerNotes::default());
    spec
}
