//! `waypost validate`: reports all problems of plans in files or in the store. Writes nothing.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::Problem;
use waypost_formats::Dialect;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::input_format;
use waypost_cli::plan_input::{self, Source};
use waypost_cli::view::text;

const EXAMPLES: &str = "\
Every problem is listed, each with a hint; exit code 4 when there is any.

Examples:
  waypost validate plan.json
  waypost validate kq3
  generate | waypost validate - --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Validate {
    /// Files of any format, plans of the store, or - for standard input
    #[arg(required = true, value_name = "FILE|PLAN|-")]
    what: Vec<String>,
    /// Input format [default: detect]
    #[arg(long, value_name = "FORMAT", value_parser = input_format())]
    format: Option<Dialect>,
}

impl Validate {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let mut problems: Vec<(Option<String>, Problem)> = Vec::new();
        let mut sound: Vec<Value> = Vec::new();
        for what in &self.what {
            if !plan_input::is_file(what) {
                let found = context.find(what).map_err(|failure| plan_input::or_file(what, failure))?;
                let draft = found.view(context, |plan, _| plan.to_draft())?;
                let mut of_plan = waypost_core::validate(&draft);
                let configured = context.configuration_problems(&draft)?;
                of_plan.extend(context.note_not_configured(configured));
                problems.extend(of_plan.into_iter().map(|problem| (Some(found.id.to_string()), problem)));
                sound.push(json!({ "name": found.id, "plans": 1, "tasks": draft.tasks.len() }));
                continue;
            }
            let source = Source::file(what, self.format)?;
            problems.extend(source.problems());
            for draft in &source.reading.drafts {
                let configured = context.configuration_problems(draft)?;
                let forbidden = context.note_not_configured(configured).into_iter();
                problems.extend(forbidden.map(|problem| (Some(source.name.clone()), problem)));
            }
            for note in &source.reading.notes {
                context.out.note_fact(format!("{}: {note}", source.name));
            }
            let tasks: usize = source.reading.drafts.iter().map(|draft| draft.tasks.len()).sum();
            let plans = source.reading.drafts.len();
            sound.push(json!({
                "name": source.name,
                "format": source.reading.dialect,
                "plans": plans,
                "tasks": tasks,
            }));
        }
        if !problems.is_empty() {
            let what = if self.what.len() == 1 { "the plan" } else { "one of the plans" };
            return Err(Failure::invalid(what, &problems));
        }
        if context.out.json {
            return context.out.value(&json!({ "valid": true, "checked": sound, "problems": [] }));
        }
        for one in &sound {
            let word = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or("");
            let number = |name: &str| one.get(name).and_then(Value::as_u64).unwrap_or(0) as usize;
            let format =
                if word("format").is_empty() { String::new() } else { format!(" ({})", word("format")) };
            let plans = text::count(number("plans"), "plan");
            let tasks = text::count(number("tasks"), "task");
            context.out.line(format!("{}{format}: valid, {plans}, {tasks}", word("name")));
        }
        Ok(())
    }
}
