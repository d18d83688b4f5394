//! Writing the text of a document: from an argument or from a file. Answers the version, the bytes and how much differs,
//! never the text that was sent.

use serde::Deserialize;
use serde_json::Value;
use waypost_core::{
    Command, DiffStat, Draft, FORMAT, PlanChanges, PlanId, PlanSpec, Refusal, differences, limits,
};
use waypost_store::{Committed, NewPlan, WriteError, WriteRequest};

use super::conflict;
use super::name::{self, Document, Guard, KnownVersion};
use super::read;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;
use crate::workspace_files;

/// How often a write is tried when others create and delete the same name meanwhile.
const TRIES_MAX: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    name: String,
    content: String,
    title: Option<String>,
    author: Option<String>,
    status: Option<String>,
    last_known_version: Option<u64>,
    last_known_revision: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromFile {
    name: String,
    path: String,
    title: Option<String>,
    author: Option<String>,
    status: Option<String>,
    last_known_version: Option<u64>,
    last_known_revision: Option<u64>,
}

/// Whether the document has to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Either,
    New,
    There,
}

/// What is to be written.
struct DocumentWrite {
    name: String,
    id: PlanId,
    body: String,
    title: Option<String>,
    author: Option<String>,
    status: Option<String>,
    known: Option<KnownVersion>,
    mode: Mode,
}

pub(super) fn write(call: &Call) -> Result<Answer, ToolError> {
    inline(call, Mode::Either)
}

pub(super) fn create(call: &Call) -> Result<Answer, ToolError> {
    inline(call, Mode::New)
}

pub(super) fn update(call: &Call) -> Result<Answer, ToolError> {
    inline(call, Mode::There)
}

fn inline(call: &Call, mode: Mode) -> Result<Answer, ToolError> {
    let asked: Write = call.arguments()?;
    let Write { name, content, title, author, status, last_known_version, last_known_revision } = asked;
    if content.is_empty() {
        return Err(ToolError::new("content must not be empty", ""));
    }
    let known = Guard { last_known_version, last_known_revision }.known()?;
    write_document(
        call,
        DocumentWrite { id: name::id(call, &name)?, name, body: content, title, author, status, known, mode },
    )
}

pub(super) fn from_file(call: &Call) -> Result<Answer, ToolError> {
    let asked: FromFile = call.arguments()?;
    let FromFile { name, path, title, author, status, last_known_version, last_known_revision } = asked;
    let id = name::id(call, &name)?;
    if path.is_empty() {
        return Err(ToolError::new("path must not be empty", ""));
    }
    let body = workspace_files::read(&call.workspace, &path)?;
    if body.is_empty() {
        return Err(ToolError::new("file is empty; plan content must not be empty", ""));
    }
    let known = Guard { last_known_version, last_known_revision }.known()?;
    write_document(call, DocumentWrite { id, name, body, title, author, status, known, mode: Mode::Either })
}

fn write_document(call: &Call, mut write: DocumentWrite) -> Result<Answer, ToolError> {
    if write.body.len() > limits::BODY_BYTES_MAX {
        let (name, found, max) = (&write.name, write.body.len(), limits::BODY_BYTES_MAX);
        let message = format!("plan {name:?} content is too large to store ({found} bytes; max {max})");
        return Err(ToolError::new(message, "split it into several plans"));
    }
    write.title = name::nonempty(write.title);
    write.author = name::nonempty(write.author);
    write.status = name::nonempty(write.status);
    for _ in 0..TRIES_MAX {
        let before = name::find_any(call, &write.id)?;
        let tried = match &before {
            None => write.make(call)?,
            Some(before) if before.deleted => write.bring_back(call, before)?,
            Some(before) => write.revise(call, before)?,
        };
        if let Some(committed) = tried {
            return write.answer(call, &committed, before.filter(|before| !before.deleted));
        }
    }
    let message = format!("plan {:?} was created and deleted again and again meanwhile", write.name);
    Err(ToolError::new(message, "try again"))
}

/// What was written; nothing when somebody was faster and it has to be looked at again.
type Tried = Result<Option<Committed>, ToolError>;

impl DocumentWrite {
    fn spec(&self) -> PlanSpec {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        PlanSpec {
            title: text(&self.title),
            status: text(&self.status),
            owner: text(&self.author),
            body: self.body.clone(),
            ..PlanSpec::default()
        }
    }

    /// A version other than 0 cannot be known of what is not there.
    fn must_be_new(&self, call: &Call, deleted: Option<&PlanId>) -> Result<(), ToolError> {
        match self.known {
            Some(known) if known.version > 0 => Err(conflict::absent(call, &self.name, known, deleted)?),
            Some(_) | None if self.mode == Mode::There => Err(name::not_found(&self.name)),
            Some(_) | None => Ok(()),
        }
    }

    fn make(&self, call: &Call) -> Tried {
        self.must_be_new(call, None)?;
        let draft = Draft { format: FORMAT.to_owned(), spec: self.spec(), ..Draft::default() };
        let approval_required = call.workspace.config.approval.required();
        let new = NewPlan { id: Some(self.id.clone()), by: call.by.clone(), draft, approval_required };
        match call.workspace.plans.create(new) {
            Ok(committed) => Ok(Some(committed)),
            Err(WriteError::Refused(Refusal::AlreadyExists {})) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A name that was deleted is a new document; its versions go on, so that what somebody knew of the old one is never
    /// taken for a version of the new one.
    fn bring_back(&self, call: &Call, before: &Document) -> Tried {
        self.must_be_new(call, Some(&before.id))?;
        if before.tasks > 0 || !name::is_name(&self.name) {
            let message = format!("the name {:?} belongs to a plan with tasks that was put away", self.name);
            return Err(ToolError::new(
                message,
                format!(
                    "choose another name; to bring it back a person runs `waypost unarchive {}`",
                    before.id
                ),
            ));
        }
        let spec = self.spec();
        let changes = PlanChanges {
            title: Some(spec.title),
            status: Some(spec.status),
            owner: Some(spec.owner),
            body: Some(spec.body),
            goal: Some(String::new()),
            ..PlanChanges::default()
        };
        let commands = vec![Command::Unarchive, Command::RevisePlan(Box::new(changes))];
        match self.send(call, commands, Some(before.version)) {
            Ok(committed) => Ok(Some(committed)),
            Err(WriteError::Conflict(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn revise(&self, call: &Call, before: &Document) -> Tried {
        if self.mode == Mode::New {
            let message = format!("plan {:?} exists already, at version {}", self.name, before.version);
            return Err(ToolError::new(message, "choose another name, or change it with update_plan")
                .with_fact("code", "exists"));
        }
        let changes = PlanChanges {
            title: self.title.clone(),
            status: self.status.clone(),
            owner: self.author.clone(),
            body: Some(self.body.clone()),
            ..PlanChanges::default()
        };
        let known = self.known.map(|known| known.version);
        match self.send(call, vec![Command::RevisePlan(Box::new(changes))], known) {
            Ok(committed) => Ok(Some(committed)),
            Err(WriteError::Refused(Refusal::Archived {})) => Ok(None),
            Err(WriteError::Conflict(found)) => match self.known {
                Some(known) if self.is_conflict(call, &found.plan)? => {
                    Err(conflict::version_conflict(call, &self.name, known, &found)?)
                }
                Some(_) | None => Ok(None),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Whether somebody really wrote something else: a document that was deleted in between is looked at again.
    fn is_conflict(&self, call: &Call, id: &PlanId) -> Result<bool, ToolError> {
        Ok(name::find_any(call, id)?.is_some_and(|now| !now.deleted))
    }

    fn send(
        &self,
        call: &Call,
        commands: Vec<Command>,
        known_version: Option<u64>,
    ) -> Result<Committed, WriteError> {
        let (plan, by) = (self.id.clone(), call.by.clone());
        call.workspace.plans.write(WriteRequest { plan, by, commands, known_version, lease_seconds: None })
    }

    /// What was written, without the text.
    fn answer(
        &self,
        call: &Call,
        committed: &Committed,
        before: Option<Document>,
    ) -> Result<Answer, ToolError> {
        let written = read::at(call, &committed.plan, committed.version)?;
        let mut answer = read::about(&written);
        answer.insert("bytes".to_owned(), self.body.len().into());
        match before {
            None => answer.insert("created".to_owned(), true.into()),
            Some(before) => answer.insert("changed".to_owned(), changed(call, committed, before, &written)?),
        };
        Ok(Answer::of(Value::Object(answer)))
    }
}

/// How much differs from the version before.
fn changed(call: &Call, committed: &Committed, before: Document, now: &Document) -> Result<Value, ToolError> {
    if !committed.changed {
        return Ok("nothing differs".into());
    }
    let before = match committed.version - 1 {
        last if last == before.version => before,
        last => read::at(call, &committed.plan, last)?,
    };
    let draft = |spec: &PlanSpec| Draft { spec: spec.clone(), ..Draft::default() };
    Ok(DiffStat::of(&differences(&draft(&before.spec), &draft(&now.spec))).words().into())
}
