//! A client that speaks the protocol with a server over a pipe, for tests that read as a conversation. Plain, synchronous
//! calls: the runtime is hidden here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation, Tool,
};
use rmcp::service::RunningService;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;
use tokio::runtime::Runtime;
use waypost_config::{Config, Layer, Origin};
use waypost_core::{Actor, Command, Plan, PlanId, Timestamp};
use waypost_mcp::{Opener, Options, Server, Toolset, Workspace};
use waypost_service::{Caller, Guard, Presence, Service};
use waypost_store::{MemoryStore, PlanStore, Store, WriteRequest};

use crate::direct_writes;

/// A store, a folder and a configuration, which several sessions may share.
pub(crate) struct World {
    store: Arc<dyn Store>,
    /// The same plans, as a person or a test looks at them.
    pub(crate) plans: PlanStore,
    clock: Arc<AtomicI64>,
    config: Config,
    folder: PathBuf,
}

impl World {
    /// An empty one. Nothing needs approval but what an agent gives to machines.
    pub(crate) fn new() -> Self {
        Self::with_config("")
    }

    /// An empty one with this configuration (TOML).
    pub(crate) fn with_config(text: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("waypost-mcp-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // A fixed moment: 2026-01-01.
        let clock = Arc::new(AtomicI64::new(1_767_225_600_000_000));
        let tells = Arc::clone(&clock);
        let now = move || Timestamp::from_micros(tells.load(Ordering::Relaxed));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::new(now)));
        let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
        let config = Config::load(&[layer], []).unwrap();
        Self { plans: PlanStore::new(Arc::clone(&store)), store, clock, config, folder }
    }

    /// Lets time go by in the store.
    pub(crate) fn wait(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }

    /// The folder that files may be read from and written to.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds this world, as the command line would find a workspace. Each session has its own `PlanStore`, as processes have.
    pub(crate) fn opener(&self) -> Opener {
        let (store, config) = (Arc::clone(&self.store), Arc::new(self.config.clone()));
        let folder = self.folder.clone();
        Arc::new(move |_| {
            let plans = Arc::new(PlanStore::new(Arc::clone(&store)));
            let own = folder.join(".waypost");
            Ok(Workspace::new(plans, Arc::clone(&config), folder.clone(), own))
        })
    }

    /// A session of an agent with one set of tools.
    pub(crate) fn session(&self, toolset: Toolset, agent: &str) -> Session {
        self.session_with(toolset, agent, client("test"))
    }

    /// The same with a client that can more.
    pub(crate) fn session_with<H: ClientHandler>(
        &self,
        toolset: Toolset,
        agent: &str,
        handler: H,
    ) -> Session<H> {
        Session::begin(
            Options {
                toolsets: vec![toolset],
                agent: Some(agent.to_owned()),
                output_schemas: false,
                open: self.opener(),
            },
            handler,
        )
    }

    /// What a person does at a terminal.
    pub(crate) fn person(&self, plan: &str, command: Command) {
        let request = WriteRequest {
            plan: PlanId::new(plan).unwrap(),
            by: Actor::person("ada"),
            commands: vec![command],
            known_version: None,
            lease_seconds: None,
        };
        direct_writes::write(&self.plans, request);
    }

    /// Waits until a plan is as it should be; a minute is too long.
    pub(crate) fn until(&self, plan: &str, is_so: impl Fn(&Plan) -> bool) {
        let plan = PlanId::new(plan).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let mut watch = self.plans.watch().unwrap();
        while !self.plans.with_plan(&plan, &is_so).unwrap() {
            assert!(Instant::now() < end, "it never came to be so");
            watch.wait(Duration::from_secs(1)).unwrap();
        }
    }

    /// A person approves the plan as it stands.
    pub(crate) fn approve(&self, plan: &str) {
        let (plan, plans) = (PlanId::new(plan).unwrap(), PlanStore::new(Arc::clone(&self.store)));
        let service = Service::new(Arc::new(plans), Arc::new(self.config.clone()));
        let ada = Caller::new(Actor::person("ada")).present(Presence::new("terminal"));
        let seen = service.preview(&plan).unwrap().seen();
        service.approve(&ada, &plan, seen, "", Guard::NONE).unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// A session of an agent in a world of its own.
pub(crate) fn session(toolset: Toolset, agent: &str) -> Session {
    World::new().session(toolset, agent)
}

/// A client that can nothing but call, under this name.
pub(crate) fn client(name: &str) -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new(name, "1"))
}

/// What a tool answered.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) value: Value,
    pub(crate) is_error: bool,
}

impl Told {
    fn of(result: CallToolResult) -> Self {
        let text = result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str());
        Self {
            text: text.collect::<Vec<_>>().join("\n"),
            value: result.structured_content.unwrap_or(Value::Null),
            is_error: result.is_error.unwrap_or(false),
        }
    }
}

/// A client and the server that it talks to.
pub(crate) struct Session<H: ClientHandler = ClientConfig> {
    runtime: Runtime,
    client: Option<RunningService<RoleClient, H>>,
}

impl<H: ClientHandler> Session<H> {
    /// Connects a client with a new server.
    pub(crate) fn begin(options: Options, handler: H) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move {
                let served = Server::new(options).serve(far).await.unwrap();
                served.waiting().await
            });
            handler.serve(near).await.unwrap()
        });
        Self { runtime, client: Some(client) }
    }

    /// The client itself, for what is not a tool, and the runtime to use it on.
    pub(crate) fn raw(&self) -> (&RunningService<RoleClient, H>, &Runtime) {
        (self.client.as_ref().unwrap(), &self.runtime)
    }

    /// Calls a tool and says what it answered, be it an error of the tool.
    pub(crate) fn ask(&self, tool: &str, arguments: Value) -> Told {
        let mut parameters = CallToolRequestParams::new(tool.to_owned());
        parameters.arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            Value::Null => None,
            other => panic!("arguments are an object: {other}"),
        };
        let (client, runtime) = self.raw();
        let told = runtime.block_on(client.call_tool(parameters));
        Told::of(told.unwrap_or_else(|error| panic!("{tool}: an error of the protocol: {error}")))
    }

    /// Calls a tool that has to do what it is asked.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Told {
        let told = self.ask(tool, arguments);
        assert!(!told.is_error, "{tool}: {}", told.text);
        told
    }

    /// Calls a tool that has to refuse, and says what it said.
    #[track_caller]
    pub(crate) fn refused(&self, tool: &str, arguments: Value) -> String {
        let told = self.ask(tool, arguments);
        assert!(told.is_error, "{tool} did it: {}", told.text);
        told.text
    }

    /// The tools, as the model is told of them.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let (client, runtime) = self.raw();
        runtime.block_on(client.list_all_tools()).unwrap()
    }
}

impl<H: ClientHandler> Drop for Session<H> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let _ended = self.runtime.block_on(client.cancel());
        }
    }
}
