//! The door for agents: plans over the Model Context Protocol.
//!
//! A [`Server`] speaks the protocol and knows no plan; toolsets turn the arguments of a tool into commands for plans and
//! know nothing of the protocol. Tools are called on threads that may wait, so a toolset is plain, synchronous code.

mod approval;
mod call;
mod documents;
mod files;
mod honesty;
mod jaato;
mod native;
mod orchestrator;
mod refused;
mod server;
mod tool;
mod toolset;
mod words;
mod workspace;

pub use server::{Options, ServeError, Server, serve_stdio};
pub use toolset::Toolset;
pub use workspace::{Opener, Unopened, Workspace};
