//! The runs of this process, as the whole program minds them: it does not end without a word about them.

use super::{App, Effect, Note, NoteKind};
use crate::dialog::{Button, Choice, Dialog};
use crate::run::{RunAnswer, Started};
use crate::text;

impl App {
    /// Leaves, unless this process runs something: then a person says what becomes of it.
    pub(super) fn quit(&mut self, effects: &mut Vec<Effect>) {
        if self.runs.is_empty() {
            return effects.push(Effect::Quit);
        }
        let lines = vec![
            format!("This process runs {}.", text::count(self.runs.len(), "plan")),
            "It ends with this program; the plan can always go on later.".to_owned(),
        ];
        let buttons = vec![
            Button::new('w', "wait, then leave", Choice::LeaveAfterwards),
            Button::new('s', "stop it and leave", Choice::StopAndLeave),
            Button::close('b', "back"),
        ];
        self.dialog = Some(Dialog::new("Leave Waypost", lines, buttons));
    }

    /// Keeps account of the runs of this process.
    pub(super) fn heard_of_run(&mut self, answer: &RunAnswer) -> Vec<Effect> {
        match answer {
            RunAnswer::Started(plan, Ok(Started::Runs)) => {
                self.runs.insert(plan.clone());
            }
            RunAnswer::Ended(plan, ended) => {
                self.runs.remove(plan);
                self.show(match ended {
                    Ok(text) => Note { kind: NoteKind::Good, text: text.clone() },
                    Err(trouble) => trouble.note(),
                });
                if self.leaving && self.runs.is_empty() {
                    return vec![Effect::Quit];
                }
            }
            RunAnswer::Started(..)
            | RunAnswer::Stands(..)
            | RunAnswer::Closer(..)
            | RunAnswer::Preview(..)
            | RunAnswer::Approved(..) => {}
        }
        Vec::new()
    }
}
