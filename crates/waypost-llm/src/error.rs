//! Why there is no answer. Never has a key in it: everything that a server said comes past the redactor first.

use super::journal::JournalError;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// There is nobody to ask.
    #[error("{what}")]
    NotConfigured {
        /// What is missing.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// No connection came about, or it broke.
    #[error("the model {model} cannot be reached: {why}")]
    NotReached {
        /// Its name in the configuration.
        model: String,
        /// What happened.
        why: String,
    },
    /// The whole call took too long.
    #[error("the model {model} had not answered after {seconds} s")]
    TooSlow {
        /// Its name in the configuration.
        model: String,
        /// `timeout_seconds`.
        seconds: u32,
    },
    /// The time that there was for everything is up.
    #[error("the time was up before the model {model} had answered")]
    OutOfTime {
        /// Its name in the configuration.
        model: String,
    },
    /// Nothing came for too long.
    #[error("the model {model} said nothing for {seconds} s")]
    Silent {
        /// Its name in the configuration.
        model: String,
        /// `silence_seconds`.
        seconds: u32,
    },
    /// The server does not take the key.
    #[error("the model {model} does not let us in ({status}): {said}")]
    NotAllowed {
        /// Its name in the configuration.
        model: String,
        /// 401 or 403.
        status: u16,
        /// What the server said.
        said: String,
    },
    /// The server has no such model, or is no such server.
    #[error("the server of the model {model} has nothing there ({status}): {said}")]
    NotThere {
        /// Its name in the configuration.
        model: String,
        /// 404 or 405.
        status: u16,
        /// What the server said.
        said: String,
    },
    /// The server has too much to do, or trouble of its own.
    #[error("the model {model} does not answer now ({status}): {said}")]
    Busy {
        /// Its name in the configuration.
        model: String,
        /// 408, 409, 429 or 5xx.
        status: u16,
        /// What the server said.
        said: String,
        /// For how long it asks to be left alone, if it says.
        wait_milliseconds: Option<u64>,
    },
    /// The server does not take the question.
    #[error("the model {model} does not take the question ({status}): {said}")]
    Refused {
        /// Its name in the configuration.
        model: String,
        /// 4xx.
        status: u16,
        /// What the server said.
        said: String,
    },
    /// The answer broke off.
    #[error("the answer of the model {model} broke off before its end")]
    BrokeOff {
        /// Its name in the configuration.
        model: String,
    },
    /// What came is no answer.
    #[error("the model {model} answered something that is no answer: {why}")]
    Garbled {
        /// Its name in the configuration.
        model: String,
        /// What is wrong with it.
        why: String,
    },
    /// The answer does not end.
    #[error("the answer of the model {model} has more than {bytes_max} bytes, and was given up")]
    TooMuch {
        /// Its name in the configuration.
        model: String,
        /// As many as are read.
        bytes_max: u64,
    },
    /// We were told to stop.
    #[error("the question was given up, as was asked")]
    Stopped,
    /// A journal is replayed, and the answer is not in it.
    #[error("{file} has no answer for {slot}")]
    NotRecorded {
        /// Which question.
        slot: String,
        /// The journal.
        file: String,
    },
    /// A journal is replayed, and another question was asked there.
    #[error("at {slot} another question was asked when {file} was recorded")]
    Departed {
        /// Which question.
        slot: String,
        /// The journal.
        file: String,
    },
    /// The answer could not be kept, so it is not used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ModelError {
    /// A word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotConfigured { .. } => "not_configured",
            Self::NotReached { .. } => "not_reached",
            Self::TooSlow { .. } => "too_slow",
            Self::OutOfTime { .. } => "out_of_time",
            Self::Silent { .. } => "silent",
            Self::NotAllowed { .. } => "not_allowed",
            Self::NotThere { .. } => "not_there",
            Self::Busy { .. } => "busy",
            Self::Refused { .. } => "refused",
            Self::BrokeOff { .. } => "broke_off",
            Self::Garbled { .. } => "garbled",
            Self::TooMuch { .. } => "too_much",
            Self::Stopped => "stopped",
            Self::NotRecorded { .. } => "not_recorded",
            Self::Departed { .. } => "departed",
            Self::Journal(_) => "journal",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotConfigured { hint, .. } => hint.clone(),
            Self::NotReached { why, .. } if why.contains("certificate") => {
                "add the authority of that certificate to the system's store, or name its file in SSL_CERT_FILE".to_owned()
            }
            Self::NotReached { model, .. } => {
                format!("look at `base_url` of models.{model}, at the network, and at the proxy variables")
            }
            Self::TooSlow { model, .. } => {
                format!("raise `timeout_seconds` of models.{model}, or ask for less (`max_tokens`)")
            }
            Self::OutOfTime { .. } => "give it more time (`--time`, or `seconds` in [planner])".to_owned(),
            Self::Silent { model, .. } => format!("raise `silence_seconds` of models.{model}"),
            Self::NotAllowed { model, .. } => {
                format!("look at `key` of models.{model}, and at what the key may do")
            }
            Self::NotThere { model, .. } => format!(
                "look at `model` and `base_url` of models.{model}; `waypost model list --ask` shows what the server has"
            ),
            Self::Busy { .. } => "try again later; what was answered so far is kept".to_owned(),
            Self::Refused { model, .. } => {
                format!("look at models.{model}; `waypost model test {model}` says what works")
            }
            Self::BrokeOff { .. } => "try again; what was answered so far is kept".to_owned(),
            Self::Garbled { model, .. } => {
                format!("look whether `api` and `base_url` of models.{model} belong together")
            }
            Self::TooMuch { model, .. } => {
                format!("lower `max_tokens` of models.{model}, or take another model")
            }
            Self::Stopped => "go on with `waypost continue`".to_owned(),
            Self::NotRecorded { .. } => {
                "the run has departed from the record: replay it with the same plan and prompts".to_owned()
            }
            Self::Departed { .. } => {
                "the goal, the context or the prompts are others than those of the record".to_owned()
            }
            Self::Journal(error) => error.hint(),
        }
    }

    /// Whether the same question may be answered by the same model another time.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NotReached { .. }
            | Self::Silent { .. }
            | Self::Busy { .. }
            | Self::BrokeOff { .. }
            | Self::Garbled { .. } => true,
            // Whoever needed all the time there was would need it again.
            Self::TooSlow { .. }
            | Self::NotConfigured { .. }
            | Self::NotAllowed { .. }
            | Self::NotThere { .. }
            | Self::Refused { .. }
            | Self::TooMuch { .. }
            | Self::OutOfTime { .. }
            | Self::Stopped
            | Self::NotRecorded { .. }
            | Self::Departed { .. }
            | Self::Journal(_) => false,
        }
    }

    /// Whether another model may answer instead.
    pub fn is_of_the_model(&self) -> bool {
        match self {
            Self::NotReached { .. }
            | Self::TooSlow { .. }
            | Self::Silent { .. }
            | Self::NotAllowed { .. }
            | Self::NotThere { .. }
            | Self::Busy { .. }
            | Self::Refused { .. }
            | Self::BrokeOff { .. }
            | Self::Garbled { .. }
            | Self::TooMuch { .. }
            | Self::NotConfigured { .. } => true,
            Self::OutOfTime { .. }
            | Self::Stopped
            | Self::NotRecorded { .. }
            | Self::Departed { .. }
            | Self::Journal(_) => false,
        }
    }
}
