//! Comments, labels and the assignee of a task: what people and agents tell each other about it. None of it changes what runs.

use clap::Args;
use waypost_service::EditOp;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::Guard;

const COMMENT_EXAMPLES: &str = "\
The agents that work on the task read the latest comments when they claim it, each quoted with its author. \
The history keeps all of them.

Examples:
  waypost comment kq3 deploy 'the mirror is read-only until Monday'
  waypost show kq3 deploy";

#[derive(Debug, Args)]
#[command(after_help = COMMENT_EXAMPLES)]
pub(crate) struct Comment {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// Text of the comment
    #[arg(required = true)]
    text: Vec<String>,
    #[command(flatten)]
    guard: Guard,
}

const LABEL_EXAMPLES: &str = "\
Examples:
  waypost task label kq3 deploy risky frontend
  waypost task label kq3 deploy --add urgent --remove frontend
  waypost task label kq3 deploy --clear
  waypost find --label risky";

#[derive(Debug, Args)]
#[command(after_help = LABEL_EXAMPLES)]
pub(crate) struct Label {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// All labels of the task
    #[arg(required_unless_present_any = ["clear", "add", "remove"])]
    labels: Vec<String>,
    /// Add a label to those that the task has
    #[arg(long, value_name = "LABEL", conflicts_with = "labels")]
    add: Vec<String>,
    /// Remove a label
    #[arg(long, value_name = "LABEL", conflicts_with = "labels")]
    remove: Vec<String>,
    /// Remove all labels
    #[arg(long, conflicts_with_all = ["labels", "add", "remove"])]
    clear: bool,
    #[command(flatten)]
    guard: Guard,
}

const ASSIGN_EXAMPLES: &str = "\
The assignee is a hint for people and agents: others may still claim the task.

Examples:
  waypost task assign kq3 deploy person:ada
  waypost task assign kq3 deploy --clear
  waypost find --assignee person:ada";

#[derive(Debug, Args)]
#[command(after_help = ASSIGN_EXAMPLES)]
pub(crate) struct Assign {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// Person or agent, as in person:ada
    #[arg(required_unless_present = "clear")]
    assignee: Option<String>,
    /// Assign the task to nobody
    #[arg(long, conflicts_with = "assignee")]
    clear: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Comment {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let op = EditOp::CommentTask { task: task.clone(), text: self.text.join(" ") };
        let reply = found.service.edit(&context.caller()?, &found.id, vec![op], (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("commented on {task}"))
    }
}

impl Label {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let said = if self.clear { format!("{task} has no labels") } else { format!("labelled {task}") };
        let Self { labels, add, remove, clear, .. } = self;
        let labels = (clear || !labels.is_empty()).then_some(labels);
        let op = EditOp::LabelTask { task: task.clone(), labels, add, remove };
        let reply = found.service.edit(&context.caller()?, &found.id, vec![op], (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &said)
    }
}

impl Assign {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let assignee = self.assignee.unwrap_or_default();
        let said = match assignee.is_empty() {
            true => format!("{task} is assigned to nobody"),
            false => format!("assigned {task} to {assignee}"),
        };
        let op = EditOp::AssignTask { task: task.clone(), assignee };
        let reply = found.service.edit(&context.caller()?, &found.id, vec![op], (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &said)
    }
}
