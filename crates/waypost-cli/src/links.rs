//! Linked folders: plans that stay files of another program. Before and after a command, files that were edited are written into
//! their plans, and plans that have changed into their files.
//!
//! A file is untrusted text: it is taken in with the rights of an agent, whoever runs the command, and brings no approval. Knows
//! neither the formats nor the rules of a plan.

mod record;
mod sync;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use waypost_store::PlanStore;

pub use self::record::{Link, LinkedFile};
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
    Always(Telling),
}

/// When a command that takes long names what somebody should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// As soon as it is noticed, on stderr.
    AtOnce,
    /// The same unless stderr is a terminal, where progress is drawn.
    IntoLogs,
    /// When it has ended: it draws on the screen.
    Afterwards,
}

impl Telling {
    /// Whether something is named on stderr as soon as it is noticed.
    pub fn is_at_once(self) -> bool {
        match self {
            Self::AtOnce => true,
            Self::IntoLogs => !std::io::stderr().is_terminal(),
            Self::Afterwards => false,
        }
    }
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
    let mut told = sync_all(context);
    let Keeping::Always(telling) = keeping else {
        told.iter().for_each(|note| context.out.note(note));
        let outcome = command(context);
        tell_the_rest(context, &told);
        return outcome;
    };
    // The output of a command that takes long may come much later, or never.
    told.iter().for_each(|note| context.out.note_now(note));
    let meanwhile = Meanwhile::begin(context.for_background(), telling, told.clone())?;
    let outcome = command(context);
    told.extend(meanwhile.end());
    tell_the_rest(context, &told);
    outcome
}

/// Synchronizes all links after a command, and names what was not named before.
fn tell_the_rest(context: &Context, told: &[String]) {
    let rest = sync_all(context).into_iter().filter(|note| !told.contains(note));
    rest.for_each(|note| context.out.note_now(note));
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
    stop: Sender<()>,
    thread: JoinHandle<Vec<String>>,
}

impl Meanwhile {
    fn begin(context: Context, telling: Telling, named: Vec<String>) -> Outcome<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("links".to_owned());
        let thread = thread.spawn(move || keep(&context, telling, named, &stopped));
        let thread =
            thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread. Returns what it has named.
    fn end(self) -> Vec<String> {
        drop(self.stop);
        // If it panicked, the files are compared once more after the command.
        self.thread.join().unwrap_or_default()
    }
}

/// Keeps files and plans together until it is stopped. `named` are the notes about files that were left alone so far; returns those
/// of now.
fn keep(context: &Context, telling: Telling, mut named: Vec<String>, stopped: &Receiver<()>) -> Vec<String> {
    let opened = context.store_location().and_then(|place| open_store(&place));
    let Ok(store) = opened else { return named };
    let plans = Arc::new(PlanStore::new(store));
    let reporting = if telling.is_at_once() { Reporting::Now } else { Reporting::Later };
    let mut before = named.clone();
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let mut left = Vec::new();
        let links = context.folders().and_then(|folders| Link::all(&folders)).unwrap_or_default();
        let place = context.store_location();
        for mut link in links.into_iter().filter(|link| place.as_ref().is_ok_and(|place| link.is_of(place))) {
            // What fails now is tried again after the command.
            let Ok(Synced { changes, notes }) = sync(context, &plans, &mut link, reporting) else { continue };
            left.extend(
                changes
                    .iter()
                    .filter(|change| change.is_left_alone())
                    .filter_map(|change| change.note.clone()),
            );
            for note in notes {
                // A program may be writing a file at this moment. If it is left alone again, it has not.
                let is_news = !left.contains(&note) || before.contains(&note) && !named.contains(&note);
                if is_news {
                    context.out.note_now(&note);
                    named.push(note);
                }
            }
        }
        named.retain(|note| left.contains(note));
        before = left;
    }
    named
}
