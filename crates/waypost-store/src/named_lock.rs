//! What only one of all processes that share a store may have at a time: the right to do something that must not be done
//! twice. Says who has it, not what it is for.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Seconds for which a store that any number of machines share believes that a holder lives when it hears nothing of it.
pub const HOLD_SECONDS: u64 = 15;

/// Something that this process has and no other. Dropping it gives it back; so does the end of the process, at the latest
/// after [`HOLD_SECONDS`].
pub trait NamedLock: Send {
    /// Whether it is known to be ours still. What was stopped or cut off for too long may have lost it to another.
    fn holds(&self) -> bool;
}

/// A lock that is always free: no other process shares the store.
pub(crate) struct Unshared;

impl NamedLock for Unshared {
    fn holds(&self) -> bool {
        true
    }
}

/// A locked file. The system unlocks it when the process ends, however it does.
struct Locked {
    _file: File,
}

impl NamedLock for Locked {
    fn holds(&self) -> bool {
        true
    }
}

/// Locks a file; nothing when another has it. Where nothing can be locked there is nobody to agree with.
pub(crate) fn by_file(path: &Path) -> Option<Box<dyn NamedLock>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let Ok(file) = file else { return Some(Box::new(Unshared)) };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(Box::new(Locked { _file: file })),
        Err(Errno::WOULDBLOCK) => None,
        Err(_) => Some(Box::new(Unshared)),
    }
}
