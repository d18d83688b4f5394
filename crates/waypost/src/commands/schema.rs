//! `waypost schema`: lists the formats, or prints the JSON Schema of one.

use clap::Args;
use serde_json::json;
use waypost_formats::{Dialect, schema};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::format_name;
use waypost_cli::view::table::{self, Cell};

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Format [default: list all]
    #[arg(value_parser = format_name(|_| true))]
    format: Option<Dialect>,
}

fn what(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Native => "Waypost's own JSON",
        Dialect::Clido => "clido's plan files",
        Dialect::Jaato => "plans of jaato's todo plugin, and its store files",
        Dialect::Frctl => "frctl's goal trees",
        Dialect::Agora => "agora's runs",
        Dialect::PlanDocument => "docker-agent's plan documents",
        Dialect::Markdown => "Markdown with front matter; holds a whole plan",
        Dialect::Checklist => "a plain Markdown checklist",
        Dialect::TaskMaster => "task-master's tasks.json",
        Dialect::Beads => "beads' issues as JSON lines",
        Dialect::Backlog => "task files of Backlog.md",
        Dialect::Mermaid => "a Mermaid flowchart",
        Dialect::Dot => "Graphviz",
        Dialect::Graphml => "GraphML",
        Dialect::Svg => "a picture",
    }
}

impl Schema {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if let Some(format) = self.format {
            let Some(text) = schema(format) else {
                let message = format!("{format} has no JSON Schema");
                return Err(Failure::not_found(message, "`waypost schema` lists the formats that have one"));
            };
            context.out.text(text);
            if !text.ends_with('\n') {
                context.out.text("\n");
            }
            return Ok(());
        }
        if context.out.json {
            let formats: Vec<_> = Dialect::all()
                .map(|dialect| {
                    let (read, write) = (dialect.can_read(), dialect.can_write());
                    let has_schema = schema(dialect).is_some();
                    json!({ "format": dialect, "what": what(dialect), "read": read, "write": write, "schema": has_schema })
                })
                .collect();
            return context.out.value(&json!({ "formats": formats }));
        }
        let rows: Vec<Vec<Cell>> = Dialect::all()
            .map(|dialect| {
                let word = |yes: bool| Cell::plain(if yes { "yes" } else { "-" });
                let (read, write) = (dialect.can_read(), dialect.can_write());
                vec![
                    Cell::plain(dialect.name()),
                    word(read),
                    word(write),
                    word(schema(dialect).is_some()),
                    Cell::plain(what(dialect)),
                ]
            })
            .collect();
        table::print(&mut context.out, &["FORMAT", "READ", "WRITE", "SCHEMA", "WHAT"], &rows);
        Ok(())
    }
}
