//! The commit hook: called for each version that this process commits, once it is durable. Without a hook a commit
//! costs one check of a flag.

use std::sync::OnceLock;
use std::time::Duration;

use waypost_core::{Actor, Command, Plan, TaskId};

use crate::plans::request::{Committed, WriteRequest};

/// Maximum number of tasks that the hook receives for one version.
const TASKS_NAMED_MAX: usize = 32;

/// A version that was committed.
pub struct CommitInfo<'a> {
    /// The plan after the version.
    pub plan: &'a Plan,
    /// The number of the version in its plan.
    pub version: u64,
    /// The actor that wrote the version.
    pub actor: &'a Actor,
    /// The names of the request's commands, each once.
    pub commands: Vec<&'static str>,
    /// The first 32 tasks that the request's commands queue, start or finish.
    pub tasks: Vec<&'a TaskId>,
    /// How long the commit that contains the version took.
    pub took: Duration,
}

type Hook = Box<dyn Fn(&CommitInfo<'_>) + Send + Sync>;

static HOOK: OnceLock<Hook> = OnceLock::new();

/// Sets the hook that is called for each version from now on. A process can set one hook: returns `false`, and changes
/// nothing, if there already is one.
pub fn set_commit_hook(hook: impl Fn(&CommitInfo<'_>) + Send + Sync + 'static) -> bool {
    HOOK.set(Box::new(hook)).is_ok()
}

/// Calls the hook for a write, if it changed the plan.
pub(crate) fn tell(request: &WriteRequest, done: &Committed, plan: Option<&Plan>, took: Duration) {
    let commands: Vec<&Command> = request.commands.iter().collect();
    tell_of(&commands, &request.by, done, plan, took);
}

/// Calls the hook for any list of commands.
pub(crate) fn tell_of(
    commands: &[&Command],
    actor: &Actor,
    done: &Committed,
    plan: Option<&Plan>,
    took: Duration,
) {
    let (Some(hook), Some(plan)) = (HOOK.get(), plan.filter(|_| done.changed)) else { return };
    let mut names: Vec<&'static str> = Vec::new();
    let mut tasks = Vec::new();
    for command in commands {
        if !names.contains(&command.name()) {
            names.push(command.name());
        }
        if let Command::StartTask { task, .. }
        | Command::QueueTask { task, .. }
        | Command::FinishTask { task, .. } = command
            && tasks.len() < TASKS_NAMED_MAX
        {
            tasks.push(task);
        }
    }
    hook(&CommitInfo { plan, version: done.version, actor, commands: names, tasks, took });
}
