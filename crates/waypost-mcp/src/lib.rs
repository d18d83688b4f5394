//! The door for agents: plans over the Model Context Protocol.
//!
//! A [`Server`] speaks the protocol and knows no plan; toolsets turn the arguments of a tool into commands for plans and
//! know nothing of the protocol. Tools are called on threads that may wait, so a toolset is plain, synchronous code.

mod approval;
mod asking;
mod call;
mod calling;
mod closed;
mod dialogue;
mod documents;
mod files;
mod gone;
mod ground;
mod hints;
mod honesty;
mod http;
mod identity;
mod jaato;
mod lines;
mod misfit;
mod native;
mod news;
mod orchestrator;
mod outline;
mod prompts;
mod refused;
mod resources;
mod roots;
mod rounds;
mod sampling;
mod server;
mod tool;
mod toolset;
mod words;
mod workspace;

pub use http::{
    HttpService, SESSION_IDLE_SECONDS, SESSION_SPARE_SECONDS, SESSIONS_MAX, SessionError, Sessions,
    http_service,
};
pub use identity::{AGENT_NAME_CHARACTERS_MAX, agent_name};
pub use lines::{LINE_BYTES_MAX, Lines};
pub use roots::Roots;
pub use server::{Options, ServeError, Server, serve_stdio};
pub use toolset::Toolset;
pub use workspace::{Opener, Unopened, Workspace};
