//! The context of effects on every thread: the stores, the caller, and the sender to the event loop.

use std::sync::Arc;

use waypost_service::Caller;

use super::workspace::Workspace;
use crate::messages::{Message, Reply};
use crate::note::{ErrorMessage, Note, NoteKind};

/// Sends a message to the event loop.
pub(crate) type MessageSender = Arc<dyn Fn(Message) + Send + Sync>;

#[derive(Clone)]
pub(super) struct EffectContext {
    workspaces: Arc<Vec<Workspace>>,
    pub(super) by: Caller,
    send: MessageSender,
}

impl EffectContext {
    pub(super) fn new(workspaces: Vec<Workspace>, by: Caller, send: MessageSender) -> Self {
        Self { workspaces: Arc::new(workspaces), by, send }
    }

    pub(super) fn stores(&self) -> usize {
        self.workspaces.len()
    }

    pub(super) fn workspace(&self, store: usize) -> Result<&Workspace, ErrorMessage> {
        self.workspaces.get(store).ok_or_else(|| ErrorMessage {
            what: "this store is no longer open".to_owned(),
            hint: "restart the program".to_owned(),
        })
    }

    pub(super) fn send(&self, message: Message) {
        (self.send)(message);
    }

    pub(super) fn reply(&self, reply: Reply) {
        self.send(Message::Reply(reply));
    }

    pub(super) fn warn(&self, text: String) {
        self.reply(Reply::Note(Note { kind: NoteKind::Warning, text }));
    }

    pub(super) fn notify_error(&self, error: &ErrorMessage) {
        self.reply(Reply::Note(error.note()));
    }
}
