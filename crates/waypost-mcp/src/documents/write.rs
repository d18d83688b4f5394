//! Writes the text of a document, from an argument or from a file. Returns the version, the bytes and how much differs, never the
//! text that was sent.

use serde::Deserialize;
use serde_json::Value;
use waypost_core::{Draft, FORMAT, PlanChanges, PlanId, PlanSpec, Refusal, differences, limits};
use waypost_service::{CreateOptions, EditOp, Guard, OwnerRule, ServiceError, WriteReply};

use super::conflict;
use super::name::{self, Document, KnownVersion, LastKnown};
use super::read;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// How often a write is tried while others create and delete the same name.
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

/// Whether the document has to exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Either,
    New,
    There,
}

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
    let known = LastKnown { last_known_version, last_known_revision }.known()?;
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
    let body = call.files().read_text(&path)?;
    if body.is_empty() {
        return Err(ToolError::new("file is empty; plan content must not be empty", ""));
    }
    let known = LastKnown { last_known_version, last_known_revision }.known()?;
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
        if let Some(written) = tried {
            return write.answer(call, &written, before.filter(|before| !before.deleted));
        }
    }
    let message = format!("plan {:?} kept being created and deleted by others", write.name);
    Err(ToolError::new(message, "try again"))
}

/// The result of one try: `None` if another writer came first, so the document has to be read again.
type Tried = Result<Option<WriteReply>, ToolError>;

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

    /// Refuses a known version other than 0: a missing document has none.
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
        let options = CreateOptions {
            id: Some(self.id.clone()),
            owner: OwnerRule::AsWritten,
            ..CreateOptions::default()
        };
        match call.service().create(&call.caller, draft, options) {
            Ok(written) => Ok(Some(written)),
            Err(ServiceError::Refused(Refusal::AlreadyExists {})) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a new document under a deleted name. Its version numbers continue, so that a version known from the old document is
    /// never mistaken for a version of the new one.
    fn bring_back(&self, call: &Call, before: &Document) -> Tried {
        self.must_be_new(call, Some(&before.id))?;
        if before.tasks > 0 || !name::is_name(&self.name) {
            let message = format!("the name {:?} belongs to an archived plan with tasks", self.name);
            return Err(ToolError::new(
                message,
                format!("choose another name; to restore it a person runs `waypost unarchive {}`", before.id),
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
        let ops = vec![EditOp::SetArchived(false), EditOp::RevisePlan(Box::new(changes))];
        match self.send(call, ops, Some(before.version)) {
            Ok(written) => Ok(Some(written)),
            Err(ServiceError::Conflict(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn revise(&self, call: &Call, before: &Document) -> Tried {
        if self.mode == Mode::New {
            let message = format!("plan {:?} exists already, at version {}", self.name, before.revision());
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
        let known = self.known.map(|known| before.version_of(known.version));
        match self.send(call, vec![EditOp::RevisePlan(Box::new(changes))], known) {
            Ok(written) => Ok(Some(written)),
            Err(ServiceError::Refused(Refusal::Archived { .. })) => Ok(None),
            Err(ServiceError::Conflict(found)) => match self.known {
                Some(known) if self.is_conflict(call, &found.plan)? => {
                    Err(conflict::version_conflict(call, &self.name, known, &found)?)
                }
                Some(_) | None => Ok(None),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the document still exists, which makes this a real conflict. If it was deleted in between, the write is retried.
    fn is_conflict(&self, call: &Call, id: &PlanId) -> Result<bool, ToolError> {
        Ok(name::find_any(call, id)?.is_some_and(|now| !now.deleted))
    }

    fn send(
        &self,
        call: &Call,
        ops: Vec<EditOp>,
        known_version: Option<u64>,
    ) -> Result<WriteReply, ServiceError> {
        call.service().edit(&call.caller, &self.id, ops, Guard::from(known_version))
    }

    /// The reply to a write; it omits the text.
    fn answer(
        &self,
        call: &Call,
        written: &WriteReply,
        before: Option<Document>,
    ) -> Result<Answer, ToolError> {
        let now = read::at(call, &written.plan, written.version)?;
        let mut answer = read::about(&now);
        answer.insert("bytes".to_owned(), self.body.len().into());
        match before {
            None => answer.insert("created".to_owned(), true.into()),
            Some(before) => answer.insert("changed".to_owned(), changed(call, written, before, &now)?),
        };
        Ok(Answer::of(Value::Object(answer)))
    }
}

/// Describes how much differs from the previous version.
fn changed(call: &Call, written: &WriteReply, before: Document, now: &Document) -> Result<Value, ToolError> {
    if !written.changed {
        return Ok("nothing differs".into());
    }
    let before = match written.version - 1 {
        last if last == before.version => before,
        last => read::at(call, &written.plan, last)?,
    };
    let draft = |spec: &PlanSpec| Draft { spec: spec.clone(), ..Draft::default() };
    Ok(conflict::described(&differences(&draft(&before.spec), &draft(&now.spec))).into())
}
