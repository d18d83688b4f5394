//! Modal dialogs: a few lines, an optional text input or list of options, and buttons.

pub mod menu;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use self::menu::{Menu, Picked};
use crate::edit_buffer::Deletion;
use crate::text;
use crate::text_input::TextInput;

/// Placeholders for keys without a character.
const ENTER: char = '\r';
const ESCAPE: char = '\u{1b}';

/// The choices of all dialogs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    SaveAndLeave,
    Discard,
    /// Delete a task, provided its subtasks and dependants are still these.
    Delete(Box<Deletion>),
    /// Show the next page.
    More,
    /// Rebase the edits on the newer version.
    Rebase,
    SaveAndExecute,
    /// Discard the edits, and load the version that others wrote.
    TakeTheirs,
    /// Show in the history what others changed.
    Compare,
    EditAgain,
    /// Accept the typed text.
    Take,
    /// The option of the list with this index.
    Option(usize),
    /// Reject what was to be approved.
    Reject,
    /// Do what the dialog proposes.
    Confirm,
    KeepRunning,
    StopRun,
    QuitAfterRuns,
    StopAndLeave,
    /// Show the unsaved edits.
    GoToEdits,
    /// Quit without the unsaved edits.
    DiscardAndLeave,
}

#[derive(Clone, Debug)]
pub struct Button {
    /// Chooses this button directly. Enter chooses the marked button instead.
    pub key: char,
    pub label: String,
    /// `None` closes the dialog.
    pub choice: Option<Choice>,
}

impl Button {
    pub fn new(key: char, label: impl Into<String>, choice: Choice) -> Self {
        Self { key, label: label.into(), choice: Some(choice) }
    }

    /// A button that closes the dialog.
    pub fn close(key: char, label: impl Into<String>) -> Self {
        Self { key, label: label.into(), choice: None }
    }

    pub fn shown(&self) -> String {
        match self.key {
            ENTER => format!(" Enter {} ", self.label),
            ESCAPE => format!(" Esc {} ", self.label),
            key => format!(" {key} {} ", self.label),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Dialog {
    pub title: String,
    /// Wrapped when drawn.
    pub lines: Vec<String>,
    pub input: Option<TextInput>,
    pub menu: Option<Menu>,
    pub buttons: Vec<Button>,
    /// The button that Enter chooses.
    pub marked: usize,
    /// The first visible line.
    pub top: usize,
    /// For a dialog whose lines all have to be shown before its action can be chosen: the width of the terminal, and how
    /// many lines from the first have been on screen in it.
    pub(crate) read: Option<(u16, usize)>,
}

/// The effect of a key or click on a dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Open,
    Closed,
    /// The choice, and the typed text.
    Chosen(Choice, String),
}

/// The parts of a dialog on the screen.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Including the border.
    pub frame: Rect,
    /// Wrapped, and cut to the visible lines.
    pub lines: Vec<String>,
    pub text: Rect,
    pub input: Option<Rect>,
    /// The list of options, with its filter in the first row.
    pub menu: Option<Rect>,
    pub buttons: Vec<Rect>,
}

/// The key that scrolls where no text is typed: the same as on every screen.
#[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
fn reading_key(code: KeyCode) -> KeyCode {
    match code {
        KeyCode::Char('k') => KeyCode::Up,
        KeyCode::Char('j') => KeyCode::Down,
        KeyCode::Char('G') => KeyCode::End,
        KeyCode::Char(' ') => KeyCode::PageDown,
        other => other,
    }
}

impl Dialog {
    /// A question with buttons. The last button is marked, so it should be the harmless one.
    pub fn new(title: impl Into<String>, lines: Vec<String>, buttons: Vec<Button>) -> Self {
        let marked = buttons.len().saturating_sub(1);
        Self { title: title.into(), lines, input: None, menu: None, buttons, marked, top: 0, read: None }
    }

    /// Lets the action be chosen only after every line has been on screen.
    pub fn to_be_read(self) -> Self {
        Self { read: Some((0, 0)), ..self }
    }

    /// Notes the lines that are drawn now. Returns whether some of them had not been on screen before.
    pub(crate) fn note_shown(&mut self, size: Rect) -> bool {
        let (total, room) = (self.broken(size).len(), self.room(size));
        let Some((width, read)) = &mut self.read else { return false };
        if *width != size.width {
            // Other lines now: they are counted from the first again.
            (*width, *read) = (size.width, 0);
        }
        let before = *read;
        let shown = if total > room { room.saturating_sub(1) } else { total };
        let from = self.top.min(total - shown);
        if from <= *read {
            *read = (*read).max(from + shown);
        }
        *read > before
    }

    /// Takes the place of a dialog that shows the same except for its first line: what was read of that is read.
    pub(crate) fn resume(&mut self, before: &Self) {
        if self.read.is_some() && self.lines.get(1..) == before.lines.get(1..) {
            (self.top, self.read, self.marked) = (before.top, before.read, before.marked);
        }
    }

    /// Returns whether lines are left that have not been on screen.
    pub fn is_unread(&self, size: Rect) -> bool {
        self.read.is_some_and(|(width, read)| width != size.width || read < self.broken(size).len())
    }

    /// Offers one action; the other button goes back.
    pub fn offer(
        title: impl Into<String>,
        lines: Vec<String>,
        (key, label, choice): (char, &str, Choice),
    ) -> Self {
        Self::new(title, lines, vec![Button::new(key, label, choice), Button::close('b', "back")])
    }

    /// Asks for a line of text; `label` names the action of Enter.
    pub fn ask(title: impl Into<String>, lines: Vec<String>, text: &str, label: &str) -> Self {
        let buttons = vec![Button::new(ENTER, label, Choice::Take), Button::close(ESCAPE, "cancel")];
        Self { input: Some(TextInput::line(text)), marked: 0, ..Self::new(title, lines, buttons) }
    }

    /// Lets one of the options be chosen; `label` names the action of Enter.
    pub fn choose_from(title: impl Into<String>, lines: Vec<String>, menu: Menu, label: &str) -> Self {
        let buttons = vec![Button::new(ENTER, label, Choice::Take), Button::close(ESCAPE, "cancel")];
        Self { menu: Some(menu), marked: 0, ..Self::new(title, lines, buttons) }
    }

    /// What was picked from the list, unless the lines have to be read first.
    fn picked(&self, picked: Option<Picked>, size: Rect) -> Outcome {
        match picked {
            Some(_) if self.is_unread(size) => Outcome::Open,
            Some(Picked::Option(option)) => Outcome::Chosen(Choice::Option(option), String::new()),
            Some(Picked::Typed(text)) => Outcome::Chosen(Choice::Take, text),
            None => Outcome::Open,
        }
    }

    /// Handles a key; `size` is that of the terminal.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub fn key(&mut self, key: KeyEvent, size: Rect) -> Outcome {
        let rows = self.option_rows(size);
        let is_leaving = key.code == KeyCode::Esc
            || key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        let is_paging = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
        if self.menu.is_some() && !is_leaving {
            // The arrows are for the options, so a long text has only the pages.
            if is_paging && self.scroll_key(key.code, size) {
                return Outcome::Open;
            }
            let Some(menu) = self.menu.as_mut() else { return Outcome::Open };
            let picked = menu.key(key, rows);
            return self.picked(picked, size);
        }
        let code = if self.input.is_some() { key.code } else { reading_key(key.code) };
        if self.scroll_key(code, size) {
            return Outcome::Open;
        }
        match key.code {
            KeyCode::Esc => return Outcome::Closed,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Outcome::Closed,
            KeyCode::Enter => return self.choose(self.marked, size),
            KeyCode::Tab => self.mark(1),
            KeyCode::BackTab => self.mark(self.buttons.len().saturating_sub(1)),
            _ => {}
        }
        if let Some(input) = &mut self.input {
            input.key(key);
            return Outcome::Open;
        }
        match key.code {
            KeyCode::Right | KeyCode::Down => self.mark(1),
            KeyCode::Left | KeyCode::Up => self.mark(self.buttons.len().saturating_sub(1)),
            KeyCode::Char(typed) => {
                if let Some(at) = self.buttons.iter().position(|button| button.key == typed) {
                    return self.choose(at, size);
                }
            }
            _ => {}
        }
        Outcome::Open
    }

    /// Scrolls the lines if they do not all fit. Returns whether it did.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn scroll_key(&mut self, code: KeyCode, size: Rect) -> bool {
        let page = self.room(size).saturating_sub(2).max(1) as isize;
        let by = match code {
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -page,
            KeyCode::PageDown => page,
            KeyCode::Home if self.input.is_none() => isize::MIN,
            KeyCode::End if self.input.is_none() => isize::MAX,
            _ => return false,
        };
        self.scroll(by, size)
    }

    fn scroll(&mut self, by: isize, size: Rect) -> bool {
        let (total, room) = (self.broken(size).len(), self.room(size));
        if total <= room {
            return false;
        }
        let last = total - room.saturating_sub(1);
        self.top = self.top.saturating_add_signed(by).min(last);
        true
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    pub fn mouse(&mut self, mouse: MouseEvent, size: Rect) -> Outcome {
        let at = Position::new(mouse.column, mouse.row);
        let (list, rows) = (self.option_area(size), self.option_rows(size));
        if let (Some(menu), Some(list)) = (&mut self.menu, list.filter(|list| list.contains(at))) {
            match mouse.kind {
                MouseEventKind::ScrollUp => menu.scroll(-3, rows),
                MouseEventKind::ScrollDown => menu.scroll(3, rows),
                MouseEventKind::Down(MouseButton::Left) => {
                    let picked = menu.pick_row(usize::from(at.y - list.y), rows);
                    return self.picked(picked, size);
                }
                _ => {}
            }
            return Outcome::Open;
        }
        match mouse.kind {
            MouseEventKind::ScrollUp => {
                self.scroll(-3, size);
            }
            MouseEventKind::ScrollDown => {
                self.scroll(3, size);
            }
            _ => {}
        }
        if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
            return Outcome::Open;
        }
        let layout = self.layout(size);
        let hit = layout.buttons.iter().position(|button| button.contains(at));
        hit.map_or(Outcome::Open, |button| self.choose(button, size))
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            input.insert(text);
        }
        if let Some(menu) = &mut self.menu {
            menu.paste(text);
        }
    }

    fn mark(&mut self, by: usize) {
        if !self.buttons.is_empty() {
            self.marked = (self.marked + by) % self.buttons.len();
        }
    }

    fn choose(&self, at: usize, size: Rect) -> Outcome {
        if let (Some(menu), Some(Choice::Take)) =
            (&self.menu, self.buttons.get(at).and_then(|button| button.choice.as_ref()))
        {
            return self.picked(menu.pick(), size);
        }
        match self.buttons.get(at).and_then(|button| button.choice.clone()) {
            // A rejection needs no reading.
            Some(choice) if self.is_unread(size) && choice != Choice::Reject => Outcome::Open,
            Some(choice) => Outcome::Chosen(
                choice,
                self.input.as_ref().map(|input| input.text().to_owned()).unwrap_or_default(),
            ),
            None => Outcome::Closed,
        }
    }

    /// The total width in columns, including the border.
    fn columns(&self, size: Rect) -> u16 {
        let widest = self.lines.iter().map(|line| text::width(line)).max().unwrap_or(0);
        let buttons: usize = self.buttons.iter().map(|button| text::width(&button.shown()) + 2).sum();
        let options = self.menu.as_ref().map_or(0, Menu::columns);
        let wanted = widest.max(buttons).max(options).max(text::width(&self.title) + 2).max(40) + 4;
        wanted.min(usize::from(size.width.saturating_sub(4))).min(100) as u16
    }

    /// How many lines fit at the same time.
    fn room(&self, size: Rect) -> usize {
        let taken = if self.input.is_some() { 9 } else { 7 } + self.menu_rows(size);
        usize::from(size.height.saturating_sub(taken))
    }

    /// Rows of the list of options, with its filter and the space above it.
    fn menu_rows(&self, size: Rect) -> u16 {
        let Some(menu) = &self.menu else { return 0 };
        // A long text leaves half of the room to the options.
        let all = size.height.saturating_sub(8);
        let most = if self.broken(size).len() > 3 { (all / 2).max(4) } else { all };
        // Between the text and the options is an empty row.
        let gap = u16::from(!self.lines.is_empty());
        (menu.rows() as u16 + gap).clamp(2 + gap, most.max(3))
    }

    /// The area of the options, without the filter.
    fn option_area(&self, size: Rect) -> Option<Rect> {
        let filter = u16::from(self.menu.as_ref()?.has_filter());
        let menu = self.layout(size).menu?;
        Some(Rect { y: menu.y + filter, height: menu.height.saturating_sub(filter), ..menu })
    }

    pub(crate) fn option_rows(&self, size: Rect) -> usize {
        self.option_area(size).map_or(0, |area| usize::from(area.height))
    }

    /// All lines, wrapped with a hanging indent.
    fn broken(&self, size: Rect) -> Vec<String> {
        let inside = usize::from(self.columns(size).saturating_sub(4));
        let mut lines: Vec<String> = Vec::new();
        for line in &self.lines {
            let words = line.trim_start_matches(' ');
            let indent = (line.len() - words.len()).min(inside / 2);
            let broken = text::wrap(words, inside - indent, usize::MAX);
            if broken.is_empty() {
                lines.push(String::new());
            }
            lines.extend(broken.into_iter().map(|line| format!("{:indent$}{line}", "")));
        }
        lines
    }

    /// The positions of all parts in a terminal of this size.
    pub fn layout(&self, size: Rect) -> Layout {
        let columns = self.columns(size);
        let inside = usize::from(columns.saturating_sub(4));
        let room = self.room(size);
        let mut lines = self.broken(size);
        let total = lines.len();
        if total > room {
            let shown = room.saturating_sub(1);
            let from = self.top.min(total - shown);
            lines.drain(..from);
            lines.truncate(shown);
            // The button works once the last line has been shown, so say what it waits for.
            let (first, last) = (from + 1, from + shown);
            let read = self.read.map_or(0, |(_, read)| read);
            lines.push(match self.is_unread(size) {
                true if last < total => format!("── {first}–{last} of {total}, ↓ to the end first ──"),
                true => format!("── {first}–{last} of {total}, read on from line {read} ──"),
                false => format!("── lines {first}–{last} of {total}, ↑ ↓ scroll ──"),
            });
        }
        let typed: u16 = if self.input.is_some() { 2 } else { 0 };
        let options = self.menu_rows(size);
        let height = (lines.len() as u16 + typed + options + 4).min(size.height);
        let frame = Rect::new(
            size.x + size.width.saturating_sub(columns) / 2,
            size.y + size.height.saturating_sub(height) / 2,
            columns,
            height,
        );
        let text = Rect::new(frame.x + 2, frame.y + 1, inside as u16, lines.len() as u16).intersection(size);
        let input = self.input.as_ref().map(|_| {
            Rect::new(frame.x + 2, frame.y + 1 + lines.len() as u16 + 1, inside as u16, 1).intersection(size)
        });
        let menu = self.menu.as_ref().map(|_| {
            let y = frame.y + 1 + lines.len() as u16 + u16::from(!lines.is_empty());
            let rows = options.saturating_sub(u16::from(!lines.is_empty()));
            Rect::new(frame.x + 2, y, inside as u16, rows).intersection(size)
        });
        let mut x = frame.x + 2;
        let row = frame.bottom().saturating_sub(2);
        let buttons = self.buttons.iter().map(|button| {
            let wide = text::width(&button.shown()) as u16;
            let place = Rect::new(x, row, wide, 1).intersection(frame);
            x += wide + 1;
            place
        });
        Layout { frame, text, input, menu, buttons: buttons.collect(), lines }
    }
}
