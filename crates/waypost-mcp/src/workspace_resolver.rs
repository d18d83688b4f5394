//! Resolves the workspace of a client from its roots: when it is first needed, and again when the roots change. The handshake
//! touches no file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientCapabilities, ProtocolVersion};
use rmcp::{Peer, RoleServer};

use crate::roots::{Roots, choose};
use crate::tool_error::ToolError;
use crate::workspace::{Opener, Workspace};

/// The longest that a client may take to list its roots.
const ROOTS_SECONDS_MAX: u64 = 10;

/// The client of a request and its capabilities.
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) can: Option<ClientCapabilities>,
    pub(crate) protocol: Option<ProtocolVersion>,
}

/// The folder of a client, or the error for its roots.
type ClientFolder = Result<Option<PathBuf>, ToolError>;

/// Resolves the workspace of a client.
pub(crate) struct WorkspaceResolver {
    open: Opener,
    roots: Roots,
    /// The folder from the client's roots, once they are known.
    told: tokio::sync::Mutex<Option<ClientFolder>>,
    opened: Mutex<Option<(Option<PathBuf>, Arc<Workspace>)>>,
}

impl WorkspaceResolver {
    pub(crate) fn new(open: Opener, roots: Roots) -> Self {
        Self { open, roots, told: tokio::sync::Mutex::new(None), opened: Mutex::new(None) }
    }

    /// Whether the client has not yet sent its roots and can send them only in reply to an `input_required` result.
    pub(crate) async fn needs_roots(&self, client_info: &ClientInfo) -> bool {
        let follows = matches!(self.roots, Roots::Follow { .. });
        follows
            && client_info.has_roots()
            && client_info.answers_input_required()
            && self.told.lock().await.is_none()
    }

    /// Sets the roots that such a client sent.
    pub(crate) async fn set_roots(&self, roots: &[String]) {
        if let Roots::Follow { here } = &self.roots {
            *self.told.lock().await = Some(chosen(roots, here));
        }
    }

    /// Forgets the client's roots, which have changed; the next request asks for them.
    pub(crate) async fn forget_roots(&self) {
        *self.told.lock().await = None;
    }

    /// Returns the client's folder; `None` for the one in which the server was started.
    pub(crate) async fn folder(&self, client_info: &ClientInfo) -> ClientFolder {
        let Roots::Follow { here } = &self.roots else { return Ok(None) };
        let mut told = self.told.lock().await;
        if let Some(known) = &*told {
            return known.clone();
        }
        if !client_info.has_roots() || client_info.answers_input_required() {
            return Ok(None);
        }
        let roots = match ask(&client_info.peer).await {
            Ok(roots) => roots,
            // Not cached: the next call asks again.
            Err(refused) => return Err(refused),
        };
        let chosen = chosen(&roots, here);
        *told = Some(chosen.clone());
        chosen
    }

    /// Returns the workspace of the client's folder.
    pub(crate) async fn workspace(
        self: &Arc<Self>,
        client_info: &ClientInfo,
    ) -> Result<Arc<Workspace>, ToolError> {
        let folder = self.folder(client_info).await?;
        let resolver = Arc::clone(self);
        let opened = tokio::task::spawn_blocking(move || resolver.open_in(folder)).await;
        opened
            .map_err(|error| ToolError::new(format!("the workspace was not opened: {error}"), "try again"))?
    }

    fn open_in(&self, folder: Option<PathBuf>) -> Result<Arc<Workspace>, ToolError> {
        // Held while opening, so that two concurrent calls open one workspace.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, workspace)) = &*opened
            && *known == folder
        {
            return Ok(Arc::clone(workspace));
        }
        let workspace = Arc::new((self.open)(folder.as_deref())?);
        *opened = Some((folder, Arc::clone(&workspace)));
        Ok(workspace)
    }
}

impl ClientInfo {
    fn has_roots(&self) -> bool {
        self.can.as_ref().is_some_and(|can| can.roots.is_some())
    }

    /// Whether the client uses the protocol in which servers send no requests.
    pub(crate) fn answers_input_required(&self) -> bool {
        self.protocol
            .as_ref()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    }

    /// Whether the client supports sampling.
    pub(crate) fn can_sample(&self) -> bool {
        !self.answers_input_required() && self.can.as_ref().is_some_and(|can| can.sampling.is_some())
    }

    /// Whether the client can ask a person.
    pub(crate) fn can_ask(&self) -> bool {
        let elicitation = self.can.as_ref().and_then(|can| can.elicitation.as_ref());
        // A client that names no mode supports the form, which is older than the other modes.
        elicitation.is_some_and(|can| can.form.is_some() || can.url.is_none())
    }
}

fn chosen(roots: &[String], here: &std::path::Path) -> ClientFolder {
    choose(roots, here).map_err(|bad| ToolError::new(bad.to_string(), bad.hint()))
}

#[expect(deprecated, reason = "the newest protocol has other ways; hosts still tell their folder by roots")]
async fn ask(peer: &Peer<RoleServer>) -> Result<Vec<String>, ToolError> {
    let asked = tokio::time::timeout(Duration::from_secs(ROOTS_SECONDS_MAX), peer.list_roots()).await;
    match asked {
        Ok(Ok(told)) => Ok(uris(&told)),
        // The client declares roots but does not list them: use the folder in which it started the server.
        Ok(Err(_)) => Ok(Vec::new()),
        Err(_) => Err(ToolError::new(
            format!("the client did not answer roots/list within {ROOTS_SECONDS_MAX} s"),
            "try again, or start the server with -C DIR",
        )),
    }
}

#[expect(deprecated, reason = "the newest protocol has other ways; hosts still tell their folder by roots")]
pub(crate) fn uris(told: &rmcp::model::ListRootsResult) -> Vec<String> {
    told.roots.iter().map(|root| root.uri.clone()).collect()
}
