//! The tour of the demo, for a person at a terminal: approval, a failure, why, a fix, and the run that continues. Every
//! command that it shows is really run, through the same code as if it had been typed, on the demo's own store.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use waypost_account::{StoreRecords, Terminal};
use waypost_config::ApprovalPolicy;
use waypost_core::{Actor, ActorKind, Proof};
use waypost_service::{Caller, Guard};

use super::plan::{CONFIG, broken, store_in, submit};
use waypost_cli::actor::account;
use waypost_cli::context::{Context, Program};
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::output::painted;
use waypost_cli::prompt::unusable;
use waypost_cli::runner::typeable;
use waypost_cli::signals;
use waypost_cli::store_location::FOLDER;
use waypost_cli::style::Look;
use waypost_cli::trust_prompt;
use waypost_cli::workspace_config::{FILE, TRUST_VARIABLE, WorkspaceConfig};
use waypost_text::wrap;

/// A file that the plan does not mention, so that its check finds the old name.
const FORGOTTEN: (&str, &str) = ("legacy.ts", "export type Item = { name: string };\n");
/// What mends it.
const FIX: &str = "sed -i.old s/Item/Entry/g legacy.ts";
/// The agent that is said to have written the plan.
const AGENT: &str = "robin";

/// See the module.
pub(super) struct Tour {
    program: Program,
    color: bool,
    columns: usize,
    store: String,
    /// The digest of the demo's configuration.
    trusted: String,
    /// Whether Ctrl-C was pressed.
    interrupted: Arc<AtomicBool>,
}

/// What the person wants after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Continue,
    Leave,
    Key(char),
}

impl Tour {
    /// Prepares the folder and enters it. Returns `None` if there is nobody to lead, or if approval on this account takes
    /// more than an answer at the terminal.
    pub(super) fn begin(context: &Context, folder: &Path) -> Outcome<Option<Self>> {
        let is_seen = io::stdout().is_terminal() && io::stderr().is_terminal();
        if !is_seen || context.out.json {
            return Ok(None);
        }
        if !trust_prompt::is_present(context)? {
            if context.actor()?.kind == ActorKind::Person {
                context
                    .out
                    .say("the tour is for a person under their own name: leave out --as and WAYPOST_ACTOR");
            }
            return Ok(None);
        }
        let write = |name: &Path, text: &str| {
            fs::write(folder.join(name), text).map_err(|error| Failure::file(name, &error))
        };
        let own = folder.join(FOLDER);
        write(&own.join(FILE), CONFIG)?;
        // It is compiled in. What somebody else writes there is not trusted.
        let trusted = WorkspaceConfig::read(&own, &own, folder)?.trust_in_process();
        std::env::set_current_dir(folder).map_err(|error| Failure::file(folder, &error))?;
        let (program, store) = (context.program, store_in(folder));
        let context = context.with_store(&store);
        let config = Arc::new(context.load_config(&context.folders()?, None)?);
        if config.approval.policy == ApprovalPolicy::Never || config.approval.proof > Proof::Presence {
            context.out.say("no tour: by the [approval] of your configuration no plan is approved by an answer at a terminal");
            return Ok(None);
        }
        write(Path::new(FORGOTTEN.0), FORGOTTEN.1)?;
        let plans = context.plans_in(&context.store_location()?)?;
        let service = context.service_with(&plans, &config)?;
        let by = Caller::new(Actor::agent(AGENT));
        let id = submit(&service, &config, &by)?;
        service.request_approval(&by, &id, "three files at once, then a check", Guard::NONE)?;
        // Ctrl-C leaves the tour, which removes its folder.
        let interrupted = Arc::new(AtomicBool::new(false));
        signals::note(&interrupted)?;
        let (color, columns) = (context.out.has_colour(), context.out.columns);
        Ok(Some(Self { program, color, columns, store, trusted, interrupted }))
    }

    pub(super) fn run(&self) -> Outcome {
        let ended = self.lead();
        // The store goes with its folder.
        let path = self.store.trim_start_matches("sqlite:");
        let _kept = StoreRecords::of(account()).forget(Path::new(path));
        match self.interrupted.load(Ordering::Acquire) {
            true => Err(Failure::new(Exit::Interrupted, "the tour was interrupted", "")),
            false => ended,
        }
    }

    fn lead(&self) -> Outcome {
        let here = std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
        self.say(&format!(
            "A tour of Waypost in {}, a temporary folder.\nThe commands that it shows are really run.\n\n\
             An agent was asked to rename the type Item to Entry in this folder. It wrote a plan: three edits that \
             can run at the same time, a check of all of them, and a task that waits for the check.",
            here.display()
        ))?;
        self.waypost("show demo")?;
        if self.pause()? == Choice::Leave {
            return Ok(());
        }
        self.say(
            "Nothing of it has run: work that an agent gives to machines waits for a person. `approve` shows \
             everything that would run, and asks. The approval holds for exactly that.",
        )?;
        while self.waypost("approve demo").is_err() {
            self.say("It is not approved, so nothing runs. Enter asks once more.")?;
            if self.pause()? == Choice::Leave {
                return Ok(());
            }
        }
        self.say("Now it may run. The edits start at the same time; each holds a lock on its file.")?;
        if self.pause()? == Choice::Leave {
            return Ok(());
        }
        // It fails, as it should.
        let _failed = self.waypost("run demo");
        self.say("The check failed, and the task behind it did not start. Why?")?;
        if self.pause()? == Choice::Leave {
            return Ok(());
        }
        self.waypost("why demo bundle")?;
        self.waypost("log demo verify")?;
        self.say(&format!(
            "{} still has the old name: the plan did not mention it. Fix it, then let the plan continue: \
             what is done stays done; only what failed and what waited for it runs.",
            FORGOTTEN.0
        ))?;
        if self.pause()? == Choice::Leave {
            return Ok(());
        }
        self.shell(FIX)?;
        self.waypost("run demo --retry-failed")?;
        self.say("Every step is a version: who did what, and when. Any of them can be shown, compared and restored.")?;
        if self.pause()? == Choice::Leave {
            return Ok(());
        }
        self.waypost("history demo")?;
        self.say("That is all. t opens the plan in the terminal UI, d the dashboard in your browser; both are live.")?;
        loop {
            match self.ask("t, d, or Enter to end:")? {
                Choice::Key('t') => self.waypost_apart("tui demo")?,
                Choice::Key('d') => self.waypost_apart("serve --open")?,
                Choice::Continue | Choice::Leave => break,
                Choice::Key(_) => {}
            }
            // Ctrl-C is how the server ends, and not the tour.
            self.interrupted.store(false, Ordering::Release);
        }
        self.say("Next, in a folder of your own: `waypost init --example`, or `waypost init` to connect your agents.")
    }

    /// Prints paragraphs.
    fn say(&self, text: &str) -> Outcome {
        self.print(&wrap(&typeable(text), self.columns, usize::MAX).join("\n"))
    }

    fn print(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        writeln!(out, "\n{text}").and_then(|()| out.flush()).map_err(unusable)
    }

    /// Shows a command, and runs it as if it had been typed.
    fn waypost(&self, line: &str) -> Outcome {
        self.prompt(&format!("waypost {line}"))?;
        (self.program.run_line)(&format!("waypost {line}"), &self.store)
    }

    /// Like [`Self::waypost`], in a process of its own: the terminal UI and the server keep handling signals as long as
    /// their process lives.
    fn waypost_apart(&self, line: &str) -> Outcome {
        self.prompt(&format!("waypost {line}"))?;
        let mut command = Command::new(std::env::current_exe().map_err(unusable)?);
        command.args(line.split(' ')).env("WAYPOST_STORE", &self.store).env(TRUST_VARIABLE, &self.trusted);
        // It has said itself what failed.
        command.status().map(drop).map_err(unusable)
    }

    fn shell(&self, line: &str) -> Outcome {
        self.prompt(line)?;
        let ended = Command::new("sh").args(["-c", line]).status().map_err(unusable)?;
        if ended.success() { Ok(()) } else { Err(broken(&format!("{line}: {ended}"))) }
    }

    fn prompt(&self, line: &str) -> Outcome {
        self.print(&painted(&format!("$ {line}"), Look::Bold, self.color))
    }

    fn pause(&self) -> Outcome<Choice> {
        self.ask("Enter continues, q leaves:")
    }

    fn ask(&self, question: &str) -> Outcome<Choice> {
        if self.interrupted.load(Ordering::Acquire) {
            return Ok(Choice::Leave);
        }
        let mut terminal = Terminal::open().map_err(|why| Failure::failed(why, ""))?;
        let typed = match terminal.ask(&format!("\n{} ", painted(question, Look::Dim, self.color))) {
            // Ctrl-D.
            Ok(typed) if typed.is_empty() => "q".to_owned(),
            Ok(typed) => typed,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Choice::Leave),
            Err(error) => return Err(unusable(error)),
        };
        Ok(match typed.trim().to_lowercase().chars().next() {
            None => Choice::Continue,
            Some('q') => {
                self.say("The tour ends here.")?;
                Choice::Leave
            }
            Some(key) => Choice::Key(key),
        })
    }
}
