//! The few environment variables that override the files. None of them can name a program or disable approval: being
//! able to set a variable does not make someone the operator.

use crate::address::is_address;
use crate::executor::Secret;
use crate::models::{Api, ModelServer};
use crate::problem::ConfigProblem;
use crate::settings::{CONCURRENCY_MAX, Config, LOG_BYTES_LIMIT, Queue, SECONDS_MAX};
use waypost_core::{DEFAULT_QUEUE, limits};

/// Sets one number of the configuration. The value is within its bounds.
type Setter = fn(&mut Config, u64);

/// The numeric variables with their minimum and maximum.
const VARIABLES: [(&str, u64, u64, Setter); 9] = [
    ("WAYPOST_QUEUES_DEFAULT_CONCURRENCY", 1, CONCURRENCY_MAX as u64, |config, number| {
        config.queues.insert(DEFAULT_QUEUE.to_owned(), Queue { concurrency: number as u32 });
    }),
    ("WAYPOST_RETRY_ATTEMPTS", 1, limits::ATTEMPTS_MAX as u64, |c, number| c.retry.attempts = number as u32),
    ("WAYPOST_RETRY_BACKOFF_SECONDS", 0, SECONDS, |c, number| c.retry.backoff_seconds = number as u32),
    ("WAYPOST_LEASE_SECONDS", 2, SECONDS, |config, number| config.lease_seconds = number as u32),
    ("WAYPOST_LEASE_HEARTBEAT_SECONDS", 1, SECONDS, |c, number| c.heartbeat_seconds = number as u32),
    ("WAYPOST_LIMITS_TIMEOUT_SECONDS", 0, SECONDS, |config, number| {
        config.timeout_seconds = (number > 0).then_some(number as u32);
    }),
    ("WAYPOST_LIMITS_STOP_SECONDS", 0, SECONDS, |config, number| config.stop_seconds = number as u32),
    ("WAYPOST_LIMITS_OUTPUT_BYTES_MAX", 1, limits::JSON_BYTES_MAX as u64, |c, number| {
        c.output_bytes_max = number;
    }),
    ("WAYPOST_LIMITS_LOG_BYTES_MAX", 0, LOG_BYTES_LIMIT, |config, number| config.log_bytes_max = number),
];
const SECONDS: u64 = SECONDS_MAX as u64;

/// Applies one variable over the configuration. Unknown names and empty values are ignored.
pub(super) fn apply(config: &mut Config, name: &str, value: &str, problems: &mut Vec<ConfigProblem>) {
    let known = VARIABLES.iter().find(|(known, ..)| *known == name && !value.is_empty());
    let Some((_, min, max, set)) = known else { return };
    match value.parse::<u64>() {
        Ok(number) if (*min..=*max).contains(&number) => set(config, number),
        Ok(_) | Err(_) => problems.push(ConfigProblem {
            place: name.to_owned(),
            line: None,
            what: format!("{value:?} is not a whole number from {min} to {max}"),
            hint: "set it to such a number, or unset it".to_owned(),
        }),
    }
}

/// Adds the models whose keys or base URLs are in the environment, unless a file has described them.
pub(super) fn models(config: &mut Config, variables: &[(&str, &str)]) {
    let said = |wanted: &str| {
        variables.iter().find(|(name, value)| *name == wanted && !value.is_empty()).map(|(_, value)| *value)
    };
    for (api, key, base) in [
        (Api::OpenAi, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        (Api::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    ] {
        // A self-hosted server may not need a key.
        if config.models.contains_key(api.name()) || said(key).is_none() && said(base).is_none() {
            continue;
        }
        let url = said(base).unwrap_or(ModelServer::base_url_default(api)).trim_end_matches('/');
        // Other programs use these variables too, so an unusable URL does not fail the load. It is reported when the
        // model is called, without the URL, which may contain a password.
        let url = if is_address(url) && !url.contains('?') { url } else { "" };
        let mut server = ModelServer::at(api, url);
        server.key = said(key).map(|_| Secret::Variable(key.to_owned()));
        config.models.insert(api.name().to_owned(), server);
        config.user_models.insert(api.name().to_owned());
    }
}
