//! `waypost token`: manages the tokens of callers of `waypost serve`. Only a person creates and revokes them.

use clap::builder::PossibleValue;
use clap::{Args, Subcommand};
use serde_json::json;
use waypost_http::{METRICS_PATH, NewToken, Role, TokenError, Tokens};

use super::http_listener::tokens;
use super::mcp;
use super::serve::failure;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::enum_parser;
use waypost_cli::view::text;
use waypost_text::shell_word;

const ROLES: [&str; 4] = ["person", "agent", "worker", "reader"];

const EXAMPLES: &str = "\
The token is printed once. Its digest is stored in your account's state folder, not in the workspace, where agents write. \
Tokens that can approve (--role person, --elicitation) are made by a person at a terminal.

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
    /// Let the person at this agent's client approve there, if `[approval] elicitation` names the client
    #[arg(long, conflicts_with = "only_metrics")]
    elicitation: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// Token id, or an unambiguous prefix
    id: String,
}

impl Token {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let tokens = tokens(context)?;
        for warning in tokens.warnings() {
            context.out.note(warning);
        }
        match self {
            Self::New(new) => new.run(context, &tokens),
            Self::List => list(context, &tokens),
            Self::Revoke(revoke) => revoke.run(context, &tokens),
        }
    }
}

impl New {
    /// The command as it was typed.
    fn command(&self) -> String {
        let Self { agent, role, only_metrics, elicitation } = self;
        let options = [(" --only-metrics", *only_metrics), (" --elicitation", *elicitation)];
        let options = options.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| *option);
        let role = if *role == Role::Agent { String::new() } else { format!(" --role {}", role.as_str()) };
        format!("waypost token new --agent {}{role}{}", shell_word(agent), options.collect::<String>())
    }

    fn run(self, context: &mut Context, tokens: &Tokens) -> Outcome {
        let again = self.command();
        let Self { agent, role, only_metrics, elicitation } = self;
        let only = only_metrics.then_some(METRICS_PATH);
        let role = if only_metrics { Role::Reader } else { role };
        let new = NewToken { agent: &agent, role, only, elicitation };
        let made = tokens.make(new, &context.caller()?, text::now());
        let (token, secret) = made.map_err(|error| {
            let hint = match error {
                TokenError::OnlyAPerson(_) => format!("ask a person to run `{again}`"),
                TokenError::NeedsTerminal => format!("run `{again}` in a terminal of your own, without --as"),
                TokenError::NoHome
                | TokenError::Account(_)
                | TokenError::File { .. }
                | TokenError::Corrupt { .. }
                | TokenError::TooMany
                | TokenError::NotOne(..)
                | TokenError::NotOurs(_)
                | TokenError::Random(_) => error.hint(),
            };
            Failure { hint, ..failure(&error) }
        })?;
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
    let found = tokens.list().map_err(|error| failure(&error))?;
    if context.out.json {
        let listed: Vec<_> = found
            .iter()
            .map(|token| {
                let waypost_http::Token { id, agent, role, created_at, created_by, only, elicitation, .. } = token;
                let mut told = json!({ "id": id, "agent": agent, "role": role, "created_at": created_at, "created_by": created_by });
                if let Some(only) = only {
                    told["only"] = only.as_str().into();
                }
                if *elicitation {
                    told["elicitation"] = true.into();
                }
                told
            })
            .collect();
        return context.out.value(&json!({ "tokens": listed, "file": tokens.path() }));
    }
    for token in &found {
        let age = text::ago(text::now().since(token.created_at));
        let mut only = token.only.as_ref().map(|only| format!(", only {only}")).unwrap_or_default();
        if token.elicitation {
            only.push_str(", elicitation");
        }
        let role = token.role.as_str();
        context
            .out
            .line(format!("{}  {} ({role}){only}  {age} by {}", token.id, token.agent, token.created_by));
    }
    if found.is_empty() {
        context.out.say("no tokens; create one with `waypost token new --agent NAME`");
    }
    Ok(())
}
