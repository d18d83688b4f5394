//! Random drafts and commands for plans that are kept elsewhere.

use waypost_core::{Actor, Command, Draft, Plan};

use crate::simulation::World;

pub(crate) struct Commands(World);

impl Commands {
    pub(crate) fn new(seed: u64) -> Self {
        Self(World::new(seed))
    }

    /// A random draft.
    pub(crate) fn draft(&mut self) -> Draft {
        self.0.random_draft()
    }

    /// A command that such a plan may accept.
    pub(crate) fn next(&mut self, plan: &Plan, seconds: u64) -> (Actor, Command) {
        self.0.plan = plan.clone();
        self.0.seconds = seconds;
        self.0.random_command()
    }
}
