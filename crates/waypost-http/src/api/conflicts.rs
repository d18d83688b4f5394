//! What clones disagree about after a merge: the open questions, and the answers that people give.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use waypost_core::PlanId;
use waypost_service::{AnswerChoice, QuestionRef, SharingError, may_resolve};

use super::extract::{Parameters, PlanPath, Write, page_size};
use super::response::{Problem, Reply, Versioned};
use super::state::Api;

/// Questions on a page: default and maximum.
const CONFLICTS_DEFAULT: usize = 50;
const CONFLICTS_MAX: usize = 200;

/// Pages the open questions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConflictQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResolveAnswer {
    /// Take one of the versions.
    Take,
    /// Write another text.
    Text,
    /// Keep what was to be removed.
    Keep,
    /// Remove it.
    Remove,
    /// Drop what was set aside.
    Dismiss,
}

/// The answer to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveBody {
    /// The digest of the question that the person has read.
    digest: String,
    /// One of the `answers` of the question.
    answer: ResolveAnswer,
    /// For take: the author, clone or record of the version.
    version: Option<String>,
    /// For text: the text.
    text: Option<String>,
}

impl ResolveBody {
    fn choice(self) -> Result<AnswerChoice, Problem> {
        let surplus = |name: &str| Problem::bad(format!("this answer takes no {name}"), "leave it out");
        match (self.answer, self.version, self.text) {
            (ResolveAnswer::Take, Some(version), None) => Ok(AnswerChoice::Take(version)),
            (ResolveAnswer::Take, None, _) => {
                Err(Problem::bad("take names no version", "send the record of one as `version`"))
            }
            (ResolveAnswer::Text, None, Some(text)) => Ok(AnswerChoice::Text(text)),
            (ResolveAnswer::Text, _, None) => Err(Problem::bad("there is no text", "send it as `text`")),
            (ResolveAnswer::Keep, None, None) => Ok(AnswerChoice::Keep),
            (ResolveAnswer::Remove, None, None) => Ok(AnswerChoice::Remove),
            (ResolveAnswer::Dismiss, None, None) => Ok(AnswerChoice::Dismiss),
            (ResolveAnswer::Take, Some(_), Some(_)) => Err(surplus("text")),
            (_, Some(_), _) => Err(surplus("version")),
            (_, None, Some(_)) => Err(surplus("text")),
        }
    }
}

fn page(api: &Api, plan: Option<&PlanId>, query: &ConflictQuery) -> Reply {
    let limit = page_size(query.limit, CONFLICTS_DEFAULT, CONFLICTS_MAX)?;
    Ok(Versioned::of(json!(api.service.question_page(plan, query.after.as_deref(), limit)?)))
}

/// `GET /conflicts`
pub(crate) fn list(api: &Api, Parameters(query): Parameters<ConflictQuery>) -> Reply {
    page(api, None, &query)
}

/// `GET /plans/{plan}/conflicts`
pub(crate) fn of_plan(
    api: &Api,
    (PlanPath(id), Parameters(query)): (PlanPath, Parameters<ConflictQuery>),
) -> Reply {
    page(api, Some(&id), &query)
}

/// `POST /plans/{plan}/conflicts`
pub(crate) fn resolve(api: &Api, Write { plan, guard, by, body }: Write<ResolveBody>) -> Reply {
    may_resolve(&by)?;
    api.service.check_guard(&by, &plan, guard)?;
    let Some(find) = &api.shared_branch else {
        return Err(SharingError::NotShared(plan).into());
    };
    if api.service.question_count(&plan)? == 0 {
        return Err(SharingError::QuestionChanged(plan).into());
    }
    let digest = body.digest.clone();
    let choice = body.choice()?;
    let of = QuestionRef { plan: &plan, task: None, subject: None, seen: Some(&digest) };
    let reply = api.service.resolve_question(&by, &find()?, of, &choice)?;
    let value = json!({
        "id": plan, "version": reply.version, "changed": true, "record": reply.record, "conflicts": reply.questions,
    });
    Ok(Versioned::at(value, reply.version))
}
