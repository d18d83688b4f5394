//! Carries out effects on threads, so that a slow store delays no key: one thread reads, one writes, and each run has its
//! own. Every write is a call of the service. Draws nothing.

mod context;
mod error;
mod read;
mod run;
mod workspace;
mod write;

pub(crate) use self::read::now;
pub use self::workspace::{CreateStore, Workspace};

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use self::context::{EffectContext, MessageSender};
use self::run::ActiveRuns;
use crate::history::HistoryEffect;
use crate::messages::Effect;
use crate::run_view::RunEffect;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct EffectRunner {
    context: EffectContext,
    reader: Sender<Job>,
    writer: Sender<Job>,
    /// Searches repositories, which may take seconds.
    searcher: Sender<Job>,
    runs: ActiveRuns,
    /// The ticket of the latest search.
    latest_search: Arc<AtomicU64>,
    /// The number of requests for commits; only the latest is carried out.
    latest_commits: Arc<AtomicU64>,
}

impl EffectRunner {
    /// Starts the threads, and watches the stores for changes.
    pub(crate) fn new(
        workspaces: Vec<Workspace>,
        by: waypost_service::Caller,
        send: MessageSender,
    ) -> io::Result<Self> {
        let context = EffectContext::new(workspaces, by, send);
        for store in 0..context.stores() {
            context.watch(store)?;
        }
        Ok(Self {
            reader: worker("reads")?,
            writer: worker("writes")?,
            searcher: worker("commits")?,
            runs: ActiveRuns::default(),
            latest_search: Arc::default(),
            latest_commits: Arc::default(),
            context,
        })
    }

    /// Starts an effect. Returns the effects that need the terminal, for the event loop.
    pub(crate) fn start(&self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Quit | Effect::Suspend | Effect::EditText { .. } => return Some(effect),
            Effect::LoadPlanPage { store, ticket, query } => {
                self.read(move |context| context.plan_page(store, ticket, &query));
            }
            Effect::LoadPlan(plan) => self.read(move |context| context.plan(plan)),
            Effect::LoadText(plan) => self.read(move |context| context.text(plan)),
            Effect::Search(request) => {
                let latest = Arc::clone(&self.latest_search);
                latest.store(request.ticket, Ordering::Release);
                // Whoever types on wants nothing of what was typed before.
                self.read(move |context| {
                    if latest.load(Ordering::Acquire) == request.ticket {
                        context.search(&request);
                    }
                });
            }
            Effect::Save { plan, version, edits } => {
                self.write(move |context| context.save(plan, version, edits));
            }
            Effect::CreatePlan { store, title } => self.write(move |context| context.create(store, title)),
            Effect::Execute(plan) => self.start_run_effect(RunEffect::Start(plan)),
            Effect::Run(effect) => self.start_run_effect(effect),
            Effect::History(effect) => match effect {
                HistoryEffect::Versions(plan, before) => {
                    self.read(move |context| context.versions(plan, before));
                }
                HistoryEffect::Compare(plan, old, new) => {
                    self.read(move |context| context.compare(plan, old, new));
                }
                HistoryEffect::Preview { plan, version, known } => {
                    self.read(move |context| context.preview_restore(plan, version, known));
                }
                HistoryEffect::Restore { plan, version, known } => {
                    self.write(move |context| context.restore(plan, version, known));
                }
            },
        }
        None
    }

    fn start_run_effect(&self, effect: RunEffect) {
        match effect {
            RunEffect::LoadSnapshot(plan) => self.read(move |context| context.snapshot(plan)),
            RunEffect::LoadTaskDetail(plan, task) => {
                self.read(move |context| context.load_task_detail(plan, task));
            }
            RunEffect::LoadCommits(plan, task) => {
                let (latest, context) = (Arc::clone(&self.latest_commits), self.context.clone());
                let number = latest.fetch_add(1, Ordering::AcqRel) + 1;
                let _over = self.searcher.send(Box::new(move || {
                    if latest.load(Ordering::Acquire) == number {
                        context.load_commits(plan, task);
                    }
                }));
            }
            RunEffect::Preview(plan) => self.read(move |context| context.preview(plan)),
            RunEffect::Approve(plan, seen) => self.write(move |context| context.approve(plan, &seen)),
            RunEffect::Write { plan, action, success } => {
                self.write(move |context| context.act(&plan, action, success));
            }
            RunEffect::Start(plan) => {
                let runs = self.runs.clone();
                self.write(move |context| runs.start(context, plan));
            }
            RunEffect::End(plan, control) => self.runs.end(&plan, control),
        }
    }

    fn read(&self, work: impl FnOnce(&EffectContext) + Send + 'static) {
        let context = self.context.clone();
        let _over = self.reader.send(Box::new(move || work(&context)));
    }

    fn write(&self, work: impl FnOnce(&EffectContext) + Send + 'static) {
        let context = self.context.clone();
        let _over = self.writer.send(Box::new(move || work(&context)));
    }

    /// Stops the runs of this process, and waits until their state is written.
    pub(crate) fn finish(self) {
        self.runs.stop_all();
    }
}

fn worker(name: &str) -> io::Result<Sender<Job>> {
    let (sender, jobs): (Sender<Job>, Receiver<Job>) = channel();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || jobs.into_iter().for_each(|job| job()))?;
    Ok(sender)
}
