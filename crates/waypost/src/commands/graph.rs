//! `waypost graph`: writes a plan's graph in a graph language, or draws it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::json;
use waypost_formats::{Dialect, Form, write};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::view::ascii;
use waypost_cli::{files, plan_input};

const EXAMPLES: &str = "\
Examples:
  waypost graph kq3
  waypost graph kq3 --format ascii
  waypost graph kq3 --format dot | dot -Tpng > plan.png
  waypost graph plan.json --format svg --output plan.svg";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Graph {
    /// Plan id or prefix, or a file of any format; - is standard input
    plan: String,
    /// Output language
    #[arg(long, value_parser = PossibleValuesParser::new(pictures()), default_value = "mermaid")]
    format: String,
    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// The graph languages, and ASCII art.
fn pictures() -> [PossibleValue; 5] {
    [
        PossibleValue::new("mermaid").help("A Mermaid flowchart"),
        PossibleValue::new("ascii").help("The tree, drawn with letters"),
        PossibleValue::new("dot").help("Graphviz"),
        PossibleValue::new("graphml").help("GraphML"),
        PossibleValue::new("svg").help("Drawn"),
    ]
}

impl Graph {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let draft = plan_input::one_plan(context, &self.plan, None)?;
        let format = self.format.as_str();
        let text = match format.parse::<Dialect>() {
            Ok(dialect) => {
                let picture = write(&draft, dialect, Form::default());
                picture.map_err(|error| Failure::unreadable(&self.plan, error))?.text
            }
            // `ascii` is the only value that is not a plan format.
            Err(_) => ascii::draw(&draft),
        };
        match &self.output {
            Some(path) => {
                files::write(path, &text, self.force)?;
                let bytes = text.len();
                if context.out.json {
                    return context.out.value(&json!({ "format": format, "path": path, "bytes": bytes }));
                }
                context.out.line(format!("wrote {} ({format}, {bytes} bytes)", path.display()));
            }
            None if context.out.json => {
                return context.out.value(&json!({ "format": format, "text": text }));
            }
            None => context.out.whole_lines(&text),
        }
        Ok(())
    }
}
