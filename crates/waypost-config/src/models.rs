//! The configured models, and how the planner uses them.

use serde::{Deserialize, Serialize};

use crate::executor::{Header, Secret};

/// Maximum tokens of an answer, unless the configuration sets it.
pub const ANSWER_TOKENS_DEFAULT: u32 = 8_192;
/// The highest token limit that the configuration can set for an answer.
pub const ANSWER_TOKENS_LIMIT: u32 = 1_000_000;
/// Time limit of an answer, unless the configuration sets it.
pub const MODEL_SECONDS_DEFAULT: u32 = 600;
/// Seconds without any output after which a request is abandoned, unless the configuration sets it.
pub const SILENCE_SECONDS_DEFAULT: u32 = 120;
/// Retries of a request, unless the configuration sets them.
pub const MODEL_RETRIES_DEFAULT: u32 = 4;
/// The highest number of retries that the configuration can set.
pub const MODEL_RETRIES_MAX: u32 = 20;
/// Names reserved for the models of the environment: a workspace's file cannot define them.
pub const ENVIRONMENT_MODELS: [&str; 2] = ["openai", "anthropic"];

/// A model and the server that provides it: `[models.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelServer {
    pub api: Api,
    pub base_url: String,
    /// The model's name at the server; without one the server is asked for its models.
    pub model: Option<String>,
    pub key: Option<Secret>,
    pub headers: Vec<(String, Header)>,
    /// Maximum tokens of an answer, even if a request allows more.
    pub tokens_max: u32,
    /// In hundredths; overrides the request's own temperature.
    pub temperature: Option<u32>,
    /// The time limit of one answer.
    pub timeout_seconds: u32,
    /// Seconds without any output after which a request is abandoned.
    pub silence_seconds: u32,
    /// How often a failed request is retried.
    pub retries: u32,
    /// The strictest structured-output mode to use.
    pub structured: Structured,
    /// The price of a million input tokens, in millionths of the currency unit.
    pub price_in: Option<u64>,
    /// The price of a million output tokens, in millionths of the currency unit.
    pub price_out: Option<u64>,
}

impl ModelServer {
    pub fn at(api: Api, base_url: impl Into<String>) -> Self {
        Self {
            api,
            base_url: base_url.into(),
            model: None,
            key: None,
            headers: Vec::new(),
            tokens_max: ANSWER_TOKENS_DEFAULT,
            temperature: None,
            timeout_seconds: MODEL_SECONDS_DEFAULT,
            silence_seconds: SILENCE_SECONDS_DEFAULT,
            retries: MODEL_RETRIES_DEFAULT,
            structured: Structured::Schema,
            price_in: None,
            price_out: None,
        }
    }

    /// The base URL unless the configuration sets one.
    pub fn base_url_default(api: Api) -> &'static str {
        match api {
            Api::OpenAi => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// The planner's models and limits: `[planner]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planner {
    /// The model of the planner role.
    pub planner: Option<String>,
    /// The model of the checker role; otherwise the planner's.
    pub checker: Option<String>,
    /// The model of the digester role; otherwise the checker's, then the planner's.
    pub digester: Option<String>,
    /// The models to try, in order, when the chosen one fails.
    pub fallback: Vec<String>,
    /// Maximum depth of the decomposition.
    pub depth_max: u32,
    /// Maximum number of children of a goal.
    pub children_max: u32,
    /// Maximum number of goals of a plan.
    pub goals_max: u32,
    /// Maximum number of tasks of a generated plan.
    pub tasks_max: u32,
    /// How often an invalid answer is returned to the model for repair.
    pub repairs: u32,
    /// Maximum number of concurrent requests.
    pub parallel: u32,
    /// Token budget of a plan.
    pub token_budget: Option<u64>,
    /// Cost budget of a plan, in millionths of the currency unit.
    pub cost_budget: Option<u64>,
    /// Time budget of one planning command.
    pub seconds: Option<u32>,
    /// The folder of the workspace that contains custom prompts.
    pub prompts: Option<String>,
}

impl Default for Planner {
    fn default() -> Self {
        Self {
            planner: None,
            checker: None,
            digester: None,
            fallback: Vec::new(),
            depth_max: 5,
            children_max: 7,
            goals_max: 200,
            tasks_max: 50,
            repairs: 3,
            parallel: 4,
            token_budget: None,
            cost_budget: None,
            seconds: None,
            prompts: None,
        }
    }
}

impl Planner {
    /// The model that is configured for a role, or for the role that it falls back to.
    pub fn named(&self, role: Role) -> Option<&str> {
        let named = match role {
            Role::Planner => &self.planner,
            Role::Checker => self.checker.as_ref().map_or(&self.planner, |_| &self.checker),
            Role::Digester => match (&self.digester, &self.checker) {
                (Some(_), _) => &self.digester,
                (None, Some(_)) => &self.checker,
                (None, None) => &self.planner,
            },
        };
        named.as_deref()
    }
}

/// The protocol of a model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// `chat/completions`, from OpenAI and supported by most servers.
    OpenAi,
    /// `v1/messages`, from Anthropic.
    Anthropic,
}

impl Api {
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// The path of requests, relative to the base URL.
    pub fn asks_at(self) -> &'static str {
        match self {
            Self::OpenAi => "/chat/completions",
            Self::Anthropic => "/v1/messages",
        }
    }

    /// The path of the model list, relative to the base URL.
    pub fn lists_at(self) -> &'static str {
        match self {
            Self::OpenAi => "/models",
            Self::Anthropic => "/v1/models",
        }
    }
}

/// How the server enforces the format of an answer, from weakest to strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structured {
    /// Not at all: only the prompt asks for the format.
    None,
    /// The server guarantees JSON.
    Json,
    /// The server guarantees JSON that matches the schema.
    Schema,
}

impl Structured {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Json => "json",
            Self::Schema => "schema",
        }
    }

    pub fn lower(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Json),
            Self::Json => Some(Self::None),
            Self::None => None,
        }
    }
}

/// The role of a request. The configuration chooses a model for each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes and decomposes plans; needs the strong model.
    Planner,
    /// Judges, links and checks; a cheap model is enough.
    Checker,
    /// Compresses finished work.
    Digester,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Planner, Self::Checker, Self::Digester];

    pub fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Checker => "checker",
            Self::Digester => "digester",
        }
    }
}
