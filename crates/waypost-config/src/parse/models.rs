//! Parses `[models.NAME]` and `[planner]`: models, roles and budgets.
//!
//! A workspace's file comes with a repository. It may choose among the user's models and define models on this machine.
//! It cannot redirect a user's key, send prompts to another machine, or raise the user's budgets.

use super::reader::{Table, set};
use crate::address::{is_address, is_this_machine};
use crate::models::{
    ANSWER_TOKENS_LIMIT, Api, ENVIRONMENT_MODELS, MODEL_RETRIES_MAX, ModelServer, Planner, Structured,
};
use crate::parse::values::stays_inside;
use crate::settings::Config;

/// The highest price of a million tokens.
const PRICE_MAX: f64 = 1_000_000.0;
/// The highest limit for the goals or tasks of one plan.
const GOALS_MAX: u32 = 100_000;
/// The highest cost budget of one plan.
const COST_MAX: f64 = 1_000_000.0;

const IN_USER_CONFIG: &str =
    "write the model into the user's own configuration, and choose it here by its name in [planner]";

impl Table<'_> {
    pub(super) fn models(&mut self, config: &mut Config) {
        let models = self.tables("models", |name, model| {
            if model.is_of_workspace() && !model.may_bring(config, name) {
                model.accept_rest();
                return None;
            }
            model.model()
        });
        for (name, server) in models {
            if !self.is_of_workspace() {
                config.user_models.insert(name.clone());
            }
            config.models.insert(name, server);
        }
        self.section("planner", |table| {
            let before = config.planner.clone();
            table.planner(&mut config.planner);
            if table.is_of_workspace() {
                table.keep_bounds(&before, &config.planner);
            }
        });
    }

    fn may_bring(&self, config: &Config, name: &str) -> bool {
        let is_users = ENVIRONMENT_MODELS.contains(&name) || config.user_models.contains(name);
        if is_users {
            let what = format!("{} is the user's own, and a workspace's file cannot change it", self.path);
            let hint = "choose it by its name in [planner], or bring another under another name";
            self.wrong(self.at, what, hint);
        }
        !is_users
    }

    fn model(&mut self) -> Option<ModelServer> {
        let api = self.choice("api", &[Api::OpenAi, Api::Anthropic].map(|api| (api.name(), api)));
        self.missing("api", "write api = \"openai\" or api = \"anthropic\"");
        let base_url = self.base_url(api);
        let key = self.section("key", Table::sent_secret).flatten();
        let headers = self.headers();
        if self.is_of_workspace() && !headers.is_empty() {
            let path = &self.path;
            let what =
                format!("{path} has headers, but the file belongs to the workspace and travels with it");
            self.wrong(self.place("headers"), what, IN_USER_CONFIG);
            self.accept_rest();
            return None;
        }
        let (Some(api), Some(base_url)) = (api, base_url) else {
            self.accept_rest();
            return None;
        };
        let price = |number: Option<f64>| number.map(|number| (number * 1e6).round() as u64);
        let mut server = ModelServer::at(api, base_url);
        (server.key, server.headers) = (key, headers);
        server.model = self.text("model").filter(|model| !model.is_empty());
        set(&mut server.tokens_max, self.small("max_tokens", 1..=ANSWER_TOKENS_LIMIT));
        server.temperature = self.decimal("temperature", 2.0).map(|number| (number * 100.0).round() as u32);
        set(&mut server.timeout_seconds, self.seconds("timeout_seconds", 1));
        set(&mut server.silence_seconds, self.seconds("silence_seconds", 1));
        set(&mut server.retries, self.small("retries", 0..=MODEL_RETRIES_MAX));
        let structured =
            [Structured::Schema, Structured::Json, Structured::None].map(|one| (one.name(), one));
        set(&mut server.structured, self.choice("structured", &structured));
        server.price_in = price(self.decimal("price_in", PRICE_MAX));
        server.price_out = price(self.decimal("price_out", PRICE_MAX));
        Some(server)
    }

    fn base_url(&mut self, api: Option<Api>) -> Option<String> {
        let (at, url) = match self.text_at("base_url") {
            Some((at, url)) => (at, url),
            None if self.is_without("base_url") => (self.at, ModelServer::base_url_default(api?).to_owned()),
            None => return None,
        };
        let path = &self.path;
        if !is_address(&url) || url.contains('?') {
            // The URL is not repeated because it may contain a password.
            let hint = "it begins with http:// or https:// and names a host; what lets us in goes into `key`";
            return self.refuse(at, format!("{path} has a `base_url` that cannot be used"), hint);
        }
        let host =
            url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
        if self.is_of_workspace() && !is_this_machine(&host) {
            let what = format!(
                "{path} would send prompts to {host}, but the file belongs to the workspace and travels with it"
            );
            return self.refuse(at, what, IN_USER_CONFIG);
        }
        Some(url.trim_end_matches('/').to_owned())
    }

    fn planner(&mut self, planner: &mut Planner) {
        for (key, place) in [
            ("planner", &mut planner.planner),
            ("checker", &mut planner.checker),
            ("digester", &mut planner.digester),
        ] {
            set(place, self.text(key).map(|name| (!name.is_empty()).then_some(name)));
        }
        set(&mut planner.fallback, self.strings("fallback"));
        set(&mut planner.depth_max, self.small("max_depth", 1..=100));
        set(&mut planner.children_max, self.small("max_children", 2..=100));
        set(&mut planner.goals_max, self.small("max_goals", 1..=GOALS_MAX));
        set(&mut planner.tasks_max, self.small("max_tasks", 1..=GOALS_MAX));
        set(&mut planner.repairs, self.small("repairs", 0..=20));
        set(&mut planner.parallel, self.small("parallel", 1..=64));
        let cost = self.decimal("cost_budget", COST_MAX).map(|number| (number * 1e6).round() as u64);
        planner.token_budget = self.number("token_budget", 1..=i64::MAX as u64).or(planner.token_budget);
        planner.cost_budget = cost.or(planner.cost_budget);
        planner.seconds = self.seconds("seconds", 1).or(planner.seconds);
        match self.text_at("prompts") {
            Some((_, folder)) if stays_inside(&folder) => {
                planner.prompts = (!folder.is_empty()).then_some(folder);
            }
            Some((at, folder)) => {
                let what = format!("`planner.prompts` is {folder:?}, outside of the workspace");
                self.wrong(at, what, "name a folder of the workspace, relative to it");
            }
            None => {}
        }
    }

    /// Reports budgets that a workspace raises above the user's.
    fn keep_bounds(&self, before: &Planner, planner: &Planner) {
        let raised = [
            ("token_budget", is_raised(before.token_budget, planner.token_budget)),
            ("cost_budget", is_raised(before.cost_budget, planner.cost_budget)),
            ("seconds", is_raised(before.seconds, planner.seconds)),
        ];
        for (key, _) in raised.into_iter().filter(|(_, raised)| *raised) {
            let what = format!("`planner.{key}` allows more than the user's own configuration");
            self.wrong(self.place(key), what, "write it into the user's configuration, or lower it here");
        }
    }
}

fn is_raised<N: PartialOrd>(before: Option<N>, now: Option<N>) -> bool {
    before.is_some_and(|before| now.is_none_or(|now| now > before))
}
