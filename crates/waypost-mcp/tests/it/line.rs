//! A line between a client and a server for tests of the protocol itself: in the old way, by `initialize`, or in the new
//! way, in which every request speaks for itself.

use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceExt};
use serde_json::Value;
use tokio::runtime::Runtime;
use waypost_core::{Actor, PlanId};
use waypost_mcp::{Options, Server, Toolset};
use waypost_store::NewPlan;

use crate::direct_writes;
use crate::session::World;

/// How the two begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Old,
    New,
}

/// A client and its server.
pub(crate) struct Line<H: ClientHandler> {
    pub(crate) runtime: Runtime,
    client: Option<RunningService<RoleClient, H>>,
}

impl<H: ClientHandler> Line<H> {
    pub(crate) fn new(server: Server, handler: H, era: Era) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move {
                let served = server.serve(far).await.unwrap();
                served.waiting().await
            });
            match era {
                Era::Old => handler.serve(near).await.unwrap(),
                Era::New => {
                    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                    let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
                    handler.serve_with_lifecycle(near, lifecycle).await.unwrap()
                }
            }
        });
        Self { runtime, client: Some(client) }
    }

    pub(crate) fn client(&self) -> &RunningService<RoleClient, H> {
        self.client.as_ref().unwrap()
    }

    /// Calls a tool; whatever the client is asked meanwhile, it answers.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        self.runtime.block_on(self.client().call_tool(request(tool, arguments))).unwrap()
    }
}

impl<H: ClientHandler> Drop for Line<H> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let _ended = self.runtime.block_on(client.cancel());
        }
    }
}

pub(crate) fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    let mut request = CallToolRequestParams::new(tool.to_owned());
    request.arguments = arguments.as_object().cloned();
    request
}

/// The text of an answer.
pub(crate) fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect()
}

/// What a server of this world offers to an agent.
pub(crate) fn options(world: &World, agent: Option<&str>) -> Options {
    let agent = agent.map(str::to_owned);
    Options { toolsets: vec![Toolset::Native], agent, output_schemas: false, open: world.opener() }
}

/// A plan of an agent, from the native format.
pub(crate) fn plan(world: &World, draft: Value) -> PlanId {
    let draft = serde_json::from_value(draft).unwrap();
    let new = NewPlan { id: None, by: Actor::agent("planner"), draft, approval_required: None };
    direct_writes::create(&world.plans, new).plan
}
