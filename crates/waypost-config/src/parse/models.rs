//! `[models.NAME]` and `[planner]`: who may be asked, for what, and for how much.
//!
//! A workspace's file travels with a repository. It may choose among the user's models and bring models of this very machine;
//! it cannot say where a user's key goes, nor that the user's words go anywhere, nor raise what the user is willing to pay.

use crate::models::{Api, Structured};
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, Table, set};
use crate::address::is_address;
use crate::address::is_this_machine;
use crate::layer::Origin;
use crate::models::{ANSWER_TOKENS_LIMIT, ENVIRONMENT_MODELS, MODEL_RETRIES_MAX, ModelServer, Planner};
use crate::parse::values::{one_of, stays_inside};
use crate::settings::{Config, SECONDS_MAX};

/// The most that a million tokens may cost.
const PRICE_MAX: f64 = 1_000_000.0;
/// Goals and tasks of one plan that can be asked for.
const GOALS_MAX: u64 = 100_000;
/// Money that can be allowed for one plan.
const COST_MAX: f64 = 1_000_000.0;

impl Reader<'_> {
    pub(super) fn models(&mut self, config: &mut Config, top: &mut Table<'_>) {
        for (name, at, table) in top.tables(self, "models") {
            let path = format!("models.{name}");
            if self.is_of_workspace() && !self.may_bring(config, &name, &path, at) {
                continue;
            }
            if let Some(server) = self.model(&path, at, table) {
                if !self.is_of_workspace() {
                    config.user_models.insert(name.clone());
                }
                config.models.insert(name, server);
            }
        }
        if let Some(mut table) = top.inner(self, "planner") {
            let before = config.planner.clone();
            self.planner(&mut config.planner, &mut table);
            if self.is_of_workspace() {
                self.keep_bounds(&before, &mut config.planner, &table);
            }
            table.end(self);
        }
    }

    fn is_of_workspace(&self) -> bool {
        self.layer.origin == Origin::Workspace
    }

    fn may_bring(&mut self, config: &Config, name: &str, path: &str, at: usize) -> bool {
        if ENVIRONMENT_MODELS.contains(&name) || config.user_models.contains(name) {
            let what = format!("{path} is the user's own, and a workspace's file cannot change it");
            self.wrong(at, what, "choose it by its name in [planner], or bring another under another name");
            return false;
        }
        true
    }

    fn model(&mut self, path: &str, at: usize, table: &DeTable<'_>) -> Option<ModelServer> {
        let mut table = self.table(path, table);
        let api = match table.text(self, "api") {
            Some((_, word)) if word == Api::OpenAi.name() => Some(Api::OpenAi),
            Some((_, word)) if word == Api::Anthropic.name() => Some(Api::Anthropic),
            Some((at, word)) => {
                self.wrong(
                    at,
                    format!("{path} has the unknown api {word:?}"),
                    one_of(&word, &["openai", "anthropic"]),
                );
                None
            }
            None => {
                if table.is_without("api") {
                    self.wrong(
                        at,
                        format!("{path} has no `api`"),
                        "write api = \"openai\" or api = \"anthropic\"",
                    );
                }
                None
            }
        };
        let base_url = self.base_url(path, at, api, &mut table);
        let key_at = table.place("key").unwrap_or(at);
        let key = table.inner(self, "key");
        let key = key.and_then(|secret| self.secret(&format!("{path}.key"), key_at, secret));
        let headers = self.headers(path, &mut table);
        if self.is_of_workspace() && (key.is_some() || !headers.is_empty()) {
            let what =
                format!("{path} has a key or headers, and stands in a file that travels with the workspace");
            self.wrong(key_at, what, "write the model into the user's own configuration, and choose it here by its name in [planner]");
            return None;
        }
        let plain = ModelServer::at(api?, base_url?);
        let model = table.text(self, "model").map(|(_, model)| model).filter(|model| !model.is_empty());
        let tokens = table.number(self, "max_tokens", 1, ANSWER_TOKENS_LIMIT.into());
        let temperature =
            self.decimal(&mut table, "temperature", 2.0).map(|number| (number * 100.0).round() as u32);
        let timeout = table.seconds(self, "timeout_seconds", 1);
        let silence = table.seconds(self, "silence_seconds", 1);
        let retries = table.number(self, "retries", 0, MODEL_RETRIES_MAX.into());
        let structured = self.structured(path, &mut table);
        let price = |number: Option<f64>| number.map(|number| (number * 1e6).round() as u64);
        let price_in = price(self.decimal(&mut table, "price_in", PRICE_MAX));
        let price_out = price(self.decimal(&mut table, "price_out", PRICE_MAX));
        table.end(self);
        let or = |said: Option<u64>, default: u32| said.map_or(default, |number| number as u32);
        Some(ModelServer {
            model,
            key,
            headers,
            tokens_max: or(tokens, plain.tokens_max),
            temperature,
            timeout_seconds: or(timeout, plain.timeout_seconds),
            silence_seconds: or(silence, plain.silence_seconds),
            retries: or(retries, plain.retries),
            structured: structured.unwrap_or(plain.structured),
            price_in,
            price_out,
            ..plain
        })
    }

    fn base_url(&mut self, path: &str, at: usize, api: Option<Api>, table: &mut Table<'_>) -> Option<String> {
        let (at, url) = match table.text(self, "base_url") {
            Some((at, url)) => (at, url),
            None if table.is_without("base_url") => (at, ModelServer::base_url_default(api?).to_owned()),
            None => return None,
        };
        if !is_address(&url) || url.contains('?') {
            // Not repeated: there may be a password in it.
            let hint = "it begins with http:// or https:// and names a host; what lets us in goes into `key`";
            self.wrong(at, format!("{path} has a `base_url` that cannot be used"), hint);
            return None;
        }
        let host =
            url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
        if self.is_of_workspace() && !is_this_machine(&host) {
            let what = format!(
                "{path} would send the user's words to {host}, and stands in a file that travels with the workspace"
            );
            self.wrong(at, what, "write the model into the user's own configuration, and choose it here by its name in [planner]");
            return None;
        }
        Some(url.trim_end_matches('/').to_owned())
    }

    fn structured(&mut self, path: &str, table: &mut Table<'_>) -> Option<Structured> {
        let (at, word) = table.text(self, "structured")?;
        let all = [Structured::Schema, Structured::Json, Structured::None];
        let found = all.into_iter().find(|one| one.name() == word);
        if found.is_none() {
            let names = all.map(Structured::name);
            self.wrong(at, format!("`{path}.structured` is {word:?}"), one_of(&word, &names));
        }
        found
    }

    /// A number from 0 that may have places after its point.
    fn decimal(&mut self, table: &mut Table<'_>, key: &'static str, max: f64) -> Option<f64> {
        let value = table.find(key)?;
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => String::new(),
        };
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=max).contains(number));
        if number.is_none() {
            table.expected(self, key, value, &format!("a number from 0 to {max}"));
        }
        number
    }

    fn planner(&mut self, planner: &mut Planner, table: &mut Table<'_>) {
        let mut name = |key, place: &mut Option<String>| {
            if let Some((_, name)) = table.text(self, key) {
                *place = (!name.is_empty()).then_some(name);
            }
        };
        name("planner", &mut planner.planner);
        name("checker", &mut planner.checker);
        name("digester", &mut planner.digester);
        if let Some((_, names)) = table.strings(self, "fallback") {
            planner.fallback = names;
        }
        set(&mut planner.depth_max, table.number(self, "max_depth", 1, 100));
        set(&mut planner.children_max, table.number(self, "max_children", 2, 100));
        set(&mut planner.goals_max, table.number(self, "max_goals", 1, GOALS_MAX));
        set(&mut planner.tasks_max, table.number(self, "max_tasks", 1, GOALS_MAX));
        set(&mut planner.repairs, table.number(self, "repairs", 0, 20));
        set(&mut planner.parallel, table.number(self, "parallel", 1, 64));
        let tokens = table.number(self, "token_budget", 1, i64::MAX as u64);
        planner.token_budget = tokens.or(planner.token_budget);
        let cost = self.decimal(table, "cost_budget", COST_MAX).map(|number| (number * 1e6).round() as u64);
        planner.cost_budget = cost.or(planner.cost_budget);
        let seconds = table.number(self, "seconds", 1, SECONDS_MAX.into()).map(|seconds| seconds as u32);
        planner.seconds = seconds.or(planner.seconds);
        if let Some((at, folder)) = table.text(self, "prompts") {
            match stays_inside(&folder) {
                true => planner.prompts = (!folder.is_empty()).then_some(folder),
                false => {
                    let what = format!("`planner.prompts` is {folder:?}, outside of the workspace");
                    self.wrong(at, what, "name a folder of the workspace, relative to it");
                }
            }
        }
    }

    /// What the user is willing to pay is not raised by a workspace.
    fn keep_bounds(&mut self, before: &Planner, planner: &mut Planner, table: &Table<'_>) {
        let raised = [
            ("token_budget", is_raised(before.token_budget, planner.token_budget)),
            ("cost_budget", is_raised(before.cost_budget, planner.cost_budget)),
            ("seconds", is_raised(before.seconds, planner.seconds)),
        ];
        for (key, _) in raised.into_iter().filter(|(_, raised)| *raised) {
            let what = format!("`planner.{key}` allows more than the user's own configuration");
            self.wrong(
                table.place(key).unwrap_or(0),
                what,
                "write it into the user's configuration, or lower it here",
            );
        }
    }
}

fn is_raised<N: PartialOrd>(before: Option<N>, now: Option<N>) -> bool {
    before.is_some_and(|before| now.is_none_or(|now| now > before))
}
