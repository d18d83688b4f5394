//! What thinking may cost, in calls, tokens, money and time, whatever goes wrong on the way.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// A server that closes every answer in its middle.
fn breaking_off() -> ModelServer {
    ModelServer::directed(|_| ScriptedReply::HalfClose(three().to_string()))
}

#[test]
fn calls_that_break_off_are_counted_and_charged_and_bounds_hold_for_each_of_them() {
    let stage = Stage::configured(breaking_off(), "retries = 2\n", "");
    let error = stage.fails(1, &["decompose", MACHINE, "--max-calls", "1"]);
    assert_eq!(error["bound"], "max_calls", "{error}");
    assert_eq!(stage.server.asked(), 1, "asking again is one more call");
    let id = stage.only();
    let used = stage.tokens_are_true(&id);
    assert!(used > 0, "what broke off was paid for");
    let cost = stage.does(&["cost", &id]);
    assert_eq!((cost["calls"].as_u64(), cost["failed_calls"].as_u64()), (Some(1), Some(1)), "{cost}");
    assert_ne!(cost["cost"], "0.000000");
    stage.fails(1, &["continue"]);
    assert_eq!(stage.server.asked(), 1, "and a new process knows of it");
    let budget = (2 * used + 300).to_string();
    let error = stage.fails(1, &["continue", "--max-calls", "100", "--budget", &budget]);
    assert_eq!(error["bound"], "token_budget", "{error}");
    assert!(stage.server.asked() <= 3, "{}", stage.server.asked());
    assert!(stage.tokens_are_true(&id) <= 2 * used + 300 + used);
}

#[test]
fn each_attempt_at_a_plan_is_a_call() {
    let busy = || ScriptedReply::status(429, "rate_limit", "slow down").with_header("retry-after", "0");
    for play in [busy(), ScriptedReply::HalfClose(three().to_string())] {
        let server = ModelServer::playing([play.clone(), play.clone(), say(three())]);
        let stage = Stage::configured(server, "retries = 5\n", "");
        let error = stage.fails(1, &["plan", GOAL, "--max-calls", "2"]);
        assert_eq!((error["bound"].as_str(), stage.server.asked()), (Some("max_calls"), 2), "{play:?}");
        stage.does(&["plan", GOAL, "--max-calls", "3"]);
        assert_eq!(stage.server.asked(), 3, "{play:?}");
        let id = stage.only();
        stage.tokens_are_true(&id);
        let failed = stage.journal(&id).iter().filter(|line| line["kind"] == "failed").count();
        assert_eq!(failed, 2, "{play:?}");
    }
}

#[test]
fn after_a_signal_nothing_new_is_asked_and_no_wait_is_waited_out() {
    for words in [&["plan", GOAL], &["decompose", MACHINE]] {
        let busy = ScriptedReply::status(429, "busy", "later").with_header("retry-after", "100");
        let server = ModelServer::directed(move |_| busy.clone());
        let stage = Stage::configured(server, "retries = 3\n", "");
        let mut child = stage.begins(words);
        until("it asks", || stage.server.asked() == 1);
        // The wait is told in the journal before it begins.
        let told = || {
            let files = fs::read_dir(stage.workspace.work().join(".waypost/planning")).unwrap();
            let mut texts = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
            texts.any(|text| text.contains("\"busy\""))
        };
        until("it waits", told);
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words:?}");
        assert_eq!(stage.server.asked(), 1, "{words:?}");
    }
}

#[test]
fn the_time_that_was_said_ends_calls_and_waits() {
    for words in [&["plan", GOAL], &["decompose", MACHINE]] {
        let stage = Stage::configured(ModelServer::playing([ScriptedReply::Hang]), "retries = 3\n", "");
        let error = stage.fails(1, &[words.as_slice(), &["--time", "1s"]].concat());
        assert_eq!((error["code"].as_str(), error["bound"].as_str()), (Some("bound"), Some("seconds")));
        assert!(error["hint"].as_str().unwrap().contains("--time"), "{error}");
        let busy = ScriptedReply::status(429, "busy", "later").with_header("retry-after", "100");
        let stage = Stage::configured(ModelServer::playing([busy]), "retries = 3\n", "");
        let error = stage.fails(1, &[words.as_slice(), &["--time", "1s"]].concat());
        assert_eq!((error["code"].as_str(), stage.server.asked()), (Some("busy"), 1), "{error}");
    }
}

#[test]
fn a_plan_cannot_raise_what_the_operator_allows() {
    let stage = Stage::configured(ModelServer::directed(machine), "retries = 0\n", "token_budget = 3000\n");
    let plan = json!({ "title": "Spends", "token_budget": 100_000_000, "tasks": [{ "id": "goal", "description": MACHINE }] });
    let file = stage.workspace.work().join("plan.json");
    fs::write(&file, plan.to_string()).unwrap();
    stage.does(&["import", "plan.json"]);
    let id = stage.only();
    assert_eq!(stage.plan(&id).spec().token_budget, Some(100_000_000));
    let error = stage.fails(1, &["decompose", &id]);
    assert_eq!(error["bound"], "token_budget", "{error}");
    assert!(stage.tokens_are_true(&id) <= 3000);
    let error = stage.fails(1, &["continue", &id]);
    assert_eq!(error["bound"], "token_budget", "{error}");
    // A person who says so may.
    let used = stage.tokens_are_true(&id);
    let error = stage.fails(1, &["continue", &id, "--budget", "5000"]);
    assert_eq!(error["bound"], "token_budget", "{error}");
    let more = stage.tokens_are_true(&id);
    assert!(more > used.max(3000) && more <= 5000, "{used} and then {more}");
    // But only for that command.
    stage.fails(1, &["continue", &id]);
    assert_eq!(stage.tokens_are_true(&id), more);
    let answer = stage.does(&["continue", &id, "--budget", "1000000"]);
    assert_eq!(answer["ending"], "over");
}

#[test]
fn answers_that_are_always_cut_off_are_told_as_such_and_never_saved() {
    let whole = three().to_string();
    let cut = whole[..whole.find("Test the logins").unwrap()].to_owned();
    let stage = Stage::directed(move |_| ScriptedReply::SayCut(cut.clone()));
    let error = stage.fails(4, &["plan", GOAL]);
    assert_eq!(stage.server.asked(), 3);
    let problem = error["problems"][0].as_str().unwrap();
    assert!(problem.contains("cut off") && problem.contains("after 2 whole tasks"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("max_tokens"), "{error}");
    assert!(told(&stage.server.seen()[1]).contains("cut off"), "the model is told as well");
    assert_eq!(stage.does(&["list", "--all"])["total"], 0);
}

#[test]
fn an_answer_may_be_as_long_as_the_configuration_says() {
    let server = ModelServer::playing([say(three())]);
    let stage = Stage::configured(server, "retries = 0\nmax_tokens = 20000\n", "");
    stage.does(&["plan", GOAL]);
    assert_eq!(stage.server.seen()[0].json()["max_tokens"], 20_000);
}
