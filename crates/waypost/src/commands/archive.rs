//! Archives and restores plans. Deleting one for good requires a person at a terminal.

use clap::Args;
use serde_json::json;
use waypost_core::ActorKind;
use waypost_service::{PersonAct, PersonVerb, ServiceError};

use waypost_cli::context::{Context, PlanWrite};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::prompt;

#[derive(Debug, Args)]
pub(crate) struct Archive {
    #[command(flatten)]
    on: PlanWrite,
}

impl Archive {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.archive(&by, &found.id, guard)?;
        context.done(&found, &reply, "archived")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Unarchive {
    #[command(flatten)]
    on: PlanWrite,
}

impl Unarchive {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.unarchive(&by, &found.id, guard)?;
        context.done(&found, &reply, "restored from the archive")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    on: PlanWrite,
    /// Delete the plan and its history for good; prompts for the id at a terminal
    #[arg(long)]
    purge: bool,
}

impl Delete {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        if !self.purge {
            let reply = found.service.archive(&by, &found.id, guard)?;
            let said = format!("archived; `waypost unarchive {}` restores it", found.id);
            return context.done(&found, &reply, &said);
        }
        if by.actor.kind != ActorKind::Person {
            let act = PersonAct::on_plan(PersonVerb::Purge, &found.id);
            return Err(ServiceError::NeedsPerson { what: "purge a plan", by: by.actor, act }.into());
        }
        if !prompt::can_ask() {
            let message = format!("plan {} was not purged: there is no terminal to confirm it", found.id);
            let hint = format!(
                "run `waypost delete {0} --purge` in a terminal, or archive it: `waypost archive {0}`",
                found.id
            );
            return Err(Failure { code: "needs_terminal".to_owned(), ..Failure::failed(message, hint) });
        }
        let (title, version) = found.read(|plan| (plan.spec().title.clone(), plan.version()))?;
        context.out.say(format!(
            "Plan {} and its {version} versions will be deleted permanently: {title}",
            found.id
        ));
        let question = "Type its id to confirm:";
        if prompt::ask(question)?.as_deref() != Some(found.id.as_str()) {
            return Err(Failure::failed("the id was not confirmed; nothing was purged", ""));
        }
        found.service.purge(&by, &found.id)?;
        if context.out.json {
            return context.out.value(&json!({ "id": found.id, "purged": true }));
        }
        context.out.line(format!("purged plan {}", found.id));
        Ok(())
    }
}
