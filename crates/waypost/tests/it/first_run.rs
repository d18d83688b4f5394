//! What a newcomer meets: the demo, the example, a plan that nothing here can run, and what a shell completes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use waypost_core::Phase;

use crate::examples::stored;
use crate::run::{configure, text};
use crate::tmux::Tmux;
use crate::transcript::Workspace;

fn ok(output: &Output) -> (String, String) {
    let (out, err) = text(output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    (out, err)
}

#[test]
fn a_plan_without_an_executor_says_how_to_give_it_one_and_then_runs() {
    let workspace = Workspace::new();
    ok(&workspace.waypost(&["new", "Move", "--id", "move", "--task", "Read", "--task", "Write"]));
    let output = workspace.at_terminal(&["run", "move"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("error: no task of plan move names an executor"), "{err}");
    assert!(err.contains("waypost run move --executor claude"), "{err}");
    assert!(!err.contains("running plan"), "{err}");
    assert_eq!(stored(&workspace, "move").state().phase, Phase::Draft, "nothing could run, so nothing began");
    // The three lines are a configuration with that executor.
    let lines: Vec<&str> = err
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with("[executors."))
        .take_while(|line| line.starts_with('[') || line.contains(" = "))
        .collect();
    assert_eq!(lines.len(), 3, "{err}");
    let failure = || {
        let output = workspace.waypost(&["run", "move", "--json"]);
        let said: serde_json::Value = serde_json::from_str(text(&output).1.lines().last().unwrap()).unwrap();
        assert_eq!(said["error"]["code"], "no_executor", "{said}");
        said["error"].clone()
    };
    assert_eq!(failure()["configuration"], lines.join("\n"));
    configure(&workspace, &lines.join("\n"));
    let (out, _) = ok(&workspace.waypost(&["run", "move", "--dry-run", "--executor", "claude"]));
    assert!(out.contains("claude"), "{out}");
    assert!(failure()["hint"].as_str().unwrap().contains("--executor claude"));
    assert_eq!(failure()["executors"], serde_json::json!(["claude"]));
    // What somebody has claimed by hand is nothing that a run could wait for.
    ok(&workspace.waypost(&["next", "move", "--claim"]));
    assert_eq!(failure()["executors"], serde_json::json!(["claude"]));
}

#[test]
fn the_example_writes_an_executor_and_a_plan_and_the_commands_that_it_prints_work() {
    for terminal in ["yes", ""] {
        let workspace = Workspace::new();
        let shell = |line: &str| {
            let mut command = workspace.command("sh");
            command.env("WAYPOST_INJECTED_TERMINAL", terminal).args(["-c", line]).output().unwrap()
        };
        let (out, _) = ok(&shell("waypost init --example"));
        let commands: Vec<&str> = out.lines().skip_while(|line| *line != "next:").skip(1).collect();
        assert_eq!(commands.len(), 2, "{out}");
        for command in &commands {
            ok(&shell(command));
        }
        assert_eq!(stored(&workspace, "example").state().phase, Phase::Completed);
        assert!(!workspace.work().join("AGENTS.md").exists(), "no host was asked for");
        let (out, _) = ok(&shell("waypost init --example --json"));
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["changed"], false, "{answer}");
    }
}

#[test]
fn the_example_is_run_from_where_it_was_written_for() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.work().join(".git")).unwrap();
    fs::create_dir_all(workspace.work().join("a/b")).unwrap();
    let shell =
        |line: &str| workspace.command("sh").arg("-c").arg(format!("cd a/b && {line}")).output().unwrap();
    let (out, _) = ok(&shell("waypost init --example"));
    let next: Vec<&str> = out.split("next:\n").nth(1).unwrap().lines().map(str::trim).collect();
    assert!(next[0].starts_with("waypost run ../../example-plan.json --dry-run"), "{out}");
    next.iter().for_each(|line| drop(ok(&shell(line))));

    // A plan that somebody wrote before is not the example's.
    let workspace = Workspace::new();
    fs::write(workspace.work().join("example-plan.json"), "{\"mine\":1}").unwrap();
    let (out, err) = ok(&workspace.waypost(&["init", "--example"]));
    assert!(
        !out.contains("next:") && err.contains("example-plan.json: it is not the example's plan"),
        "{out}{err}"
    );
}

#[test]
fn the_example_is_shown_in_the_form_that_fits_an_inline_table() {
    let workspace = Workspace::new();
    let file = workspace.work().join(".waypost/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "executors = { mine = { kind = \"noop\" } }\n").unwrap();
    let output = workspace.waypost(&["init", "--example"]);
    let (out, _) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("its \"executors\" is an inline table; put this into it yourself"), "{out}");
    let shown = out.lines().find(|line| line.starts_with("echo = {")).unwrap();
    fs::write(&file, format!("executors = {{ mine = {{ kind = \"noop\" }}, {shown} }}\n")).unwrap();
    ok(&workspace.waypost(&["run", "example-plan.json", "--config", ".waypost/config.toml"]));
}

#[test]
fn a_plan_says_what_each_open_task_waits_for_and_who_holds_it() {
    let workspace = Workspace::new();
    let why = |words: &[&str]| ok(&workspace.waypost(&[&["why"], words].concat())).0;
    ok(&workspace.waypost(&["new", "Move", "--id", "move"]));
    assert_eq!(why(&["move"]), "plan move has no open tasks\n");
    let task = |words: &[&str]| ok(&workspace.waypost(&[&["task", "add", "move"], words].concat()));
    for words in
        [&["Read"][..], &["Write"], &["Check", "--depends-on", "t1", "--depends-on", "t2"], &["Rest"]]
    {
        task(words);
    }
    ok(&workspace.waypost(&["done", "move", "t4"]));
    ok(&workspace.waypost(&["next", "move", "--claim", "--as", "agent:codex"]));
    let waits = "t1 (running, agent:codex), t2 (ready)";
    let lines = why(&["move"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("t1  running  agent:codex, who works on it"), "{lines:?}");
    assert_eq!(lines[1], "t2  ready    `waypost next move --claim`");
    assert_eq!(lines[2], format!("t3  blocked  {waits}"));
    assert_eq!(why(&["move", "t3"]), format!("t3 is blocked, and waits for:\n  {waits}\n"));
    let answer: serde_json::Value = serde_json::from_str(&why(&["move", "--json"])).unwrap();
    assert_eq!((&answer["id"], &answer["total"]), (&"move".into(), &3.into()), "{answer}");
    assert_eq!(answer["tasks"][2]["waits_for"][0]["message"], waits);
}

#[test]
fn what_a_person_rejected_is_found() {
    let workspace = Workspace::new();
    let plan =
        r#"{"id":"move","title":"Move","tasks":[{"id":"a","description":"A","work":{"executor":"noop"}}]}"#;
    fs::write(workspace.work().join("plan.json"), plan).unwrap();
    ok(&workspace.waypost(&["import", "plan.json", "--as", "agent:robin"]));
    ok(&workspace.waypost(&["new", "Other", "--id", "other"]));
    ok(&workspace.waypost(&["request-approval", "move", "--as", "agent:robin"]));
    ok(&workspace.at_terminal(&["reject", "move", "--reason", "tests first"]));
    let (out, _) = ok(&workspace.waypost(&[]));
    assert!(out.contains("\nrejected") || out.starts_with("rejected"), "{out}");
    assert!(out.contains("person:ada rejected it (\"tests first\")  waypost show move"), "{out}");
    let status: serde_json::Value =
        serde_json::from_str(&ok(&workspace.waypost(&["status", "--json"])).0).unwrap();
    assert_eq!(status["rejected"][0]["plan"]["id"], "move", "{status}");
    assert_eq!(ok(&workspace.waypost(&["status", "--line"])).0, "", "nothing of it is open");
    let (out, _) = ok(&workspace.waypost(&["status", "--line", "--json"]));
    assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
    let (out, _) = ok(&workspace.waypost(&["list"]));
    assert!(out.contains("← rejected by ada") && out.contains("other"), "{out}");
    let (out, _) = ok(&workspace.waypost(&["list", "--state", "rejected"]));
    assert!(out.contains("← rejected by ada") && !out.contains("other"), "{out}");
    let listed = |words: &[&str]| -> serde_json::Value {
        let (out, _) = ok(&workspace.waypost(&[&["list", "--json"], words].concat()));
        serde_json::from_str(&out).unwrap()
    };
    let rejected = listed(&["--state", "rejected,asking"]);
    assert_eq!(rejected["plans"][0]["state"]["name"], "rejected", "{rejected}");
    assert_eq!(rejected["plans"][0]["state"]["detail"], "tests first", "{rejected}");
    assert_eq!((&rejected["total"], listed(&[])["total"].as_u64()), (&1.into(), Some(2)));
    assert_eq!(listed(&["--state", "running"])["total"], 0);
    // Changed and changed back, it is what was rejected.
    ok(&workspace.waypost(&["task", "revise", "move", "a", "--description", "B", "--as", "agent:robin"]));
    assert_eq!(listed(&["--state", "rejected"])["total"], 0);
    ok(&workspace.waypost(&["task", "revise", "move", "a", "--description", "A", "--as", "agent:robin"]));
    assert_eq!(listed(&["--state", "rejected"])["total"], 1);
}

#[test]
fn a_worker_names_once_what_it_leaves_because_no_executor_works_on_it() {
    let workspace = Workspace::new();
    let say = "[executors.say]\nkind = \"process\"\ncommand = [\"true\"]\n";
    configure(&workspace, say);
    // A worker that would run something else than what was approved refuses, and says so.
    let unasked = "approval = \"never\"\n";
    workspace.configure_user(&format!("{unasked}{}", say.replace("say", "cluster")));
    let put = |text: &str| fs::write(workspace.work().join("plan.json"), text).unwrap();
    ok(&workspace.waypost(&["new", "Move", "--id", "move", "--task", "Read"]));
    let (_, err) = ok(&workspace.at_terminal(&["submit", "move"]));
    assert!(err.contains("no task of plan move names an executor"), "{err}");
    assert!(err.contains("waypost run move --executor cluster"), "{err}");
    put(r#"{"id":"mixed","title":"Mixed","tasks":[
            {"id":"here","description":"A","work":{"executor":"say"}},
            {"id":"there","description":"B","depends_on":["here"],"work":{"executor":"cluster"}},
            {"id":"too","description":"C","work":{"executor":"cluster"}}]}"#);
    ok(&workspace.at_terminal(&["submit", "plan.json"]));
    workspace.configure_user(unasked);
    let (out, err) = ok(&workspace.waypost(&["worker", "--until-idle"]));
    let said = format!("{out}{err}");
    let once = |words: &str| assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
    once("no task of plan move names an executor");
    once("waypost run move --executor NAME");
    once("of plan mixed names the executor cluster, which the configuration of this worker does not have");
    assert!(said.contains("mixed/here") && said.contains("1 task done"), "{said}");
    // Whoever says which executors it takes leaves the others on purpose.
    let (out, err) = ok(&workspace.waypost(&["worker", "--until-idle", "--executor", "say"]));
    assert!(!format!("{out}{err}").contains("cluster"), "{out}{err}");
    let (out, _) = ok(&workspace.waypost(&["worker", "--until-idle", "--json"]));
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((has("no_executor"), has("unknown_executor")), (1, 1), "{out}");
}

#[test]
fn a_task_for_a_person_waits_for_a_person_and_not_for_a_worker() {
    let workspace = Workspace::new();
    let plan =
        r#"{"id":"hu","title":"x","tasks":[{"id":"ok","description":"A","work":{"executor":"human"}}]}"#;
    fs::write(workspace.work().join("plan.json"), plan).unwrap();
    let (out, err) = ok(&workspace.at_terminal(&["submit", "plan.json"]));
    assert!(!format!("{out}{err}").contains("worker"), "{out}{err}");
    let (out, _) = ok(&workspace.waypost(&["why", "hu", "ok"]));
    assert!(out.contains("a person, who does it (`waypost answer hu ok`)"), "{out}");
    let (out, _) = ok(&workspace.waypost(&["why", "hu"]));
    assert!(out.contains("a person, who does it") && !out.contains("no worker"), "{out}");
    // One word at every place.
    for words in [
        &["why", "hu"][..],
        &["why", "hu", "ok"],
        &["show", "hu"],
        &["show", "hu", "--dag"],
        &["task", "show", "hu", "ok"],
        &["find", "A"],
        &["list"],
    ] {
        let (out, _) = ok(&workspace.waypost(words));
        assert!(out.contains("your task") && !out.contains("ready"), "{words:?}: {out}");
    }
    let (out, _) = ok(&workspace.waypost(&["show", "hu"]));
    assert!(out.contains("0/1 done (0%), 1 for you\n"), "{out}");
}

#[test]
fn a_demo_whose_terminal_closes_leaves_no_folder() {
    let workspace = Workspace::new();
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let mut demo =
        command.args(["demo", "--plain"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("start ")));
    kill_process(Pid::from_child(&demo), Signal::HUP).unwrap();
    lines.for_each(drop);
    assert!(demo.wait().unwrap().code().is_some(), "it ends by itself");
    assert_eq!(fs::read_dir(workspace.root.join("tmp")).unwrap().count(), 0);
}

#[test]
fn submit_says_what_it_did_with_a_plan_of_the_store() {
    let workspace = Workspace::new();
    configure(&workspace, "");
    let submit = |words: &[&str]| ok(&workspace.at_terminal(&[&["submit"], words].concat())).0;
    ok(&workspace.waypost(&["new", "B", "--id", "b", "--task", "x"]));
    assert!(submit(&["b"]).starts_with("submitted (plan b, version 2)"));
    assert!(submit(&["b"]).starts_with("submitted before: nothing to change (plan b, version 2)"));
    let plan = r#"{"id":"c","title":"C","tasks":[{"id":"a","description":"A","work":{"executor":"noop"}}]}"#;
    fs::write(workspace.work().join("c.json"), plan).unwrap();
    assert!(submit(&["c.json"]).starts_with("submitted (plan c,"));
    assert!(submit(&["c.json"]).starts_with("the same plan is already in the store: nothing to change"));
    ok(&workspace.waypost(&["import", "c.json", "--id", "d", "--as", "agent:robin"]));
    let (out, _) = ok(&workspace.waypost(&["submit", "d"]));
    assert!(out.starts_with("submitted, and waits for a person's approval (plan d,"), "{out}");
}

#[test]
fn what_is_spelled_or_named_otherwise_is_answered_with_what_was_meant() {
    let workspace = Workspace::new();
    let check = |words: &[&str], expected: &str| {
        let output = workspace.waypost(words);
        let (_, err) = text(&output);
        assert!(err.contains(expected), "{words:?}: {err}");
        assert_ne!(output.status.code(), Some(0), "{words:?}");
    };
    check(&["create", "x"], "similar subcommand exists: 'new'");
    check(&["generate", "x"], "similar subcommand exists: 'plan'");
    check(&["help", "shwo"], "similar subcommand exists: 'show'");
    fs::write(workspace.work().join("example-plan.json"), "{}").unwrap();
    check(&["run", "exmple-plan.json"], "did you mean example-plan.json?");
    check(&["submit", "./exmple-plan.json"], "did you mean ./example-plan.json?");
    check(&["run", "no/such.json"], "check the path");
    let (out, _) = ok(&workspace.waypost(&["help", "--help"]));
    assert!(out.contains("Exit codes:"), "{out}");
    // Whoever asked for help has not got it.
    let full = workspace.command("sh").args(["-c", "waypost --help > /dev/full"]).output().unwrap();
    assert_eq!((full.status.code(), text(&full).1.contains("stdout:")), (Some(1), true), "{full:?}");
}

#[test]
fn a_rejection_takes_its_reason_as_a_word_or_as_an_option() {
    let workspace = Workspace::new();
    let plan = r#"{"id":"p","title":"P","tasks":[{"id":"a","description":"A","work":{"executor":"noop"}}]}"#;
    fs::write(workspace.work().join("p.json"), plan).unwrap();
    ok(&workspace.waypost(&["import", "p.json", "--as", "agent:robin"]));
    ok(&workspace.waypost(&["request-approval", "p", "--as", "agent:robin"]));
    let (_, err) = text(&workspace.at_terminal(&["reject", "p"]));
    assert!(
        err.contains("error: a rejection needs a reason") && err.contains("`waypost reject p 'WHY'`"),
        "{err}"
    );
    ok(&workspace.at_terminal(&["reject", "p", "tests first"]));
    assert!(ok(&workspace.waypost(&[])).0.contains("tests first"));
}

#[test]
fn the_example_in_a_configuration_that_was_here_before_is_run_by_lines_that_need_no_terminal() {
    let workspace = Workspace::new();
    let file = workspace.work().join(".waypost/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[executors.mine]\nkind = \"noop\"\n").unwrap();
    let (out, err) = ok(&workspace.waypost(&["init", "--example", "--yes"]));
    assert!(err.contains(".waypost/config.toml was here before: read it before you name it"), "{err}");
    let next: Vec<&str> = out.split("next:\n").nth(1).unwrap().lines().map(str::trim).collect();
    for line in next {
        ok(&workspace.command("sh").args(["-c", line]).output().unwrap());
    }
    assert_eq!(stored(&workspace, "example").state().phase, Phase::Completed);
}

#[test]
fn opencode_has_its_file_by_two_names() {
    let workspace = Workspace::new();
    let there = |name: &str| fs::read_to_string(workspace.work().join(name));
    fs::write(workspace.work().join("opencode.jsonc"), "{\n  // mine\n}\n").unwrap();
    ok(&workspace.waypost(&["init", "--client", "opencode", "--yes"]));
    let text = there("opencode.jsonc").unwrap();
    assert!(text.contains("// mine") && text.contains("\"waypost\""), "{text}");
    assert!(there("opencode.json").is_err());
}

#[test]
fn without_an_executor_submit_says_what_to_write_and_then_what_to_type() {
    let workspace = Workspace::new();
    ok(&workspace.waypost(&["new", "Move", "--id", "move", "--task", "Read"]));
    let (_, err) = ok(&workspace.at_terminal(&["submit", "move"]));
    let at = |words: &str| err.find(words).unwrap_or_else(|| panic!("{words} is not in {err}"));
    let order = [
        at("no task of plan move names an executor"),
        at("[executors.claude]"),
        at("waypost init --example"),
        at("then `waypost run move --executor claude`"),
        at("waypost next move --claim"),
    ];
    assert!(order.is_sorted(), "{err}");
}

#[test]
fn the_overview_of_one_plan_is_answered_with_the_commands_for_it() {
    let workspace = Workspace::new();
    let output = workspace.waypost(&["status", "move"]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("`waypost show move`") && err.contains("`waypost note move`"), "{err}");
}

#[test]
fn a_task_is_shown_by_two_words_or_by_the_name_that_next_prints() {
    let workspace = Workspace::new();
    ok(&workspace.waypost(&["new", "Move", "--id", "move", "--task", "Read", "--task", "Write"]));
    let expected = ok(&workspace.waypost(&["show", "move", "--task", "t2"])).0;
    assert!(expected.contains("Write"), "{expected}");
    for words in [&["show", "move", "t2"][..], &["show", "move/t2"], &["show", "mo/t2"]] {
        assert_eq!(ok(&workspace.waypost(words)).0, expected, "{words:?}");
    }
    let output = workspace.waypost(&["show", "move", "t9"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(completed(&workspace, "waypost show move t2"), ["t2"]);
}

#[test]
#[ignore = "needs tmux"]
fn whoever_leaves_at_a_question_has_changed_nothing_and_is_told_so() {
    let workspace = Workspace::new();
    let plan =
        r#"{"id":"move","title":"Move","tasks":[{"id":"a","description":"A","work":{"executor":"noop"}}]}"#;
    fs::write(workspace.work().join("plan.json"), plan).unwrap();
    ok(&workspace.waypost(&["import", "plan.json", "--as", "agent:robin"]));
    for (name, text) in [("AGENTS.md", "# Ours\n"), (".mcp.json", "{}\n")] {
        fs::write(workspace.work().join(name), text).unwrap();
    }
    let files = || {
        let mut files: Vec<_> =
            fs::read_dir(workspace.work()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect::<Vec<_>>();
        (files, texts)
    };
    let before = files();
    let tmux = Tmux::new(&workspace, 100, 60);
    let leaves = |command: &str, answers: &[&str], key: &str, said: &str, code: u8| {
        tmux.line(&format!("clear; {command}; echo ended-$?"));
        for question in answers {
            tmux.wait(question);
            if *question != answers[answers.len() - 1] {
                tmux.line("y");
            }
        }
        tmux.press(&[key]);
        let screen = tmux.wait(&format!("ended-{code}"));
        assert!(screen.contains(said), "{command} {key}: {screen}");
        assert!(!screen.contains("os error"), "{command} {key}: {screen}");
        tmux.line("clear");
        tmux.wait_gone("ended-");
    };
    let questions = ["change .mcp.json? [y/N]", "change AGENTS.md? [y/N]"];
    for answers in [&questions[..1], &questions] {
        let said = "the question was not answered, and nothing was written";
        leaves("waypost init --client claude", answers, "C-c", said, 130);
        leaves("waypost init --client claude", answers, "C-d", said, 1);
        assert_eq!(files(), before, "{answers:?}");
    }
    let question = ["Type yes to approve:"];
    let said = "error: plan move was not approved; nothing ran";
    leaves("waypost approve move", &question, "C-c", said, 130);
    leaves("waypost approve move", &question, "C-d", said, 1);
    leaves("waypost run move", &question, "C-c", said, 130);
    assert!(stored(&workspace, "move").state().approval.is_none());
    // The demo has its own way out.
    leaves("waypost demo", &["Enter continues, q leaves:"], "C-d", "The tour ends here.", 0);
    leaves("waypost demo", &["Enter continues, q leaves:"], "C-c", "the tour was interrupted", 130);
}

#[test]
fn what_stands_in_the_way_or_was_mistyped_is_named() {
    let workspace = Workspace::new();
    let err = |words: &[&str]| text(&workspace.waypost(words)).1;
    let own = workspace.work().join(".waypost");
    fs::write(&own, "").unwrap();
    let said = err(&["new", "Move"]);
    assert!(said.contains("is a file, and Waypost keeps plans in a folder of that name"), "{said}");
    fs::remove_file(own).unwrap();
    ok(&workspace.waypost(&["new", "Move", "--id", "sl1wp", "--task", "Read", "--task", "Write"]));
    assert!(err(&["show", "slw1p"]).contains("did you mean sl1wp?"), "{}", err(&["show", "slw1p"]));
    // Nothing here is for workers, whatever people work on meanwhile.
    ok(&workspace.waypost(&["next", "sl1wp", "--claim"]));
    assert!(!err(&["submit", "sl1wp"]).contains("worker"), "{}", err(&["submit", "sl1wp"]));
}

#[test]
#[ignore = "needs git"]
fn a_store_that_git_would_commit_is_named_with_what_to_do() {
    let workspace = Workspace::new();
    let git = |words: &[&str]| ok(&workspace.command("git").args(words).output().unwrap()).0;
    git(&["init", "--quiet"]);
    let ignore = workspace.work().join(".waypost/.gitignore");
    fs::create_dir_all(ignore.parent().unwrap()).unwrap();
    fs::write(&ignore, "!config.toml\n").unwrap();
    let advice = "put a line `*` at the top of";
    let (_, err) = ok(&workspace.waypost(&["new", "Move", "--id", "move"]));
    assert!(err.contains("git does not ignore") && err.contains(advice), "{err}");
    let (_, err) = ok(&workspace.waypost(&["new", "Second"]));
    assert!(!err.contains(advice), "said once: {err}");
    // Like every file that is there, it is changed when a person says so.
    let init = workspace.waypost(&["init", "--client", "claude"]);
    assert!(init.status.code() == Some(1) && text(&init).1.contains(advice), "{init:?}");
    let (_, err) = ok(&workspace.waypost(&["init", "--client", "claude", "--yes"]));
    assert!(!err.contains(advice), "{err}");
    assert_eq!(fs::read_to_string(&ignore).unwrap(), "*\n!config.toml\n");
    assert!(!git(&["status", "--short", "--untracked-files=all"]).contains("waypost.db"));
    let (_, err) = ok(&workspace.waypost(&["init", "--client", "claude"]));
    assert!(!err.contains(advice), "{err}");
}

#[test]
fn the_example_leaves_a_configuration_in_place_and_trusts_nothing_that_nobody_has_read() {
    let workspace = Workspace::new();
    let file = workspace.work().join(".waypost/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let old = "[executors.mine]\nkind = \"process\"\ncommand = [\"true\"]\n";
    fs::write(&file, old).unwrap();
    let output = workspace.at_terminal(&["init", "--example"]);
    assert_eq!(output.status.code(), Some(1), "an existing file is changed only with a word: {output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    assert!(!text(&output).0.contains("next:"), "what was not written cannot run: {output:?}");
    let (out, _) = ok(&workspace.at_terminal(&["init", "--example", "--yes"]));
    assert!(out.contains("waypost trust") && !out.contains("--config"), "nobody has read it: {out}");
    let new = fs::read_to_string(&file).unwrap();
    assert!(new.starts_with(old) && new.contains("[executors.echo]"), "{new}");
    let output = workspace.waypost(&["run", "example-plan.json"]);
    assert!(text(&output).1.contains("is not trusted"), "{output:?}");
}

#[test]
fn without_a_terminal_the_demo_runs_and_asks_nobody_whoever_calls() {
    for agent in [false, true] {
        let workspace = Workspace::new();
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        if agent {
            command.env("CLAUDECODE", "1");
        }
        let (out, err) = ok(&command.arg("demo").output().unwrap());
        assert!(out.contains("plan demo is completed"), "{out}{err}");
        assert_eq!(fs::read_dir(workspace.root.join("tmp")).unwrap().count(), 0, "the folder is removed");
        assert_eq!(fs::read_dir(workspace.work()).unwrap().count(), 0);
    }
}

#[test]
#[ignore = "needs tmux"]
fn at_a_terminal_the_demo_leads_from_approval_over_a_failure_to_the_end() {
    let workspace = Workspace::new();
    let tmux = Tmux::new(&workspace, 120, 90);
    let go_on = |before: &str| {
        tmux.wait(before);
        tmux.wait_until("it waits for a key", |screen| {
            screen.trim_end().ends_with("Enter continues, q leaves:")
        });
        tmux.press(&["Enter"]);
    };
    tmux.line("clear; waypost demo; echo ended-$?");
    go_on("$ waypost show demo");
    // Nothing is approved by a word that was not asked for.
    tmux.wait("Type yes to approve:");
    tmux.line("no");
    go_on("It is not approved, so nothing runs");
    tmux.wait_until("it asks once more", |screen| screen.matches("Type yes to approve:").count() == 2);
    tmux.line("yes");
    go_on("Now it may run");
    go_on("The check failed");
    assert!(tmux.wait("still has the old name").contains("legacy.ts:1:"), "the log names the file");
    go_on("still has the old name");
    go_on("Every step is a version");
    let screen = tmux.wait("t, d, or Enter to end:");
    assert!(screen.contains("plan demo is completed"), "{screen}");
    assert!(screen.contains("agent:robin") && screen.contains("person:ada"), "{screen}");
    tmux.line("t");
    tmux.wait("Tasks ");
    tmux.press(&["q"]);
    tmux.wait("STATE");
    tmux.press(&["q"]);
    let asks_again = |screen: &str| screen.trim_end().ends_with("t, d, or Enter to end:");
    tmux.wait_until("it asks again", asks_again);
    tmux.line("d");
    tmux.wait("Ctrl-C stops the server");
    tmux.press(&["C-c"]);
    tmux.wait("the server ended");
    tmux.wait_until("it asks again", asks_again);
    tmux.press(&["Enter"]);
    tmux.wait("ended-0");
    assert_eq!(fs::read_dir(workspace.root.join("tmp")).unwrap().count(), 0, "the folder is removed");
    let notes = workspace.root.join("home/.local/state/waypost/stores");
    assert_eq!(fs::read_dir(notes).map_or(0, Iterator::count), 0, "so is the note about its store");
    let again = || {
        tmux.line("clear");
        tmux.wait_gone("ended-");
        tmux.line("waypost demo; echo ended-$?");
    };
    // Whoever leaves early leaves nothing behind.
    again();
    tmux.wait("Enter continues, q leaves:");
    tmux.line("q");
    tmux.wait("ended-0");
    again();
    tmux.wait("Enter continues, q leaves:");
    tmux.press(&["C-c"]);
    tmux.wait("ended-130");
    assert_eq!(fs::read_dir(workspace.root.join("tmp")).unwrap().count(), 0);
}

/// What bash would offer after this line.
fn completed(workspace: &Workspace, line: &str) -> Vec<String> {
    let script = format!(
        "eval \"$(waypost completions bash)\"; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         COMP_TYPE=9; _clap_complete_waypost waypost \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let (out, err) = ok(&workspace.command("bash").args(["--norc", "-c", &script]).output().unwrap());
    assert_eq!(err.replace("bash: line 1: compopt: not currently executing completion function\n", ""), "");
    out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_plans_tasks_executors_and_queues() {
    let workspace = Workspace::new();
    configure(
        &workspace,
        "[executors.deploy]\nkind = \"process\"\ncommand = [\"true\"]\n[queues.slow]\nconcurrency = 1\n",
    );
    assert_eq!(completed(&workspace, "waypost show tok"), [""; 0], "there is no store");
    assert!(!workspace.work().join(".waypost/waypost.db").exists(), "looking makes none");
    for (id, task) in [("tokens", "Read the module"), ("toolbox", "Sort it")] {
        ok(&workspace.waypost(&["new", "A plan", "--id", id, "--task", task, "--task", "Write"]));
    }
    let check = |line: &str, expected: &[&str]| {
        let mut found = completed(&workspace, line);
        found.retain(|word| !word.starts_with('-'));
        found.sort();
        assert_eq!(found, expected, "{line}");
    };
    check("waypost show to", &["tokens", "toolbox"]);
    fs::write(workspace.work().join("plan.json"), "{}").unwrap();
    check("waypost import pl", &["plan.json"]);
    check("waypost update tokens --from-file pl", &["plan.json"]);
    check("waypost show tok", &["tokens"]);
    check("waypost done tokens ''", &["t1", "t2"]);
    check("waypost done tokens t2", &["t2"]);
    check("waypost task add tokens More --depends-on t1,t", &["t1,t1", "t1,t2"]);
    check("waypost run tokens --executor d", &["deploy"]);
    check("waypost list --queue s", &["slow"]);
    check("waypost -C .. show to", &[]);
    check("waypost -C ../repo show tok", &["tokens"]);
    check("waypost done nothing ''", &[]);
    check("waypost sho", &["show"]);
    // The names that the help teaches, and others only where nothing else begins so.
    check("waypost task re", &["remove", "revise"]);
    check("waypost task ed", &["edit"]);
    check("waypost cl", &["claim", "close"]);
    check("waypost co", &["comment", "completions", "conflicts", "copy"]);
    check("waypost status ''", &[]);
    check("waypost status s", &[]);
    check("waypost restore tokens ''", &["1"]);
    let all = completed(&workspace, "waypost ''");
    for (taught, alias) in [("start", "claim"), ("done", "close"), ("validate", "check"), ("list", "li")] {
        assert!(all.iter().any(|name| name == taught) && all.iter().all(|name| name != alias), "{all:?}");
    }
    // A store that cannot be read offers nothing, and says nothing.
    fs::write(workspace.work().join(".waypost/waypost.db"), "not a database").unwrap();
    check("waypost show to", &[]);
    // An untrusted configuration is not asked about, and its names are not used.
    let home = workspace.root.join("home/.local/state/waypost/trust");
    fs::remove_dir_all(home).unwrap();
    check("waypost run tokens --executor d", &[]);
}

#[test]
fn there_is_a_manual_page_of_every_command() {
    let workspace = Workspace::new();
    ok(&workspace.waypost(&["man", "pages"]));
    let page = |name: &str| fs::read_to_string(workspace.work().join("pages").join(name)).unwrap();
    assert!(page("waypost.1").contains("Plans that agents write, people approve and machines run"));
    assert!(page("waypost-run.1").contains("retry\\-failed"));
    assert!(page("waypost-task-add.1").contains("Add a task"));
    assert!(
        page("waypost.1").contains("130 interrupted") && page("waypost-run.1").contains("NOTES AND EXAMPLES")
    );
    let title = format!(".TH waypost-run 1 \"\" \"waypost {}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(page("waypost-run.1").contains(&title), "{}", page("waypost-run.1"));
}
