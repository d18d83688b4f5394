//! The command palette: goes to a plan, to a task, or carries out a command of the screen below, by a few typed words. Searches
//! nothing itself.

pub(crate) mod messages;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use ratatui::widgets::Clear;

pub use messages::{PLANS_FOUND_MAX, SearchHit, SearchRequest, TASKS_FOUND_MAX};

use crate::dialog::menu::{Menu, MenuOption, Picked};
use crate::frame::{draw_menu, framed};
use crate::keys::{Action, Keys, Place};
use crate::messages::Effect;
use crate::plan::PlanKey;
use crate::text;
use crate::theme::Theme;

/// Columns of an id: a longer one leaves room for the title.
const ID_COLUMNS: usize = 24;
const COLUMNS_MAX: u16 = 100;
const ROWS_MAX: u16 = 24;

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Command(Action),
    Hit(SearchHit),
}

/// The effect of a key or click.
#[derive(Debug)]
pub enum Outcome {
    Open,
    Closed,
    Chosen(Target),
    Search(Effect),
}

#[derive(Debug)]
pub struct Palette {
    menu: Menu,
    /// The target of each option.
    targets: Vec<Target>,
    commands: Vec<(MenuOption, Action)>,
    /// The plan whose tasks are searched.
    plan: Option<PlanKey>,
    ticket: u64,
    /// What was searched for, in lower case.
    searched: String,
}

impl Palette {
    /// Opens it over a screen. Also returns the first search.
    pub fn new(keys: &Keys, place: Place, plan: Option<PlanKey>) -> (Self, Effect) {
        let commands = commands(keys, place);
        let mut palette = Self {
            menu: Menu::filtered(Vec::new()),
            targets: Vec::new(),
            commands,
            plan,
            ticket: 0,
            searched: String::new(),
        };
        palette.set_hits(Vec::new());
        let search = palette.search();
        (palette, search)
    }

    fn search(&mut self) -> Effect {
        self.ticket += 1;
        let text = self.menu.filter().map(|typed| typed.text().trim().to_owned()).unwrap_or_default();
        self.searched = text.to_lowercase();
        Effect::Search(SearchRequest { ticket: self.ticket, text, plan: self.plan.clone() })
    }

    /// Takes over what was found, unless it is the reply to an earlier search.
    pub fn found(&mut self, ticket: u64, hits: &[SearchHit]) {
        if ticket == self.ticket {
            self.set_hits(hits.to_vec());
        }
    }

    fn set_hits(&mut self, hits: Vec<SearchHit>) {
        let (mut options, mut targets) = (Vec::new(), Vec::new());
        for hit in hits {
            let SearchHit { plan, task, title, sign, .. } = &hit;
            let (sign, plan) = (sign.glyph(), text::truncate(plan.id.as_str(), ID_COLUMNS));
            let option = match task {
                Some(task) => {
                    let task = text::truncate(task.as_str(), ID_COLUMNS);
                    MenuOption::new(format!("{sign} {task}  {title}"), format!("task of {plan}"))
                }
                None => MenuOption::new(format!("{sign} {title}"), format!("plan {plan}")),
            };
            // It may have been found by what is not shown, such as its notes or labels.
            options.push(MenuOption { keywords: self.searched.clone(), ..option });
            targets.push(Target::Hit(hit));
        }
        for (option, action) in &self.commands {
            options.push(option.clone());
            targets.push(Target::Command(*action));
        }
        self.targets = targets;
        self.menu.set_options(options);
    }

    /// Handles a key; `size` is that of the terminal.
    pub fn key(&mut self, key: KeyEvent, size: Rect) -> Outcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Esc || control && matches!(key.code, KeyCode::Char('c' | 'k')) {
            return Outcome::Closed;
        }
        let before = self.typed();
        let picked = self.menu.key(key, list_rows(size));
        self.picked(picked, &before)
    }

    fn typed(&self) -> String {
        self.menu.filter().map(|typed| typed.text().to_owned()).unwrap_or_default()
    }

    fn picked(&mut self, picked: Option<Picked>, before: &str) -> Outcome {
        match picked {
            Some(Picked::Option(at)) => self.targets.get(at).cloned().map_or(Outcome::Open, Outcome::Chosen),
            Some(Picked::Typed(_)) | None if self.typed() != before => Outcome::Search(self.search()),
            Some(Picked::Typed(_)) | None => Outcome::Open,
        }
    }

    pub fn paste(&mut self, text: &str) -> Outcome {
        let before = self.typed();
        self.menu.paste(text);
        self.picked(None, &before)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    pub fn mouse(&mut self, mouse: MouseEvent, size: Rect) -> Outcome {
        let (inside, rows) = (inside(size), list_rows(size));
        let at = Position::new(mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::ScrollUp => self.menu.scroll(-3, rows),
            MouseEventKind::ScrollDown => self.menu.scroll(3, rows),
            MouseEventKind::Down(MouseButton::Left) if inside.contains(at) && at.y > inside.y => {
                let picked = self.menu.pick_row(usize::from(at.y - inside.y - 1), rows);
                return self.picked(picked, &self.typed());
            }
            MouseEventKind::Down(MouseButton::Left) if !area(size).contains(at) => return Outcome::Closed,
            _ => {}
        }
        Outcome::Open
    }

    pub fn draw(&self, theme: Theme, frame: &mut Frame<'_>, size: Rect) {
        frame.render_widget(Clear, area(size));
        framed(theme, frame, area(size), "Go to a plan, a task or a command", true);
        draw_menu(&self.menu, theme, frame, inside(size));
    }
}

fn area(size: Rect) -> Rect {
    let width = size.width.saturating_sub(4).min(COLUMNS_MAX);
    let height = size.height.saturating_sub(4).min(ROWS_MAX);
    Rect::new(size.x + (size.width - width) / 2, size.y + 1, width, height).intersection(size)
}

fn inside(size: Rect) -> Rect {
    area(size).inner(ratatui::layout::Margin::new(1, 1))
}

fn list_rows(size: Rect) -> usize {
    usize::from(inside(size).height.saturating_sub(1))
}

/// The commands of a screen, with their keys: those of the place first, without the keys that only move.
fn commands(keys: &Keys, place: Place) -> Vec<(MenuOption, Action)> {
    let places: &[Place] = if place == Place::Anywhere { &[place] } else { &[place, Place::Anywhere] };
    let rows = places.iter().flat_map(|&place| keys.rows(place));
    let shown = rows.filter(|(binding, _)| !is_movement(binding.action)).map(|(binding, chords)| {
        let chords: Vec<String> = chords.iter().map(ToString::to_string).collect();
        let option = MenuOption::new(binding.help, chords.join("  "));
        let keywords = format!("{} {}", binding.hint, <&str>::from(binding.action)).to_lowercase();
        (MenuOption { keywords, ..option }, binding.action)
    });
    shown.collect()
}

fn is_movement(action: Action) -> bool {
    matches!(
        action,
        Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::First
            | Action::Last
            | Action::Palette
    )
}
