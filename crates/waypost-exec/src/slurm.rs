//! Workers that are jobs of a Slurm cluster, one for each attempt; those that start together are submitted as one array.
//!
//! What a worker is told and what comes of it lie in a folder that we and the nodes share. Each attempt has one for as long
//! as nobody has taken its end, so a job that an earlier attempt left behind (because the run that made it died) is found
//! there, and followed instead of submitting another. Whether work is tried again is ours to say, never Slurm's.

mod attempt_dir;
mod cli;
mod cluster;
mod commands;
mod job_state;
mod script;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::async_runtime::RemoteError;
use super::async_runtime::{self, Stop};
use super::attempt::{Attempt, inside};
use super::attempt_spec::{Part, idempotency_key};
use super::process::{self, ProcessResult};
use super::question::asked;
use super::resource_name;
use crate::outcome::{AttemptKey, AttemptOutcome, Force};
use attempt_dir::Folder;
use cli::Tools;
use cluster::{News, Order, Request, Stage, cluster};
use job_state::{JobPhase, Seen, phase_of};
use script::{Group, quoted};
use waypost_config::ExecutionEnv;
use waypost_config::{Config, Executor, Slurm, Worker};

/// Earlier attempts whose folders are looked for.
const EARLIER_MAX: u32 = 100;
/// Between two looks into the folder while something is written there.
const LOOK_MIN: Duration = Duration::from_millis(250);
/// Between two looks into the folder when nothing was written for long.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// Bytes of a log that are taken in one look.
const LOG_BYTES_PER_LOOK: u64 = 8 * 1024 * 1024;
/// For so long the exit code of a job that has ended by itself may stay unseen: shared folders are slow to tell.
const EXIT_WITHIN: Duration = Duration::from_secs(20);
/// The same of a job that was ended: mostly it leaves none.
const EXIT_OF_STOPPED_WITHIN: Duration = Duration::from_secs(2);
/// The least exit code by which a shell says that a program was ended by a signal.
const EXIT_SIGNALLED: i32 = 129;
/// A job that waits for so long is worth a word.
const WAITS_SINCE: Duration = Duration::from_secs(5);
/// Jobs that were killed are waited for so long.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn run(attempt: &mut Attempt<'_>, slurm: &Slurm, part: &Part) -> Result<AttemptOutcome, String> {
    let work = Work::of(attempt, slurm, part)?;
    async_runtime::run(attempt, |attempt, stop| work.done(attempt, stop))
}

/// The work of an attempt.
struct Work {
    group: Group,
    name: String,
    told: String,
    environment: String,
    secrets: Vec<String>,
    is_check: bool,
    orders: Sender<Order>,
}

/// Somebody's job that is followed.
struct Job {
    folder: Folder,
    news: watch::Receiver<News>,
    /// Whether an earlier attempt has made it.
    is_adopted: bool,
    /// Bytes of its log that were taken.
    taken: u64,
}

enum Followed {
    Ending(AttemptOutcome),
    /// It could not be followed from here, and goes on.
    Left(AttemptOutcome),
    /// It is to end.
    ToStop,
    /// Slurm knows no such job, and nothing came of it.
    NothingThere,
}

fn name(key: &AttemptKey, is_check: bool) -> String {
    format!("{}{}", resource_name::name(key), if is_check { "-check" } else { "" })
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
            orders: cluster(Tools::of(attempt.around))?,
        })
    }

    async fn done(self, attempt: &mut Attempt<'_>, mut stop: Stop) -> Result<AttemptOutcome, String> {
        loop {
            let mut job = self.adopted(attempt).map_or_else(|| self.submitted(attempt), Ok)?;
            let followed = self.follow(attempt, &mut job, &mut stop).await;
            attempt.log.finish(&self.secrets);
            // A later attempt may have come and taken the job over: then it is no longer ours to end.
            let is_ours = job.folder.owner().is_none_or(|owner| owner == self.name);
            let ending = match followed {
                _ if !is_ours => {
                    let error = "a later attempt follows its job".to_owned();
                    attempt.log.say(&format!("waypost: {error}"), &[]);
                    return Err(error);
                }
                Followed::Left(ending) => return Ok(ending),
                Followed::Ending(ending) => Some(ending),
                Followed::ToStop => Some(self.stopped(&mut job, &mut stop).await),
                Followed::NothingThere => None,
            };
            let _thread_is_gone = self.orders.send(Order::Leave(job.folder.clone()));
            job.folder.close();
            if let Some(ending) = ending {
                return Ok(ending);
            }
        }
    }

    /// The job that an earlier attempt left behind. Others of the task are ended.
    fn adopted(&self, attempt: &mut Attempt<'_>) -> Option<Job> {
        let key = &attempt.job.key;
        let numbers = (key.attempt.saturating_sub(EARLIER_MAX).max(1)..=key.attempt).rev();
        let folders = numbers.map(|number| {
            let earlier = AttemptKey::new(&key.plan, &key.task, number);
            Folder::of(&self.group.shared, &name(&earlier, self.is_check))
        });
        let mut found: Option<Folder> = None;
        for folder in folders.filter(Folder::is_there) {
            // One without a batch was never submitted; one that was told something else does other work.
            let counts = found.is_none() && folder.batch().is_some() && folder.has_input(&self.told);
            if counts && folder.give_to(&self.name).is_ok() {
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
        attempt.log.say(&line, &[]);
        let (sender, news) = watch::channel(News::default());
        let _thread_is_gone = self.orders.send(Order::Follow(folder.clone(), sender));
        Some(Job { folder, news, is_adopted: true, taken: 0 })
    }

    fn submitted(&self, attempt: &Attempt<'_>) -> Result<Job, String> {
        let folder = Folder::of(&self.group.shared, &self.name);
        folder.prepare(self.told.trim_end(), &self.environment)?;
        let (news, receiver) = watch::channel(News::default());
        let comment = idempotency_key(&attempt.job.key);
        let request = Request { folder: folder.clone(), group: self.group.clone(), comment, news };
        let gone = |_| "nobody talks to Slurm any more".to_owned();
        self.orders.send(Order::Submit(Box::new(request))).map_err(gone)?;
        Ok(Job { folder, news: receiver, is_adopted: false, taken: 0 })
    }

    /// Follows a job until it has ended or is to end.
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
                // Who is told nothing because Slurm is away goes by what lies in the folder.
                (Stage::Ours, Some(code)) if news.away.is_some() => Some((None, Some(code))),
                (Stage::Ours, _) => None,
            };
            if let Some((seen, exit)) = judged {
                while self.take_log(attempt, job) {}
                return Followed::Ending(self.judged(attempt, job, seen, exit));
            }
        }
    }

    /// Whether a job that Slurm knows has ended, and how.
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
                // The program has ended. What it left behind is ended by Slurm, which says so soon, or is away.
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

    /// Takes what was added to the log. Whether there was any.
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

    /// What the end of a job means.
    fn judged(
        &self,
        attempt: &mut Attempt<'_>,
        job: &Job,
        seen: Option<&Seen>,
        exit: Option<i32>,
    ) -> AttemptOutcome {
        attempt.log.finish(&self.secrets);
        if let Some(question) = &attempt.log.question {
            return asked(question);
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
            // What has done its work in the last moment has done it.
            (JobPhase::Stopped(_), Some(0)) => self.outcome_of(attempt, job, 0),
            (JobPhase::Stopped(why), _) => {
                AttemptOutcome::Failed { error: format!("{why} (job{id} is {state})") }
            }
            // One that was killed on the way out of its node says nothing by its code; one that ended before that does.
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

    /// What the exit code and the output of a worker mean.
    fn outcome_of(&self, attempt: &Attempt<'_>, job: &Job, code: i32) -> AttemptOutcome {
        let bytes_max = attempt.job.output_bytes_max;
        let output = match job.folder.output(bytes_max) {
            Ok(output) => output,
            Err(error) => {
                return AttemptOutcome::Failed { error: format!("its output cannot be read: {error}") };
            }
        };
        let too_much = output.len() as u64 > bytes_max;
        // As `wait` would give it.
        let status = ExitStatus::from_raw((code & 0xff) << 8);
        let result = ProcessResult { status, output, too_much, secrets: self.secrets.clone() };
        process::outcome(attempt, &result)
    }

    /// Ends a job, and waits until it has ended: so long as nobody says to kill, and a while after that.
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

/// Waits until a job has ended; false when nobody can tell any more.
async fn has_ended(news: &mut watch::Receiver<News>) -> bool {
    let ended = |news: &News| match &news.stage {
        Stage::Ours => false,
        Stage::Gone | Stage::NotTaken(_) => true,
        Stage::Known(seen) => !matches!(phase_of(&seen.state), JobPhase::Waits | JobPhase::Runs),
    };
    news.wait_for(ended).await.is_ok()
}

/// What was said about a job in the log and as progress.
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

    fn tell(&mut self, attempt: &mut Attempt<'_>, news: &News, secrets: &[String]) {
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

/// The folder that we and the nodes share.
fn shared(around: &ExecutionEnv, slurm: &Slurm) -> Result<PathBuf, String> {
    let path = around.workspace.join(&slurm.folder);
    let unusable =
        |error: std::io::Error| format!("the shared folder {} cannot be used: {error}", path.display());
    attempt_dir::private(&path).map_err(unusable)?;
    if slurm.folder.starts_with('/') {
        path.canonicalize().map_err(unusable)
    } else {
        inside(&around.workspace, &slurm.folder)
    }
}

/// The variables of a worker as a shell reads them, and the secrets among them.
fn environment(attempt: &Attempt<'_>, slurm: &Slurm) -> Result<(String, Vec<String>), String> {
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
    Ok((text, secrets))
}

/// What is wrong with the Slurm cluster that the configuration names, if it names one: a clause and a hint for each.
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
