use std::sync::Arc;

use waypost_core::{Command, Counts, Draft, Phase, PlanId};
use waypost_service::{PlanStatus, Service};
use waypost_store::{ArchiveFilter, MemoryStore, Page, PlanStore, PlanSummary, Sort};
use waypost_text::{PlanGroup, StatusSign};
use waypost_tui::app::Screen;
use waypost_tui::messages::{Effect, Message, Reply};
use waypost_tui::note::{ErrorMessage, NoteKind};
use waypost_tui::plan::ListedPlan;
use waypost_tui::plan_list::{PLANS_LOADED_MAX, PLANS_PAGE_SIZE};

use waypost_tui::run_view::{PlanAction, RunEffect};

use crate::{World, example, golden, golden_in_all_sizes, now, settings};

fn head(
    id: &str,
    title: &str,
    status: &str,
    phase: Phase,
    (done, failed, total): (u32, u32, u32),
    minutes: u64,
) -> PlanSummary {
    let at = Some(now().minus_seconds(minutes * 60));
    PlanSummary {
        id: PlanId::new(id).unwrap(),
        version: 3,
        title: title.to_owned(),
        status: status.to_owned(),
        phase,
        owner: String::new(),
        queue: String::new(),
        created_by: None,
        created_at: at,
        updated_at: at,
        archived: false,
        awaits_approval: false,
        counts: Counts { total, done, failed, ..Counts::default() },
        asking: 0,
        goals: total,
        atomic: 0,
        urgency: 0,
    }
}

/// A plan_list whose stores answer only when the test says.
fn silent(size: (u16, u16)) -> (World, Vec<Effect>) {
    let (app, effects) =
        waypost_tui::app::App::new(settings(), Screen::PlanList(Box::default()), now(), size);
    let mut world = World::plan_list(Vec::new(), size);
    world.app = app;
    (world, effects)
}

/// Plans with the status that their summaries tell.
fn listed(summaries: Vec<PlanSummary>) -> Vec<ListedPlan> {
    let service = Service::new(Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))), Arc::default());
    let statuses = service.plan_statuses().unwrap();
    let list = |summary| ListedPlan {
        status: statuses.of_summary(&summary),
        summary,
        workers: Vec::new(),
        has_text: false,
    };
    summaries.into_iter().map(list).collect()
}

fn answer(effect: &Effect, items: Vec<PlanSummary>, next: Option<&str>, warnings: Vec<String>) -> Message {
    let Effect::LoadPlanPage { store, ticket, .. } = effect else { panic!("{effect:?}") };
    let total = items.len() as u64;
    let items = listed(items);
    let page = Page { items, total, next: next.map(str::to_owned), ..Page::default() };
    Message::Reply(Reply::PlanPage {
        store: *store,
        ticket: *ticket,
        heads: Ok(Box::new(Page { warnings, ..page })),
    })
}

#[test]
fn the_list_shows_scope_name_title_with_status_phase_version_progress_and_age() {
    let (mut world, effects) = silent((80, 24));
    let repo = vec![
        head("auth-jwt", "Refactor the auth module to use JWT", "in review", Phase::Active, (3, 0, 12), 0),
        head("release-2", "Ship release 2.0", "", Phase::AwaitingApproval, (0, 0, 4), 7),
        head(
            "db-move",
            "Move the database to PostgreSQL 18",
            "blocked on ops",
            Phase::Failed,
            (8, 1, 20),
            200,
        ),
        head("jp", "日本語のタイトル 🚀 for the whole team", "進行中", Phase::Paused, (1, 0, 2), 60 * 26),
        head("done", "Write the paper", "", Phase::Completed, (9, 0, 9), 60 * 24 * 40),
    ];
    let user = vec![head("kq3x9", "Read more books", "someday", Phase::Draft, (0, 0, 0), 15)];
    world.send(answer(&effects[0], repo, None, vec!["plan-x: line 3: not JSON".to_owned()]));
    world.send(answer(&effects[1], user, None, Vec::new()));
    golden_in_all_sizes("browser", world);
}

#[test]
fn an_empty_store_says_what_to_do() {
    let mut world = World::plan_list(Vec::new(), (80, 24));
    assert!(world.screen().contains("no plans yet: N creates one"), "{}", world.screen());
}

#[test]
fn a_store_that_does_not_answer_is_told_and_the_other_is_listed() {
    let (mut world, effects) = silent((80, 24));
    let Effect::LoadPlanPage { ticket, .. } = &effects[0] else { panic!() };
    let error = ErrorMessage { what: "the store is locked".to_owned(), hint: "try again".to_owned() };
    world.send(Message::Reply(Reply::PlanPage { store: 0, ticket: *ticket, heads: Err(error) }));
    world.send(answer(
        &effects[1],
        vec![head("b", "Books", "", Phase::Draft, (0, 0, 1), 0)],
        None,
        Vec::new(),
    ));
    assert_eq!(world.lines_with("✗ the store is locked; try again").len(), 1, "{}", world.screen());
    assert_eq!(world.lines_with("✎ draft").len(), 1);
}

#[test]
fn typing_filters_and_the_last_answer_counts() {
    let plans =
        vec![("alpha", Draft::new("Alpha")), ("beta", Draft::new("Beta")), ("gamma", Draft::new("Gamma"))];
    let mut world = World::plan_list(plans, (80, 24));
    assert_eq!(world.lines_with("✎ draft").len(), 3);
    world.press("/").type_text("BE");
    assert_eq!(world.lines_with("✎ draft").len(), 1, "{}", world.screen());
    world.press("enter enter");
    assert!(world.screen().contains("Beta"), "the plan is open:\n{}", world.screen());
    world.press("esc");
    world.press("esc");
    assert_eq!(world.lines_with("✎ draft").len(), 3, "Esc takes the filter away:\n{}", world.screen());
    assert!(world.undone.is_empty());
    world.press("esc");
    assert_eq!(world.undone, [Effect::Quit]);
}

#[test]
fn a_late_answer_to_an_older_question_is_not_shown() {
    let (mut world, effects) = silent((80, 24));
    let effects_now = waypost_tui::app::update(&mut world.app, Message::Key(crate::key("f5")));
    world.send(answer(
        &effects[0],
        vec![head("old", "Old", "", Phase::Draft, (0, 0, 0), 0)],
        None,
        Vec::new(),
    ));
    assert!(!world.screen().contains("Old"));
    world.send(answer(
        &effects_now[0],
        vec![head("new", "New", "", Phase::Draft, (0, 0, 0), 0)],
        None,
        Vec::new(),
    ));
    world.send(answer(&effects_now[1], Vec::new(), None, Vec::new()));
    assert!(world.screen().contains("New"), "{}", world.screen());
}

#[test]
fn no_more_is_read_than_is_looked_at_and_never_more_than_the_bound() {
    let (mut world, effects) = silent((80, 24));
    let Effect::LoadPlanPage { query, .. } = &effects[0] else { panic!() };
    assert_eq!(
        (query.limit, query.shelf, query.sort),
        (PLANS_PAGE_SIZE, ArchiveFilter::Current, Sort::Attention)
    );
    world.send(answer(&effects[1], Vec::new(), None, Vec::new()));
    let page = |from: usize| -> Vec<PlanSummary> {
        (from..from + PLANS_PAGE_SIZE)
            .map(|n| head(&format!("p{n:06}"), "Plan", "", Phase::Draft, (0, 0, 1), n as u64))
            .collect()
    };
    let mut held = 0;
    let mut asked = vec![effects[0].clone()];
    let mut pages = 0;
    while let Some(effect) = asked.pop() {
        let message = answer(&effect, page(held), Some("more"), Vec::new());
        held += PLANS_PAGE_SIZE;
        pages += 1;
        asked = waypost_tui::app::update(&mut world.app, message);
        assert!(asked.is_empty(), "nobody has come near the end yet");
        asked = waypost_tui::app::update(&mut world.app, Message::Key(crate::key("end")));
    }
    assert_eq!(pages, PLANS_LOADED_MAX / PLANS_PAGE_SIZE);
}

#[test]
fn what_another_process_writes_appears_by_itself_and_the_selection_stays() {
    let mut world = World::plan_list(vec![("plan-1", example()), ("plan-2", Draft::new("Second"))], (80, 24));
    world.press("end");
    let selected = |world: &World| match world.app.top() {
        Some(Screen::PlanList(plan_list)) => plan_list.selected().map(|plan| plan.id.to_string()),
        _ => None,
    };
    let before = selected(&world);
    assert!(before.is_some());
    let changes = waypost_core::PlanChanges { status: Some("half way".to_owned()), ..Default::default() };
    let version = world.somebody_writes(vec![Command::RevisePlan(Box::new(changes))]);
    world.send(Message::Written { store: 0, plans: vec![(PlanId::new("plan-1").unwrap(), version)] });
    assert_eq!(world.lines_with("[half way]").len(), 1, "{}", world.screen());
    assert_eq!(selected(&world), before);
}

#[test]
fn who_writes_without_pause_is_not_asked_after_without_pause() {
    let (mut world, _) = silent((80, 24));
    let written = || Message::Written { store: 0, plans: vec![(PlanId::new("a").unwrap(), 2)] };
    assert!(
        waypost_tui::app::update(&mut world.app, written()).is_empty(),
        "a question is on its way already"
    );
    assert!(waypost_tui::app::update(&mut world.app, written()).is_empty());
}

#[test]
fn the_authors_status_is_set_at_the_version_that_was_seen() {
    let mut world = World::plan_list(vec![("plan-1", example())], (120, 24));
    world.press("i ctrl+u").type_text("ready to merge").press("enter");
    assert_eq!(world.stored().spec.status, "ready to merge");
    assert_eq!(world.lines_with("[ready to merge]").len(), 1, "{}", world.screen());
    assert!(world.app.note.as_ref().is_some_and(|(note, _)| note.kind == NoteKind::Good));
}

#[test]
fn a_new_plan_is_asked_for_with_its_title() {
    let mut world = World::plan_list(Vec::new(), (80, 24));
    world.press("N").type_text("Plant a tree").press("enter");
    assert_eq!(world.undone, [Effect::CreatePlan { store: 0, title: "Plant a tree".to_owned() }]);
}

#[test]
fn a_click_selects_a_second_one_opens_and_the_wheel_scrolls() {
    let plans = (0..40).map(|n| (format!("p{n:02}"), Draft::new(format!("Plan {n}")))).collect::<Vec<_>>();
    let plans = plans.iter().map(|(id, draft)| (id.as_str(), draft.clone())).collect();
    let mut world = World::plan_list(plans, (80, 24));
    world.press("o").type_text("6");
    world.click(10, 5);
    let Some(Screen::PlanList(plan_list)) = world.app.top() else { panic!() };
    assert_eq!(plan_list.selected().unwrap().id.as_str(), "p03");
    world.click(10, 5);
    assert!(matches!(world.app.top(), Some(Screen::Editor(_))));
    world.press("esc");
    let footer = world.screen().lines().last().unwrap().to_owned();
    world.click(footer.find("a review").unwrap() as u16, 23);
    assert!(matches!(world.app.top(), Some(Screen::Run(_))), "the footer can be clicked: {footer}");
}

#[test]
fn while_the_filter_is_typed_the_footer_names_the_keys_that_are_no_text() {
    let mut world = World::plan_list(vec![("plan-1", example())], (80, 24));
    world.press("/").type_text("ref");
    let shown = world.screen();
    assert!(shown.contains("Enter apply") && shown.contains("Esc clear"), "{shown}");
    assert!(!shown.contains("Enter open") && !shown.contains("N new"), "{shown}");
    world.press("enter");
    assert!(world.screen().contains("Enter open"), "{}", world.screen());
}

/// A listed plan with a status that its summary alone does not tell.
fn with_status(
    head: PlanSummary,
    sign: StatusSign,
    label: &str,
    detail: &str,
    workers: &[&str],
) -> ListedPlan {
    let needs_you = sign.plan_group().0 == PlanGroup::NeedsYou;
    let status = PlanStatus { sign, label: label.to_owned(), detail: detail.to_owned(), needs_you };
    let workers = workers.iter().map(|&name| name.to_owned()).collect();
    ListedPlan { summary: head, status, workers, has_text: false }
}

#[test]
fn what_needs_the_user_comes_first_and_who_works_is_named() {
    let (mut world, effects) = silent((80, 24));
    let of = |id: &str, title: &str| head(id, title, "", Phase::Active, (1, 0, 4), 5);
    let plans = vec![
        with_status(
            of("build", "Build the site"),
            StatusSign::Running,
            "running",
            "1 running: Compile, 40 %",
            &["box:17", "agent:robin"],
        ),
        with_status(
            of("idle", "Nightly"),
            StatusSign::Idle,
            "idle: no worker",
            "no worker of queue default",
            &[],
        ),
        with_status(
            of("sign", "Contract"),
            StatusSign::Person,
            "your task",
            "Sign the contract on both pages, and send it back by Friday",
            &[],
        ),
        // Who runs its other tasks is not who asks.
        with_status(of("ask", "Rename"), StatusSign::Asking, "2 questions", "Entry or Record?", &["box:9"]),
    ];
    let Effect::LoadPlanPage { store, ticket, .. } = &effects[0] else { panic!() };
    let page = Page { total: 4, items: plans, next: None, warnings: Vec::new() };
    world.send(Message::Reply(Reply::PlanPage { store: *store, ticket: *ticket, heads: Ok(Box::new(page)) }));
    world.send(answer(&effects[1], Vec::new(), None, Vec::new()));
    let order: Vec<String> = world
        .screen()
        .lines()
        .skip(2)
        .take(4)
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    assert_eq!(order, ["?", "@", "◐", "…"], "{}", world.screen());
    assert!(world.screen().contains("2 need you · 1 running · 4 plans"), "{}", world.screen());
    world.press("p");
    assert!(world.screen().contains("Sign the contract on both pages, and send it back by Friday"));
    world.press("down");
    assert!(world.screen().contains("worked on by box:17, agent:robin"), "{}", world.screen());
    golden_in_all_sizes("plans-states", world);
}

#[test]
fn a_title_gets_the_room_that_nothing_else_needs() {
    let (mut world, effects) = silent((150, 24));
    let title = "Move the ledger of every customer to the new schema, and read it";
    let detail = "Shall the old tables be kept for a year, or dropped once the new ones were read back?";
    let with_queue =
        PlanSummary { queue: "q".to_owned(), ..head("a", title, "", Phase::Draft, (0, 0, 1), 1) };
    let plans = vec![
        with_status(with_queue, StatusSign::Draft, "draft", "", &[]),
        with_status(
            head("b", "Short", "", Phase::Active, (0, 0, 1), 1),
            StatusSign::Asking,
            "1 question",
            detail,
            &[],
        ),
    ];
    let Effect::LoadPlanPage { store, ticket, .. } = &effects[0] else { panic!() };
    let page = Page { total: 2, items: plans, next: None, warnings: Vec::new() };
    world.send(Message::Reply(Reply::PlanPage { store: *store, ticket: *ticket, heads: Ok(Box::new(page)) }));
    world.send(answer(&effects[1], Vec::new(), None, Vec::new()));
    let screen = world.screen();
    assert!(screen.contains(title), "nothing goes on in that plan:\n{screen}");
    let row = screen.lines().find(|line| line.contains("1 question")).unwrap();
    assert!(row.contains("Short") && row.contains("Shall the old tables be kept"), "{screen}");
}

#[test]
fn a_plan_is_reviewed_for_approval_from_the_list() {
    let mut world = World::plan_list(vec![("plan-1", example())], (80, 24));
    world.press("a");
    assert!(matches!(world.app.top(), Some(Screen::Run(_))), "{}", world.screen());
    let preview = |effect: &Effect| matches!(effect, Effect::Run(RunEffect::Preview(_)));
    assert!(world.undone.iter().any(preview), "{:?}", world.undone);
}

#[test]
fn the_status_queue_and_owner_of_a_plan_are_chosen_from_lists() {
    let mut owned = example();
    owned.spec.owner = "robin".to_owned();
    let mut world = World::plan_list(vec![("plan-1", example()), ("plan-2", owned)], (80, 24));
    world.press("/").type_text("plan-1").press("enter = 3").type_text("night").press("enter");
    assert_eq!(world.stored().spec.queue, "night");
    world.press("esc = 4");
    assert!(world.screen().contains("robin"), "{}", world.screen());
    world.press("esc = 1");
    golden("plan-status-80x24", &world.screen());
    world.press("enter");
    assert!(world.undone.is_empty(), "Enter by mistake sets nothing");
    world.press("up enter");
    let archived =
        |effect: &Effect| matches!(effect, Effect::Run(RunEffect::Write { action: PlanAction::Archive, .. }));
    assert!(world.undone.iter().any(archived), "{:?}", world.undone);
}

#[test]
fn a_list_in_which_something_runs_is_read_again_as_time_goes_by() {
    let (mut world, effects) = silent((80, 24));
    world.send(answer(&effects[0], vec![head("a", "A", "", Phase::Active, (0, 0, 1), 0)], None, Vec::new()));
    world.send(answer(&effects[1], Vec::new(), None, Vec::new()));
    let soon = waypost_tui::app::update(&mut world.app, Message::Tick(now().plus_seconds(1)));
    assert!(soon.is_empty(), "{soon:?}");
    let later = waypost_tui::app::update(&mut world.app, Message::Tick(now().plus_seconds(6)));
    assert_eq!(later.len(), 2, "{later:?}");
}
