//! `waypost share` and `unshare`: which plans travel with the repository.

use clap::Args;
use waypost_core::PlanId;
use waypost_service::SecretScan;
use waypost_store::{ArchiveFilter, PlanStore, Query, Sort};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::view::text;

/// Plan summaries that are read at a time.
const PAGE: usize = 500;

const SHARE_EXAMPLES: &str = "\
A shared plan travels on a branch of its own (`git.ref`, by default `waypost-plans`), which is never checked out: the work \
tree, the index and your branches are not touched. Everybody who can read the repository can read the plan. `waypost sync` \
exchanges it with the remote; what several clones wrote is merged by meaning, and `waypost conflicts` lists what a person \
has to decide.

Examples:
  waypost share tokens && waypost sync
  waypost share --all
  waypost share --list";

const UNSHARE_EXAMPLES: &str = "\
The plan stays here and in all other clones, and what was shared stays on the branch.

Examples:
  waypost unshare tokens";

#[derive(Debug, Args)]
#[command(after_help = SHARE_EXAMPLES)]
pub(crate) struct Share {
    /// Plan ids, or unambiguous prefixes
    #[arg(required_unless_present_any = ["all", "list"])]
    plans: Vec<String>,
    /// Share all plans that are not archived
    #[arg(long, conflicts_with = "plans")]
    all: bool,
    /// List the shared plans, and share nothing
    #[arg(long, conflicts_with_all = ["plans", "all"])]
    list: bool,
    /// Share texts that look as if they held a key or another secret
    #[arg(long)]
    allow_secrets: bool,
}

#[derive(Debug, Args)]
#[command(after_help = UNSHARE_EXAMPLES)]
pub(crate) struct Unshare {
    /// Plan ids, or unambiguous prefixes
    #[arg(required = true)]
    plans: Vec<String>,
}

fn all_plans(plans: &PlanStore) -> Outcome<Vec<PlanId>> {
    let mut query = Query { shelf: ArchiveFilter::Current, sort: Sort::Id, limit: PAGE, ..Query::default() };
    let mut found = Vec::new();
    loop {
        let page = plans.heads(&query)?;
        found.extend(page.items.into_iter().map(|head| head.id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

impl Share {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if self.list {
            return list(context);
        }
        let plans = context.plans()?;
        let service = context.service(&plans);
        let chosen = match self.all {
            true => all_plans(&plans)?,
            false => self.plans.iter().map(|plan| service.resolve_plan(plan)).collect::<Result<_, _>>()?,
        };
        if chosen.is_empty() {
            return Err(Failure::not_found("there is no plan to share", "create one with `waypost new`"));
        }
        let found = context.shared_branch()?;
        let scan = if self.allow_secrets { SecretScan::Allow } else { SecretScan::Refuse };
        let reply = service.share_with(&context.caller()?, &found.shared, &chosen, scan)?;
        if context.out.json {
            return context.out.value(&reply);
        }
        for plan in &reply.plans {
            context.out.line(format!("shared plan {plan}"));
        }
        for plan in &reply.joined {
            context.out.line(format!("joined plan {plan} with what the branch has of it"));
            context.out.say(
                "another clone shared it as it once was here; `waypost sync` merges what both did since",
            );
        }
        for plan in &reply.unchanged {
            context.out.line(format!("plan {plan} is shared already"));
        }
        let is_new = !reply.plans.is_empty() || !reply.joined.is_empty();
        if is_new {
            context.out.say("everybody who can read the repository can read what is shared");
        }
        if found.shared.remote.is_some() && is_new {
            context.out.say("`waypost sync` sends it to the remote");
        }
        Ok(())
    }
}

impl Unshare {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let plans = context.plans()?;
        let service = context.service(&plans);
        let chosen: Vec<PlanId> =
            self.plans.iter().map(|plan| service.resolve_plan(plan)).collect::<Result<_, _>>()?;
        let reply = service.unshare(&context.caller()?, &chosen)?;
        if context.out.json {
            return context.out.value(&reply);
        }
        for plan in reply.plans.iter().chain(&reply.unchanged) {
            context.out.line(format!("plan {plan} does not travel any more"));
        }
        Ok(())
    }
}

fn list(context: &mut Context) -> Outcome {
    let plans = context.plans()?;
    let service = context.service(&plans);
    let mut status = service.sharing_status()?;
    if let Ok(found) = context.shared_branch() {
        status.kept_aside = service.left_out(&found.shared)?;
    }
    if context.out.json {
        return context.out.value(&status);
    }
    for aside in &status.kept_aside {
        context.out.line(aside.to_string());
    }
    if status.plans.is_empty() {
        context.out.say("no plan is shared");
        return Ok(());
    }
    context.out.say(format!("this clone is {}", status.tag));
    for plan in &status.plans {
        let mut words = vec![text::count(plan.records, "record")];
        if plan.unpublished > 0 {
            words.push(format!("{} not on the branch yet", plan.unpublished));
        }
        if plan.questions > 0 {
            words.push(text::count(plan.questions, "open question"));
        }
        if plan.withheld {
            words.push("not trusted yet".to_owned());
        }
        context.out.line(format!("{}  {}", plan.plan, words.join(", ")));
    }
    if let Some(problem) = &status.remote_problem {
        context.out.line(format!("not all of it is at the remote: {problem}"));
    }
    Ok(())
}
