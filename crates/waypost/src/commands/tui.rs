//! `waypost tui`: opens the stores and starts the full-screen terminal UI. The UI itself is in `waypost-tui`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use waypost_config::Binding;
use waypost_config::Config;
use waypost_core::PlanId;
use waypost_tui::keys::{BadKeys, Keys};
use waypost_tui::note::ErrorMessage;
use waypost_tui::plan::PlanKey;
use waypost_tui::run_view::Intent;
use waypost_tui::screen::Settings;
use waypost_tui::terminal;
use waypost_tui::theme::Theme;
use waypost_tui::{CreateStore, Ended, Start, Wiring, Workspace};

use super::edit;
use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::files;
use waypost_cli::repository;
use waypost_cli::signals;
use waypost_cli::trust_prompt;

const EXAMPLES: &str = "\
Without a plan it lists all plans of the repository and of the user, live; Enter opens one in the editor, ? shows the keys. \
Keys and the mouse are set in the configuration ([tui], see docs/configuration.md). NO_COLOR is honoured.

Examples:
  waypost tui
  waypost tui kq3
  waypost tui kq3 --watch
  waypost tui kq3 --dry-run
  waypost run plan.json --tui";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tui {
    /// Plan to open in the editor [default: the list of plans]
    plan: Option<String>,
    /// Show the run of the plan instead of the editor
    #[arg(short, long, requires = "plan")]
    watch: bool,
    /// Run nothing; report what would run
    #[arg(long)]
    dry_run: bool,
}

impl Tui {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let plan = self.plan.as_deref().map(|plan| context.find(plan)).transpose()?;
        let start = match (plan.as_ref().map(|found| key(&found.id)), self.watch) {
            (None, _) => Start::PlanList,
            (Some(plan), true) => Start::Run(plan, Intent::Watch),
            (Some(plan), false) => Start::Editor(plan),
        };
        show(context, start, self.dry_run)
    }
}

/// The key of a plan in the store that the command line names.
pub(crate) fn key(id: &PlanId) -> PlanKey {
    PlanKey { store: 0, id: id.clone() }
}

/// Opens a plan of the context's own store, in the editor or in the run view, until the person leaves.
pub(crate) fn open(context: &Context, plan: &PlanId, start_in_editor: bool) -> Outcome {
    let start = match start_in_editor {
        true => Start::Editor(key(plan)),
        false => Start::Run(key(plan), Intent::Watch),
    };
    show(context, start, false)
}

/// Whether the terminal can show a full-screen UI.
pub(crate) fn fits() -> Result<(), terminal::Unfit> {
    terminal::fits(std::env::var("TERM").ok().as_deref())
}

/// Runs the UI until the person leaves.
pub(crate) fn show(context: &Context, start: Start, dry_run: bool) -> Outcome {
    if context.out.json {
        let hint = "`waypost list`, `show`, `watch` and `history` answer in JSON";
        return Err(Failure::usage("the terminal UI has no JSON output", hint));
    }
    fits().map_err(|unfit| Failure::failed(unfit.to_string(), unfit.hint()))?;
    let config = Arc::new(trust_prompt::load_config(context, &context.folders()?, None)?);
    context.note_untrusted(&config);
    let keys = keys(&config.tui.keys)?;
    let workspaces = workspaces(context, &config)?;
    let settings = Settings {
        stores: workspaces.iter().map(|workspace| workspace.name.clone()).collect(),
        dry_run,
        keys,
        theme: if context.out.has_colour() { Theme::Colours } else { Theme::Plain },
    };
    let edit = |text: &str, ending: &str| edit::edit_text("waypost-tui", ending, text).map_err(error_message);
    let kept = Rc::new(RefCell::new(Vec::new()));
    let keeping = Rc::clone(&kept);
    let keep = move |plan: &PlanKey, text: &str| keeping.borrow_mut().push(keep(&plan.id, text));
    let (by, edit, keep) = (context.caller()?, Box::new(edit), Box::new(keep));
    let wiring = Wiring { workspaces, by, edit, keep, mouse: config.tui.mouse };
    signals::take_over();
    let mut failure = match waypost_tui::open(settings, start, wiring) {
        Ok(Ended::Left) => return Ok(()),
        Ok(Ended::Terminated) => Failure::new(Exit::Interrupted, "the terminal program was asked to end", ""),
        Err(error) => {
            let hint = "check that the terminal can be read and written";
            Failure::failed(format!("the terminal: {error}"), hint)
        }
    };
    failure.details.extend(kept.take());
    Err(failure)
}

/// Writes unsaved edits to a file. Returns a message with its path.
fn keep(plan: &PlanId, text: &str) -> String {
    match files::write_private(&std::env::temp_dir(), &format!("waypost-{plan}"), "md", text) {
        Ok(path) => format!("  your unsaved edits of plan {plan} are kept in {}", path.display()),
        Err(failure) => format!("  your unsaved edits of plan {plan} are lost: {}", failure.message),
    }
}

/// The named store; if none is named, the repository's store and the user's own.
fn workspaces(context: &Context, config: &Arc<Config>) -> Outcome<Vec<Workspace>> {
    if context.says_store() {
        return Ok(vec![workspace("store", context, config)?]);
    }
    let mut workspaces = vec![workspace("repo", context, config)?];
    let user = context.for_user();
    if !user.store_location().is_ok_and(|place| place.is_absent()) {
        workspaces.push(workspace("user", &user, config)?);
    }
    Ok(workspaces)
}

fn workspace(name: &str, context: &Context, config: &Arc<Config>) -> Outcome<Workspace> {
    let folders = context.folders()?;
    let around = folders.execution_env();
    let later = context.for_server();
    let create_store: CreateStore = Box::new(move || later.plans_to_add_to().map_err(error_message));
    let create_store = context.store_location()?.is_absent().then_some(create_store);
    let workspace = Workspace::new(name, context.plans()?, create_store, Arc::clone(config), around);
    let workspace = workspace.with_authenticator(context.authenticator()?);
    Ok(workspace.with_repository(repository::around(&folders.workspace), context.branch_finder()))
}

fn error_message(failure: Failure) -> ErrorMessage {
    ErrorMessage { what: failure.one_line(), hint: failure.hint }
}

/// The key bindings with the changes of the configuration.
fn keys(bindings: &[Binding]) -> Outcome<Keys> {
    let changes: BTreeMap<String, Vec<String>> =
        bindings.iter().map(|binding| (binding.action.clone(), binding.keys.clone())).collect();
    Keys::with(&changes).map_err(|bad| {
        let place = |bad: &BadKeys| match bindings.iter().find(|binding| binding.action == bad.name) {
            Some(binding) => {
                format!("  {}:{}: `tui.keys.{}`: {}", binding.place, binding.line, bad.name, bad.why)
            }
            None => format!("  `tui.keys.{}`: {}", bad.name, bad.why),
        };
        let what = "the configuration of the keys cannot be used";
        let mut failure = Failure::new(Exit::Invalid, what, "docs/tui.md lists the actions and their keys");
        failure.code = "bad_config".to_owned();
        failure.details = bad.iter().map(place).collect();
        failure
    })
}
