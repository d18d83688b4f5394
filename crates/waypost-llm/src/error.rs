//! Why a model call failed. An error never contains a key: everything that a server returned passes the redactor first.

use super::journal::JournalError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ModelError {
    /// The configuration has no usable model.
    #[error("{what}")]
    NotConfigured { what: String, hint: String },
    /// The connection failed, or broke before an answer began.
    #[error("{model}: connection failed: {why}")]
    NotReached { model: String, why: String },
    /// The whole call took too long.
    #[error("{model}: no complete response after {seconds} s")]
    TooSlow {
        model: String,
        /// The configured `timeout_seconds`.
        seconds: u32,
    },
    /// The deadline for all calls has passed.
    #[error("{model}: the time limit was reached before it responded")]
    OutOfTime { model: String },
    /// The server sent nothing for too long.
    #[error("{model}: no data for {seconds} s")]
    Silent {
        model: String,
        /// The configured `silence_seconds`.
        seconds: u32,
    },
    /// The server rejects the key.
    #[error("{model}: authentication failed ({status}): {said}")]
    NotAllowed {
        model: String,
        /// 401 or 403.
        status: u16,
        said: String,
    },
    /// The server does not have the model, or the URL is not that of a model server.
    #[error("{model}: endpoint not found ({status}): {said}")]
    NotThere {
        model: String,
        /// 404 or 405.
        status: u16,
        said: String,
    },
    /// The server is overloaded or has an internal error.
    #[error("{model}: temporarily unavailable ({status}): {said}")]
    Busy {
        model: String,
        /// 408, 409, 425, 429 or 5xx; 200 if the error came inside a stream.
        status: u16,
        said: String,
        /// The wait that the server requests, if it does.
        wait_milliseconds: Option<u64>,
    },
    /// The server rejects the request.
    #[error("{model}: request rejected ({status}): {said}")]
    Refused {
        model: String,
        /// The HTTP status; 200 if the error came inside a stream.
        status: u16,
        said: String,
    },
    /// The answer broke off.
    #[error("{model}: the response ended early")]
    BrokeOff { model: String },
    /// The response is not a valid answer.
    #[error("{model} returned a malformed response: {why}")]
    Garbled { model: String, why: String },
    /// The response is larger than the limit.
    #[error("{model}: the response exceeds {bytes_max} bytes")]
    TooMuch {
        model: String,
        /// The limit.
        bytes_max: u64,
    },
    /// The call was cancelled.
    #[error("the request was cancelled")]
    Stopped,
    /// The replayed journal does not contain the answer.
    #[error("{file} has no recorded response for {slot}")]
    NotRecorded { slot: String, file: String },
    /// The replayed journal contains a different request at this place.
    #[error("{file} was recorded with a different request at {slot}")]
    Departed { slot: String, file: String },
    /// The answer could not be stored in the journal, so it is not used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ModelError {
    /// Returns a stable name for programs.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    pub fn hint(&self) -> String {
        match self {
            Self::NotConfigured { hint, .. } => hint.clone(),
            Self::NotReached { why, .. } if why.contains("certificate") => {
                "add the certificate authority to the system's store, or name its file in SSL_CERT_FILE"
                    .to_owned()
            }
            Self::NotReached { model, .. } => {
                format!("check `base_url` of models.{model}, the network and the proxy variables")
            }
            Self::TooSlow { model, .. } => {
                format!("raise `timeout_seconds` of models.{model}, or lower `max_tokens`")
            }
            Self::OutOfTime { .. } => "give it more time (`--time`, or `seconds` in [planner])".to_owned(),
            Self::Silent { model, .. } => format!("raise `silence_seconds` of models.{model}"),
            Self::NotAllowed { model, .. } => {
                format!("check `key` of models.{model} and its permissions")
            }
            Self::NotThere { model, .. } => format!(
                "check `model` and `base_url` of models.{model}; `waypost model list --ask` shows what the server has"
            ),
            Self::Busy { .. } => "try again later; the replies so far are kept".to_owned(),
            Self::Refused { model, .. } => {
                format!("check models.{model}; `waypost model test {model}` reports what works")
            }
            Self::BrokeOff { .. } => "try again; the replies so far are kept".to_owned(),
            Self::Garbled { model, .. } => {
                format!("check that `api` and `base_url` of models.{model} belong together")
            }
            Self::TooMuch { model, .. } => {
                format!("lower `max_tokens` of models.{model}, or choose another model")
            }
            Self::Stopped => "resume with `waypost plan continue`".to_owned(),
            Self::NotRecorded { .. } => "replay with the same plan and prompts as the recording".to_owned(),
            Self::Departed { .. } => {
                "the goal, the context or the prompts differ from the recording".to_owned()
            }
            Self::Journal(error) => error.hint(),
        }
    }

    /// Whether the same model may answer the same request later.
    pub fn is_passing(&self) -> bool {
        self.class().is_passing
    }

    /// Whether another model may answer instead.
    pub fn is_of_the_model(&self) -> bool {
        self.class().is_of_the_model
    }

    /// Whether the server accepted the request, so that it may cost something.
    pub(crate) fn was_taken(&self) -> bool {
        self.class().was_taken
    }

    fn class(&self) -> ErrorClass {
        let (is_passing, is_of_the_model, was_taken) = match self {
            Self::NotReached { .. } | Self::Busy { .. } => (true, true, false),
            Self::Silent { .. } | Self::BrokeOff { .. } | Self::Garbled { .. } => (true, true, true),
            // A model that used all of its time would do so again.
            Self::TooSlow { .. } | Self::TooMuch { .. } => (false, true, true),
            Self::NotConfigured { .. }
            | Self::NotAllowed { .. }
            | Self::NotThere { .. }
            | Self::Refused { .. } => (false, true, false),
            Self::OutOfTime { .. } | Self::Stopped => (false, false, true),
            Self::NotRecorded { .. } | Self::Departed { .. } | Self::Journal(_) => (false, false, false),
        };
        ErrorClass { is_passing, is_of_the_model, was_taken }
    }
}

/// The meaning of an error for the next attempt.
struct ErrorClass {
    is_passing: bool,
    is_of_the_model: bool,
    was_taken: bool,
}
