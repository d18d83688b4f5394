//! Keys in, screen text out: the program over a real store in memory, drawn into a buffer.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod conflict;
#[path = "../../../waypost-run/tests/it/direct_writes.rs"]
mod direct_writes;
mod edit_buffer;
mod editor;
mod graph;
mod keys;
mod palette;
mod performance;
mod plan_list;
mod plan_text;
mod quit;
mod random;
mod run_view;
mod text_input;
mod untrusted;

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use unicode_width::UnicodeWidthStr;
use waypost_config::Config;
use waypost_core::{Actor, Command, Draft, PlanId, Timestamp};
use waypost_service::{Caller, Guard, Service, ServiceError};
use waypost_store::{MemoryStore, NewPlan, Page, PlanStore, PlanSummary, WriteRequest};
use waypost_tui::app::{App, Screen, render, update};
use waypost_tui::editor::Editor;
use waypost_tui::keys::{Chord, Keys};
use waypost_tui::messages::{Effect, Message, Reply, SaveError};
use waypost_tui::note::ErrorMessage;
use waypost_tui::plan::{ListedPlan, LoadedPlan, PlanKey};
use waypost_tui::plan_text::PlanText;
use waypost_tui::screen::Settings;
use waypost_tui::theme::Theme;

/// The program, a store, and what only a loop could do.
struct World {
    app: App,
    plans: Arc<PlanStore>,
    terminal: Terminal<TestBackend>,
    /// Effects that nobody here can do, in their order.
    undone: Vec<Effect>,
}

fn settings() -> Settings {
    Settings {
        stores: vec!["repo".to_owned(), "user".to_owned()],
        dry_run: false,
        keys: Keys::default(),
        theme: Theme::Plain,
    }
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-15T12:00:00Z").unwrap()
}

fn person() -> Actor {
    Actor::person("ada")
}

impl World {
    /// With these first screens, over an empty store.
    fn with(settings: Settings, first: Screen, plans: Arc<PlanStore>, (columns, rows): (u16, u16)) -> Self {
        let (app, effects) = App::new(settings, first, now(), (columns, rows));
        let terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        let mut world = Self { app, plans, terminal, undone: Vec::new() };
        world.carry_out(effects);
        world
    }

    /// The list of plans, over a store with these.
    fn plan_list(drafts: Vec<(&str, Draft)>, size: (u16, u16)) -> Self {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        for (id, draft) in drafts {
            create(&plans, id, draft);
        }
        Self::with(settings(), Screen::PlanList(Box::default()), plans, size)
    }

    /// The editor of one plan.
    fn editor(draft: Draft, size: (u16, u16)) -> Self {
        Self::editor_with(settings(), draft, size)
    }

    fn editor_with(settings: Settings, draft: Draft, size: (u16, u16)) -> Self {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        create(&plans, "plan-1", draft);
        let editor = Editor::new(PlanKey { store: 0, id: PlanId::new("plan-1").unwrap() });
        Self::with(settings, Screen::Editor(Box::new(editor)), plans, size)
    }

    fn send(&mut self, message: Message) {
        // A key is pressed once the screen was drawn, and so is a button.
        if matches!(message, Message::Key(_) | Message::Mouse(_)) {
            self.app.note_shown();
        }
        let effects = update(&mut self.app, message);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match self.done(effect) {
                Ok(answer) => self.send(Message::Reply(answer)),
                Err(effect) => self.undone.push(effect),
            }
        }
    }

    fn done(&self, effect: Effect) -> Result<Reply, Effect> {
        let error_message =
            |error: &dyn std::fmt::Display| ErrorMessage { what: error.to_string(), hint: String::new() };
        Ok(match effect {
            Effect::LoadPlanPage { store: 0, ticket, query } => {
                let service = Service::new(Arc::clone(&self.plans), Arc::new(Config::default()));
                let statuses = service.plan_statuses().unwrap();
                let Page { items, total, next, warnings } = self.plans.heads(&query).unwrap();
                let list = |summary: PlanSummary| ListedPlan {
                    status: service.plan_status(&statuses, &summary).unwrap(),
                    workers: Vec::new(),
                    has_text: self.plans.with_plan(&summary.id, |plan| !plan.spec().body.is_empty()).unwrap(),
                    summary,
                };
                let items = items.into_iter().map(list).collect();
                Reply::PlanPage {
                    store: 0,
                    ticket,
                    heads: Ok(Box::new(Page { items, total, next, warnings })),
                }
            }
            Effect::LoadPlanPage { store, ticket, .. } => {
                let page = Page::default();
                Reply::PlanPage { store, ticket, heads: Ok(Box::new(page)) }
            }
            Effect::LoadPlan(plan) => {
                let loaded = self.plans.with_plan(&plan.id, |plan| Box::new(LoadedPlan::of(plan)));
                Reply::Plan { loaded: loaded.map_err(|error| error_message(&error)), plan }
            }
            Effect::LoadText(plan) => {
                let text = self.plans.with_plan(&plan.id, |plan| Box::new(PlanText::of(plan)));
                Reply::Text(plan, text.map_err(|error| error_message(&error)))
            }
            Effect::Save { plan, version, edits } => {
                let service = Service::new(Arc::clone(&self.plans), Arc::new(Config::default()));
                let written = service.edit(&Caller::new(person()), &plan.id, edits, Guard::at(version));
                let saved = match written {
                    Ok(written) => Ok(written.version),
                    Err(ServiceError::Conflict(conflict)) => Err(SaveError::Conflict(conflict)),
                    Err(error) => Err(SaveError::Refused(error_message(&error))),
                };
                Reply::Saved { plan, saved }
            }
            other => return Err(other),
        })
    }

    /// Presses keys by their names: `down`, `ctrl+s`, `x`.
    fn press(&mut self, names: &str) -> &mut Self {
        for name in names.split_whitespace() {
            self.send(Message::Key(key(name)));
        }
        self
    }

    /// Types a text, one key a character.
    fn type_text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            self.send(Message::Key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE)));
        }
        self
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> &mut Self {
        self.send(Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        self
    }

    fn click(&mut self, column: u16, row: u16) -> &mut Self {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row)
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.terminal.backend_mut().resize(columns, rows);
        self.send(Message::Resize { columns, rows });
    }

    fn buffer(&mut self) -> &Buffer {
        let app = &self.app;
        self.terminal.draw(|frame| render(app, frame)).unwrap();
        self.terminal.backend().buffer()
    }

    /// What is on the screen, without spaces at the ends of lines.
    fn screen(&mut self) -> String {
        let buffer = self.buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut x = 0;
            while x < buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += (symbol.width() as u16).max(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The lines of the screen that have this text.
    fn lines_with(&mut self, text: &str) -> Vec<String> {
        self.screen().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    fn stored(&self) -> Draft {
        self.plans.with_plan(&PlanId::new("plan-1").unwrap(), waypost_core::Plan::to_draft).unwrap()
    }

    /// Somebody else writes.
    fn somebody_writes(&self, commands: Vec<Command>) -> u64 {
        let request = WriteRequest {
            plan: PlanId::new("plan-1").unwrap(),
            by: Actor::person("grace"),
            commands,
            known_version: None,
            lease_seconds: None,
        };
        direct_writes::write(&self.plans, request).version
    }
}

fn create(plans: &PlanStore, id: &str, draft: Draft) {
    let id = Some(PlanId::new(id).unwrap());
    direct_writes::create(plans, NewPlan { id, by: person(), draft, approval_required: None });
}

fn key(name: &str) -> KeyEvent {
    Chord::parse(name).unwrap_or_else(|| panic!("{name} is no key")).event()
}

/// Compares a screen with a golden file. With `WAYPOST_UPDATE=1` it writes the file instead.
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("WAYPOST_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} is not what is drawn now (WAYPOST_UPDATE=1 writes it anew):\n{text}");
}

/// The sizes that every screen is drawn in.
const SIZES: [(u16, u16); 3] = [(80, 24), (60, 15), (200, 50)];

/// Draws a world in all sizes.
fn golden_in_all_sizes(name: &str, mut world: World) {
    for (columns, rows) in SIZES {
        world.resize(columns, rows);
        golden(&format!("{name}-{columns}x{rows}"), &world.screen());
    }
}

/// A plan with statuses, parts, estimates and a few arrows.
fn example() -> Draft {
    let mut draft = Draft::new("Refactor the auth module to use JWT");
    draft.spec.status = "in review".to_owned();
    let tasks = [
        ("t1", "Read the auth module and find its patterns", None, &[][..], "low"),
        ("t2", "Add the jwt crate to Cargo.toml", None, &["t1"][..], "low"),
        ("t3", "Implement tokens", None, &["t2"][..], "high"),
        ("t3a", "Generate a token", Some("t3"), &[][..], "medium"),
        ("t3b", "Validate a token, and say precisely why it was refused", Some("t3"), &["t3a"][..], "high"),
        ("t4", "Move the sessions over", None, &["t1"][..], "medium"),
        ("t5", "Write the tests", None, &["t3", "t4"][..], "medium"),
        ("t6", "Update the documentation", None, &["t3"][..], ""),
    ];
    for (id, description, parent, depends_on, complexity) in tasks {
        let mut spec = waypost_testkit::task(id, depends_on);
        spec.description = description.to_owned();
        spec.parent = parent.map(waypost_testkit::id);
        spec.complexity = match complexity {
            "low" => Some(waypost_core::Complexity::Low),
            "medium" => Some(waypost_core::Complexity::Medium),
            "high" => Some(waypost_core::Complexity::High),
            _ => None,
        };
        if id == "t3a" {
            spec.notes = "Use HS256, expiry = 24h".to_owned();
            spec.tools = Some(vec!["Read".to_owned(), "Edit".to_owned()]);
        }
        draft.tasks.push(waypost_core::Task::new(spec));
    }
    draft
}
