//! `waypost demo`: runs a small plan in a new temporary folder. Plan and executors are compiled in, so that it needs
//! neither configuration nor approval, whoever calls.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use waypost_config::{Config, Layer, Origin};
use waypost_core::Draft;
use waypost_run::{Options, Runner};
use waypost_service::{Caller, Guard, Service};
use waypost_store::{Durability, PlanStore, open};
use waypost_text::hex;

use super::run::{self, Signals, prepare, progress, summary};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::load_config::Folders;

const CONFIG: &str = include_str!("demo/config.toml");
const PLAN: &str = include_str!("demo/plan.json");
/// The files that the plan changes.
const FILES: [(&str, &str); 3] = [
    ("parser.ts", "export function parse(text: string): Item[] { return []; }\n"),
    ("store.ts", "export const items: Item[] = [];\n"),
    ("views.ts", "export const show = (item: Item) => item.name;\n"),
];

const EXAMPLES: &str = "\
Three tasks rename a type in three files at the same time, then a fourth checks all of them. Works in a
new temporary folder and removes it at the end.

Examples:
  waypost demo
  waypost demo --keep";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Keep the folder with its files, its store and its logs
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folder = Folder::make()?;
        let ended = self.run_in(context, &folder.path);
        if self.keep {
            context.out.say(format!(
                "the folder is {}: look at it with `waypost show demo -C …`",
                folder.path.display()
            ));
            std::mem::forget(folder);
        }
        ended
    }

    fn run_in(&self, context: &mut Context, folder: &std::path::Path) -> Outcome {
        let folders = Folders::new_in(folder.to_owned());
        let store =
            open(&format!("sqlite:{}", folders.own.join("waypost.db").display()), Durability::default())?;
        let plans = Arc::new(PlanStore::new(store));
        let layer = Layer { origin: Origin::User, name: "demo".to_owned(), text: CONFIG.to_owned() };
        let broken = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("the demo is broken: {error}"), "report this")
        };
        let config = Config::load(&[layer], []).map_err(|problems| broken(&format!("{problems:?}")))?;
        let config = Arc::new(config);
        let draft: Draft = serde_json::from_str(PLAN).map_err(|error| broken(&error))?;
        let service = Service::new(Arc::clone(&plans), Arc::clone(&config));
        // The store is the demo's own, and nothing binds the program of a task there.
        let by = Caller { program: None, only_reports: false, ..context.caller()? };
        let entered = service.submit(&by, prepare::runnable(&config, draft, None)?);
        let id = entered.map_err(|error| broken(&error))?.plan;
        service.start(&by, &id, true, Guard::NONE)?;
        let options = Options::plans(vec![id.clone()]);
        let around = folders.execution_env();
        let mut runner = Runner::with(Arc::clone(&plans), Arc::clone(&config), around, options)
            .map_err(run::failed_run)?;
        run::listen(runner.controller(), Signals::TerminateAtOnce)?;
        let mut watcher = progress::watcher(context, progress::Scope::One(id.clone()), &config);
        let summary = runner.run(&mut *watcher).map_err(run::failed_run)?;
        drop(watcher);
        plans.with_plan(&id, |plan| summary::print(context, plan, &summary))?
    }
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
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| failed(&error))?;
        let folder = Self { path: path.clone() };
        fs::DirBuilder::new().mode(0o700).create(path.join(".waypost")).map_err(|error| failed(&error))?;
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
