//! Models that record their answers in a journal, and models that replay one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ModelRequest;

use super::journal::{Entry, Journal, JournalError, JournalLine, read_journal};
use super::{CallEvent, Model, ModelError, Progress, Reply, Stop};

/// Records the answers of a model: each request is answered once, however often the process dies.
pub struct Recorded<M> {
    model: M,
    journal: Arc<Journal>,
}

impl<M: Model> Recorded<M> {
    /// Records the answers of `model` in this journal, and sends no request that is answered there.
    pub fn new(model: M, journal: Arc<Journal>) -> Self {
        Self { model, journal }
    }
}

impl<M: Model> Model for Recorded<M> {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        if let Some(entry) = self.journal.find(&ask.slot) {
            let reply = entry.reply();
            progress.on_event(ask, &CallEvent::Answered { reply: &reply });
            return Ok(reply);
        }
        let keeping = Keeping { journal: &self.journal, progress, kept: Mutex::new(Ok(0)) };
        let answer = self.model.ask(ask, &keeping, stop);
        let kept = keeping.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(reply) => {
                let reply = self.journal.keep(ask, reply)?;
                kept?;
                Ok(reply)
            }
            Err(error) => {
                // A call that was cancelled before any request was sent has nothing to record.
                if kept? == 0 && error != ModelError::Stopped {
                    self.journal.keep_error(ask, &error, None)?;
                }
                Err(error)
            }
        }
    }
}

/// Records every call that ends without an answer, before the caller is notified.
struct Keeping<'a> {
    journal: &'a Journal,
    progress: &'a dyn Progress,
    kept: Mutex<Result<u32, JournalError>>,
}

impl Progress for Keeping<'_> {
    fn on_event(&self, ask: &ModelRequest, moment: &CallEvent<'_>) {
        if let CallEvent::Failed { why, lost } = moment {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(count) = &mut *kept {
                match self.journal.keep_error(ask, why, *lost) {
                    Ok(()) => *count += 1,
                    Err(error) => *kept = Err(error),
                }
            }
        }
        self.progress.on_event(ask, moment);
    }
}

/// Answers from a journal, and never from the network.
#[derive(Debug)]
pub struct Replayed {
    file: String,
    /// By slot, then by the fingerprint of the request: a goal that was rolled back or reworded has several requests.
    answers: BTreeMap<String, BTreeMap<String, Entry>>,
}

impl Replayed {
    /// Reads the journal. Answers that were forgotten later count, because they were used when they were given. Of
    /// several answers to the same request the last one counts: it is the one that stayed.
    pub fn read(path: &Path) -> Result<Self, JournalError> {
        let mut answers: BTreeMap<String, BTreeMap<String, Entry>> = BTreeMap::new();
        for line in read_journal(path)? {
            match line {
                JournalLine::Answered { entry, .. } => {
                    let of_slot = answers.entry(entry.slot.clone()).or_default();
                    of_slot.insert(entry.fingerprint.clone(), entry);
                }
                JournalLine::Begun { .. } | JournalLine::Failed { .. } | JournalLine::Forgotten { .. } => {}
            }
        }
        Ok(Self { file: path.display().to_string(), answers })
    }
}

impl Model for Replayed {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        if stop.is_cancelled() {
            return Err(ModelError::Stopped);
        }
        let (slot, file) = (ask.slot.clone(), self.file.clone());
        let Some(of_slot) = self.answers.get(&slot) else {
            return Err(ModelError::NotRecorded { slot, file });
        };
        let Some(entry) = of_slot.get(&ask.fingerprint()) else {
            return Err(ModelError::Departed { slot, file });
        };
        // The answer is new to the caller, and is charged as it was the first time.
        let reply = Reply { recalled: false, ..entry.reply() };
        progress.on_event(ask, &CallEvent::Answered { reply: &reply });
        Ok(reply)
    }
}
