use waypost_core::{Complexity, validate};
use waypost_planner::generate::{INPUT_BYTES_MAX, TASKS_ASKED_MAX, TASKS_MAX};
use waypost_planner::{
    Context, Ended, Generate, Generated, GenerationFailed, PROBLEMS_TOLD_MAX, PlanBrief, Planned,
    PromptPolicy, Purpose, Repair, Speaker, TextPlans, Unwanted,
};

use crate::kit::{answer, said};

const GOAL: &str = "Refactor auth to JWT";
const GOOD: &str = r#"{"goal": "restated", "tasks": [
    {"id": "t1", "description": "Read the auth module", "depends_on": [], "complexity": "low", "notes": "", "tools": ["Read"]},
    {"id": "t2", "description": "Add the jwt crate", "depends_on": ["t1"], "complexity": "high", "notes": "HS256", "tools": null}]}"#;

fn conversation(wanted: PlanBrief) -> Generate {
    Generate::new(PromptPolicy::default(), wanted, "generate").unwrap()
}

#[track_caller]
fn planned(text: &str) -> Planned {
    match conversation(PlanBrief::new(GOAL)).interpret(&answer(text)) {
        Generated::Plan(planned) => *planned,
        other => panic!("{text} gave {other:?}"),
    }
}

#[track_caller]
fn problems(text: &str) -> Vec<String> {
    match conversation(PlanBrief::new(GOAL)).interpret(&answer(text)) {
        Generated::Again { problems } => problems,
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn a_good_answer_is_a_plan_with_the_words_of_whoever_asked() {
    let planned = planned(GOOD);
    assert_eq!((planned.repairs.as_slice(), planned.returned), (&[][..], 0));
    let draft = planned.draft;
    assert_eq!(draft.spec.goal, GOAL, "not the model's restatement");
    assert_eq!(draft.spec.title, GOAL);
    let second = &draft.tasks[1].spec;
    assert_eq!(second.description, "Add the jwt crate");
    assert_eq!(second.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["t1"]);
    assert_eq!(
        (second.complexity, second.notes.as_str(), &second.tools),
        (Some(Complexity::High), "HS256", &None)
    );
    assert_eq!(draft.tasks[0].spec.tools, Some(vec!["Read".to_owned()]));
    assert!(validate(&draft).is_empty());
}

#[test]
fn all_forms_of_a_plan_are_read() {
    let tasks = r#"[{"id":"t1","description":"Read it","depends_on":[]},{"id":"t2","description":"Write it","depends_on":["t1"]}]"#;
    let forms = [
        (format!("{{\"goal\":\"g\",\"tasks\":{tasks}}}"), vec![]),
        (
            format!("{{\"meta\":{{\"id\":\"x\",\"goal\":\"g\",\"created_at\":\"\"}},\"tasks\":{tasks}}}"),
            vec![],
        ),
        (tasks.to_owned(), vec![Repair::BareList]),
        (format!("{{\"plan\":{{\"goal\":\"g\",\"tasks\":{tasks}}}}}"), vec![Repair::Wrapped]),
        (format!("Sure!\n```JSON\n{{\"tasks\":{tasks}}}\n```"), vec![Repair::Fence, Repair::Prose]),
        (format!("{{\"steps\":{tasks}}}"), vec![Repair::OtherName]),
        (format!("<think>hm</think>{{\"tasks\":{tasks}"), vec![Repair::Thinking, Repair::Unclosed]),
    ];
    for (text, repairs) in forms {
        let planned = planned(&text);
        assert_eq!(planned.draft.tasks.len(), 2, "{text}");
        assert_eq!(planned.repairs, repairs, "{text}");
    }
}

#[test]
fn liberties_that_are_clear_are_taken_and_named() {
    let planned = planned(
        r#"{"tasks": [{"id": 1, "description": "Read it"}, {"id": 2, "description": "Write it", "depends_on": 1, "complexity": "MED"},
            {"description": "Test it", "depends_on": [2], "skip": "false"}]}"#,
    );
    let ids: Vec<&str> = planned.draft.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "t3"]);
    assert_eq!(planned.draft.tasks[1].spec.complexity, Some(Complexity::Medium));
    let mut repairs = planned.repairs;
    repairs.sort_unstable();
    assert_eq!(
        repairs,
        [Repair::NumberAsText, Repair::TextAsBoolean, Repair::ValueAsList, Repair::MissingId]
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems(
        r#"{"tasks": [
        {"id": "t1", "description": "Refactor the auth to JWT", "depends_on": ["t1"]},
        {"id": "t2", "description": "", "depends_on": ["t9"], "complexity": "huge"},
        {"id": "t3", "description": "Write it", "depends_on": ["t4"], "notes": 5},
        {"id": "t4", "description": "write it.", "depends_on": ["t3"], "notes": {}},
        {"id": "t4", "description": "Check it", "depends_on": {}},
        7]}"#,
    );
    let has = |text: &str| assert!(found.iter().any(|one| one.contains(text)), "{text} is not in {found:#?}");
    has("task t1: it restates the goal");
    has("task t1: depends on itself");
    has("task t2: the description is empty");
    has("task t2: depends on unknown task t9");
    has("task t2: complexity must be");
    has("task t4: it says the same as task t3");
    has("task t4: `notes` must be a text, not an object");
    has("task t4: `depends_on` must be a list of texts, not an object");
    has("task t4: another task has the same id");
    has("task number 6 must be an object, not a number");
}

#[test]
fn a_cycle_is_told_with_its_path() {
    let found = problems(
        r#"{"tasks": [{"id": "a", "description": "One thing", "depends_on": ["b"]},
            {"id": "b", "description": "Another thing", "depends_on": ["a"]}]}"#,
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("a → b → a") || found[0].contains("b → a → b"), "{found:?}");
}

#[test]
fn a_single_task_that_is_the_goal_is_no_plan() {
    let one = |text: &str| problems(&format!(r#"{{"tasks": [{{"id": "t1", "description": "{text}"}}]}}"#));
    assert!(one("Refactor the auth to JWT.")[0].contains("is not a plan"));
    assert!(one("Read the module")[0].contains("only one task"));
    assert!(problems(r#"{"tasks": []}"#)[0].contains("no tasks"));
    assert!(problems(r#"{"goal": "x"}"#)[0].contains("`tasks` is missing"));
    assert!(problems(r#"{"tasks": "none"}"#)[0].contains("must be a list"));
    assert!(problems("")[0].contains("empty"));
}

#[test]
fn tasks_are_bounded_at_what_was_asked_for() {
    let of = |count: usize| {
        let tasks: Vec<String> = (1..=count)
            .map(|n| format!(r#"{{"id": "t{n}", "description": "Do part number {n} of it"}}"#))
            .collect();
        format!("{{\"tasks\": [{}]}}", tasks.join(","))
    };
    assert_eq!(planned(&of(TASKS_MAX)).draft.tasks.len(), TASKS_MAX);
    let found = problems(&of(TASKS_MAX + 1));
    assert!(found[0].contains("21 tasks, over the limit of 20"), "{found:?}");
    let with = |tasks_max| {
        Generate::new(PromptPolicy::default(), PlanBrief { tasks_max, ..PlanBrief::new(GOAL) }, "g")
    };
    assert!(with(TASKS_ASKED_MAX).is_ok());
    assert_eq!(with(TASKS_ASKED_MAX + 1).unwrap_err(), Unwanted::TasksMax(TASKS_ASKED_MAX + 1));
    assert_eq!(with(1).unwrap_err(), Unwanted::TasksMax(1));
    let with = |map: usize| {
        Generate::new(
            PromptPolicy::default(),
            PlanBrief { map: "x".repeat(map), ..PlanBrief::new("goal") },
            "g",
        )
    };
    assert!(with(INPUT_BYTES_MAX - 4).is_ok());
    assert_eq!(with(INPUT_BYTES_MAX - 3).unwrap_err(), Unwanted::TooMuchToRead(INPUT_BYTES_MAX + 1));
    let empty = Generate::new(PromptPolicy::default(), PlanBrief::new(" \n"), "g");
    assert_eq!(empty.unwrap_err(), Unwanted::NoGoal);
}

#[test]
fn an_answer_that_cannot_be_used_is_returned_with_everything_that_is_wrong() {
    let mut conversation = conversation(PlanBrief::new(GOAL));
    let first = conversation.next().unwrap().clone();
    assert_eq!(
        (first.slot.as_str(), first.purpose, first.prompt.as_str()),
        ("generate", Purpose::Generate, "generate/1")
    );
    let bad = r#"{"tasks": [{"id": "t1", "description": "A", "depends_on": ["x"]}, {"id": "t2", "description": "B", "depends_on": ["t2"]}]}"#;
    let Generated::Again { problems } = conversation.interpret(&answer(bad)) else { panic!("it was taken") };
    let again = conversation.next().unwrap().clone();
    assert_eq!(again.slot, "generate/2");
    assert_eq!(again.turns.len(), 3);
    assert_eq!(again.turns[0], first.turns[0]);
    assert_eq!((again.turns[1].by, again.turns[1].text.as_str()), (Speaker::Assistant, bad));
    for problem in &problems {
        assert!(said(&again).contains(problem), "{problem}");
    }
    assert_eq!(problems.len(), 2);
    let Generated::Plan(planned) = conversation.interpret(&answer(GOOD)) else { panic!("it was not taken") };
    assert_eq!(planned.returned, 1);
    assert_eq!(conversation.next(), None);
}

#[test]
fn after_the_last_repair_it_is_given_up_with_all_answers_kept() {
    let mut conversation = conversation(PlanBrief::new(GOAL));
    let texts = ["no", "{\"tasks\": []}", ""];
    for (place, text) in texts.iter().enumerate() {
        assert_eq!(conversation.next().unwrap().turns.len(), if place == 0 { 1 } else { 3 });
        match conversation.interpret(&answer(text)) {
            Generated::Again { .. } => assert!(place < 2),
            Generated::GaveUp(GenerationFailed { problems, answers, .. }) => {
                assert_eq!((place, answers), (2, texts.map(str::to_owned).to_vec()));
                assert_eq!(problems, ["the answer is empty"]);
            }
            Generated::Plan(planned) => panic!("{planned:?}"),
        }
    }
    assert_eq!(conversation.next(), None);
}

#[test]
fn a_plan_that_broke_off_is_asked_for_again_and_never_taken() {
    let cut = r#"{"goal": "g", "tasks": [{"id": "t1", "description": "Read it", "depends_on": []},
        {"id": "t2", "description": "Write it", "depends_on": ["t1"]}, {"id": "t3", "descr"#;
    let mut conversation = conversation(PlanBrief::new(GOAL));
    for _ in 0..2 {
        let Generated::Again { problems } = conversation.interpret(&answer(cut)) else {
            panic!("it was taken")
        };
        assert!(problems[0].contains("broke off after 2 whole tasks"), "{problems:?}");
    }
    let Generated::GaveUp(gave_up) = conversation.interpret(&answer(cut)) else { panic!("it was taken") };
    assert!(
        gave_up.broke_off && gave_up.problems[0].contains("broke off after 2 whole tasks"),
        "{gave_up:?}"
    );
}

#[test]
fn that_an_answer_was_cut_off_is_told_before_everything_else() {
    let texts = [
        (r#"{"tasks": [{"id": "t1", "description": "Read it"}, {"id": "t2", "descr"#, "only one task"),
        (r#"{"tasks": [{"id": "t1", "description": "Read it"}"#, "only one task"),
        (r#"{"tasks": [{"id": "t1", "description": "Read it", "depends_on": ["t9"]}]}"#, "unknown task t9"),
    ];
    for (text, also) in texts {
        let mut conversation = conversation(PlanBrief::new(GOAL));
        let mut cut = answer(text);
        cut.ended = Ended::Cut;
        let Generated::Again { problems } = conversation.interpret(&cut) else { panic!("{text} was taken") };
        assert!(problems[0].contains("cut off") && problems[0].contains("max_tokens"), "{problems:?}");
        assert!(problems.iter().any(|problem| problem.contains(also)), "{problems:?}");
        assert!(said(conversation.next().unwrap()).contains(&problems[0]), "and the model is told");
    }
    let mut whole = answer(GOOD);
    whole.ended = Ended::Cut;
    let heard = conversation(PlanBrief::new(GOAL)).interpret(&whole);
    assert!(matches!(heard, Generated::Plan(_)), "what was cut off after its end is whole: {heard:?}");
    let mut prose = answer("1. Read the module\n2. Write the code\n3. Test");
    prose.ended = Ended::Cut;
    let wanted = PlanBrief { text_plans: TextPlans::Taken, ..PlanBrief::new(GOAL) };
    assert!(matches!(conversation(wanted).interpret(&prose), Generated::Again { .. }));
}

#[test]
fn an_answer_that_was_cut_or_refused_is_told_so() {
    for (ended, word) in [(Ended::Cut, "cut off at the most tokens"), (Ended::Refused, "declined")] {
        let mut conversation = conversation(PlanBrief::new(GOAL));
        let mut bad = answer("I would");
        bad.ended = ended;
        let Generated::Again { problems } = conversation.interpret(&bad) else { panic!("it was taken") };
        assert!(problems[0].contains(word), "{problems:?}");
    }
}

#[test]
fn a_plan_in_prose_is_taken_only_where_somebody_asked_for_it() {
    let text = "Here is the plan:\n1. Read the module\n2. **Write the code**\n   - in Rust\n3) Test it";
    assert_eq!(problems(text), ["no readable JSON was found in the reply"]);
    let wanted = PlanBrief { text_plans: TextPlans::Taken, ..PlanBrief::new(GOAL) };
    let Generated::Plan(planned) = conversation(wanted.clone()).interpret(&answer(text)) else {
        panic!("it was not taken")
    };
    assert_eq!(planned.repairs, [Repair::TextPlan]);
    let tasks: Vec<String> = planned
        .draft
        .tasks
        .iter()
        .map(|task| format!("{} {} {:?}", task.spec.id, task.spec.description, task.spec.depends_on.len()))
        .collect();
    assert_eq!(tasks, ["t1 Read the module 0", "t2 Write the code 1", "t3 Test it 1"]);
    assert_eq!(planned.draft.tasks[1].spec.notes, "- in Rust");
    let other = conversation(wanted).interpret(&answer("I cannot."));
    assert!(matches!(other, Generated::Again { .. }), "{other:?}");
}

#[test]
fn the_prompt_holds_goal_context_constraints_and_limits() {
    let wanted = PlanBrief {
        context: vec![Context { name: "src/auth.rs".into(), text: "fn login() {}".into() }],
        map: "src/\n  auth.rs".into(),
        constraints: vec!["no new crates".into()],
        tasks_max: 7,
        ..PlanBrief::new(GOAL)
    };
    let conversation = conversation(wanted);
    let prompt = said(conversation.next().unwrap());
    for text in [
        "<data name=\"goal\">\nRefactor auth to JWT\n</data>",
        "<data name=\"src/auth.rs\">\nfn login() {}\n</data>",
        "- no new crates",
        "What the project has:",
        "Between 2 and 7 tasks",
    ] {
        assert!(prompt.contains(text), "{text} is not in {prompt}");
    }
    assert!(!prompt.contains("{{"), "{prompt}");
    assert!(!prompt.contains("\n\n\n"), "{prompt}");
}

#[test]
fn more_problems_than_a_model_is_told_of_are_counted() {
    let tasks: Vec<String> = (0..PROBLEMS_TOLD_MAX + 5).map(|_| "1".to_owned()).collect();
    let wanted = PlanBrief { tasks_max: TASKS_ASKED_MAX, ..PlanBrief::new(GOAL) };
    let mut conversation = conversation(wanted);
    let Generated::Again { problems } =
        conversation.interpret(&answer(&format!("{{\"tasks\": [{}]}}", tasks.join(","))))
    else {
        panic!("it was taken")
    };
    let told = said(conversation.next().unwrap());
    assert!(problems.len() > PROBLEMS_TOLD_MAX);
    assert!(told.contains(&format!("- and {} more", problems.len() - PROBLEMS_TOLD_MAX)), "{told}");
}
