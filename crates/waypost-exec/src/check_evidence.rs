//! Converts the outcome of a check into evidence. Runs nothing.

use ring::digest::SHA256;
use serde_json::{Value, json};
use waypost_core::{Answer, Evidence, Json, Outcome, PlanId, QuestionRequest, Report, Task, Work, limits};
use waypost_text::{head_bytes, tail_bytes};

use crate::outcome::AttemptOutcome;

/// Attempts of a task for agents and people when its check fails and the plan sets no limit.
pub const CHECK_ATTEMPTS: u32 = 3;
/// Bytes of a check's message that its outcome quotes.
const SAID_BYTES_MAX: usize = 1_000;
/// Bytes of a description and of a result that a question quotes.
const QUOTED_BYTES_MAX: usize = 500;
/// Bytes of an output that a question quotes.
const QUOTED_OUTPUT_BYTES_MAX: usize = 1_000;

/// The result that the worker reports for its work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    pub result: Option<String>,
    pub output: Option<Json>,
}

impl From<&Report> for Claim {
    fn from(report: &Report) -> Self {
        Self { result: report.result.clone(), output: report.output.clone() }
    }
}

/// Returns a digest of what is checked: the check itself, the result and the output, with the keys of each object
/// sorted.
fn digest(check: &Work, claim: &Claim) -> String {
    let mut checked = json!({
        "check": { "executor": check.executor, "inputs": check.inputs.value() },
        "output": claim.output.as_ref().map(Json::value),
        "result": claim.result,
    });
    checked.sort_all_objects();
    sha256(&checked)
}

fn sha256(value: &Value) -> String {
    let sum = ring::digest::digest(&SHA256, value.to_string().as_bytes());
    format!("sha256:{}", waypost_text::hex(sum.as_ref()))
}

/// Returns a digest of the one report that a person is asked about in an attempt: the same words, reported again, are another
/// report.
fn digest_of_report(task: &Task, check: &Work, report: &Report, attempt: u32) -> String {
    sha256(&json!({
        "at": report.at.as_micros(),
        "attempt": attempt,
        "by": report.by,
        "checked": digest(check, &report.into()),
        "description": task.spec.description,
        "work": task.spec.work.as_ref().map(|work| json!([work.executor, work.inputs.as_str(), work.shape])),
    }))
}

fn evidence(check: &Work, claim: &Claim, worker: &str, passed: bool, outcome: &str) -> Evidence {
    Evidence {
        passed,
        check: check.executor.clone(),
        worker: worker.to_owned(),
        at: None,
        outcome: head_bytes(outcome, SAID_BYTES_MAX).to_owned(),
        output: None,
        log_tail: None,
        digest: digest(check, claim),
    }
}

/// Returns the outcome of an attempt from the outcome of its check. A check that could not decide leaves the claim as
/// it is, to be checked again.
pub fn judged(
    check: &Work,
    claim: Claim,
    is_reported: bool,
    worker: &str,
    found: AttemptOutcome,
    log: &str,
) -> AttemptOutcome {
    let log_tail =
        Some(tail_bytes(log, limits::EVIDENCE_LOG_BYTES_MAX).to_owned()).filter(|tail| !tail.is_empty());
    let proved = |passed, outcome: &str, output: Option<Json>| {
        let output = output.filter(|json| json.as_str().len() <= limits::EVIDENCE_OUTPUT_BYTES_MAX);
        let found = evidence(check, &claim, worker, passed, outcome);
        Box::new(Evidence { output, log_tail: log_tail.clone(), ..found })
    };
    match found {
        AttemptOutcome::Done { result, output } => {
            let outcome = result.map_or_else(|| "it passed".to_owned(), |said| format!("it passed: {said}"));
            let evidence = proved(true, &outcome, output);
            AttemptOutcome::Checked { result: claim.result, output: claim.output, error: None, evidence }
        }
        AttemptOutcome::Failed { error } => {
            let evidence = proved(false, &error, None);
            let error = Some(format!("the check: {error}"));
            AttemptOutcome::Checked { result: claim.result, output: claim.output, error, evidence }
        }
        // The work is done and need not be repeated: it is reported, and the next attempt runs only the check.
        AttemptOutcome::TryAgain { .. } | AttemptOutcome::Asked(_) if !is_reported => {
            AttemptOutcome::Done { result: claim.result, output: claim.output }
        }
        AttemptOutcome::TryAgain { error } => {
            AttemptOutcome::TryAgain { error: format!("the check: {error}") }
        }
        found @ (AttemptOutcome::Asked(_) | AttemptOutcome::Checked { .. }) => found,
    }
}

/// Returns the evidence of a check that has nothing to run.
pub fn of_nothing(check: &Work, claim: &Claim, worker: &str) -> Evidence {
    evidence(check, claim, worker, true, "nothing was to be checked")
}

/// Returns the outcome of an attempt whose check has nothing to run.
pub fn passed_at_once(check: &Work, claim: Claim, worker: &str) -> AttemptOutcome {
    let evidence = Box::new(of_nothing(check, &claim, worker));
    AttemptOutcome::Checked { result: claim.result, output: claim.output, error: None, evidence }
}

/// The state of a check by a person.
pub enum Verdict {
    /// The person has not been asked this question yet.
    Ask(QuestionRequest),
    /// The person has answered.
    Outcome(Outcome),
}

/// Returns the question for a person who checks a reported task, or the meaning of their answer.
pub fn by_person(plan: &PlanId, task: &Task, check: &Work, report: &Report) -> Verdict {
    let digest = |attempt: u32| digest_of_report(task, check, report, attempt);
    // Only an answer to the last question counts, and only if it was about this report.
    let answer = task.state.answers().last();
    let answer = answer.filter(|answer| answer.is_about_report(&digest(task.state.attempt)));
    let Some(Answer { answer, by, .. }) = answer else {
        let text = question_about(plan, task, report);
        let check = Some(digest(task.state.attempt.saturating_add(1)));
        return Verdict::Ask(QuestionRequest { text, check, ..QuestionRequest::default() });
    };
    let passed = matches!(answer.to_lowercase().as_str(), "yes" | "y");
    let said = format!("{by} answered: {answer}");
    let evidence = Some(Box::new(evidence(check, &report.into(), &by.to_string(), passed, &said)));
    Verdict::Outcome(if passed {
        // What was checked is what is done.
        Outcome::Done { result: report.result.clone(), output: report.output.clone(), evidence }
    } else {
        Outcome::Failed { error: format!("the check: {said}"), evidence }
    })
}

fn question_about(plan: &PlanId, task: &Task, report: &Report) -> String {
    let quoted = |text: &str| head_bytes(text, QUOTED_BYTES_MAX).to_owned();
    let mut text = format!("Is {} done? {}", task.spec.id, quoted(&task.spec.description));
    text = format!("{}\nReported by {}", text.trim_end(), report.by);
    if let Some(result) = &report.result {
        text = format!("{text}: {}", quoted(result));
    }
    if let Some(output) = &report.output {
        text = format!("{text}\nOutput: {}", head_bytes(output.as_str(), QUOTED_OUTPUT_BYTES_MAX));
    }
    let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let is_cut = task.spec.description.len().max(bytes(&report.result)) > QUOTED_BYTES_MAX
        || report.output.as_ref().is_some_and(|output| output.as_str().len() > QUOTED_OUTPUT_BYTES_MAX);
    if is_cut {
        text = format!("{text}…\nThis is not all of it: task {} of plan {plan} has the rest.", task.spec.id);
    }
    text = format!("{text}\nAnswer yes, or say what is missing.");
    head_bytes(&text, limits::QUESTION_BYTES_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inputs: serde_json::Value) -> Work {
        Work { executor: "test".to_owned(), inputs: Json::of(&inputs), shape: None }
    }

    #[test]
    fn a_digest_is_of_what_was_checked_and_not_of_how_it_was_written() {
        let claim = |output: serde_json::Value| Claim { result: None, output: Some(Json::of(&output)) };
        let a = digest(&check(json!({ "a": 1, "b": { "c": 2, "d": 3 } })), &claim(json!({ "x": 1, "y": 2 })));
        let b = digest(&check(json!({ "b": { "d": 3, "c": 2 }, "a": 1 })), &claim(json!({ "y": 2, "x": 1 })));
        assert_eq!(a, b);
        assert!(a.starts_with("sha256:") && a.len() == 7 + 64, "{a}");
        assert_ne!(a, digest(&check(json!({})), &claim(json!({ "x": 1, "y": 2 }))));
        assert_ne!(a, digest(&check(json!({ "a": 1, "b": { "c": 2, "d": 3 } })), &claim(json!({ "x": 2 }))));
        let nothing = digest(&check(json!({})), &Claim::default());
        assert_eq!(nothing, "sha256:d9cecea1ce806c6df11ab3200d172457b45376cb00a710e1b6601d81945f7597");
    }

    #[test]
    fn a_long_log_is_cut_at_its_beginning_and_a_large_output_is_not_kept() {
        let log = "é".repeat(limits::EVIDENCE_LOG_BYTES_MAX);
        let output = Json::of(&"x".repeat(limits::EVIDENCE_OUTPUT_BYTES_MAX));
        let found = AttemptOutcome::Done { result: None, output: Some(output) };
        let ending = judged(&check(json!({})), Claim::default(), true, "w", found, &log);
        let AttemptOutcome::Checked { evidence, error: None, .. } = ending else { panic!("{ending:?}") };
        let tail = evidence.log_tail.unwrap_or_default();
        assert!(
            tail.len() <= limits::EVIDENCE_LOG_BYTES_MAX && tail.len() > limits::EVIDENCE_LOG_BYTES_MAX - 2
        );
        assert_eq!((evidence.passed, evidence.output), (true, None));
    }

    #[test]
    fn a_check_that_cannot_decide_leaves_the_claim_to_be_checked_again() {
        let claim = || Claim { result: Some("fine".to_owned()), output: None };
        let later = || AttemptOutcome::TryAgain { error: "busy".to_owned() };
        let first = judged(&check(json!({})), claim(), false, "w", later(), "");
        assert_eq!(first, AttemptOutcome::Done { result: Some("fine".to_owned()), output: None });
        let again = judged(&check(json!({})), claim(), true, "w", later(), "");
        assert_eq!(again, AttemptOutcome::TryAgain { error: "the check: busy".to_owned() });
    }
}
