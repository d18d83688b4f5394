//! A question that has to be answered before anything else: a few lines, perhaps a line to type, and what can be chosen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use crate::edit_buffer::Deletion;
use crate::text;
use crate::text_input::TextInput;

/// What can be chosen, whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Write the edits, then leave.
    SaveAndLeave,
    /// Throw the edits away.
    Discard,
    /// Delete a task with what was said to go with it, and what depends on it forgets it.
    Delete(Box<Deletion>),
    /// Show what there was no room for.
    More,
    /// Read the plan again, and make the edits on what it is now.
    Rebase,
    /// Write the edits, then run.
    SaveAndExecute,
    /// Run.
    Execute,
    /// Throw the edits away, and go on with what others wrote.
    TakeTheirs,
    /// See what others wrote, in the history.
    Compare,
    /// Open the text in `$EDITOR` again.
    EditAgain,
    /// Take the text that was typed.
    Take,
    /// Do what the dialog says.
    Confirm,
    /// Leave a run to itself.
    LetGoOn,
    /// Stop a run of this process.
    StopRun,
    /// Leave the program when its runs have ended.
    QuitAfterRuns,
    /// Stop the runs of this process, and leave the program.
    StopAndLeave,
    /// Go to the edits that nobody saved.
    GoToEdits,
    /// Leave the program without the edits that nobody saved.
    DiscardAndLeave,
}

/// One thing that can be chosen.
#[derive(Clone, Debug)]
pub struct Button {
    /// The key, without modifiers; Enter chooses the one that is marked.
    pub key: char,
    /// What it says.
    pub label: String,
    /// What follows; nothing closes the dialog.
    pub choice: Option<Choice>,
}

impl Button {
    /// A button that chooses.
    pub fn new(key: char, label: impl Into<String>, choice: Choice) -> Self {
        Self { key, label: label.into(), choice: Some(choice) }
    }

    /// A button that closes.
    pub fn close(key: char, label: impl Into<String>) -> Self {
        Self { key, label: label.into(), choice: None }
    }

    /// How it is written.
    pub fn shown(&self) -> String {
        format!(" {} {} ", self.key, self.label)
    }
}

/// A question.
#[derive(Clone, Debug)]
pub struct Dialog {
    /// In one line.
    pub title: String,
    /// What there is to know. Lines are broken to fit.
    pub lines: Vec<String>,
    /// The line to type, if there is one.
    pub input: Option<TextInput>,
    /// What can be chosen.
    pub buttons: Vec<Button>,
    /// The button that Enter chooses.
    pub marked: usize,
    /// The first line that is seen, where not all of them fit.
    pub top: usize,
}

/// What a key did to a dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is still there.
    Open,
    /// It is gone, and nothing follows.
    Closed,
    /// This was chosen; what was typed.
    Chosen(Choice, String),
}

/// Where the parts of a dialog stand.
#[derive(Clone, Debug)]
pub struct Layout {
    /// All of it, the edge included.
    pub frame: Rect,
    /// The lines, broken.
    pub lines: Vec<String>,
    /// Where the lines stand.
    pub text: Rect,
    /// The line to type.
    pub input: Option<Rect>,
    /// The buttons, in their order.
    pub buttons: Vec<Rect>,
}

impl Dialog {
    /// A question with buttons; the last closes it and is marked.
    pub fn new(title: impl Into<String>, lines: Vec<String>, buttons: Vec<Button>) -> Self {
        let marked = buttons.len().saturating_sub(1);
        Self { title: title.into(), lines, input: None, buttons, marked, top: 0 }
    }

    /// A question for a line of text.
    pub fn ask(title: impl Into<String>, lines: Vec<String>, text: &str) -> Self {
        let buttons = vec![Button::new('↵', "take", Choice::Take), Button::close('⎋', "leave")];
        Self { input: Some(TextInput::line(text)), marked: 0, ..Self::new(title, lines, buttons) }
    }

    /// Takes a key, in a terminal of a size.
    pub fn key(&mut self, key: KeyEvent, size: Rect) -> Outcome {
        if self.scroll_key(key.code, size) {
            return Outcome::Open;
        }
        match key.code {
            KeyCode::Esc => return Outcome::Closed,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Outcome::Closed,
            KeyCode::Enter => return self.choose(self.marked),
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
                    return self.choose(at);
                }
            }
            _ => {}
        }
        Outcome::Open
    }

    /// Scrolls the lines, where not all of them fit; says whether it did.
    fn scroll_key(&mut self, code: KeyCode, size: Rect) -> bool {
        let page = self.room(size).saturating_sub(2).max(1) as isize;
        let by = match code {
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -page,
            KeyCode::PageDown => page,
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

    /// Takes what the mouse did.
    pub fn mouse(&mut self, mouse: MouseEvent, size: Rect) -> Outcome {
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
        let at = Position::new(mouse.column, mouse.row);
        let layout = self.layout(size);
        let hit = layout.buttons.iter().position(|button| button.contains(at));
        hit.map_or(Outcome::Open, |button| self.choose(button))
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            input.insert(text);
        }
    }

    fn mark(&mut self, by: usize) {
        if !self.buttons.is_empty() {
            self.marked = (self.marked + by) % self.buttons.len();
        }
    }

    fn choose(&self, at: usize) -> Outcome {
        match self.buttons.get(at).and_then(|button| button.choice.clone()) {
            Some(choice) => Outcome::Chosen(
                choice,
                self.input.as_ref().map(|input| input.text().to_owned()).unwrap_or_default(),
            ),
            None => Outcome::Closed,
        }
    }

    /// Columns of all of it, the edge included.
    fn columns(&self, size: Rect) -> u16 {
        let widest = self.lines.iter().map(|line| text::width(line)).max().unwrap_or(0);
        let buttons: usize = self.buttons.iter().map(|button| text::width(&button.shown()) + 2).sum();
        let wanted = widest.max(buttons).max(text::width(&self.title) + 2).max(40) + 4;
        wanted.min(usize::from(size.width.saturating_sub(4))).min(100) as u16
    }

    /// Lines that can be seen at the same time.
    fn room(&self, size: Rect) -> usize {
        usize::from(size.height.saturating_sub(if self.input.is_some() { 9 } else { 7 }))
    }

    /// All lines, broken to fit; what a line goes on with stands as far in as its beginning.
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

    /// Where everything stands in a terminal of a size.
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
            lines.push(format!("── lines {}–{} of {total}, ↑ ↓ scroll ──", from + 1, from + shown));
        }
        let typed: u16 = if self.input.is_some() { 2 } else { 0 };
        let height = (lines.len() as u16 + typed + 4).min(size.height);
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
        let mut x = frame.x + 2;
        let row = frame.bottom().saturating_sub(2);
        let buttons = self.buttons.iter().map(|button| {
            let wide = text::width(&button.shown()) as u16;
            let place = Rect::new(x, row, wide, 1).intersection(frame);
            x += wide + 1;
            place
        });
        Layout { frame, text, input, buttons: buttons.collect(), lines }
    }
}
