//! Commands on a plan as a whole: approve, reject, pause, resume, finish.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValue;
use waypost_account::Terminal;
use waypost_core::{Phase, Plan};
use waypost_service::{NewApproval, Signing, short_digest};

use waypost_cli::approval_prompt::{self, Answer};
use waypost_cli::context::{Context, PlanWrite};
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::options::enum_parser;
use waypost_cli::plan_input;
use waypost_cli::signing::SigningKey;
use waypost_cli::view::text;

const APPROVE_EXAMPLES: &str = "\
Shows everything that machines would run, then asks. Needs a terminal. The approval holds for \
exactly that: a changed task or executor needs a new one.

Examples:
  waypost approve kq3
  waypost approve kq3 --note 'go, but not on Friday'
  waypost approve kq3 --hold deploy
  waypost approve kq3 --yes --seen DIGEST
  waypost approve kq3 --sign --key ~/.ssh/id_ed25519";

#[derive(Debug, Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct Approve {
    #[command(flatten)]
    on: PlanWrite,
    /// Note
    #[arg(long, default_value = "")]
    note: String,
    /// Hold these tasks: they do not start before a person lifts the hold with `unhold`
    #[arg(long, value_name = "TASK", num_args = 1..)]
    hold: Vec<String>,
    /// Do not ask; needs --seen
    #[arg(long)]
    yes: bool,
    /// Digest that you have seen, as `preview` prints it
    #[arg(long, value_name = "DIGEST")]
    seen: Option<String>,
    /// Sign the approval with `ssh-keygen`; with --yes --seen no terminal is needed
    #[arg(long)]
    sign: bool,
    #[command(flatten)]
    key: SigningKey,
    /// Let the signature count in every store; `export --approval` writes it to a file
    #[arg(long, requires = "sign")]
    portable: bool,
    /// Approve by the portable signature in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sign", "yes", "seen", "note", "hold"])]
    bundle: Option<String>,
    /// Configuration file that overrides all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Approve {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (mut found, by, guard) = self.on.find(context)?;
        found.service = context.service_named(&found.plans, self.config.as_deref())?;
        if let Some(file) = &self.bundle {
            let reply = found.service.approve_bundled(&by, &found.id, &plan_input::bundle(file)?, guard)?;
            return context.done(&found, &reply, "approved by the signature in the file");
        }
        found.service.check_guard(&by, &found.id, guard)?;
        let hold = found.tasks(&self.hold)?;
        let preview = found.service.preview(&found.id)?;
        let answer = Answer { yes: self.yes, seen: self.seen.as_deref() };
        let by = match self.sign && Terminal::open().is_err() {
            true => approval_prompt::confirm_seen(&found.service, &preview, answer).map(|()| by)?,
            false => approval_prompt::confirm(context, &found.service, &preview, answer, "Approve it?")?,
        };
        let new = NewApproval { seen: Some(preview.seen()), note: &self.note, hold: &hold, signing: None };
        let reply = match self.sign {
            false => found.service.approve_with(&by, &found.id, new, guard)?,
            true => self.key.sign(&found, |signing| {
                let signing = Signing { portable: self.portable, ..*signing };
                let new = NewApproval { signing: Some(&signing), ..new };
                found.service.approve_with(&by, &found.id, new, guard)
            })?,
        };
        let held = if hold.is_empty() { String::new() } else { format!("; {} held", hold.len()) };
        let said = format!(
            "approved version {}, {} for machines ({}){held}",
            preview.version,
            text::count(preview.total, "task"),
            short_digest(&preview.digest)
        );
        context.done(&found, &reply, &said)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    on: PlanWrite,
}

impl Revoke {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.revoke(&by, &found.id, guard)?;
        context.done(&found, &reply, "revoked the approval; running tasks finish")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Reject {
    #[command(flatten)]
    on: PlanWrite,
    /// Reason
    #[arg(value_name = "REASON", conflicts_with = "reason")]
    why: Option<String>,
    /// The same as an option
    #[arg(long)]
    reason: Option<String>,
}

impl Reject {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reason = self.why.or(self.reason).unwrap_or_default();
        let rejected = found.service.reject(&by, &found.id, &reason, guard);
        let reply = rejected.map_err(|error| {
            let failure = Failure::from(error);
            match failure.exit == Exit::Invalid {
                true => Failure {
                    message: "a rejection needs a reason".to_owned(),
                    hint: format!("`waypost reject {} 'WHY'`", found.id),
                    ..failure
                },
                false => failure,
            }
        })?;
        context.done(&found, &reply, "rejected")
    }
}

#[derive(Debug, Args)]
pub(crate) struct RequestApproval {
    #[command(flatten)]
    on: PlanWrite,
    /// Message to the person
    #[arg(long, default_value = "")]
    message: String,
}

impl RequestApproval {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.request_approval(&by, &found.id, &self.message, guard)?;
        context.done(&found, &reply, "waits for a person's approval")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    on: PlanWrite,
    /// Reason
    #[arg(long, default_value = "")]
    reason: String,
}

impl Pause {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let running =
            found.read(|plan: &Plan| plan.in_progress().filter(|task| !task.state.is_queued()).count())?;
        let reply = found.service.pause(&by, &found.id, &self.reason, guard)?;
        let said = match running {
            0 => "paused".to_owned(),
            running => format!("paused; {} still running", text::count(running, "task")),
        };
        context.done(&found, &reply, &said)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    on: PlanWrite,
}

impl Resume {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.resume(&by, &found.id, guard)?;
        context.done(&found, &reply, "resumed")
    }
}

fn endings() -> [PossibleValue; 3] {
    [
        PossibleValue::new("completed").help("All work is done"),
        PossibleValue::new("failed").help("The plan did not reach its goal"),
        PossibleValue::new("cancelled").help("The plan was stopped"),
    ]
}

#[derive(Debug, Args)]
pub(crate) struct FinishPlan {
    #[command(flatten)]
    on: PlanWrite,
    /// Final phase
    #[arg(value_parser = enum_parser::<Phase>(endings()))]
    ending: Phase,
    /// Summary of the result
    #[arg(long, default_value = "")]
    summary: String,
}

impl FinishPlan {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.finish(&by, &found.id, self.ending, &self.summary, guard)?;
        context.done(&found, &reply, &format!("ended as {}", self.ending.as_str()))
    }
}
