//! Whose the plans are: the name of the caller, and the folder that the client works in.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rmcp::model::{ClientCapabilities, ClientConfig, ErrorData, Implementation};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;
use waypost_mcp::{Opener, Options, Roots, Server, Toolset, Workspace};
use waypost_store::{MemoryStore, PlanStore};

use crate::line::{Era, Line, text};

/// A client that works in some folders.
#[derive(Clone, Default)]
struct Host {
    roots: Arc<Mutex<Vec<String>>>,
}

#[expect(deprecated, reason = "hosts still tell their folder by roots")]
impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let can = ClientCapabilities::builder().enable_roots().enable_roots_list_changed().build();
        ClientConfig::new(can, Implementation::new("host", "1"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(rmcp::model::ListRootsResult::new(
            self.roots.lock().unwrap().iter().map(rmcp::model::Root::new).collect(),
        ))
    }
}

/// Notes for which folders workspaces are opened; each has a store of its own.
fn noting() -> (Opener, Arc<Mutex<Vec<Option<PathBuf>>>>) {
    let opened: Arc<Mutex<Vec<Option<PathBuf>>>> = Arc::default();
    let notes = Arc::clone(&opened);
    let open = move |folder: Option<&Path>| {
        notes.lock().unwrap().push(folder.map(Path::to_owned));
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let folder = folder.unwrap_or(Path::new("/")).to_owned();
        Ok(Workspace::new(plans, Arc::default(), folder, std::env::temp_dir()))
    };
    (Arc::new(open), opened)
}

fn host(roots: &[&Path]) -> Host {
    let roots = roots.iter().map(|root| format!("file://{}", root.display())).collect();
    Host { roots: Arc::new(Mutex::new(roots)) }
}

struct Folders(PathBuf);

impl Folders {
    fn new(name: &str, inside: &[&str]) -> Self {
        let base = std::env::temp_dir().join(format!("waypost-places-{}-{name}", std::process::id()));
        for folder in inside {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        Self(base.canonicalize().unwrap())
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn line(open: Opener, roots: Roots, host: Host, era: Era) -> Line<Host> {
    let options = Options { toolsets: vec![Toolset::Native], agent: None, output_schemas: false, open };
    Line::new(Server::with_roots(options, roots), host, era)
}

#[test]
fn a_server_works_in_the_folder_of_its_client_and_opens_nothing_before_the_first_call() {
    let folders = Folders::new("one", &["project", "started"]);
    let (project, here) = (folders.0.join("project"), folders.0.join("started"));
    for era in [Era::Old, Era::New] {
        let (open, opened) = noting();
        let line = line(open, Roots::Follow { here: here.clone() }, host(&[&project]), era);
        line.runtime.block_on(line.client().list_all_tools()).unwrap();
        assert!(opened.lock().unwrap().is_empty(), "{era:?}: listing tools opens nothing");
        assert!(!line.call("plan_list", json!({})).is_error.unwrap_or_default());
        assert!(!line.call("plan_list", json!({})).is_error.unwrap_or_default());
        assert_eq!(*opened.lock().unwrap(), [Some(project.clone())], "{era:?}: opened once");
    }
}

#[test]
fn an_operator_who_says_where_is_obeyed() {
    let folders = Folders::new("told", &["project"]);
    let (open, opened) = noting();
    let line = line(open, Roots::Ignore, host(&[&folders.0.join("project")]), Era::Old);
    line.call("plan_list", json!({}));
    assert_eq!(*opened.lock().unwrap(), [None]);
}

#[test]
fn a_client_that_works_elsewhere_by_now_gets_the_plans_of_that_place() {
    let folders = Folders::new("moves", &["a", "b"]);
    let (a, b) = (folders.0.join("a"), folders.0.join("b"));
    let (open, opened) = noting();
    let host = host(&[&a]);
    let line = line(open, Roots::Follow { here: folders.0.clone() }, host.clone(), Era::Old);
    line.call("plan_list", json!({}));
    *host.roots.lock().unwrap() = vec![format!("file://{}", b.display())];
    let told = line.runtime.block_on(line.client().notify_roots_list_changed());
    told.unwrap();
    // The notification and the call are two messages: the server may read the second before it has asked.
    let begun = std::time::Instant::now();
    while opened.lock().unwrap().len() < 2 {
        assert!(begun.elapsed().as_secs() < 30, "it never moved");
        line.call("plan_list", json!({}));
    }
    assert_eq!(*opened.lock().unwrap(), [Some(a), Some(b)]);
}

#[test]
fn a_root_that_is_not_there_is_refused_and_nothing_is_opened_elsewhere() {
    let folders = Folders::new("missing", &["here"]);
    let missing = folders.0.join("no such");
    for era in [Era::Old, Era::New] {
        let (open, opened) = noting();
        let line = line(open, Roots::Follow { here: folders.0.clone() }, host(&[&missing]), era);
        let said = line.call("plan_list", json!({}));
        assert!(said.is_error.unwrap_or_default());
        let expected = format!(
            "the client's root {} does not exist or is not a folder; open an existing folder in the host, or start the server \
             with -C DIR",
            missing.display()
        );
        assert_eq!(text(&said), expected);
        assert!(opened.lock().unwrap().is_empty());
    }
}

#[test]
fn a_client_without_roots_works_where_the_server_was_started() {
    let (open, opened) = noting();
    let line = line(open, Roots::Follow { here: std::env::temp_dir() }, host(&[]), Era::Old);
    line.call("plan_list", json!({}));
    assert_eq!(*opened.lock().unwrap(), [None]);
}
