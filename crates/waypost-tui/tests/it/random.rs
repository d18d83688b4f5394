use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use waypost_testkit::{SeededRng, layered};
use waypost_tui::messages::Message;

use crate::{World, example};

fn random_key(dice: &mut SeededRng) -> KeyEvent {
    const CODES: &[KeyCode] = &[
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::F(1),
        KeyCode::Char(' '),
    ];
    const TYPED: &[char] = &[
        'a', 'b', 'd', 'e', 'f', 'g', 'k', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'x', 'z', '/', '?', '<',
        '>', '1', '漢', '👩', '\u{301}', '\u{200d}', 'ש',
    ];
    let code = if dice.chance(45) { *dice.pick(CODES) } else { KeyCode::Char(*dice.pick(TYPED)) };
    let modifiers = match dice.below(12) {
        0 => KeyModifiers::CONTROL,
        1 => KeyModifiers::ALT,
        2 => KeyModifiers::SHIFT,
        _ => KeyModifiers::NONE,
    };
    KeyEvent::new(code, modifiers)
}

#[test]
fn random_keys_at_random_sizes_neither_panic_nor_draw_outside() {
    for seed in 0..16 {
        let mut dice = SeededRng::new(seed);
        let mut world = match seed % 4 {
            0 => World::plan_list(vec![("plan-1", example()), ("plan-2", layered(60, 2, 9, seed))], (80, 24)),
            1 => World::editor(layered(70, 3, 12, seed), (80, 24)),
            2 => World::editor(waypost_core::Draft::new("empty"), (80, 24)),
            _ => World::editor(example(), (80, 24)),
        };
        for step in 0..250 {
            match dice.below(20) {
                0 => {
                    let (columns, rows) = (1 + dice.below(220) as u16, 1 + dice.below(60) as u16);
                    world.resize(columns, rows);
                }
                1 => {
                    let kind = *dice.pick(&[
                        MouseEventKind::Down(MouseButton::Left),
                        MouseEventKind::ScrollDown,
                        MouseEventKind::ScrollUp,
                    ]);
                    let (column, row) = (dice.below(220) as u16, dice.below(60) as u16);
                    world.mouse(kind, column, row);
                }
                2 => world.send(Message::Paste("pasted\r\n\u{1b}[31m漢字\ttext".to_owned())),
                3 => world.send(Message::Tick(crate::now().plus_seconds(step))),
                _ => world.send(Message::Key(random_key(&mut dice))),
            }
            // The backend panics for a cell outside of it.
            world.buffer();
        }
    }
}
