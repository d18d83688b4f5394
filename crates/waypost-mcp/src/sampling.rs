//! The host's own model through MCP sampling: one more model for the planner. Hosts of the newest protocol accept no requests from
//! servers, so they have none.

use std::time::Duration;

#[expect(deprecated, reason = "the newest protocol has no sampling; hosts of the others still offer it")]
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock,
};
use rmcp::{Peer, RoleServer};
use tokio::runtime::Handle;
use waypost_llm::token_estimate::{estimate, estimate_ask};
use waypost_llm::{CallEvent, Model, ModelError, Progress, Reply, Stop};
use waypost_planner::{Answer, Ended, ModelRequest, Speaker};

/// The longest that the host may take for one reply: a person may review the request first.
pub(crate) const SAMPLING_SECONDS_MAX: u32 = 600;

/// The model of the host at the other end of a call.
#[derive(Clone)]
pub(crate) struct Sampler {
    peer: Peer<RoleServer>,
    runtime: Handle,
    /// The name of the host.
    name: String,
}

impl Sampler {
    /// Must be called inside the runtime. Only threads that may block can use the sampler.
    pub(crate) fn new(peer: Peer<RoleServer>, name: String) -> Self {
        Self { peer, runtime: Handle::current(), name }
    }
}

impl Model for Sampler {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        if stop.is_cancelled() {
            return Err(ModelError::Stopped);
        }
        progress.on_event(ask, &CallEvent::Asked { model: &self.name, attempt: 1 });
        let model = || self.name.clone();
        let answered = self.runtime.block_on(create(&self.peer, ask));
        let result = match answered {
            Some(Ok(result)) => result,
            Some(Err(why)) => return Err(ModelError::NotReached { model: model(), why }),
            None => return Err(ModelError::TooSlow { model: model(), seconds: SAMPLING_SECONDS_MAX }),
        };
        let reply = Reply { answer: answer(ask, result), from: model(), cost: None, recalled: false };
        progress.on_event(ask, &CallEvent::Answered { reply: &reply });
        Ok(reply)
    }
}

/// Returns `None` if the host takes too long.
#[expect(deprecated, reason = "the newest protocol has no sampling; hosts of the others still offer it")]
async fn create(peer: &Peer<RoleServer>, ask: &ModelRequest) -> Option<Result<CreateMessageResult, String>> {
    let turns = ask.turns.iter().map(|turn| match turn.by {
        Speaker::User => SamplingMessage::user_text(&turn.text),
        Speaker::Assistant => SamplingMessage::assistant_text(&turn.text),
    });
    let request = CreateMessageRequestParams::new(turns.collect(), ask.tokens_max)
        .with_system_prompt(&ask.system)
        .with_temperature(ask.temperature as f32 / 100.0);
    let asked = peer.create_message(request);
    let waited = tokio::time::timeout(Duration::from_secs(u64::from(SAMPLING_SECONDS_MAX)), asked).await;
    Some(waited.ok()?.map_err(|error| error.to_string()))
}

/// Estimates the token counts, because hosts do not report them.
#[expect(deprecated, reason = "the newest protocol has no sampling; hosts of the others still offer it")]
fn answer(ask: &ModelRequest, result: CreateMessageResult) -> Answer {
    let is_cut = result.stop_reason.as_deref() == Some(CreateMessageResult::STOP_REASON_END_MAX_TOKEN);
    let blocks = result.message.content.into_vec().into_iter();
    let texts = blocks.filter_map(|block| {
        let SamplingMessageContentBlock::Text(text) = block else { return None };
        Some(text.text)
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    Answer {
        ended: if is_cut { Ended::Cut } else { Ended::Whole },
        model: result.model,
        tokens_in: estimate_ask(ask),
        tokens_out: estimate(&text),
        estimated: true,
        text,
    }
}
