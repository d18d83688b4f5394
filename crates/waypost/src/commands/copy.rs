//! `waypost copy`: copies all plans of one store into another, with their history, and verifies the copy.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use waypost_store::{CopyError, Durability, Progress, Running, copy, open};

use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::store_location::StoreLocation;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
Copies ids, versions, event numbers, history, leases, subscriptions with their cursors, archived, pruned and purged plans \
and, where both stores keep them, the tails of attempt logs. Workers are not copied: they register where they work. \
The source stays unchanged; writes after the start of the copy are not included. The target must be empty. An interrupted \
copy resumes when it is started again; do not use the target before the copy reports that it is verified.

Examples:
  waypost copy --from sqlite:.waypost/waypost.db --to postgres://ada@db.example.org/plans
  waypost copy --from sqlite:.waypost/waypost.db --to file:plans --json";

/// The interval between two progress messages.
const TELL_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Copy {
    /// Source store
    #[arg(long, value_name = "STORE")]
    from: String,
    /// Target store; must be empty
    #[arg(long, value_name = "STORE")]
    to: String,
    /// Copy even while workers run tasks in the source; the copy starts those tasks again when their leases expire
    #[arg(long)]
    while_running: bool,
}

/// Reports the progress of a copy at intervals.
struct Teller<'a> {
    context: &'a Context,
    next: Instant,
}

impl Teller<'_> {
    fn tell(&mut self, at: Progress) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + TELL_EVERY;
        let Progress { verifying, versions, versions_total } = at;
        let what = if verifying { "verified" } else { "copied" };
        self.context.out.say(format!("{what} {versions} of {versions_total} versions"));
    }
}

impl Copy {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        for location in [&self.from, &self.to] {
            if location.starts_with("memory:") {
                let message = "a memory store ends with the command and cannot be copied";
                return Err(Failure::usage(message, "name sqlite:PATH, file:DIR or postgres://…"));
            }
        }
        if (StoreLocation { location: self.from.clone(), folder: None }).is_absent() {
            return Err(Failure::not_found(format!("there is no store at {}", self.from), "check --from"));
        }
        let (from, to) = (open(&self.from, Durability::default())?, open(&self.to, Durability::default())?);
        let running = if self.while_running { Running::Allow } else { Running::Refuse };
        let mut teller = Teller { context, next: Instant::now() + TELL_EVERY };
        let copied = copy(&*from, &*to, running, &mut |at| teller.tell(at)).map_err(failure)?;
        if copied.written_since > 0 {
            let versions = text::count(copied.written_since as usize, "version");
            context.out.note(format!(
                "{versions} were written into {} since; they are not in the copy",
                from.location()
            ));
        }
        if context.out.json {
            let mut answer = json!({ "from": from.location(), "to": to.location(), "verified": true });
            if let (Some(answer), Ok(serde_json::Value::Object(copied))) =
                (answer.as_object_mut(), serde_json::to_value(&copied))
            {
                answer.extend(copied);
            }
            return context.out.value(&answer);
        }
        let went_on = if copied.resumed { "resumed an earlier copy; " } else { "" };
        context.out.line(format!(
            "{went_on}copied and verified {}, {} and {} ({} purged) from {} to {}",
            text::count(copied.plans as usize, "plan"),
            text::count(copied.versions as usize, "version"),
            text::count(copied.subscriptions, "subscription"),
            copied.purged,
            from.location(),
            to.location(),
        ));
        context.out.line(format!("digest sha256:{}", copied.digest));
        Ok(())
    }
}

fn failure(error: CopyError) -> Failure {
    let (exit, code) = match &error {
        CopyError::Store(_) => (Exit::Failed, "failed"),
        CopyError::Same(_) => (Exit::Usage, "same_store"),
        CopyError::NotEmpty { .. } => (Exit::Failed, "not_empty"),
        CopyError::OfAnother { .. } => (Exit::Failed, "unfinished_copy"),
        CopyError::Newer { .. } => (Exit::Failed, "too_new"),
        CopyError::WorkGoesOn { .. } => (Exit::Failed, "work_goes_on"),
        CopyError::Differs(_) => (Exit::Failed, "copy_differs"),
    };
    let failure = Failure::new(exit, error.to_string(), error.hint());
    match error {
        CopyError::Store(error) => error.into(),
        CopyError::Same(_)
        | CopyError::NotEmpty { .. }
        | CopyError::OfAnother { .. }
        | CopyError::Newer { .. }
        | CopyError::WorkGoesOn { .. }
        | CopyError::Differs(_) => Failure { code: code.to_owned(), ..failure },
    }
}
