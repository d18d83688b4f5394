//! The text of a plan, for reading: its goal, its Markdown body, and its summary. Writes nothing.

pub(crate) mod messages;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEventKind};
use ratatui::text::Span;

pub use messages::PlanText;

use crate::frame::{self, put};
use crate::keys::Action;
use crate::markdown::markdown;
use crate::messages::{Effect, Reply};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::PlanKey;
use crate::run_view::Intent;
use crate::screen::{Context, Destination, DrawContext, Event, Flow};
use crate::styled_text::StyledText;
use crate::text_input::TextInput;

/// Lines of prose are no wider: longer ones are hard to read.
const COLUMNS_MAX: u16 = 100;
/// The keys while the search is typed.
const TYPING_KEYS: [(&str, &str); 2] = [("Enter", "find"), ("Esc", "clear")];

#[derive(Debug)]
pub struct TextView {
    plan: PlanKey,
    loaded: Option<Box<PlanText>>,
    error: Option<ErrorMessage>,
    text: StyledText,
    find: Option<TextInput>,
    top: usize,
    /// The line that the last search went to.
    marked: Option<usize>,
}

impl TextView {
    pub(crate) const KEYS: [Action; 7] = [
        Action::Filter,
        Action::Next,
        Action::Previous,
        Action::Edit,
        Action::Watch,
        Action::History,
        Action::Back,
    ];

    /// The text is loaded when the screen is shown.
    pub fn new(plan: PlanKey) -> Self {
        let text = StyledText::default();
        Self { plan, loaded: None, error: None, text, find: None, top: 0, marked: None }
    }

    pub(crate) fn plan(&self) -> &PlanKey {
        &self.plan
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.find.is_some()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        match event {
            Event::Shown => context.effects.push(Effect::LoadText(self.plan.clone())),
            Event::Written(store, plans) => {
                if store == self.plan.store && plans.iter().any(|(id, _)| *id == self.plan.id) {
                    context.effects.push(Effect::LoadText(self.plan.clone()));
                }
            }
            Event::Reply(Reply::Text(plan, loaded)) if *plan == self.plan => match loaded {
                Ok(loaded) => {
                    self.text = markdown(&loaded.text, context.settings.theme);
                    (self.loaded, self.error) = (Some(loaded.clone()), None);
                }
                Err(error) => self.error = Some(error.clone()),
            },
            Event::Action(action) => self.act(action, context),
            Event::Key(key) => self.type_key(key),
            Event::Paste(text) => {
                if let Some(find) = &mut self.find {
                    find.insert(text);
                }
            }
            Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollUp => self.top = self.top.saturating_sub(3),
                MouseEventKind::ScrollDown => self.top += 3,
                _ => {}
            },
            Event::Reply(_) | Event::Chosen(..) | Event::DialogClosed | Event::Tick => {}
        }
        self.text.wrap(usize::from(columns(context.area.width)));
        self.top = self.top.min(self.text.rows().saturating_sub(rows(context)));
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) {
        let page = rows(context).saturating_sub(1).max(1);
        match action {
            Action::Up => self.top = self.top.saturating_sub(1),
            Action::Down => self.top += 1,
            Action::PageUp => self.top = self.top.saturating_sub(page),
            Action::PageDown => self.top += page,
            Action::First => self.top = 0,
            Action::Last => self.top = self.text.rows(),
            Action::Filter => self.find = Some(TextInput::line("")),
            Action::Next => self.jump(false, context),
            Action::Previous => self.jump(true, context),
            Action::Edit => context.go(Flow::Open(Destination::Editor(self.plan.clone()))),
            Action::Watch => context.go(Flow::Open(Destination::Run(self.plan.clone(), Intent::Watch))),
            Action::Approve => context.go(Flow::Open(Destination::Run(self.plan.clone(), Intent::Review))),
            Action::History => context.go(Flow::Open(Destination::History(self.plan.clone()))),
            Action::Quit => context.go(Flow::Quit),
            Action::Back => context.go(Flow::Pop),
            Action::Open
            | Action::Help
            | Action::Palette
            | Action::Sort
            | Action::Archived
            | Action::Refresh
            | Action::New
            | Action::Delete
            | Action::Skip
            | Action::MoveUp
            | Action::MoveDown
            | Action::Indent
            | Action::Outdent
            | Action::Save
            | Action::Execute
            | Action::Undo
            | Action::Redo
            | Action::External
            | Action::Dependencies
            | Action::Upstream
            | Action::Downstream
            | Action::Graph
            | Action::Fold
            | Action::Set
            | Action::Status
            | Action::NextField
            | Action::PreviousField
            | Action::Accept
            | Action::Toggle
            | Action::Focus
            | Action::Zoom
            | Action::Follow
            | Action::Times
            | Action::Questions
            | Action::Reject
            | Action::Pause
            | Action::Hold
            | Action::Cancel
            | Action::CancelPlan
            | Action::Retry
            | Action::RetryAll
            | Action::Stop
            | Action::ViewTasks
            | Action::ViewText
            | Action::Mark
            | Action::Restore
            | Action::Suspend => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn type_key(&mut self, key: KeyEvent) {
        let Some(find) = &mut self.find else { return };
        let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => self.find = None,
            _ if key.code == KeyCode::Esc || control_c => {
                self.find = None;
                self.text.search("");
                self.marked = None;
            }
            _ => {
                find.key(key);
                let wanted = find.text().to_owned();
                self.text.search(&wanted);
                let from = self.text.line_of(self.top);
                self.marked = self.text.found().iter().find(|&&line| line >= from).copied();
                self.marked = self.marked.or(self.text.found().first().copied());
                if let Some(line) = self.marked {
                    self.top = self.text.row_of(line).saturating_sub(2);
                }
            }
        }
    }

    /// Goes to the next match, or to the next heading.
    fn jump(&mut self, is_back: bool, context: &mut Context<'_>) {
        let from = self.marked.unwrap_or_else(|| self.text.line_of(self.top));
        match self.text.next(from, is_back) {
            Some(line) => {
                self.marked = Some(line);
                self.top = self.text.row_of(line);
            }
            None => context.notify(NoteKind::Warning, "no match and no heading"),
        }
    }

    pub(crate) fn draw(&self, context: DrawContext<'_>, frame: &mut Frame<'_>, parts: frame::Parts) {
        let (theme, area) = (context.settings.theme, parts.body);
        let title = match &self.loaded {
            Some(loaded) if !loaded.title.trim().is_empty() => loaded.title.clone(),
            Some(_) | None => self.plan.id.to_string(),
        };
        let version = self.loaded.as_ref().map_or(0, |loaded| loaded.version);
        let facts = [Span::styled(format!("{} v{version}", frame::heading_id(&self.plan.id)), theme.quiet())];
        frame::heading(theme, frame, parts.heading, &title, &facts);
        let left = area.x + 1 + area.width.saturating_sub(COLUMNS_MAX + 2) / 2;
        let inside = ratatui::layout::Rect { x: left, width: columns(area.width), ..area };
        let message = match (&self.error, &self.loaded) {
            (Some(error), _) => error.line(),
            (None, None) => "loading …".to_owned(),
            (None, Some(loaded)) if loaded.text.is_empty() => {
                "This plan has no text: E in its editor opens it in $EDITOR.".to_owned()
            }
            (None, Some(_)) => String::new(),
        };
        for (row, line) in
            (area.y + 1..area.bottom()).zip(crate::text::wrap(&message, inside.width.into(), 5))
        {
            put(frame.buffer_mut(), (inside.x, row), inside.width, &line, theme.quiet());
        }
        if message.is_empty() {
            self.text.draw(frame.buffer_mut(), inside, self.top, theme, self.marked);
        }
        match &self.find {
            Some(find) if context.note.is_none() => {
                frame::search_footer(theme, frame, parts.footer, find, self.text.found().len(), &TYPING_KEYS);
            }
            Some(_) | None => frame::footer(context, frame, parts.footer, &Self::KEYS),
        }
    }
}

fn columns(width: u16) -> u16 {
    width.saturating_sub(2).min(COLUMNS_MAX)
}

fn rows(context: &Context<'_>) -> usize {
    usize::from(context.area.height)
}
