//! `waypost instructions`: prints how an agent works with plans from a shell.

use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::error::Outcome;
use crate::instructions;

#[derive(Debug, Args)]
pub(crate) struct Instructions {}

impl Instructions {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let text = instructions::for_shell();
        if context.out.json {
            return context.out.value(&json!({ "instructions": text }));
        }
        context.out.text(&text);
        Ok(())
    }
}
