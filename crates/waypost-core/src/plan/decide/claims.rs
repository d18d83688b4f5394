//! Marks the authors whom only records of other clones name: a record says who wrote it, and nobody has proved it. Knows no
//! signatures.

use super::super::Plan;
use crate::merge_request::MergeRequest;
use crate::{Actor, TaskState};

impl Plan {
    /// Returns the request with every author marked whom the plan does not know from here.
    pub(super) fn with_claims_marked(&self, request: &MergeRequest) -> MergeRequest {
        let mut request = request.clone();
        for task in request.draft.tasks.iter_mut().filter(|task| task.state.aside.is_some()) {
            mark_authors(&mut task.state, self.task(task.spec.id.as_str()).map(|task| &task.state));
        }
        for stop in request.stop.iter_mut().chain(&mut request.lifted_stop) {
            let known = self.state.stopped_by.as_ref();
            stop.by = stop.by.as_ref().map(|by| as_known(by, known));
            stop.actor = as_known(&stop.actor, known);
        }
        for (task, hold) in &mut request.lifted_holds {
            let known = self.task(task.as_str()).and_then(|task| task.state.held());
            hold.by = as_known(&hold.by, known.map(|known| &known.by));
        }
        request
    }
}

/// Returns the actor as it is known here, or marked.
fn as_known(claimed: &Actor, known: Option<&Actor>) -> Actor {
    known.filter(|known| known.is_claim_of(claimed)).map_or_else(|| claimed.unverified(), Actor::clone)
}

fn mark_authors(state: &mut TaskState, here: Option<&TaskState>) {
    state.change_aside(|wanted| {
        for comment in &mut wanted.comments {
            let same = here.and_then(|here| {
                let is_same =
                    |known: &&crate::Comment| (known.at, &known.text) == (comment.at, &comment.text);
                here.comments().iter().filter(is_same).find(|known| known.by.is_claim_of(&comment.by))
            });
            comment.by = as_known(&comment.by, same.map(|known| &known.by));
        }
        for answer in &mut wanted.answers {
            let same = here.and_then(|here| {
                let is_same = |known: &&crate::Answer| {
                    (&known.question, &known.answer) == (&answer.question, &answer.answer)
                };
                here.answers().iter().filter(is_same).find(|known| known.by.is_claim_of(&answer.by))
            });
            answer.by = as_known(&answer.by, same.map(|known| &known.by));
        }
        if let Some(hold) = wanted.held.as_mut().filter(|hold| !hold.is_dispute()) {
            hold.by = as_known(&hold.by, here.and_then(TaskState::held).map(|known| &known.by));
        }
        if let Some(report) = &mut wanted.reported {
            report.by = as_known(&report.by, here.and_then(TaskState::reported).map(|known| &known.by));
        }
        wanted.stopped_by =
            wanted.stopped_by.as_ref().map(|by| as_known(by, here.and_then(TaskState::stopped_by)));
    });
}
