//! `waypost init --git`: creates the branch of shared plans, or takes up the one that the remote has.

use serde_json::json;
use waypost_core::ActorKind;
use waypost_service::SyncOptions;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::trust_prompt;
use waypost_cli::view::text;

pub(super) fn run(context: &mut Context) -> Outcome {
    let caller = context.caller()?;
    if caller.actor.kind != ActorKind::Person {
        let failure = Failure::failed(
            "only a person can set up shared plans",
            "ask a person to run `waypost init --git`",
        );
        return Err(Failure { code: "needs_person".to_owned(), ..failure });
    }
    let plans = context.plans_to_add_to()?;
    let service = context.service(&plans);
    let mut found = context.shared_branch()?;
    // A remote that is not asked could have the branch already.
    found.check_remote()?;
    let had_branch = found
        .shared
        .repository
        .tip(found.shared.name.as_str())
        .map_err(waypost_cli::shared_branch::failure)?
        .is_some();
    let options = SyncOptions { fetch: true, push: false, from: None };
    let report = service.sync(&found.shared, &options)?;
    // A branch that this command creates holds nothing that came from elsewhere. What comes to it later comes from people
    // who may push to the remote.
    let is_new = report.commit.is_none() && report.remote_problem.is_none();
    if is_new {
        service.create_shared_branch(&found.shared)?;
        if trust_prompt::is_present(context)? {
            found.trust(context.actor()?, "init")?;
        }
    }
    let (branch, remote) = (found.shared.name.short().to_owned(), found.branch_name());
    if context.out.json {
        return context.out.value(&json!({
            "branch": branch, "created": is_new, "trusted": found.shared.trusted,
            "remote": report.remote, "plans": report.plans, "remote_problem": report.remote_problem,
        }));
    }
    match (is_new, had_branch) {
        (true, _) => context.out.line(format!("created the branch {branch} for shared plans")),
        (false, true) => context.out.line(format!("the branch {branch} is there already")),
        (false, false) if report.commit.is_some() => {
            let plans = text::count(report.plans.len(), "plan");
            context.out.line(format!("took up {remote} with {plans}"));
        }
        (false, false) => {
            let problem = report.remote_problem.unwrap_or_default();
            return Err(Failure::failed(
                format!("{remote} could not be read: {problem}"),
                "check the remote; without it the branch of another clone could be missed",
            ));
        }
    }
    if !found.shared.trusted {
        context.out.say("agents are offered nothing of plans from there until you run `waypost trust`");
    }
    context.out.say("`waypost share PLAN` shares a plan, `waypost sync` exchanges it with the remote");
    Ok(())
}
