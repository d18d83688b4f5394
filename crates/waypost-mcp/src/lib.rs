//! The MCP server: plans for agents over the Model Context Protocol.
//!
//! A [`Server`] implements the protocol and knows no plan; toolsets turn the arguments of a tool into commands on plans and know
//! nothing of the protocol. Tools run on threads that may block, so a toolset is plain, synchronous code.

#![warn(clippy::wildcard_enum_match_arm)]

mod approval;
mod call_turns;
mod cancellation;
mod created_files;
mod dispatch;
mod documents;
mod elicitation;
mod file_rules;
mod hints;
mod http;
mod identity;
mod invalid_params;
mod jaato;
mod native;
mod orchestrator;
mod partial_json;
mod plan_text;
mod progress;
mod prompts;
mod reply_text;
mod resource_updates;
mod resources;
mod roots;
mod sampling;
mod server;
mod stdio_transport;
mod tool;
mod tool_call;
mod tool_error;
mod toolset;
mod workspace;
mod workspace_files;
mod workspace_resolver;

pub use created_files::is_written_by_tool;
pub use http::{
    HttpService, SESSION_IDLE_SECONDS, SESSION_SPARE_SECONDS, SESSIONS_MAX, SessionError, Sessions,
    http_service,
};
pub use identity::{AGENT_NAME_CHARACTERS_MAX, agent_name};
pub use roots::Roots;
pub use server::{Options, ServeError, Server, serve_stdio};
pub use stdio_transport::{LINE_BYTES_MAX, StdioTransport};
pub use toolset::Toolset;
pub use workspace::{Opener, Unopened, Workspace};
