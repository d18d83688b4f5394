//! Selects the model for a request: one for each role, and fallbacks for when it fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{ModelRequest, Role};

use super::client::secrets;
use super::{CallEvent, Client, Model, ModelError, Progress, Redactor, Reply, Stop};
use waypost_config::ExecutionEnv;
use waypost_config::{Config, ENVIRONMENT_MODELS, ModelServer};
use waypost_core::nearest;

/// Models in order of preference: the first that answers counts.
#[derive(Clone, Debug)]
pub struct InOrder(Vec<Arc<Client>>);

impl InOrder {
    /// All clients, in order of preference.
    pub fn clients(&self) -> &[Arc<Client>] {
        &self.0
    }
}

impl Model for InOrder {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        let nobody = || ModelError::NotConfigured {
            what: "no model is configured".to_owned(),
            hint: "describe one in [models.NAME]".to_owned(),
        };
        let mut last = None;
        for (place, client) in self.0.iter().enumerate() {
            let error = match client.ask(ask, progress, stop) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if !error.is_of_the_model() {
                return Err(error);
            }
            if let Some(next) = self.0.get(place + 1) {
                if stop.asks_nothing_new() {
                    return Err(ModelError::Stopped);
                }
                let (from, to) = (client.name(), next.name());
                progress.on_event(ask, &CallEvent::FellBack { from, to, why: &error });
            }
            // The error of the preferred model is more useful than those of its fallbacks.
            last.get_or_insert(error);
        }
        Err(last.unwrap_or_else(nobody))
    }
}

/// A model for each role.
#[derive(Clone, Debug)]
pub struct ByRole {
    roles: BTreeMap<Role, InOrder>,
}

impl ByRole {
    /// Creates the models of a configuration. A `choice` (`--model`, `WAYPOST_MODEL`) overrides it for all roles: the
    /// name of a configured model; that name, a slash and the server's name for a model; or only the latter, on the
    /// planner's server.
    pub fn new(config: &Config, around: &ExecutionEnv, choice: Option<&str>) -> Result<Self, ModelError> {
        let choice = choice.filter(|choice| !choice.is_empty());
        let mut made: BTreeMap<(String, Option<String>), Arc<Client>> = BTreeMap::new();
        let mut client = |name: &str, model: Option<String>| -> Result<Arc<Client>, ModelError> {
            let key = (name.to_owned(), model);
            if let Some(client) = made.get(&key) {
                return Ok(Arc::clone(client));
            }
            let mut server = server(config, name)?.clone();
            server.model = key.1.clone().or(server.model);
            let client = Arc::new(Client::new(name, &server, around)?);
            made.insert(key, Arc::clone(&client));
            Ok(client)
        };
        let mut roles = BTreeMap::new();
        for role in Role::ALL {
            let (name, model) = chosen(config, role, choice)?;
            let mut order = vec![client(&name, model)?];
            for name in config.planner.fallback.iter().filter(|fallback| **fallback != name) {
                order.push(client(name, None)?);
            }
            roles.insert(role, InOrder(order));
        }
        Ok(Self { roles })
    }

    /// Returns the models for this role.
    pub fn of(&self, role: Role) -> Option<&InOrder> {
        self.roles.get(&role)
    }
}

/// Returns a redactor that knows the secrets of all configured models, as far as they can be read, and those of the
/// environment.
pub fn secrets_of(config: &Config, around: &ExecutionEnv) -> Redactor {
    let known = config.models.iter().flat_map(|(name, server)| secrets(name, server, around));
    Redactor::together([&Redactor::new(known), &Redactor::of_variables(&around.variables)])
}

impl Model for ByRole {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        match self.of(ask.purpose.role()) {
            Some(model) => model.ask(ask, progress, stop),
            None => Err(no_model(ask.purpose.role())),
        }
    }
}

fn no_model(role: Role) -> ModelError {
    ModelError::NotConfigured {
        what: format!("no model is configured for the {}", role.name()),
        hint:
            "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or describe a model in [models.NAME] (docs/models.md)"
                .to_owned(),
    }
}

fn server<'a>(config: &'a Config, name: &str) -> Result<&'a ModelServer, ModelError> {
    config.models.get(name).ok_or_else(|| {
        let hint = match (
            ENVIRONMENT_MODELS.contains(&name),
            nearest(name, config.models.keys().map(String::as_str)),
        ) {
            (true, _) => format!("set {}_API_KEY, or describe it in [models.{name}]", name.to_uppercase()),
            (false, Some(near)) => format!("did you mean {near}?"),
            (false, None) => format!("describe it in [models.{name}]"),
        };
        ModelError::NotConfigured { what: format!("no model is called {name}"), hint }
    })
}

/// Returns the name of the model for a role, and the server's name for the model if the choice gives one.
fn chosen(config: &Config, role: Role, choice: Option<&str>) -> Result<(String, Option<String>), ModelError> {
    if let Some(choice) = choice {
        if config.models.contains_key(choice) {
            return Ok((choice.to_owned(), None));
        }
        if let Some((name, model)) =
            choice.split_once('/').filter(|(name, _)| config.models.contains_key(*name))
        {
            return Ok((name.to_owned(), Some(model.to_owned())));
        }
    }
    let model = choice.map(str::to_owned);
    // A model name of the planner's server means nothing to other servers.
    let role = if model.is_some() { Role::Planner } else { role };
    if let Some(name) = config.planner.named(role) {
        return Ok((name.to_owned(), model));
    }
    let names: Vec<&str> = config.models.keys().map(String::as_str).collect();
    match names.as_slice() {
        [] => Err(no_model(role)),
        [only] => Ok(((*only).to_owned(), model)),
        several => Err(ModelError::NotConfigured {
            what: format!(
                "several models are configured ({}) and none is chosen as the {}",
                several.join(", "),
                role.name()
            ),
            hint: "name one as `planner` in [planner], or say --model NAME".to_owned(),
        }),
    }
}
