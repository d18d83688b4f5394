//! Chooses the models, their prompts and their prices.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use waypost_config::Planner;
use waypost_config::{Config, ExecutionEnv};
use waypost_core::{Actor, ActorKind};
use waypost_llm::{ByRole, Journal, Model, Recorded, Redactor, Replayed, secrets_of};
use waypost_planner::planning::RequestLimits;
use waypost_planner::{Limits, ModelRequest, Price, PromptPolicy, Prompts, Role};

use super::failures::of_journal;
use crate::commands::model::failure;
use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::load_config::{self, Folders};

/// The model name, and so the author, of a replayed plan.
const REPLAYED: &str = "planner";

/// The variable that names a model for all roles.
const MODEL_VARIABLE: &str = "WAYPOST_MODEL";

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Models")]
pub(crate) struct ModelOptions {
    // The variable is not read by clap, which would treat it as an argument that conflicts with --replay.
    /// Model to use instead of the configured ones: NAME, NAME/MODEL, or the server's own name for it [env: WAYPOST_MODEL]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Copy the journal of all prompts and replies to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replay replies from a recorded file instead of calling a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) replay: Option<PathBuf>,
}

impl ModelOptions {
    /// The model that overrides the configuration: that of the option or of the environment. A replay uses none.
    pub(crate) fn model(&self) -> Option<String> {
        if self.replay.is_some() {
            return None;
        }
        let variable = || load_config::variables().remove(MODEL_VARIABLE).filter(|model| !model.is_empty());
        self.model.clone().or_else(variable)
    }
}

pub(crate) struct Chosen {
    model: Arc<dyn Model>,
    by_role: Option<ByRole>,
    prices: std::collections::BTreeMap<String, Price>,
    manner: PromptPolicy,
    name: String,
}

impl Chosen {
    /// The same models, with their answers recorded in the journal.
    pub(crate) fn recorded(&self, journal: &Arc<Journal>) -> Box<dyn Model> {
        Box::new(Recorded::new(Arc::clone(&self.model), Arc::clone(journal)))
    }

    /// The highest price of a request among the models that may answer it; `None` if one of them has no known price.
    pub(crate) fn price(&self, ask: &ModelRequest) -> Option<Price> {
        let clients = self.by_role.as_ref()?.of(ask.purpose.role())?.clients();
        let mut prices = clients.iter().map(|client| self.prices.get(client.name()).copied());
        let first = prices.next()??;
        prices.try_fold(first, |dearest, price| Some(dearest.dearer(price?)))
    }

    /// The limits that apply. A replay costs nothing, so it has no cost limit.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        match self.by_role {
            Some(_) => limits,
            None => Limits { cost_micros_max: None, ..limits },
        }
    }

    pub(crate) fn prompt_policy(&self) -> PromptPolicy {
        self.manner.clone()
    }

    /// The configured name of the planner's model.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The actor that planning is recorded under.
    pub(crate) fn actor(&self, context: &Context) -> Outcome<Actor> {
        author(context, &self.name)
    }
}

/// The author of a model's text: the calling agent, otherwise the model itself.
pub(crate) fn author(context: &Context, model: &str) -> Outcome<Actor> {
    let asks = context.actor()?;
    Ok(match asks.kind {
        ActorKind::Agent => asks,
        ActorKind::Person | ActorKind::Worker | ActorKind::System => Actor::agent(model),
    })
}

/// Finds the models, or the recorded file to replay.
pub(super) fn choose(config: &Config, folders: &Folders, asked: &ModelOptions) -> Outcome<Chosen> {
    let manner = PromptPolicy {
        prompts: prompts(config, folders)?,
        repairs_max: config.planner.repairs,
        ..PromptPolicy::default()
    };
    if let Some(path) = &asked.replay {
        let hint = || "name a readable file that --record has written".to_owned();
        std::fs::File::open(path).map_err(|error| Failure { hint: hint(), ..Failure::file(path, &error) })?;
        let replayed = Replayed::read(path);
        let replayed = replayed.map_err(|error| Failure { hint: hint(), ..of_journal(&error, None) })?;
        let (model, name): (Arc<dyn Model>, _) = (Arc::new(replayed), REPLAYED.to_owned());
        return Ok(Chosen { model, by_role: None, prices: Default::default(), manner, name });
    }
    let around: ExecutionEnv = folders.execution_env();
    let by_role = ByRole::new(config, &around, asked.model().as_deref()).map_err(|error| failure(&error))?;
    let first = by_role.of(Role::Planner).and_then(|order| order.clients().first());
    let name = first.map_or(REPLAYED, |client| client.name()).to_owned();
    // Each client enforces its own `max_tokens`, so requests must allow at least the largest.
    let clients = Role::ALL.iter().filter_map(|role| by_role.of(*role)).flat_map(|order| order.clients());
    let tokens_max = clients.map(|client| client.server().tokens_max).max().unwrap_or(manner.tokens_max);
    let manner = PromptPolicy { tokens_max, ..manner };
    let price = |server: &waypost_config::ModelServer| {
        Some(Price { micros_in: server.price_in?, micros_out: server.price_out? })
    };
    let prices =
        config.models.iter().filter_map(|(name, server)| Some((name.clone(), price(server)?))).collect();
    Ok(Chosen { model: Arc::new(by_role.clone()), by_role: Some(by_role), prices, manner, name })
}

/// The redactor for the secrets of the environment and of the configured models.
pub(super) fn redactor(config: &Config, folders: &Folders) -> Redactor {
    secrets_of(config, &folders.execution_env())
}

/// The limits of the configuration.
pub(crate) fn extent(planner: &Planner) -> RequestLimits {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    RequestLimits {
        depth_max: number(planner.depth_max),
        children_max: number(planner.children_max),
        goals_max: number(planner.goals_max),
        parallel_max: number(planner.parallel),
        refine: true,
        limits: Limits {
            tokens_max: planner.token_budget,
            cost_micros_max: planner.cost_budget,
            seconds_max: planner.seconds.map(u64::from),
            ..Limits::default()
        },
    }
}

/// The built-in prompts, overridden by those of the workspace.
fn prompts(config: &Config, folders: &Folders) -> Outcome<Prompts> {
    let Some(folder) = &config.planner.prompts else { return Ok(Prompts::default()) };
    let mut own = Vec::new();
    for name in Prompts::names() {
        let file = format!("{folder}/{name}.md");
        match load_config::inside(&folders.workspace, &file) {
            Ok(text) => own.push((name, text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!("the prompt {file} cannot be read: {error}");
                return Err(Failure::failed(message, "check `prompts` in [planner] of the configuration"));
            }
        }
    }
    Prompts::with(own.iter().map(|(name, text)| (*name, text.as_str()))).map_err(|bad| {
        Failure::new(
            Exit::Invalid,
            format!("{folder}: {bad}"),
            "fix the file, or remove it to use the built-in prompt",
        )
    })
}
