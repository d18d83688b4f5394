//! Slots of queues as file locks: they are valid for all runs of one workspace on one machine, and the system releases
//! them when a run dies, however it dies. Knows nothing of tasks. For stores that several machines share, see
//! `slots/store.rs`.
//!
//! Programs do not inherit the locks. Otherwise a program that outlives its run could keep a queue closed for as long
//! as it liked. Instead, what a dead run left behind may briefly run beside the work of its successor.

mod store;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use waypost_store::{make_state_folder, open_state_file};

pub(crate) use self::store::StoredSlots;
use crate::scheduler::SlotKeeper;

/// How long a run keeps a slot for its own tasks, one after another, while another run waits that has none.
const TURN: Duration = Duration::from_millis(100);
/// How long a run that yielded a slot takes none while others wait.
const MANNERS: Duration = Duration::from_millis(30);
/// The file that is locked by runs that wait for a slot and have none.
const WAITING: &str = "waiting";

/// Returns a queue's name as the name of a directory: unique, and never a path elsewhere.
pub(crate) fn folder_name(queue: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    queue
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

#[derive(Debug)]
struct HeldSlots {
    folder: PathBuf,
    /// The files of all slots tried so far, in order, and whether each is ours.
    slots: Vec<(File, bool)>,
    /// Locked, shared with other waiting runs, while this run has no slot and wants one.
    waiting: Option<File>,
    /// Since when this run has had slots without a break or a check for waiting runs.
    since: Option<Instant>,
    /// When it last yielded a slot to another run.
    gave: Option<Instant>,
}

impl HeldSlots {
    fn count(&self) -> usize {
        self.slots.iter().filter(|(_, ours)| *ours).count()
    }

    fn open(&self, name: &str) -> io::Result<File> {
        open_state_file(&self.folder.join(name))
    }

    fn take(&mut self, concurrency: u32) -> io::Result<bool> {
        for place in 0..concurrency as usize {
            if place == self.slots.len() {
                let file = self.open(&place.to_string())?;
                self.slots.push((file, false));
            }
            let (file, ours) = &mut self.slots[place];
            if *ours {
                continue;
            }
            match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    *ours = true;
                    self.since.get_or_insert_with(Instant::now);
                    self.waiting = None;
                    return Ok(true);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.count() == 0 && self.waiting.is_none() {
            let file = self.open(WAITING)?;
            flock(&file, FlockOperation::NonBlockingLockShared)?;
            self.waiting = Some(file);
        }
        Ok(false)
    }

    /// Whether another run waits. The exclusive lock lasts only as long as this check.
    fn others_wait(&self) -> bool {
        let Ok(file) = self.open(WAITING) else { return false };
        matches!(flock(&file, FlockOperation::NonBlockingLockExclusive), Err(rustix::io::Errno::WOULDBLOCK))
    }
}

/// The slots of the queues of one workspace.
#[derive(Debug)]
pub(crate) struct FileSlots {
    root: PathBuf,
    queues: BTreeMap<String, HeldSlots>,
}

impl FileSlots {
    /// With a directory for each queue below `root`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, queues: BTreeMap::new() }
    }

    fn held(&mut self, queue: &str) -> io::Result<&mut HeldSlots> {
        if !self.queues.contains_key(queue) {
            let folder = self.root.join(folder_name(queue));
            make_state_folder(&folder, 2)?;
            let held = HeldSlots { folder, slots: Vec::new(), waiting: None, since: None, gave: None };
            self.queues.insert(queue.to_owned(), held);
        }
        self.queues.get_mut(queue).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl SlotKeeper for FileSlots {
    fn take(&mut self, queue: &str, concurrency: u32) -> bool {
        // If nothing can be locked, a run relies on its own count.
        let Ok(held) = self.held(queue) else { return true };
        if held.gave.is_some_and(|at| at.elapsed() < MANNERS) && held.others_wait() {
            return false;
        }
        held.take(concurrency).unwrap_or(true)
    }

    fn give(&mut self, queue: &str) {
        let Some(held) = self.queues.get_mut(queue) else { return };
        if let Some((file, ours)) = held.slots.iter_mut().rev().find(|(_, ours)| *ours) {
            *ours = false;
            let _open_still = flock(&*file, FlockOperation::Unlock);
        }
        if held.count() == 0 {
            held.since = None;
        }
    }

    fn is_wanted(&mut self, queue: &str) -> bool {
        let Some(held) = self.queues.get_mut(queue) else { return false };
        if held.since.is_none_or(|since| since.elapsed() < TURN) {
            return false;
        }
        let wanted = held.others_wait();
        held.since = Some(Instant::now());
        if wanted {
            held.gave = Some(Instant::now());
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("waypost-queues-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_queue_has_so_many_slots_for_all_runs_together() {
        let root = folder("together");
        let (mut one, mut other) = (FileSlots::new(root.clone()), FileSlots::new(root.clone()));
        assert!(one.take("q", 2) && other.take("q", 2));
        assert!(!one.take("q", 2) && !other.take("q", 2));
        assert!(other.take("another/queue", 1) && !one.take("another/queue", 1));
        one.give("q");
        assert!(other.take("q", 2) && !one.take("q", 2));
        // A run that is gone holds nothing any more.
        drop(other);
        assert!(one.take("q", 2) && one.take("q", 2) && !one.take("q", 2));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn whoever_has_had_its_turn_lets_a_run_without_any_slot_go_first() {
        let root = folder("turns");
        let (mut one, mut other) = (FileSlots::new(root.clone()), FileSlots::new(root.clone()));
        let began = Instant::now();
        assert!(one.take("q", 1) && !one.is_wanted("q"));
        assert!(!other.take("q", 1));
        while !one.is_wanted("q") {
            assert!(began.elapsed() < Duration::from_secs(120), "the other waits for ever");
            std::thread::yield_now();
        }
        assert!(began.elapsed() >= TURN, "it has its turn");
        one.give("q");
        assert!(!one.take("q", 1), "the other is let first");
        assert!(other.take("q", 1));
        fs::remove_dir_all(root).unwrap();
    }
}
