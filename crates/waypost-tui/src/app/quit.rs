//! Quitting: asks about unsaved edits on any screen, and about runs of this process.

use super::{App, Screen};
use crate::dialog::{Button, Choice, Dialog};
use crate::messages::Effect;
use crate::note::{Note, NoteKind};
use crate::plan::PlanKey;
use crate::run_view::{RunReply, Started};
use crate::screen::Event;
use crate::text;

impl App {
    /// Unsaved edits by plan, on all screens except the one at `besides`.
    fn unsaved(&self, besides: usize) -> Vec<(PlanKey, usize)> {
        let others = self.screens.iter().enumerate().filter(|(at, _)| *at != besides);
        let edits = others.filter_map(|(_, screen)| match screen {
            Screen::Editor(editor) => Some((editor.plan().clone(), editor.unsaved())),
            Screen::PlanList(_) | Screen::Run(_) | Screen::History(_) | Screen::Text(_) | Screen::Help(_) => {
                None
            }
        });
        edits.filter(|(_, count)| *count > 0).collect()
    }

    /// The plans with unsaved edits, as texts that can be restored after a crash.
    pub fn unsaved_texts(&self) -> Vec<(PlanKey, String)> {
        let texts = self.screens.iter().filter_map(|screen| match screen {
            Screen::Editor(editor) => Some((editor.plan().clone(), editor.unsaved_text()?)),
            Screen::PlanList(_) | Screen::Run(_) | Screen::History(_) | Screen::Text(_) | Screen::Help(_) => {
                None
            }
        });
        texts.collect()
    }

    /// Quits, or asks first if unsaved edits would be lost. The screen at `asked` has already asked about its own edits.
    pub(super) fn quit(&mut self, asked: usize, effects: &mut Vec<Effect>) {
        let unsaved = self.unsaved(asked);
        if unsaved.is_empty() {
            return self.quit_after_edits(effects);
        }
        let lines = unsaved.iter().map(|(plan, count)| {
            format!("{} of plan {} would be lost.", text::count(*count, "unsaved edit"), plan.id)
        });
        let buttons = vec![
            Button::new('g', "go there", Choice::GoToEdits),
            Button::new('d', "discard and quit", Choice::DiscardAndLeave),
            Button::close('b', "back"),
        ];
        self.dialog = Some(Dialog::new("Quit Waypost", lines.collect(), buttons));
    }

    /// Shows the topmost editor with unsaved edits.
    pub(super) fn go_to_edits(&mut self) -> Vec<Effect> {
        let has_edits = |screen: &Screen| matches!(screen, Screen::Editor(editor) if editor.unsaved() > 0);
        let Some(at) = self.screens.iter().rposition(has_edits) else { return Vec::new() };
        let editor = self.screens.remove(at);
        self.screens.push(editor);
        self.dispatch_top(Event::Shown)
    }

    /// Quits, or asks first if this process runs plans.
    pub(super) fn quit_after_edits(&mut self, effects: &mut Vec<Effect>) {
        if self.runs.is_empty() {
            return effects.push(Effect::Quit);
        }
        let lines = vec![
            format!("This process runs {}.", text::count(self.runs.len(), "plan")),
            "Quitting stops the run; it can be continued later.".to_owned(),
        ];
        let buttons = vec![
            Button::new('w', "wait, then quit", Choice::QuitAfterRuns),
            Button::new('s', "stop and quit", Choice::StopAndLeave),
            Button::close('b', "back"),
        ];
        self.dialog = Some(Dialog::new("Quit Waypost", lines, buttons));
    }

    /// Tracks the runs of this process, and quits after the last one if the user chose to wait for it.
    pub(super) fn track_run(&mut self, reply: &RunReply) -> Vec<Effect> {
        match reply {
            RunReply::Started(plan, Ok(Started::Runs)) => {
                self.runs.insert(plan.clone());
            }
            RunReply::Ended(plan, ended) => {
                self.runs.remove(plan);
                self.show(match ended {
                    Ok(text) => Note { kind: NoteKind::Good, text: text.clone() },
                    Err(error) => error.note(),
                });
                if std::mem::take(&mut self.quit_after_runs) {
                    self.quit_after_runs = !self.runs.is_empty();
                    // No dialog here: the user may be typing, and the next key would answer it.
                    let unsaved: usize =
                        self.unsaved(self.screens.len()).iter().map(|(_, count)| count).sum();
                    match (self.quit_after_runs, unsaved) {
                        (true, _) => {}
                        (false, 0) => return vec![Effect::Quit],
                        (false, count) => {
                            let edits = text::count(count, "unsaved edit");
                            let text = format!("the run has ended; not quitting because of {edits}");
                            self.show(Note { kind: NoteKind::Warning, text });
                        }
                    }
                }
            }
            RunReply::Started(..)
            | RunReply::Snapshot(..)
            | RunReply::TaskDetail(..)
            | RunReply::Commits(..)
            | RunReply::Preview(..)
            | RunReply::Approved(..) => {}
        }
        Vec::new()
    }
}
