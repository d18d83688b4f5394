//! `waypost token`: manages the tokens of callers of `waypost serve`. Only a person creates and revokes them.

use clap::builder::PossibleValue;
use clap::{Args, Subcommand};
use serde_json::json;
use waypost_core::ActorKind;
use waypost_http::{METRICS_PATH, Role, Tokens};

use super::mcp;
use super::serve::failure;
use crate::context::Context;
use crate::error::Outcome;
use crate::options::enum_parser;
use crate::view::text;

const ROLES: [&str; 4] = ["person", "agent", "worker", "reader"];

const EXAMPLES: &str = "\
The token is shown this once; what is kept cannot be turned back into it.

Examples:
  waypost token new --agent planner
  waypost token new --agent planner --json
  waypost token new --role person --name ada
  waypost token new --agent prometheus --only-metrics";

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Create a token and print it once (people only)
    New(New),
    /// List tokens
    #[command(visible_alias = "ls")]
    List,
    /// Revoke a token with immediate effect (people only)
    #[command(visible_alias = "rm")]
    Revoke(Revoke),
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct New {
    /// Name of the caller
    #[arg(long, alias = "name", value_name = "NAME", value_parser = mcp::agent)]
    agent: String,
    /// Role: person (everything, including approval), agent, worker, reader (read only)
    #[arg(long, value_name = "ROLE", value_parser = enum_parser::<Role>(ROLES.map(PossibleValue::new)), default_value = "agent")]
    role: Role,
    /// Grant access to /metrics only
    #[arg(long)]
    only_metrics: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// Token id, or an unambiguous prefix
    id: String,
}

impl Token {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let tokens = Tokens::of(&context.folders()?.own);
        match self {
            Self::New(new) => new.run(context, &tokens),
            Self::List => list(context, &tokens),
            Self::Revoke(revoke) => revoke.run(context, &tokens),
        }
    }
}

impl New {
    fn run(self, context: &mut Context, tokens: &Tokens) -> Outcome {
        let by = context.actor()?;
        // Only a person gets a token, so the folder is not created for others.
        if by.kind == ActorKind::Person {
            context.folders()?.prepare()?;
        }
        let made = match self.only_metrics {
            true => tokens.make_only(&self.agent, METRICS_PATH, &by, text::now()),
            false => tokens.make_for(self.role, &self.agent, &by, text::now()),
        };
        let (token, secret) = made.map_err(|error| failure(&error))?;
        if context.out.json {
            return context.out.value(
                &json!({ "id": token.id, "agent": token.agent, "role": token.role, "token": secret }),
            );
        }
        context.out.line(secret);
        context.out.say(format!(
            "token {} for {}; it is shown this once. Callers send it as `Authorization: Bearer …`; \
             `waypost token revoke {}` ends it",
            token.id, token.agent, token.id
        ));
        Ok(())
    }
}

impl Revoke {
    fn run(self, context: &mut Context, tokens: &Tokens) -> Outcome {
        let by = context.actor()?;
        let revoked = tokens.revoke(&self.id, &by).map_err(|error| failure(&error))?;
        if context.out.json {
            return context.out.value(&json!({ "id": revoked.id, "agent": revoked.agent }));
        }
        context.out.line(format!("revoked {} of {}", revoked.id, revoked.agent));
        Ok(())
    }
}

fn list(context: &mut Context, tokens: &Tokens) -> Outcome {
    let tokens = tokens.list().map_err(|error| failure(&error))?;
    if context.out.json {
        let tokens: Vec<_> = tokens
            .iter()
            .map(|token| {
                let waypost_http::Token { id, agent, role, created_at, created_by, only, .. } = token;
                let mut told = json!({ "id": id, "agent": agent, "role": role, "created_at": created_at, "created_by": created_by });
                if let Some(only) = only {
                    told["only"] = only.as_str().into();
                }
                told
            })
            .collect();
        return context.out.value(&json!({ "tokens": tokens }));
    }
    for token in &tokens {
        let age = text::ago(text::now().since(token.created_at));
        let only = token.only.as_ref().map(|only| format!(", only {only}")).unwrap_or_default();
        let role = token.role.as_str();
        context
            .out
            .line(format!("{}  {} ({role}){only}  {age} by {}", token.id, token.agent, token.created_by));
    }
    if tokens.is_empty() {
        context.out.say("no tokens; create one with `waypost token new --agent NAME`");
    }
    Ok(())
}
