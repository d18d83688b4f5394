//! From a goal to a plan.

use super::*;

#[test]
fn a_goal_becomes_a_draft_of_the_model() {
    let stage = Stage::playing([say(three())]);
    let answer = stage.does(&["plan", GOAL]);
    let id = stage.only();
    assert_eq!(answer["id"], id.as_str());
    assert_eq!(answer["thinking"]["saved"], true);
    let plan = stage.plan(&id);
    assert_eq!(plan.spec().goal, GOAL);
    assert_eq!(plan.state().created_by.as_ref().unwrap().to_string(), "agent:scripted");
    assert_eq!(plan.state().phase, waypost_core::Phase::Draft);
    let names: Vec<&str> = plan.tasks().map(|(task, _)| task.spec.id.as_str()).collect();
    assert_eq!(names, ["read", "add", "test"]);
    let add = &plan.task("add").unwrap().spec;
    assert_eq!((add.notes.as_str(), add.tools.clone()), ("pin it", Some(vec!["cargo".to_owned()])));
    assert!(stage.tokens_are_true(&id) > 0);
    assert_eq!(stage.server.asked(), 1);
}

#[test]
fn people_are_shown_the_plan_and_where_it_is() {
    let stage = Stage::playing([say(three())]);
    let output = stage.run(&["plan", GOAL]);
    let shown = said(&output);
    assert!(output.status.success(), "{shown}");
    let id = stage.only();
    for word in ["Read the session code", "← read", "saved as plan", &id, "1 call", "cost 0.000"] {
        assert!(shown.contains(word), "{word} is not in {shown}");
    }
}

#[test]
fn answers_that_can_be_understood_cost_one_call() {
    let good = three().to_string();
    let odd = [
        ("a fence", format!("```json\n{good}\n```")),
        ("prose around it", format!("Sure! Here is the plan:\n\n{good}\n\nTell me if you need more.")),
        ("thoughts before it", format!("<think>hm {{\"tasks\": []}}</think>{good}")),
        ("trailing commas", good.replace("]}", ",]}").replace(",,", ",")),
        ("a bare list", three()["tasks"].to_string()),
        ("numbers as ids", good.replace("\"read\"", "1").replace("\"add\"", "2").replace("\"test\"", "3")),
    ];
    for (name, text) in odd {
        let stage = Stage::playing([Play::Say(text)]);
        let answer = stage.does(&["plan", GOAL, "--no-edit"]);
        assert_eq!(answer["tasks"].as_array().unwrap().len(), 3, "{name}: {answer}");
        assert_eq!(stage.server.asked(), 1, "{name}");
        let repairs = answer["thinking"]["repairs"].as_object().unwrap();
        assert!(!repairs.is_empty(), "{name}: what was put right is told");
    }
}

#[test]
fn an_answer_with_problems_is_returned_with_all_of_them() {
    let bad = json!({ "goal": "g", "tasks": [
        { "id": "a", "description": "Write the parser", "depends_on": ["b", "ghost"] },
        { "id": "b", "description": "Write the lexer", "depends_on": ["a"] },
        { "id": "c", "description": GOAL, "depends_on": ["c"] },
    ] });
    let stage = Stage::playing([say(bad), say(three())]);
    let answer = stage.does(&["plan", GOAL]);
    assert_eq!(answer["thinking"]["returned"], 1);
    let seen = stage.server.seen();
    let again = told(&seen[1]);
    for word in ["ghost", "a → b → a", "restates the goal", "c"] {
        assert!(again.contains(word), "{word} is not in {again}");
    }
    assert_eq!(stage.server.asked(), 2);
    stage.tokens_are_true(&stage.only());
}

#[test]
fn broken_answers_are_returned_and_the_next_one_counts() {
    let good = three().to_string();
    for bad in [
        Play::Say(good[..good.len() / 2].to_owned()),
        Play::SayCut(good[..good.len() / 3].to_owned()),
        Play::Say("I would rather talk about something else.".to_owned()),
        Play::Say(r#"{"goal": "g", "tasks": "three of them"}"#.to_owned()),
        Play::Say(r#"{"goal": "g", "tasks": []}"#.to_owned()),
        Play::Refuse("I cannot help with that".to_owned()),
    ] {
        let shown = format!("{bad:?}");
        let stage = Stage::playing([bad, say(three())]);
        let answer = stage.does(&["plan", GOAL]);
        assert_eq!(answer["tasks"].as_array().unwrap().len(), 3, "{shown}");
        assert_eq!(stage.server.asked(), 2, "{shown}");
    }
}

#[test]
fn a_model_that_never_writes_a_plan_is_given_up_and_its_answers_are_kept() {
    let stage = Stage::directed(|_| Play::Say("No plan today, sorry.".to_owned()));
    let error = stage.fails(4, &["plan", GOAL]);
    assert_eq!(error["code"], "no_plan");
    assert!(!error["problems"].as_array().unwrap().is_empty());
    assert_eq!(stage.server.asked(), 3, "the first time and two repairs");
    let kept = fs::read_to_string(error["answers"].as_str().unwrap()).unwrap();
    assert_eq!(kept.matches("No plan today, sorry.").count(), 3);
    assert_eq!(stage.does(&["list", "--all"])["total"], 0, "nothing was saved");
    // What was paid for is counted all the same.
    assert_eq!(stage.does(&["cost"])["all"]["calls"], 3);
}

#[test]
fn servers_in_trouble_are_asked_again_or_reported() {
    let trouble = [
        Play::status(429, "rate_limit", "slow down").with_header("retry-after", "0"),
        Play::status(500, "server", "oops"),
        Play::HalfClose(three().to_string()),
        Play::Garbage,
        Play::Nonsense("<html>".to_owned()),
    ];
    for play in trouble {
        let shown = format!("{play:?}");
        let plays = [play.clone(), say(three())];
        let stage = Stage::configured(ModelServer::playing(plays), "retries = 1\n", "");
        stage.does(&["plan", GOAL]);
        assert_eq!(stage.server.asked(), 2, "{shown}");
        stage.tokens_are_true(&stage.only());
        let stage = Stage::playing([play, say(three())]);
        let error = stage.fails(1, &["plan", GOAL]);
        assert!(error["hint"].as_str().unwrap().contains("the same command goes on"), "{shown}: {error}");
        assert_eq!(stage.does(&["list"])["total"], 0);
        stage.does(&["plan", GOAL]);
        assert_eq!(stage.server.asked(), 2, "{shown}");
    }
}

#[test]
fn a_model_that_hangs_or_never_stops_is_given_up_in_time() {
    let server = ModelServer::playing([Play::Hang]);
    let stage = Stage::configured(server, "retries = 0\ntimeout_seconds = 1\n", "");
    let error = stage.fails(1, &["plan", GOAL]);
    assert!(["too_slow", "silent"].contains(&error["code"].as_str().unwrap()), "{error}");
    let server = ModelServer::playing([Play::Endless]);
    let stage = Stage::configured(server, "retries = 0\ntimeout_seconds = 20\n", "");
    let error = stage.fails(1, &["plan", GOAL]);
    assert!(["too_much", "too_slow"].contains(&error["code"].as_str().unwrap()), "{error}");
    assert_eq!(stage.does(&["list"])["total"], 0);
}

#[test]
fn a_dry_run_saves_nothing_and_the_same_command_saves_what_was_shown() {
    let stage = Stage::playing([say(three())]);
    let shown = stage.does(&["plan", GOAL, "--dry-run"]);
    assert_eq!(shown["thinking"]["saved"], false);
    assert_eq!(shown["id"], Value::Null);
    assert!(!stage.workspace.work().join(".waypost/waypost.db").exists(), "not even a store is made");
    let saved = stage.does(&["plan", GOAL]);
    assert_eq!(saved["tasks"][1]["description"], shown["tasks"][1]["description"]);
    assert_eq!(stage.server.asked(), 1, "nobody was asked again");
    stage.tokens_are_true(&stage.only());
}

#[test]
fn two_plans_for_one_goal_are_two_plans() {
    let stage = Stage::playing([say(three()), say(three())]);
    let first = stage.does(&["plan", GOAL]);
    let second = stage.does(&["plan", GOAL]);
    assert_ne!(first["id"], second["id"]);
    assert_eq!(stage.does(&["list"])["total"], 2);
}

#[test]
fn what_the_model_is_given_reaches_it_as_data() {
    let stage = Stage::playing([say(three())]);
    fs::write(stage.workspace.work().join("notes.md"), "the old code is in legacy/").unwrap();
    let mut command =
        stage.command(&["plan", "-", "--file", "notes.md", "--map", "--constraint", "no new crates"]);
    let mut child = command
        .args(["--max-tasks", "7", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"Refactor auth\n").unwrap();
    assert!(child.wait().unwrap().success());
    let told = told(&stage.server.seen()[0]);
    for word in ["Refactor auth", "the old code is in legacy/", "notes.md", "no new crates", "7"] {
        assert!(told.contains(word), "{word} is not in {told}");
    }
}

#[test]
fn a_budget_is_looked_at_before_a_call() {
    let stage = Stage::playing([say(three())]);
    let error = stage.fails(1, &["plan", GOAL, "--budget", "50"]);
    assert_eq!((error["code"].as_str(), error["bound"].as_str()), (Some("bound"), Some("token_budget")));
    let error = stage.fails(1, &["plan", GOAL, "--cost", "0.000001"]);
    assert_eq!(error["bound"], "cost_budget");
    assert_eq!(stage.server.asked(), 0);
}

/// A stage whose model does not let anybody in, so that a dear one is asked in its place.
fn with_a_dear_stand_in(prices: &str) -> Stage {
    let server = ModelServer::directed(|seen| match seen.json()["model"].as_str() {
        Some("dear") => say(three()),
        _ => Play::status(401, "invalid_api_key", "who are you?"),
    });
    let dear = format!(
        "retries = 0\n[models.dear]\napi = \"openai\"\nbase_url = {:?}\nmodel = \"dear\"\nretries = 0\n{prices}",
        server.openai()
    );
    Stage::configured(server, &dear, "planner = \"scripted\"\nfallback = [\"dear\"]\n")
}

#[test]
fn the_dearest_model_that_may_answer_is_what_a_budget_of_money_is_looked_at_with() {
    let stage = with_a_dear_stand_in("price_in = 1000.0\nprice_out = 1000.0\n");
    let error = stage.fails(1, &["plan", GOAL, "--cost", "0.01"]);
    assert_eq!((error["code"].as_str(), error["bound"].as_str()), (Some("bound"), Some("cost_budget")));
    assert_eq!(stage.server.asked(), 0, "nobody is asked whose stand-in could not be paid");
    stage.does(&["plan", GOAL, "--cost", "100"]);
    let cost = stage.does(&["cost", &stage.only()]);
    assert_eq!(cost["by_model"]["dear"]["cost"], cost["cost"]);
    assert_ne!(cost["cost"], "0.000000", "and it is paid at the price of the one who answered");
    let stage = with_a_dear_stand_in("");
    let error = stage.fails(1, &["plan", GOAL, "--cost", "100"]);
    assert!(error["message"].as_str().unwrap().contains("may be asked has no price"), "{error}");
    assert_eq!(stage.server.asked(), 0);
}

#[test]
fn a_record_can_be_replayed_without_a_model() {
    let bad = Play::Say("nothing".to_owned());
    let stage = Stage::playing([bad, say(three())]);
    let made = stage.does(&["plan", GOAL, "--record", "record.jsonl"]);
    let again = stage.does(&["plan", GOAL, "--replay", "record.jsonl"]);
    assert_eq!(stage.server.asked(), 2);
    assert_ne!(made["id"], again["id"]);
    for id in [&made["id"], &again["id"]] {
        let plan = stage.plan(id.as_str().unwrap());
        assert_eq!((plan.len(), plan.state().calls), (3, 2));
    }
    let error = stage.fails(1, &["plan", "Something else entirely", "--replay", "record.jsonl"]);
    assert_eq!(error["code"], "departed");
}

#[test]
fn an_agents_plan_is_its_own_and_a_model_cannot_approve() {
    let stage = Stage::playing([say(three())]);
    stage.does(&["plan", GOAL, "--as", "agent:robin"]);
    let plan = stage.plan(&stage.only());
    assert_eq!(plan.state().created_by.as_ref().unwrap().to_string(), "agent:robin");
    assert_eq!(plan.spec().owner, "robin");
    assert!(plan.state().approval.is_none());
}

#[test]
fn without_a_model_it_is_said_how_to_get_one() {
    let workspace = Workspace::new();
    let output = workspace.waypost(&["plan", GOAL]);
    assert_eq!(output.status.code(), Some(1));
    let shown = said(&output);
    assert!(shown.contains("OPENAI_API_KEY") && shown.contains("[models."), "{shown}");
}
