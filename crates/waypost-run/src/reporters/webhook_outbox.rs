//! Posts the events of the log to webhooks, each from a position that the store keeps. The log is the outbox, so the
//! next process sends what a process that died has not sent.
//!
//! One process at a time sends to a reporter, one event after the other in the order of the log. An event that is not
//! accepted holds back those behind it until it is accepted or given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ring::rand::SecureRandom;
use waypost_service::Service;
use waypost_store::{
    Cursor, EventFilter, LogEvent, NamedLock, PlanStore, Since, StoreError, Subscription, SubscriptionError,
};

use super::webhook::{Hook, NotTaken};
use super::{LAST_STOP, LAST_WORDS};
use crate::slots::folder_name;
use crate::store_clock::Clock;
use waypost_config::ExecutionEnv;
use waypost_config::{Config, Report, Webhook};

/// Events older than this are given up after a failed try, even if tries are left.
pub const WEBHOOK_AGE_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
/// Events that are read from the log at a time.
const EVENTS_PAGE: usize = 100;
/// How long the stored position may lag behind the sent events. After a crash these are sent again, with the same id.
const KEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Versions without anything to send after which the position is stored all the same.
const KEEP_VERSIONS: u64 = 1_000;
/// The time between two checks whether the sending process is gone.
const TAKE_OVER: Duration = Duration::from_secs(1);
/// The time between two reads of a store that fails.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// The longest single wait for a change of the store.
const WATCH_WAIT: Duration = Duration::from_secs(60);
/// The longest wait between two tries while the outbox is ending.
const LAST_PAUSE: Duration = Duration::from_millis(500);
/// Failed tries of an event after which an ending outbox leaves the rest to the next process.
const LAST_TRIES: u32 = 3;

/// The owner of the subscription that stores the position of a reporter.
pub fn reporter_owner(name: &str) -> String {
    format!("reporter:{name}")
}

enum Message {
    /// The store may have changed.
    Changed,
    /// Send what is left until this moment, then end.
    End(Instant),
}

/// Sends to all webhooks of a configuration. Dropping it ends the sending like [`WebhookOutbox::finish`].
pub struct WebhookOutbox {
    lines: Vec<Line>,
}

struct Line {
    sender: Sender<Message>,
    /// At the end: a message if something could not be sent.
    ended: Receiver<Option<String>>,
}

impl WebhookOutbox {
    /// Starts sending. A reporter without a stored position gets all events after version `since` of the log.
    pub fn start(
        plans: &Arc<PlanStore>,
        config: &Arc<Config>,
        around: &ExecutionEnv,
        since: u64,
    ) -> Result<Self, StoreError> {
        let mut lines = Vec::new();
        for (name, reporter) in &config.reporters {
            let Report::Webhook(webhook) = &reporter.report else { continue };
            let (sender, messages) = channel();
            let changed = Arc::new(AtomicBool::new(false));
            watch(plans, sender.clone(), &changed)?;
            let sending = Sending {
                name: name.clone(),
                service: Service::new(Arc::clone(plans), Arc::clone(config)),
                webhook: webhook.clone(),
                around: around.clone(),
                filter: EventFilter { kinds: reporter.events.clone(), ..EventFilter::default() },
                clock: Clock::new(plans)?,
                messages,
                changed,
                end_at: None,
                given_up: 0,
            };
            let (tell, ended) = channel();
            let work = move || drop(tell.send(sending.run(Cursor::after(since))));
            spawn(format!("relay-{name}"), work)?;
            lines.push(Line { sender, ended });
        }
        Ok(Self { lines })
    }

    /// Sends what is left, for at most ten seconds, and returns what could not be sent, as messages. Unsent events stay
    /// in the log for the next process.
    pub fn finish(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        let until = Instant::now() + LAST_WORDS;
        for line in &self.lines {
            let _over = line.sender.send(Message::End(until));
        }
        let heard = self.lines.drain(..).filter_map(|line| {
            let rest = (until + LAST_STOP).saturating_duration_since(Instant::now());
            line.ended.recv_timeout(rest).ok().flatten()
        });
        heard.collect()
    }
}

impl Drop for WebhookOutbox {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = std::thread::Builder::new().name(name).spawn(work);
    thread.map(drop).map_err(|error| StoreError::Database(format!("no thread can be started: {error}")))
}

/// Sends `Changed` whenever the store may have changed, once until the receiver has cleared the flag.
fn watch(plans: &PlanStore, sender: Sender<Message>, changed: &Arc<AtomicBool>) -> Result<(), StoreError> {
    let mut watch = plans.watch()?;
    let changed = Arc::downgrade(changed);
    let look = move || {
        loop {
            let written = watch.wait(WATCH_WAIT).unwrap_or(true);
            let Some(changed) = changed.upgrade() else { return };
            if written && !changed.swap(true, Ordering::AcqRel) && sender.send(Message::Changed).is_err() {
                return;
            }
        }
    };
    spawn("relay-store".to_owned(), look)
}

/// The result of a delivery.
enum Delivery {
    Taken,
    GivenUp(String),
    /// No time is left, or the last tries failed.
    Left(String),
}

/// Why the sending ended.
enum Over {
    /// It was asked to end, with a message if something could not be sent.
    Done(Option<String>),
    /// Another process may be sending now.
    Lost,
}

/// The thread of one reporter.
struct Sending {
    name: String,
    service: Service,
    webhook: Webhook,
    around: ExecutionEnv,
    filter: EventFilter,
    clock: Clock,
    messages: Receiver<Message>,
    changed: Arc<AtomicBool>,
    /// When to end, once that is known.
    end_at: Option<Instant>,
    given_up: u64,
}

/// The position of a reporter in the log, and the position in the store.
struct Progress {
    subscription: Subscription,
    cursor: Cursor,
    kept: Cursor,
    kept_at: Instant,
    /// Whether anything was sent since `kept_at`.
    sent: bool,
}

impl Sending {
    fn run(mut self, since: Cursor) -> Option<String> {
        let said = match Hook::new(&self.webhook, &self.around) {
            Ok(hook) => self.send_all(&hook, since).unwrap_or_else(|error| Some(error.to_string())),
            Err(why) => Some(format!("{why}; nothing was sent")),
        };
        let lost = match self.given_up {
            0 => None,
            1 => Some("1 event was given up; `waypost doctor` says more".to_owned()),
            many => Some(format!("{many} events were given up; `waypost doctor` says more")),
        };
        let words: Vec<String> = said.into_iter().chain(lost).collect();
        (!words.is_empty()).then(|| format!("reporter {}: {}", self.name, words.join("; ")))
    }

    fn send_all(&mut self, hook: &Hook, since: Cursor) -> Result<Option<String>, SubscriptionError> {
        loop {
            let Some(held) = self.alone()? else { return Ok(None) };
            if let Over::Done(said) = self.send_while_held(hook, since, &*held)? {
                return Ok(said);
            }
        }
    }

    fn send_while_held(
        &mut self,
        hook: &Hook,
        since: Cursor,
        held: &dyn NamedLock,
    ) -> Result<Over, SubscriptionError> {
        let mut progress = self.take_up(since)?;
        loop {
            if !held.holds() {
                return Ok(self.lose(&mut progress));
            }
            self.changed.store(false, Ordering::Release);
            let page = match self.service.plans().events(progress.cursor, &self.filter, EVENTS_PAGE) {
                Ok(page) => page,
                Err(error) if self.end_at.is_some() => return Err(error.into()),
                Err(_) => {
                    self.pause(STORE_PAUSE);
                    continue;
                }
            };
            for event in &page.events {
                // Another process may already be sending what this one has read.
                if !held.holds() {
                    return Ok(self.lose(&mut progress));
                }
                match self.deliver(hook, event) {
                    Delivery::Taken => (progress.cursor, progress.sent) = (event.cursor(), true),
                    Delivery::GivenUp(why) => {
                        self.given_up += 1;
                        let owner = reporter_owner(&self.name);
                        let id = &progress.subscription.id;
                        let kept = self.service.drop_event(&owner, id, event.cursor(), &why)?;
                        (progress.cursor, progress.kept) = (event.cursor(), kept);
                    }
                    Delivery::Left(why) => {
                        self.keep(&mut progress)?;
                        let next = "the rest is sent by the next run or worker";
                        return Ok(Over::Done(Some(format!("{why}; {next}"))));
                    }
                }
                if progress.sent && progress.kept_at.elapsed() > KEEP_INTERVAL {
                    self.keep(&mut progress)?;
                }
            }
            progress.cursor = progress.cursor.max(page.cursor);
            self.look_up();
            if page.more || self.end_at.is_some() && !page.events.is_empty() {
                continue;
            }
            if self.end_at.is_some() {
                self.keep(&mut progress)?;
                let hidden = page.unreadable_from.is_some().then_some(page.warnings);
                let next = "later events are sent after a repair";
                return Ok(Over::Done(hidden.map(|damage| format!("{}; {next}", damage.join("; ")))));
            }
            self.rest(&mut progress)?;
        }
    }

    /// Waits until this process is the sender. `None` if it is asked to end first: then another process sends.
    fn alone(&mut self) -> Result<Option<Box<dyn NamedLock>>, SubscriptionError> {
        let name = format!("relay-{}", folder_name(&self.name));
        loop {
            match self.service.plans().store().try_lock(&name) {
                Ok(Some(held)) => return Ok(Some(held)),
                Ok(None) => {}
                Err(error) if self.end_at.is_some() => return Err(error.into()),
                // The store may answer later.
                Err(_) => {}
            }
            if self.end_at.is_some() {
                return Ok(None);
            }
            self.pause(TAKE_OVER);
        }
    }

    /// Returns the stored position, or creates one.
    fn take_up(&self, since: Cursor) -> Result<Progress, SubscriptionError> {
        let owner = reporter_owner(&self.name);
        let known = self.service.plans().subscriptions(&owner)?.into_iter().next();
        let subscription = match known {
            Some(known) => known,
            None => self.service.subscribe(&owner, EventFilter::default(), Since::After(since))?,
        };
        let cursor = subscription.cursor;
        Ok(Progress { subscription, cursor, kept: cursor, kept_at: Instant::now(), sent: false })
    }

    fn keep(&self, progress: &mut Progress) -> Result<(), SubscriptionError> {
        if progress.cursor > progress.kept {
            let owner = reporter_owner(&self.name);
            progress.kept = self.service.acknowledge(&owner, &progress.subscription.id, progress.cursor)?;
        }
        (progress.kept_at, progress.sent) = (Instant::now(), false);
        Ok(())
    }

    /// Leaves the rest to the current sender. Events already sent count as sent.
    fn lose(&self, progress: &mut Progress) -> Over {
        let _sent_again = self.keep(progress);
        Over::Lost
    }

    /// Waits for a change of the store or the request to end, and stores the position meanwhile.
    fn rest(&mut self, progress: &mut Progress) -> Result<(), SubscriptionError> {
        if progress.cursor.sequence >= progress.kept.sequence + KEEP_VERSIONS {
            self.keep(progress)?;
        }
        // The message about the change may have been consumed during another wait.
        if self.changed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut heard = Err(RecvTimeoutError::Timeout);
        if progress.sent {
            heard = self.messages.recv_timeout(KEEP_INTERVAL.saturating_sub(progress.kept_at.elapsed()));
        }
        let message = match heard {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                if progress.sent {
                    self.keep(progress)?;
                }
                self.messages.recv().ok()
            }
        };
        self.apply_message(message);
        Ok(())
    }

    fn apply_message(&mut self, message: Option<Message>) {
        match message {
            Some(Message::Changed) => {}
            Some(Message::End(at)) => self.end_at = Some(at),
            // No sender is left that could set a time.
            None => self.end_at = Some(Instant::now()),
        }
    }

    /// Waits, but only briefly while the outbox is ending.
    fn pause(&mut self, span: Duration) {
        let (begun, was_ending) = (Instant::now(), self.end_at.is_some());
        while was_ending || self.end_at.is_none() {
            let until = begun + if was_ending { span.min(LAST_PAUSE) } else { span };
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            match self.messages.recv_timeout(rest) {
                Ok(message) => self.apply_message(Some(message)),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => return self.apply_message(None),
            }
        }
    }

    fn deliver(&mut self, hook: &Hook, event: &LogEvent) -> Delivery {
        let title = self.title(event);
        let (mut tries, mut last_tries) = (0, 0);
        let mut why = "there was no time left".to_owned();
        loop {
            self.look_up();
            let timeout = Duration::from_secs(self.webhook.timeout_seconds.into());
            let rest = self.end_at.map(|end| end.saturating_duration_since(Instant::now()));
            if rest.is_some_and(|rest| rest.is_zero()) || last_tries >= LAST_TRIES {
                return Delivery::Left(why);
            }
            let at_most = rest.map_or(timeout, |rest| rest.min(timeout));
            let not_taken = match hook.post(event, &title, self.clock.now(), at_most) {
                Ok(()) => return Delivery::Taken,
                Err(not_taken) => not_taken,
            };
            tries += 1;
            last_tries += u32::from(self.end_at.is_some());
            let NotTaken { why: said, wait } = not_taken;
            why = said;
            if tries >= self.webhook.attempts || self.is_too_old(event) {
                return Delivery::GivenUp(format!("event {} of the log: {why}", event.sequence));
            }
            let backoff = backoff(&self.webhook, tries);
            self.pause(wait.unwrap_or_default().max(backoff));
        }
    }

    /// Reads pending messages without waiting.
    fn look_up(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.apply_message(Some(message));
        }
    }

    fn is_too_old(&mut self, event: &LogEvent) -> bool {
        let micros = self.clock.now().as_micros().saturating_sub(event.at.as_micros());
        micros > (WEBHOOK_AGE_SECONDS_MAX * 1_000_000) as i64
    }

    fn title(&self, event: &LogEvent) -> String {
        let head = self.service.plans().store().query(|read| read.head(&event.plan));
        head.ok().flatten().map(|head| head.title).unwrap_or_default()
    }
}

/// Returns the wait before the next try: doubled each time, with jitter, so that reporters that failed together do not
/// retry together.
fn backoff(webhook: &Webhook, tries: u32) -> Duration {
    let doubled = u64::from(webhook.backoff_seconds) << (tries - 1).min(32);
    let seconds = doubled.min(webhook.backoff_seconds_max.into());
    let mut random = [0];
    let _even_without = ring::rand::SystemRandom::new().fill(&mut random);
    // Between half of it and all of it.
    Duration::from_millis(seconds * (500 + 500 * u64::from(random[0]) / 255))
}

#[cfg(test)]
mod tests {
    use super::*;
    use waypost_config::Header;

    #[test]
    fn waits_double_up_to_their_bound_and_differ() {
        let webhook = Webhook::to(Header::Text("https://example.org".to_owned()));
        for (tries, seconds) in [(1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (100, 300)] {
            let most = Duration::from_secs(seconds);
            for _ in 0..20 {
                let wait = backoff(&webhook, tries);
                assert!(wait >= most / 2 && wait <= most, "{wait:?} of {most:?}");
            }
        }
        let none = Webhook { backoff_seconds: 0, ..webhook };
        assert_eq!(backoff(&none, 7), Duration::ZERO);
    }
}
