//! Waits until a store may have been written, without polling. Does not know what was written.
//!
//! A store on a disk has a signal file next to it, which every writer opens and closes once its commit is visible.
//! Watching the database's own files is not enough: they change before the commit is visible, and no event marks when
//! it becomes visible.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::dirs::FILE_MODE;
use crate::error::Result;

/// Minimum time between two reports of a watch: a busy writer wakes a reader at most a hundred times a second.
pub const WATCH_PAUSE: Duration = Duration::from_millis(10);
/// Time between two reports where the system does not report writes, as on network file systems.
pub const WATCH_SLOWLY: Duration = Duration::from_secs(1);

/// Reports that a process, this one included, may have written.
pub trait Watch: Send {
    /// Waits until something may have been written since the last report, or since the watch began; at most `at_most`.
    /// Returns whether something may have been written. A write between a report and the next call is reported by that
    /// call, so a reader that reads after each report misses nothing.
    fn wait(&mut self, at_most: Duration) -> Result<bool>;
}

/// The signal file of a store on a disk, touched by its writers.
#[derive(Debug)]
pub(crate) struct ChangeSignal {
    path: PathBuf,
    /// Open from the first write on: if this process dies between a commit and its signal, the operating system closes
    /// the file, which is a signal.
    held: OnceLock<Option<File>>,
}

impl ChangeSignal {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, held: OnceLock::new() }
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(&self.path)
    }

    /// Opens the file. Must be called before the first commit.
    pub(crate) fn keep_open(&self) {
        self.held.get_or_init(|| self.open().ok());
    }

    /// Wakes all watchers. Closing a file that was open for writing is an event although nothing is written to the
    /// disk. If the file cannot be opened, watchers learn of the commit later.
    pub(crate) fn ring(&self) {
        drop(self.open());
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        // The folder is watched and not the file, so the file need not exist and may be replaced.
        match system::Inotify::at(&self.path) {
            Some(ears) => Box::new(SignalWatch { ears, reported: None }),
            None => Box::new(SlowWatch { reported: Instant::now() }),
        }
    }
}

pub(crate) use system::pause;

/// Returns the time from now until `until`, or `None` once it has passed.
fn left(until: Instant) -> Option<Duration> {
    Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

struct SignalWatch {
    ears: system::Inotify,
    reported: Option<Instant>,
}

impl Watch for SignalWatch {
    fn wait(&mut self, at_most: Duration) -> Result<bool> {
        let until = Instant::now() + at_most;
        if let Some(rest) = self.reported.and_then(|at| left((at + WATCH_PAUSE).min(until))) {
            system::pause(rest);
        }
        loop {
            if self.reported.is_none_or(|at| left(at + WATCH_PAUSE).is_none()) && self.ears.has_event() {
                self.reported = Some(Instant::now());
                return Ok(true);
            }
            let Some(rest) = left(until) else { return Ok(false) };
            self.ears.listen(rest);
        }
    }
}

/// The fallback where the system does not report writes.
struct SlowWatch {
    reported: Instant,
}

impl Watch for SlowWatch {
    fn wait(&mut self, at_most: Duration) -> Result<bool> {
        let due = self.reported + WATCH_SLOWLY;
        let until = (Instant::now() + at_most).min(due);
        while let Some(rest) = left(until) {
            system::pause(rest);
        }
        let is_due = left(due).is_none();
        if is_due {
            self.reported = Instant::now();
        }
        Ok(is_due)
    }
}

/// The change signal of a store in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemorySignal(Arc<(Mutex<u64>, Condvar)>);

impl MemorySignal {
    pub(crate) fn ring(&self) {
        let (rings, changed) = &*self.0;
        *rings.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        changed.notify_all();
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        let heard = *self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::new(MemoryWatch { bell: self.clone(), heard, reported: None })
    }
}

struct MemoryWatch {
    bell: MemorySignal,
    heard: u64,
    reported: Option<Instant>,
}

impl Watch for MemoryWatch {
    fn wait(&mut self, at_most: Duration) -> Result<bool> {
        let until = Instant::now() + at_most;
        let (rings, changed) = &*self.bell.0;
        let mut now = rings.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let pause = self.reported.and_then(|at| left(at + WATCH_PAUSE));
            if *now != self.heard && pause.is_none() {
                (self.heard, self.reported) = (*now, Some(Instant::now()));
                return Ok(true);
            }
            let Some(rest) = left(until) else { return Ok(false) };
            // With a change pending, only the pause remains to be waited for.
            let rest = if *now != self.heard { pause.unwrap_or(rest).min(rest) } else { rest };
            now = changed.wait_timeout(now, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Waits for events of the files of a folder.
#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsString;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{inotify, statfs};
    use rustix::io::Errno;

    use super::{WATCH_SLOWLY, left};

    /// File systems whose remote changes this system does not see: NFS, SMB, CIFS, SMB2, AFS, 9P, Ceph, FUSE.
    const DEAF: [u32; 8] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x0102_1997, 0x00c3_6400, 0x6573_5546];

    pub(super) struct Inotify {
        inotify: OwnedFd,
        name: OsString,
        /// Set once the folder was removed. There are no more events then, so the watch polls.
        deaf: Option<Instant>,
    }

    impl Inotify {
        pub(super) fn at(bell: &Path) -> Option<Self> {
            let folder = bell.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if statfs(folder).is_ok_and(|found| DEAF.contains(&(found.f_type as u32))) {
                return None;
            }
            let inotify =
                inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok()?;
            let events = inotify::WatchFlags::CLOSE_WRITE
                | inotify::WatchFlags::MOVED_TO
                | inotify::WatchFlags::DELETE
                | inotify::WatchFlags::MOVE_SELF
                | inotify::WatchFlags::ONLYDIR;
            inotify::add_watch(&inotify, folder, events).ok()?;
            Some(Self { inotify, name: bell.file_name()?.to_owned(), deaf: None })
        }

        /// Returns whether the file was touched since the last call.
        pub(super) fn has_event(&mut self) -> bool {
            if let Some(since) = self.deaf {
                let is_due = left(since + WATCH_SLOWLY).is_none();
                if is_due {
                    self.deaf = Some(Instant::now());
                }
                return is_due;
            }
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
            let mut heard = false;
            loop {
                match reader.next() {
                    Ok(event) => {
                        // The folder was moved away or removed, or some events were not kept.
                        let lost = event.events().intersects(
                            inotify::ReadFlags::QUEUE_OVERFLOW
                                | inotify::ReadFlags::IGNORED
                                | inotify::ReadFlags::MOVE_SELF,
                        );
                        if event.events().contains(inotify::ReadFlags::IGNORED) {
                            self.deaf = Some(Instant::now());
                        }
                        // A folder whose files are open is not reported as removed, but the files are: also the
                        // database, with whose name that of its signal file begins.
                        let is_deleted = event.events().contains(inotify::ReadFlags::DELETE);
                        let is_ours = event.file_name().is_some_and(|name| match is_deleted {
                            true => self.name.as_bytes().starts_with(name.to_bytes()),
                            false => name.to_bytes() == self.name.as_bytes(),
                        });
                        heard |= lost || is_ours;
                    }
                    Err(Errno::INTR) => {}
                    Err(_) => return heard,
                }
            }
        }

        /// Waits until there may be an event.
        pub(super) fn listen(&self, at_most: Duration) {
            if self.deaf.is_some() {
                return pause(at_most.min(WATCH_SLOWLY));
            }
            let _either = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], Some(&timespec(at_most)));
        }
    }

    fn timespec(span: Duration) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        }
    }

    /// Sleeps for `span`, or less if a signal interrupts it.
    pub(crate) fn pause(span: Duration) {
        let _interrupted = poll(&mut [], Some(&timespec(span)));
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;
    use std::time::Duration;

    use rustix::event::{Timespec, poll};

    /// This system has no inotify.
    pub(super) enum Inotify {}

    impl Inotify {
        pub(super) fn at(_: &Path) -> Option<Self> {
            None
        }
        pub(super) fn has_event(&mut self) -> bool {
            match *self {}
        }
        pub(super) fn listen(&self, _: Duration) {
            match *self {}
        }
    }

    /// Sleeps for `span`, or less if a signal interrupts it.
    pub(crate) fn pause(span: Duration) {
        let span = Timespec { tv_sec: span.as_secs() as _, tv_nsec: span.subsec_nanos() as _ };
        let _interrupted = poll(&mut [], Some(&span));
    }
}

/// Watches a file that others write or replace, as editors do. Each report means that its content may have changed.
pub fn watch_file(path: &Path) -> Box<dyn Watch> {
    ChangeSignal::new(path.to_owned()).watch()
}

/// Returns the path of a file next to a database file: its name with `-` and `what` appended.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{what}"));
    path.with_file_name(name)
}
