//! The models that may be asked, and how the planner uses them.

use serde::{Deserialize, Serialize};

use crate::executor::{Header, Secret};

/// Tokens that an answer may have, unless the configuration says otherwise.
pub const ANSWER_TOKENS_DEFAULT: u32 = 8_192;
/// Tokens that an answer may have.
pub const ANSWER_TOKENS_LIMIT: u32 = 1_000_000;
/// Seconds that an answer may take, unless the configuration says otherwise.
pub const MODEL_SECONDS_DEFAULT: u32 = 600;
/// Seconds without a word after which a model is given up, unless the configuration says otherwise.
pub const SILENCE_SECONDS_DEFAULT: u32 = 120;
/// How often a question is asked again, unless the configuration says otherwise.
pub const MODEL_RETRIES_DEFAULT: u32 = 4;
/// How often a question may be asked again.
pub const MODEL_RETRIES_MAX: u32 = 20;
/// Names that the environment alone can bring: a workspace's file cannot stand in for them.
pub const ENVIRONMENT_MODELS: [&str; 2] = ["openai", "anthropic"];

/// A model that can be asked: `[models.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelServer {
    pub api: Api,
    pub base_url: String,
    /// What the server calls the model; the server is asked where nobody says.
    pub model: Option<String>,
    pub key: Option<Secret>,
    pub headers: Vec<(String, Header)>,
    /// Tokens that an answer may have, whatever a question would allow.
    pub tokens_max: u32,
    /// Hundredths, in place of what a question says.
    pub temperature: Option<u32>,
    /// Seconds that one answer may take.
    pub timeout_seconds: u32,
    /// Seconds without a word.
    pub silence_seconds: u32,
    /// How often a question is asked again.
    pub retries: u32,
    /// What makes answers well-formed, at the best.
    pub structured: Structured,
    /// Millionths that a million tokens of questions cost.
    pub price_in: Option<u64>,
    /// Millionths that a million tokens of answers cost.
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

    /// Where a server of this kind is when nobody says.
    pub fn base_url_default(api: Api) -> &'static str {
        match api {
            Api::OpenAi => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// What bounds the planner, and whom it asks: `[planner]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planner {
    /// The model of the planner's role.
    pub planner: Option<String>,
    /// The model of the checker's role; otherwise the planner's.
    pub checker: Option<String>,
    /// The model of the digester's role; otherwise the checker's, then the planner's.
    pub digester: Option<String>,
    /// Who is asked, in order, when the one that should answer does not.
    pub fallback: Vec<String>,
    /// How deep goals are broken down.
    pub depth_max: u32,
    /// Children of a goal.
    pub children_max: u32,
    /// Goals of a plan.
    pub goals_max: u32,
    /// Tasks of a plan that is generated.
    pub tasks_max: u32,
    /// How often an invalid answer is given back to be mended.
    pub repairs: u32,
    /// Questions at the same time.
    pub parallel: u32,
    /// Tokens that a plan may cost.
    pub token_budget: Option<u64>,
    /// Millionths of money that a plan may cost.
    pub cost_budget: Option<u64>,
    /// Seconds that one command may think.
    pub seconds: Option<u32>,
    /// The folder of the workspace with prompts of its own.
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
    /// The model that is named for a role, by the role itself or by the one that stands in for it.
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

/// The language of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// `chat/completions`, as OpenAI has it and most others do.
    OpenAi,
    /// `v1/messages`, as Anthropic has it.
    Anthropic,
}

impl Api {
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// Where questions are sent, below the server's base address.
    pub fn asks_at(self) -> &'static str {
        match self {
            Self::OpenAi => "/chat/completions",
            Self::Anthropic => "/v1/messages",
        }
    }

    /// Where the server says which models it has.
    pub fn lists_at(self) -> &'static str {
        match self {
            Self::OpenAi => "/models",
            Self::Anthropic => "/v1/models",
        }
    }
}

/// What makes an answer well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structured {
    /// Nothing but the words of the prompt.
    None,
    /// The server sees to it that it is JSON.
    Json,
    /// The server sees to it that it keeps to the schema.
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

/// Whose work an ask is. The configuration chooses a model for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes and breaks down plans: the strong model.
    Planner,
    /// Judges, links and checks: a cheap model will do.
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
