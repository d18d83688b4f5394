//! `waypost mcp`: plans for agents, over the Model Context Protocol on standard input and output.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use waypost_mcp::{Options, Toolset, Unopened, Workspace, serve_stdio};
use waypost_store::{Durability, Plans, open};

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::setup::{self, Folders};

const EXAMPLES: &str = "\
Started by the agent's host, which finds it in its configuration; `waypost init` writes that.

Examples:
  waypost mcp
  waypost mcp --toolset jaato --agent researcher
  waypost mcp --toolset native,orchestrator";

// Which tools, and for whom.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    /// The tools that are offered: native, jaato, plans, orchestrator
    #[arg(long = "toolset", value_name = "NAME", value_delimiter = ',', value_parser = toolset, default_value = "native")]
    toolsets: Vec<Toolset>,
    /// The agent who calls (otherwise the client says who it is)
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// List the schemas of answers, too; they cost the model's context
    #[arg(long)]
    output_schemas: bool,
}

fn toolset(name: &str) -> Result<Toolset, String> {
    let known = || Toolset::ALL.map(Toolset::name).join(", ");
    Toolset::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| format!("one of {}", known()))
}

impl Mcp {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let context = context.for_server();
        let open = Arc::new(move |folder: Option<&Path>| {
            workspace(&context, folder)
                .map_err(|failure| Unopened { message: failure.message, hint: failure.hint })
        });
        let options =
            Options { toolsets: self.toolsets, agent: self.agent, output_schemas: self.output_schemas, open };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("no runtime: {error}"), ""))?;
        let served = runtime.block_on(serve_stdio(options));
        served.map_err(|error| Failure::failed(error.to_string(), "see the log of the agent's host"))
    }
}

/// The workspace of a folder, or of the current one.
fn workspace(context: &Context, _folder: Option<&Path>) -> Outcome<Workspace> {
    let folders = Folders::find(context)?;
    let config = setup::config(&folders, None)?;
    let place = context.place()?;
    place.prepare()?;
    let plans = Plans::new(open(&place.location, Durability::default())?);
    Ok(Workspace { plans, config, folder: folders.workspace, own: folders.own })
}
