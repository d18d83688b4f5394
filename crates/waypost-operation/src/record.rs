//! Records: what one command of one clone did to a plan, as a line of JSON that is named by its hash.
//!
//! The last two keys of a line are `id` and `sig`. The id is the hash of the bytes before them, closed with a brace, so
//! that it can be verified without understanding the rest. A record of this version has exactly one line; a record of a
//! newer version is kept as the bytes that came.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::action::{Action, ListField, TaskStart};
use crate::field::{BadValue, Field, is_one_line};
use crate::ids::{CloneTag, RecordId, TaskRef, shortened_text};
use waypost_core::{Actor, Dependency, ExternalTaskRef, Lock, PlanId, Timestamp, limits};

/// The version of the record format that this build writes.
pub const RECORD_FORMAT: u64 = 1;

/// What stands before the id in a line.
const BEFORE_ID: &str = ",\"id\":\"";

/// Why a line is not a record that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The line is over its limit.
    #[error("the record has {found} bytes; the maximum is {max}")]
    TooLong {
        /// Its bytes.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// A conflict marker of git.
    #[error("not a record but a conflict marker")]
    ConflictMarker,
    /// The line ends in the middle of a record, or is not one.
    #[error("not a record, or only a part of one: {0}")]
    NotARecord(String),
    /// The content is not what the id names: it was changed.
    #[error("the record was changed: it is called {claimed}, and its content is {found}")]
    WrongId {
        /// The id in the line.
        claimed: String,
        /// The id of its content.
        found: RecordId,
    },
    /// The record does not make sense.
    #[error("record {id}: {detail}")]
    Malformed {
        /// The id.
        id: RecordId,
        /// What is wrong.
        detail: String,
    },
    /// More than a record may have.
    #[error("record with {found} {what}; the maximum is {max}")]
    OverLimit {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// An action that cannot be.
    #[error("action {index} ({op}): {detail}")]
    BadAction {
        /// The place of the action, from 0.
        index: usize,
        /// Its name.
        op: &'static str,
        /// What is wrong.
        detail: String,
    },
}

/// Who made a record, when, and what they had seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The plan.
    pub plan: PlanId,
    /// One more than the largest clock of the parents.
    pub clock: u64,
    /// The plan's heads in this clone at the time.
    pub parents: Vec<RecordId>,
    /// The wall time. It is shown and never compared.
    pub at: Timestamp,
    /// The actor. Without a signature it is a claim.
    pub by: Actor,
    /// The tag of the clone.
    pub from: CloneTag,
}

/// An SSH signature over the id of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The fingerprint of the key.
    pub key: String,
    /// The signature.
    pub value: String,
}

/// What one command did to a plan. Immutable: its id is the hash of its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    header: RecordHeader,
    actions: Vec<Action>,
    id: RecordId,
    signature: Option<Signature>,
}

/// A record of a newer version of Waypost, as it came. It is passed on, and the plan is read-only here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewerRecord {
    id: RecordId,
    plan: PlanId,
    clock: u64,
    parents: Vec<RecordId>,
    line: Box<str>,
}

/// A line that is a record.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedRecord {
    /// A record of a version that this build knows.
    Known(Box<Record>),
    /// A record of a newer version.
    Newer(Box<NewerRecord>),
}

/// The part of a record that its id names, in the order in which it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content<A> {
    v: u64,
    plan: PlanId,
    clock: u64,
    parents: Vec<RecordId>,
    at: Timestamp,
    by: Actor,
    from: CloneTag,
    #[serde(rename = "do")]
    actions: A,
}

/// What a record of any version has.
#[derive(Deserialize)]
struct AnyContent {
    v: u64,
    plan: PlanId,
    clock: u64,
    parents: Vec<RecordId>,
    #[serde(rename = "do", default)]
    actions: Vec<AnyAction>,
}

#[derive(Deserialize)]
struct AnyAction {
    #[serde(default)]
    op: String,
}

/// The end of a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordTail {
    id: String,
    sig: Option<Signature>,
}

impl Record {
    /// Makes a record of `actions`.
    pub fn new(header: RecordHeader, actions: Vec<Action>) -> Result<Self, RecordError> {
        check(&header, &actions)?;
        let mut record = Self { header, actions, id: RecordId::of(b""), signature: None };
        let content = record.content();
        record.id = RecordId::of(content.as_bytes());
        within_line(record.line_of(&content).len())?;
        Ok(record)
    }

    /// Adds a signature over the id, which stays the same.
    pub fn sign(self, signature: Signature) -> Self {
        Self { signature: Some(signature), ..self }
    }

    /// Reads a line, without its end, and verifies its id.
    pub fn parse(line: &[u8]) -> Result<ParsedRecord, RecordError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        within_line(line.len())?;
        let is_marker = |marker: &str| line.starts_with(marker.as_bytes());
        if ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].into_iter().any(is_marker) {
            return Err(RecordError::ConflictMarker);
        }
        let not = |why: &str| RecordError::NotARecord(shortened_text(why));
        let line = std::str::from_utf8(line).map_err(|_| not("it is not UTF-8"))?;
        let split = line.rfind(BEFORE_ID).ok_or_else(|| not("it has no id"))?;
        let ending: RecordTail = serde_json::from_str(&format!("{{{}", &line[split + 1..]))
            .map_err(|error| not(&error.to_string()))?;
        let content = format!("{}}}", &line[..split]);
        let found = RecordId::of(content.as_bytes());
        if ending.id != found.to_string() {
            return Err(RecordError::WrongId { claimed: shortened_text(&ending.id), found });
        }
        Self::read(found, &content, line, ending.sig)
    }

    fn read(
        id: RecordId,
        content: &str,
        line: &str,
        signature: Option<Signature>,
    ) -> Result<ParsedRecord, RecordError> {
        let malformed = |detail: String| RecordError::Malformed { id, detail };
        let read: Result<Content<Vec<Action>>, serde_json::Error> = serde_json::from_str(content);
        let known =
            match read {
                Ok(known) if known.v == RECORD_FORMAT => known,
                failed => {
                    let any: AnyContent =
                        serde_json::from_str(content).map_err(|error| malformed(error.to_string()))?;
                    let is_unknown = |action: &AnyAction| !Action::OPS.contains(&action.op.as_str());
                    if any.v > RECORD_FORMAT || any.v == RECORD_FORMAT && any.actions.iter().any(is_unknown) {
                        check_parents(any.clock, &any.parents)?;
                        let AnyContent { plan, clock, parents, .. } = any;
                        let newer = NewerRecord { id, plan, clock, parents, line: line.into() };
                        return Ok(ParsedRecord::Newer(Box::new(newer)));
                    }
                    return Err(malformed(failed.err().map_or_else(
                        || format!("format {} does not exist", any.v),
                        |error| error.to_string(),
                    )));
                }
            };
        let Content { v: _, plan, clock, parents, at, by, from, actions } = known;
        let header = RecordHeader { plan, clock, parents, at, by, from };
        check(&header, &actions)?;
        let record = Self { header, actions, id, signature };
        if record.to_line() != line {
            return Err(malformed("it is not written as Waypost writes it".to_owned()));
        }
        Ok(ParsedRecord::Known(Box::new(record)))
    }

    /// Returns the line of the record, without an end.
    pub fn to_line(&self) -> String {
        self.line_of(&self.content())
    }

    fn content(&self) -> String {
        let RecordHeader { plan, clock, parents, at, by, from } = self.header.clone();
        let content =
            Content { v: RECORD_FORMAT, plan, clock, parents, at, by, from, actions: &self.actions };
        // Nothing in a record has keys that are not texts.
        serde_json::to_string(&content).unwrap_or_default()
    }

    fn line_of(&self, content: &str) -> String {
        let open = content.strip_suffix('}').unwrap_or(content);
        let signature = self.signature.as_ref().and_then(|signature| serde_json::to_string(signature).ok());
        let signature = signature.as_deref().unwrap_or("null");
        format!("{open}{BEFORE_ID}{}\",\"sig\":{signature}}}", self.id)
    }

    /// Returns the id.
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// Returns the plan.
    pub fn plan(&self) -> &PlanId {
        &self.header.plan
    }

    /// Returns the Lamport clock.
    pub fn clock(&self) -> u64 {
        self.header.clock
    }

    /// Returns what its author had seen.
    pub fn parents(&self) -> &[RecordId] {
        &self.header.parents
    }

    /// Returns the wall time.
    pub fn at(&self) -> Timestamp {
        self.header.at
    }

    /// Returns the actor.
    pub fn by(&self) -> &Actor {
        &self.header.by
    }

    /// Returns the tag of the clone.
    pub fn from(&self) -> &CloneTag {
        &self.header.from
    }

    /// Returns what it does.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns the signature, which nobody has verified.
    pub fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }
}

impl ParsedRecord {
    /// Returns the id.
    pub fn id(&self) -> RecordId {
        match self {
            Self::Known(record) => record.id,
            Self::Newer(record) => record.id,
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &PlanId {
        match self {
            Self::Known(record) => &record.header.plan,
            Self::Newer(record) => &record.plan,
        }
    }

    /// Returns the Lamport clock.
    pub fn clock(&self) -> u64 {
        match self {
            Self::Known(record) => record.header.clock,
            Self::Newer(record) => record.clock,
        }
    }

    /// Returns what its author had seen.
    pub fn parents(&self) -> &[RecordId] {
        match self {
            Self::Known(record) => &record.header.parents,
            Self::Newer(record) => &record.parents,
        }
    }

    /// Returns the line, without an end; of a newer record, the bytes that came.
    pub fn to_line(&self) -> String {
        match self {
            Self::Known(record) => record.to_line(),
            Self::Newer(record) => record.line.to_string(),
        }
    }

    /// Returns the record, if this version knows its format.
    pub fn known(&self) -> Option<&Record> {
        match self {
            Self::Known(record) => Some(record),
            Self::Newer(_) => None,
        }
    }
}

impl From<Record> for ParsedRecord {
    fn from(record: Record) -> Self {
        Self::Known(Box::new(record))
    }
}

fn within_line(found: usize) -> Result<(), RecordError> {
    let max = limits::RECORD_BYTES_MAX;
    if found <= max { Ok(()) } else { Err(RecordError::TooLong { found, max }) }
}

fn within(what: &'static str, found: usize, max: usize) -> Result<(), RecordError> {
    if found <= max { Ok(()) } else { Err(RecordError::OverLimit { what, found, max }) }
}

fn check_parents(clock: u64, parents: &[RecordId]) -> Result<(), RecordError> {
    within("parents", parents.len(), limits::RECORD_PARENTS_MAX)?;
    let clock = usize::try_from(clock).unwrap_or(usize::MAX);
    within("as its clock, which counts records", clock, limits::RECORDS_MAX)
}

fn check(header: &RecordHeader, actions: &[Action]) -> Result<(), RecordError> {
    check_parents(header.clock, &header.parents)?;
    within("actions", actions.len(), limits::RECORD_ACTIONS_MAX)?;
    let bad = |index: usize, op, detail: String| RecordError::BadAction { index, op, detail };
    if header.clock == 0 {
        return Err(bad(0, "record", "its clock is 0; clocks begin at 1".to_owned()));
    }
    if actions.is_empty() {
        return Err(bad(0, "record", "it has no actions".to_owned()));
    }
    let mut names = HashSet::new();
    for (index, action) in actions.iter().enumerate() {
        check_action(action).map_err(|detail| bad(index, action.op(), detail))?;
        if let Action::Add(start) = action
            && !names.insert(start.task.as_str())
        {
            return Err(bad(index, action.op(), format!("{} is added twice", start.task)));
        }
    }
    Ok(())
}

/// Checks what an action says on its own, as `validate` does with the part of a plan.
fn check_action(action: &Action) -> Result<(), String> {
    let bytes = |what: &str, found: usize, max: usize| {
        if found <= max { Ok(()) } else { Err(format!("{what} has {found} bytes; the maximum is {max}")) }
    };
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let json = |json: &Option<waypost_core::Json>| json.as_ref().map_or(0, |json| json.as_str().len());
    match action {
        Action::Create(start) => {
            let texts = [
                (Field::Title, &start.title),
                (Field::Goal, &start.goal),
                (Field::Status, &start.status),
                (Field::Owner, &start.owner),
                (Field::Queue, &start.queue),
                (Field::Body, &start.body),
            ];
            texts.iter().try_for_each(|(field, text)| field.check_bytes(text.len())).map_err(describe)
        }
        Action::Add(start) => check_start(start),
        Action::Set { task, field, to, over: _ } => field.check(to, task.is_some()).map_err(describe),
        Action::Include { list, item, .. } | Action::Exclude { list, item, .. } => check_item(*list, item),
        Action::Remove { tasks, .. } if tasks.is_empty() => Err("it names no task".to_owned()),
        Action::Remove { .. } | Action::Retry { .. } | Action::Resume { .. } => Ok(()),
        Action::Report { text, output, evidence, .. } => {
            bytes("the text", length(text), limits::TEXT_BYTES_MAX)?;
            bytes("the output", json(output), limits::JSON_BYTES_MAX)?;
            bytes("the evidence", json(evidence), limits::JSON_BYTES_MAX)
        }
        Action::Claim { worker, .. } => bytes("the worker", worker.len(), limits::LINE_BYTES_MAX),
        Action::Ask { question, choices, .. } => {
            let mut texts = choices.iter().chain([question]);
            if choices.len() > limits::CHOICES_MAX {
                return Err(format!("it has more than {} choices", limits::CHOICES_MAX));
            }
            texts.try_for_each(|text| bytes("the question", text.len(), limits::QUESTION_BYTES_MAX))
        }
        Action::Answer { answer, .. } => bytes("the answer", answer.len(), limits::QUESTION_BYTES_MAX),
        Action::Charge { .. } | Action::Delete {} => Ok(()),
        Action::Stop { reason, .. } => bytes("the reason", reason.len(), limits::TEXT_BYTES_MAX),
        Action::Approve { approval } => {
            bytes("the approval", approval.as_str().len(), limits::JSON_BYTES_MAX)
        }
        Action::Dismiss { over } if over.is_empty() => Err("it names nothing".to_owned()),
        Action::Dismiss { .. } => Ok(()),
        Action::Comment { text, .. } => check_comment(text),
    }
}

fn check_start(start: &TaskStart) -> Result<(), String> {
    let texts = [(Field::Description, &start.description), (Field::Notes, &start.notes)];
    texts.iter().try_for_each(|(field, text)| field.check_bytes(text.len())).map_err(describe)?;
    if !crate::place::is_key(&start.place) {
        return Err("its place is not a key".to_owned());
    }
    let reasoning = start.reasoning.as_ref().map_or(0, String::len);
    Field::Reasoning.check_bytes(reasoning).map_err(describe)?;
    start.depends_on.iter().try_for_each(|item| check_item(ListField::DependsOn, item))?;
    let inputs = [&start.work, &start.check];
    for work in inputs.into_iter().flatten() {
        check_inputs(work.inputs.is_object(), work.inputs.as_str().len())?;
    }
    if let Some(retry) = &start.retry
        && retry.attempts > limits::ATTEMPTS_MAX
    {
        return Err(format!("it has more than {} attempts", limits::ATTEMPTS_MAX));
    }
    if let Some(digest) = &start.digest {
        digest.to::<waypost_core::Digest>().map_err(|_| "its digest is not one".to_owned())?;
    }
    if let Some(state) = &start.state {
        let text = state.text.as_ref().map_or(0, String::len);
        let output = state.output.as_ref().map_or(0, |output| output.as_str().len());
        if text > limits::TEXT_BYTES_MAX || output > limits::JSON_BYTES_MAX {
            return Err("its result is too long".to_owned());
        }
    }
    if start.labels.len() > limits::LABELS_MAX || start.comments.len() > limits::COMMENTS_MAX {
        return Err("it has too many labels or comments".to_owned());
    }
    let labels = start.labels.iter().map(|label| is_one_line(label, limits::LABEL_BYTES_MAX));
    let assignee = start.assignee.iter().map(|who| is_one_line(who, limits::ASSIGNEE_BYTES_MAX));
    if !labels.chain(assignee).all(|is_fine| is_fine) {
        return Err("its labels and its assignee must be short lines".to_owned());
    }
    start.comments.iter().try_for_each(|comment| check_comment(&comment.text))?;
    start.locks.iter().try_for_each(check_lock)
}

fn check_comment(text: &str) -> Result<(), String> {
    match text.len() {
        0 => Err("the comment is empty".to_owned()),
        found if found > limits::COMMENT_BYTES_MAX => {
            Err(format!("the comment has {found} bytes; the maximum is {}", limits::COMMENT_BYTES_MAX))
        }
        _ => Ok(()),
    }
}

/// Checks the inputs of work.
fn check_inputs(is_object: bool, bytes: usize) -> Result<(), String> {
    match (is_object, bytes <= limits::JSON_BYTES_MAX) {
        (true, true) => Ok(()),
        (false, _) => Err("inputs must be an object".to_owned()),
        (true, false) => Err(format!("inputs have more than {} bytes", limits::JSON_BYTES_MAX)),
    }
}

fn check_lock(lock: &Lock) -> Result<(), String> {
    let is_fine = lock.key.len() <= limits::LINE_BYTES_MAX;
    if is_fine { Ok(()) } else { Err("the key of a lock is too long".to_owned()) }
}

fn check_item(list: ListField, item: &serde_json::Value) -> Result<(), String> {
    match list {
        ListField::DependsOn => Prerequisite::read(item).map(|_| ()).ok_or("it is not a dependency"),
        ListField::Locks => match Lock::deserialize(item) {
            Ok(lock) => return check_lock(&lock),
            Err(_) => Err("it is not a lock"),
        },
        ListField::Tools => item.as_str().map(|_| ()).ok_or("it is not a tool"),
        ListField::Labels => {
            let label = item.as_str().filter(|label| is_one_line(label, limits::LABEL_BYTES_MAX));
            label.map(|_| ()).ok_or("it is not a label")
        }
    }
    .map_err(str::to_owned)
}

fn describe(error: BadValue) -> String {
    error.to_string()
}

/// A dependency as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Prerequisite {
    /// On a task of the plan.
    Here(TaskRef),
    /// On a task of another plan.
    OtherPlan(ExternalTaskRef),
}

impl Prerequisite {
    /// Reads a dependency from an action.
    pub(crate) fn read(item: &serde_json::Value) -> Option<Self> {
        match item.as_str() {
            Some(text) => text.parse().ok().map(Self::Here),
            None => match Dependency::deserialize(item).ok()? {
                Dependency::External(there) => Some(Self::OtherPlan(*there)),
                Dependency::Task(_) => None,
            },
        }
    }
}
