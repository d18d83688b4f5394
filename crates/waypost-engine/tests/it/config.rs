//! Text in, configuration or everything that is wrong with it out.

use waypost_engine::config::{ApprovalPolicy, Executor};
use waypost_engine::{Config, Layer, Origin};

fn layer(origin: Origin, text: &str) -> Layer {
    let name = match origin {
        Origin::User => "user.toml",
        Origin::Workspace => ".waypost/config.toml",
        Origin::Named => "named.toml",
    };
    Layer { origin, name: name.to_owned(), text: text.to_owned() }
}

fn load(text: &str) -> Result<Config, Vec<String>> {
    Config::load(&[layer(Origin::Workspace, text)], [])
        .map_err(|bad| bad.problems.iter().map(|problem| format!("{problem} ({})", problem.hint)).collect())
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(load(text).map(|_| ()).err().unwrap_or_default(), expected);
}

#[test]
fn an_empty_file_changes_nothing() {
    assert_eq!(load("").unwrap(), Config::default());
}

#[test]
fn a_check_is_a_program_and_nothing_else() {
    let config = load("[checks.tests]\ncommand = [\"make\", \"test\"]\n").unwrap();
    assert_eq!(config.checks["tests"].command, ["make", "test"]);
    assert!(!config.executors.contains_key("tests"), "work cannot name it");
    check(
        "[checks.tests]\nkind = \"noop\"\n",
        &[
            ".waypost/config.toml:1: checks.tests has no `command` (for example command = [\"make\", \"test\"])",
            ".waypost/config.toml:2: `checks.tests.kind` is no key of the configuration (it can be shell, command, directory, environment, timeout_seconds, secrets)",
        ],
    );
}

#[test]
fn unknown_keys_are_named_with_file_line_and_the_nearest_name() {
    check(
        "[queues.default]\nconcurency = 3\nconcurrency = 2\n\n[retri]\nattempts = 2\n",
        &[
            ".waypost/config.toml:2: `queues.default.concurency` is no key of the configuration (did you mean `concurrency`?)",
            ".waypost/config.toml:5: `retri` is no key of the configuration (did you mean `retry`?)",
        ],
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    check(
        "approval = \"sometimes\"\n[queues.default]\nconcurrency = 0\n[executors.a]\nkind = \"proces\"\n[executors.b]\nkind = \"process\"\n[executors.c]\nkind = \"process\"\ncommand = [\"true\"]\ndirectory = \"../up\"\n[executors.d]\nkind = \"process\"\nshell = true\ncommand = [\"a\", \"b\"]\n",
        &[
            ".waypost/config.toml:1: `approval` is \"sometimes\", and can be work, all or never (for example approval = \"work\")",
            ".waypost/config.toml:3: `queues.default.concurrency` is 0, and must be a whole number from 1 to 1000 (correct the value)",
            ".waypost/config.toml:5: executors.a has the unknown kind \"proces\" (did you mean process?)",
            ".waypost/config.toml:6: executors.b has no `command` (for example command = [\"make\", \"test\"])",
            ".waypost/config.toml:11: executors.c would start in \"../up\", outside of the workspace (name a folder of the workspace, relative to it)",
            ".waypost/config.toml:15: executors.d has `shell = true` and 2 words (write the whole line as one text in the list)",
        ],
    );
    let broken = load("a = \n").unwrap_err();
    assert!(broken[0].starts_with(".waypost/config.toml:1: "), "{broken:?}");
}

#[test]
fn the_workspace_stands_over_the_user_and_the_environment_over_both() {
    let user = "[queues.default]\nconcurrency = 8\n[queues.slow]\nconcurrency = 1\n[retry]\nattempts = 3\n";
    let workspace = "[queues.default]\nconcurrency = 2\n";
    let layers = [layer(Origin::User, user), layer(Origin::Workspace, workspace)];
    let config = Config::load(&layers, []).unwrap();
    assert_eq!((config.queues["default"].concurrency, config.queues["slow"].concurrency), (2, 1));
    assert_eq!(config.retry.attempts, 3);
    let variables =
        [("WAYPOST_QUEUES_DEFAULT_CONCURRENCY", "5"), ("WAYPOST_RETRY_ATTEMPTS", ""), ("PATH", "x")];
    let config = Config::load(&layers, variables).unwrap();
    assert_eq!((config.queues["default"].concurrency, config.retry.attempts), (5, 3));
    let bad = Config::load(&layers, [("WAYPOST_LEASE_SECONDS", "soon")]).unwrap_err();
    assert_eq!(
        bad.problems[0].to_string(),
        "WAYPOST_LEASE_SECONDS: \"soon\" is not a whole number from 2 to 8640000"
    );
}

#[test]
fn a_workspace_can_ask_for_more_approval_and_not_for_less() {
    check(
        "approval = \"never\"",
        &[
            ".waypost/config.toml:1: `approval` = \"never\" asks for less approval than the user's own configuration (write it into the user's configuration, or take it out here)",
        ],
    );
    assert_eq!(load("approval = \"all\"").unwrap().approval, ApprovalPolicy::All);
    let never = Config::load(&[layer(Origin::User, "approval = \"never\"")], []).unwrap();
    assert_eq!(never.approval, ApprovalPolicy::Never);
    // No variable opens the gate.
    let config = Config::load(&[], [("WAYPOST_APPROVAL", "never")]).unwrap();
    assert_eq!(config.approval, ApprovalPolicy::Work);
}

#[test]
fn workers_and_secrets_are_read() {
    let text = "[executors.dispatch]\nkind = \"dispatch\"\ntarget = \"local\"\n[executors.dispatch.workers.edit]\ncommand = [\"sh\", \"edit.sh\"]\nsecrets.TOKEN = { variable = \"MY_TOKEN\" }\nsecrets.KEY = { file = \"key.txt\" }\ntimeout_seconds = 5\n";
    let config = load(text).unwrap();
    let Executor::Dispatch(workers) = &config.executors["dispatch"] else { panic!("{config:?}") };
    assert_eq!(workers["edit"].command, ["sh", "edit.sh"]);
    assert_eq!(workers["edit"].secrets.len(), 2);
    check(
        "[executors.d]\nkind = \"dispatch\"\ntarget = \"fargate\"\n",
        &[
            ".waypost/config.toml:3: executors.d has the target \"fargate\", and only \"local\" can be had (write \"local\")",
            ".waypost/config.toml:1: executors.d has no workers (add [executors.d.workers.NAME] with a `command`)",
        ],
    );
    check(
        "[executors.p]\nkind = \"process\"\ncommand = [\"x\"]\nsecrets.TOKEN = { value = \"hunter2\" }\n",
        &[
            ".waypost/config.toml:4: executors.p.secrets.TOKEN needs either `variable` or `file` (write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here)",
            ".waypost/config.toml:4: `executors.p.secrets.TOKEN.value` is no key of the configuration (it can be variable, file)",
        ],
    );
}
