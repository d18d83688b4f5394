use waypost_core::Draft;
use waypost_testkit::{chain, fan_out, layered, plan_of, task};

use crate::{World, golden};

fn drawn(draft: Draft, size: (u16, u16), keys: &str) -> String {
    let mut world = World::editor(draft, size);
    world.press(keys);
    world.screen()
}

#[test]
fn a_diamond_a_chain_and_long_arrows_are_drawn() {
    let draft = plan_of([
        task("start", &[]),
        task("left", &["start"]),
        task("right", &["start"]),
        task("deep", &["left"]),
        task("end", &["deep", "right", "start"]),
        task("alone", &[]),
    ]);
    golden("graph-diamond-140x30", &drawn(draft, (140, 30), "down"));
}

#[test]
fn a_fan_is_drawn_with_one_line_that_splits() {
    golden("graph-fan-140x30", &drawn(fan_out(6), (140, 30), "down down"));
}

#[test]
fn of_a_large_plan_what_is_near_the_selected_task_is_drawn() {
    let screen = drawn(layered(500, 2, 20, 7), (160, 40), "pagedown pagedown");
    assert!(screen.contains("of 500 tasks, around the selected one"), "{screen}");
    golden("graph-near-160x40", &screen);
}

#[test]
fn a_long_chain_shows_the_part_around_the_selected_task() {
    let screen = drawn(chain(30), (120, 24), "end");
    assert!(screen.contains("▸◌ t29"), "{screen}");
}

#[test]
fn on_a_narrow_terminal_the_graph_takes_the_place_of_the_details() {
    let screen = drawn(chain(5), (80, 24), "g");
    assert!(screen.contains("─▸◌ t1"), "{screen}");
}
