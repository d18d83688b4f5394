//! The palette: a few words lead to a plan, a task or a command.

use waypost_core::PlanId;
use waypost_text::StatusSign;
use waypost_tui::app::Screen;
use waypost_tui::messages::{Effect, Message, Reply};
use waypost_tui::palette::{SearchHit, SearchRequest};
use waypost_tui::plan::PlanKey;

use crate::{World, example, golden_in_all_sizes};

fn hit(plan: &str, task: Option<&str>, title: &str) -> SearchHit {
    let plan = PlanKey { store: 0, id: PlanId::new(plan).unwrap() };
    let task = task.map(waypost_testkit::id);
    SearchHit { plan, task, title: title.to_owned(), sign: StatusSign::Ready, is_draft: true }
}

/// The last search that was asked for.
fn search(world: &World) -> SearchRequest {
    let mut searches = world.undone.iter().filter_map(|effect| match effect {
        Effect::Search(request) => Some(request.clone()),
        _ => None,
    });
    searches.next_back().expect("a search was asked for")
}

fn found(world: &mut World, hits: Vec<SearchHit>) {
    let ticket = search(world).ticket;
    world.send(Message::Reply(Reply::Found(ticket, hits)));
}

#[test]
fn words_lead_to_a_task_of_the_plan() {
    let mut world = World::editor(example(), (80, 24));
    world.press("ctrl+k");
    let request = search(&world);
    assert_eq!(
        (request.text.as_str(), request.plan.map(|plan| plan.id.to_string())),
        ("", Some("plan-1".into()))
    );
    world.type_text("valid");
    assert_eq!(search(&world).text, "valid");
    found(&mut world, vec![hit("plan-1", Some("t3b"), "Validate a token")]);
    world.press("enter");
    let Some(Screen::Editor(editor)) = world.app.top() else { panic!("{}", world.screen()) };
    assert_eq!(editor.selected_task().map(ToString::to_string).as_deref(), Some("t3b"));
    assert_eq!(world.app.screens.len(), 1, "it is the editor that was open");
}

#[test]
fn words_lead_to_a_plan_and_to_a_command() {
    let mut world = World::plan_list(vec![("plan-1", example())], (80, 24));
    world.press("ctrl+k").type_text("jwt");
    found(&mut world, vec![hit("plan-1", None, "Refactor the auth module to use JWT")]);
    let mut copy = World::plan_list(vec![("plan-1", example())], (80, 24));
    copy.press("ctrl+k");
    found(&mut copy, vec![hit("plan-1", None, "Refactor the auth module to use JWT")]);
    golden_in_all_sizes("palette", copy);
    world.press("enter");
    assert!(matches!(world.app.top(), Some(Screen::Editor(_))), "{}", world.screen());
    world.press("ctrl+k").type_text("versions of the plan");
    found(&mut world, Vec::new());
    world.press("enter");
    assert!(matches!(world.app.top(), Some(Screen::History(_))), "{}", world.screen());
}

#[test]
fn a_reply_to_an_earlier_search_is_not_shown() {
    let mut world = World::plan_list(vec![("plan-1", example())], (80, 24));
    world.press("ctrl+k");
    let old = search(&world).ticket;
    world.type_text("new");
    world.send(Message::Reply(Reply::Found(old, vec![hit("plan-1", None, "newer than new")])));
    assert!(!world.screen().contains("newer than new"), "{}", world.screen());
    world.press("esc");
    assert!(!world.screen().contains("Go to a plan"), "{}", world.screen());
}

#[test]
fn a_text_that_cannot_be_found_says_so() {
    let mut world = World::plan_list(vec![("plan-1", example())], (80, 24));
    world.press("ctrl+k").type_text("zzzz");
    found(&mut world, Vec::new());
    assert!(world.screen().contains("nothing matches"), "{}", world.screen());
    world.press("enter");
    assert!(world.screen().contains("nothing matches"), "Enter chooses nothing: {}", world.screen());
}

#[test]
fn a_long_id_leaves_room_for_the_title() {
    let mut world = World::editor(example(), (80, 24));
    world.press("ctrl+k");
    let (plan, task) = ("plan-".repeat(24), "long-id-".repeat(31));
    found(&mut world, vec![hit(&plan, Some(&task), "Read the module")]);
    assert!(world.screen().contains("Read the module"), "{}", world.screen());
}
