//! Text in, configuration or everything that is wrong with it out.

use waypost_engine::config::{ApprovalPolicy, Executor, Worker};
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
    let Worker::Process(tests) = &config.checks["tests"] else { panic!("{config:?}") };
    assert_eq!(tests.command, ["make", "test"]);
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
fn approval_can_be_a_table_and_a_workspace_can_only_close_the_door_at_the_client() {
    let config = load("[approval]\npolicy = \"all\"\nelicitation = false\n").unwrap();
    assert_eq!((config.approval, config.elicitation), (ApprovalPolicy::All, false));
    assert!(Config::default().elicitation);
    let closed = layer(Origin::User, "[approval]\nelicitation = false\n");
    let opens = layer(Origin::Workspace, "[approval]\nelicitation = true\n");
    let problems = Config::load(&[closed, opens], []).unwrap_err().problems;
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let lets = "`approval.elicitation` = true lets approve where the user's own configuration does not";
    assert_eq!(said, [format!(".waypost/config.toml:2: {lets}")]);
    check(
        "[approval]\nelicit = true\n",
        &[
            ".waypost/config.toml:2: `approval.elicit` is no key of the configuration (it can be policy, elicitation)",
        ],
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
    let Worker::Process(edit) = &workers["edit"] else { panic!("{workers:?}") };
    assert_eq!(edit.command, ["sh", "edit.sh"]);
    assert_eq!(edit.secrets.len(), 2);
    check(
        "[executors.d]\nkind = \"dispatch\"\ntarget = \"fargate\"\n",
        &[
            ".waypost/config.toml:3: executors.d has the unknown target \"fargate\" (it can be local, container, kubernetes)",
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

#[test]
fn the_default_executor_must_be_one() {
    assert_eq!(load("default_executor = \"noop\"").unwrap().default_executor.as_deref(), Some("noop"));
    // A workspace can take the user's word back.
    let layers = [
        layer(Origin::User, "default_executor = \"noop\""),
        layer(Origin::Workspace, "default_executor = \"\""),
    ];
    assert_eq!(Config::load(&layers, []).unwrap().default_executor, None);
    check(
        "default_executor = \"nop\"",
        &["default_executor: no executor is called nop (name one of human, noop)"],
    );
}

#[test]
fn reporters_are_read_and_their_mistakes_are_named() {
    let text = "[reporters.log]\nkind = \"file\"\npath = \"events.jsonl\"\nevents = [\"task_failed\"]\n[reporters.chat]\nkind = \"command\"\ncommand = [\"notify\"]\n";
    let config = load(text).unwrap();
    assert_eq!(config.reporters["log"].events, ["task_failed"]);
    check(
        "[reporters.a]\nkind = \"webhook\"\n[reporters.b]\nkind = \"file\"\npath = \"../up\"\n[reporters.c]\nkind = \"command\"\n[reporters.d]\nkind = \"console\"\nevents = [\"task_faild\"]\n[reporters.e]\nkind = \"file\"\n",
        &[
            ".waypost/config.toml:2: reporters.a has the unknown kind \"webhook\" (it can be console, file, command)",
            ".waypost/config.toml:5: reporters.b would write \"../up\", outside of the workspace (name a file of the workspace, relative to it)",
            ".waypost/config.toml:6: reporters.c has no `command` (for example command = [\"notify-send\", \"waypost\"])",
            ".waypost/config.toml:10: `reporters.d.events` names \"task_faild\", and nothing is told under that name (did you mean task_failed?)",
            ".waypost/config.toml:11: reporters.e has no `path` (for example path = \"events.jsonl\")",
        ],
    );
}

#[test]
fn agents_are_read_and_their_mistakes_are_named() {
    let text = "[executors.a]\nkind = \"agent\"\nagent = \"codex\"\npermission_mode = \"workspace-write\"\n";
    let config = load(text).unwrap();
    let Executor::Worker(Worker::Agent(agent)) = &config.executors["a"] else { panic!("{config:?}") };
    let words = "codex exec --color never --skip-git-repo-check --sandbox workspace-write -";
    assert_eq!(agent.process.command.join(" "), words);
    let config = load("[executors.a]\nkind = \"agent\"\nagent = \"gemini\"\nmodel = \"pro\"\n").unwrap();
    let Executor::Worker(Worker::Agent(agent)) = &config.executors["a"] else { panic!("{config:?}") };
    assert_eq!(agent.process.command.join(" "), "gemini --output-format json --model pro");
    check(
        "[executors.a]\nkind = \"agent\"\nagent = \"cladue\"\n[executors.b]\nkind = \"agent\"\ncommand = [\"x\"]\nmodel = \"m\"\nprompt = \"{{descriptio}}\"\n[executors.c]\nkind = \"agent\"\ncommand = [\"x\"]\nprompt_to = \"argument\"\n[executors.d]\nkind = \"agent\"\ncommand = [\"x\"]\ntemplate = \"../t.md\"\nauthor = \"me\"\n[executors.e]\nkind = \"agent\"\nagent = \"codex\"\nallowed_tools = [\"x\"]\npermision_mode = \"x\"\n",
        &[
            ".waypost/config.toml:3: executors.a has the unknown agent \"cladue\" (did you mean claude?; any other agent is called by its `command` alone)",
            ".waypost/config.toml:7: executors.b has `model`, and nobody knows how this command is told so (write the flags into `command`, or name an `agent`)",
            ".waypost/config.toml:8: executors.b.prompt: {{descriptio}} is no place of a prompt (did you mean {{description}}?)",
            ".waypost/config.toml:11: executors.c has `prompt_to` = \"argument\", and no argument is for it (write {prompt} as one word of `command`)",
            ".waypost/config.toml:16: executors.d has its template in \"../t.md\", outside of the workspace (name a file of the workspace, relative to it)",
            ".waypost/config.toml:17: executors.d has the author \"me\" (write it as \"Name <name@example.org>\")",
            ".waypost/config.toml:21: executors.e has `allowed_tools`, and codex has no such list (use `permission_mode`, which is codex's sandbox)",
            ".waypost/config.toml:22: `executors.e.permision_mode` is no key of the configuration (did you mean `permission_mode`?)",
        ],
    );
}

#[test]
fn a_prompt_in_a_file_is_read_and_checked() {
    let text = "\n[executors.a]\nkind = \"agent\"\ncommand = [\"x\"]\ntemplate = \"t.md\"\n";
    let wrong = |answer: fn(&str) -> std::io::Result<String>| {
        let mut config = load(text).unwrap();
        let bad = config.read_prompts(&answer).map(|()| config);
        bad.map_err(|bad| format!("{} ({})", bad.problems[0], bad.problems[0].hint))
    };
    assert_eq!(
        wrong(|_| Ok("one\ntwo {{goals}}".to_owned())).unwrap_err(),
        "t.md:2: {{goals}} is no place of a prompt (did you mean {{goal}}?)"
    );
    assert_eq!(
        wrong(|file| Err(std::io::Error::other(format!("no {file}")))).unwrap_err(),
        ".waypost/config.toml:5: the template \"t.md\" cannot be read: no t.md (name a file of the workspace, relative to it)"
    );
    assert!(wrong(|_| Ok("{{goal}}".to_owned())).is_ok());
}

#[test]
fn http_workers_are_read_and_their_mistakes_are_named() {
    check(
        "[executors.h]\nkind = \"http\"\nurl = \"https://me:secret@work.example.org/\"\nmethod = \"PSOT\"\nheaders.Host = \"x\"\nheaders.X-A = 3\nheaders.X-B = { value = \"x\" }\ntries = 0\ncallback = \"x\"\n[executors.i]\nkind = \"http\"\n",
        &[
            ".waypost/config.toml:4: executors.h has the method \"PSOT\" (it can be POST, PUT)",
            ".waypost/config.toml:5: executors.h.headers.Host is set by Waypost itself (take it out)",
            ".waypost/config.toml:6: executors.h.headers.X-A has a value that no header can have (write a text, or where a secret is read: { variable = \"NAME\" } or { file = \"PATH\" })",
            ".waypost/config.toml:7: executors.h.headers.X-B needs either `variable` or `file` (write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here)",
            ".waypost/config.toml:7: `executors.h.headers.X-B.value` is no key of the configuration (it can be variable, file)",
            ".waypost/config.toml:8: `executors.h.tries` is 0, and must be a whole number from 1 to 20 (correct the value)",
            ".waypost/config.toml:3: executors.h has a `url` that cannot be used (it begins with http:// or https:// and names a host; a password goes into `headers`)",
            ".waypost/config.toml:9: `executors.h.callback` is no key of the configuration (it can be kind, url, method, headers, hmac, tries, poll_seconds, timeout_seconds)",
            ".waypost/config.toml:10: executors.i has no `url` (for example url = \"https://work.example.org/jobs\")",
        ],
    );
}

#[test]
fn containers_and_jobs_of_a_cluster_are_read_and_their_mistakes_are_named() {
    let text = "[executors.d]\nkind = \"dispatch\"\n[executors.d.workers.here]\ncommand = [\"x\"]\n[executors.d.workers.there]\ntarget = \"kubernetes\"\nimage = \"i\"\n";
    let config = load(text).unwrap();
    let Executor::Dispatch(workers) = &config.executors["d"] else { panic!("{config:?}") };
    assert!(
        matches!(workers["here"], Worker::Process(_)) && matches!(workers["there"], Worker::Kubernetes(_))
    );
    check(
        "[executors.d]\nkind = \"dispatch\"\ntarget = \"container\"\n[executors.d.workers.a]\nengine = \"dokcer\"\nmounts = [{ source = \"../x\", target = \"/x\" }, { source = \"x\", target = \"/x,readonly=false\" }, { source = \"x\" }]\nnetwork = \"--privileged\"\nmemmory = \"1g\"\n[executors.d.workers.b]\ntarget = \"kubernetes\"\nimage = \"i\"\nlimits.cpu = 2\nsecrets.T = { variable = \"X\" }\n",
        &[
            ".waypost/config.toml:4: executors.d.workers.a has no `image` (for example image = \"registry.example.org/worker:1\")",
            ".waypost/config.toml:5: executors.d.workers.a has the unknown engine \"dokcer\" (did you mean docker?)",
            ".waypost/config.toml:6: executors.d.workers.a would mount \"../x\", outside of the workspace (name something in the workspace, relative to it)",
            ".waypost/config.toml:6: executors.d.workers.a would mount \"x\" at \"/x,readonly=false\" (write a full path, and no comma or quote in either)",
            ".waypost/config.toml:6: a mount of executors.d.workers.a needs `source` and `target` (for example { source = \"src\", target = \"/src\" })",
            ".waypost/config.toml:7: executors.d.workers.a has `network` = \"--privileged\" (write a name without spaces that does not begin with -)",
            ".waypost/config.toml:8: `executors.d.workers.a.memmory` is no key of the configuration (did you mean `memory`?)",
            ".waypost/config.toml:12: `executors.d.workers.b.limits.cpu` must be a text (write it in quotes)",
            ".waypost/config.toml:13: executors.d.workers.b.secrets.T needs `secret` and `key` (write { secret = \"NAME\", key = \"KEY\" }: a Secret of the cluster and a key in it)",
            ".waypost/config.toml:13: `executors.d.workers.b.secrets.T.variable` is no key of the configuration (it can be secret, key)",
        ],
    );
}
