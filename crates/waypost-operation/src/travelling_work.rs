//! Machine work as it travels: its inputs are a text, so that no number in them changes.

use serde::{Deserialize, Serialize};

use crate::json_text;
use waypost_core::{Json, Work};

/// Machine work whose inputs travel as their stored JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TravellingWork {
    /// The name of the configured executor.
    pub executor: String,
    /// The inputs, a JSON object.
    #[serde(with = "json_text")]
    pub inputs: Json,
    /// The configured shape that the inputs must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}

impl TravellingWork {
    /// Returns the work as it travels.
    pub fn of(work: &Work) -> Self {
        let Work { executor, inputs, shape } = work.clone();
        Self { executor, inputs, shape }
    }
}

impl From<TravellingWork> for Work {
    fn from(work: TravellingWork) -> Self {
        let TravellingWork { executor, inputs, shape } = work;
        Self { executor, inputs, shape }
    }
}
