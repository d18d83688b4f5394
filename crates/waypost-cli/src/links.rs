//! Linked folders: plans that stay files of another program. Before and after a command, files that were edited are written into
//! their plans, and plans that have changed into their files.
//!
//! A file is untrusted text: it is taken in with the rights of an agent, whoever runs the command, and brings no approval. Knows
//! neither the formats nor the rules of a plan.

mod record;
mod sync;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use waypost_store::PlanStore;

pub use self::record::Link;
pub use self::sync::{FileChange, Reporting, Synced, sync};
use crate::context::{Context, open_store};
use crate::error::{Failure, Outcome};

/// How often a server compares linked files with their plans.
const INTERVAL: Duration = Duration::from_secs(1);

/// When a command keeps linked files and plans together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Never: it has nothing to do with plans.
    Never,
    /// Before it begins and when it has ended.
    Around,
    /// Also meanwhile: it takes long.
    Always,
}

/// Runs a command, and keeps linked files and plans together around it.
pub fn around(
    context: &mut Context,
    keeping: Keeping,
    command: impl FnOnce(&mut Context) -> Outcome,
) -> Outcome {
    // Most workspaces have no link, and a command that finds no workspace says so itself.
    let has_links = || context.folders().is_ok_and(|folders| Link::are_in(&folders));
    if keeping == Keeping::Never || !has_links() {
        return command(context);
    }
    let before = sync_all(context);
    before.iter().for_each(|note| context.out.note(note));
    let meanwhile =
        (keeping == Keeping::Always).then(|| Meanwhile::begin(context.for_background())).transpose()?;
    let outcome = command(context);
    drop(meanwhile);
    let after = sync_all(context).into_iter().filter(|note| !before.contains(note));
    after.for_each(|note| context.out.note_now(note));
    outcome
}

/// Synchronizes all links. Returns what somebody should know.
fn sync_all(context: &Context) -> Vec<String> {
    match sync_links(context) {
        Ok(notes) => notes,
        Err(failure) => vec![format!("linked folders were left alone: {}", failure.one_line())],
    }
}

fn sync_links(context: &Context) -> Outcome<Vec<String>> {
    let place = context.store_location()?;
    let (folders, mut notes) = (context.folders()?, Vec::new());
    for link in Link::of_others(&folders)?.iter().filter(|link| link.is_of(&place)) {
        // A stranger may have chosen its name, so it is in no command.
        let words = "was linked elsewhere and is left alone: `waypost link FOLDER` links it here";
        notes.push(format!("{} {words}", link.shown()));
    }
    let mut links: Vec<Link> = Link::all(&folders)?.into_iter().filter(|link| link.is_of(&place)).collect();
    if links.is_empty() {
        return Ok(notes);
    }
    let plans = context.plans_to_add_to()?;
    for link in &mut links {
        match sync(context, &plans, link, Reporting::Now) {
            Ok(synced) => notes.extend(synced.notes),
            Err(failure) => notes.push(format!("{} was left alone: {}", link.shown(), failure.one_line())),
        }
    }
    Ok(notes)
}

/// A thread that keeps files and plans together while a command runs.
struct Meanwhile {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Meanwhile {
    fn begin(context: Context) -> Outcome<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("links".to_owned());
        let thread = thread.spawn(move || keep(&context, &stopped));
        let thread =
            thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, the files are compared once more after the command.
            let _ended = thread.join();
        }
    }
}

fn keep(context: &Context, stopped: &Receiver<()>) {
    let opened = context.store_location().and_then(|place| open_store(&place));
    let Ok(store) = opened else { return };
    let plans = Arc::new(PlanStore::new(store));
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let links = context.folders().and_then(|folders| Link::all(&folders)).unwrap_or_default();
        let place = context.store_location();
        for mut link in links.into_iter().filter(|link| place.as_ref().is_ok_and(|place| link.is_of(place))) {
            // A screen or a protocol may be on this terminal. What fails now is tried again after the command.
            let _synced = sync(context, &plans, &mut link, Reporting::Later);
        }
    }
}
