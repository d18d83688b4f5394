//! `waypost model`: lists the configured models and tests what works with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waypost_config::{Config, ExecutionEnv};
use waypost_config::{ModelServer, Secret};
use waypost_llm::{ByRole, Client, ModelError, Probed, Stop, Verdict};
use waypost_planner::Role;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::style::Look;

/// Maximum number of a server's models that are shown to people.
const NAMES_SHOWN_MAX: usize = 50;

const EXAMPLES: &str = "\
Models are described in the configuration ([models.NAME], docs/models.md). With OPENAI_API_KEY or \
ANTHROPIC_API_KEY in the environment there is a model `openai` or `anthropic` without any.

Examples:
  waypost model test
  waypost model test local
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 waypost model test --model llama3.2";

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List the configured models and their roles
    #[command(visible_alias = "ls")]
    List(List),
    /// Test models: reachability, authentication, schema support
    Test(Test),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Query each server for its models
    #[arg(long)]
    ask: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Test {
    /// Names in the configuration [default: those that the planner uses]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Model for all roles: NAME, NAME/MODEL, or the server's own name for it
    #[arg(long, value_name = "MODEL", env = "WAYPOST_MODEL", hide_env_values = true)]
    model: Option<String>,
}

impl Models {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = context.folders()?;
        let config = context.load_config(&folders, None)?;
        let around = folders.execution_env();
        match self {
            Self::List(list) => list.run(context, &config, &around),
            Self::Test(test) => test.run(context, &config, &around),
        }
    }
}

/// Converts a model error to a command's failure.
pub(crate) fn failure(error: &ModelError) -> Failure {
    let failure = Failure::failed(error.to_string(), error.hint());
    Failure { code: error.code().to_owned(), ..failure }
}

impl List {
    fn run(self, context: &mut Context, config: &Config, around: &ExecutionEnv) -> Outcome {
        let mut told = Vec::new();
        for (name, server) in &config.models {
            let roles = roles_of(config, name);
            let has = self.ask.then(|| Client::new(name, server, around)?.models(&Stop::new()));
            let listed = Listed { name, server, roles, key: key_words(server, around), has };
            match context.out.json {
                true => told.push(listed.to_json(config)),
                false => listed.show(context),
            }
        }
        if context.out.json {
            return context.out.value(&json!({ "models": told }));
        }
        if config.models.is_empty() {
            context.out.say(
                "no models; set OPENAI_API_KEY or ANTHROPIC_API_KEY, or describe one in [models.NAME] (docs/models.md)",
            );
        }
        Ok(())
    }
}

/// The roles that a model is sure to have: those configured for it, and all others if it is the only model.
fn roles_of(config: &Config, name: &str) -> Vec<&'static str> {
    let only = config.models.len() == 1;
    let is_used = |role: &Role| config.planner.named(*role).map_or(only, |named| named == name);
    let mut roles: Vec<&'static str> = Role::ALL.into_iter().filter(is_used).map(Role::name).collect();
    if config.planner.fallback.iter().any(|fallback| fallback == name) {
        roles.push("fallback");
    }
    roles
}

/// Where the key is read from, and whether it is there. Never contains the key.
fn key_words(server: &ModelServer, around: &ExecutionEnv) -> String {
    match &server.key {
        None => "no key".to_owned(),
        Some(Secret::Variable(variable)) => {
            match around.variables.get(variable).is_some_and(|key| !key.is_empty()) {
                true => format!("key in {variable}"),
                false => format!("key in {variable}, which is not set"),
            }
        }
        Some(Secret::File(file)) => match around.workspace.join(file).is_file() {
            true => format!("key in the file {file}"),
            false => format!("key in the file {file}, which is not there"),
        },
    }
}

/// A configured model, and the models that its server offers.
struct Listed<'a> {
    name: &'a str,
    server: &'a ModelServer,
    roles: Vec<&'static str>,
    key: String,
    has: Option<Result<Vec<String>, ModelError>>,
}

impl Listed<'_> {
    fn to_json(&self, config: &Config) -> Value {
        let mut told = json!({
            "name": self.name,
            "api": self.server.api.name(),
            "base_url": self.server.base_url,
            "model": self.server.model,
            "key": self.key,
            "roles": self.roles,
            "from": if config.user_models.contains(self.name) { "user" } else { "workspace" },
            "priced": self.server.price_in.is_some() && self.server.price_out.is_some(),
        });
        match &self.has {
            Some(Ok(names)) => told["has"] = json!(names),
            Some(Err(error)) => {
                told["error"] =
                    json!({ "code": error.code(), "message": error.to_string(), "hint": error.hint() })
            }
            None => {}
        }
        told
    }

    fn show(&self, context: &mut Context) {
        let Self { name, server, roles, .. } = self;
        let used = if roles.is_empty() { "unused".to_owned() } else { roles.join(", ") };
        let model = server.model.as_deref().unwrap_or("the server's default");
        let line = format!(
            "{}  {}  {model}  {}  {}  ({used})",
            context.out.paint(name, Look::Bold),
            server.api.name(),
            if server.base_url.is_empty() { "no usable address" } else { &server.base_url },
            self.key
        );
        context.out.line(line);
        match &self.has {
            Some(Ok(names)) => {
                names.iter().take(NAMES_SHOWN_MAX).for_each(|name| context.out.line(format!("  {name}")));
                if names.len() > NAMES_SHOWN_MAX {
                    context
                        .out
                        .line(format!("  and {} more; --json lists all", names.len() - NAMES_SHOWN_MAX));
                }
            }
            Some(Err(error)) => {
                context.out.line(format!("  {error}"));
                context.out.line(format!("  hint: {}", error.hint()));
            }
            None => {}
        }
    }
}

impl Test {
    fn run(self, context: &mut Context, config: &Config, around: &ExecutionEnv) -> Outcome {
        let mut clients: Vec<(Arc<Client>, Vec<&'static str>)> = Vec::new();
        if self.names.is_empty() {
            let models =
                ByRole::new(config, around, self.model.as_deref()).map_err(|error| failure(&error))?;
            for role in Role::ALL {
                let order = models.of(role).map(|order| order.clients()).unwrap_or_default();
                for (place, client) in order.iter().enumerate() {
                    let used = if place == 0 { role.name() } else { "fallback" };
                    match clients.iter_mut().find(|(known, _)| Arc::ptr_eq(known, client)) {
                        Some((_, roles)) if roles.contains(&used) => {}
                        Some((_, roles)) => roles.push(used),
                        None => clients.push((Arc::clone(client), vec![used])),
                    }
                }
            }
        } else {
            let known: BTreeMap<&str, &ModelServer> =
                config.models.iter().map(|(name, server)| (name.as_str(), server)).collect();
            for name in &self.names {
                let Some(server) = known.get(name.as_str()) else {
                    let names: Vec<&str> = known.keys().copied().collect();
                    let hint = match names.is_empty() {
                        true => format!("describe it in [models.{name}] (docs/models.md)"),
                        false => format!("there are {}", names.join(", ")),
                    };
                    return Err(Failure::not_found(format!("no model is called {name}"), hint));
                };
                let client = Client::new(name, server, around).map_err(|error| failure(&error))?;
                clients.push((Arc::new(client), roles_of(config, name)));
            }
        }
        let mut unusable = Vec::new();
        let mut told = Vec::new();
        for (client, roles) in &clients {
            let probed = client.probe(&Stop::new());
            if !probed.is_usable() {
                unusable.push(client.name().to_owned());
            }
            match context.out.json {
                true => told.push(probed_json(client, roles, &probed)),
                false => show_probed(context, client, roles, &probed),
            }
        }
        if context.out.json {
            context.out.value(&json!({ "models": told, "usable": unusable.is_empty() }))?;
        }
        if unusable.is_empty() {
            return Ok(());
        }
        let message = format!("{} cannot be used", unusable.join(", "));
        Err(Failure::failed(message, "the lines above list what does not work, and what to do about it"))
    }
}

fn probed_json(client: &Client, roles: &[&str], probed: &Probed) -> Value {
    let steps: Vec<Value> = probed
        .findings
        .iter()
        .map(|finding| {
            json!({ "what": finding.what, "works": finding.verdict.as_str(), "seen": finding.seen, "hint": finding.hint })
        })
        .collect();
    json!({
        "name": client.name(),
        "api": client.server().api.name(),
        "base_url": client.server().base_url,
        "model": probed.model,
        "roles": roles,
        "usable": probed.is_usable(),
        "seconds": probed.took.map(|took| (took.as_secs_f64() * 1_000.0).round() / 1_000.0),
        "structured": client.capabilities().structured.name(),
        "steps": steps,
    })
}

fn show_probed(context: &mut Context, client: &Client, roles: &[&str], probed: &Probed) {
    let used = if roles.is_empty() { String::new() } else { format!(" ({})", roles.join(", ")) };
    let model = probed.model.as_deref().or(client.server().model.as_deref()).unwrap_or("no model");
    let name = context.out.paint(client.name(), Look::Bold);
    context.out.line(format!("{name}{used}: {model} at {}", client.server().base_url));
    let width = probed.findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    for finding in &probed.findings {
        let look = match finding.verdict {
            Verdict::Good => Look::Green,
            Verdict::Fair => Look::Yellow,
            Verdict::Bad => Look::Red,
            Verdict::Untried => Look::Dim,
        };
        let word = context.out.paint(&format!("{:<7}", finding.verdict.as_str()), look);
        context.out.line(format!("  {:<width$}  {word}  {}", finding.what, finding.seen));
        if !finding.hint.is_empty() {
            context.out.line(format!("  {:<width$}  {:<7}  hint: {}", "", "", finding.hint));
        }
    }
}
