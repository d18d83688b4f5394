//! The handful of variables that stand above the files. None of them can name a program or open the gate of approval:
//! whoever can set a variable is not therefore the operator.

use crate::address::is_address;
use crate::executor::Secret;
use crate::models::{Api, ModelServer};
use crate::problem::ConfigProblem;
use crate::settings::{CONCURRENCY_MAX, Config, LOG_BYTES_LIMIT, Queue, SECONDS_MAX};
use waypost_core::{DEFAULT_QUEUE, limits};

/// The variables that are read; others that begin with `WAYPOST_` are for other parts.
const VARIABLES: [&str; 9] = [
    "WAYPOST_QUEUES_DEFAULT_CONCURRENCY",
    "WAYPOST_RETRY_ATTEMPTS",
    "WAYPOST_RETRY_BACKOFF_SECONDS",
    "WAYPOST_LEASE_SECONDS",
    "WAYPOST_LEASE_HEARTBEAT_SECONDS",
    "WAYPOST_LIMITS_TIMEOUT_SECONDS",
    "WAYPOST_LIMITS_STOP_SECONDS",
    "WAYPOST_LIMITS_OUTPUT_BYTES_MAX",
    "WAYPOST_LIMITS_LOG_BYTES_MAX",
];

pub(super) fn apply(config: &mut Config, name: &str, value: &str, problems: &mut Vec<ConfigProblem>) {
    if !VARIABLES.contains(&name) || value.is_empty() {
        return;
    }
    let (min, max) = match name {
        "WAYPOST_QUEUES_DEFAULT_CONCURRENCY" => (1, u64::from(CONCURRENCY_MAX)),
        "WAYPOST_RETRY_ATTEMPTS" => (1, u64::from(limits::ATTEMPTS_MAX)),
        "WAYPOST_LEASE_SECONDS" => (2, u64::from(SECONDS_MAX)),
        "WAYPOST_LEASE_HEARTBEAT_SECONDS" => (1, u64::from(SECONDS_MAX)),
        "WAYPOST_LIMITS_OUTPUT_BYTES_MAX" => (1, limits::JSON_BYTES_MAX as u64),
        "WAYPOST_LIMITS_LOG_BYTES_MAX" => (0, LOG_BYTES_LIMIT),
        _ => (0, u64::from(SECONDS_MAX)),
    };
    let number = match value.parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => number,
        Ok(_) | Err(_) => {
            problems.push(ConfigProblem {
                place: name.to_owned(),
                line: None,
                what: format!("{value:?} is not a whole number from {min} to {max}"),
                hint: "set it to such a number, or unset it".to_owned(),
            });
            return;
        }
    };
    let small = u32::try_from(number).unwrap_or(u32::MAX);
    match name {
        "WAYPOST_QUEUES_DEFAULT_CONCURRENCY" => {
            config.queues.insert(DEFAULT_QUEUE.to_owned(), Queue { concurrency: small });
        }
        "WAYPOST_RETRY_ATTEMPTS" => config.retry.attempts = small,
        "WAYPOST_RETRY_BACKOFF_SECONDS" => config.retry.backoff_seconds = small,
        "WAYPOST_LEASE_SECONDS" => config.lease_seconds = small,
        "WAYPOST_LEASE_HEARTBEAT_SECONDS" => config.heartbeat_seconds = small,
        "WAYPOST_LIMITS_TIMEOUT_SECONDS" => config.timeout_seconds = (small > 0).then_some(small),
        "WAYPOST_LIMITS_STOP_SECONDS" => config.stop_seconds = small,
        "WAYPOST_LIMITS_OUTPUT_BYTES_MAX" => config.output_bytes_max = number,
        "WAYPOST_LIMITS_LOG_BYTES_MAX" => config.log_bytes_max = number,
        _ => {}
    }
}

/// The models whose keys are in the environment, where no file has described them.
pub(super) fn models(config: &mut Config, variables: &[(&str, &str)]) {
    let said = |wanted: &str| {
        variables.iter().find(|(name, value)| *name == wanted && !value.is_empty()).map(|(_, value)| *value)
    };
    for (api, key, base) in [
        (Api::OpenAi, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        (Api::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    ] {
        // A server of one's own may want no key.
        if config.models.contains_key(api.name()) || said(key).is_none() && said(base).is_none() {
            continue;
        }
        let url = said(base).unwrap_or(ModelServer::base_url_default(api)).trim_end_matches('/');
        // Variables are there for other programs, too: one that means nothing here is no reason to do nothing at all. It is
        // told when the model is to be asked, and not repeated: there may be a password in it.
        let url = if is_address(url) && !url.contains('?') { url } else { "" };
        let mut server = ModelServer::at(api, url);
        server.key = said(key).map(|_| Secret::Variable(key.to_owned()));
        config.models.insert(api.name().to_owned(), server);
        config.user_models.insert(api.name().to_owned());
    }
}
