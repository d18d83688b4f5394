//! The run view and the history: answers and keys in, effects and screen text out.

use std::collections::BTreeMap;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use waypost_config::{Config, Definitions, Layer, Origin};
use waypost_core::{
    Actor, ApprovalKind, ApprovedWork, Command, EffectiveStatus, Json, Outcome, Plan, PlanId, Proof,
    QuestionRequest, StartRefusal, StartRefusalReason, Task, TaskChanges, Timestamp, Work,
};
use waypost_operation::{CloneTag, OperationSet, ParsedRecord, Stamp, derive, merge, merge_request, share};
use waypost_run::Control;
use waypost_service::{AnswerChoice, MergeQuestion, RestorePreview, Seen, Sign, plan_preview};
use waypost_testkit::{id, plan_of, task};
use waypost_text::StatusSign;
use waypost_tui::app::{App, Screen, render, update};
use waypost_tui::history::{Compared, History, HistoryEffect, HistoryReply, Version, Versions};
use waypost_tui::keys::Keys;
use waypost_tui::messages::{Effect, Message, Purpose, Reply};
use waypost_tui::note::ErrorMessage;
use waypost_tui::plan::PlanKey;
use waypost_tui::run_view::{
    Intent, PARTICULAR_BYTES_MAX, PREVIEW_BYTES_MAX, PREVIEW_TASKS_MAX, PlanAction, PlanSnapshot, Preview,
    PreviewedTask, ROWS_MAX, RunEffect, RunReply, RunView, Started, TaskDetail,
};
use waypost_tui::screen::Settings;
use waypost_tui::theme::Theme;

use crate::{SIZES, golden};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros((1_800_000_000 + seconds) * 1_000_000)
}

fn key() -> PlanKey {
    PlanKey { store: 0, id: PlanId::new("demo").unwrap() }
}

fn settings(dry_run: bool) -> Settings {
    let stores = vec!["repo".to_owned()];
    Settings { stores, dry_run, keys: Keys::default(), theme: Theme::Colours }
}

/// A program with one screen.
fn program(screen: Screen, (columns, rows): (u16, u16)) -> (App, Vec<Effect>) {
    App::new(settings(false), screen, at(100), (columns, rows))
}

fn watching(size: (u16, u16)) -> App {
    program(Screen::Run(Box::new(RunView::new(key(), Intent::Watch))), size).0
}

fn text(app: &App) -> String {
    let mut terminal = Terminal::new(TestBackend::new(app.size.width, app.size.height)).unwrap();
    terminal.draw(|frame| render(app, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| {
        let (mut line, mut x) = (String::new(), 0);
        while x < buffer.area.width {
            // The cell behind a wide character is not one of its own.
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += waypost_tui::text::width(symbol).max(1) as u16;
        }
        line.trim_end().to_owned()
    };
    (0..buffer.area.height).map(|y| row(y) + "\n").collect()
}

/// Compares the screen with its golden file.
fn check(app: &App, name: &str) {
    golden(&format!("{name}-{}x{}", app.size.width, app.size.height), &text(app));
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for character in keys.chars() {
        let code = match character {
            '⏎' => KeyCode::Enter,
            '⎋' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            '⇥' => KeyCode::Tab,
            other => KeyCode::Char(other),
        };
        effects.extend(press_key(app, code));
    }
    effects
}

/// Presses a key once the screen was drawn.
fn press_key(app: &mut App, code: KeyCode) -> Vec<Effect> {
    app.note_shown();
    update(app, Message::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn reply(app: &mut App, answer: RunReply) -> Vec<Effect> {
    update(app, Message::Reply(Reply::Run(answer)))
}

fn history_reply(app: &mut App, answer: HistoryReply) -> Vec<Effect> {
    update(app, Message::Reply(Reply::History(answer)))
}

fn run_effects(effects: Vec<Effect>) -> Vec<RunEffect> {
    let run = |effect| match effect {
        Effect::Run(effect) => Some(effect),
        _ => None,
    };
    effects.into_iter().filter_map(run).collect()
}

/// What is written to the plan.
fn written(effects: Vec<Effect>) -> Vec<PlanAction> {
    let action = |effect| match effect {
        RunEffect::Write { action, .. } => Some(action),
        _ => None,
    };
    run_effects(effects).into_iter().filter_map(action).collect()
}

/// A plan that some of its commands were written to, each ten seconds after the one before.
struct Story {
    plan: Plan,
    now: i64,
}

impl Story {
    fn new(by: &Actor) -> Self {
        let mut story = Self { plan: Plan::blank(key().id), now: 0 };
        let mut tasks = vec![
            task("read", &[]),
            task("edit-a", &["read"]),
            task("edit-計画", &["read"]),
            task("breaks", &["read"]),
            task("needs-breaks", &["breaks"]),
            task("choose", &["read"]),
            task("verify", &["edit-a", "edit-計画", "choose"]),
        ];
        for spec in &mut tasks {
            let inputs = Json::empty_object();
            spec.work = Some(Box::new(Work { executor: "sh".to_owned(), inputs, shape: None }));
        }
        tasks[1].description = "Rename Item to Entry in the parser 🎯, with all of its tests".to_owned();
        let mut draft = plan_of(tasks);
        draft.spec.title = "Rename a type everywhere".to_owned();
        story.write(by, Command::Create { draft: draft.into(), approval_required: None });
        story
    }

    fn write(&mut self, by: &Actor, command: Command) {
        let events = self.plan.decide(by, at(self.now), &command).unwrap();
        self.plan.advance(&events, at(self.now));
        self.now += 10;
    }

    fn start(&mut self, name: &str) {
        let worker = Actor::person("runner");
        self.write(&worker, Command::StartTask { task: id(name), worker: "here:1".to_owned() });
    }

    fn finish(&mut self, name: &str, outcome: Outcome) {
        let worker = Actor::person("runner");
        self.write(&worker, Command::FinishTask { task: id(name), attempt: Some(1), outcome, retry: None });
    }

    fn stands(&self) -> RunReply {
        let snapshot = PlanSnapshot::of(&self.plan, at(self.now), &|_, status| status.sign());
        RunReply::Snapshot(key(), Ok(Box::new(snapshot)))
    }
}

#[test]
fn the_summary_says_who_approved_the_plan_and_why_a_worker_refuses_it() {
    let mut story = Story::new(&Actor::agent("planner"));
    let work = ApprovedWork {
        digest: format!("sha256:{}", "3f".repeat(32)),
        definitions: Json::empty_object(),
        proof: Proof::Presence,
        via: "terminal".to_owned(),
        kind: ApprovalKind::Explicit,
        attestation: None,
        gates: Vec::new(),
        as_of: None,
    };
    let approve = Command::Approve { version: 1, note: String::new(), work: Some(Box::new(work)) };
    story.write(&Actor::person("ada"), approve);
    let mut app = watching((140, 30));
    reply(&mut app, story.stands());
    let approved = "approved: by person:ada, proof: presence (terminal), at 2027-01-15 08:00:10";
    assert!(text(&app).contains(approved), "{}", text(&app));
    let refusal = StartRefusal {
        worker: "here:1".to_owned(),
        reason: StartRefusalReason::StoreChanged,
        digest: String::new(),
        differences: vec!["a.db".to_owned()],
    };
    story.write(&Actor::worker("here:1"), Command::RefuseStart(Box::new(refusal)));
    reply(&mut app, story.stands());
    let refused = "a.db is not the store that this account used there (if you replaced it, run `waypost trust` in a shell)";
    assert!(text(&app).contains(refused), "{}", text(&app));
}

#[test]
fn ids_and_choices_steer_no_terminal() {
    let hidden = "\u{202e}\u{200b}";
    let hostile = format!("\u{1b}]52;c;AAAA\u{7}\u{1b}[2J{hidden}");
    let mut story = Story { plan: Plan::blank(key().id), now: 0 };
    let name = format!("a{hidden}z");
    let mut spec = task("a", &[]);
    spec.id = id(&name);
    let person = Actor::person("ada");
    let create = Command::Create { draft: plan_of(vec![spec]).into(), approval_required: None };
    story.write(&person, create);
    story.write(&person, Command::Activate);
    story.start(&name);
    let choices = vec![hostile.clone(), "right".to_owned()];
    let ask = QuestionRequest { text: hostile, choices, ..QuestionRequest::default() };
    let ask = Command::AskQuestion { task: id(&name), attempt: Some(1), ask: Box::new(ask) };
    story.write(&person, ask);
    for size in SIZES {
        let mut app = watching(size);
        reply(&mut app, story.stands());
        for keys in ["", "⏎", "⎋", "c"] {
            press(&mut app, keys);
            let shown = text(&app);
            let is_unsafe = |shown: char| shown != '\n' && waypost_text::is_unsafe_char(shown);
            assert!(!shown.contains(is_unsafe), "{shown:?}");
        }
    }
}

/// In the middle of a run: one is done, one failed, one asks, two run.
fn middle() -> Story {
    let person = Actor::person("ada");
    let mut story = Story::new(&person);
    story.write(&person, Command::Activate);
    story.start("read");
    story.finish(
        "read",
        Outcome::Done { result: Some("three files".to_owned()), output: None, evidence: None },
    );
    story.start("breaks");
    story.start("choose");
    story.start("edit-a");
    story.finish("breaks", Outcome::Failed { error: "exit code 1".to_owned(), evidence: None });
    let ask = QuestionRequest {
        text: "Which name shall it have?".to_owned(),
        choices: vec!["Entry".to_owned(), "Record".to_owned()],
        ..QuestionRequest::default()
    };
    let ask = Command::AskQuestion { task: id("choose"), attempt: Some(1), ask: Box::new(ask) };
    story.write(&person, ask);
    story.start("edit-計画");
    story
}

fn detail(log: &str) -> Box<TaskDetail> {
    let log_bytes = log.len() as u64;
    Box::new(TaskDetail { log: log.to_owned(), log_bytes, ..TaskDetail::default() })
}

#[test]
fn a_run_shows_what_asks_runs_failed_and_waits_in_this_order_at_every_size() {
    let story = middle();
    for size in SIZES {
        let mut app = watching(size);
        let asked = reply(&mut app, story.stands());
        assert_eq!(run_effects(asked), [RunEffect::LoadTaskDetail(key(), id("choose"))]);
        check(&app, "run-asking");
        press(&mut app, "↓");
        let log: String = (1..=100).map(|number| format!("line {number} of the log \u{1b}[31m\n")).collect();
        reply(&mut app, RunReply::TaskDetail(key(), id("edit-a"), detail(&log)));
        check(&app, "run-log");
    }
}

#[test]
fn the_log_follows_its_end_until_somebody_scrolls() {
    let story = middle();
    let mut app = watching((80, 24));
    reply(&mut app, story.stands());
    press(&mut app, "↓");
    let log = |lines: usize| (1..=lines).map(|number| format!("line {number}.\n")).collect::<String>();
    reply(&mut app, RunReply::TaskDetail(key(), id("edit-a"), detail(&log(50))));
    assert!(text(&app).contains("line 50."));
    reply(&mut app, RunReply::TaskDetail(key(), id("edit-a"), detail(&log(60))));
    assert!(text(&app).contains("line 60.") && !text(&app).contains("line 30."));
    press(&mut app, "⇥kkkkkkkkkkkkkkkkkkkkkkkkk");
    assert!(!text(&app).contains("line 60.") && text(&app).contains("line 31."), "{}", text(&app));
}

#[test]
fn the_details_are_loaded_again_when_the_plan_changes_and_the_row_does_not() {
    let mut story = middle();
    let mut app = watching((80, 24));
    reply(&mut app, story.stands());
    reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
    assert_eq!(run_effects(reply(&mut app, story.stands())), []);
    story.write(&Actor::person("ada"), Command::Pause { reason: String::new() });
    let asked = reply(&mut app, story.stands());
    assert_eq!(run_effects(asked), [RunEffect::LoadTaskDetail(key(), id("choose"))]);
}

#[test]
fn a_running_task_is_looked_at_again_as_time_goes_by_but_never_twice_at_once() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
    assert_eq!(run_effects(press(&mut app, "↓")), [RunEffect::LoadTaskDetail(key(), id("edit-a"))]);
    // Progress makes no version, so the plan is read again too.
    let tick = update(&mut app, Message::Tick(at(200)));
    assert_eq!(run_effects(tick), [RunEffect::LoadSnapshot(key())]);
    let again = reply(&mut app, RunReply::TaskDetail(key(), id("edit-a"), detail("x")));
    assert_eq!(run_effects(again), [RunEffect::LoadTaskDetail(key(), id("edit-a"))]);
    reply(&mut app, RunReply::TaskDetail(key(), id("edit-a"), detail("x")));
    let tick = update(&mut app, Message::Tick(at(201)));
    assert_eq!(run_effects(tick), [RunEffect::LoadTaskDetail(key(), id("edit-a"))]);
}

#[test]
fn what_needs_approval_shows_what_will_run_and_approves_the_version_that_was_shown() {
    let agent = Actor::agent("planner");
    let story = Story::new(&agent);
    for size in SIZES {
        let (mut app, effects) = program(Screen::Run(Box::new(RunView::new(key(), Intent::Execute))), size);
        assert_eq!(run_effects(effects), [RunEffect::LoadSnapshot(key()), RunEffect::Start(key())]);
        reply(&mut app, RunReply::Started(key(), Ok(Started::NeedsApproval)));
        assert!(run_effects(reply(&mut app, story.stands())).contains(&RunEffect::Preview(key())));
        let tasks = (1..=40).map(|number| PreviewedTask {
            program: format!("t{number}: make part-{number}"),
            particulars: vec![("inputs", format!("{{\"part\":{number}}}"))],
        });
        let preview = Preview {
            version: 1,
            digest: "sha256:1".to_owned(),
            tasks: tasks.collect(),
            for_machines: 40,
            for_people: 0,
            ..Preview::default()
        };
        reply(&mut app, RunReply::Preview(key(), Ok(Box::new(preview))));
        app.note = None;
        check(&app, "run-approval");
        assert_eq!(press(&mut app, "a"), []);
        check(&app, "run-approve");
        let seen = Seen { version: 1, digest: "sha256:1".to_owned() };
        for _ in 0..60 {
            press_key(&mut app, KeyCode::PageDown);
        }
        assert_eq!(run_effects(press(&mut app, "A")), [RunEffect::Approve(key(), seen)]);
        let then = reply(&mut app, RunReply::Approved(key(), Ok(1)));
        assert_eq!(run_effects(then), [RunEffect::Start(key())], "it was to be run");
    }
}

/// The operator's program is harmless; what the author of the plan says to it is not.
fn harmful() -> (Config, Plan) {
    let text = "[executors.sh]\nkind = \"process\"\ncommand = [\"sh\", \"work.sh\"]\n[executors.ask]\nkind = \"human\"\n";
    let layer = Layer { origin: Origin::Workspace, name: "config.toml".to_owned(), text: text.to_owned() };
    let config = Config::load(&[layer], []).unwrap();
    let work = |executor: &str, inputs: &[(&str, &str)]| {
        let inputs = Json::of(&inputs.iter().copied().collect::<BTreeMap<_, _>>());
        Some(Box::new(Work { executor: executor.to_owned(), inputs, shape: None }))
    };
    let mut bad = task("b", &[]);
    bad.description = "Tidy up".to_owned();
    bad.notes = "note well".to_owned();
    let padding = "harmless ".repeat(200);
    bad.work = work("sh", &[("cmd", &format!("echo {padding} && rm -rf / # EVIL"))]);
    bad.check = work("sh", &[("cmd", "true # LENIENT")]);
    let mut human = task("sign", &[]);
    human.work = work("ask", &[]);
    let mut plan = Plan::blank(key().id);
    let create = Command::Create { draft: plan_of(vec![bad, human]).into(), approval_required: None };
    let events = plan.decide(&Actor::agent("planner"), at(0), &create).unwrap();
    plan.advance(&events, at(0));
    (config, plan)
}

#[test]
fn whoever_approves_can_read_everything_that_the_author_of_the_plan_says_to_a_program() {
    let (config, plan) = harmful();
    let found = plan_preview(&Definitions::of(&config), &plan);
    let preview = Preview::of(&found);
    assert_eq!((preview.for_machines, preview.for_people, preview.tasks.len()), (1, 1, 2));
    let snapshot = PlanSnapshot::of(&plan, at(1), &|_, status| status.sign());
    for size in SIZES {
        let mut app = watching(size);
        reply(&mut app, RunReply::Snapshot(key(), Ok(Box::new(snapshot.clone()))));
        reply(&mut app, RunReply::Preview(key(), Ok(Box::new(preview.clone()))));
        assert!(text(&app).contains("1 task for machines, 1 task for people"), "{}", text(&app));
        // Beside the tasks, and in the question.
        for (keys, down) in [("⇥", "↓"), ("a", "↓")] {
            press(&mut app, keys);
            let mut seen = text(&app);
            for _ in 0..80 {
                press(&mut app, down);
                seen.push_str(&text(&app));
            }
            for words in ["description: Tidy up", "notes: note well", "EVIL", "check: sh work.sh", "LENIENT"]
            {
                assert!(seen.contains(words), "{words} at {size:?} after {keys}:\n{}", text(&app));
            }
            assert!(seen.contains("sign: (a person does it"), "{size:?}");
        }
        assert_eq!(run_effects(press(&mut app, "A")), [RunEffect::Approve(key(), found.seen())]);
    }
}

#[test]
fn nothing_is_approved_before_its_last_line_was_on_screen() {
    let (config, mut plan) = harmful();
    let tasks = (0..60).map(|number| {
        let mut spec = task(&format!("t{number}"), &[]);
        spec.description = if number == 59 { "left\u{202e}right\u{200b}".to_owned() } else { "x".to_owned() };
        let inputs = Json::empty_object();
        spec.work = Some(Box::new(Work { executor: "sh".to_owned(), inputs, shape: None }));
        spec
    });
    plan = {
        let mut made = Plan::blank(plan.id().clone());
        let create = Command::Create { draft: plan_of(tasks).into(), approval_required: None };
        let events = made.decide(&Actor::agent("planner"), at(0), &create).unwrap();
        made.advance(&events, at(0));
        made
    };
    let found = plan_preview(&Definitions::of(&config), &plan);
    let snapshot = PlanSnapshot::of(&plan, at(1), &|_, status| status.sign());
    let mut app = watching((80, 24));
    reply(&mut app, RunReply::Snapshot(key(), Ok(Box::new(snapshot))));
    reply(&mut app, RunReply::Preview(key(), Ok(Box::new(Preview::of(&found)))));
    assert_eq!(run_effects(press(&mut app, "aAA")), [], "only its beginning was on screen");
    assert!(text(&app).contains("left\\u{202e}right\\u{200b}"), "what is odd comes first: {}", text(&app));
    let mut pages = 0;
    while text(&app).contains("↓ to the end first") {
        assert_eq!(run_effects(press(&mut app, "A")), []);
        press_key(&mut app, KeyCode::PageDown);
        pages += 1;
        assert!(pages < 100, "{}", text(&app));
    }
    assert!(pages > 3 && text(&app).contains("t58: sh work.sh"), "{pages}: {}", text(&app));
    assert_eq!(run_effects(press(&mut app, "A")), [RunEffect::Approve(key(), found.seen())]);
}

/// A plan that waits for approval, with what it would run.
fn awaiting_approval(version: u64, digest: &str, goal: &str) -> (RunReply, RunReply) {
    let snapshot = PlanSnapshot {
        version,
        ..PlanSnapshot::of(&Story::new(&Actor::agent("planner")).plan, at(1), &|_, status| status.sign())
    };
    let preview = Preview {
        version,
        digest: digest.to_owned(),
        about: vec![("goal", goal.to_owned())],
        ..Preview::default()
    };
    (RunReply::Snapshot(key(), Ok(Box::new(snapshot))), RunReply::Preview(key(), Ok(Box::new(preview))))
}

fn reviewing(size: (u16, u16), goal: &str) -> App {
    let mut app = watching(size);
    let (snapshot, preview) = awaiting_approval(3, "sha256:3", goal);
    reply(&mut app, snapshot);
    reply(&mut app, preview);
    press(&mut app, "a");
    app
}

#[test]
fn a_version_that_arrives_while_another_is_reviewed_is_announced_and_not_approved() {
    for size in SIZES {
        let mut app = reviewing(size, "short");
        let (snapshot, preview) = awaiting_approval(4, "sha256:4", "another");
        assert!(run_effects(reply(&mut app, snapshot)).contains(&RunEffect::Preview(key())));
        reply(&mut app, preview);
        check(&app, "run-changed");
        assert_eq!(run_effects(press(&mut app, "A")), [], "{}", text(&app));
        press(&mut app, "a");
        assert!(text(&app).contains("another"), "{}", text(&app));
        let seen = Seen { version: 4, digest: "sha256:4".to_owned() };
        assert_eq!(run_effects(press(&mut app, "A")), [RunEffect::Approve(key(), seen)]);
    }
}

#[test]
fn what_changed_while_it_was_reviewed_can_be_seen() {
    let mut app = reviewing((80, 24), "short");
    let (snapshot, preview) = awaiting_approval(4, "sha256:4", "another");
    reply(&mut app, snapshot);
    reply(&mut app, preview);
    let effects = press(&mut app, "v");
    assert!(matches!(app.top(), Some(Screen::History(_))), "{effects:?}");
}

#[test]
fn a_version_that_would_run_the_same_is_approved_as_it_was_read() {
    let mut app = reviewing((80, 24), &"a line\n".repeat(40));
    (0..20).for_each(|_| drop(press_key(&mut app, KeyCode::PageDown)));
    let (snapshot, preview) = awaiting_approval(4, "sha256:3", &"a line\n".repeat(40));
    reply(&mut app, snapshot);
    reply(&mut app, preview);
    let seen = Seen { version: 4, digest: "sha256:3".to_owned() };
    assert_eq!(run_effects(press(&mut app, "A")), [RunEffect::Approve(key(), seen)], "{}", text(&app));
}

#[test]
fn a_review_that_was_closed_is_not_opened_by_a_newer_version() {
    let mut app = reviewing((80, 24), "short");
    press(&mut app, "⎋");
    let (snapshot, preview) = awaiting_approval(4, "sha256:4", "another");
    reply(&mut app, snapshot);
    reply(&mut app, preview);
    assert!(app.dialog.is_none(), "{}", text(&app));
}

#[test]
fn keys_that_were_typed_ahead_approve_nothing() {
    let typed_ahead = |app: &mut App, keys: &str| {
        let keys = keys.chars().map(|key| if key == '⏎' { KeyCode::Enter } else { KeyCode::Char(key) });
        let press = |key| update(app, Message::Key(KeyEvent::new(key, KeyModifiers::NONE)));
        keys.flat_map(press).collect::<Vec<_>>()
    };
    for keys in ["aA", "aaaa", "a⏎", "aA⏎⏎AA"] {
        let mut app = watching((80, 24));
        let (snapshot, preview) = awaiting_approval(3, "sha256:3", "short");
        reply(&mut app, snapshot);
        reply(&mut app, preview);
        let effects = run_effects(typed_ahead(&mut app, keys));
        let approves = |effect: &RunEffect| matches!(effect, RunEffect::Approve(..));
        assert!(!effects.iter().any(approves), "{keys}: nothing of it was drawn: {effects:?}");
    }
    let mut app = reviewing((80, 24), "short");
    assert_eq!(press(&mut app, "aaa"), [], "the key that opens it does not approve");
    assert_eq!(run_effects(press(&mut app, "A")).len(), 1);
}

#[test]
fn a_long_goal_says_where_in_it_one_is() {
    let goal: String = (1..=200).map(|number| format!("line {number} of the goal\n")).collect();
    let mut app = watching((80, 24));
    let (snapshot, preview) = awaiting_approval(3, "sha256:3", &goal);
    reply(&mut app, snapshot);
    reply(&mut app, preview);
    press(&mut app, "⇥↓↓");
    assert!(text(&app).contains("What will run · lines 3–"), "{}", text(&app));
    press(&mut app, "a");
    assert!(text(&app).contains("of 201, ↓ to the end first"), "{}", text(&app));
    // The end alone is not all of it.
    press(&mut app, "G");
    assert!(text(&app).contains("line 200 of the goal"), "{}", text(&app));
    assert!(text(&app).contains("of 201, read on from line"), "{}", text(&app));
    assert_eq!(run_effects(press(&mut app, "A")), []);
    press_key(&mut app, KeyCode::Home);
    press(&mut app, &" ".repeat(30));
    assert_eq!(run_effects(press(&mut app, "A")).len(), 1, "{}", text(&app));
}

#[test]
fn a_log_shows_when_its_lines_were_written() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    press(&mut app, "↓↓↓");
    let log = "begins\nwaypost:progress hidden\nends\n".to_owned();
    let log_times = vec![at(0), at(1), at(61)];
    let detail = TaskDetail { log_bytes: log.len() as u64, log, log_times, ..TaskDetail::default() };
    reply(&mut app, RunReply::TaskDetail(key(), id("breaks"), Box::new(detail)));
    assert!(!text(&app).contains("08:0"), "{}", text(&app));
    press(&mut app, "L");
    let shown = text(&app);
    assert!(shown.contains("08:00:00 begins") && shown.contains("08:01:01 ends"), "{shown}");
    assert!(shown.contains("times in UTC"), "{shown}");
    press(&mut app, "L");
    assert!(!text(&app).contains("08:0"), "{}", text(&app));
}

#[test]
fn a_warning_about_one_task_is_gone_at_the_next() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    press(&mut app, "↓");
    reply(&mut app, RunReply::TaskDetail(key(), id("edit-a"), detail("all is well\n")));
    press(&mut app, "n");
    assert!(text(&app).contains("the log shows no error"), "{}", text(&app));
    press(&mut app, "↓");
    assert!(!text(&app).contains("the log shows no error"), "{}", text(&app));
    press(&mut app, "L");
    reply(&mut app, RunReply::TaskDetail(key(), id("edit-計画"), detail("x\n")));
    press(&mut app, "LL");
    assert!(text(&app).contains("this log has no times"), "{}", text(&app));
}

#[test]
fn what_is_shown_before_an_approval_is_bounded_and_counts_what_it_leaves_out() {
    let (config, mut plan) = harmful();
    let mut shown = |count: usize, bytes: usize| {
        let tasks = (0..count).map(|number| {
            let mut spec = task(&format!("t{number}"), &[]);
            spec.description = "x".repeat(bytes);
            let inputs = Json::empty_object();
            spec.work = Some(Box::new(Work { executor: "sh".to_owned(), inputs, shape: None }));
            spec
        });
        plan = Plan::blank(key().id);
        let draft = plan_of(tasks).into();
        let create = Command::Create { draft, approval_required: None };
        let events = plan.decide(&Actor::agent("planner"), at(0), &create).unwrap();
        plan.advance(&events, at(0));
        Preview::of(&plan_preview(&Definitions::of(&config), &plan))
    };
    assert_eq!(shown(PREVIEW_TASKS_MAX, 1).tasks.len(), PREVIEW_TASKS_MAX);
    let more = shown(PREVIEW_TASKS_MAX + 1, 1);
    assert_eq!((more.tasks.len(), more.for_machines), (PREVIEW_TASKS_MAX, PREVIEW_TASKS_MAX + 1));
    let mut long = |bytes| {
        let texts = shown(1, bytes).tasks.remove(0).particulars.into_iter().map(|(_, text)| text);
        texts.max_by_key(String::len).unwrap_or_default()
    };
    assert_eq!(long(PARTICULAR_BYTES_MAX).len(), PARTICULAR_BYTES_MAX);
    assert!(long(PARTICULAR_BYTES_MAX + 1).ends_with("(1 more bytes not shown)"));
    let heavy = shown(20, PARTICULAR_BYTES_MAX);
    let held = PREVIEW_BYTES_MAX / PARTICULAR_BYTES_MAX;
    assert_eq!((heavy.tasks.len(), heavy.for_machines), (held - 1, 20));
    let cut = shown(1, PARTICULAR_BYTES_MAX + 1);
    let mut app = watching((80, 24));
    let snapshot = PlanSnapshot::of(&plan, at(1), &|_, status| status.sign());
    reply(&mut app, RunReply::Snapshot(key(), Ok(Box::new(snapshot))));
    reply(&mut app, RunReply::Preview(key(), Ok(Box::new(heavy))));
    press(&mut app, "⇥");
    update(&mut app, Message::Key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE)));
    assert!(text(&app).contains("… and 13 tasks not shown"), "{}", text(&app));
    assert_eq!(run_effects(press(&mut app, "aa")), [], "what is not shown cannot be approved");
    reply(&mut app, RunReply::Preview(key(), Ok(Box::new(cut))));
    assert_eq!(run_effects(press(&mut app, "aa")), [], "nor what is shown in part");
}

#[test]
fn a_rejection_carries_the_words_of_the_person() {
    let mut app = watching((80, 24));
    reply(&mut app, Story::new(&Actor::agent("planner")).stands());
    assert_eq!(press(&mut app, "Rtoo wide"), []);
    let effects = run_effects(press(&mut app, "⏎"));
    let [RunEffect::Write { action, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(*action, PlanAction::Reject("too wide".to_owned()));
}

#[test]
fn a_question_is_answered_where_it_is_shown() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    press(&mut app, "⏎");
    assert!(text(&app).contains(" 1 Entry") && text(&app).contains(" 2 Record"), "{}", text(&app));
    check(&app, "answer-choices");
    let written = written(press(&mut app, "1"));
    let [PlanAction::Answer { task, answer, seen }] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!((task, answer.as_str()), (&id("choose"), "Entry"));
    // A question that is asked meanwhile is another one.
    let mut story = middle();
    let task = id("choose");
    let answer = "Entry".to_owned();
    story.write(&Actor::person("ada"), Command::AnswerQuestion { task, answer });
    story.start("choose");
    let choices = vec!["Entry".to_owned(), "Record".to_owned()];
    let ask = QuestionRequest {
        text: "Which name shall it have?".to_owned(),
        choices,
        ..QuestionRequest::default()
    };
    let ask = Command::AskQuestion { task: id("choose"), attempt: Some(2), ask: Box::new(ask) };
    story.write(&Actor::person("ada"), ask);
    let mut later = watching((80, 24));
    reply(&mut later, story.stands());
    press(&mut later, "⏎");
    let effects = self::written(press(&mut later, "1"));
    let [PlanAction::Answer { seen: other, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_ne!(seen, other);
}

#[test]
fn the_keys_of_a_running_plan_become_actions_of_the_service() {
    for (keys, wanted) in [
        ("P", PlanAction::Pause),
        ("T", PlanAction::RetryAll),
        ("cc", PlanAction::CancelTask(id("choose"))),
        ("Cc", PlanAction::CancelPlan),
        ("r", PlanAction::RetryTask(id("choose"))),
    ] {
        let mut app = watching((80, 24));
        reply(&mut app, middle().stands());
        reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
        assert_eq!(written(press(&mut app, keys)), [wanted], "{keys}");
    }
}

#[test]
fn leaving_a_run_of_this_process_asks_what_becomes_of_it() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    assert_eq!(run_effects(press(&mut app, "x")), [RunEffect::Start(key())]);
    reply(&mut app, RunReply::Started(key(), Ok(Started::Runs)));
    assert_eq!(press(&mut app, "⎋"), []);
    assert!(text(&app).contains("keep running") && text(&app).contains("s stop"), "{}", text(&app));
    assert_eq!(press(&mut app, "b"), []);
    // The first stop lets what runs end, the second does not.
    assert_eq!(run_effects(press(&mut app, "X")), [RunEffect::End(key(), Control::Drain)]);
    assert_eq!(run_effects(press(&mut app, "X")), [RunEffect::End(key(), Control::Stop)]);
    reply(&mut app, RunReply::Ended(key(), Ok("stopped".to_owned())));
    assert_eq!(press(&mut app, "⎋"), [Effect::Quit], "nothing runs any more, and this is the only screen");
}

#[test]
fn the_program_ends_with_its_runs_only_when_a_person_says_so() {
    let begun = || {
        let mut app = watching((80, 24));
        reply(&mut app, middle().stands());
        press(&mut app, "x");
        reply(&mut app, RunReply::Started(key(), Ok(Started::Runs)));
        let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(update(&mut app, Message::Key(quit)), [], "it asks");
        app
    };
    assert_eq!(press(&mut begun(), "s"), [Effect::Quit]);
    let mut waiting = begun();
    assert_eq!(press(&mut waiting, "w"), []);
    let ended = reply(&mut waiting, RunReply::Ended(key(), Ok("completed".to_owned())));
    assert!(ended.contains(&Effect::Quit), "{ended:?}");
}

#[test]
fn what_cannot_be_run_says_why_and_what_to_do() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    press(&mut app, "x");
    let error = ErrorMessage { what: "no executor is called sh".to_owned(), hint: "configure it".to_owned() };
    reply(&mut app, RunReply::Started(key(), Err(error)));
    let shown = text(&app);
    assert!(shown.contains("no executor is called sh") && shown.contains("configure it"), "{shown}");
    press(&mut app, "b");
    assert!(!text(&app).contains("configure it"));
}

#[test]
fn an_error_stays_on_the_screen_that_it_is_about() {
    let mut app = watching(SIZES[0]);
    reply(&mut app, middle().stands());
    app.open(waypost_tui::screen::Destination::History(key()));
    let wrong = ErrorMessage { what: "it cannot be compared".into(), hint: String::new() };
    update(&mut app, Message::Reply(Reply::Note(wrong.note())));
    assert!(text(&app).contains("it cannot be compared"), "{}", text(&app));
    press(&mut app, "⎋");
    assert!(!text(&app).contains("it cannot be compared"), "{}", text(&app));
}

#[test]
fn a_dry_run_starts_nothing() {
    let run = Screen::Run(Box::new(RunView::new(key(), Intent::Execute)));
    let (mut app, effects) = App::new(settings(true), run, at(100), (80, 24));
    assert_eq!(run_effects(effects), [RunEffect::LoadSnapshot(key()), RunEffect::Preview(key())]);
    reply(&mut app, middle().stands());
    assert!(text(&app).contains("DRY RUN"));
    assert_eq!(run_effects(press(&mut app, "x")), [RunEffect::Preview(key())]);
}

#[test]
fn a_dry_run_says_nothing_to_the_plan() {
    let mut agents = Story::new(&Actor::agent("planner"));
    agents.now = 20;
    for (stands, keys) in
        [(agents.stands(), &["a", "R"][..]), (middle().stands(), &["P", "c", "C", "r", "T", "⏎", "="][..])]
    {
        for pressed in keys {
            let run = Screen::Run(Box::new(RunView::new(key(), Intent::Watch)));
            let (mut app, _) = App::new(settings(true), run, at(100), (80, 24));
            reply(&mut app, stands.clone());
            let preview = Preview { version: 1, ..Preview::default() };
            reply(&mut app, RunReply::Preview(key(), Ok(Box::new(preview))));
            reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
            assert!(!text(&app).contains("a review") && !text(&app).contains("P pause"), "{}", text(&app));
            assert_eq!(press(&mut app, pressed), [], "{pressed}");
            assert!(
                app.dialog.is_none() && text(&app).contains("dry run: the plan is not changed"),
                "{pressed}"
            );
        }
    }
}

/// The middle of a run, in which a task asks a question that any text answers.
fn asking_for_a_text() -> Story {
    let mut story = middle();
    let task = id("choose");
    let person = Actor::person("ada");
    story.write(&person, Command::AnswerQuestion { task: task.clone(), answer: "Entry".to_owned() });
    story.start("choose");
    let ask = QuestionRequest { text: "And in Latin?".to_owned(), ..QuestionRequest::default() };
    story.write(&person, Command::AskQuestion { task, attempt: Some(2), ask: Box::new(ask) });
    story
}

#[test]
fn an_answer_has_words() {
    let mut app = watching((80, 24));
    reply(&mut app, asking_for_a_text().stands());
    reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
    assert_eq!(press(&mut app, "⏎⏎⏎ ⏎"), [], "nothing is answered");
    assert!(app.dialog.is_some() && text(&app).contains("an answer must not be empty"), "{}", text(&app));
    let written = written(press(&mut app, " Entry⏎"));
    assert!(
        matches!(written.as_slice(), [PlanAction::Answer { answer, .. }] if answer == " Entry"),
        "{written:?}"
    );
}

#[test]
fn a_choice_is_gone_to_before_enter_takes_it() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
    assert_eq!(press(&mut app, "⏎⏎⏎"), [], "Enter by mistake answers nothing");
    let effects = written(press(&mut app, "↓↓⏎"));
    assert!(
        matches!(effects.as_slice(), [PlanAction::Answer { answer, .. }] if answer == "Record"),
        "{effects:?}"
    );
}

#[test]
fn a_digit_marks_the_answer_that_it_stands_for_and_leads_to_a_view_elsewhere() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    assert_eq!(press(&mut app, "2"), [], "nothing is sent by the digit alone");
    assert!(app.dialog.is_some(), "{}", text(&app));
    let effects = written(press(&mut app, "⏎"));
    assert!(
        matches!(effects.as_slice(), [PlanAction::Answer { answer, .. }] if answer == "Record"),
        "{effects:?}"
    );
    press(&mut app, "↓3");
    assert!(matches!(app.top(), Some(Screen::History(_))), "{}", text(&app));
}

#[test]
fn options_of_a_list_can_be_clicked() {
    use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    press(&mut app, "⏎");
    let shown = text(&app);
    let (row, line) = shown.lines().enumerate().find(|(_, line)| line.contains("│  2 Record")).unwrap();
    let column = line[..line.find("2 Record").unwrap()].chars().count() as u16;
    let kind = MouseEventKind::Down(MouseButton::Left);
    let click = MouseEvent { kind, column, row: row as u16, modifiers: KeyModifiers::NONE };
    app.note_shown();
    let effects = written(update(&mut app, Message::Mouse(click)));
    assert!(
        matches!(effects.as_slice(), [PlanAction::Answer { answer, .. }] if answer == "Record"),
        "{effects:?}"
    );
}

/// Shows every ready task as one that a person does.
fn for_people(_: &Task, status: EffectiveStatus) -> StatusSign {
    if status == EffectiveStatus::Ready { StatusSign::Person } else { status.sign() }
}

/// A plan of one task that a person does.
fn human_task() -> RunReply {
    let mut sign = task("sign", &[]);
    sign.description = "Sign the contract".to_owned();
    sign.notes = "Both pages\u{202e}.".to_owned();
    let inputs = Json::of(&BTreeMap::from([("who", "Ada")]));
    sign.work = Some(Box::new(Work { executor: "ask".to_owned(), inputs, shape: None }));
    let mut story = Story { plan: Plan::blank(key().id), now: 0 };
    let person = Actor::person("ada");
    let draft = plan_of(vec![sign]).into();
    story.write(&person, Command::Create { draft, approval_required: None });
    story.write(&person, Command::Activate);
    let snapshot = PlanSnapshot::of(&story.plan, at(story.now), &for_people);
    RunReply::Snapshot(key(), Ok(Box::new(snapshot)))
}

#[test]
fn a_task_for_a_person_is_read_whole_and_ended_by_a_choice() {
    for (keys, wanted) in
        [("1", "yes"), ("2two pages⏎", "yes, two pages"), ("3no pen⏎", "no, no pen"), ("4", "no")]
    {
        let mut app = watching((80, 24));
        reply(&mut app, human_task());
        press(&mut app, "⏎");
        let shown = text(&app);
        for words in ["Sign the contract", "Both pages\\u{202e}.", "{\"who\":\"Ada\"}", "1 Done"] {
            assert!(shown.contains(words), "{words}:\n{shown}");
        }
        let effects = written(press(&mut app, keys));
        assert!(
            matches!(effects.as_slice(), [PlanAction::Answer { answer, .. }] if answer == wanted),
            "{effects:?}"
        );
    }
}

#[test]
fn a_long_question_is_answered_only_after_its_end_was_on_screen() {
    let mut story = asking_for_a_text();
    let person = Actor::person("ada");
    let task = id("choose");
    story.write(&person, Command::AnswerQuestion { task: task.clone(), answer: "x".to_owned() });
    story.start("choose");
    let text_of = (0..60).map(|line| format!("line {line}\n")).collect::<String>();
    let choices = vec!["left".to_owned(), "right".to_owned()];
    let ask = QuestionRequest { text: text_of, choices, ..QuestionRequest::default() };
    story.write(&person, Command::AskQuestion { task, attempt: Some(3), ask: Box::new(ask) });
    let mut app = watching((80, 24));
    reply(&mut app, story.stands());
    assert_eq!(press(&mut app, "⏎1↓⏎"), [], "its end was not on screen: {}", text(&app));
    for _ in 0..20 {
        press_key(&mut app, KeyCode::PageDown);
    }
    assert!(text(&app).contains("line 59"), "{}", text(&app));
    assert_eq!(written(press(&mut app, "2")).len(), 1);
}

#[test]
fn a_plan_whose_next_task_is_a_persons_says_that_it_waits_for_them() {
    let person = Actor::person("ada");
    let mut story = Story::new(&person);
    story.write(&person, Command::Activate);
    let snapshot = PlanSnapshot::of(&story.plan, at(1), &for_people);
    let mut app = watching((80, 24));
    reply(&mut app, RunReply::Snapshot(key(), Ok(Box::new(snapshot))));
    let shown = text(&app);
    assert!(shown.contains("waiting for you: Enter answers") && shown.contains("@ your task"), "{shown}");
}

#[test]
fn one_long_id_takes_no_room_from_the_words_of_all_tasks() {
    let mut story = Story { plan: Plan::blank(key().id), now: 0 };
    let mut short = task("a", &[]);
    short.description = "It has words".to_owned();
    let mut long = task("b", &[]);
    long.id = id(&"long".repeat(60));
    let draft = plan_of(vec![short, long]).into();
    story.write(&Actor::person("ada"), Command::Create { draft, approval_required: None });
    let mut app = watching((80, 24));
    reply(&mut app, story.stands());
    let shown = text(&app);
    let row = shown.lines().find(|line| line.contains("It has words")).unwrap();
    assert!(row.find("It has words").unwrap() < 20, "{shown}");
}

#[test]
fn a_long_choice_is_read_in_full_before_it_is_given() {
    let mut story = asking_for_a_text();
    let person = Actor::person("ada");
    let task = id("choose");
    story.write(&person, Command::AnswerQuestion { task: task.clone(), answer: "x".to_owned() });
    story.start("choose");
    let choices = vec!["yes".to_owned(), format!("no, {}and delete all", "very long choice ".repeat(60))];
    let ask = QuestionRequest { text: "May it?".to_owned(), choices, ..QuestionRequest::default() };
    story.write(&person, Command::AskQuestion { task, attempt: Some(3), ask: Box::new(ask) });
    let mut app = watching((80, 24));
    reply(&mut app, story.stands());
    assert_eq!(press(&mut app, "⏎2"), [], "its end was not on screen: {}", text(&app));
    for _ in 0..20 {
        press_key(&mut app, KeyCode::PageDown);
    }
    assert!(text(&app).contains("and delete all"), "{}", text(&app));
    assert_eq!(written(press(&mut app, "2")).len(), 1);
}

#[test]
fn the_status_of_a_task_is_chosen_from_those_that_it_can_have() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    reply(&mut app, RunReply::TaskDetail(key(), id("choose"), detail("")));
    press(&mut app, "↓↓↓=");
    check(&app, "status-of-failed");
    assert_eq!(written(press(&mut app, "1")), [PlanAction::RetryTask(id("breaks"))]);
    press(&mut app, "↑=");
    assert_eq!(written(press(&mut app, "1")), [PlanAction::CompleteTask(id("edit-計画"))]);
}

#[test]
fn a_review_can_be_asked_for_from_elsewhere_and_rejects_too() {
    let (mut app, effects) = program(Screen::Run(Box::new(RunView::new(key(), Intent::Review))), (80, 24));
    assert_eq!(run_effects(effects), [RunEffect::LoadSnapshot(key()), RunEffect::Preview(key())]);
    reply(&mut app, Story::new(&Actor::agent("planner")).stands());
    let preview = Preview { version: 1, digest: "sha256:1".to_owned(), ..Preview::default() };
    reply(&mut app, RunReply::Preview(key(), Ok(Box::new(preview))));
    assert!(text(&app).contains("A approve") && text(&app).contains("R reject"), "{}", text(&app));
    press(&mut app, "Rtoo wide");
    assert_eq!(written(press(&mut app, "⏎")), [PlanAction::Reject("too wide".to_owned())]);
}

/// A log with colours and two errors, far from each other.
fn log_with_errors() -> String {
    let mut log = String::from("\u{1b}[32mgreen\u{1b}[0m and \u{1b}]0;title\u{7}plain\n");
    log.extend((0..60).map(|line| format!("step {line}\n")));
    log.push_str("error: the first\nerror: of the same\n");
    log.extend((60..120).map(|line| format!("step {line}\n")));
    log.push_str("waypost:progress hidden\nerror: the second\n");
    log.extend((120..180).map(|line| format!("step {line}\n")));
    log
}

#[test]
fn a_log_opens_at_its_first_error_and_is_gone_through_and_searched() {
    for size in SIZES {
        let mut app = watching(size);
        reply(&mut app, middle().stands());
        press(&mut app, "↓↓↓");
        reply(&mut app, RunReply::TaskDetail(key(), id("breaks"), detail(&log_with_errors())));
        assert!(text(&app).contains("error: the first"), "{}", text(&app));
        check(&app, "log-error");
        press(&mut app, "n");
        assert!(text(&app).contains("error: the second"), "{}", text(&app));
        press(&mut app, "n");
        assert!(text(&app).contains("error: the first"), "it goes round: {}", text(&app));
        press(&mut app, "p");
        assert!(text(&app).contains("error: the second"), "{}", text(&app));
        press(&mut app, "/step 77⏎");
        assert!(text(&app).contains("step 77") && text(&app).contains("1 line with"), "{}", text(&app));
        press(&mut app, "F");
        let selected = text(&app);
        assert!(!selected.contains("hidden"), "lines of the protocol are no output: {selected}");
    }
}

#[test]
fn the_colours_of_a_log_are_the_terminals_and_nothing_else_comes_through() {
    let mut app = watching((80, 24));
    reply(&mut app, middle().stands());
    press(&mut app, "↓↓↓");
    let log = "\u{1b}[1;34mblue\u{1b}[0m \u{1b}[30;40mhidden?\u{1b}[0m \u{1b}[2J\u{1b}]52;c;AAAA\u{7}end\n";
    reply(&mut app, RunReply::TaskDetail(key(), id("breaks"), detail(log)));
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| render(&app, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let style_of = |wanted: &str| {
        let (x, y) = (0..24)
            .find_map(|y| {
                let line: String = (0..80).map(|x| buffer[(x, y)].symbol()).collect();
                let at = line.find(wanted)?;
                Some((line[..at].chars().count() as u16, y))
            })
            .unwrap_or_else(|| panic!("{wanted}: {}", text(&app)));
        buffer[(x, y)].style()
    };
    use ratatui::style::Color;
    assert_eq!(style_of("blue").fg, Some(Color::Blue));
    let hidden = style_of("hidden?");
    assert_eq!(hidden.fg, Some(Color::Reset), "text in the colour of its background would be hidden");
    assert!(text(&app).contains("end") && !text(&app).contains("AAAA"), "{}", text(&app));
}

#[test]
fn a_task_is_shown_whole_on_the_whole_screen() {
    for size in SIZES {
        let mut app = watching(size);
        reply(&mut app, middle().stands());
        press(&mut app, "↓↓↓");
        let about = vec![
            ("error", "exit code 1".to_owned()),
            ("description", "# Break it\n\n- *one*\n- **two**\n\n> quoted words".to_owned()),
        ];
        let log = "only line\n".to_owned();
        let detail = TaskDetail { about, log_bytes: log.len() as u64, log, ..TaskDetail::default() };
        reply(&mut app, RunReply::TaskDetail(key(), id("breaks"), Box::new(detail)));
        press(&mut app, "f");
        check(&app, "run-focus");
        press(&mut app, "⎋");
        assert!(text(&app).contains("╭ Tasks"), "{}", text(&app));
    }
}

#[test]
fn no_error_is_cut() {
    let mut app = watching((60, 15));
    reply(&mut app, middle().stands());
    let long = format!("{} the end of it", "a long error with many words ".repeat(5));
    let error = ErrorMessage { what: long, hint: "do this".to_owned() };
    update(&mut app, Message::Reply(Reply::Note(error.note())));
    assert!(text(&app).contains("the end of it; do this"), "{}", text(&app));
    let mut gone = watching((60, 15));
    let what = format!("{} is damaged", "/a/long/path".repeat(9));
    let error = ErrorMessage { what, hint: "in a shell: `waypost doctor`".to_owned() };
    reply(&mut gone, RunReply::Snapshot(key(), Err(error)));
    assert!(text(&gone).contains("waypost doctor"), "{}", text(&gone));
}

#[test]
fn a_rejection_and_its_reason_stay_on_the_screen() {
    let mut story = Story::new(&Actor::agent("planner"));
    let mut app = watching((80, 24));
    reply(&mut app, story.stands());
    assert_eq!(press(&mut app, "R⏎"), [], "a rejection has words");
    assert!(app.dialog.is_some());
    press(&mut app, "⎋");
    story.write(&Actor::person("ada"), Command::Reject { reason: "too wide".to_owned() });
    reply(&mut app, story.stands());
    assert!(text(&app).contains("rejected: too wide"), "{}", text(&app));
}

#[test]
fn a_large_plan_shows_a_bounded_list_and_counts_the_rest() {
    let person = Actor::person("ada");
    let mut plan = Plan::blank(key().id);
    let create = |count: usize| Command::Create {
        draft: waypost_testkit::layered(count, 2, 10, 3).into(),
        approval_required: None,
    };
    let events = plan.decide(&person, at(0), &create(ROWS_MAX + 7)).unwrap();
    plan.advance(&events, at(0));
    let snapshot = PlanSnapshot::of(&plan, at(1), &|_, status| status.sign());
    assert_eq!((snapshot.rows.len(), snapshot.left_out), (ROWS_MAX, 7));
    let mut app = watching((80, 24));
    reply(&mut app, RunReply::Snapshot(key(), Ok(Box::new(snapshot))));
    update(&mut app, Message::Key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE)));
    assert!(text(&app).contains(&format!(" t{}", ROWS_MAX - 1)), "{}", text(&app));
    assert!(text(&app).contains("… and 7 more tasks"), "{}", text(&app));
}

fn versions(numbers: std::ops::RangeInclusive<u64>, current: u64, more: bool) -> Box<Versions> {
    let version = |number: u64| Version {
        number,
        at: at(number as i64),
        who: "person:ada".to_owned(),
        what: format!("added t{number}"),
        forgotten: false,
    };
    let rows = numbers.rev().map(version).collect();
    Box::new(Versions { title: "Rename a type everywhere".to_owned(), current, rows, more })
}

fn history_effects(effects: Vec<Effect>) -> Vec<HistoryEffect> {
    let history = |effect| match effect {
        Effect::History(effect) => Some(effect),
        _ => None,
    };
    effects.into_iter().filter_map(history).collect()
}

fn compared() -> Result<Box<Compared>, ErrorMessage> {
    let lines = vec![
        (Sign::New, "+ t9  do t9".to_owned()),
        (Sign::Gone, "- t3  do t3".to_owned()),
        (Sign::Changed, "~ title: 旧 → 新しい題名".to_owned()),
        (Sign::Around, "      as it was".to_owned()),
    ];
    Ok(Box::new(Compared { total: lines.len(), lines }))
}

#[test]
fn a_history_compares_any_two_versions_and_restores_one_as_a_new_version() {
    for size in SIZES {
        let (mut app, effects) = program(Screen::History(Box::new(History::new(key()))), size);
        assert_eq!(history_effects(effects), [HistoryEffect::Versions(key(), None)]);
        let effects =
            history_reply(&mut app, HistoryReply::Versions(key(), None, Ok(versions(1..=9, 9, false))));
        assert_eq!(history_effects(effects), [HistoryEffect::Compare(key(), 8, 9)]);
        history_reply(&mut app, HistoryReply::Compared(key(), (8, 9), compared()));
        check(&app, "history");
        // Marked: the others are compared with it, whichever is earlier.
        press(&mut app, "↓");
        history_reply(&mut app, HistoryReply::Compared(key(), (7, 8), compared()));
        press(&mut app, "m");
        assert_eq!(history_effects(press(&mut app, "↓↓")), [HistoryEffect::Compare(key(), 6, 8)]);
        history_reply(&mut app, HistoryReply::Compared(key(), (6, 8), compared()));
        assert!(text(&app).contains("from version 6 to 8"), "{}", text(&app));
        let preview = HistoryEffect::Preview { plan: key(), version: 6, known: 9 };
        assert_eq!(history_effects(press(&mut app, "v")), [preview]);
        let lost = RestorePreview {
            outputs_lost: vec![id("t1")],
            removed: vec![id("t1")],
            ..RestorePreview::default()
        };
        history_reply(&mut app, HistoryReply::Preview(key(), (6, 9), Ok(Box::new(lost))));
        assert!(text(&app).contains("Version 10 will be a copy of version 6"), "{}", text(&app));
        assert!(text(&app).contains("Results and outputs are lost: t1."), "{}", text(&app));
        // Somebody else writes: what was not shown is not replaced.
        history_reply(&mut app, HistoryReply::Versions(key(), None, Ok(versions(1..=10, 10, false))));
        let restore = HistoryEffect::Restore { plan: key(), version: 6, known: 9 };
        assert_eq!(history_effects(press(&mut app, "r")), [restore]);
        history_reply(&mut app, HistoryReply::Restored(key(), 6, Ok(11)));
        assert!(text(&app).contains("restored version 6 as version 11"), "{}", text(&app));
    }
}

#[test]
fn earlier_versions_are_read_when_they_are_wanted_and_new_ones_as_they_come() {
    let (mut app, _) = program(Screen::History(Box::new(History::new(key()))), (80, 24));
    history_reply(&mut app, HistoryReply::Versions(key(), None, Ok(versions(101..=300, 300, true))));
    history_reply(&mut app, HistoryReply::Compared(key(), (299, 300), compared()));
    let end = KeyEvent::new(KeyCode::End, KeyModifiers::NONE);
    let effects = update(&mut app, Message::Key(end));
    assert!(history_effects(effects).contains(&HistoryEffect::Versions(key(), Some(101))));
    history_reply(&mut app, HistoryReply::Versions(key(), Some(101), Ok(versions(1..=100, 300, false))));
    update(&mut app, Message::Key(end));
    assert!(text(&app).contains("v1 "), "{}", text(&app));
    let written = Message::Written { store: 0, plans: vec![(key().id, 301)] };
    assert_eq!(history_effects(update(&mut app, written)), [HistoryEffect::Versions(key(), None)]);
    history_reply(&mut app, HistoryReply::Versions(key(), None, Ok(versions(102..=301, 301, true))));
    assert!(text(&app).contains("v1 "), "the selection stays on its version: {}", text(&app));
}

#[test]
fn every_choice_of_a_question_is_seen_on_the_smallest_terminal() {
    let mut app = watching((60, 15));
    reply(&mut app, middle().stands());
    press(&mut app, "x");
    reply(&mut app, RunReply::Started(key(), Ok(Started::Runs)));
    for (keys, words) in
        [("⎋", ["keep running", "s stop", "b back"]), ("b\u{3}", ["w wait", "s stop and quit", "b back"])]
    {
        for character in keys.chars() {
            let key = match character {
                '\u{3}' => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                '⎋' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
                other => KeyEvent::new(KeyCode::Char(other), KeyModifiers::NONE),
            };
            update(&mut app, Message::Key(key));
        }
        let shown = text(&app);
        assert!(words.iter().all(|word| shown.contains(word)), "{words:?}:\n{shown}");
    }
}

/// A plan of two tasks that two clones changed without knowing of each other: the notes of one, and how the other ended.
fn disagreement() -> (Plan, Vec<MergeQuestion>) {
    let mut shared = Plan::blank(key().id);
    let mut draft = plan_of(["build", "sign"].map(|name| task(name, &[])));
    draft.spec.title = "Release".to_owned();
    let create = Command::Create { draft: std::sync::Arc::new(draft), approval_required: None };
    let ada = Actor::person("ada");
    shared.advance(&shared.decide(&ada, at(0), &create).unwrap(), at(0));
    let stamp = |name: &str, tag: &str, seconds: i64| Stamp {
        at: at(seconds),
        by: Actor::person(name),
        from: CloneTag::new(tag).unwrap(),
    };
    let mut set = OperationSet::new(key().id);
    for record in share(&set, &shared, &stamp("ada", "k7f", 0)).unwrap() {
        set.insert(ParsedRecord::Known(Box::new(record)));
    }
    let base = set.clone();
    let done = Outcome::Done { result: Some("all of it".to_owned()), output: None, evidence: None };
    let failed = Outcome::Failed { error: "no disk".to_owned(), evidence: None };
    let sides = [("ada", "k7f", "Use tokio", done), ("bob", "x9d", "Use async-std\nand smol", failed)];
    for (place, (name, tag, notes, outcome)) in (1..).zip(sides) {
        let changes = TaskChanges { notes: Some(notes.to_owned()), ..TaskChanges::default() };
        let revise = Command::ReviseTask { task: id("build"), changes: Box::new(changes) };
        let finish = Command::FinishTask { task: id("sign"), attempt: None, outcome, retry: None };
        let (mut known, mut before) = (base.clone(), shared.clone());
        for (number, command) in (0..).zip([revise, finish]) {
            let when = place * 10 + number;
            let events = before.decide(&Actor::person(name), at(when), &command).unwrap();
            let mut after = before.clone();
            after.advance(&events, at(when));
            for record in derive(&known, &before, &after, &events, &stamp(name, tag, when)).unwrap() {
                known.insert(ParsedRecord::Known(Box::new(record.clone())));
                set.insert(ParsedRecord::Known(Box::new(record)));
            }
            before = after;
        }
    }
    let merged = merge(&set);
    let request = merge_request(&set, &merged, &[]);
    let command = Command::Merge(Box::new(request));
    shared.advance(&shared.decide(&Actor::system("sync"), at(30), &command).unwrap(), at(30));
    let questions = (1..).zip(merged.conflicts);
    (
        shared,
        questions
            .map(|(number, conflict)| MergeQuestion { digest: format!("sha256:{number}"), conflict })
            .collect(),
    )
}

#[test]
fn what_clones_disagree_about_is_shown_with_both_values_and_answered_by_choice() {
    let (plan, questions) = disagreement();
    assert_eq!(questions.len(), 2, "{questions:?}");
    let snapshot =
        PlanSnapshot::of(&plan, at(40), &|_, status| status.sign()).with_conflicts(questions.clone(), 2);
    let shown = || RunReply::Snapshot(key(), Ok(Box::new(snapshot.clone())));
    for size in SIZES {
        let mut app = watching(size);
        reply(&mut app, shown());
        check(&app, "run-conflicts");
        press(&mut app, "Q");
        check(&app, "conflict-question");
    }
    // Coming from the list of plans, the first question opens by itself.
    let mut app = program(Screen::Run(Box::new(RunView::new(key(), Intent::Resolve))), (100, 30)).0;
    reply(&mut app, shown());
    let at_first = text(&app);
    assert!(at_first.contains("Clones disagree (1 of 2): build, notes"), "{at_first}");
    for words in
        ["person:ada", "clone k7f", "Use tokio", "person:bob", "clone x9d", "Use async-std", "and smol"]
    {
        assert!(at_first.contains(words), "{words}: {at_first}");
    }
    assert_eq!(press(&mut app, "⏎⏎"), [], "Enter twice by mistake answers nothing");
    let record = questions[0].conflict.versions[0].record.to_string();
    let taken = PlanAction::Resolve { choice: AnswerChoice::Take(record), seen: "sha256:1".to_owned() };
    assert_eq!(written(press(&mut app, "1")), [taken]);
    // The task that it is about opens its own question.
    reply(&mut app, shown());
    let row = snapshot.rows.iter().position(|row| row.id == id("sign")).unwrap();
    press(&mut app, &"↓".repeat(row));
    press(&mut app, "⏎");
    assert!(text(&app).contains("Clones disagree (2 of 2): sign, outcome"), "{}", text(&app));
    let options = text(&app);
    assert!(options.contains("Neither") && options.contains("the task is done again"), "{options}");
    let neither = PlanAction::Resolve { choice: AnswerChoice::Dismiss, seen: "sha256:2".to_owned() };
    assert_eq!(written(press(&mut app, "3")), [neither]);
    // A text of several lines is written in the editor, and comes back with what was read.
    reply(&mut app, shown());
    press(&mut app, "Q");
    let effects = press(&mut app, "3");
    let purpose = Purpose::Resolve(key(), "sha256:1".to_owned());
    let [Effect::EditText { purpose: asked, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(*asked, purpose);
    let edited = Reply::Edited { purpose, text: Ok(Some("both\n".to_owned())) };
    let text_taken =
        PlanAction::Resolve { choice: AnswerChoice::Text("both".to_owned()), seen: "sha256:1".to_owned() };
    assert_eq!(written(update(&mut app, Message::Reply(edited))), [text_taken]);
    // Later shows the next one.
    reply(&mut app, shown());
    press(&mut app, "Q4");
    assert!(text(&app).contains("Clones disagree (2 of 2)"), "{}", text(&app));
    press(&mut app, "⎋");
    // With nothing open, the key says so; in a dry run nothing is asked.
    reply(
        &mut app,
        RunReply::Snapshot(key(), Ok(Box::new(PlanSnapshot::of(&plan, at(40), &|_, status| status.sign())))),
    );
    press(&mut app, "Q");
    assert!(text(&app).contains("no question of a merge is open"), "{}", text(&app));
}

#[test]
fn the_details_of_a_task_have_its_labels_its_comments_and_its_commits() {
    let mut app = watching((100, 30));
    reply(&mut app, middle().stands());
    let task = id("choose");
    let detail = TaskDetail {
        remarks: vec!["assigned to person:bob".to_owned(), "labels: ui, urgent".to_owned()],
        about: vec![("description", "Choose".to_owned()), ("comments", "person:ada: not yet".to_owned())],
        ..TaskDetail::default()
    };
    reply(&mut app, RunReply::TaskDetail(key(), task.clone(), Box::new(detail)));
    assert!(
        text(&app).contains("assigned to person:bob") && text(&app).contains("labels: ui, urgent"),
        "{}",
        text(&app)
    );
    // The repository is searched only when the task has the whole screen.
    assert!(run_effects(press(&mut app, "f")).contains(&RunEffect::LoadCommits(key(), task.clone())));
    let commits =
        "3f9a1c20be  2026-11-16 10:02:11  Ada  Choose the name\nthe repository is shallow".to_owned();
    reply(&mut app, RunReply::Commits(key(), task, commits));
    let shown = text(&app);
    assert!(
        shown.contains("commits") && shown.contains("3f9a1c20be") && shown.contains("Choose the name"),
        "{shown}"
    );
    assert!(shown.contains("person:ada: not yet"), "{shown}");
}
