//! Errors for unknown methods and invalid parameters, with the parameters that the method expects. Knows no tool.

use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CompleteRequestMethod, CompleteRequestParams, ConstString,
    CustomRequest, ErrorCode, ErrorData, GetPromptRequestMethod, GetPromptRequestParams,
    ReadResourceRequestMethod, ReadResourceRequestParams, SubscribeRequestMethod, SubscribeRequestParams,
    UnsubscribeRequestMethod,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use waypost_text::plain_parse_error;

use crate::reply_text::cut;

/// Bytes of an unknown method's name that the error message repeats.
const METHOD_BYTES: usize = 80;

/// Bytes of the reason why parameters do not fit.
const WORDS_BYTES: usize = 300;

/// Returns the error for an unknown method or for parameters that do not fit.
pub(crate) fn invalid_params(request: &CustomRequest) -> ErrorData {
    let method = request.method.as_str();
    let given = request.params.clone().unwrap_or_default();
    let (takes, why) = match method {
        CallToolRequestMethod::VALUE => {
            ("name (text) and arguments (an object)", mismatch::<CallToolRequestParams>(given))
        }
        GetPromptRequestMethod::VALUE => {
            ("name (text) and arguments (an object of texts)", mismatch::<GetPromptRequestParams>(given))
        }
        ReadResourceRequestMethod::VALUE => ("uri (text)", mismatch::<ReadResourceRequestParams>(given)),
        SubscribeRequestMethod::VALUE | UnsubscribeRequestMethod::VALUE => {
            ("uri (text)", mismatch::<SubscribeRequestParams>(given))
        }
        CompleteRequestMethod::VALUE => {
            ("ref and argument (objects)", mismatch::<CompleteRequestParams>(given))
        }
        unknown => {
            let words = format!("unknown method {}", cut(unknown, METHOD_BYTES));
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
        }
    };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    ErrorData::invalid_params(format!("invalid parameters for {method}{why}; expected {takes}"), None)
}

fn mismatch<T: DeserializeOwned>(given: Value) -> Option<String> {
    if given.is_null() {
        return Some("none were given".to_owned());
    }
    let error = serde_json::from_value::<T>(given).err()?;
    Some(cut(&plain_parse_error("", &error.to_string()), WORDS_BYTES))
}
