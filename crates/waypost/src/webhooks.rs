//! Starts the delivery of events to the configured webhooks, and reports failed deliveries.

use std::sync::Arc;

use waypost_config::{Config, Report};
use waypost_run::WebhookOutbox;
use waypost_store::PlanStore;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::load_config::Folders;

/// The position from which new webhooks receive events: the end of the log before this command writes.
pub(crate) fn since(context: &Context, config: &Config) -> Outcome<u64> {
    if any(config) { Ok(context.plans()?.latest()?) } else { Ok(0) }
}

/// Whether any webhooks are configured.
pub(crate) fn any(config: &Config) -> bool {
    let is_webhook = |report: &Report| matches!(report, Report::Webhook(_));
    config.reporters.values().any(|reporter| is_webhook(&reporter.report))
}

/// Starts the delivery, and notes the settings that have no meaning here.
pub(crate) fn start(
    context: &mut Context,
    folders: &Folders,
    config: &Arc<Config>,
    plans: &Arc<PlanStore>,
    since: u64,
) -> Outcome<WebhookOutbox> {
    context.note_ignored(config);
    Ok(WebhookOutbox::start(plans, config, &folders.execution_env(), since)?)
}

/// Reports the events that could not be delivered.
pub(crate) fn report_failures(context: &mut Context, unreported: &[String]) {
    for words in unreported {
        if context.out.json {
            let line = serde_json::json!({ "event": "report_failed", "message": words });
            context.out.line(line.to_string());
        } else {
            context.out.note(words);
        }
    }
}
