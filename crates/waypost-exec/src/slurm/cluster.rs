//! The thread that talks to one Slurm cluster: it submits attempts that become ready together as one array, and polls
//! all jobs with one command.
//!
//! Does not know what an attempt is: the follower of a job receives its state through a channel.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::attempt_dir::{self, FileSums, Folder};
use super::cli::Tools;
use super::job_state::{JobId, JobPhase, Seen, phase_of};
use super::script::Group;
use crate::async_runtime::RemoteError;
use crate::outcome::Force;
use crate::resource_name::sum;

/// How long the first attempt of a batch waits for others to be submitted with it.
const BATCH_WINDOW: Duration = Duration::from_millis(200);
/// The time between two polls while something changes.
const POLL_MIN: Duration = Duration::from_millis(500);
/// The time between two polls when nothing has changed for long.
const POLL_MAX: Duration = Duration::from_secs(30);
/// The wait before the first retry of a submission; doubled for each further retry.
const SUBMIT_BACKOFF_MIN: Duration = Duration::from_secs(1);
/// The longest wait between two tries of a submission.
const SUBMIT_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// How long a submission is retried.
const SUBMIT_FOR: Duration = Duration::from_secs(15 * 60);
/// Consecutive polls without a job before it is taken for gone.
const MISSED_MAX: u32 = 2;
/// Jobs in an array if the cluster reports no limit.
const ARRAY_SIZE_DEFAULT: usize = 1_001;

/// The directory of the batch scripts.
const SCRIPTS: &str = "scripts";

/// The stage of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not submitted, or its state in Slurm is not known yet.
    #[default]
    Ours,
    /// Slurm knows the job.
    Known(Seen),
    /// Slurm does not know the job, or no longer does.
    Gone,
    /// The job was not submitted, and will not be.
    NotTaken(RemoteError),
}

/// The state of a job, sent to its follower.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    pub(super) job: Option<JobId>,
    pub(super) stage: Stage,
    /// Why Slurm does not answer at present.
    pub(super) away: Option<String>,
}

/// An attempt to submit.
pub(super) struct Request {
    pub(super) folder: Folder,
    pub(super) sums: FileSums,
    pub(super) group: Group,
    /// Identifies the attempt to a person who looks at the job in Slurm.
    pub(super) comment: String,
    pub(super) news: watch::Sender<News>,
}

/// Commands to the thread.
pub(super) enum Order {
    Submit(Box<Request>),
    /// Follow a job that was submitted before: by its recorded id, or else by the name of its batch.
    Follow(Folder, watch::Sender<News>),
    /// End the job of the attempt with this name; the job id is given if it is known.
    Cancel(String, Option<JobId>, Force),
    /// The job is no longer followed.
    Leave(Folder),
    /// Poll soon, because something has changed.
    Look,
}

/// Returns the channel to the thread of this cluster. Starts the thread if there is none.
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

/// A batch that is being submitted, with retries.
struct Batch {
    name: String,
    script: PathBuf,
    requests: Vec<Request>,
    tries: u32,
    again_at: Instant,
    since: Instant,
}

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
    /// Jobs to follow that could not be searched for, because Slurm did not answer.
    unfound: Vec<(Folder, watch::Sender<News>)>,
    poll_at: Instant,
    interval: Duration,
    array_size: Option<usize>,
    /// Whether the cluster has accounting; `None` before it was asked.
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

    /// Returns when something is to be done next.
    fn due(&self) -> Option<Instant> {
        let poll = self.asks().then_some(self.poll_at);
        let again = self.batches.iter().map(|batch| batch.again_at).min();
        [self.window_ends, poll, again].into_iter().flatten().min()
    }

    /// Whether there is anything to poll.
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

    /// Groups the waiting requests into batches that share all settings, up to the size limit of an array.
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

    /// Records what is submitted, so that a later run finds it if this process dies.
    fn prepare(&mut self, requests: Vec<Request>, now: Instant) {
        let Some(first) = requests.first() else { return };
        let names: Vec<&str> = requests.iter().map(|request| request.folder.name.as_str()).collect();
        let name = match names.as_slice() {
            [only] => (*only).to_owned(),
            several => format!("waypost-array-{}", sum(&several.join(" "))),
        };
        let script = script_of(&first.group.shared, &name);
        let attempts: Vec<(&str, &FileSums)> =
            requests.iter().map(|request| (request.folder.name.as_str(), &request.sums)).collect();
        let written = attempt_dir::private(&first.group.shared.join(SCRIPTS))
            .and_then(|()| fs::write(&script, first.group.script(&attempts)))
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

    /// Submits a batch and returns its job id in Slurm. After a failed try, the batch is searched for first: it may
    /// have been submitted all the same.
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

    /// Records that Slurm has accepted a batch, and follows its jobs.
    fn taken(&mut self, batch: Batch, job: u64) {
        // Before the followers are notified: they may end a moment later, and the run with them.
        batch.take_away();
        let several = batch.requests.len() > 1;
        let mut unwanted = Vec::new();
        for (at, request) in batch.requests.into_iter().enumerate() {
            let id = JobId { job, index: several.then(|| u32::try_from(at).unwrap_or(u32::MAX)) };
            if request.news.is_closed() || matches!(request.news.borrow().stage, Stage::NotTaken(_)) {
                unwanted.push(id);
                continue;
            }
            // Without the note the job is found by its name.
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
                // Slurm has its own copy of the script. The process that submitted the batch may have died before it
                // removed the file.
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

    /// Polls all jobs with one command.
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

    /// Publishes the changes. Returns whether there were any.
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

    /// Returns the accounting records of jobs that the controller has forgotten, if the cluster has accounting.
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

    /// Returns how many jobs an array may have.
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

    /// Removes the script: Slurm has its own copy, or will never need one.
    fn take_away(&self) {
        let _gone = fs::remove_file(&self.script);
    }
}

/// The path of a batch's script until Slurm has accepted it.
fn script_of(shared: &Path, batch: &str) -> PathBuf {
    shared.join(SCRIPTS).join(format!("{batch}.sh"))
}

/// Sends the state of a job to its follower. Returns whether it is new.
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
