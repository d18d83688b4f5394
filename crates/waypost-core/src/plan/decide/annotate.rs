//! Decides on what people and agents say about a task: comments, labels, the assignee. None of it changes what runs, so
//! none of it voids an approval, in whatever phase the plan is.

use super::{Decision, not_a_worker, within};
use crate::plan::Plan;
use crate::{Actor, Event, Problem, ProblemKind, Refusal, TaskId, limits};

impl Plan {
    pub(super) fn decide_comment(&self, by: &Actor, task: &TaskId, text: &str) -> Decision {
        not_a_worker(by, "comment on a task")?;
        self.number(task)?;
        let text = text.trim();
        if text.is_empty() {
            let wrong = ProblemKind::Empty { what: "the comment".to_owned() };
            return Err(Refusal::Invalid { problems: vec![Problem::task(task, wrong)] });
        }
        within("bytes of the comment", text.len(), limits::COMMENT_BYTES_MAX, task)?;
        Ok(vec![Event::TaskCommented {
            task: task.clone(),
            by: by.clone(),
            text: text.to_owned(),
            at: None,
            place: None,
        }])
    }

    pub(super) fn decide_label(&self, by: &Actor, task: &TaskId, labels: &[String]) -> Decision {
        not_a_worker(by, "label a task")?;
        let number = self.number(task)?;
        let mut labels: Vec<String> = labels.iter().map(|label| label.trim().to_owned()).collect();
        labels.retain(|label| !label.is_empty());
        labels.sort();
        labels.dedup();
        within("labels", labels.len(), limits::LABELS_MAX, task)?;
        for label in &labels {
            within("bytes of a label", label.len(), limits::LABEL_BYTES_MAX, task)?;
            one_line(task, "labels", label)?;
        }
        let is_same = self.at(number).state.labels() == labels;
        Ok(if is_same { Vec::new() } else { vec![Event::TaskLabeled { task: task.clone(), labels }] })
    }

    pub(super) fn decide_assign(&self, by: &Actor, task: &TaskId, assignee: &str) -> Decision {
        not_a_worker(by, "assign a task")?;
        let number = self.number(task)?;
        let assignee = assignee.trim();
        within("bytes of the assignee", assignee.len(), limits::ASSIGNEE_BYTES_MAX, task)?;
        one_line(task, "assignee", assignee)?;
        let assignee = (!assignee.is_empty()).then_some(assignee);
        if self.at(number).state.assignee() == assignee {
            return Ok(Vec::new());
        }
        Ok(vec![Event::TaskAssigned { task: task.clone(), assignee: assignee.map(str::to_owned) }])
    }
}

/// Refuses line breaks and other control characters, which lists cannot show.
fn one_line(task: &TaskId, field: &str, text: &str) -> Result<(), Refusal> {
    if !text.contains(char::is_control) {
        return Ok(());
    }
    let detail = "one line of text".to_owned();
    let wrong = ProblemKind::WrongType { field: field.to_owned(), detail };
    Err(Refusal::Invalid { problems: vec![Problem::task(task, wrong)] })
}
