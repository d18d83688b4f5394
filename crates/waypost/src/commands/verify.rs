//! `waypost verify`: verifies that the histories of plans are as they were written, that they still contain the versions
//! whose hashes were kept outside the store, and that their approvals and the records of people count here.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use waypost_account::fingerprint;
use waypost_core::PlanId;
use waypost_service::{ApprovalBundle, Authenticator, Service, ServiceError, VerifiedApproval, short_digest};
use waypost_store::{Anchor, PlanStore, Verified};

use waypost_cli::actor::account;
use waypost_cli::context::{Context, PlanHandle};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::plan_input;
use waypost_cli::signing::public_file;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
Every version has a hash that follows from its content and the version before it. A version that was \
changed, removed or moved in the store breaks that chain; the first break is reported, and the exit \
code is 1. Somebody who can write the store can recompute all hashes: keep anchors elsewhere.

An approval that would not count on this machine is a problem too, and so is a task for people \
that no person is shown to have ended.

Examples:
  waypost verify kq3
  waypost verify --all --anchor > anchors.txt
  waypost verify --all --against anchors.txt
  waypost verify --all --without ~/.ssh/old.pub";

#[derive(Debug, Args)]
#[command(override_usage = "waypost verify [OPTIONS] <PLAN|--all|--bundle FILE>", after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// Plan id, or an unambiguous prefix
    #[arg(required_unless_present_any = ["all", "bundle"], conflicts_with_all = ["all", "bundle"])]
    plan: Option<String>,
    /// Verify the approval in a file that `export --approval` wrote, by the allowed signers alone
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "anchor", "against"])]
    bundle: Option<String>,
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
    /// List the plans that would stop if this key were no longer allowed: a file, or a fingerprint (SHA256:…)
    #[arg(long, value_name = "KEY", requires = "all", conflicts_with_all = ["anchor", "against"])]
    without: Option<String>,
    /// Configuration file that overrides all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Verify {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if let Some(file) = &self.bundle {
            return self.verify_bundle(context, &plan_input::bundle(file)?);
        }
        if let Some(key) = &self.without {
            return self.list_stopped(context, &fingerprint_of(key)?);
        }
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
        let service = context.service_named(&plans, self.config.as_deref())?;
        // A purged plan has a history, and neither approval nor tasks.
        let sound = || verified.iter().filter(|one| one.first_break.is_none());
        let approvals: Vec<VerifiedApproval> =
            sound().filter_map(|one| service.verify_approval(&one.plan).unwrap_or_default()).collect();
        let problem = |one: &VerifiedApproval| Some(format!("plan {}: {}", one.plan, one.problem.as_ref()?));
        wrong.extend(approvals.iter().filter_map(problem));
        for one in &verified {
            let gates = service.gate_problems(&one.plan).unwrap_or_default();
            wrong.extend(gates.into_iter().map(|what| format!("plan {}: {what}", one.plan)));
        }
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
                for (one, hash) in sound().filter_map(|one| Some((one, one.hash.as_ref()?))) {
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
        let hint = match verified.iter().any(|one| one.first_break.is_some()) || self.against.is_some() {
            true => {
                "`waypost history PLAN` shows the versions up to the break; `waypost doctor` says what can be repaired"
            }
            false => "`waypost preview PLAN` shows what would run; `waypost approve PLAN` approves it",
        };
        Err(Failure::failed(format!("{found} in the history or the approval"), hint))
    }

    /// Lists the plans that start now, and would not without a key.
    fn list_stopped(&self, context: &mut Context, fingerprint: &str) -> Outcome {
        let plans = context.plans()?;
        let service = context.service_named(&plans, self.config.as_deref())?;
        let authenticator = context.authenticator()?.without_key(fingerprint.to_owned());
        let without = service.clone().with_authenticator(authenticator);
        // A purged plan has neither approval nor tasks.
        let starts = |service: &Service, plan: &PlanId| {
            let approval = service.verify_approval(plan).unwrap_or_default();
            approval.is_some_and(|approval| approval.problem.is_none())
                && service.gate_problems(plan).unwrap_or_default().is_empty()
        };
        let mut stopped = plans.store().query(|read| read.ids("", usize::MAX >> 1))?;
        stopped.retain(|plan| starts(&service, plan) && !starts(&without, plan));
        if context.out.json {
            return context.out.value(&json!({ "without": fingerprint, "stopped": stopped }));
        }
        stopped.iter().for_each(|plan| context.out.line(format!("plan {plan} would stop")));
        context.out.say(format!("{} would stop without {fingerprint}", text::count(stopped.len(), "plan")));
        Ok(())
    }

    /// Verifies a bundle by the allowed signers alone: no store is opened.
    fn verify_bundle(&self, context: &mut Context, bundle: &ApprovalBundle) -> Outcome {
        let config = context.load_config(&context.folders()?, self.config.as_deref())?;
        let malformed = || Failure::failed("the bundle has no plan with an id", "export it again");
        let id = bundle.plan_id().ok_or_else(malformed)?;
        let anywhere = Authenticator::new(account(), "");
        let proof = bundle.verify(&anywhere, &config.approval, &id, text::now());
        let proof = proof.map_err(ServiceError::from)?;
        bundle.verify_content().map_err(ServiceError::from)?;
        let (plan, approval) = (&bundle.plan["id"], &bundle.approval);
        let signature = approval.work.as_ref().and_then(|work| work.attestation.as_ref()?.signature.as_ref());
        let signer = signature.map(|signature| signature.principal.clone()).unwrap_or_default();
        if context.out.json {
            let report = json!({ "plan": plan, "by": approval.by, "proof": proof, "signer": signer });
            return context.out.value(&report);
        }
        // Who the file says approved it is not signed.
        let digest = approval.work.as_ref().map_or("", |work| short_digest(&work.digest));
        context.out.line(format!("plan {id} was approved as {digest} (signed by {signer})"));
        Ok(())
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

/// Returns the fingerprint that is named, or that of the key in a file.
fn fingerprint_of(key: &str) -> Outcome<String> {
    if key.starts_with("SHA256:") {
        return Ok(key.to_owned());
    }
    let file = public_file(Path::new(key));
    let text = files::read(&file.to_string_lossy())?;
    fingerprint(&text).ok_or_else(|| {
        let message = format!("{} is not a public key", file.display());
        Failure::failed(message, "name a key file, or a fingerprint as `ssh-keygen -l` prints it")
    })
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
