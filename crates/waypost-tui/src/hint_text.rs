//! Words the hints of the service for the screens: keys where there is one, and otherwise what to do in a shell.

use waypost_service::{Hint, PersonAct};

/// Returns what to do next, or an empty text.
pub(crate) fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::Text(text) => text,
        Hint::ListPlans => "F5 in the list of plans reads them again".to_owned(),
        Hint::ListVersions(_) => "3 lists the versions".to_owned(),
        Hint::ReadChanges { .. } => "review what changed (3), then try again".to_owned(),
        Hint::PreviewAgain(_) => "what is shown now is the new state: review it, then decide".to_owned(),
        Hint::ReadQuestion(_) => "read it, then answer it (Enter)".to_owned(),
        Hint::FixProblems => "fix the listed problems".to_owned(),
        Hint::AskPerson(act) => format!("ask a person to {act}"),
        Hint::TrustRemote => "in a shell: `waypost trust`".to_owned(),
        Hint::LeaveToOthers => "an agent or a person does this".to_owned(),
        Hint::ProvePresence(act) | Hint::UseOwnName(act) => {
            format!("start this in a terminal of your own, without --as, to {act}")
        }
        Hint::Sign { act, touch } => {
            let key = if touch { " with a security key" } else { "" };
            format!("in a shell: `{} --sign`{key}", command(&act))
        }
        Hint::Approve(_) | Hint::RunOrApprove(_) => "a approves it".to_owned(),
        Hint::ApproveOrRestore(_) => {
            "a approves what would run now; or restore the worker's configuration".to_owned()
        }
        Hint::ApproveOrAllowSigner(_) => {
            "a approves it here; or add the signer to the allowed signers".to_owned()
        }
        Hint::AnswerAgain { task, .. } => format!("retry {task} (r), then answer it again (Enter)"),
        Hint::TrustStore => "if you replaced it, run `waypost trust` in a shell".to_owned(),
        Hint::StartPlan => "x runs it".to_owned(),
        Hint::DropDependencies => "change what they depend on first".to_owned(),
        Hint::CheckStore => {
            "in a shell: `waypost doctor` names the damage, `waypost doctor --repair` repairs what it can"
                .to_owned()
        }
        Hint::ReadLatest(_) => "its latest state is kept".to_owned(),
        // Screens do not accept ids, keys, named texts or tasks held by another session, so these hints cannot occur.
        Hint::None
        | Hint::LongerId
        | Hint::OtherId
        | Hint::NameFormat
        | Hint::OtherFormat
        | Hint::FixText
        | Hint::RightText
        | Hint::OnePlan
        | Hint::TakeOver
        | Hint::FailOrBeSure
        | Hint::NameKey
        | Hint::SignPortable => String::new(),
    }
}

fn command(act: &PersonAct) -> String {
    let PersonAct { verb, plan, task } = act;
    let task = task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    format!("waypost {verb} {plan}{task}")
}
