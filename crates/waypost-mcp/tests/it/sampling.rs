//! A host whose own model writes plans: offered only where it is, and checked as every other model's.

#![expect(deprecated, reason = "the newest protocol has no sampling; hosts of the others still offer it")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ErrorData,
    Implementation, SamplingMessage,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;
use waypost_mcp::Server;

use crate::line::{Era, Line, options, text};
use crate::session::World;

/// A host with a model that says these, one after the other.
#[derive(Clone)]
struct Host {
    says: Arc<Mutex<VecDeque<String>>>,
    asked: Arc<Mutex<Vec<CreateMessageRequestParams>>>,
    samples: bool,
}

impl Host {
    fn saying(says: &[String]) -> Self {
        let says = Arc::new(Mutex::new(says.iter().cloned().collect()));
        Self { says, asked: Arc::default(), samples: true }
    }
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let can = if self.samples {
            ClientCapabilities::builder().enable_sampling().build()
        } else {
            ClientCapabilities::default()
        };
        ClientConfig::new(can, Implementation::new("host", "1"))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.asked.lock().unwrap().push(request);
        let said = self.says.lock().unwrap().pop_front();
        let said = said.ok_or_else(|| ErrorData::internal_error("nothing more to say", None))?;
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text(said), "host-model".to_owned()))
    }
}

fn line(world: &World, host: &Host, era: Era) -> Line<Host> {
    Line::new(Server::new(options(world, Some("planner"))), host.clone(), era)
}

fn names(line: &Line<Host>) -> Vec<String> {
    let tools = line.runtime.block_on(line.client().list_all_tools()).unwrap();
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

fn plan() -> String {
    let tasks = json!([
        { "id": "read", "description": "Read the module", "depends_on": [] },
        { "id": "write", "description": "Write the crate", "depends_on": ["read"] },
    ]);
    json!({ "goal": "g", "tasks": tasks }).to_string()
}

#[test]
fn a_plan_is_drafted_only_where_the_host_lets_its_model_be_asked() {
    let world = World::new();
    let with = Host::saying(&[]);
    assert!(names(&line(&world, &with, Era::Old)).contains(&"plan_draft".to_owned()));
    let without = Host { samples: false, ..with.clone() };
    let silent = line(&world, &without, Era::Old);
    assert!(!names(&silent).contains(&"plan_draft".to_owned()));
    let said = text(&silent.call("plan_draft", json!({ "goal": "Move to JWT" })));
    assert!(said.contains("does not support sampling"), "{said}");
    assert!(!names(&line(&world, &with, Era::New)).contains(&"plan_draft".to_owned()));
}

#[test]
fn the_hosts_model_is_told_what_is_wrong_and_its_plan_is_the_agents_draft() {
    let world = World::new();
    let host = Host::saying(&["no idea".to_owned(), format!("```json\n{}\n```", plan())]);
    let line = line(&world, &host, Era::Old);
    let said = line.call("plan_draft", json!({ "goal": "Move to JWT", "constraints": ["no new crates"] }));
    let answer = said.structured_content.clone().unwrap_or_else(|| panic!("{}", text(&said)));
    assert_eq!(answer["tasks"], 2, "{answer}");
    let id = answer["plan"].as_str().unwrap().parse().unwrap();
    let (by, owner, approved, calls, tokens) = world
        .plans
        .with_plan(&id, |plan| {
            let state = plan.state();
            let by = state.created_by.as_ref().map(ToString::to_string);
            (by, plan.spec().owner.clone(), state.approval.is_some(), state.calls, state.tokens_used)
        })
        .unwrap();
    assert_eq!((by.as_deref(), owner.as_str(), approved), (Some("agent:planner"), "planner", false));
    assert_eq!(calls, 2);
    assert!(tokens > 0);
    let asked = host.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    let told = serde_json::to_string(&asked[0]).unwrap();
    assert!(told.contains("Move to JWT") && told.contains("no new crates"), "{told}");
}

#[test]
fn a_host_that_does_not_answer_is_reported() {
    let world = World::new();
    let line = line(&world, &Host::saying(&[]), Era::Old);
    let said = text(&line.call("plan_draft", json!({ "goal": "Move to JWT" })));
    assert!(said.contains("connection failed") && said.contains("nothing more to say"), "{said}");
}
