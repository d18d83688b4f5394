use waypost_testkit::layered;
use waypost_tui::app::Screen;

use crate::World;

/// Nanoseconds that this thread has been on a processor, as the kernel counts them.
fn cpu_nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What a key may cost where this is built with optimisation, and where it is not.
const CPU_MILLISECONDS_MAX: u64 = if cfg!(debug_assertions) { 60 } else { 10 };

#[test]
fn a_key_in_a_plan_of_ten_thousand_tasks_costs_little() {
    let mut world = World::editor(layered(10_000, 3, 50, 1), (200, 50));
    let Some(before) = cpu_nanoseconds() else {
        eprintln!("this system does not say what a thread costs");
        return;
    };
    let keys = ["down", "pagedown", "up", "end", "home", "down", "down", "pagedown"];
    let rounds = 10;
    for _ in 0..rounds {
        for key in keys {
            world.press(key);
            world.buffer();
        }
    }
    let each = (cpu_nanoseconds().unwrap() - before) / (rounds * keys.len() as u64);
    eprintln!("{} µs of CPU per key", each / 1_000);
    assert!(each < CPU_MILLISECONDS_MAX * 1_000_000, "{} µs per key", each / 1_000);
}

#[test]
fn a_large_plan_is_checked_when_nobody_types() {
    let mut world = World::editor(layered(3_000, 2, 9, 1), (80, 24));
    let is_unchecked = |world: &World| match world.app.top() {
        Some(Screen::Editor(editor)) => editor.needs_tick(),
        _ => false,
    };
    world.press("b").type_text("t2999").press("tab enter");
    assert!(is_unchecked(&world));
    world.send(waypost_tui::messages::Message::Tick(crate::now()));
    assert!(!is_unchecked(&world));
}

#[test]
fn no_other_key_reads_ten_thousand_tasks_either() {
    let mut world = World::editor(layered(10_000, 3, 50, 1), (200, 50));
    if cpu_nanoseconds().is_none() {
        eprintln!("this system does not say what a thread costs");
        return;
    }
    // A search and a list of all tasks read them once, when a letter is typed or the list is opened.
    for (what, before, keys) in [
        ("from match to match", "/ t 9 9 enter", &["n", "n", "p"][..]),
        ("along the dependencies", "home", &["d", "d", "u"]),
        ("the whole screen", "home f", &["down", "pagedown", "end"]),
        ("a list of all tasks", "esc home = 5", &["down", "pagedown", "up"]),
        ("the list of fields", "esc =", &["down", "up", "down"]),
        ("the palette", "esc ctrl+k", &["down", "t", "backspace"]),
    ] {
        world.press(before);
        let begun = cpu_nanoseconds().unwrap();
        let rounds = 10;
        for _ in 0..rounds {
            for key in keys {
                world.press(key);
                world.buffer();
            }
        }
        let each = (cpu_nanoseconds().unwrap() - begun) / (rounds * keys.len() as u64);
        eprintln!("{what}: {} µs of CPU per key", each / 1_000);
        assert!(each < CPU_MILLISECONDS_MAX * 1_000_000, "{what}: {} µs per key", each / 1_000);
    }
}
