//! `waypost verify`: verifies that the histories of plans are as they were written, that they still contain the versions
//! whose hashes were kept outside the store, and that their approvals count here.

use clap::Args;
use serde_json::json;
use waypost_core::PlanId;
use waypost_service::VerifiedApproval;
use waypost_store::{Anchor, PlanStore, Verified};

use crate::context::{Context, PlanHandle};
use crate::error::{Failure, Outcome};
use crate::files;
use crate::view::text;

const EXAMPLES: &str = "\
Every version has a hash that follows from its content and the version before it. A version that was
changed, removed or moved in the store breaks that chain; the first break is reported, and the exit
code is 1. Somebody who can write the store can recompute all hashes: keep anchors elsewhere.

An approval that would not count on this machine is a problem too.

Examples:
  waypost verify kq3
  waypost verify --all --anchor > anchors.txt
  waypost verify --all --against anchors.txt";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// Plan id, or an unambiguous prefix
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    plan: Option<String>,
    /// Verify all plans
    #[arg(long)]
    all: bool,
    /// Print PLAN VERSION HASH of each sound plan, to be kept outside the store
    #[arg(long, conflicts_with = "against")]
    anchor: bool,
    /// Print the message that the plan's approval signs, as `ssh-keygen -Y verify -n waypost` takes it
    #[arg(long, requires = "plan", conflicts_with_all = ["anchor", "against", "signature"])]
    message: bool,
    /// Print the signature of the plan's approval
    #[arg(long, requires = "plan", conflicts_with_all = ["anchor", "against"])]
    signature: bool,
    /// File with anchors that the plans must still match (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    against: Option<String>,
}

impl Verify {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (plans, only) = match &self.plan {
            Some(plan) => {
                let found = context.find(plan)?;
                if self.message || self.signature {
                    return self.print_signed(context, &found);
                }
                (found.plans, Some(found.id))
            }
            None => (context.plans()?, None),
        };
        let mut verified = Vec::new();
        match &only {
            Some(plan) => verified.extend(plans.verify(plan)?),
            None => plans.verify_all(&mut |one| verified.push(one))?,
        }
        let broken = |one: &Verified| Some(format!("plan {}: {}", one.plan, one.first_break.as_ref()?));
        let mut wrong: Vec<String> = verified.iter().filter_map(broken).collect();
        let service = context.service(&plans);
        let sound = verified.iter().filter(|one| one.first_break.is_none());
        // A purged plan has a history, and no approval.
        let approvals: Vec<VerifiedApproval> =
            sound.filter_map(|one| service.verify_approval(&one.plan).unwrap_or_default()).collect();
        let problem = |one: &VerifiedApproval| Some(format!("plan {}: {}", one.plan, one.problem.as_ref()?));
        wrong.extend(approvals.iter().filter_map(problem));
        if let Some(file) = &self.against {
            wrong.extend(check_anchors(&plans, file, only.as_ref())?);
        }
        if context.out.json {
            let store = plans.store().location();
            let report =
                json!({ "store": store, "plans": verified, "approvals": approvals, "problems": wrong });
            context.out.value(&report)?;
        } else {
            if self.anchor {
                let sound = verified.iter().filter(|one| one.first_break.is_none());
                for (one, hash) in sound.filter_map(|one| Some((one, one.hash.as_ref()?))) {
                    context.out.line(format!("{} {} {hash}", one.plan, one.version));
                }
            }
            for one in approvals.iter().filter(|one| one.problem.is_none() && !self.anchor) {
                context.out.line(described(one));
            }
            for line in &wrong {
                // The lines on stdout are anchors.
                if self.anchor { context.out.say(line) } else { context.out.line(line) }
            }
        }
        if wrong.is_empty() {
            let are = if verified.len() == 1 { "is" } else { "are" };
            context.out.say(format!("{} {are} sound", text::count(verified.len(), "plan")));
            return Ok(());
        }
        let found = text::count(wrong.len(), "problem");
        let hint = "compare it with a backup; `waypost history` shows who wrote which version";
        Err(Failure::failed(format!("{found} in the history or the approval"), hint))
    }

    fn print_signed(&self, context: &mut Context, found: &PlanHandle) -> Outcome {
        let Some((message, signature)) = found.service.signed_message(&found.id)? else {
            let hint = format!("`waypost approve {} --sign` signs one", found.id);
            return Err(Failure::failed(format!("the approval of plan {} is not signed", found.id), hint));
        };
        let text = if self.message { message } else { signature };
        context.out.line(text.trim_end_matches('\n'));
        Ok(())
    }
}

/// Returns an approval that counts, as a sentence for people.
fn described(approval: &VerifiedApproval) -> String {
    let VerifiedApproval { plan, by, version, proof, signer, fingerprint, .. } = approval;
    let proof = match (signer, fingerprint, proof) {
        (Some(signer), Some(key), _) => format!("signed by {signer} with {key}"),
        (_, _, Some(proof)) => format!("proof: {proof}"),
        (_, _, None) => "no proof".to_owned(),
    };
    format!("plan {plan}: version {version} was approved by {by} ({proof})")
}

/// Returns how plans differ from the anchors in a file.
fn check_anchors(plans: &PlanStore, file: &str, only: Option<&PlanId>) -> Outcome<Vec<String>> {
    let mut anchors: Vec<Anchor> = Vec::new();
    for (line, number) in files::read(file)?.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let anchor = line.parse().map_err(|error| {
            let message = format!("{}:{number}: {error}", files::name_of(file));
            Failure::failed(message, "`waypost verify --all --anchor` prints such lines")
        })?;
        anchors.push(anchor);
    }
    anchors.retain(|anchor| only.is_none_or(|plan| anchor.plan == *plan));
    if anchors.is_empty() {
        let message = format!("{} has no anchor of these plans", files::name_of(file));
        return Err(Failure::failed(message, "`waypost verify --all --anchor` prints anchors"));
    }
    let mut wrong = Vec::new();
    for anchor in &anchors {
        let found = plans.check_anchor(anchor)?;
        wrong.extend(found.map(|what| format!("plan {}: {what}", anchor.plan)));
    }
    Ok(wrong)
}
