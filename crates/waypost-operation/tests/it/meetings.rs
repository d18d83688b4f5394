//! Two clones do something without knowing of each other, and meet.

use serde_json::{Value, json};
use waypost_core::{
    Actor, BlockReason, Command, Comment, Event, Hold, Outcome, Phase, Plan, Position, QuestionRequest,
    Refusal, Status, Task, TaskChanges,
};
use waypost_operation::{
    Action, Answer, CloneTag, Field, Inserted, Merged, OperationSet, ParsedRecord, RecordId, Stamp, TaskRef,
    answer, derive, merge, merge_request, share,
};
use waypost_testkit::{id, plan_of, task};

use crate::kit::{ada, ask, at, plan_id};

/// A clone, and the person who works there.
struct Place {
    plan: Plan,
    set: OperationSet,
    by: Actor,
    seconds: u64,
}

/// Two clones of a plan with these tasks.
fn two(tasks: &[&str]) -> (Place, Place) {
    let mut plan = Plan::blank(plan_id());
    let draft = plan_of(tasks.iter().map(|name| task(name, &[])));
    plan.advance(&plan.decide(&ada(), at(0), &ask::create(draft)).unwrap(), at(0));
    let mut set = OperationSet::new(plan_id());
    for record in share(&set, &plan, &stamp(&ada(), "a", 1)).unwrap() {
        set.insert(ParsedRecord::from(record));
    }
    let a = Place { plan: plan.clone(), set: set.clone(), by: Actor::person("a"), seconds: 10 };
    // The clocks of the machines differ by a day.
    let b = Place { plan: Plan::blank(plan_id()), set, by: Actor::person("b"), seconds: 86_400 };
    let mut b = b;
    b.import();
    (a, b)
}

fn stamp(by: &Actor, from: &str, seconds: u64) -> Stamp {
    Stamp { at: at(seconds), by: by.clone(), from: CloneTag::new(from).unwrap() }
}

impl Place {
    fn does(&mut self, command: Command) {
        self.does_all(vec![command]);
    }

    /// Does several things in one version.
    fn does_all(&mut self, commands: Vec<Command>) {
        self.seconds += 1;
        let (before, now) = (self.plan.clone(), at(self.seconds));
        let mut events = Vec::new();
        let mut seen = self.plan.clone();
        for command in commands {
            let more = seen.decide(&self.by, now, &command).unwrap();
            seen.advance(&more, now);
            events.extend(more);
        }
        self.plan.advance(&events, now);
        let stamp = stamp(&self.by, &self.by.name, self.seconds);
        for record in derive(&self.set, &before, &self.plan, &events, &stamp).unwrap() {
            self.set.insert(ParsedRecord::from(record));
        }
    }

    fn meets(&mut self, other: &mut Self) {
        let theirs: Vec<ParsedRecord> = other.set.records().cloned().collect();
        let ours: Vec<ParsedRecord> = self.set.records().cloned().collect();
        other.receive(ours);
        self.receive(theirs);
    }

    fn receive(&mut self, records: Vec<ParsedRecord>) {
        let mut new = Vec::new();
        for record in records {
            let id = record.id();
            if self.set.insert(record) == Inserted::New {
                new.push(id);
            }
        }
        self.import_with(&new);
    }

    /// Turns the plan into what the records say, and returns what that took.
    fn import(&mut self) -> Vec<Event> {
        self.import_with(&[])
    }

    fn import_with(&mut self, new: &[RecordId]) -> Vec<Event> {
        self.seconds += 1;
        let request = merge_request(&self.set, &self.merged(), new);
        let command = Command::Merge(Box::new(request));
        let events = self.plan.decide(&Actor::system("sync"), at(self.seconds), &command).unwrap();
        if !events.is_empty() {
            self.plan.advance(&events, at(self.seconds));
        }
        let again = Command::Merge(Box::new(merge_request(&self.set, &self.merged(), &[])));
        let again = self.plan.decide(&Actor::system("sync"), at(self.seconds), &again).unwrap();
        assert_eq!(again, [], "another import would change something more");
        events
    }

    fn merged(&self) -> Merged {
        merge(&self.set)
    }

    fn task(&self, name: &str) -> &Task {
        self.plan.task(name).unwrap()
    }

    /// The comments, with their authors as the records name them.
    fn comments(&self, name: &str) -> Vec<String> {
        let comments = self.task(name).state.comments().iter();
        let words = comments.map(|comment| format!("{} {}: {}", comment.at, comment.by, comment.text));
        words.map(|words| words.replace(" (unverified)", "")).collect()
    }

    fn questions(&self) -> Vec<String> {
        self.merged().conflicts.into_iter().map(|conflict| conflict.text).collect()
    }
}

fn label(task: &str, labels: &[&str]) -> Command {
    Command::LabelTask { task: id(task), labels: labels.iter().map(|&label| label.into()).collect() }
}

fn assign(task: &str, assignee: &str) -> Command {
    Command::AssignTask { task: id(task), assignee: assignee.into() }
}

#[test]
fn comments_labels_and_the_assignee_travel_with_a_plan_that_is_shared() {
    let mut plan = Plan::blank(plan_id());
    let create = ask::create(plan_of([task("t", &[])]));
    for (seconds, command) in
        [create, ask::comment("t", "mind the gap"), label("t", &["risky", "ui"]), assign("t", "agent:zed")]
            .into_iter()
            .enumerate()
    {
        let now = at(seconds as u64);
        plan.advance(&plan.decide(&ada(), now, &command).unwrap(), now);
    }
    let mut set = OperationSet::new(plan_id());
    for record in share(&set, &plan, &stamp(&Actor::person("b"), "b", 50)).unwrap() {
        set.insert(ParsedRecord::from(record));
    }
    let mut there = Place { plan: Plan::blank(plan_id()), set, by: ada(), seconds: 100 };
    there.import();
    let (here, there) = (&plan.task("t").unwrap().state, &there.task("t").state);
    assert_eq!((there.labels(), there.assignee()), (here.labels(), here.assignee()));
    let claimed =
        here.comments().iter().map(|comment| Comment { by: comment.by.unverified(), ..comment.clone() });
    assert_eq!(there.comments(), claimed.collect::<Vec<_>>(), "with their authors and times");
}

#[test]
fn comments_of_two_clones_come_in_one_order_and_keep_their_times() {
    let (mut a, mut b) = two(&["t"]);
    a.does(ask::comment("t", "from a"));
    b.does(ask::comment("t", "from b, whose clock is fast"));
    a.meets(&mut b);
    a.does(ask::comment("t", "an answer of a"));
    a.meets(&mut b);
    assert_eq!(a.comments("t"), b.comments("t"));
    assert_eq!(a.comments("t").len(), 3);
    assert!(a.comments("t")[2].ends_with("person:a: an answer of a"), "{:?}", a.comments("t"));
    assert_eq!(a.task("t").state.comments()[2].at, b.task("t").state.comments()[2].at);
}

#[test]
fn a_task_that_is_added_with_comments_in_one_version_has_them_once() {
    let (mut a, mut b) = two(&["t"]);
    let add =
        Command::AddTasks { tasks: vec![waypost_core::TaskSpec::new(id("n"), "new")], place: Position::Last };
    a.does_all(vec![add, ask::comment("n", "once"), label("n", &["risky"]), assign("n", "person:a")]);
    a.meets(&mut b);
    assert_eq!((b.comments("n").len(), b.task("n").state.labels()), (1, ["risky".to_owned()].as_slice()));
    assert_eq!(b.task("n").state.assignee(), Some("person:a"));
}

#[test]
fn labels_of_two_clones_add_up_and_an_addition_beats_an_older_removal() {
    let (mut a, mut b) = two(&["t"]);
    a.does(label("t", &["old"]));
    a.meets(&mut b);
    a.does(label("t", &["old", "ui"]));
    b.does(label("t", &["risky"]));
    a.meets(&mut b);
    assert_eq!(a.task("t").state.labels(), ["risky", "ui"]);
    assert_eq!(b.task("t").state.labels(), ["risky", "ui"]);
    assert_eq!(a.questions(), [""; 0]);
}

#[test]
fn two_assignees_are_a_question_and_equal_ones_agree() {
    let (mut a, mut b) = two(&["t"]);
    a.does(assign("t", "person:a"));
    b.does(assign("t", "person:a"));
    a.meets(&mut b);
    assert_eq!(a.questions(), [""; 0]);
    a.does(assign("t", "person:ada"));
    b.does(assign("t", "agent:zed"));
    a.meets(&mut b);
    assert_eq!(a.questions().len(), 1, "{:?}", a.questions());
    assert_eq!(a.task("t").state.assignee(), b.task("t").state.assignee());
}

#[test]
fn a_comment_beside_a_removal_keeps_the_task() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(Command::RemoveTask { task: id("t"), detach: true });
    b.does(ask::comment("t", "still needed?"));
    a.meets(&mut b);
    assert_eq!(
        a.questions(),
        ["person:a (a) removed t, and had not seen that person:b (b) commented on t; nothing was removed"]
    );
    assert_eq!(a.comments("t"), b.comments("t"));
}

#[test]
fn a_question_about_a_removal_says_what_the_other_did_and_what_would_go_as_well() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(Command::RemoveTask { task: id("t"), detach: true });
    let mut child = waypost_core::TaskSpec::new(id("child"), "new");
    child.parent = Some(id("t"));
    b.does(Command::AddTasks { tasks: vec![child], place: Position::Last });
    a.meets(&mut b);
    let conflict = a.merged().conflicts.remove(0);
    assert_eq!(
        conflict.text,
        "person:a (a) removed t, and had not seen that person:b (b) added child below t; nothing was removed; \
         to remove it now removes child as well"
    );
    let sides: Vec<&str> = conflict.versions.iter().map(|version| version.value.as_str()).collect();
    assert_eq!(sides, ["removed t", "added child below t"]);
    // What is removed with an answer, somebody has read.
    b.does(ask::comment("t", "still needed"));
    a.meets(&mut b);
    let conflict = a.merged().conflicts.remove(0);
    assert!(conflict.text.contains("added child below t, nor 1 more change; nothing"), "{}", conflict.text);
    let sides: Vec<&str> = conflict.versions.iter().map(|version| version.value.as_str()).collect();
    assert_eq!(sides, ["removed t", "added child below t", "commented on t"]);
}

#[test]
fn a_question_about_a_cycle_names_what_was_set_aside() {
    let (mut a, mut b) = two(&["t", "u"]);
    let on = |on: &str| {
        let add_dependencies = vec![waypost_core::Dependency::Task(id(on))];
        Box::new(TaskChanges { add_dependencies, ..TaskChanges::default() })
    };
    a.does(Command::ReviseTask { task: id("t"), changes: on("u") });
    b.does(Command::ReviseTask { task: id("u"), changes: on("t") });
    a.meets(&mut b);
    let conflict = a.merged().conflicts.remove(0);
    let set_aside = conflict.versions[0].value.clone();
    assert!(["t depends on u", "u depends on t"].contains(&set_aside.as_str()), "{set_aside}");
    assert!(conflict.text.contains(&set_aside), "{}", conflict.text);
}

#[test]
fn a_stop_travels_and_a_start_does_not() {
    let (mut a, mut b) = two(&["t"]);
    a.does(Command::Activate);
    a.meets(&mut b);
    assert_eq!((a.plan.state().phase, b.plan.state().phase), (Phase::Active, Phase::Draft));
    b.does(Command::Activate);
    a.does(Command::Pause { reason: "lunch".into() });
    a.meets(&mut b);
    assert_eq!((b.plan.state().phase, b.plan.state().reason.as_str()), (Phase::Paused, "lunch"));
    a.does(Command::Resume);
    a.meets(&mut b);
    assert_eq!((a.plan.state().phase, b.plan.state().phase), (Phase::Active, Phase::Paused));
    a.does(Command::FinishPlan { phase: Phase::Cancelled, summary: "no more".into() });
    a.meets(&mut b);
    assert_eq!((a.plan.state().phase, b.plan.state().phase), (Phase::Cancelled, Phase::Cancelled));
    let (mut a, mut b) = two(&["t"]);
    a.does(Command::Reject { reason: "not like this".into() });
    a.meets(&mut b);
    assert_eq!(b.plan.state().stopped_by, Some(Actor::person("a").unverified()));
}

#[test]
fn a_task_that_runs_goes_on_through_an_import_unless_it_is_removed_or_ended_elsewhere() {
    for (act, runs) in [
        (ask::comment("t", "keep going"), true),
        (
            Command::ReviseTask {
                task: id("t"),
                changes: Box::new(TaskChanges { notes: Some("with care".into()), ..TaskChanges::default() }),
            },
            true,
        ),
        (ask::start("t"), true),
        (Command::FinishPlan { phase: Phase::Cancelled, summary: "no more".into() }, false),
    ] {
        let (mut a, mut b) = two(&["t", "u"]);
        a.does(Command::Activate);
        b.does(Command::Activate);
        b.does(ask::start("t"));
        let attempt = b.task("t").state.attempt;
        a.does(act.clone());
        a.meets(&mut b);
        let is_running = b.task("t").state.status == Status::Running;
        assert_eq!(is_running, runs, "{act:?}");
        if runs {
            assert_eq!(b.task("t").state.attempt, attempt);
            b.does(ask::finish("t", crate::kit::done()));
            a.meets(&mut b);
            assert_eq!(a.task("t").state.status, Status::Done, "{act:?}");
        }
    }
}

#[test]
fn an_approval_of_one_clone_approves_nothing_in_another() {
    let (mut a, mut b) = two(&["t"]);
    let version = a.plan.version();
    a.does(Command::Approve { version, note: String::new(), work: None });
    a.meets(&mut b);
    assert!(a.plan.state().approval.is_some());
    assert_eq!((b.plan.state().approval.clone(), b.plan.state().phase), (None, Phase::Draft));
    assert_eq!(b.merged().approvals, [], "only a signed, portable one becomes a record");
}

#[test]
fn two_answers_that_contradict_each_other_are_a_question_again() {
    let notes = |text: &str| {
        let changes = TaskChanges { notes: Some(text.into()), ..TaskChanges::default() };
        Command::ReviseTask { task: id("t"), changes: Box::new(changes) }
    };
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(notes("by a"));
    b.does(notes("by b"));
    a.meets(&mut b);
    let versions = a.merged().conflicts.remove(0).versions;
    answers(&mut a, Answer::Take(versions[0].record));
    answers(&mut b, Answer::Take(versions[1].record));
    assert!(a.questions().is_empty() && b.questions().is_empty());
    a.meets(&mut b);
    assert_eq!(a.questions().len(), 1, "there is no common text to merge them with");
    a.does(notes("this"));
    a.meets(&mut b);
    assert_eq!((a.questions(), b.task("t").spec.notes.as_str()), (vec![], "this"));
    // What was merged of several is the common text of what follows.
    a.does(notes("1\n2\n3\n4\n5"));
    a.meets(&mut b);
    a.does(notes("one\n2\n3\n4\n5"));
    b.does(notes("1\n2\n3\n4\nfive"));
    a.meets(&mut b);
    a.does(notes("one\n2\n3\n4\nFIVE"));
    b.does(notes("ONE\n2\n3\n4\nfive"));
    a.meets(&mut b);
    assert_eq!((a.questions(), b.task("t").spec.notes.as_str()), (vec![], "ONE\n2\n3\n4\nFIVE"));
}

/// What an agent could write, and no clone lets it do, to undo everything that people stopped.
fn undone(set: &OperationSet) -> Vec<Action> {
    let records = set.records().filter_map(ParsedRecord::known);
    let undo = |id: RecordId, action: &Action| match action.clone() {
        Action::Report { task, .. } => Some(Action::Retry { task, over: vec![id] }),
        Action::Set { task, field: Field::Held, .. } => {
            Some(Action::Set { task, field: Field::Held, to: Value::Null, over: vec![id] })
        }
        Action::Stop { .. } => Some(Action::Resume { over: vec![id] }),
        _ => None,
    };
    records.flat_map(|record| record.actions().iter().filter_map(move |one| undo(record.id(), one))).collect()
}

#[test]
fn what_a_person_stopped_no_record_of_an_agent_starts_in_any_clone() {
    for stop in [Command::Pause { reason: "wait".into() }, Command::Reject { reason: "no".into() }] {
        let (mut a, mut b) = two(&["t", "u", "v"]);
        let mut c = Place { plan: b.plan.clone(), set: b.set.clone(), by: Actor::person("c"), seconds: 5 };
        a.does(ask::finish("t", Outcome::Skipped { reason: None }));
        a.does(ask::hold("u"));
        a.does(ask::cancel("v"));
        a.does(stop.clone());
        a.meets(&mut b);
        let eve = Actor::agent("eve");
        let forged = undone(&b.set);
        assert_eq!(forged.len(), 4, "{forged:?}");
        let record = b.set.record(at(99_999), eve, CloneTag::new("zzz").unwrap(), forged).unwrap();
        b.receive(vec![ParsedRecord::from(record)]);
        a.meets(&mut b);
        // All at once, in a clone that has the plan, and in one that has not.
        c.meets(&mut b);
        let mut late =
            Place { plan: Plan::blank(plan_id()), set: b.set.clone(), by: Actor::person("d"), seconds: 5 };
        late.import();
        for place in [&a, &b, &c, &late] {
            assert_eq!(place.task("t").state.status, Status::Skipped);
            assert!(place.task("u").state.held().is_some());
            assert_eq!(place.task("v").state.status, Status::Cancelled);
            assert!(place.plan.state().stopped_by.is_some(), "{:?}", place.plan.state());
        }
    }
}

#[test]
fn a_pause_that_was_lifted_in_one_clone_arrives_in_the_others() {
    let (mut a, mut b) = two(&["t"]);
    let mut c = Place { plan: b.plan.clone(), set: b.set.clone(), by: Actor::person("c"), seconds: 5 };
    c.does(Command::Activate);
    a.does(Command::Pause { reason: "wait".into() });
    a.meets(&mut b);
    b.does(Command::Resume);
    c.meets(&mut b);
    assert_eq!((a.plan.state().phase, c.plan.state().phase), (Phase::Paused, Phase::Paused));
    c.does(Command::Resume);
    a.meets(&mut c);
    assert_eq!(c.plan.state().phase, Phase::Active, "it is lifted here");
}

#[test]
fn what_a_person_cancelled_and_another_opened_again_stays_stopped_in_the_other_clones() {
    for is_active in [false, true] {
        let (mut a, mut b) = two(&["t", "u"]);
        let mut c = Place { plan: b.plan.clone(), set: b.set.clone(), by: Actor::person("c"), seconds: 5 };
        if is_active {
            c.does(Command::Activate);
        }
        a.does(Command::FinishPlan { phase: Phase::Cancelled, summary: "not now".into() });
        a.meets(&mut b);
        b.does(ask::retry("t"));
        c.meets(&mut b);
        a.meets(&mut b);
        for place in [&a, &c] {
            let state = place.plan.state();
            let by = state.stopped_by.as_ref().map(|by| by.name.trim_end_matches(" (unverified)"));
            assert_eq!(by, Some("a"), "{state:?}");
            assert!(state.phase != Phase::Active, "{state:?}");
        }
    }
}

#[test]
fn a_hold_that_was_lifted_in_one_clone_arrives_in_the_others_under_the_name_of_its_author() {
    let (mut a, mut b) = two(&["t"]);
    let mut c = Place { plan: b.plan.clone(), set: b.set.clone(), by: Actor::person("c"), seconds: 5 };
    a.does(ask::hold("t"));
    a.meets(&mut b);
    b.does(Command::UnholdTask { task: id("t") });
    c.meets(&mut b);
    let held = |place: &Place| place.task("t").state.held().map(|hold| hold.by.to_string());
    assert_eq!(held(&c).as_deref(), Some("person:a (unverified)"));
    // Nobody holds a task in the name of a part of Waypost.
    let (a, mut b) = two(&["t"]);
    let hold = Hold { by: Actor::system("import"), reason: "run this".into() };
    let created = a.set.records().next().unwrap().id().to_string();
    let task = Some(TaskRef { name: id("t"), record: created });
    let forged = vec![Action::Set { task, field: Field::Held, to: json!(hold), over: vec![] }];
    let eve = Actor::agent("eve");
    let record = b.set.record(at(99_999), eve, CloneTag::new("zzz").unwrap(), forged).unwrap();
    b.receive(vec![ParsedRecord::from(record)]);
    assert_eq!(held(&b).as_deref(), Some("agent:eve (unverified)"));
}

#[test]
fn machine_work_that_a_person_skipped_here_waits_if_it_is_opened_elsewhere() {
    let (mut a, mut b) = two(&["t", "u"]);
    let work = TaskChanges { work: Some(Some(*crate::kit::work())), ..TaskChanges::default() };
    a.does(Command::ReviseTask { task: id("t"), changes: Box::new(work) });
    a.meets(&mut b);
    b.does(ask::finish("t", Outcome::Skipped { reason: None }));
    a.meets(&mut b);
    a.does(ask::retry("t"));
    a.meets(&mut b);
    assert_eq!(b.task("t").state.status, Status::Pending);
    assert!(b.task("t").state.held().is_some(), "nothing that travels starts a machine");
}

/// A record that no clone of an agent writes.
fn forged(set: &OperationSet, actions: Vec<Action>) -> ParsedRecord {
    let from = CloneTag::new("zzz").unwrap();
    ParsedRecord::from(set.record(at(99_999), Actor::agent("eve"), from, actions).unwrap())
}

fn notes_of(task: &str, text: &str) -> Command {
    let changes = TaskChanges { notes: Some(text.into()), ..TaskChanges::default() };
    Command::ReviseTask { task: id(task), changes: Box::new(changes) }
}

/// The subjects of the open questions, and how many versions each has.
fn open_questions(place: &Place) -> Vec<(String, usize)> {
    let conflicts = place.merged().conflicts.into_iter();
    conflicts.map(|conflict| (conflict.subject, conflict.versions.len())).collect()
}

#[test]
fn no_record_of_an_agent_settles_what_clones_disagree_about() {
    for names in [2, 1] {
        let (mut a, mut b) = two(&["t", "u"]);
        a.does(notes_of("t", "by a"));
        b.does(notes_of("t", "by b"));
        for (place, outcome) in [(&mut a, crate::kit::done()), (&mut b, crate::kit::failed())] {
            place.does(Command::Activate);
            place.does(ask::finish("u", outcome));
        }
        a.meets(&mut b);
        let asked = vec![("notes".to_owned(), 2), ("outcome".to_owned(), 2)];
        assert_eq!(open_questions(&a), asked);
        let about = |subject: &str| {
            let found = a.merged().conflicts.into_iter().find(|conflict| conflict.subject == subject);
            let versions: Vec<RecordId> = found.unwrap().versions.iter().map(|one| one.record).collect();
            versions[..names].to_vec()
        };
        let task = |name: &str| TaskRef { name: id(name), record: root_reference(&a.set).record };
        let (text, outcome) = (Some("by eve".to_owned()), waypost_operation::OutcomeKind::Done);
        let set = Action::Set {
            task: Some(task("t")),
            field: Field::Notes,
            to: Value::from("by eve"),
            over: about("notes"),
        };
        let over = about("outcome");
        let report = Action::Report { task: task("u"), outcome, text, output: None, evidence: None, over };
        let first = forged(&a.set, vec![set, report]);
        a.receive(vec![first]);
        a.meets(&mut b);
        let mut c =
            Place { plan: Plan::blank(plan_id()), set: a.set.clone(), by: Actor::person("c"), seconds: 5 };
        c.import();
        let asked = vec![("notes".to_owned(), 3), ("outcome".to_owned(), 3)];
        for place in [&a, &b, &c] {
            assert_eq!(open_questions(place), asked, "with {names} of them named");
            assert_eq!(place.task("u").state.status, Status::Pending);
        }
        // An edit of a person who has seen all of it settles it, and so does an answer.
        b.does(notes_of("t", "settled"));
        assert_eq!(open_questions(&b), [("outcome".to_owned(), 3)]);
        let done = b.merged().conflicts.remove(0).versions.remove(0).record;
        answers(&mut b, Answer::Take(done));
        a.meets(&mut b);
        assert_eq!((open_questions(&a), a.task("t").spec.notes.as_str()), (vec![], "settled"));
    }
}

#[test]
fn an_agent_replaces_what_clones_agree_about() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(notes_of("t", "1\n2\n3\n4\n5"));
    a.meets(&mut b);
    a.does(notes_of("t", "one\n2\n3\n4\n5"));
    b.does(notes_of("t", "1\n2\n3\n4\nfive"));
    a.meets(&mut b);
    b.by = Actor::agent("zed");
    b.does(notes_of("t", "by zed"));
    a.meets(&mut b);
    assert_eq!((a.questions(), a.task("t").spec.notes.as_str()), (vec![], "by zed"));
}

#[test]
fn no_agent_removes_a_task_while_a_person_is_asked_about_its_removal() {
    for (given, is_kept) in [(Answer::Keep, true), (Answer::Remove, false)] {
        let (mut a, mut b) = two(&["t", "u"]);
        let remove = Command::RemoveTask { task: id("t"), detach: true };
        a.does(remove.clone());
        b.does(ask::comment("t", "still needed"));
        a.meets(&mut b);
        let asked = a.questions();
        assert_eq!(asked.len(), 1);
        for place in [&a, &b] {
            let refused = place.plan.decide(&Actor::agent("eve"), at(100_000), &remove);
            let Err(Refusal::OnlyAPerson { what, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(what, "answer a question about a merge");
            assert!(place.plan.decide(&Actor::person("p"), at(100_000), &remove).is_ok());
        }
        let task = TaskRef { name: id("t"), record: root_reference(&a.set).record };
        let record = forged(&a.set, vec![Action::Remove { tasks: vec![task], over: Vec::new() }]);
        b.receive(vec![record]);
        a.meets(&mut b);
        assert_eq!((a.questions(), b.questions()), (asked.clone(), asked));
        let versions = a.merged().conflicts.remove(0).versions;
        let values: Vec<&str> = versions.iter().map(|version| version.value.as_str()).collect();
        assert_eq!(values, ["removed t", "commented on t", "removed t"], "that it did is shown");
        assert!(a.plan.task("t").is_some() && b.plan.task("t").is_some());
        answers(&mut b, given);
        a.meets(&mut b);
        assert!(a.questions().is_empty() && b.questions().is_empty(), "{:?}", a.questions());
        assert_eq!((a.plan.task("t").is_some(), b.plan.task("t").is_some()), (is_kept, is_kept));
        if is_kept {
            // What is answered binds no agent.
            assert!(a.plan.decide(&Actor::agent("eve"), at(100_000), &remove).is_ok());
            a.by = Actor::agent("zed");
            a.does(remove);
            a.meets(&mut b);
            assert!(b.plan.task("t").is_none() && b.questions().is_empty());
        }
    }
}

#[test]
fn descriptions_that_would_merge_to_nothing_are_a_question() {
    let describe = |text: &str| {
        let changes = TaskChanges { description: Some(text.into()), ..TaskChanges::default() };
        Command::ReviseTask { task: id("t"), changes: Box::new(changes) }
    };
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(describe("one\n\n\n\ntwo"));
    a.meets(&mut b);
    a.does(describe("one\n\n\n\n"));
    b.does(describe("\n\n\n\ntwo"));
    a.meets(&mut b);
    assert_eq!(a.questions().len(), 1, "{:?}", a.task("t").spec.description);
    assert!(!b.task("t").spec.description.trim().is_empty());
}

fn answers(place: &mut Place, given: Answer) {
    let conflict = place.merged().conflicts.remove(0);
    let actions = answer(&place.set, &conflict, &given).unwrap();
    place.seconds += 1;
    let Stamp { at, by, from } = stamp(&place.by, &place.by.name, place.seconds);
    let record = place.set.record(at, by, from, actions).unwrap();
    place.set.insert(ParsedRecord::from(record));
    place.import();
}

#[test]
fn keeping_beside_removing_is_a_question_again() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(Command::RemoveTask { task: id("t"), detach: true });
    b.does(ask::comment("t", "still needed"));
    a.meets(&mut b);
    answers(&mut a, Answer::Remove);
    answers(&mut b, Answer::Keep);
    a.meets(&mut b);
    assert_eq!(
        a.questions(),
        ["person:a (a) removed t, and had not seen that person:b (b) wanted to keep t; nothing was removed"]
    );
    assert!(b.plan.task("t").is_some());
    answers(&mut b, Answer::Remove);
    a.meets(&mut b);
    assert!(a.questions().is_empty() && a.plan.task("t").is_none() && b.plan.task("t").is_none());
}

#[test]
fn stops_that_meet_come_to_the_same_phase() {
    let finish = |phase| Command::FinishPlan { phase, summary: "so".into() };
    let stops = [
        Command::Reject { reason: "no".into() },
        Command::Pause { reason: "wait".into() },
        finish(Phase::Completed),
        finish(Phase::Failed),
        finish(Phase::Cancelled),
    ];
    for one in &stops {
        for other in &stops {
            let (mut a, mut b) = two(&["t"]);
            a.does(one.clone());
            b.does(other.clone());
            a.meets(&mut b);
            assert_eq!(a.plan.state().phase, b.plan.state().phase, "{one:?} beside {other:?}");
        }
        let (mut a, mut b) = two(&["t"]);
        b.does(Command::RequestApproval { message: "please".into() });
        a.does(one.clone());
        a.meets(&mut b);
        assert_eq!(a.plan.state().phase, b.plan.state().phase, "{one:?} beside a request");
    }
}

#[test]
fn a_plan_whose_tasks_all_ended_elsewhere_has_ended() {
    let (mut a, mut b) = two(&["t"]);
    a.does(Command::Activate);
    a.does(ask::start("t"));
    a.does(ask::finish("t", crate::kit::done()));
    a.meets(&mut b);
    assert_eq!((a.plan.state().phase, b.plan.state().phase), (Phase::Completed, Phase::Completed));
    let more = waypost_core::TaskSpec::new(id("more"), "more");
    b.does(Command::AddTasks { tasks: vec![more], place: Position::Last });
    a.meets(&mut b);
    assert!(!a.plan.state().phase.is_finished() && !b.plan.state().phase.is_finished());
}

#[test]
fn more_heads_than_a_record_can_name_are_named_by_the_next_ones() {
    let (mut a, mut b) = two(&["t"]);
    let heads = waypost_core::limits::RECORD_PARENTS_MAX + 100;
    let root = a.set.clone();
    for number in 0..heads {
        let text = format!("comment {number}");
        let action = Action::Comment { task: root_reference(&root), text, by: None, at: None };
        let Stamp { at, by, from } = stamp(&ada(), "c", 20);
        a.set.insert(ParsedRecord::from(root.record(at, by, from, vec![action]).unwrap()));
    }
    a.import();
    for _ in 0..2 {
        a.does(label("t", &[if a.task("t").state.labels().is_empty() { "one" } else { "two" }]));
    }
    assert_eq!(a.set.heads().len(), 1);
    a.meets(&mut b);
    assert_eq!(a.task("t").state.labels(), b.task("t").state.labels());
}

/// Names the task `t` of a set.
fn root_reference(set: &OperationSet) -> TaskRef {
    let root = set.records().next().unwrap().id();
    format!("t#{}", root.prefix(6)).parse().unwrap()
}

#[test]
fn who_works_on_a_task_that_lost_its_name_cannot_report_on_the_one_that_has_it_now() {
    let (mut a, mut b) = two(&["t"]);
    let deploy = |whose: &str| Command::AddTasks {
        tasks: vec![waypost_core::TaskSpec::new(id("deploy"), whose)],
        place: Position::Last,
    };
    a.does(deploy("of a"));
    b.does(deploy("of b"));
    for place in [&mut a, &mut b] {
        place.does(Command::Activate);
        place.does(ask::start("deploy"));
    }
    a.meets(&mut b);
    let (keeps, loses) = if a.task("deploy").state.status == Status::Running { (&a, &b) } else { (&b, &a) };
    assert_eq!(keeps.task("deploy").spec, loses.task("deploy").spec);
    assert_eq!(loses.task("deploy").state.status, Status::Pending);
    let report = Command::FinishTask {
        task: id("deploy"),
        attempt: Some(1),
        outcome: crate::kit::done(),
        retry: None,
    };
    let refused = loses.plan.decide(&loses.by, at(1_000_000), &report);
    assert!(refused.is_err(), "{refused:?}");
    let taken = keeps.plan.decide(&keeps.by, at(1_000_000), &report);
    assert!(taken.is_ok(), "{taken:?}");
}

#[test]
fn what_is_skipped_here_and_cancelled_elsewhere_is_cancelled_in_both() {
    let (mut a, mut b) = two(&["t", "u"]);
    let on_t = TaskChanges {
        add_dependencies: vec![waypost_core::Dependency::Task(id("t"))],
        ..TaskChanges::default()
    };
    a.does(Command::ReviseTask { task: id("u"), changes: Box::new(on_t) });
    a.meets(&mut b);
    a.does(Command::Activate);
    a.does(ask::finish("t", crate::kit::failed()));
    assert_eq!(a.task("u").state.status, Status::Skipped);
    b.does(ask::cancel("u"));
    a.meets(&mut b);
    let by = Actor::person("b");
    for (place, by) in [(&a, by.unverified()), (&b, by)] {
        let state = &place.task("u").state;
        assert_eq!((state.status, state.because_of.clone()), (Status::Cancelled, None));
        assert_eq!(state.stopped_by(), Some(&by));
    }
}

#[test]
fn the_hold_of_a_disputed_task_ends_with_an_answer_alone() {
    let (mut a, mut b) = two(&["t"]);
    for (place, outcome) in [(&mut a, crate::kit::done()), (&mut b, crate::kit::failed())] {
        place.does(Command::Activate);
        place.does(ask::finish("t", outcome));
    }
    a.meets(&mut b);
    let refused = a.plan.decide(&a.by, at(1_000_000), &Command::UnholdTask { task: id("t") });
    assert_eq!(refused, Err(Refusal::Disputed { task: "t".into() }));
    let done = a.merged().conflicts.remove(0).versions.remove(0).record;
    answers(&mut a, Answer::Take(done));
    a.meets(&mut b);
    assert_eq!((a.task("t").state.held(), b.task("t").state.held()), (None, None));
}

#[test]
fn an_id_that_is_given_again_means_a_new_task_in_every_clone() {
    let (mut a, mut b) = two(&["t", "u"]);
    let below = |name: &str, parent: &str| {
        let mut child = waypost_core::TaskSpec::new(id(name), name);
        child.parent = Some(id(parent));
        Command::AddTasks { tasks: vec![child], place: Position::Last }
    };
    a.does(below("v", "u"));
    a.does(ask::comment("v", "of v"));
    a.does(ask::comment("t", "of the first"));
    a.does(Command::HoldTask { task: id("t"), reason: "wait".into() });
    a.does(label("t", &["risky"]));
    a.meets(&mut b);
    a.does(Command::RemoveTask { task: id("t"), detach: true });
    let again = waypost_core::TaskSpec::new(id("t"), "do it");
    a.does(Command::AddTasks { tasks: vec![again], place: Position::First });
    a.does(ask::comment("t", "of the second"));
    a.meets(&mut b);
    for place in [&a, &b] {
        assert_eq!(place.comments("t").len(), 1, "{:?}", place.comments("t"));
        assert_eq!((place.task("t").state.labels(), place.task("t").state.held()), ([].as_slice(), None));
    }
    assert_eq!(a.plan.to_draft().tasks.len(), b.plan.to_draft().tasks.len());
    assert_eq!((a.comments("v"), a.task("v").spec.parent.clone()), (b.comments("v"), Some(id("u"))));
}

#[test]
fn a_task_that_a_person_cancelled_is_opened_by_no_agent_of_another_clone() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(ask::cancel("t"));
    a.meets(&mut b);
    assert_eq!(b.task("t").state.stopped_by(), Some(&Actor::person("a").unverified()));
    let refused = b.plan.decide(&crate::kit::agent(), at(100_000), &ask::retry("t"));
    assert!(refused.is_err(), "{refused:?}");
    b.does(ask::retry("t"));
    a.meets(&mut b);
    assert_eq!(a.task("t").state.status, Status::Pending);
}

#[test]
fn a_cancellation_that_another_clone_undid_is_named_as_one() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(Command::FinishPlan { phase: Phase::Cancelled, summary: "no money".into() });
    a.meets(&mut b);
    b.does(ask::retry("t"));
    a.meets(&mut b);
    assert_eq!(a.plan.state().phase, Phase::Draft);
    assert_eq!(a.plan.rejection(), "person:a cancelled it, and it was opened again in another clone");
    let refused = a.plan.decide(&Actor::agent("z"), at(1_000_000), &Command::Activate).unwrap_err();
    assert!(refused.to_string().contains("person:a cancelled the plan"), "{refused}");
    let refused = a.plan.decide(&Actor::agent("z"), at(1_000_000), &ask::retry("u")).unwrap_err();
    assert!(refused.to_string().contains("only a person can retry its tasks"), "{refused}");
    // Nothing of it is offered as if it could start.
    let waits = [BlockReason::Phase(Phase::Draft)];
    assert_eq!(a.plan.waiting("t", at(1_000_000)), waits);
    assert_eq!(a.plan.as_started().waiting("t", at(1_000_000)), waits);
}

#[test]
fn a_plan_that_is_archived_beside_a_change_stays_with_a_question() {
    for (given, archived) in [(Answer::Keep, false), (Answer::Remove, true)] {
        let (mut a, mut b) = two(&["t", "u"]);
        a.does(Command::Archive);
        b.does(ask::comment("t", "one more thing"));
        a.meets(&mut b);
        let asked = [
            "person:a (a) archived the plan, and had not seen that person:b (b) commented on t; the plan stays",
        ];
        assert_eq!(
            (a.questions(), b.questions()),
            (asked.map(str::to_owned).to_vec(), asked.map(str::to_owned).to_vec())
        );
        assert_eq!(a.merged().conflicts[0].subject, "archive");
        assert!(!a.plan.state().archived && !b.plan.state().archived);
        answers(&mut b, given.clone());
        a.meets(&mut b);
        assert_eq!((a.plan.state().archived, b.plan.state().archived), (archived, archived), "{given:?}");
        assert!(a.questions().is_empty() && b.questions().is_empty());
    }
    let (mut a, mut b) = two(&["t"]);
    a.does(Command::Archive);
    a.meets(&mut b);
    assert_eq!(b.plan.state().archived_by, Some(Actor::person("a")), "no agent takes it back there");
    b.does(Command::Unarchive);
    a.meets(&mut b);
    assert!(!a.plan.state().archived && a.questions().is_empty());
}

#[test]
fn a_deletion_hides_the_plan_everywhere_unless_somebody_changed_it() {
    let delete = |place: &mut Place| {
        place.seconds += 1;
        let Stamp { at, by, from } = stamp(&place.by, &place.by.name, place.seconds);
        let record = place.set.record(at, by, from, vec![Action::Delete {}]).unwrap();
        place.set.insert(ParsedRecord::from(record));
    };
    let (mut a, mut b) = two(&["t"]);
    delete(&mut a);
    a.meets(&mut b);
    assert!(b.plan.state().archived && b.questions().is_empty());
    b.does(Command::Unarchive);
    a.meets(&mut b);
    assert!(!a.plan.state().archived && !b.plan.state().archived, "it does not hide again");
    let (mut a, mut b) = two(&["t"]);
    delete(&mut a);
    b.does(ask::comment("t", "one more thing"));
    a.meets(&mut b);
    assert!(!b.plan.state().archived && b.questions()[0].contains("deleted the plan"), "{:?}", b.questions());
    answers(&mut b, Answer::Remove);
    a.meets(&mut b);
    assert!(a.plan.state().archived && b.plan.state().archived);
}

#[test]
fn a_question_of_a_worker_is_answered_in_another_clone() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(Command::Activate);
    a.does(ask::start("t"));
    a.does(ask::question("t", &["left", "right"]));
    a.meets(&mut b);
    assert_eq!(b.task("t").state.question().unwrap().choices, ["left", "right"]);
    b.does(ask::answer("t", "left"));
    a.meets(&mut b);
    let answers = a.task("t").state.answers();
    assert_eq!((answers[0].answer.as_str(), &answers[0].by), ("left", &Actor::person("b").unverified()));
    assert!(a.task("t").state.question().is_none() && b.task("t").state.question().is_none());
    // What came to its end meanwhile is asked nowhere.
    a.does(ask::start("u"));
    a.does(ask::question("u", &["up", "down"]));
    a.meets(&mut b);
    a.does(ask::cancel("u"));
    a.meets(&mut b);
    assert!(b.task("u").state.question().is_none());
}

#[test]
fn what_a_failure_skips_is_skipped_in_every_clone() {
    let (mut a, mut b) = two(&["t", "u"]);
    a.does(Command::ReviseTask {
        task: id("u"),
        changes: Box::new(TaskChanges {
            depends_on: Some(vec![waypost_core::Dependency::Task(id("t"))]),
            ..TaskChanges::default()
        }),
    });
    a.meets(&mut b);
    b.does(Command::Activate);
    b.does(ask::start("t"));
    b.does(ask::finish("t", crate::kit::failed()));
    a.meets(&mut b);
    assert_eq!(b.task("u").state.status, Status::Skipped);
    assert_eq!((a.task("u").state.status, a.plan.state().phase), (Status::Skipped, b.plan.state().phase));
}

#[test]
fn who_worked_on_a_task_did_not_end_it_if_another_clone_did() {
    let (mut a, mut b) = two(&["t", "u"]);
    b.does(Command::Activate);
    b.does(ask::start("t"));
    a.does(Command::Activate);
    a.does(ask::start("t"));
    a.does(ask::finish("t", crate::kit::done()));
    a.meets(&mut b);
    assert_eq!((b.task("t").state.status, &b.task("t").state.worker), (Status::Done, &None));
}

#[test]
fn questions_and_answers_travel_with_a_plan_that_is_shared_after_them() {
    let mut plan = Plan::blank(plan_id());
    let draft = plan_of(["t", "u"].map(|name| task(name, &[])));
    let mut now = 0;
    let mut does = |by: &Actor, command: Command| {
        now += 1;
        let events = plan.decide(by, at(now), &command).unwrap();
        plan.advance(&events, at(now));
        plan.clone()
    };
    let agent = Actor::agent("w");
    let asks = |task: &str, text: &str| {
        let ask = QuestionRequest { text: text.to_owned(), ..QuestionRequest::default() };
        Command::AskQuestion { task: id(task), attempt: None, ask: Box::new(ask) }
    };
    does(&ada(), ask::create(draft));
    for (question, answer) in [("first?", Some("one")), ("second?", Some("two")), ("third?", None)] {
        does(&agent, Command::StartTask { task: id("t"), worker: agent.to_string() });
        does(&agent, asks("t", question));
        if let Some(answer) = answer {
            does(&ada(), ask::answer("t", answer));
        }
    }
    does(&agent, Command::StartTask { task: id("u"), worker: agent.to_string() });
    does(&agent, asks("u", "other?"));
    let plan = does(&ada(), ask::answer("u", "yes"));
    let mut set = OperationSet::new(plan_id());
    for record in share(&set, &plan, &stamp(&ada(), "a", 100)).unwrap() {
        assert_eq!(set.insert(ParsedRecord::from(record)), Inserted::New);
    }
    let mut b = Place { plan: Plan::blank(plan_id()), set, by: Actor::person("b"), seconds: 200 };
    b.import();
    let told = |task: &str| {
        let state = &b.task(task).state;
        let answers: Vec<_> =
            state.answers().iter().map(|one| (one.question.clone(), one.answer.clone())).collect();
        (state.question().map(|open| open.text.clone()), answers)
    };
    let pair = |question: &str, answer: &str| (question.to_owned(), answer.to_owned());
    assert_eq!(told("t"), (Some("third?".to_owned()), vec![pair("first?", "one"), pair("second?", "two")]));
    assert_eq!(told("u"), (None, vec![pair("other?", "yes")]));
    assert_eq!(b.task("t").state.question().unwrap().by, agent.to_string());
}

#[test]
fn a_question_that_was_withdrawn_hides_no_later_one_in_another_clone() {
    let (mut a, mut b) = two(&["t", "u"]);
    let asks = |place: &mut Place, text: &str| {
        place.does(ask::start("t"));
        let ask = QuestionRequest { text: text.to_owned(), ..QuestionRequest::default() };
        place.does(Command::AskQuestion { task: id("t"), attempt: None, ask: Box::new(ask) });
    };
    b.does(Command::Activate);
    asks(&mut b, "first?");
    a.meets(&mut b);
    b.does(ask::retry("t"));
    asks(&mut b, "second?");
    a.meets(&mut b);
    let asked = |place: &Place| place.task("t").state.question().map(|open| open.text.clone());
    assert_eq!((asked(&a).as_deref(), asked(&b).as_deref()), (Some("second?"), Some("second?")));
}
