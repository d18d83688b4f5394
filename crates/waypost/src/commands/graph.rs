//! `waypost graph`: a picture of a plan's graph, as text for a tool that draws it, or drawn.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use waypost_core::Draft;
use waypost_formats::{Dialect, Form, write};

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::view::ascii;
use crate::{files, plan_input};

const EXAMPLES: &str = "\
Examples:
  waypost graph kq3
  waypost graph kq3 --format ascii
  waypost graph kq3 --format dot | dot -Tpng > plan.png
  waypost graph plan.json --format svg --output plan.svg";

// Of what, and how.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Graph {
    /// Plan id or prefix, or a file of any format; - is standard input
    plan: String,
    /// Output language
    #[arg(long, value_enum, default_value_t)]
    format: Picture,
    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// A language for graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Picture {
    /// A Mermaid flowchart.
    #[default]
    Mermaid,
    /// The tree, drawn with letters.
    Ascii,
    /// Graphviz.
    Dot,
    /// GraphML.
    Graphml,
    /// Drawn.
    Svg,
}

impl Graph {
    fn written(&self, draft: &Draft, dialect: Dialect) -> Outcome<(String, &'static str)> {
        let picture = write(draft, dialect, Form::default());
        let picture = picture.map_err(|error| Failure::unreadable(&self.plan, error))?;
        Ok((picture.text, dialect.name()))
    }

    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let draft = plan_input::one_plan(context, &self.plan, None)?;
        let (text, format) = match self.format {
            Picture::Mermaid => self.written(&draft, Dialect::Mermaid)?,
            Picture::Ascii => (ascii::draw(&draft), "ascii"),
            Picture::Dot => self.written(&draft, Dialect::Dot)?,
            Picture::Graphml => self.written(&draft, Dialect::Graphml)?,
            Picture::Svg => self.written(&draft, Dialect::Svg)?,
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
            None => {
                context.out.text(&text);
                if !text.ends_with('\n') {
                    context.out.text("\n");
                }
            }
        }
        Ok(())
    }
}
