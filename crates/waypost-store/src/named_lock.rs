//! Named locks: at most one of all processes that share a store holds each, for work that must not be done twice. A
//! lock does not know what it protects.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Seconds after which a store that several machines share considers the holder of a lock dead if it does not renew it.
pub const HOLD_SECONDS: u64 = 15;

/// A lock that this process holds and no other. Dropping it releases it; the end of the process releases it at the
/// latest after [`HOLD_SECONDS`].
pub trait NamedLock: Send {
    /// Returns whether this process is known to hold the lock still. A process that was stopped or disconnected for too
    /// long may have lost it to another.
    fn holds(&self) -> bool;
}

/// A lock that is always free: no other process shares the store.
pub(crate) struct Unshared;

impl NamedLock for Unshared {
    fn holds(&self) -> bool {
        true
    }
}

/// A locked file. The operating system unlocks it when the process ends, in whatever way.
struct Locked {
    _file: File,
}

impl NamedLock for Locked {
    fn holds(&self) -> bool {
        true
    }
}

/// Locks a file; returns `None` when another process holds it. Where files cannot be locked, the lock counts as free.
pub(crate) fn by_file(path: &Path) -> Option<Box<dyn NamedLock>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let Ok(file) = file else { return Some(Box::new(Unshared)) };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(Box::new(Locked { _file: file })),
        Err(Errno::WOULDBLOCK) => None,
        Err(_) => Some(Box::new(Unshared)),
    }
}
