//! Changes of a plan from the list: its status, note, queue and owner, which are chosen from what is there.

use waypost_core::{Phase, PlanChanges};
use waypost_service::EditOp;

use super::field::{PlanField, SORTS};
use super::{PlanList, Prompt};
use crate::dialog::menu::{Menu, MenuOption};
use crate::dialog::{Choice, Dialog};
use crate::messages::Effect;
use crate::note::NoteKind;
use crate::plan::{ListedPlan, PlanKey};
use crate::run_view::{PlanAction, RunEffect};
use crate::screen::Context;

/// Shown for a queue or an owner that is not set.
const DEFAULT_QUEUE: &str = "(default queue)";
const NO_OWNER: &str = "(nobody)";

impl PlanList {
    fn target(&self) -> Option<(PlanKey, &ListedPlan)> {
        let (store, head) = self.head(self.selected)?;
        Some((PlanKey { store, id: head.summary.id.clone() }, head))
    }

    pub(super) fn ask_what_to_set(&mut self, context: &mut Context<'_>) {
        let Some((_, head)) = self.target() else { return };
        let summary = &head.summary;
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        let options = vec![
            MenuOption::new("status", head.status.label.clone()),
            MenuOption::new("note", summary.status.clone()),
            MenuOption::new("queue", or(&summary.queue, DEFAULT_QUEUE)),
            MenuOption::new("owner", or(&summary.owner, NO_OWNER)),
        ];
        let fields = vec![PlanField::Status, PlanField::Note, PlanField::Queue, PlanField::Owner];
        let title = format!("Set in {}", summary.id);
        self.prompt = Some(Prompt::Fields(fields));
        context.ask(Dialog::choose_from(title, Vec::new(), Menu::new(options), "choose"));
    }

    pub(super) fn ask_field(&mut self, field: PlanField, context: &mut Context<'_>) {
        let Some((plan, head)) = self.target() else { return };
        let (summary, version) = (head.summary.clone(), head.summary.version);
        let known = |of: fn(&ListedPlan) -> &str, none: &str| {
            let mut texts: Vec<String> = vec![String::new()];
            let heads = self.sides.iter().flat_map(|side| &side.heads);
            texts.extend(heads.map(|head| of(head).to_owned()).filter(|text| !text.is_empty()));
            texts[1..].sort();
            texts.dedup();
            let label = |text: &String| if text.is_empty() { none.to_owned() } else { text.clone() };
            let options = texts.iter().map(|text| MenuOption::new(label(text), "")).collect();
            (texts, Menu::filtered(options).or_typed())
        };
        match field {
            PlanField::Status => self.ask_status(context),
            PlanField::Note => {
                let lines =
                    vec!["A note for readers; it has no effect. Leave it empty to remove it.".to_owned()];
                let dialog = Dialog::ask(format!("Note on {}", plan.id), lines, &summary.status, "save");
                self.prompt = Some(Prompt::Field(field, plan, version, Vec::new()));
                context.ask(dialog);
            }
            PlanField::Queue => {
                let (texts, menu) = known(|head| &head.summary.queue, DEFAULT_QUEUE);
                let lines =
                    vec!["The queue whose workers run it. Type a new name, or choose one.".to_owned()];
                let title = format!("Queue of {}", plan.id);
                self.prompt = Some(Prompt::Field(field, plan, version, texts));
                context.ask(Dialog::choose_from(title, lines, menu, "save"));
            }
            PlanField::Owner => {
                let (texts, menu) = known(|head| &head.summary.owner, NO_OWNER);
                let lines = vec!["The agent that owns it. Type a new name, or choose one.".to_owned()];
                let title = format!("Owner of {}", plan.id);
                self.prompt = Some(Prompt::Field(field, plan, version, texts));
                context.ask(Dialog::choose_from(title, lines, menu, "save"));
            }
        }
    }

    fn ask_status(&mut self, context: &mut Context<'_>) {
        let Some((plan, head)) = self.target() else { return };
        let (actions, options): (Vec<_>, Vec<_>) =
            plan_statuses(head.summary.phase, head.summary.archived).into_iter().unzip();
        let title = format!("Status of {}", plan.id);
        let lines = vec![format!("It is: {}.", head.status.label)];
        self.prompt = Some(Prompt::Actions(plan, actions));
        context.ask(Dialog::choose_from(title, lines, Menu::new(options).unmarked(), "set"));
    }

    pub(super) fn ask_to_retry(&mut self, context: &mut Context<'_>) {
        let Some((plan, head)) = self.target() else { return };
        let lines = vec![
            format!("{}: {}", head.summary.id, head.summary.title),
            "Everything that failed or was cancelled starts again.".to_owned(),
        ];
        self.prompt = Some(Prompt::Retry(plan));
        context.ask(Dialog::offer("Retry the plan", lines, ('r', "retry", Choice::Confirm)));
    }

    pub(super) fn pause_or_resume(&mut self, context: &mut Context<'_>) {
        let Some((plan, head)) = self.target() else { return };
        let action = match head.summary.phase {
            Phase::Paused => PlanAction::Resume,
            Phase::Draft
            | Phase::AwaitingApproval
            | Phase::Active
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled => PlanAction::Pause,
        };
        act(plan, action, context);
    }

    /// Carries out what was chosen in a dialog.
    pub(super) fn chosen(&mut self, choice: &Choice, typed: &str, context: &mut Context<'_>) {
        let Some(prompt) = self.prompt.take() else { return };
        match (prompt, choice) {
            (Prompt::Title(_), Choice::Take) if typed.trim().is_empty() => {
                context.notify(NoteKind::Warning, "a plan needs a title")
            }
            (Prompt::Title(store), Choice::Take) => {
                context.effects.push(Effect::CreatePlan { store, title: typed.trim().to_owned() });
            }
            (Prompt::Field(field, plan, version, _), Choice::Take) => {
                self.save_field(field, plan, version, typed.trim(), context);
            }
            (Prompt::Field(field, plan, version, texts), Choice::Option(at)) => {
                let text = texts.get(*at).cloned().unwrap_or_default();
                self.save_field(field, plan, version, &text, context);
            }
            (Prompt::Fields(fields), Choice::Option(at)) => {
                if let Some(field) = fields.get(*at) {
                    self.ask_field(*field, context);
                }
            }
            (Prompt::Actions(plan, actions), Choice::Option(at)) => {
                if let Some(action) = actions.get(*at) {
                    act(plan, action.clone(), context);
                }
            }
            (Prompt::Retry(plan), Choice::Confirm) => act(plan, PlanAction::RetryAll, context),
            (Prompt::Sort, Choice::Option(at)) => {
                if let Some((sort, _)) = SORTS.get(*at) {
                    self.sort = *sort;
                    self.reload_from_first(context);
                }
            }
            (_, _) => {}
        }
    }

    fn save_field(
        &mut self,
        field: PlanField,
        plan: PlanKey,
        version: u64,
        text: &str,
        context: &mut Context<'_>,
    ) {
        let text = Some(text.to_owned());
        let changes = match field {
            PlanField::Status => return,
            PlanField::Note => PlanChanges { status: text, ..PlanChanges::default() },
            PlanField::Queue => PlanChanges { queue: text, ..PlanChanges::default() },
            PlanField::Owner => PlanChanges { owner: text, ..PlanChanges::default() },
        };
        self.writing = Some(plan.clone());
        let edits = vec![EditOp::RevisePlan(Box::new(changes))];
        context.effects.push(Effect::Save { plan, version, edits });
    }
}

/// Sends an action on a plan to the service.
fn act(plan: PlanKey, action: PlanAction, context: &mut Context<'_>) {
    if context.settings.dry_run {
        context.notify(NoteKind::Warning, "dry run: the plan is not changed; open it without --dry-run");
        return;
    }
    let done = match &action {
        PlanAction::Pause => "paused",
        PlanAction::Resume => "resumed",
        PlanAction::RetryAll => "retried",
        PlanAction::Archive => "archived",
        PlanAction::Unarchive => "restored from the archive",
        PlanAction::RequestApproval => "approval requested",
        PlanAction::CompletePlan => "completed",
        PlanAction::CancelPlan => "cancelled",
        PlanAction::Reject(_)
        | PlanAction::HoldTask(_)
        | PlanAction::UnholdTask(_)
        | PlanAction::CancelTask(_)
        | PlanAction::SkipTask(_)
        | PlanAction::CompleteTask(_)
        | PlanAction::FailTask(_)
        | PlanAction::ReopenTask(_)
        | PlanAction::RetryTask(_)
        | PlanAction::Answer { .. }
        | PlanAction::Resolve { .. } => "changed",
    };
    let success = format!("{}: {done}", plan.id);
    context.effects.push(Effect::Run(RunEffect::Write { plan, action, success }));
}

/// What can be done with a plan in this phase. Approving is no status: what would run is reviewed first.
fn plan_statuses(phase: Phase, is_archived: bool) -> Vec<(PlanAction, MenuOption)> {
    let pause = || (PlanAction::Pause, MenuOption::new("paused", "no new tasks start, here or elsewhere"));
    let resume = || (PlanAction::Resume, MenuOption::new("active", "tasks start again"));
    let request = || {
        (
            PlanAction::RequestApproval,
            MenuOption::new("needs approval", "a reviews and approves what would run"),
        )
    };
    let complete = || (PlanAction::CompletePlan, MenuOption::new("completed", "it is over"));
    let cancel = || (PlanAction::CancelPlan, MenuOption::new("cancelled", "what runs is stopped"));
    let retry =
        || (PlanAction::RetryAll, MenuOption::new("retried", "what failed or was cancelled starts again"));
    let mut options = match phase {
        Phase::Draft => vec![request(), complete(), cancel()],
        Phase::AwaitingApproval => vec![cancel()],
        Phase::Active => vec![pause(), complete(), cancel()],
        Phase::Paused => vec![resume(), complete(), cancel()],
        Phase::Completed => Vec::new(),
        Phase::Failed | Phase::Cancelled => vec![retry()],
    };
    options.push(match is_archived {
        true => (PlanAction::Unarchive, MenuOption::new("not archived", "listed again")),
        false => (PlanAction::Archive, MenuOption::new("archived", "kept, and no longer listed")),
    });
    options
}
