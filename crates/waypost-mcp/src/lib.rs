//! The door for agents: plans over the Model Context Protocol.
//!
//! A [`Server`] speaks the protocol and knows no plan; toolsets turn the arguments of a tool into commands for plans and
//! know nothing of the protocol. Tools are called on threads that may wait, so a toolset is plain, synchronous code.

mod approval;
mod asking;
mod call;
mod calling;
mod dialogue;
mod documents;
mod files;
mod gone;
mod ground;
mod honesty;
mod http;
mod identity;
mod jaato;
mod native;
mod news;
mod orchestrator;
mod prompts;
mod refused;
mod resources;
mod roots;
mod rounds;
mod server;
mod tool;
mod toolset;
mod words;
mod workspace;

pub use http::{HttpService, SESSION_IDLE_SECONDS, SESSIONS_MAX, SessionError, Sessions, http_service};
pub use identity::{AGENT_NAME_CHARACTERS_MAX, agent_name};
pub use roots::Roots;
pub use server::{Options, ServeError, Server, serve_stdio};
pub use toolset::Toolset;
pub use workspace::{Opener, Unopened, Workspace};
