//! The protocol handler: lists tools, resources and prompts, and runs calls and reads on blocking threads. Knows no plan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{Peer, RoleServer, ServerHandler, ServiceExt};
use tokio::task::JoinHandle;
use waypost_config::{ApprovalSettings, Config};
use waypost_core::{Actor, Proof};

use crate::call_turns::{CALLS_MAX, CALLS_WAITING_MAX, CallTurns};
use crate::elicitation::input_required::PendingCalls;
use crate::elicitation::push::OpenElicitations;
use crate::identity::{NOBODY, client_agent_name};
use crate::invalid_params::invalid_params;
use crate::native::PLAN_DRAFT;
use crate::resource_updates::{Subscriber, Update, UpdateHub};
use crate::roots::Roots;
use crate::stdio_transport::StdioTransport;
use crate::tool::Tool;
use crate::tool_call::SessionPlan;
use crate::tool_error::ToolError;
use crate::toolset::{Toolset, instructions};
use crate::workspace::{Opener, Workspace};
use crate::workspace_resolver::{ClientInfo, WorkspaceResolver};
use crate::{prompts, resources};

/// What a server offers, and to whom.
#[derive(Clone)]
pub struct Options {
    /// The toolsets. If two of them have a tool of the same name, the first one's is used.
    pub toolsets: Vec<Toolset>,
    /// The name of the calling agent; otherwise the client's name is used.
    pub agent: Option<String>,
    /// Whether `tools/list` includes output schemas.
    pub output_schemas: bool,
    /// Opens the workspace.
    pub open: Opener,
}

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The first message of the client was not an initialization.
    #[error("the client did not initialize: {0}")]
    Begin(String),
    /// The transport failed.
    #[error("the server ended: {0}")]
    Ended(String),
}

/// A server for one client.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
}

/// The state that all sessions of one agent share.
pub(crate) struct Shared {
    /// The listed tools, then their synonyms.
    pub(crate) tools: Vec<(Toolset, Tool)>,
    listed: usize,
    pub(crate) by_name: BTreeMap<String, usize>,
    toolsets: Vec<Toolset>,
    agent: Option<String>,
    output_schemas: bool,
    /// Whether the agent's token lets the person at its client approve. Without a token nothing forbids it.
    elicitation: bool,
    pub(crate) workspaces: Arc<WorkspaceResolver>,
    pub(crate) pending_calls: PendingCalls,
    pub(crate) elicitations: Arc<OpenElicitations>,
    pub(crate) turns: CallTurns,
    updates: Arc<UpdateHub>,
}

/// How long a session lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    /// As long as the connection to the client.
    Line,
    /// As long as the client keeps it; for one request if the client's protocol has no sessions.
    Http,
}

/// The state of one session.
pub(crate) struct Session {
    /// Distinguishes it from other sessions of the same agent.
    name: String,
    span: Span,
    subscriber: Arc<Subscriber>,
    /// The agent's own plan that this session works on.
    pub(crate) plan: Arc<Mutex<SessionPlan>>,
    /// Sends updates to the client; started by the first subscription.
    notifier: Mutex<Option<JoinHandle<()>>>,
}

impl Session {
    fn new(span: Span) -> Self {
        let plan = Arc::default();
        Self { name: session_name(), span, subscriber: Arc::default(), plan, notifier: Mutex::default() }
    }
}

/// Returns a random name. It is short, because one agent has few sessions at the same time.
fn session_name() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
    let mut bytes = [0; 6];
    // Without random numbers all sessions have the same name, as if they had none.
    let _no_chance = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(notifier) = self.notifier.get_mut().unwrap_or_else(PoisonError::into_inner) {
            notifier.abort();
        }
    }
}

impl Server {
    /// Creates a server with these tools for the workspace in which it is started.
    pub fn new(options: Options) -> Self {
        Self::with_roots(options, Roots::Ignore)
    }

    /// Creates a server for the workspace that the client's roots name, if `roots` follows them.
    pub fn with_roots(options: Options, roots: Roots) -> Self {
        let Options { toolsets, agent, output_schemas, open } = options;
        Self::on(
            Arc::new(WorkspaceResolver::new(open, roots)),
            Arc::default(),
            toolsets,
            (agent, true),
            output_schemas,
        )
    }

    /// Returns a server for another agent, on the same workspace. `elicitation` lets the person at its client approve, if the
    /// configuration accepts that.
    pub fn for_agent(&self, agent: &str, elicitation: bool) -> Self {
        let Shared { workspaces, updates, toolsets, output_schemas, .. } = &*self.shared;
        let (workspaces, updates) = (Arc::clone(workspaces), Arc::clone(updates));
        let agent = (Some(agent.to_owned()), elicitation);
        Self::on(workspaces, updates, toolsets.clone(), agent, *output_schemas)
    }

    fn on(
        workspaces: Arc<WorkspaceResolver>,
        updates: Arc<UpdateHub>,
        toolsets: Vec<Toolset>,
        (agent, elicitation): (Option<String>, bool),
        output_schemas: bool,
    ) -> Self {
        let mut tools: Vec<(Toolset, Tool)> = Vec::new();
        let mut by_name = BTreeMap::new();
        let mut listed = 0;
        let of = |set: &Toolset, tools: Vec<Tool>, lists: usize| {
            let set = *set;
            tools.into_iter().map(move |tool| (set, tool, lists))
        };
        let all = toolsets.iter().flat_map(|set| of(set, set.tools(), 1));
        let synonyms = toolsets.iter().flat_map(|set| of(set, set.synonyms(), 0));
        for (set, tool, lists) in all.chain(synonyms) {
            by_name.entry(tool.definition.name.to_string()).or_insert_with(|| {
                listed += lists;
                tools.push((set, tool));
                tools.len() - 1
            });
        }
        let shared = Shared {
            tools,
            listed,
            by_name,
            toolsets,
            agent,
            output_schemas,
            elicitation,
            workspaces,
            pending_calls: PendingCalls::default(),
            elicitations: Arc::default(),
            turns: CallTurns::new(CALLS_MAX, CALLS_WAITING_MAX),
            updates,
        };
        Self { shared: Arc::new(shared), session: Arc::new(Session::new(Span::Line)) }
    }

    /// Returns the same server for another HTTP session of the same agent.
    pub(crate) fn for_session(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), session: Arc::new(Session::new(Span::Http)) }
    }

    pub(crate) fn is_over_http(&self) -> bool {
        self.session.span == Span::Http
    }

    /// Whether the answer of the person at the client counts. Any program can declare that it asks a person, and answer by
    /// itself; so the account's configuration has to name the client and to accept its word as proof.
    pub(crate) fn accepts_elicitation(&self, context: &RequestContext<RoleServer>, config: &Config) -> bool {
        let ApprovalSettings { proof, elicitation: hosts, .. } = &config.approval;
        let client = context.client_info();
        let is_named = client.is_some_and(|client| hosts.contains(&client.name));
        self.shared.elicitation && *proof <= Proof::Client && is_named
    }

    /// Returns the caller: always an agent, whatever name the client gives.
    pub(crate) fn caller(&self, context: &RequestContext<RoleServer>) -> Actor {
        let named = self.shared.agent.clone();
        Actor::agent(named.or_else(|| client_name(context)).unwrap_or_else(|| NOBODY.to_owned()))
    }

    /// Returns the caller's name as the holder of leases. HTTP requests without a session all share one.
    pub(crate) fn worker(&self, by: &Actor, client_info: &ClientInfo) -> String {
        match self.session.span {
            Span::Http if client_info.answers_input_required() => by.to_string(),
            Span::Line | Span::Http => by.in_session(&self.session.name),
        }
    }

    /// Runs work on the workspace that may block on disk.
    async fn run_blocking<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Arc<Workspace>) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let workspace = self.shared.workspaces.workspace(&client_info(context)).await?;
        let done = tokio::task::spawn_blocking(move || work(&workspace)).await;
        done.map_err(|error| ToolError::new(format!("it was not done: {error}"), "try again"))?
    }

    /// Starts sending this session's updates to its client.
    fn notify_from_now(&self, peer: &Peer<RoleServer>) {
        let mut notifier = self.session.notifier.lock().unwrap_or_else(PoisonError::into_inner);
        if notifier.is_none() {
            *notifier =
                Some(tokio::spawn(notify_updates(peer.clone(), Arc::clone(&self.session.subscriber))));
        }
    }
}

/// Returns the name of the agent behind the client, if anything is left of it.
pub(crate) fn client_name(context: &RequestContext<RoleServer>) -> Option<String> {
    context.client_info().and_then(|client| client_agent_name(&client.name))
}

pub(crate) fn client_info(context: &RequestContext<RoleServer>) -> ClientInfo {
    ClientInfo {
        peer: context.peer.clone(),
        can: context.client_capabilities(),
        protocol: context.protocol_version(),
    }
}

/// Reads the client's capabilities from its initialization.
fn known_client_info(peer: &Peer<RoleServer>) -> ClientInfo {
    let info = peer.peer_info();
    ClientInfo {
        peer: peer.clone(),
        can: info.as_ref().map(|info| info.capabilities.clone()),
        protocol: info.map(|info| info.protocol_version.clone()),
    }
}

async fn notify_updates(peer: Peer<RoleServer>, subscriber: Arc<Subscriber>) {
    loop {
        for update in subscriber.next_updates().await {
            let sent = match update {
                Update::ListChanged => peer.notify_resource_list_changed().await,
                Update::Updated(uri) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

/// A refusal as a protocol error, where the protocol has no other place for it.
fn invalid(refused: &ToolError) -> ErrorData {
    ErrorData::invalid_params(refused.text(), None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_completions()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .build();
        ServerConfig::new(can)
            .with_server_info(Implementation::new("waypost", env!("CARGO_PKG_VERSION")).with_title("Waypost"))
            .with_instructions(instructions(&self.shared.toolsets))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let workspaces = Arc::clone(&self.shared.workspaces);
        // Resolve ahead, so that the first call need not wait. An error is reported by that call.
        tokio::spawn(async move { workspaces.folder(&known_client_info(&context.peer)).await.is_ok() });
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let workspaces = Arc::clone(&self.shared.workspaces);
        tokio::spawn(async move {
            workspaces.forget_roots().await;
            workspaces.folder(&known_client_info(&context.peer)).await.is_ok()
        });
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let can_sample = client_info(&context).can_sample();
        let listed = self.shared.tools[..self.shared.listed].iter();
        // Do not list a tool that cannot be used: every conversation would pay for it.
        let offered = listed.filter(|(_, tool)| can_sample || tool.definition.name != PLAN_DRAFT);
        let define = |(_, tool): &(Toolset, Tool)| {
            let mut definition = tool.definition.clone();
            definition.output_schema.take_if(|_| !self.shared.output_schemas);
            definition
        };
        Ok(ListToolsResult::with_all_items(offered.map(define).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    /// Also receives requests whose parameters do not fit their method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(invalid_params(&request))
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = page.and_then(|page| page.cursor);
        let (updates, subscriber) = (Arc::clone(&self.shared.updates), Arc::clone(&self.session.subscriber));
        subscriber.watch_list();
        let listed = self.run_blocking(&context, move |workspace| {
            updates.add(workspace, &subscriber)?;
            resources::list(workspace, cursor)
        });
        let listed = listed.await.map_err(|refused| invalid(&refused))?;
        // A client that has read the list is notified when it changes; newer clients subscribe explicitly.
        if !client_info(&context).answers_input_required() {
            self.notify_from_now(&context.peer);
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read =
            self.run_blocking(&context, move |workspace| resources::read(workspace, &request.uri)).await;
        let contents = read.map_err(|refused| ErrorData::resource_not_found(refused.text(), None))?;
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (updates, subscriber) = (Arc::clone(&self.shared.updates), Arc::clone(&self.session.subscriber));
        let subscribed = self.run_blocking(&context, move |workspace| {
            updates.add(workspace, &subscriber)?;
            subscriber.watch(workspace, &request.uri)
        });
        subscribed.await.map_err(|refused| ErrorData::resource_not_found(refused.text(), None))?;
        self.notify_from_now(&context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.subscriber.forget(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let subscriber = Arc::new(Subscriber::default());
        let accepted = context.accepted().clone();
        let (updates, listening) = (Arc::clone(&self.shared.updates), Arc::clone(&subscriber));
        let begun = self.run_blocking(context.request_context(), move |workspace| {
            if accepted.resources_list_changed == Some(true) {
                listening.watch_list();
            }
            updates.add(workspace, &listening)?;
            let mut wanted = accepted.resource_subscriptions.iter().flatten();
            wanted.try_for_each(|uri| listening.watch(workspace, uri))?;
            // The client was told that it is subscribed before the watch began, and what it read earlier may be outdated by now.
            listening.push_all();
            Ok(())
        });
        begun.await.map_err(|refused| invalid(&refused))?;
        loop {
            let news = tokio::select! {
                () = context.cancelled() => return Ok(()),
                news = subscriber.next_updates() => news,
            };
            for update in news {
                let sent = match update {
                    Update::ListChanged => context.sink().notify_resource_list_changed().await,
                    Update::Updated(uri) => context.sink().notify_resource_updated(uri).await,
                };
                if sent.is_err() {
                    return Ok(());
                }
            }
        }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (by, toolsets) = (self.caller(&context), self.shared.toolsets.clone());
        let arguments = request.arguments.unwrap_or_default();
        let recent = self.session.plan.lock().unwrap_or_else(PoisonError::into_inner).id();
        let said = self.run_blocking(&context, move |workspace| {
            prompts::get(workspace, (&by, recent), &toolsets, &request.name, &arguments)
        });
        said.await.map(GetPromptResponse::Complete).map_err(|refused| invalid(&refused))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = request.context.and_then(|known| known.arguments).unwrap_or_default();
        let plan = known.get("id").or_else(|| known.get("plan")).cloned();
        let (reference, argument) = (request.r#ref, request.argument);
        let completed = self.run_blocking(&context, move |workspace| {
            resources::complete(workspace, &reference, &argument.name, &argument.value, plan.as_deref())
        });
        completed.await.map(CompleteResult::new).map_err(|refused| invalid(&refused))
    }
}

/// Serves one client on standard input and output until it disconnects.
pub async fn serve_stdio(options: Options, roots: Roots) -> Result<(), ServeError> {
    let (read, write) = rmcp::transport::stdio();
    let running = Server::with_roots(options, roots).serve(StdioTransport::new(read, write)).await;
    let running = running.map_err(|error| ServeError::Begin(error.to_string()))?;
    running.waiting().await.map_err(|error| ServeError::Ended(error.to_string()))?;
    Ok(())
}
