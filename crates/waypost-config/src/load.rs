//! Loads a configuration: the defaults, then each file over the previous ones, then the environment.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_core::nearest;

use crate::env_overrides as environment;
use crate::executor::{Prompt, Worker};
use crate::layer::{Layer, ReadFile};
use crate::models::{ENVIRONMENT_MODELS, Planner};
use crate::parse::{self as file, agents, jaato_todo as todo};
use crate::problem::{BadConfig, ConfigProblem};
use crate::settings::{Config, Executor};

impl Config {
    /// Like [`Config::load_with`], for configurations that name no other files.
    pub fn load<'a>(
        layers: &[Layer],
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, BadConfig> {
        Self::load_with(layers, variables, &|_| Err(io::Error::other("no files can be read here")))
    }

    /// Applies the defaults, then each layer over the previous ones, then the environment. Reports all problems at once.
    pub fn load_with<'a>(
        layers: &[Layer],
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
        read: ReadFile<'_>,
    ) -> Result<Self, BadConfig> {
        let variables: Vec<(&str, &str)> = variables.into_iter().collect();
        let (mut config, mut problems) = Self::apply(layers, &variables, read);
        environment::models(&mut config, &variables);
        for (name, value) in variables {
            environment::apply(&mut config, name, value, &mut problems);
        }
        if problems.is_empty() {
            problems.extend(config.unknown_models());
        }
        if problems.is_empty() && config.heartbeat_seconds >= config.lease_seconds {
            problems.push(ConfigProblem {
                place: "lease".to_owned(),
                line: None,
                what: format!(
                    "a sign of life every {} s is too seldom for a lease of {} s",
                    config.heartbeat_seconds, config.lease_seconds
                ),
                hint: "make heartbeat_seconds a third of seconds, or less".to_owned(),
            });
        }
        if problems.is_empty()
            && let Some(target) = config.target.clone()
            && let Err(unknown) = config.use_target(&target)
        {
            problems.push(ConfigProblem {
                place: "target".to_owned(),
                line: None,
                what: unknown.to_string(),
                hint: unknown.hint(),
            });
        }
        if problems.is_empty() && config.approval.pinned_images {
            problems.extend(config.movable_images());
        }
        if let Some(name) =
            config.default_executor.as_ref().filter(|name| !config.executors.contains_key(*name))
            && problems.is_empty()
        {
            let names: Vec<&str> = config.executors.keys().map(String::as_str).collect();
            problems.push(ConfigProblem {
                place: "default_executor".to_owned(),
                line: None,
                what: format!("no executor is called {name}"),
                hint: format!("name one of {}", names.join(", ")),
            });
        }
        if problems.is_empty() { Ok(config) } else { Err(BadConfig { problems }) }
    }

    /// Applies layers alone, as far as they are right: to find out what they define and which files they name.
    pub fn of_layers(layers: &[Layer], read: ReadFile<'_>) -> Self {
        Self::apply(layers, &[], read).0
    }

    fn apply(layers: &[Layer], variables: &[(&str, &str)], read: ReadFile<'_>) -> (Self, Vec<ConfigProblem>) {
        let mut config = Self::default();
        let mut problems = Vec::new();
        let read_from: RefCell<Vec<PathBuf>> = RefCell::default();
        let noting = |path: &Path| {
            read_from.borrow_mut().push(path.to_owned());
            read(path)
        };
        for layer in layers {
            read_from.borrow_mut().push(PathBuf::from(&layer.name));
            match layer.name.ends_with(".json") {
                true => {
                    let file = (layer.name.as_str(), layer.text.as_str(), layer.origin);
                    todo::apply(&mut config, file, variables, &mut problems);
                }
                false => file::apply(&mut config, layer, &noting, variables, &mut problems),
            }
        }
        config.read_from = read_from.into_inner();
        (config, problems)
    }

    /// Returns the files of the workspace that contain prompts and have not been read yet.
    pub fn prompt_files(&self) -> Vec<String> {
        let file = |executor: &Executor| match executor {
            Executor::Worker(Worker::Agent(agent)) => match &agent.prompt {
                Prompt::File { file, .. } => Some(file.clone()),
                Prompt::Known(_) => None,
            },
            Executor::Worker(_) | Executor::Dispatch(_) | Executor::Noop | Executor::Human => None,
        };
        self.executors.values().filter_map(file).collect()
    }

    /// Reports the models that `[planner]` names and no table describes. The environment's models always count as
    /// known: a key that is not set here may be set where the planner runs.
    fn unknown_models(&self) -> Vec<ConfigProblem> {
        let Planner { planner, checker, digester, fallback, .. } = &self.planner;
        let named = planner.iter().chain(checker).chain(digester).chain(fallback);
        let is_known =
            |name: &&String| self.models.contains_key(*name) || ENVIRONMENT_MODELS.contains(&name.as_str());
        let names = || self.models.keys().map(String::as_str).chain(ENVIRONMENT_MODELS);
        let problem = |name: &String| ConfigProblem {
            place: "planner".to_owned(),
            line: None,
            what: format!("no model is called {name}"),
            hint: match nearest(name, names()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("describe it in [models.{name}]"),
            },
        };
        named.filter(|name| !is_known(name)).map(problem).collect()
    }

    /// Reports the images that are named without a digest: what is behind a tag can change after an approval.
    fn movable_images(&self) -> Vec<ConfigProblem> {
        let image = |worker: &Worker| match worker {
            Worker::Container(container) => Some(container.image.clone()),
            Worker::Kubernetes(kubernetes) => Some(kubernetes.image.clone()),
            Worker::Process(_)
            | Worker::Agent(_)
            | Worker::Http(_)
            | Worker::Slurm(_)
            | Worker::Program(_) => None,
        };
        let mut images = Vec::new();
        for (target, executors) in &self.targets {
            for (name, workers) in executors {
                let named = |(worker, one): (&String, &Worker)| {
                    Some((format!("{name}.targets.{target}.{worker}"), image(one)?))
                };
                images.extend(workers.iter().filter_map(named));
            }
        }
        for (name, executor) in &self.executors {
            match executor {
                Executor::Noop | Executor::Human => {}
                Executor::Worker(worker) => images.extend(image(worker).map(|image| (name.clone(), image))),
                Executor::Dispatch(workers) => {
                    let named =
                        |(worker, one): (&String, &Worker)| Some((format!("{name}.{worker}"), image(one)?));
                    images.extend(workers.iter().filter_map(named));
                }
            }
        }
        let movable = images.into_iter().filter(|(_, image)| !image.contains("@sha256:"));
        let problem = |(name, image): (String, String)| ConfigProblem {
            place: format!("executors.{name}"),
            line: None,
            what: format!("the image {image:?} has no digest, which `approval.pinned_images` asks for"),
            hint: format!("name what is meant: {image}@sha256:…"),
        };
        movable.map(problem).collect()
    }

    /// Reads the prompts that are in files of the workspace.
    pub fn read_prompts(&mut self, read: &dyn Fn(&str) -> std::io::Result<String>) -> Result<(), BadConfig> {
        let mut problems = Vec::new();
        self.read_from.extend(self.prompt_files().into_iter().map(PathBuf::from));
        for executor in self.executors.values_mut() {
            if let Executor::Worker(Worker::Agent(agent)) = executor {
                problems.extend(agents::read_prompt(&mut Arc::make_mut(agent).prompt, read));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(BadConfig { problems }) }
    }
}
