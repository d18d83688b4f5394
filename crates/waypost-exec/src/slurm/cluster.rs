//! The one thread of this process that talks to a Slurm cluster: it submits what becomes ready together as one array, and
//! looks at all jobs with one question.
//!
//! Does not know what an attempt is: who follows a job hears of it through a channel.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::attempt_dir::{self, Folder};
use super::cli::Tools;
use super::job_state::{JobId, JobPhase, Seen, phase_of};
use super::script::Group;
use crate::async_runtime::RemoteError;
use crate::outcome::Force;
use crate::resource_name::sum;

/// For so long after an attempt others are waited for that could be submitted with it.
const BATCH_WINDOW: Duration = Duration::from_millis(200);
/// Between two questions while something changes.
const POLL_MIN: Duration = Duration::from_millis(500);
/// Between two questions when nothing changes for long.
const POLL_MAX: Duration = Duration::from_secs(30);
/// Before the second try of a submission; doubled for each further one.
const SUBMIT_BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Between two tries of a submission at the most.
const SUBMIT_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// For so long a submission is tried.
const SUBMIT_FOR: Duration = Duration::from_secs(15 * 60);
/// Questions in a row in which a job does not appear before it is taken for gone.
const MISSED_MAX: u32 = 2;
/// Jobs that an array may have where the cluster does not say.
const ARRAY_SIZE_DEFAULT: usize = 1_001;

/// The folder of scripts.
const SCRIPTS: &str = "scripts";

/// How far a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Slurm does not have it yet.
    #[default]
    Ours,
    /// Slurm knows it.
    Known(Seen),
    /// Slurm knows nothing of it, or no longer.
    Gone,
    /// It was not submitted, and will not be.
    NotTaken(RemoteError),
}

/// What the follower of a job hears.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    pub(super) job: Option<JobId>,
    pub(super) stage: Stage,
    /// Why Slurm does not answer just now.
    pub(super) away: Option<String>,
}

/// An attempt that is to be submitted.
pub(super) struct Request {
    pub(super) folder: Folder,
    pub(super) group: Group,
    /// The words by which a person finds out in Slurm what it is.
    pub(super) comment: String,
    pub(super) news: watch::Sender<News>,
}

/// What the thread is told.
pub(super) enum Order {
    Submit(Box<Request>),
    /// Follow what was submitted before: as this job, or as whatever has this name.
    Follow(Folder, watch::Sender<News>),
    /// End the job of this attempt, which may be known to be this one.
    Cancel(String, Option<JobId>, Force),
    /// Nobody follows it any more.
    Leave(Folder),
    /// Something has changed.
    Look,
}

/// Whoever talks to the cluster that these tools mean.
pub(super) fn cluster(tools: Tools) -> Result<Sender<Order>, String> {
    static CLUSTERS: Mutex<BTreeMap<Tools, Sender<Order>>> = Mutex::new(BTreeMap::new());
    let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = clusters.get(&tools) {
        return Ok(known.clone());
    }
    let (sender, orders) = channel();
    let cluster = Cluster::new(tools.clone());
    let begun = std::thread::Builder::new().name("slurm".to_owned()).spawn(move || cluster.run(&orders));
    begun.map_err(|error| format!("no thread could be started: {error}"))?;
    clusters.insert(tools, sender.clone());
    Ok(sender)
}

/// A batch that is submitted, again and again if need be.
struct Batch {
    name: String,
    script: PathBuf,
    requests: Vec<Request>,
    tries: u32,
    again_at: Instant,
    since: Instant,
}

/// A job that somebody follows.
struct Followed {
    folder: Folder,
    news: watch::Sender<News>,
    missed: u32,
}

struct Cluster {
    tools: Tools,
    waiting: Vec<Request>,
    window_ends: Option<Instant>,
    batches: Vec<Batch>,
    followed: BTreeMap<JobId, Followed>,
    /// What is to be followed and could not be looked for, because Slurm did not answer.
    unfound: Vec<(Folder, watch::Sender<News>)>,
    poll_at: Instant,
    interval: Duration,
    array_size: Option<usize>,
    /// Whether the cluster keeps accounts; nothing before it was asked.
    accounts: Option<bool>,
}

impl Cluster {
    fn new(tools: Tools) -> Self {
        Self {
            tools,
            waiting: Vec::new(),
            window_ends: None,
            batches: Vec::new(),
            followed: BTreeMap::new(),
            unfound: Vec::new(),
            poll_at: Instant::now(),
            interval: POLL_MIN,
            array_size: None,
            accounts: None,
        }
    }

    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.due() {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match order {
                Ok(order) => self.take(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(order) = orders.try_recv() {
                self.take(order);
            }
            let now = Instant::now();
            if self.window_ends.is_some_and(|ends| ends <= now) {
                self.window_ends = None;
                self.gather(now);
            }
            self.submit_what_is_due(now);
            if self.asks() && self.poll_at <= now {
                self.poll();
            }
        }
    }

    /// When something is to be done next.
    fn due(&self) -> Option<Instant> {
        let poll = self.asks().then_some(self.poll_at);
        let again = self.batches.iter().map(|batch| batch.again_at).min();
        [self.window_ends, poll, again].into_iter().flatten().min()
    }

    /// Whether there is anything to ask Slurm for.
    fn asks(&self) -> bool {
        !self.followed.is_empty() || !self.unfound.is_empty()
    }

    fn soon(&mut self) {
        self.interval = POLL_MIN;
        self.poll_at = self.poll_at.min(Instant::now() + POLL_MIN);
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Submit(request) => {
                self.waiting.push(*request);
                self.window_ends.get_or_insert_with(|| Instant::now() + BATCH_WINDOW);
            }
            Order::Follow(folder, news) => self.follow(folder, news),
            Order::Cancel(name, job, force) => self.cancel(&name, job, force),
            Order::Leave(folder) => {
                self.followed.retain(|_, followed| followed.folder.name != folder.name);
                self.unfound.retain(|(unfound, _)| unfound.name != folder.name);
            }
            Order::Look => self.soon(),
        }
    }

    /// Makes batches of what waits: such as have everything in common, up to the bound of each.
    fn gather(&mut self, now: Instant) {
        let size = self.array_size();
        let mut waiting = std::mem::take(&mut self.waiting);
        while !waiting.is_empty() {
            let group = waiting[0].group.clone();
            let (same, others): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|request| request.group == group);
            waiting = others;
            let mut same = same.into_iter().peekable();
            let most = size.min(group.slurm.array_max as usize).max(1);
            while same.peek().is_some() {
                self.prepare(same.by_ref().take(most).collect(), now);
            }
        }
    }

    /// Writes down what is submitted, so that whoever comes after our death finds it.
    fn prepare(&mut self, requests: Vec<Request>, now: Instant) {
        let Some(first) = requests.first() else { return };
        let names: Vec<&str> = requests.iter().map(|request| request.folder.name.as_str()).collect();
        let name = match names.as_slice() {
            [only] => (*only).to_owned(),
            several => format!("waypost-array-{}", sum(&several.join(" "))),
        };
        let script = script_of(&first.group.shared, &name);
        let written = attempt_dir::private(&first.group.shared.join(SCRIPTS))
            .and_then(|()| fs::write(&script, first.group.script(&names)))
            .and_then(|()| {
                let mut places = requests.iter().enumerate();
                places.try_for_each(|(at, request)| request.folder.set_batch(&name, at))
            });
        let batch = Batch { name, script, requests, tries: 0, again_at: now, since: now };
        match written {
            Ok(()) => self.batches.push(batch),
            Err(error) => {
                let error = format!("{} cannot be written: {error}", batch.script.display());
                batch.refused(&RemoteError::Refused(error));
            }
        }
    }

    fn submit_what_is_due(&mut self, now: Instant) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.batches).into_iter().partition(|batch| batch.again_at <= now);
        self.batches = later;
        for mut batch in due {
            match self.submit(&batch) {
                Ok(job) => self.taken(batch, job),
                Err(RemoteError::NotNow(_)) if batch.is_dropped() => batch.take_away(),
                Err(RemoteError::NotNow(why)) if batch.since.elapsed() < SUBMIT_FOR => {
                    batch.postpone(&why);
                    self.batches.push(batch);
                }
                Err(trouble) => batch.refused(&trouble),
            }
        }
    }

    /// Submits a batch; Slurm's number of it. One that may have been submitted already is looked for first.
    fn submit(&self, batch: &Batch) -> Result<u64, RemoteError> {
        if batch.tries > 0
            && let Some(job) = self.tools.find(&batch.name)?
        {
            return Ok(job);
        }
        let Some(first) = batch.requests.first() else { return Err(RemoteError::NotNow(String::new())) };
        if batch.is_dropped() {
            return Err(RemoteError::NotNow("nothing waits for it".to_owned()));
        }
        let comments: Vec<&str> = batch.requests.iter().map(|request| request.comment.as_str()).collect();
        let comment = format!("waypost {}", comments.join(" "));
        let arguments = first.group.arguments(&batch.name, &batch.script, batch.requests.len(), &comment);
        let answer = self.tools.ask("sbatch", &arguments)?;
        // `12`, or `12;cluster`.
        let number = answer.trim().split(';').next().and_then(|number| number.parse().ok());
        number.ok_or_else(|| RemoteError::Refused(format!("sbatch answered {:?}, and no job", answer.trim())))
    }

    /// Slurm has taken a batch.
    fn taken(&mut self, batch: Batch, job: u64) {
        // Before anybody hears of it: whoever does may have ended, and the run with it, a moment later.
        batch.take_away();
        let several = batch.requests.len() > 1;
        let mut unwanted = Vec::new();
        for (at, request) in batch.requests.into_iter().enumerate() {
            let id = JobId { job, index: several.then(|| u32::try_from(at).unwrap_or(u32::MAX)) };
            if request.news.is_closed() || matches!(request.news.borrow().stage, Stage::NotTaken(_)) {
                unwanted.push(id);
                continue;
            }
            // Without the note it is found by its name.
            let _unwritten = request.folder.set_job(id);
            self.watch(id, request.folder, request.news);
        }
        self.tools.end(&unwanted, Force::Ask);
    }

    fn watch(&mut self, id: JobId, folder: Folder, news: watch::Sender<News>) {
        news.send_modify(|news| {
            news.job = Some(id);
            news.away = None;
        });
        self.followed.insert(id, Followed { folder, news, missed: 0 });
        self.soon();
    }

    fn follow(&mut self, folder: Folder, news: watch::Sender<News>) {
        let known = folder.job().map(|id| Ok(Some(id)));
        let found = known.unwrap_or_else(|| match folder.batch() {
            None => Ok(None),
            Some((name, index)) => {
                let job = self.tools.find(&name)?;
                let index = name.starts_with("waypost-array-").then_some(index);
                Ok(job.map(|job| JobId { job, index }))
            }
        });
        match found {
            Ok(Some(id)) => {
                let _unwritten = folder.set_job(id);
                // Slurm has its own copy. Whoever submitted it may have died before it could take it away.
                let _gone =
                    folder.batch().map(|(name, _)| fs::remove_file(script_of(folder.shared(), &name)));
                self.watch(id, folder, news);
            }
            Ok(None) => news.send_modify(|news| news.stage = Stage::Gone),
            Err(RemoteError::NotNow(why)) => {
                news.send_modify(|news| news.away = Some(why));
                self.unfound.push((folder, news));
            }
            Err(trouble @ RemoteError::Refused(_)) => {
                news.send_modify(|news| news.stage = Stage::NotTaken(trouble));
            }
        }
    }

    fn cancel(&mut self, name: &str, job: Option<JobId>, force: Force) {
        let dropped = || Stage::NotTaken(RemoteError::NotNow("it was not submitted yet".to_owned()));
        let is_it = |request: &Request| request.folder.name == name;
        if let Some(at) = self.waiting.iter().position(is_it) {
            self.waiting.swap_remove(at).news.send_modify(|news| news.stage = dropped());
            return;
        }
        let mut requests = self.batches.iter().flat_map(|batch| &batch.requests);
        if let Some(request) = requests.find(|request| is_it(request)) {
            return request.news.send_modify(|news| news.stage = dropped());
        }
        let followed = self.followed.iter().filter(|(_, followed)| followed.folder.name == name);
        let mut ids: Vec<JobId> = followed.map(|(id, _)| *id).chain(job).collect();
        ids.sort_unstable();
        ids.dedup();
        self.tools.end(&ids, force);
        self.soon();
    }

    /// Asks once for all jobs.
    fn poll(&mut self) {
        self.followed.retain(|_, followed| !followed.news.is_closed());
        for (folder, news) in std::mem::take(&mut self.unfound) {
            if !news.is_closed() {
                self.follow(folder, news);
            }
        }
        let changed = match self.tools.queue(self.followed.keys()) {
            Ok(seen) => self.compare(&seen),
            Err(RemoteError::Refused(why) | RemoteError::NotNow(why)) => {
                for followed in self.followed.values() {
                    followed.news.send_modify(|news| news.away = Some(why.clone()));
                }
                false
            }
        };
        self.interval = if changed { POLL_MIN } else { (self.interval * 3 / 2).min(POLL_MAX) };
        self.poll_at = Instant::now() + self.interval;
    }

    /// Tells what has changed. Whether anything has.
    fn compare(&mut self, seen: &[Seen]) -> bool {
        let mut changed = false;
        let mut gone = Vec::new();
        let mut over = Vec::new();
        let seen: BTreeMap<JobId, &Seen> = seen.iter().map(|seen| (seen.id, seen)).collect();
        for (id, followed) in &mut self.followed {
            let Some(&seen) = seen.get(id) else {
                followed.missed += 1;
                changed = true;
                if followed.missed >= MISSED_MAX {
                    gone.push(*id);
                }
                continue;
            };
            followed.missed = 0;
            changed |= publish(&followed.news, seen);
            if is_over(&seen.state) {
                over.push(*id);
            }
        }
        let known = self.accounts_of(&gone);
        for id in gone {
            let Some(followed) = self.followed.remove(&id) else { continue };
            match known.iter().find(|seen| seen.id == id && is_over(&seen.state)) {
                Some(seen) => {
                    publish(&followed.news, seen);
                }
                None => followed.news.send_modify(|news| news.stage = Stage::Gone),
            }
        }
        for id in over {
            self.followed.remove(&id);
        }
        changed
    }

    /// What the cluster's accounts say about jobs that its controller has forgotten, where it keeps any.
    fn accounts_of(&mut self, gone: &[JobId]) -> Vec<Seen> {
        if gone.is_empty() || self.accounts == Some(false) {
            return Vec::new();
        }
        match self.tools.accounts(gone) {
            Ok(seen) => {
                self.accounts = Some(true);
                seen
            }
            Err(RemoteError::Refused(_)) => {
                self.accounts = Some(false);
                Vec::new()
            }
            Err(RemoteError::NotNow(_)) => Vec::new(),
        }
    }

    /// How many jobs an array may have.
    fn array_size(&mut self) -> usize {
        if let Some(known) = self.array_size {
            return known;
        }
        let Ok(number) = self.tools.array_size() else { return ARRAY_SIZE_DEFAULT };
        *self.array_size.insert(number.unwrap_or(ARRAY_SIZE_DEFAULT))
    }
}

impl Batch {
    fn is_dropped(&self) -> bool {
        self.requests.iter().all(|request| {
            request.news.is_closed() || matches!(request.news.borrow().stage, Stage::NotTaken(_))
        })
    }

    fn postpone(&mut self, why: &str) {
        self.tries += 1;
        let wait = SUBMIT_BACKOFF_MIN * 2u32.saturating_pow((self.tries - 1).min(10));
        self.again_at = Instant::now() + wait.min(SUBMIT_BACKOFF_MAX);
        for request in &self.requests {
            request.news.send_modify(|news| news.away = Some(why.to_owned()));
        }
    }

    fn refused(self, trouble: &RemoteError) {
        self.take_away();
        for request in &self.requests {
            request.news.send_modify(|news| news.stage = Stage::NotTaken(trouble.clone()));
        }
    }

    /// Slurm has its own copy of the script, or will never have one.
    fn take_away(&self) {
        let _gone = fs::remove_file(&self.script);
    }
}

/// Where the script of a batch lies until Slurm has it.
fn script_of(shared: &Path, batch: &str) -> PathBuf {
    shared.join(SCRIPTS).join(format!("{batch}.sh"))
}

/// Tells the follower of a job. Whether it is new.
fn publish(news: &watch::Sender<News>, seen: &Seen) -> bool {
    let stage = Stage::Known(seen.clone());
    news.send_if_modified(|news| {
        let is_new = news.stage != stage || news.away.is_some();
        news.stage = stage;
        news.away = None;
        is_new
    })
}

fn is_over(state: &str) -> bool {
    match phase_of(state) {
        JobPhase::Ended | JobPhase::Lost(_) | JobPhase::Stopped(_) => true,
        JobPhase::Waits | JobPhase::Runs => false,
    }
}
