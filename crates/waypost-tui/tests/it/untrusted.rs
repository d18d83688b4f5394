use waypost_core::Draft;
use waypost_testkit::{plan_of, task};
use waypost_text::is_unsafe_char;

use crate::{World, golden_in_all_sizes};

/// What a model could write into a plan to steer a terminal or to show one thing and mean another.
fn nasty() -> Draft {
    let texts = [
        "clear \u{1b}[2J\u{1b}[H the screen, title \u{1b}]0;owned\u{7}, \u{9b}31m red",
        "back\u{8}\u{8}\u{8}\u{8}space, return\rover, null\0, delete\u{7f}",
        "wide 漢字かな交じり文 한국어 and 👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇪🇺 e\u{301} combining",
        "right to left: שלום עולם مرحبا بالعالم and \u{202e}desrever\u{202c} text",
        "zero\u{200b}width, tag\u{e0041}s, soft\u{ad}hyphen, bom\u{feff}",
        "lines\nin\r\none\u{2028}text\twith tabs",
        "Zalgo Z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}a\u{300}\u{301}\u{302}",
    ];
    let mut draft = plan_of(texts.iter().enumerate().map(|(n, text)| {
        let mut spec = task(&format!("t{n}"), &[]);
        spec.description = (*text).to_owned();
        spec.notes = (*text).to_owned();
        spec
    }));
    draft.spec.title = "evil \u{1b}[31m title \u{202e}txt.exe".to_owned();
    draft.spec.status = "\u{1b}[5mblink".to_owned();
    draft
}

fn check_cells(world: &mut World) {
    let screen = world.screen();
    for cell in &world.buffer().content {
        assert!(!cell.symbol().contains(is_unsafe_char), "{:?}\n{screen}", cell.symbol());
    }
}

#[test]
fn nothing_in_a_plan_reaches_the_terminal_raw() {
    let mut world = World::editor(nasty(), (80, 24));
    for _ in 0..7 {
        check_cells(&mut world);
        world.press("enter");
        check_cells(&mut world);
        world.press("tab");
        check_cells(&mut world);
        world.press("esc b");
        check_cells(&mut world);
        world.press("esc down");
    }
    world.press("end D");
    check_cells(&mut world);
    let mut world = World::plan_list(vec![("evil", nasty())], (80, 24));
    check_cells(&mut world);
    world.press("i");
    check_cells(&mut world);
}

#[test]
fn wide_and_strange_text_keeps_the_columns() {
    let mut world = World::editor(nasty(), (80, 24));
    world.press("down down");
    for (columns, rows) in crate::SIZES {
        world.resize(columns, rows);
        // The edge of the list at the right stands in the same column in every row.
        let buffer = world.buffer();
        let right = if columns >= 110 { columns * 11 / 20 - 1 } else { columns - 1 };
        for y in 2..8 {
            assert_eq!(buffer[(right, y)].symbol(), "│", "row {y} at {columns}×{rows}");
        }
    }
    golden_in_all_sizes("untrusted", world);
}
