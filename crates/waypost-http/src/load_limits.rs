//! What callers may use at the same time: memory for large plans and bodies, and event streams. Knows no route.
//!
//! A request for a large plan or with a large body waits until the plans and bodies that are being worked on leave room
//! for it, so that the memory of the server does not grow with the number of requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Tasks of large plans that are worked on at the same time. A larger plan is worked on alone.
pub const TASKS_AT_ONCE_MAX: usize = 100_000;
/// A plan up to this size is always worked on at once.
const SMALL_PLAN_TASKS: usize = 1_000;
/// A body up to this size is always read at once.
const SMALL_BODY_BYTES: usize = 64 * 1024;
/// Bytes of a body that may become a task.
const TASK_BYTES: usize = 32;
/// Maximum number of requests of one token that wait for, or work on, something large.
pub const LARGE_REQUESTS_PER_TOKEN_MAX: usize = 16;
/// How long a request waits for its permit, in seconds.
const PERMIT_SECONDS_MAX: u64 = 60;
/// Maximum number of event streams of one token.
pub const STREAMS_PER_TOKEN_MAX: usize = 256;
/// Maximum number of event streams. The other connections are for requests.
pub const STREAMS_MAX: usize = 512;
/// Maximum number of objects and lines in a body: each may become a task, which needs far more memory than its text.
pub const BODY_PARTS_MAX: usize = 100_000;

/// Why a request gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Overload {
    #[error("this token has {LARGE_REQUESTS_PER_TOKEN_MAX} requests for large plans open")]
    LargeRequests,
    #[error("this token has {STREAMS_PER_TOKEN_MAX} event streams open")]
    Streams,
    #[error("{STREAMS_MAX} event streams are open")]
    AllStreams,
    #[error("the server is busy with other large plans")]
    NoPermit,
}

/// Counts what each token uses.
#[derive(Clone, Debug, Default)]
struct PerToken(Arc<Mutex<BTreeMap<String, usize>>>);

impl PerToken {
    fn total(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    fn take(&self, token: &str, max: usize) -> Option<Counted> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(token.to_owned()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Counted { all: self.clone(), token: token.to_owned() })
    }
}

/// One use, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    all: PerToken,
    token: String,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.token);
            }
        }
    }
}

/// Permit for something large, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _tasks: OwnedSemaphorePermit,
    _counted: Counted,
}

/// The permit of a request, once it has one. A request has at most one: two that each waited for a second could wait for
/// each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestPermit(Arc<OnceLock<Permit>>);

impl RequestPermit {
    /// Whether the request is for something large.
    pub(crate) fn is_given(&self) -> bool {
        self.0.get().is_some()
    }
}

/// What all callers use.
pub(crate) struct LoadLimits {
    tasks: Arc<Semaphore>,
    large: PerToken,
    streams: PerToken,
}

impl Default for LoadLimits {
    fn default() -> Self {
        let tasks = Arc::new(Semaphore::new(TASKS_AT_ONCE_MAX));
        Self { tasks, large: PerToken::default(), streams: PerToken::default() }
    }
}

impl LoadLimits {
    /// Waits until there is room for a plan with this many tasks; for any plan, if the number is not known. A small plan
    /// needs no permit.
    pub(crate) async fn permit_for_plan(
        &self,
        request: &RequestPermit,
        token: &str,
        tasks: Option<usize>,
    ) -> Result<(), Overload> {
        match tasks {
            Some(..=SMALL_PLAN_TASKS) => Ok(()),
            tasks => self.give(request, token, tasks.unwrap_or(TASKS_AT_ONCE_MAX)).await,
        }
    }

    /// Waits until there is room for a body of this size. A small one needs no permit.
    pub(crate) async fn permit_for_body(
        &self,
        request: &RequestPermit,
        token: &str,
        bytes: usize,
    ) -> Result<(), Overload> {
        match bytes {
            ..=SMALL_BODY_BYTES => Ok(()),
            bytes => self.give(request, token, bytes / TASK_BYTES).await,
        }
    }

    async fn give(&self, request: &RequestPermit, token: &str, tasks: usize) -> Result<(), Overload> {
        if !request.is_given() {
            let _first = request.0.set(self.permit(token, tasks).await?);
        }
        Ok(())
    }

    async fn permit(&self, token: &str, tasks: usize) -> Result<Permit, Overload> {
        let counted = self.large.take(token, LARGE_REQUESTS_PER_TOKEN_MAX).ok_or(Overload::LargeRequests)?;
        let tasks = u32::try_from(tasks.min(TASKS_AT_ONCE_MAX)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.tasks).acquire_many_owned(tasks);
        match tokio::time::timeout(Duration::from_secs(PERMIT_SECONDS_MAX), permit).await {
            Ok(Ok(permit)) => Ok(Permit { _tasks: permit, _counted: counted }),
            Ok(Err(_)) | Err(_) => Err(Overload::NoPermit),
        }
    }

    /// Counts an event stream.
    pub(crate) fn stream(&self, token: &str) -> Result<Counted, Overload> {
        let counted = self.streams.take(token, STREAMS_PER_TOKEN_MAX).ok_or(Overload::Streams)?;
        if self.streams.total() > STREAMS_MAX { Err(Overload::AllStreams) } else { Ok(counted) }
    }
}

/// Whether a body has more objects and lines than a request may have.
pub(crate) fn has_too_many_parts(body: &[u8]) -> bool {
    let objects = body.iter().filter(|&&byte| byte == b'{' || byte == b'\n').count();
    objects + body.windows(2).filter(|pair| pair == b"\\n").count() > BODY_PARTS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(limits: &LoadLimits, token: &str, tasks: Option<usize>) -> Result<RequestPermit, Overload> {
        let request = RequestPermit::default();
        limits.permit_for_plan(&request, token, tasks).await.map(|()| request)
    }

    #[tokio::test]
    async fn large_plans_share_the_permits_and_small_ones_need_none() {
        let limits = LoadLimits::default();
        let first = ask(&limits, "a", Some(TASKS_AT_ONCE_MAX)).await.expect("all are free");
        assert!(first.is_given());
        let small = ask(&limits, "a", Some(SMALL_PLAN_TASKS)).await.expect("it needs none");
        assert_eq!(limits.permit_for_body(&small, "a", SMALL_BODY_BYTES).await, Ok(()));
        assert!(!small.is_given());
        // Who has one waits for no other.
        assert_eq!(limits.permit_for_body(&first, "a", SMALL_BODY_BYTES + 1).await, Ok(()));
        let second = ask(&limits, "b", None);
        tokio::pin!(second);
        let waits = |waiting: &mut std::task::Context<'_>| {
            std::task::Poll::Ready(second.as_mut().poll(waiting).is_pending())
        };
        assert!(std::future::poll_fn(waits).await, "the first has all permits");
        drop(first);
        assert!(second.await.is_ok_and(|second| second.is_given()));
    }

    #[tokio::test]
    async fn a_token_has_a_bounded_number_of_large_requests_and_streams() {
        let limits = LoadLimits::default();
        let large = Some(SMALL_PLAN_TASKS + 1);
        let mut open = Vec::new();
        for _ in 0..LARGE_REQUESTS_PER_TOKEN_MAX {
            open.push(ask(&limits, "a", large).await.expect("within the limit"));
        }
        assert_eq!(ask(&limits, "a", large).await.err(), Some(Overload::LargeRequests));
        assert!(ask(&limits, "b", large).await.is_ok(), "another token has its own");
        let streams: Vec<_> = (0..STREAMS_PER_TOKEN_MAX).map(|_| limits.stream("a").ok()).collect();
        assert!(streams.iter().all(Option::is_some));
        assert_eq!(limits.stream("a").err(), Some(Overload::Streams));
        let others: Vec<_> =
            (0..STREAMS_MAX - STREAMS_PER_TOKEN_MAX).map(|_| limits.stream("b").ok()).collect();
        assert!(others.iter().all(Option::is_some));
        assert_eq!(limits.stream("c").err(), Some(Overload::AllStreams));
        drop((open, streams));
        assert!(limits.stream("c").is_ok() && limits.stream("a").is_ok());
        assert!(ask(&limits, "a", None).await.is_ok());
    }

    #[test]
    fn objects_and_lines_of_a_body_are_counted() {
        assert!(!has_too_many_parts(&b"{\n".repeat(BODY_PARTS_MAX / 2)));
        assert!(has_too_many_parts(&b"{\n".repeat(BODY_PARTS_MAX / 2 + 1)));
        assert!(has_too_many_parts(&b"\\n".repeat(BODY_PARTS_MAX + 1)));
    }
}
