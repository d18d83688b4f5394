//! Expired leases of processes that are alive. The clocks of two processes can differ, even on one machine, so the time in
//! a lease alone does not prove that its holder is stuck: it is, if the lease is not renewed while this process watches.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use waypost_core::Timestamp;
use waypost_exec::AttemptKey;

/// The expired leases that are watched, with the end that each had and since when.
#[derive(Debug, Default)]
pub(super) struct ExpiredLeases(BTreeMap<AttemptKey, (Option<Timestamp>, Instant)>);

impl ExpiredLeases {
    /// Whether the expired lease of a live process was left as it is for as long as a lease lasts.
    pub(super) fn is_abandoned(
        &mut self,
        key: &AttemptKey,
        until: Option<Timestamp>,
        now: Instant,
        lease: Duration,
    ) -> bool {
        let watched = self.0.entry(key.clone()).or_insert((until, now));
        if watched.0 != until {
            *watched = (until, now);
        }
        now.duration_since(watched.1) >= lease
    }

    /// Forgets the leases that are no longer expired.
    pub(super) fn keep(&mut self, is_expired: impl Fn(&AttemptKey) -> bool) {
        self.0.retain(|key, _| is_expired(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waypost_core::{PlanId, TaskId};

    #[test]
    fn a_live_process_that_renews_its_lease_keeps_it_whatever_its_clock_says() {
        let key = AttemptKey::new(&PlanId::new("p").unwrap(), &TaskId::new("a").unwrap(), 1);
        let (begin, lease) = (Instant::now(), Duration::from_secs(15));
        let mut leases = ExpiredLeases::default();
        let until = |second| Some(Timestamp::from_micros(second));
        let mut look = |second: u64, end| {
            leases.is_abandoned(&key, until(end), begin + Duration::from_secs(second), lease)
        };
        assert!(!look(0, 1) && !look(14, 1));
        // It was renewed.
        assert!(!look(15, 2) && !look(29, 2));
        assert!(look(30, 2), "it is stuck");
        leases.keep(|_| false);
        assert!(!leases.is_abandoned(&key, until(2), begin + Duration::from_secs(31), lease));
    }
}
