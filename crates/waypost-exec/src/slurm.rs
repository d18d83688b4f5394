//! Workers that are jobs of a Slurm cluster, one for each attempt; attempts that start together are submitted as one
//! array.
//!
//! The input and output of a worker are in a directory shared with the nodes. Each attempt has one until its end has
//! been read. A job that an earlier attempt left behind, because the run that submitted it died, is therefore found
//! there and followed, and no other is submitted. Only Waypost decides about retries, never Slurm.

mod attempt_dir;
mod cli;
mod cluster;
mod commands;
mod job_state;
mod left_job;
mod script;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;

use super::async_runtime::RemoteError;
use super::async_runtime::{self, Stop};
use super::attempt::{Attempt, inside};
use super::attempt_spec::{Part, idempotency_key};
use super::process::{self, ProcessResult};
use super::question::asked;
use super::remote_note::{self, RemoteNote};
use crate::outcome::{AttemptKey, AttemptOutcome, Force};
use crate::secrets::Secrets;
use attempt_dir::{EARLIER_MAX, Folder, name, shared};
use cli::Tools;
use cluster::{News, Order, Request, Stage, cluster};
use job_state::{JobPhase, Seen, phase_of};
use script::{Group, quoted};
use waypost_config::ExecutionEnv;
use waypost_config::{Config, Executor, Slurm, Worker};

/// The time between two polls of the directory while something is written there.
const LOOK_MIN: Duration = Duration::from_millis(250);
/// The time between two polls of the directory when nothing has been written for long.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// Bytes of a log after which one poll stops reading.
const LOG_BYTES_PER_LOOK: u64 = 8 * 1024 * 1024;
/// How long to wait for the exit code of a job that has ended by itself: shared file systems show files late.
const EXIT_WITHIN: Duration = Duration::from_secs(20);
/// The same for a job that was stopped or lost: mostly it leaves no exit code.
const EXIT_OF_STOPPED_WITHIN: Duration = Duration::from_secs(2);
/// The lowest exit code by which a shell reports that a signal ended a program.
const EXIT_SIGNALLED: i32 = 129;
/// A job that waits longer than this is reported.
const WAITS_SINCE: Duration = Duration::from_secs(5);
/// How long to wait for the end of a killed job.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

pub(super) use left_job::end_left;

pub(super) fn run(attempt: &mut Attempt<'_>, slurm: &Slurm, part: &Part) -> Result<AttemptOutcome, String> {
    remote_note::prepare(attempt.around)?;
    let earlier = remote_note::claim_earlier(attempt, part);
    let work = Work::of(attempt, slurm, part)?;
    async_runtime::run(attempt, |attempt, stop| work.done(attempt, earlier, stop))
}

struct Work {
    group: Group,
    name: String,
    told: String,
    environment: String,
    secrets: Secrets,
    is_check: bool,
    /// The note by which a later run finds the job if its task was cancelled meanwhile.
    note: RemoteNote,
    orders: Sender<Order>,
}

/// A job that this attempt follows, its own or an adopted one.
struct Job {
    folder: Folder,
    news: watch::Receiver<News>,
    /// Whether an earlier attempt submitted it.
    is_adopted: bool,
    /// Bytes of its log that have been read.
    taken: u64,
}

enum Followed {
    Ending(AttemptOutcome),
    /// It could not be followed from here, and may still run.
    Left(AttemptOutcome),
    /// The attempt was asked to stop.
    ToStop,
    /// Slurm does not know the job, and it left no exit code.
    NothingThere,
}

impl Work {
    fn of(attempt: &Attempt<'_>, slurm: &Slurm, part: &Part) -> Result<Self, String> {
        let shared = shared(attempt.around, slurm)?;
        let directory = inside(&attempt.around.workspace, &slurm.process.directory)?;
        let directory = directory.canonicalize().unwrap_or(directory);
        let (environment, secrets) = environment(attempt, slurm)?;
        Ok(Self {
            group: Group::of(slurm, attempt.job, shared, directory),
            name: name(&attempt.job.key, part.is_check),
            told: part.input.clone(),
            environment,
            secrets,
            is_check: part.is_check,
            note: RemoteNote::new(attempt, part),
            orders: cluster(Tools::of(attempt.around))?,
        })
    }

    async fn done(
        self,
        attempt: &mut Attempt<'_>,
        earlier: Vec<RemoteNote>,
        mut stop: Stop,
    ) -> Result<AttemptOutcome, String> {
        loop {
            let mut job = self.adopted(attempt).map_or_else(|| self.submitted(attempt), Ok)?;
            // Their jobs are noted by this attempt from now on, or were cancelled.
            earlier.iter().filter(|note| !note.is_same_file(&self.note)).for_each(RemoteNote::remove);
            let followed = self.follow(attempt, &mut job, &mut stop).await;
            attempt.log.finish(&self.secrets);
            // A later attempt may have taken the job over meanwhile. Then this attempt must not end it.
            let is_ours = job.folder.owner().is_none_or(|owner| owner == self.name);
            let ending = match followed {
                _ if !is_ours => {
                    let error = "a later attempt follows its job".to_owned();
                    attempt.log.say(&format!("waypost: {error}"), Secrets::NONE);
                    self.note.remove();
                    return Err(error);
                }
                Followed::Left(ending) => return Ok(ending),
                Followed::Ending(ending) => Some(ending),
                Followed::ToStop => Some(self.stopped(&mut job, &mut stop).await),
                Followed::NothingThere => None,
            };
            let _thread_is_gone = self.orders.send(Order::Leave(job.folder.clone()));
            job.folder.close();
            self.note.remove();
            if let Some(ending) = ending {
                return Ok(ending);
            }
        }
    }

    /// Takes over the job that an earlier attempt left behind. Cancels other jobs of the task.
    fn adopted(&self, attempt: &mut Attempt<'_>) -> Option<Job> {
        let key = &attempt.job.key;
        let numbers = (key.attempt.saturating_sub(EARLIER_MAX).max(1)..=key.attempt).rev();
        let folders = numbers.map(|number| {
            let earlier = AttemptKey::new(&key.plan, &key.task, number);
            Folder::of(&self.group.shared, &name(&earlier, self.is_check))
        });
        let mut found: Option<Folder> = None;
        for folder in folders.filter(Folder::is_there) {
            // A directory without a batch was never submitted; one with a different input does other work.
            let counts = found.is_none() && folder.batch().is_some() && folder.has_input(&self.told);
            if counts && self.write_note(&folder).is_ok() && folder.give_to(&self.name).is_ok() {
                found = Some(folder);
            } else {
                let order = Order::Cancel(folder.name.clone(), folder.job(), Force::Ask);
                let _thread_is_gone = self.orders.send(order);
                folder.close();
            }
        }
        let folder = found?;
        let line =
            format!("waypost: the job {} of an earlier attempt is there, and is followed", folder.name);
        attempt.log.say(&line, Secrets::NONE);
        let (sender, news) = watch::channel(News::default());
        let _thread_is_gone = self.orders.send(Order::Follow(folder.clone(), sender));
        Some(Job { folder, news, is_adopted: true, taken: 0 })
    }

    fn write_note(&self, folder: &Folder) -> Result<(), String> {
        let mut note = self.note.clone();
        note.job = Some(json!({ "name": folder.name }));
        note.write()
    }

    fn submitted(&self, attempt: &Attempt<'_>) -> Result<Job, String> {
        let folder = Folder::of(&self.group.shared, &self.name);
        self.write_note(&folder)?;
        let sums = folder.prepare(self.told.trim_end(), &self.environment)?;
        let (news, receiver) = watch::channel(News::default());
        let comment = idempotency_key(&attempt.job.key);
        let request = Request { folder: folder.clone(), sums, group: self.group.clone(), comment, news };
        let gone = |_| "nobody talks to Slurm any more".to_owned();
        self.orders.send(Order::Submit(Box::new(request))).map_err(gone)?;
        Ok(Job { folder, news: receiver, is_adopted: false, taken: 0 })
    }

    /// Follows a job until it has ended or the attempt is asked to stop.
    async fn follow(&self, attempt: &mut Attempt<'_>, job: &mut Job, stop: &mut Stop) -> Followed {
        let mut said = ReportedState::new();
        let mut pause = LOOK_MIN;
        let mut over_since: Option<Instant> = None;
        let mut last_word = false;
        loop {
            let is_news = tokio::select! {
                biased;
                () = stop.asked() => return Followed::ToStop,
                changed = job.news.changed(), if !last_word => {
                    last_word = changed.is_err();
                    !last_word
                }
                () = tokio::time::sleep(pause) => false,
            };
            let news = job.news.borrow_and_update().clone();
            said.tell(attempt, &news, &self.secrets);
            let grown = self.take_log(attempt, job);
            let exit = job.folder.exit();
            pause = if grown || is_news || exit.is_some() { LOOK_MIN } else { (pause * 3 / 2).min(LOOK_MAX) };
            let judged = match (&news.stage, exit) {
                (Stage::NotTaken(trouble), _) if job.is_adopted => {
                    return Followed::Left(trouble.clone().into());
                }
                (Stage::NotTaken(trouble), _) => return Followed::Ending(trouble.clone().into()),
                (Stage::Gone, Some(code)) => Some((None, Some(code))),
                (Stage::Gone, None) => {
                    let patience = if job.is_adopted { EXIT_OF_STOPPED_WITHIN } else { EXIT_WITHIN };
                    let late = over_since.get_or_insert_with(Instant::now).elapsed() >= patience;
                    if late && job.is_adopted {
                        return Followed::NothingThere;
                    }
                    late.then_some((None, None))
                }
                (Stage::Known(seen), exit) => self.over(&news, seen, exit, &mut over_since),
                // While Slurm does not answer, the files in the directory decide.
                (Stage::Ours, Some(code)) if news.away.is_some() => Some((None, Some(code))),
                (Stage::Ours, _) => None,
            };
            if let Some((seen, exit)) = judged {
                while self.take_log(attempt, job) {}
                return Followed::Ending(self.judged(attempt, job, seen, exit));
            }
        }
    }

    /// Returns how a job that Slurm knows has ended, or `None` while it has not.
    fn over<'n>(
        &self,
        news: &News,
        seen: &'n Seen,
        exit: Option<i32>,
        since: &mut Option<Instant>,
    ) -> Option<(Option<&'n Seen>, Option<i32>)> {
        let waited = |since: &mut Option<Instant>| since.get_or_insert_with(Instant::now).elapsed();
        match phase_of(&seen.state) {
            JobPhase::Waits | JobPhase::Runs => {
                let code = exit?;
                // The program has ended. Slurm ends what it left behind and reports that soon, unless Slurm is away.
                if news.away.is_some() || code == 0 && seen.state == "COMPLETING" {
                    return Some((Some(seen), exit));
                }
                if since.is_none() {
                    let _thread_is_gone = self.orders.send(Order::Look);
                }
                waited(since);
                None
            }
            JobPhase::Ended => (exit.is_some() || waited(since) >= EXIT_WITHIN).then_some((Some(seen), exit)),
            JobPhase::Lost(_) | JobPhase::Stopped(_) => {
                (exit.is_some() || waited(since) >= EXIT_OF_STOPPED_WITHIN).then_some((Some(seen), exit))
            }
        }
    }

    /// Reads what was added to the log. Returns whether there was any.
    fn take_log(&self, attempt: &mut Attempt<'_>, job: &mut Job) -> bool {
        let mut taken = 0;
        while taken < LOG_BYTES_PER_LOOK {
            let bytes = job.folder.log_from(job.taken + taken);
            if bytes.is_empty() {
                break;
            }
            taken += bytes.len() as u64;
            attempt.log.take(&bytes, &self.secrets);
        }
        job.taken += taken;
        if let Some(progress) = attempt.log.progress.take() {
            attempt.progressed(&progress);
        }
        taken > 0
    }

    /// Returns the outcome of a job that has ended.
    fn judged(
        &self,
        attempt: &mut Attempt<'_>,
        job: &Job,
        seen: Option<&Seen>,
        exit: Option<i32>,
    ) -> AttemptOutcome {
        attempt.log.finish(&self.secrets);
        if let Some(question) = &attempt.log.question {
            return asked(question, &self.secrets);
        }
        let id = job.news.borrow().job.map_or_else(String::new, |id| format!(" {id}"));
        let Some(seen) = seen else {
            return match exit {
                Some(code) => self.outcome_of(attempt, job, code),
                None => {
                    let error = format!("Slurm no longer knows job{id}, and it left no exit code");
                    AttemptOutcome::TryAgain { error }
                }
            };
        };
        let state = &seen.state;
        match (phase_of(state), exit) {
            // A job that completed its work at the last moment counts as done.
            (JobPhase::Stopped(_), Some(0)) => self.outcome_of(attempt, job, 0),
            (JobPhase::Stopped(why), _) => {
                AttemptOutcome::Failed { error: format!("{why} (job{id} is {state})") }
            }
            // The exit code of a job killed when it lost its node means nothing; that of a job that ended before does.
            (JobPhase::Lost(why), None | Some(EXIT_SIGNALLED..)) => {
                AttemptOutcome::TryAgain { error: format!("{why} (job{id} is {state})") }
            }
            (_, Some(code)) => self.outcome_of(attempt, job, code),
            (JobPhase::Ended | JobPhase::Waits | JobPhase::Runs, None) => {
                let (folder, reason) = (job.folder.path().display(), &seen.reason);
                let error = format!(
                    "job{id} is {state} ({reason}) and left no exit code in {folder}: do the nodes see that folder?"
                );
                AttemptOutcome::Failed { error }
            }
        }
    }

    /// Returns the outcome of a worker from its exit code and output.
    fn outcome_of(&self, attempt: &Attempt<'_>, job: &Job, code: i32) -> AttemptOutcome {
        let bytes_max = attempt.job.output_bytes_max;
        let output = match job.folder.output(bytes_max) {
            Ok(output) => output,
            Err(error) => {
                return AttemptOutcome::Failed { error: format!("its output cannot be read: {error}") };
            }
        };
        let too_much = output.len() as u64 > bytes_max;
        // In the encoding of `wait`.
        let status = ExitStatus::from_raw((code & 0xff) << 8);
        let result = ProcessResult { status, output, too_much, secrets: self.secrets.clone() };
        process::outcome(attempt, &result)
    }

    /// Cancels a job and waits until it has ended: without limit until a kill is requested, and `KILLED_WITHIN` after
    /// that.
    async fn stopped(&self, job: &mut Job, stop: &mut Stop) -> AttemptOutcome {
        let known = job.news.borrow().job.or_else(|| job.folder.job());
        let order = |force| self.orders.send(Order::Cancel(job.folder.name.clone(), known, force));
        let _thread_is_gone = order(Force::Ask);
        let news = &mut job.news;
        let gone = tokio::select! {
            gone = has_ended(news) => gone,
            () = stop.killed() => {
                let _thread_is_gone = order(Force::Kill);
                tokio::time::timeout(KILLED_WITHIN, has_ended(news)).await.unwrap_or(false)
            }
        };
        let id = news.borrow().job.map_or_else(String::new, |id| format!(" {id}"));
        let what = if gone { "was cancelled" } else { "may not have ended yet" };
        AttemptOutcome::Failed { error: format!("it was stopped; its job{id} {what}") }
    }
}

/// Waits until a job has ended; false when its state is no longer reported.
async fn has_ended(news: &mut watch::Receiver<News>) -> bool {
    let ended = |news: &News| match &news.stage {
        Stage::Ours => false,
        Stage::Gone | Stage::NotTaken(_) => true,
        Stage::Known(seen) => !matches!(phase_of(&seen.state), JobPhase::Waits | JobPhase::Runs),
    };
    news.wait_for(ended).await.is_ok()
}

/// The state of a job last reported in the log and as progress.
struct ReportedState {
    job: String,
    node: String,
    words: String,
    since: Instant,
}

impl ReportedState {
    fn new() -> Self {
        let [job, node, words] = [(); 3].map(|()| String::new());
        Self { job, node, words, since: Instant::now() }
    }

    fn tell(&mut self, attempt: &mut Attempt<'_>, news: &News, secrets: &Secrets) {
        let id = news.job.map_or_else(String::new, |id| id.to_string());
        if id != self.job {
            attempt.log.say(&format!("waypost: job {id} of Slurm"), secrets);
            self.job.clone_from(&id);
        }
        let words = match (&news.away, &news.stage) {
            (Some(why), _) => format!("Slurm does not answer, and is asked again: {why}"),
            (None, Stage::Known(seen)) if phase_of(&seen.state) == JobPhase::Waits => {
                let reason = Some(seen.reason.as_str()).filter(|reason| *reason != "None");
                format!(
                    "job {id} waits in Slurm's queue{}",
                    reason.map_or_else(String::new, |r| format!(": {r}"))
                )
            }
            (None, Stage::Known(seen)) if !seen.node.is_empty() && seen.node != self.node => {
                self.node.clone_from(&seen.node);
                return attempt.log.say(&format!("waypost: job {id} is on {}", seen.node), secrets);
            }
            (None, _) => return,
        };
        if words != self.words && self.since.elapsed() >= WAITS_SINCE {
            attempt.log.say(&format!("waypost: {words}"), secrets);
            attempt.progressed(&words);
            self.words = words;
        }
    }
}

/// Returns the variables of a worker as shell code, and the secrets among them.
fn environment(attempt: &Attempt<'_>, slurm: &Slurm) -> Result<(String, Secrets), String> {
    let mut secrets = Vec::new();
    let process = &slurm.process;
    let known = |name: &String| Some((name.clone(), attempt.around.variables.get(name)?.clone()));
    let mut variables: Vec<(String, String)> = process.environment.iter().filter_map(known).collect();
    for (name, secret) in &process.secrets {
        let value = attempt.secret(name, secret)?;
        secrets.push(value.clone());
        variables.push((name.clone(), value));
    }
    variables.extend(attempt.job.variables().into_iter().map(|(name, value)| (name.to_owned(), value)));
    let mut text = String::new();
    for (name, value) in variables {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
            return Err(format!("{name:?} cannot be a variable of a job"));
        }
        text.push_str(&format!("export {name}={}\n", quoted(&value)));
    }
    Ok((text, Secrets::new(secrets)))
}

/// Checks the Slurm clusters that the configuration names. Returns an error and a hint for each problem.
pub fn check_cluster(config: &Config, around: &ExecutionEnv) -> Vec<(String, String)> {
    let workers = config.executors.iter().flat_map(|(name, executor)| match executor {
        Executor::Dispatch(workers) => workers.values().map(|worker| (name, worker)).collect(),
        Executor::Worker(worker) => vec![(name, worker)],
        Executor::Noop | Executor::Human => Vec::new(),
    });
    let mut wrong = Vec::new();
    let mut any = None;
    for (name, worker) in workers {
        let Worker::Slurm(slurm) = worker else { continue };
        any.get_or_insert(name);
        if let Err(error) = shared(around, slurm) {
            wrong.push((
                format!("executor {name}: {error}"),
                "name another `folder`, which all nodes see".to_owned(),
            ));
        }
    }
    let Some(name) = any else { return wrong };
    let tools = Tools::of(around);
    let asked = tools.ask("sbatch", &["--version".to_owned()]).and_then(|_| {
        let answer = tools.ask("scontrol", &["ping".to_owned()]).map_err(|trouble| match trouble {
            RemoteError::Refused(why) | RemoteError::NotNow(why) => RemoteError::NotNow(why),
        })?;
        let is_up = answer.contains(" is UP") || answer.contains("UP/");
        is_up.then_some(()).ok_or_else(|| RemoteError::NotNow(answer.trim().to_owned()))
    });
    let hint = "`scontrol ping` must say that slurmctld is UP; SLURM_CONF says which cluster is meant";
    match asked {
        Ok(()) => {}
        Err(RemoteError::Refused(why)) => wrong.push((format!("executor {name}: {why}"), hint.to_owned())),
        Err(RemoteError::NotNow(why)) => {
            wrong.push((
                format!("executor {name}: Slurm's controller does not answer: {why}"),
                hint.to_owned(),
            ));
        }
    }
    wrong
}
