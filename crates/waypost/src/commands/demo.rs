//! `waypost demo`: runs a small plan in a new temporary folder. Plan and executors are compiled in, so that it needs
//! neither configuration nor approval, whoever calls. A person at a terminal gets a tour instead.

mod plan;
mod tour;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use signal_hook::consts::SIGHUP;
use waypost_config::{Config, Layer, Origin};
use waypost_run::{Control, Options, Runner};
use waypost_service::{Caller, Guard, Service};
use waypost_store::{Durability, PlanStore, open};
use waypost_text::{hex, shell_word};

use self::plan::{CONFIG, broken, store_in, submit};
use self::tour::Tour;
use super::run::{self, Signals, progress, summary};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::load_config::Folders;
use waypost_cli::signals;
use waypost_cli::store_location::FOLDER;

/// The files that the plan changes.
const FILES: [(&str, &str); 3] = [
    ("parser.ts", "export function parse(text: string): Item[] { return []; }\n"),
    ("store.ts", "export const items: Item[] = [];\n"),
    ("views.ts", "export const show = (item: Item) => item.name;\n"),
];

/// What to do when it fails: its plan and its logs are gone.
const KEEP_HINT: &str = "`waypost demo --plain --keep` keeps the folder with its plan and its logs";
/// Nobody is asked: everything is compiled in.
const WITHOUT_APPROVAL: &str = "approval = \"never\"\n";

const EXAMPLES: &str = "\
Three tasks rename a type in three files at the same time, a fourth checks all of them, and a fifth bundles the result. \
Works in a new temporary folder and removes it at the end. At a terminal it is a tour: approval, a failure (a file that \
the plan forgot), why, a fix, and the run that continues. Without one, or with --plain, it only runs the plan.

Examples:
  waypost demo
  waypost demo --plain --keep";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Keep the folder with its files, its store and its logs
    #[arg(long)]
    keep: bool,
    /// Run the plan without the tour
    #[arg(long)]
    plain: bool,
}

impl Demo {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folder = Folder::make()?;
        let tour = if self.plain { None } else { Tour::begin(context, &folder.path)? };
        let ended = match tour {
            Some(tour) => tour.run(),
            // What it names goes with the folder.
            None => run_plain(context, &folder.path).map_err(|failure| Failure {
                hint: if self.keep { String::new() } else { KEEP_HINT.to_owned() },
                ..failure
            }),
        };
        if self.keep {
            let path = folder.path.display().to_string();
            let word = shell_word(&path);
            context.out.say(format!("kept {path}: look at it with `waypost -C {word} show demo`"));
            std::mem::forget(folder);
        }
        ended
    }
}

fn run_plain(context: &mut Context, folder: &Path) -> Outcome {
    let folders = Folders::new_in(folder.to_owned());
    let store = open(&store_in(folder), Durability::default())?;
    let plans = Arc::new(PlanStore::new(store));
    let text = format!("{WITHOUT_APPROVAL}{CONFIG}");
    let layer = Layer { origin: Origin::User, name: "demo".to_owned(), text };
    let config = Config::load(&[layer], []).map_err(|problems| broken(&format!("{problems:?}")))?;
    let config = Arc::new(config);
    let service = Service::new(Arc::clone(&plans), Arc::clone(&config));
    // The store is the demo's own, and nothing binds the program of a task there.
    let by = Caller { program: None, only_reports: false, ..context.caller()? };
    let id = submit(&service, &config, &by)?;
    service.start(&by, &id, true, Guard::NONE)?;
    let options = Options::plans(vec![id.clone()]);
    let around = folders.execution_env();
    let mut runner =
        Runner::with(Arc::clone(&plans), Arc::clone(&config), around, options).map_err(run::failed_run)?;
    run::listen(runner.controller(), Signals::TerminateAtOnce)?;
    // A terminal that is closed takes the folder with it.
    let controller = runner.controller();
    signals::listen_to(&[SIGHUP], move |_| controller.say(Control::Stop))?;
    let mut watcher = progress::watcher(context, progress::Scope::One(id.clone()), &config);
    let summary = runner.run(&mut *watcher).map_err(run::failed_run)?;
    drop(watcher);
    plans.with_plan(&id, |plan| summary::print(context, plan, &summary))?
}

/// A temporary folder, which is removed at the end.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn make() -> Outcome<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| Failure::failed(error.to_string(), ""))?;
        let path = std::env::temp_dir().join(format!("waypost-demo-{}", hex(&bytes)));
        let failed = |error: &std::io::Error| Failure::file(&path, error);
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            let hint = format!(
                "set TMPDIR to a folder that can be written; it names {}",
                path.parent().unwrap_or(&path).display()
            );
            Failure { hint, ..failed(&error) }
        })?;
        let folder = Self { path: path.clone() };
        fs::DirBuilder::new().mode(0o700).create(path.join(FOLDER)).map_err(|error| failed(&error))?;
        for (name, text) in FILES {
            fs::write(path.join(name), text).map_err(|error| failed(&error))?;
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, like any temporary file.
        let _left = fs::remove_dir_all(&self.path);
    }
}
