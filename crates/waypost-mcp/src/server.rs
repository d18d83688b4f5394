//! Speaks the protocol: lists tools, calls them on threads that may wait, and hands their answers over. Knows no plan.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool as Definition, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use waypost_core::Actor;

use crate::call::{Call, Client};
use crate::refused::Refused;
use crate::tool::{Answer, Effect, Tool};
use crate::toolset::Toolset;
use crate::workspace::{Opener, Workspace};

/// The name of an agent whom nothing names.
const NOBODY: &str = "main";

/// What a server offers, and to whom.
#[derive(Clone)]
pub struct Options {
    /// The sets of tools; a name that two of them have is the first one's.
    pub toolsets: Vec<Toolset>,
    /// The agent who calls; otherwise the client's name is taken.
    pub agent: Option<String>,
    /// Whether schemas of answers are listed, too.
    pub output_schemas: bool,
    /// Finds the workspace.
    pub open: Opener,
}

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client said something that no client says first.
    #[error("the client did not begin as clients do: {0}")]
    Begin(String),
    /// What carried the messages broke.
    #[error("the server ended: {0}")]
    Ended(String),
}

/// A server for one client.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    /// Those that are listed, then their synonyms.
    tools: Vec<Tool>,
    listed: usize,
    by_name: BTreeMap<&'static str, usize>,
    agent: Option<String>,
    output_schemas: bool,
    open: Opener,
    /// Opened by the first call: saying hello touches no file.
    workspace: OnceLock<Arc<Workspace>>,
}

impl Server {
    /// A server with these tools.
    pub fn new(options: Options) -> Self {
        let mut tools: Vec<Tool> = Vec::new();
        let mut by_name = BTreeMap::new();
        let mut listed = 0;
        let all = options.toolsets.iter().flat_map(|set| set.tools()).map(|tool| (tool, 1));
        let synonyms = options.toolsets.iter().flat_map(|set| set.synonyms()).map(|tool| (tool, 0));
        for (tool, lists) in all.chain(synonyms) {
            by_name.entry(tool.name).or_insert_with(|| {
                listed += lists;
                tools.push(tool);
                tools.len() - 1
            });
        }
        let Options { agent, output_schemas, open, .. } = options;
        let workspace = OnceLock::new();
        Self { shared: Arc::new(Shared { tools, listed, by_name, agent, output_schemas, open, workspace }) }
    }

    /// The agent who calls.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Actor {
        let named = self.shared.agent.clone();
        let client =
            || context.client_info().map(|client| client.name).filter(|name| !name.trim().is_empty());
        Actor::agent(named.or_else(client).unwrap_or_else(|| NOBODY.to_owned()))
    }
}

impl Shared {
    fn workspace(&self) -> Result<Arc<Workspace>, Refused> {
        if let Some(opened) = self.workspace.get() {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new((self.open)(None)?);
        Ok(Arc::clone(self.workspace.get_or_init(|| opened)))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("waypost", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let define = |tool: &Tool| definition(tool, self.shared.output_schemas);
        Ok(ListToolsResult::with_all_items(
            self.shared.tools[..self.shared.listed].iter().map(define).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(&place) = self.shared.by_name.get(&*request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let by = self.caller(&context);
        let can_ask = context.client_capabilities().is_some_and(|can| can.elicitation.is_some());
        let gone = context.ct.clone();
        let client = Client {
            peer: context.peer,
            runtime: tokio::runtime::Handle::current(),
            can_ask,
            gone: Box::new(move || gone.is_cancelled()),
        };
        let shared = Arc::clone(&self.shared);
        let answered = tokio::task::spawn_blocking(move || {
            let workspace = shared.workspace()?;
            let arguments = request.arguments.unwrap_or_default();
            (shared.tools[place].run)(&Call { workspace, by, arguments, client })
        });
        let answer = answered.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(CallToolResponse::Complete(result(answer)))
    }
}

/// An answer as the protocol has it.
fn result(answer: Result<Answer, Refused>) -> CallToolResult {
    match answer {
        Ok(Answer { value, text }) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            result
        }
        Err(refused) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(refused.text())]);
            if !refused.facts.is_empty() {
                result.structured_content = Some(Value::Object(*refused.facts));
            }
            result
        }
    }
}

/// A tool as the protocol has it.
fn definition(tool: &Tool, output_schemas: bool) -> Definition {
    let schema = |text: &str| Arc::new(serde_json::from_str::<JsonObject>(text).unwrap_or_default());
    let mut definition = Definition::new(tool.name, tool.description, schema(tool.arguments));
    if output_schemas {
        definition.output_schema = Some(schema(tool.answer));
    }
    let hints = ToolAnnotations::new().open_world(false);
    definition.annotations = Some(match tool.effect {
        Effect::Reads => hints.read_only(true),
        Effect::Adds => hints.read_only(false).destructive(false).idempotent(false),
        Effect::Changes => hints.read_only(false).destructive(false).idempotent(false),
        Effect::Settles => hints.read_only(false).destructive(false).idempotent(true),
        Effect::Destroys => hints.read_only(false).destructive(true).idempotent(true),
    });
    definition
}

/// Serves one client on standard input and output until it goes away.
pub async fn serve_stdio(options: Options) -> Result<(), ServeError> {
    let running = Server::new(options).serve(rmcp::transport::stdio()).await;
    let running = running.map_err(|error| ServeError::Begin(error.to_string()))?;
    running.waiting().await.map_err(|error| ServeError::Ended(error.to_string()))?;
    Ok(())
}
