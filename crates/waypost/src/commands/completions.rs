//! `waypost completions`: prints a shell completion script.

use clap::Args;
use clap_complete::Shell;

use crate::context::Context;
use crate::error::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost
  waypost completions fish > ~/.config/fish/completions/waypost.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut (context.program)(), "waypost", &mut script);
        let script = String::from_utf8(script).map_err(|error| Failure::failed(error.to_string(), ""))?;
        context.out.text(&script);
        Ok(())
    }
}
