//! From a goal to a plan.

use super::*;
use crate::tmux::Tmux;

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
        let stage = Stage::playing([ScriptedReply::Say(text)]);
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
        ScriptedReply::Say(good[..good.len() / 2].to_owned()),
        ScriptedReply::SayCut(good[..good.len() / 3].to_owned()),
        ScriptedReply::Say("I would rather talk about something else.".to_owned()),
        ScriptedReply::Say(r#"{"goal": "g", "tasks": "three of them"}"#.to_owned()),
        ScriptedReply::Say(r#"{"goal": "g", "tasks": []}"#.to_owned()),
        ScriptedReply::Refuse("I cannot help with that".to_owned()),
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
    let stage = Stage::directed(|_| ScriptedReply::Say("No plan today, sorry.".to_owned()));
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
        ScriptedReply::status(429, "rate_limit", "slow down").with_header("retry-after", "0"),
        ScriptedReply::status(500, "server", "oops"),
        ScriptedReply::HalfClose(three().to_string()),
        ScriptedReply::Garbage,
        ScriptedReply::Nonsense("<html>".to_owned()),
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
        assert!(error["hint"].as_str().unwrap().contains("resumes from here"), "{shown}: {error}");
        assert_eq!(stage.does(&["list"])["total"], 0);
        stage.does(&["plan", GOAL]);
        assert_eq!(stage.server.asked(), 2, "{shown}");
    }
}

#[test]
fn a_model_that_hangs_or_never_stops_is_given_up_in_time() {
    let server = ModelServer::playing([ScriptedReply::Hang]);
    let stage = Stage::configured(server, "retries = 0\ntimeout_seconds = 1\n", "");
    let error = stage.fails(1, &["plan", GOAL]);
    assert!(["too_slow", "silent"].contains(&error["code"].as_str().unwrap()), "{error}");
    let server = ModelServer::playing([ScriptedReply::Endless]);
    let stage = Stage::configured(server, "retries = 0\ntimeout_seconds = 20\n", "");
    let error = stage.fails(1, &["plan", GOAL]);
    assert!(["too_much", "too_slow"].contains(&error["code"].as_str().unwrap()), "{error}");
    assert_eq!(stage.does(&["list"])["total"], 0);
}

#[test]
fn a_dry_run_saves_nothing_and_the_same_command_saves_what_was_shown() {
    let stage = Stage::playing([say(three())]);
    // In clido's spelling.
    let shown = stage.does(&["plan", GOAL, "--plan-dry-run", "--plan-no-edit"]);
    assert_eq!(shown["thinking"]["saved"], false);
    assert_eq!(shown["id"], Value::Null);
    assert!(!stage.workspace.work().join(".waypost/waypost.db").exists(), "not even a store is made");
    let saved = stage.does(&["plan", GOAL]);
    assert_eq!(saved["tasks"][1]["description"], shown["tasks"][1]["description"]);
    assert_eq!(stage.server.asked(), 1, "nobody was asked again");
    stage.tokens_are_true(&stage.only());
}

#[test]
#[ignore = "needs tmux"]
fn a_new_plan_is_opened_in_the_editor_unless_that_is_declined() {
    let stage = Stage::playing([say(three()), say(three()), say(three())]);
    let opened = stage.workspace.work().join("opened");
    fs::write(stage.workspace.work().join("editor"), "cat \"$1\" >> opened\n").unwrap();
    let tmux = Tmux::new(&stage.workspace, 120, 35);
    // A terminal on which nothing can be drawn, so that the person's own editor is opened.
    let plans = |words: &str, number: usize| {
        tmux.line(&format!("TERM=dumb EDITOR='sh editor' waypost plan {words}; echo ended-{number}-$?"));
        tmux.wait(&format!("ended-{number}-0"));
        fs::read_to_string(&opened).unwrap_or_default()
    };
    assert_eq!(plans("'A goal' --no-edit", 1), "");
    assert_eq!(plans("'The next goal' --plan-no-edit", 2), "");
    let plan = plans("'Another goal'", 3);
    assert!(plan.contains("## Tasks"), "{plan}");
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
#[ignore = "needs git"]
fn a_map_of_a_repository_runs_nothing_that_the_repository_names() {
    let stage = Stage::playing([say(three())]);
    let work = stage.workspace.work();
    fs::write(work.join("code.rs"), "fn main() {}").unwrap();
    let mark = stage.workspace.root.join("ran");
    for words in [
        &["init", "--quiet"][..],
        &["add", "code.rs"],
        &["config", "core.fsmonitor", &format!("touch {}", mark.display())],
    ] {
        assert!(stage.workspace.command("git").args(words).status().unwrap().success());
    }
    stage.does(&["plan", GOAL, "--map"]);
    assert!(told(&stage.server.seen()[0]).contains("code.rs"));
    assert!(!mark.exists(), "git ran it");
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
        _ => ScriptedReply::status(401, "invalid_api_key", "who are you?"),
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
    let bad = ScriptedReply::Say("nothing".to_owned());
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
fn a_replay_asks_no_model_whichever_one_is_named_and_whatever_may_be_spent() {
    let stage =
        Stage::configured(ModelServer::playing([say(three())]), "retries = 0\n", "cost_budget = 1.0\n");
    stage.does(&["plan", GOAL, "--record", "record.jsonl"]);
    let words = ["plan", GOAL, "--replay", "record.jsonl", "--cost", "0.000001", "--json"];
    let output = stage.command(&words).env("WAYPOST_MODEL", "scripted").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((stage.server.asked(), stage.does(&["list"])["total"].as_u64()), (1, Some(2)));
    stage.fails(2, &["plan", GOAL, "--replay", "record.jsonl", "--model", "scripted"]);
    let error = stage.fails(5, &["plan", GOAL, "--replay", "nowhere.jsonl"]);
    assert!(error["hint"].as_str().unwrap().contains("read"), "{error}");
}

#[test]
fn where_a_record_goes_is_looked_at_before_anybody_is_paid() {
    let stage = Stage::playing([say(three()), say(three())]);
    let file = stage.workspace.work().join("letter.txt");
    fs::write(&file, "Dear Ada").unwrap();
    stage.fails(5, &["plan", GOAL, "--record", "nowhere/record.jsonl"]);
    stage.fails(1, &["plan", GOAL, "--record", "."]);
    let error = stage.fails(1, &["decompose", MACHINE, "--record", "letter.txt"]);
    assert!(error["message"].as_str().unwrap().contains("letter.txt already exists"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "Dear Ada");
    assert_eq!((stage.server.asked(), stage.does(&["list", "--all"])["total"].as_u64()), (0, Some(0)));
    for _older_record in 0..2 {
        stage.does(&["plan", GOAL, "--record", "record.jsonl"]);
    }
    stage.does(&["plan", GOAL, "--replay", "record.jsonl"]);
}

#[test]
fn a_plan_is_saved_though_its_record_cannot_be_written() {
    let workspace = std::sync::Arc::new(std::sync::Mutex::new(std::path::PathBuf::new()));
    let folder = std::sync::Arc::clone(&workspace);
    let stage = Stage::directed(move |_| {
        // Somebody takes the folder away while the model thinks.
        fs::remove_dir(folder.lock().unwrap().join("records")).unwrap();
        say(three())
    });
    *workspace.lock().unwrap() = stage.workspace.work().to_owned();
    fs::create_dir(stage.workspace.work().join("records")).unwrap();
    let error = stage.fails(1, &["plan", GOAL, "--record", "records/record.jsonl"]);
    assert!(error["message"].as_str().unwrap().contains("all else is saved"), "{error}");
    assert_eq!(stage.plan(&stage.only()).len(), 3);
}

#[test]
fn a_plan_that_was_written_before_is_not_said_to_be_saved_again() {
    let stage = Stage::playing([say(three())]);
    stage.does(&["plan", GOAL]);
    let id = stage.only();
    let version = stage.plan(&id).version();
    let output = stage.run(&["continue", &id]);
    let shown = said(&output);
    assert!(
        output.status.success() && shown.contains("was written before") && !shown.contains("saved as plan")
    );
    assert_eq!(stage.does(&["continue", &id])["version"], version);
    stage.does(&["archive", &id]);
    assert_eq!(stage.fails(1, &["continue", &id])["code"], "gone");
}

#[test]
fn one_bad_order_or_journal_keeps_nobody_from_the_others() {
    let stage = Stage::directed(|seen| match purpose(seen).as_str() {
        "generate" => say(three()),
        _ => machine(seen),
    });
    stage.fails(1, &["decompose", MACHINE, "--max-calls", "3"]);
    let id = stage.only();
    let planning = stage.workspace.work().join(".waypost/planning");
    fs::write(planning.join("zzbroken.json"), "{\"plan\":").unwrap();
    fs::write(planning.join("zzbroken.jsonl"), "no line\n").unwrap();
    let saved = stage.does(&["plan", GOAL]);
    assert!(saved["notes"].to_string().contains("zzbroken.json"), "{saved}");
    let named = stage.does(&["continue", &id, "--step", "--max-calls", "1000"]);
    assert!(!named.to_string().contains("zzbroken"), "{named}");
    let latest = stage.does(&["continue"]);
    assert!(latest["id"] == id.as_str() && latest["notes"].to_string().contains("zzbroken.json"), "{latest}");
    let error = stage.fails(1, &["continue"]);
    assert!(error["hint"].as_str().unwrap().contains("goal, files, limits"), "{error}");
    stage.fails(1, &["continue", "zzbroken"]);
    let output = stage.run(&["cost", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let counted: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counted["plans"].as_array().unwrap().len(), 2, "{counted}");
    assert!(counted["left_out"][0].as_str().unwrap().contains("zzbroken.jsonl:1"), "{counted}");
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

#[test]
fn no_key_gets_from_a_model_or_a_file_into_a_plan_or_a_journal() {
    let (key, other) = ("FILEKEY-abcdef-very-private", "sk-proj-abcdefgh0123456789zz");
    let mut loose = three();
    loose["tasks"][0]["description"] = format!("log in with {key}").into();
    let stage = Stage::playing([say(loose)]);
    let work = stage.workspace.work();
    // Keys stand in nobody's configuration but the user's own.
    let own = work.parent().unwrap().join("home/.config/waypost");
    fs::create_dir_all(&own).unwrap();
    let (url, file) = (stage.server.openai(), own.join("key.txt"));
    let model = format!(
        "[models.keyed]\napi = \"openai\"\nbase_url = {url:?}\nmodel = \"m\"\nkey = {{ file = {file:?} }}\n"
    );
    fs::write(own.join("config.toml"), model).unwrap();
    fs::write(file, format!("{key}\n")).unwrap();
    fs::write(work.join(".env"), format!("OPENAI={other}\nOURS={key}\nPORT=80\n")).unwrap();
    let output = stage.run(&["plan", GOAL, "--no-edit", "--file", ".env", "--model", "keyed"]);
    let shown = said(&output);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("log in with [secret]"), "{shown}");
    assert!(shown.contains(".env holds secrets"), "{shown}");
    let (mut read, mut asked) = (0, false);
    let mut folders = vec![work.join(".waypost")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            let has = |what: &str| bytes.windows(what.len()).any(|window| window == what.as_bytes());
            assert!(!has(key) && !has(other), "{}", entry.path().display());
            asked |= has("PORT=80");
            read += 1;
        }
    }
    assert!(read >= 3 && asked, "{read} files were looked at");
}
