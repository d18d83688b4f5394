//! How often a run reads what others have written. Each of many workers is notified of each write of all others, and
//! most of these writes do not concern it.

use std::time::{Duration, Instant};

/// The wait after a read that brought nothing to do: doubled each time, up to the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(32);
/// The wait while nothing that others write could start here: until a task of this run ends, which is a write of its own.
/// It is also the longest time without a read: other plans than the written one may have been paused.
const PAUSE_WITHOUT_ROOM: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct PollBackoff {
    /// The last read.
    read: Instant,
    /// The last read, or the last write that showed as much.
    looked: Instant,
    pause: Duration,
    /// How long the last read took, if the store is slow: as much time passes before the next, so that writes get their turn.
    rest: Duration,
    /// Whether the run has written anything since its last read.
    wrote: bool,
}

impl PollBackoff {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { read: now, looked: now, pause: Duration::ZERO, rest: Duration::ZERO, wrote: true }
    }

    /// Records a write of the run. While the run is busy, its own writes to a shared plan also show it the writes of
    /// others.
    pub(super) fn wrote(&mut self, is_busy: bool) {
        self.wrote = true;
        if is_busy {
            (self.looked, self.pause) = (Instant::now(), PAUSE_MAX);
        }
    }

    /// Records that the run reads now.
    pub(super) fn looked(&mut self) {
        let was_quiet = self.looked.elapsed() >= 2 * PAUSE_MAX;
        self.pause = match std::mem::take(&mut self.wrote) || was_quiet {
            true => Duration::ZERO,
            false => (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX),
        };
        self.read = Instant::now();
        self.looked = self.read;
    }

    /// Records that the read is done.
    pub(super) fn has_read(&mut self) {
        let took = self.read.elapsed();
        self.rest = if took > 2 * PAUSE_MAX { 2 * took } else { Duration::ZERO };
    }

    /// Returns when to read next, if there is a notification. `has_room`: whether this run could start something.
    pub(super) fn next_look(&self, has_room: bool) -> Instant {
        let pause = if has_room { self.pause } else { PAUSE_WITHOUT_ROOM };
        (self.looked + pause).min(self.read + PAUSE_WITHOUT_ROOM).max(self.read + self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(pacing: &PollBackoff) -> Duration {
        pacing.next_look(true) - pacing.looked
    }

    #[test]
    fn looks_that_bring_nothing_become_rare_and_one_that_does_is_followed_at_once() {
        let mut pacing = PollBackoff::new();
        pacing.looked();
        assert_eq!(pause(&pacing), Duration::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            // As if the read had been a moment ago, however slow this machine is.
            pacing.looked = Instant::now();
            pacing.looked();
            pauses.push(pause(&pacing).as_millis());
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 32]);
        pacing.wrote(false);
        pacing.looked();
        assert_eq!(pause(&pacing), Duration::ZERO);
    }

    #[test]
    fn a_read_that_took_long_is_followed_by_as_much_time_for_writes() {
        let mut pacing = PollBackoff::new();
        pacing.looked();
        pacing.read = pacing.read.checked_sub(Duration::from_secs(60)).unwrap_or(pacing.read);
        pacing.has_read();
        assert!(pacing.next_look(true) >= pacing.read + Duration::from_secs(120));
    }

    #[test]
    fn who_is_busy_hears_of_others_by_its_own_writes() {
        let mut pacing = PollBackoff::new();
        pacing.wrote(true);
        assert_eq!(pause(&pacing), PAUSE_MAX);
    }

    #[test]
    fn who_has_no_room_reads_seldom_however_often_it_writes() {
        let mut pacing = PollBackoff::new();
        pacing.looked();
        assert_eq!(pacing.next_look(false), pacing.read + PAUSE_WITHOUT_ROOM);
        pacing.looked = pacing.read + PAUSE_WITHOUT_ROOM;
        pacing.pause = PAUSE_MAX;
        assert_eq!(pacing.next_look(true), pacing.read + PAUSE_WITHOUT_ROOM, "a write puts a read off");
        assert_eq!(pacing.next_look(false), pacing.read + PAUSE_WITHOUT_ROOM);
    }
}
