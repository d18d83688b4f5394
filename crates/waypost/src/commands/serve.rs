//! `waypost serve`: serves the dashboard and plans to people and agents over HTTP, and runs them with an embedded worker, until it is stopped.

mod browser;
mod embedded_worker;
mod models;
mod sign_in_link;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::sync::mpsc;
use waypost_config::NotTrusted;
use waypost_core::ActorKind;
use waypost_http::{
    Api, BODY_BYTES_MAX, Mount, Mounted, Role, Site, Token, TokenError, Tokens, metrics, serve,
};
use waypost_mcp::{Server, http_service};
use waypost_store::{SharingScope, Store, StoreError};

use self::browser::SignInPage;
use self::embedded_worker::EmbeddedWorker;
use self::models::ServerModels;
use self::sign_in_link::SignInLink;
use super::http_listener::{address, host_origin_guard, tokens};
use super::mcp::{self, Relays, Tools};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome, rescued};
use waypost_cli::repository;
use waypost_cli::signals;
use waypost_cli::trust_prompt;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
Every caller needs a token that identifies it: `waypost token new --agent NAME` creates one. \
Agents speak the Model Context Protocol at /mcp, programs use /api/v1, people open the printed sign-in link. \
The link signs in once, within ten minutes. Without a terminal it is written to a private file, whose path is printed. \
/metrics is for Prometheus; /health needs no token. Active plans run here, too, as in `waypost worker`. \
Ctrl-C or SIGTERM once: start no further tasks, wait for running ones for a while, and exit; again: stop them and exit.

Examples:
  waypost serve --open
  waypost serve --listen 8021
  waypost serve --no-worker
  waypost serve --listen 0.0.0.0:8021 --allow-host plans.example.org
  waypost serve --toolset native,orchestrator";

/// The interval of checking that the store is still there.
const STORE_LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Listen address: ADDR:PORT, or a port on localhost [default: a free port]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address, default_value = "127.0.0.1:0", hide_default_value = true)]
    listen: SocketAddr,
    #[command(flatten)]
    tools: Tools,
    /// Additional host name to accept: HOST or HOST:PORT
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Additional browser origin to accept, e.g. https://example.org
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Also run the active plans of all queues (default)
    #[arg(long, conflicts_with = "no_worker")]
    worker: bool,
    /// Open the dashboard in the browser, signed in
    #[arg(long)]
    open: bool,
    /// Run no plans; leave that to `waypost worker`
    #[arg(long)]
    no_worker: bool,
    /// Let agents read and write plan files in .waypost/files
    #[arg(long)]
    files: bool,
}

impl Serve {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let Self { listen, tools, hosts, origins, worker: _, open: opens_browser, no_worker, files } = self;
        let guard = host_origin_guard(listen, &hosts, &origins)?;
        let folders = context.folders()?;
        trust_prompt::ask_if_present(context, &folders)?;
        let relays = Arc::new(Relays::default());
        let open = mcp::opener(context, &relays, ActorKind::Person, files);
        // Opened once in advance, so that errors of the store or the configuration are reported here, not to every agent.
        let workspace = open(None).map_err(|unopened| Failure::failed(unopened.message, unopened.hint))?;
        let tokens = tokens(context)?;
        for warning in tokens.warnings() {
            context.out.say(format!("warning: {warning}"));
        }
        let person = persons_token(context, &tokens)?;
        let name = workspace.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let (service, config) = (workspace.service, workspace.config);
        let plans = Arc::clone(service.plans());
        let served_plans = Arc::clone(&plans);
        let api = Api::new(service, folders.logs(), name.unwrap_or_default())
            .with_repository(repository::around(&folders.workspace))
            .with_models(Arc::new(ServerModels::new(context, &plans)))
            .with_shared_branch(context.branch_finder());
        let api = Arc::new(api);
        let runs = api.runs();
        let server = Server::new(tools.options(None, open));
        let make = move |token: &Token| mounted(&server.for_agent(&token.agent, token.elicitation));
        let mount = Mount { path: "/mcp", make: Box::new(make) };
        let store = Arc::clone(plans.store());
        let beside_tokens = tokens.path().map(Path::to_owned);
        let site = Site::new(guard, tokens, vec![mount, metrics(store, &config)]).with_api(Arc::clone(&api));
        let site = if person.is_some() { site } else { site.without_people() };
        let code =
            person.map(|token| site.login_code(&token)).transpose().map_err(|error| failure(&error))?;
        let mut stop = stopped()?;
        let mut removed = None;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("no runtime: {error}"), ""))?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(listen).await;
            let listener = listener.and_then(|listener| listener.local_addr().map(|at| (listener, at)));
            let (listener, at) = listener.map_err(|error| {
                Failure::failed(
                    format!("{listen}: {error}"),
                    "choose another --listen, or leave it out for a free port",
                )
            })?;
            // Started only after the bind: if the server cannot start, no plan runs either.
            let not_trusted = config.not_trusted.clone();
            let runs_plans = !no_worker && not_trusted.is_none();
            let beside = runs_plans.then(|| EmbeddedWorker::begin(context, plans, config, &folders, runs));
            let beside = beside.transpose()?;
            let url = code.map(|code| sign_in_link::url(at, &code));
            let link = url.clone().map(|url| SignInLink::publish(at, url, beside_tokens.as_deref()));
            greet(context, at, link.as_ref(), not_trusted.as_ref())?;
            let _page = url.filter(|_| opens_browser).and_then(|url| {
                SignInPage::open(&url, at.port(), beside_tokens.as_deref(), context.for_server().out)
            });
            let ended = serve(listener, site, async {
                tokio::select! {
                    _signals_are_gone = stop.recv() => {}
                    error = store_removed(Arc::clone(served_plans.store())) => removed = Some(error),
                }
                if let Some(beside) = beside {
                    api.end_soon();
                    beside.end(context, &mut stop).await;
                }
            });
            ended.await.map_err(|error| Failure::failed(format!("the server ended: {error}"), ""))
        });
        runtime.shutdown_background();
        relays.finish(context);
        served?;
        context.out.say("the server ended");
        rescued(&served_plans, removed.map_or(Ok(()), |error| Err(error.into())))
    }
}

/// Waits until the files of the store are removed or replaced: from then on no reply would be true.
async fn store_removed(store: Arc<dyn Store>) -> StoreError {
    // A server of databases keeps them where they are.
    if store.reach() == SharingScope::Machines {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(STORE_LOOK).await;
        let store = Arc::clone(&store);
        let looked = tokio::task::spawn_blocking(move || store.query(|read| Ok(read.now()))).await;
        if let Ok(Err(error @ StoreError::StoreRemoved { .. })) = looked {
            return error;
        }
    }
}

/// The MCP service for one agent.
fn mounted(server: &Server) -> Mounted {
    let service = http_service(server, BODY_BYTES_MAX);
    let ends = service.clone();
    Mounted::new(service, move || ends.close())
}

/// Creates a token for the person who starts the server, valid while it runs; `None` if the caller is not a person.
fn persons_token(context: &Context, tokens: &Tokens) -> Outcome<Option<Token>> {
    let by = context.actor()?;
    if by.kind != ActorKind::Person {
        return Ok(None);
    }
    let lent = tokens.lend(Role::Person, &by.name, &by, text::now());
    lent.map(Some).map_err(|error| failure(&error))
}

/// Prints the addresses immediately, so that scripts can continue.
fn greet(
    context: &Context,
    at: SocketAddr,
    link: Option<&SignInLink>,
    not_trusted: Option<&NotTrusted>,
) -> Outcome {
    let mcp = format!("http://{at}/mcp");
    let mut out = context.for_server().out;
    if out.json {
        let (login, login_file) = match link {
            Some(SignInLink::Printed(url)) => (Some(url), None),
            Some(SignInLink::File(path)) => (None, Some(path)),
            Some(SignInLink::Unwritable(_)) | None => (None, None),
        };
        if let Some(not_trusted) = not_trusted {
            out.note(format!(
                "{}: {not_trusted}; no plan runs here ({})",
                not_trusted.code(),
                not_trusted.hint()
            ));
        }
        out.value(
            &json!({ "url": mcp, "address": at.to_string(), "login": login, "login_file": login_file }),
        )?;
    } else {
        out.line(format!("serving plans at {mcp}"));
        match link {
            Some(SignInLink::Printed(url)) => out.line(format!("dashboard: {url}")),
            Some(SignInLink::File(path)) => {
                out.line(format!("dashboard: sign-in link in {}", path.display()))
            }
            Some(SignInLink::Unwritable(_)) | None => {}
        }
    }
    out.finish()?;
    if let Some(not_trusted) = not_trusted {
        context.out.say(format!("warning: {not_trusted}; no plan runs here ({})", not_trusted.hint()));
    }
    if !at.ip().is_loopback() {
        context.out.say(
            "warning: other machines can reach this server and the traffic is not encrypted; put a TLS proxy in front of it",
        );
    }
    let later = "sign in with a token from `waypost token new --role person --name NAME`";
    match link {
        Some(SignInLink::Printed(_) | SignInLink::File(_)) => {
            context.out.say(format!("the link signs you in once, within 10 minutes; after that, {later}"));
        }
        Some(SignInLink::Unwritable(why)) => context.out.say(format!("no sign-in link: {why}")),
        None => context
            .out
            .say("no sign-in link: an agent or a task started this server, so it accepts no person's token"),
    }
    context.out.say("for an agent: `waypost token new --agent NAME`; Ctrl-C stops the server");
    Ok(())
}

/// Returns a channel that receives each Ctrl-C or SIGTERM.
fn stopped() -> Outcome<mpsc::UnboundedReceiver<()>> {
    let (tell, told) = mpsc::unbounded_channel();
    signals::listen(move |_| {
        let _ended_already = tell.send(());
    })?;
    Ok(told)
}

/// Converts a token error to a command's failure.
pub(crate) fn failure(error: &TokenError) -> Failure {
    let (message, hint) = (error.to_string(), error.hint());
    match error {
        TokenError::NotOne(..) => Failure::not_found(message, hint),
        TokenError::OnlyAPerson(_) => {
            Failure { code: "needs_person".to_owned(), ..Failure::failed(message, hint) }
        }
        TokenError::NeedsTerminal => {
            Failure { code: "needs_terminal".to_owned(), ..Failure::failed(message, hint) }
        }
        TokenError::Account(error) => {
            Failure { code: error.code().to_owned(), ..Failure::failed(message, hint) }
        }
        TokenError::NoHome
        | TokenError::NotOurs(_)
        | TokenError::File { .. }
        | TokenError::Corrupt { .. }
        | TokenError::TooMany
        | TokenError::Random(_) => Failure::failed(message, hint),
    }
}
