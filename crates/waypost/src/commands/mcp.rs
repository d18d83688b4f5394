//! `waypost mcp`: serves plans to agents over the Model Context Protocol on standard input and output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use waypost_config::Config;
use waypost_core::ActorKind;
use waypost_mcp::{
    AGENT_NAME_CHARACTERS_MAX, Opener, Options, Roots, Toolset, Unopened, Workspace, agent_name, serve_stdio,
};
use waypost_run::{StoreReports, WebhookOutbox};
use waypost_service::Authenticator;
use waypost_store::{PlanStore, Query, Store};

use crate::commands::run::progress;
use crate::webhooks;
use waypost_cli::actor::account;
use waypost_cli::context::{Context, open_store};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::load_config::{self, Folders};
use waypost_cli::shared_branch;
use waypost_cli::store_location::jaato_import;

const EXAMPLES: &str = "\
The agent's host starts this command from its configuration, which `waypost init` writes. It uses the host's workspace \
(its roots) unless --store, --global or -C is given.

Examples:
  waypost mcp
  waypost mcp --toolset jaato --agent researcher
  waypost mcp --toolset native,orchestrator";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    #[command(flatten)]
    tools: Tools,
    /// Name of the calling agent [default: the name that the client gives]
    #[arg(long, value_name = "NAME", value_parser = agent)]
    agent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Toolsets to offer: native, jaato, plans, orchestrator
    #[arg(long = "toolset", value_name = "NAME", value_delimiter = ',', value_parser = toolset, default_value = "native")]
    toolsets: Vec<Toolset>,
    /// Also list output schemas; they take room in the model's context
    #[arg(long)]
    output_schemas: bool,
}

fn toolset(name: &str) -> Result<Toolset, String> {
    let known = || Toolset::ALL.map(Toolset::name).join(", ");
    Toolset::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| format!("one of {}", known()))
}

/// Parses the name of an agent.
pub(crate) fn agent(name: &str) -> Result<String, String> {
    agent_name(name).filter(|kept| kept == name).ok_or_else(|| {
        format!("a name has at most {AGENT_NAME_CHARACTERS_MAX} letters, digits and ._-@/+ and no colon")
    })
}

impl Tools {
    /// The options of a server that offers these tools.
    pub(crate) fn options(self, agent: Option<String>, open: Opener) -> Options {
        Options { toolsets: self.toolsets, agent, output_schemas: self.output_schemas, open }
    }
}

impl Mcp {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let roots = match std::env::current_dir() {
            Ok(here) if !context.says_where() => Roots::Follow { here },
            Ok(_) | Err(_) => Roots::Ignore,
        };
        let agent = self.agent_name(context)?;
        let relays = Arc::new(Relays::default());
        let options = self.tools.options(agent, opener(context, &relays, ActorKind::Agent, false));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("no runtime: {error}"), ""))?;
        let served = runtime.block_on(serve_stdio(options, roots));
        // A call that waits for a person must not keep the process alive once the client is gone.
        runtime.shutdown_background();
        relays.finish(context);
        served.map_err(|error| Failure::failed(error.to_string(), "check the log of the agent's host"))
    }
}

impl Mcp {
    /// Returns the name of the calling agent that the command line gives: `--agent NAME`, or `--as agent:NAME` as in every command.
    fn agent_name(&self, context: &Context) -> Outcome<Option<String>> {
        let Some(actor) = context.actor_option()? else { return Ok(self.agent.clone()) };
        if actor.kind != ActorKind::Agent {
            let message = format!("--as {actor}: an agent calls this server");
            return Err(Failure::usage(message, "give its name with --agent NAME"));
        }
        let name = agent(&actor.name).map_err(|why| Failure::usage(format!("--as {actor}: {why}"), ""))?;
        match &self.agent {
            Some(other) if *other != name => {
                let message = format!("--as {actor} and --agent {other} name two agents");
                Err(Failure::usage(message, "give one name with --agent NAME"))
            }
            Some(_) | None => Ok(Some(name)),
        }
    }
}

/// Returns the function with which a server opens workspaces for callers who are at most of this kind. `files` lets agents
/// over HTTP use the scratch folder.
pub(crate) fn opener(context: &Context, relays: &Arc<Relays>, most: ActorKind, files: bool) -> Opener {
    let (context, relays) = (context.for_server(), Arc::clone(relays));
    Arc::new(move |folder: Option<&Path>| {
        workspace(&context, folder, &relays, most, files)
            .map_err(|failure| Unopened { message: failure.one_line(), hint: failure.hint })
    })
}

/// The webhook outboxes and the other reporters, one of each for every workspace that a server has opened.
#[derive(Default)]
pub(crate) struct Relays(Mutex<BTreeMap<PathBuf, Relay>>);

/// What reports the changes of one store.
struct Relay {
    webhooks: Option<WebhookOutbox>,
    reports: Option<StoreReports>,
}

impl Relays {
    fn begin(
        &self,
        context: &Context,
        folders: &Folders,
        config: &Arc<Config>,
        store: &Arc<dyn Store>,
    ) -> Outcome {
        if config.reporters.is_empty() {
            return Ok(());
        }
        let mut relays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !relays.contains_key(&folders.own) {
            let plans = Arc::new(PlanStore::new(Arc::clone(store)));
            let around = folders.execution_env();
            let webhooks = match webhooks::any(config) {
                true => Some(WebhookOutbox::start(&plans, config, &around, plans.latest()?)?),
                false => None,
            };
            let reports = StoreReports::start(&plans, config, &around, Box::new(progress::show_on_console))?;
            let reports = reports.map(|(reports, unusable)| {
                unusable.into_iter().for_each(|words| context.out.say(words));
                reports
            });
            relays.insert(folders.own.clone(), Relay { webhooks, reports });
        }
        Ok(())
    }

    /// Sends the remaining events, and reports those that could not be sent.
    pub(crate) fn finish(&self, context: &Context) {
        let relays = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for Relay { webhooks, reports } in relays.into_values() {
            let unreported = reports.map(StoreReports::finish).unwrap_or_default();
            let unsent = webhooks.map(WebhookOutbox::finish).unwrap_or_default();
            unreported.into_iter().chain(unsent).for_each(|words| context.out.say(words));
        }
    }
}

/// Opens the workspace of a folder, or of the current one. The store may belong to another checkout of the repository;
/// files are read and written in this one only.
fn workspace(
    context: &Context,
    folder: Option<&Path>,
    relays: &Relays,
    most: ActorKind,
    files: bool,
) -> Outcome<Workspace> {
    let (folders, place) = match folder {
        Some(folder) => (context.folders_of(folder)?, context.store_location_of(folder)?),
        None => (context.folders()?, context.store_location()?),
    };
    let mut config = load_config::load(&folders, None, context.actor()?.kind.max(most))?;
    config.files.http |= files;
    // A server for people has said so where it began.
    if let Some(not_trusted) = config.not_trusted.as_ref().filter(|_| most == ActorKind::Agent) {
        context.out.say(format!("note: {not_trusted} ({})", not_trusted.hint()));
    }
    let config = Arc::new(config);
    place.prepare()?;
    let store = open_store(&place)?;
    relays.begin(context, &folders, &config, &store)?;
    let plans = Arc::new(PlanStore::new(store));
    if let Some(offered) = jaato_import(&folders.workspace).filter(|_| most == ActorKind::Agent)
        && plans.heads(&Query { limit: 1, ..Query::default() })?.items.is_empty()
    {
        context.out.say(format!("note: the store has no plans yet; {offered}"));
    }
    let authenticator = Authenticator::new(account(), &place.location);
    let branch = shared_branch::finder_in(folders.workspace.clone(), Arc::clone(&config), place);
    let folder = folder.map_or(folders.workspace, Path::to_owned);
    let mut workspace = Workspace::new(plans, config, folder, folders.own);
    workspace.service = workspace.service.with_authenticator(authenticator).with_shared_branch(branch);
    Ok(workspace)
}
