//! Text in, configuration or everything that is wrong with it out.

use waypost_config::{
    ApprovalPolicy, ApprovalSettings, Definitions, Executor, Header, Report, SealRule, Secret, Webhook,
    Worker, todo_store,
};
use waypost_config::{Config, Layer, Origin};
use waypost_core::canonical::CanonicalHasher;
use waypost_core::{Json, Proof, Work};

fn layer(origin: Origin, text: &str) -> Layer {
    let name = match origin {
        Origin::Operator => "etc.toml",
        Origin::User | Origin::UserApproval => "user.toml",
        Origin::Workspace | Origin::Untrusted => ".waypost/config.toml",
        Origin::Named => "named.toml",
    };
    Layer { origin, name: name.to_owned(), text: text.to_owned() }
}

pub(crate) fn load(text: &str) -> Result<Config, Vec<String>> {
    Config::load(&[layer(Origin::Workspace, text)], [])
        .map_err(|bad| bad.problems.iter().map(|problem| format!("{problem} ({})", problem.hint)).collect())
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(load(text).map(|_| ()).err().unwrap_or_default(), expected);
}

#[test]
fn an_empty_file_changes_nothing() {
    let read_from = vec![".waypost/config.toml".into()];
    assert_eq!(load("").unwrap(), Config { read_from, ..Config::default() });
}

#[test]
fn shared_plans_have_a_branch_a_remote_and_a_time() {
    let config = load("[git]\nref = \"refs/heads/plans\"\nremote = \"team\"\nsync = \"auto\"\n").unwrap();
    let git = waypost_config::Git {
        reference: "refs/heads/plans".to_owned(),
        remote: "team".to_owned(),
        sync: waypost_config::GitSync::Auto,
    };
    assert_eq!(config.git, git);
    let default = load("").unwrap().git;
    assert_eq!((default.reference.as_str(), default.remote.as_str()), ("refs/heads/waypost-plans", "origin"));
    assert!(load("[git]\nsync = \"always\"\n").is_err());
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
            ".waypost/config.toml:2: `checks.tests.kind` is not a key of the configuration (it can be shell, command, directory, environment, timeout_seconds, secrets, pin)",
        ],
    );
}

#[test]
fn unknown_keys_are_named_with_file_line_and_the_nearest_name() {
    check(
        "[queues.default]\nconcurency = 3\nconcurrency = 2\n\n[retri]\nattempts = 2\n",
        &[
            ".waypost/config.toml:2: `queues.default.concurency` is not a key of the configuration (did you mean `concurrency`?)",
            ".waypost/config.toml:5: `retri` is not a key of the configuration (did you mean `retry`?)",
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
fn approval_can_be_a_table_of_which_a_workspace_can_only_raise_some_keys() {
    let text = "[approval]\npolicy = \"all\"\nproof = \"touch\"\nseal = \"required\"\nseal_key = \"/k\"\nunattended = false\nelicitation = [\"claude-code\"]\nallowed_signers = \"/s\"\nsigning_key = \"/p\"\nvalid = \"7d\"\npinned_images = true\n";
    let config = Config::load(&[layer(Origin::User, text)], []).unwrap();
    let wanted = ApprovalSettings {
        policy: ApprovalPolicy::All,
        proof: Proof::Touch,
        seal: SealRule::Required,
        seal_key: Some("/k".into()),
        unattended: false,
        elicitation: vec!["claude-code".to_owned()],
        allowed_signers: Some("/s".into()),
        signing_key: Some("/p".into()),
        valid_seconds: 7 * 24 * 60 * 60,
        pinned_images: true,
    };
    assert_eq!(config.approval, wanted);
    // A workspace's file, and one that is named: more is fine, less is not, the rest does not count there.
    for origin in [Origin::Workspace, Origin::Named] {
        let raises = layer(origin, "[approval]\nsigned = true\npinned_images = true\n");
        let config = Config::load(&[raises], []).unwrap();
        assert_eq!((config.approval.proof, config.approval.pinned_images), (Proof::Signature, true));
        let lowers = layer(origin, "[approval]\nproof = \"client\"\n");
        assert_eq!(Config::load(&[lowers], []).unwrap_err().problems[0].line, Some(2));
        let problems = Config::load(&[layer(origin, text)], []).unwrap_err().problems;
        let lines: Vec<Option<usize>> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [4, 5, 6, 7, 8, 9, 10].map(Some));
    }
    for (said, wanted) in
        [("valid = \"soon\"", "duration"), ("proof = \"yes\"", "proof"), ("seal = 1", "text")]
    {
        let bad = Config::load(&[layer(Origin::User, &format!("[approval]\n{said}\n"))], []).unwrap_err();
        assert!(bad.problems[0].to_string().contains(wanted), "{said}: {bad}");
    }
}

#[test]
fn an_elicitation_of_an_earlier_version_opens_nothing() {
    for (said, notes) in [("true", 1), ("false", 0)] {
        let text = format!("[approval]\nelicitation = {said}\n");
        let config = Config::load(&[layer(Origin::User, &text)], []).unwrap();
        assert_eq!((config.approval.elicitation.len(), config.ignored.len()), (0, notes), "{said}");
    }
    let opens = layer(Origin::User, "[approval]\nelicitation = [\"claude-code\"]\n");
    let closes = layer(Origin::Workspace, "[approval]\nelicitation = []\n");
    assert_eq!(Config::load(&[opens, closes], []).unwrap().approval.elicitation.len(), 0);
}

#[test]
fn only_the_users_own_file_opens_files_to_tools() {
    let text = "[files]\nwrite = [\"docs/STATUS.md\"]\nhttp = true\n";
    let config = Config::load(&[layer(Origin::User, text)], []).unwrap();
    assert_eq!((config.files.write, config.files.http), (vec!["docs/STATUS.md".to_owned()], true));
    assert_eq!(Config::default().files, waypost_config::Files::default());
    let only = "counts only in the user's own configuration (write it into the user's configuration, or take it out here)";
    check(
        text,
        &[
            &format!(".waypost/config.toml:2: `files.write` {only}"),
            &format!(".waypost/config.toml:3: `files.http` {only}"),
        ],
    );
    check(
        "[files]\nhttp = 1\n",
        &[
            ".waypost/config.toml:2: `files.http` is 1, and must be true or false (correct the value)",
            &format!(".waypost/config.toml:2: `files.http` {only}"),
        ],
    );
}

#[test]
fn a_workspace_can_ask_for_more_approval_and_not_for_less() {
    check(
        "approval = \"never\"",
        &[
            ".waypost/config.toml:1: `approval` = \"never\" counts only in the user's own configuration (write it into the user's configuration, or take it out here)",
        ],
    );
    assert_eq!(load("approval = \"all\"").unwrap().approval.policy, ApprovalPolicy::All);
    let never = Config::load(&[layer(Origin::User, "approval = \"never\"")], []).unwrap();
    assert_eq!(never.approval.policy, ApprovalPolicy::Never);
    // No variable opens the gate.
    let config = Config::load(&[], [("WAYPOST_APPROVAL", "never")]).unwrap();
    assert_eq!(config.approval.policy, ApprovalPolicy::Work);
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
            ".waypost/config.toml:3: executors.d has the unknown target \"fargate\" (it can be local, container, kubernetes, slurm, program)",
            ".waypost/config.toml:1: executors.d has no workers (add [executors.d.workers.NAME] with a `command`)",
        ],
    );
    check(
        "[executors.p]\nkind = \"process\"\ncommand = [\"x\"]\nsecrets.TOKEN = { value = \"hunter2\" }\n",
        &[
            ".waypost/config.toml:4: executors.p.secrets.TOKEN needs either `variable` or `file` (write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here)",
            ".waypost/config.toml:4: `executors.p.secrets.TOKEN.value` is not a key of the configuration (it can be variable, file)",
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
        "[reporters.a]\nkind = \"telegraph\"\n[reporters.b]\nkind = \"file\"\npath = \"../up\"\n[reporters.c]\nkind = \"command\"\n[reporters.d]\nkind = \"console\"\nevents = [\"task_faild\"]\n[reporters.e]\nkind = \"file\"\n",
        &[
            ".waypost/config.toml:2: reporters.a has the unknown kind \"telegraph\" (it can be console, file, command, webhook)",
            ".waypost/config.toml:5: reporters.b would write \"../up\", outside of the workspace (name a file of the workspace, relative to it, or an absolute path without ..)",
            ".waypost/config.toml:6: reporters.c has no `command` (for example command = [\"notify-send\", \"waypost\"])",
            ".waypost/config.toml:10: `reporters.d.events` names \"task_faild\", which is not an event (did you mean task_failed?)",
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
            ".waypost/config.toml:7: executors.b has `model`, which this command cannot be given (write the flags into `command`, or name an `agent`)",
            ".waypost/config.toml:8: executors.b.prompt: {{descriptio}} is not a placeholder of a prompt (did you mean {{description}}?)",
            ".waypost/config.toml:11: executors.c has `prompt_to` = \"argument\", and no argument is for it (write {prompt} as one word of `command`)",
            ".waypost/config.toml:16: executors.d has its template in \"../t.md\", outside of the workspace (name a file of the workspace, relative to it)",
            ".waypost/config.toml:17: executors.d has the author \"me\" (write it as \"Name <name@example.org>\")",
            ".waypost/config.toml:21: executors.e has `allowed_tools`, and codex has no such list (use `permission_mode`, which is codex's sandbox)",
            ".waypost/config.toml:22: `executors.e.permision_mode` is not a key of the configuration (did you mean `permission_mode`?)",
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
        "t.md:2: {{goals}} is not a placeholder of a prompt (did you mean {{goal}}?)"
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
            ".waypost/config.toml:4: executors.h has the unknown method \"PSOT\" (did you mean POST?)",
            ".waypost/config.toml:5: executors.h.headers.Host is set by Waypost itself (take it out)",
            ".waypost/config.toml:6: executors.h.headers.X-A has an invalid header value (write a text, or where a secret is read: { variable = \"NAME\" } or { file = \"PATH\" })",
            ".waypost/config.toml:7: executors.h.headers.X-B needs either `variable` or `file` (write { variable = \"NAME\" } or { file = \"PATH\" }; a value never stands here)",
            ".waypost/config.toml:7: `executors.h.headers.X-B.value` is not a key of the configuration (it can be variable, file)",
            ".waypost/config.toml:8: `executors.h.tries` is 0, and must be a whole number from 1 to 20 (correct the value)",
            ".waypost/config.toml:3: executors.h has a `url` that cannot be used (it begins with http:// or https:// and names a host; a password goes into `headers.Authorization = { variable = \"NAME\" }`)",
            ".waypost/config.toml:9: `executors.h.callback` is not a key of the configuration (it can be kind, url, method, headers, hmac, tries, poll_seconds, idempotent, timeout_seconds, revision, end_when_lost, pin)",
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
            ".waypost/config.toml:8: `executors.d.workers.a.memmory` is not a key of the configuration (did you mean `memory`?)",
            ".waypost/config.toml:12: `executors.d.workers.b.limits.cpu` must be a text (write it in quotes)",
            ".waypost/config.toml:13: executors.d.workers.b.secrets.T needs `secret` and `key` (write { secret = \"NAME\", key = \"KEY\" }: a Secret of the cluster and a key in it)",
            ".waypost/config.toml:13: `executors.d.workers.b.secrets.T.variable` is not a key of the configuration (it can be secret, key)",
        ],
    );
}

#[test]
fn jobs_of_slurm_are_read_and_their_mistakes_are_named() {
    let text = "[executors.d]\nkind = \"dispatch\"\ntarget = \"slurm\"\n[executors.d.workers.a]\ncommand = [\"x\", \"y\"]\n[executors.d.workers.b]\ncommand = [\"x\"]\nfolder = \"/shared/waypost\"\npartition = \"gpu\"\naccount = \"lab\"\nqos = \"high\"\ncpus = 4\nmemory = \"8G\"\ngpus = \"a100:2\"\ngres = \"lustre:1\"\ntime_minutes = 30\nnice = 100\narray_max = 50\noptions = [\"--constraint=a100\", \"--exclusive\"]\nenvironment = [\"LANG\"]\ntimeout_seconds = 60\n";
    let config = load(text).unwrap();
    let Executor::Dispatch(workers) = &config.executors["d"] else { panic!("{config:?}") };
    let (Worker::Slurm(plain), Worker::Slurm(full)) = (&workers["a"], &workers["b"]) else {
        panic!("{workers:?}")
    };
    assert_eq!((plain.folder.as_str(), plain.array_max, plain.nice), (".waypost/slurm", 200, 0));
    assert_eq!(plain.process.environment, ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ"]);
    assert_eq!((full.folder.as_str(), full.array_max, full.nice), ("/shared/waypost", 50, 100));
    assert_eq!((full.cpus, full.time_minutes, full.gpus.as_deref()), (Some(4), Some(30), Some("a100:2")));
    assert_eq!(full.options, ["--constraint=a100", "--exclusive"]);
    assert_eq!(workers["b"].timeout_seconds(), Some(60));
    check(
        "[executors.d]\nkind = \"dispatch\"\ntarget = \"slurn\"\n[executors.d.workers.a]\ntarget = \"slurm\"\nfolder = \"../x\"\npartition = \"--wrap=x\"\narray_max = 5000\noptions = [\"--wrap=rm\", \"--constrain=x\", \"-J x\"]\nparttition = \"x\"\n",
        &[
            ".waypost/config.toml:3: executors.d has the unknown target \"slurn\" (did you mean slurm?)",
            ".waypost/config.toml:4: executors.d.workers.a has no `command` (for example command = [\"make\", \"test\"])",
            ".waypost/config.toml:6: executors.d.workers.a has `folder` = \"../x\" (name a folder of the workspace, or write the full path of one that all nodes see)",
            ".waypost/config.toml:8: `executors.d.workers.a.array_max` is 5000, and must be a whole number from 1 to 1000 (correct the value)",
            ".waypost/config.toml:7: executors.d.workers.a has `partition` = \"--wrap=x\" (write a name without spaces that does not begin with -)",
            ".waypost/config.toml:9: executors.d.workers.a has the option \"--wrap=rm\", which cannot stand there (it can be acctg-freq, batch, begin, cluster-constraint, constraint, contiguous, core-spec, cores-per-socket, cpu-freq, cpus-per-gpu, deadline, distribution, exclude, exclusive, gpu-bind, gpu-freq, gres-flags, hint, licenses, mem-per-cpu, mem-per-gpu, nodelist, reservation, switches, tmp, wckey)",
            ".waypost/config.toml:9: executors.d.workers.a has the option \"--constrain=x\", which cannot stand there (did you mean constraint?)",
            ".waypost/config.toml:9: executors.d.workers.a has the option \"-J x\", which cannot stand there (write each as one text, for example \"--constraint=a100\")",
            ".waypost/config.toml:10: `executors.d.workers.a.parttition` is not a key of the configuration (did you mean `partition`?)",
        ],
    );
}

fn text(words: &str) -> Header {
    Header::Text(words.to_owned())
}

#[test]
fn a_webhook_is_read_with_its_secrets_by_name() {
    let user = layer(
        Origin::User,
        "[reporters.hook]\nkind = \"webhook\"\nurl = { variable = \"HOOK\" }\nheaders.X-Team = \"a\"\nheaders.Authorization = { file = \"token\" }\nhmac = { variable = \"KEY\" }\nevents = [\"task_unblocked\"]\nattempts = 3\nbackoff_seconds = 2\nbackoff_seconds_max = 9\ntimeout_seconds = 4\n",
    );
    let config = Config::load(&[user], []).unwrap();
    let reporter = &config.reporters["hook"];
    assert_eq!(reporter.events, ["task_unblocked"]);
    let variable = |name: &str| Secret::Variable(name.to_owned());
    let expected = Webhook {
        url: Header::Secret(variable("HOOK")),
        headers: vec![
            ("Authorization".to_owned(), Header::Secret(Secret::File("token".to_owned()))),
            ("X-Team".to_owned(), text("a")),
        ],
        hmac: Some(variable("KEY")),
        timeout_seconds: 4,
        attempts: 3,
        backoff_seconds: 2,
        backoff_seconds_max: 9,
    };
    let Report::Webhook(webhook) = &reporter.report else { panic!("{reporter:?}") };
    let mut webhook = webhook.clone();
    webhook.headers.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(webhook, expected);
    check(
        "[reporters.a]\nkind = \"webhook\"\n[reporters.b]\nkind = \"webhook\"\nurl = \"https://u:hunter2@example.org\"\n[reporters.c]\nkind = \"webhook\"\nurl = \"https://example.org\"\nevents = [\"task_don\"]\nsecret = \"x\"\n",
        &[
            ".waypost/config.toml:1: reporters.a has no `url` (for example url = \"https://chat.example.org/hooks/waypost\")",
            ".waypost/config.toml:5: reporters.b has a `url` that cannot be used (it begins with http:// or https:// and names a host; one that is secret is read from { variable = \"NAME\" })",
            ".waypost/config.toml:9: `reporters.c.events` names \"task_don\", which is not an event (did you mean task_done?)",
            ".waypost/config.toml:10: `reporters.c.secret` is not a key of the configuration (it can be kind, events, url, headers, hmac, timeout_seconds, attempts, backoff_seconds, backoff_seconds_max)",
        ],
    );
}

fn todo(text: &str) -> Result<Config, Vec<String>> {
    todo_of(Origin::User, text)
}

fn todo_of(origin: Origin, text: &str) -> Result<Config, Vec<String>> {
    let layer = Layer { origin, name: "todo.json".to_owned(), text: text.to_owned() };
    Config::load(&[layer], [("TODO_WEBHOOK_TOKEN", "t0ken")])
        .map_err(|bad| bad.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_todo_json_is_read_flat_and_nested() {
    let flat = r#"{ "reporter_type": "webhook", "reporter_config": { "url": "https://x/y",
        "headers": { "Authorization": "Bearer token" } }, "storage_type": "file", "storage_path": ".jaato/plans.json" }"#;
    let webhook = |text: &str| match &todo(text).unwrap().reporters["todo"].report {
        Report::Webhook(webhook) => webhook.clone(),
        other => panic!("{other:?}"),
    };
    let mut expected = Webhook::to(text("https://x/y"));
    expected.headers = vec![("Authorization".to_owned(), text("Bearer token"))];
    assert_eq!(webhook(flat), expected);
    assert_eq!(todo_store(flat).as_deref(), Some(".jaato/plans"));
    let nested = r#"{ "version": "1.0", "reporter": { "type": "webhook", "endpoint": "https://x/y", "timeout": 10,
        "headers": { "X-Service": "jaato" } }, "storage": { "type": "hybrid", "path": "plans.json", "use_directory": false },
        "display": { "colors": true } }"#;
    expected.headers =
        vec![("X-Service".to_owned(), text("jaato")), ("Authorization".to_owned(), text("Bearer t0ken"))];
    assert_eq!(webhook(nested), expected);
    assert_eq!(todo_store(nested).as_deref(), Some("plans"));
    let ignored = todo(nested).unwrap().ignored;
    assert!(
        ignored[0].contains("`display`") && ignored[1].contains("`storage.use_directory`"),
        "{ignored:?}"
    );
    let file = todo(r#"{ "reporter_type": "file", "reporter_config": { "path": "plans.log" } }"#).unwrap();
    assert_eq!(file.reporters["todo"].report, Report::File { path: "plans.log".to_owned() });
    let console =
        todo(r#"{ "reporter": { "type": "console", "timeout": 10 }, "storage": { "type": "memory" } }"#);
    let console = console.unwrap();
    assert_eq!(console.reporters["todo"].report, Report::Console);
    assert!(console.ignored[0].contains("storage `memory`"), "{:?}", console.ignored);
    assert_eq!(todo_store(r#"{ "storage_type": "memory" }"#), None);
    // The document's own examples: a log of the machine, and a storage without a path.
    let log =
        todo(r#"{ "reporter_type": "file", "reporter_config": { "path": "/var/log/jaato/plans.log" } }"#);
    assert_eq!(
        log.unwrap().reporters["todo"].report,
        Report::File { path: "/var/log/jaato/plans.log".to_owned() }
    );
    assert!(todo(r#"{ "storage_type": "file" }"#).is_ok());
    assert_eq!(todo_store(r#"{ "storage_type": "file" }"#).as_deref(), Some(".jaato/plans"));
    let up = todo(r#"{ "reporter_type": "file", "reporter_config": { "path": "/var/log/../../etc/x" } }"#);
    assert!(up.is_err());
}

#[test]
fn the_token_of_a_todo_json_is_not_sent_where_a_workspace_says() {
    let webhook = r#"{ "reporter": { "type": "webhook", "url": "https://x/y" } }"#;
    let config = todo_of(Origin::Workspace, webhook).unwrap();
    assert_eq!(config.reporters["todo"].report, Report::Webhook(Webhook::to(text("https://x/y"))));
    assert!(
        config.ignored[0].contains("TODO_WEBHOOK_TOKEN is not sent to an address"),
        "{:?}",
        config.ignored
    );
    // The same where the workspace's configuration names the file.
    let read = |_: &std::path::Path| Ok(webhook.to_owned());
    let layer = layer(Origin::Workspace, "[compat]\ntodo = \"todo.json\"\n");
    let config = Config::load_with(&[layer], [("TODO_WEBHOOK_TOKEN", "t0ken")], &read).unwrap();
    assert_eq!(config.reporters["todo"].report, Report::Webhook(Webhook::to(text("https://x/y"))));
    let file = todo_of(Origin::Workspace, r#"{ "reporter_type": "console" }"#).unwrap();
    assert_eq!(file.ignored, [""; 0], "nothing is sent");
}

#[test]
fn a_configuration_may_name_a_todo_json_elsewhere() {
    let todo = r#"{ "reporter_type": "console", "storage_type": "file", "storage_path": "plans.json" }"#;
    let read = |path: &std::path::Path| match path.to_str() {
        Some(".waypost/../.jaato/todo.json") => Ok(todo.to_owned()),
        _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    };
    let load = |file: &str| {
        let text = format!("[compat]\ntodo = {file:?}\n");
        Config::load_with(&[layer(Origin::Workspace, &text)], [], &read)
    };
    let config = load("../.jaato/todo.json").unwrap();
    assert_eq!(config.reporters["todo"].report, Report::Console);
    assert!(config.ignored[0].contains("its storage is not used"), "{:?}", config.ignored);
    let problem = load("nowhere.json").unwrap_err().problems[0].to_string();
    assert!(
        problem.starts_with(".waypost/config.toml:2: `compat.todo`: \"nowhere.json\" cannot be read"),
        "{problem}"
    );
}

#[test]
fn what_of_a_todo_json_cannot_be_taken_over_is_named() {
    let wrong = |text: &str| todo(text).unwrap_err();
    let input = r#"{ "version": "2", "reporter": { "type": "smoke", "timeout": -1, "headers": [] },
        "storage": { "type": "file", "use_directory": "x" }, "colours": 1 }"#;
    assert_eq!(
        wrong(input),
        [
            "todo.json: `colours` is not a key of a todo.json",
            "todo.json: `version` is 2, and only 1.0 is known",
            "todo.json: the type of `reporter` is \"smoke\"",
            "todo.json: storage \"file\" needs `storage.path`",
        ]
    );
    assert_eq!(
        wrong(
            r#"{ "reporter": { "type": "webhook", "endpoint": "https://x", "timeout": -1, "headers": [], "retries": 3 } }"#
        ),
        [
            "todo.json: `reporter.retries` cannot be taken over",
            "todo.json: `reporter.headers` is not an object",
            "todo.json: `reporter.timeout` is not a number of seconds up to 3600",
        ]
    );
    assert_eq!(
        wrong(
            r#"{ "reporter": { "type": "file", "base_path": "/var/log" }, "storage_type": "file", "storage_path": "../up.json" }"#
        ),
        [
            "todo.json: `reporter.base_path` cannot be taken over",
            "todo.json: `reporter` has no `path`",
            "todo.json: `storage_path` names \"../up.json\", outside of the workspace",
        ]
    );
    assert_eq!(wrong("[]"), ["todo.json: it holds no object"]);
}

#[test]
fn the_sample_configurations_of_jaato_are_read() {
    let Some(folder) = waypost_testkit::observed_data().map(|data| data.join("jaato")) else {
        println!("the observed data is not here");
        return;
    };
    let sample = std::fs::read_to_string(folder.join("todo.example.json")).unwrap();
    assert_eq!(todo(&sample).unwrap().reporters["todo"].report, Report::Console);
    let cases = std::fs::read_to_string(folder.join("config_cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
    assert!(todo(&cases["nested_is_read"].to_string()).is_ok());
    let errors = todo(&cases["errors_for"]["input"].to_string()).unwrap_err();
    assert!(errors.len() >= 3, "{errors:?}");
}

#[test]
fn keys_of_the_terminal_are_kept_with_their_place_and_a_later_file_replaces_them_one_by_one() {
    let user = "[tui]\nmouse = false\n[tui.keys]\neditor.save = \"w\"\nanywhere.quit = [\"q\", \"ctrl+q\"]\n";
    let workspace = "[tui.keys.editor]\nsave = []\n";
    let layers = [layer(Origin::User, user), layer(Origin::Workspace, workspace)];
    let tui = Config::load(&layers, []).unwrap().tui;
    let found =
        tui.keys.iter().map(|one| format!("{}:{} {} = {:?}", one.place, one.line, one.action, one.keys));
    assert_eq!(
        found.collect::<Vec<_>>(),
        ["user.toml:5 anywhere.quit = [\"q\", \"ctrl+q\"]", ".waypost/config.toml:2 editor.save = []"]
    );
    assert!(!tui.mouse && Config::default().tui.mouse);
    check(
        "[tui]\nmose = true\n[tui.keys]\neditor.save = 3\n",
        &[
            ".waypost/config.toml:4: `tui.keys.editor.save` must be a key or a list of keys (for example editor.save = [\"s\", \"ctrl+s\"])",
            ".waypost/config.toml:2: `tui.mose` is not a key of the configuration (did you mean `mouse`?)",
        ],
    );
}

#[test]
fn a_file_that_an_agent_names_can_only_tighten() {
    let own = "approval = \"work\"\n[retry]\nattempts = 3\n[limits]\ntimeout_seconds = 60\n[queues.slow]\nconcurrency = 2\n";
    let user = layer(Origin::User, own);
    let before = Config::load(std::slice::from_ref(&user), []).unwrap();
    let check = |text: &str, expected: &[&str]| {
        let named = layer(Origin::Named, text);
        let found = named.has_only_tightening_keys("an agent").and_then(|()| {
            let after = Config::load(&[user.clone(), named.clone()], [])?;
            named.tightens("an agent", &before, &after)
        });
        let found: Vec<String> = match found {
            Ok(()) => Vec::new(),
            Err(bad) => bad.problems.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found, expected, "{text}");
    };
    check("", &[]);
    check("approval = \"all\"\n[retry]\nattempts = 1\n", &[]);
    check("[approval]\nelicitation = false\n[limits]\ntimeout_seconds = 59\nlog_bytes_max = 0\n", &[]);
    check("[queues.slow]\nconcurrency = 1\n", &[]);
    let cannot = |line: usize, what: &str| format!("named.toml:{line}: an agent's --config cannot {what}");
    for (text, line, what) in [
        ("[executors.a]\nkind = \"noop\"\n", 1, "define executors"),
        ("[checks.a]\ncommand = [\"true\"]\n", 1, "define checks"),
        ("[reporters.a]\nkind = \"console\"\n", 1, "define reporters"),
        ("[models.a]\n", 1, "define models"),
        ("\ndefault_executor = \"noop\"\n", 2, "define default_executor"),
        ("[compat]\ntodo = \"todo.json\"\n", 1, "define compat"),
        ("approval = \"never\"\n", 1, "ask for less approval"),
        ("[retry]\nbackoff_seconds = 1\nattempts = 4\n", 3, "raise retry.attempts"),
        ("[limits]\ntimeout_seconds = 0\n", 2, "raise limits.timeout_seconds"),
        ("[limits]\nstop_seconds = 6\n", 2, "raise limits.stop_seconds"),
        ("[queues.slow]\nconcurrency = 3\n", 1, "raise queues.slow"),
        ("[queues.fast]\nconcurrency = 1\n", 1, "define queues.fast"),
    ] {
        check(text, &[&cannot(line, what)]);
    }
    let todo = Layer { name: "todo.json".to_owned(), ..layer(Origin::Named, "{}") };
    let said = todo.has_only_tightening_keys("a worker").unwrap_err().problems[0].to_string();
    assert_eq!(said, "todo.json: a worker's --config cannot be a todo.json");
}

/// The problems of these layers, a line each.
fn wrong(layers: &[Layer]) -> Vec<String> {
    let bad = Config::load(layers, []).err();
    bad.map(|bad| bad.problems.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

#[test]
fn of_a_file_that_nobody_trusts_only_a_stricter_approval_counts() {
    let check = |text: &str, expected: (ApprovalPolicy, Proof, bool)| {
        let config = Config::load(&[layer(Origin::Untrusted, text)], []).unwrap();
        let ApprovalSettings { policy, proof, pinned_images, .. } = config.approval;
        assert_eq!((policy, proof, pinned_images), expected, "{text}");
        assert_eq!((config.executors.len(), config.reporters.len(), config.ignored.len()), (2, 0, 0));
    };
    let more = (ApprovalPolicy::All, Proof::Signature, true);
    check("[approval]\npolicy = \"all\"\nproof = \"signature\"\npinned_images = true\n", more);
    let same = (ApprovalPolicy::Work, Proof::Presence, false);
    check("[approval]\npolicy = \"never\"\nproof = \"client\"\nseal = \"off\"\n", same);
    check(
        "[executors.a]\nkind = \"process\"\ncommand = [\"a\"]\n[reporters.b]\nkind = \"console\"\nnonsense = 1\n",
        same,
    );
    check("a = \n", same);
}

#[test]
fn of_the_accounts_file_only_approval_counts_where_another_was_chosen() {
    let text = "[approval]\nunattended = false\n[executors.a]\nkind = \"noop\"\n";
    let config = Config::load(&[layer(Origin::UserApproval, text)], []).unwrap();
    assert!(!config.approval.unattended && !config.executors.contains_key("a"));
}

#[test]
fn only_the_accounts_files_waive_approval_and_set_revisions() {
    let revision = "[executors.a]\nkind = \"noop\"\nrevision = \"3\"\n";
    for origin in [Origin::Workspace, Origin::Named] {
        let said = wrong(&[layer(origin, "approval = \"never\"\n")]);
        assert!(
            said[0].ends_with(":1: `approval` = \"never\" counts only in the user's own configuration"),
            "{said:?}"
        );
        let said = wrong(&[layer(origin, revision)]);
        assert!(said[0].contains(":3: `executors.a.revision` counts only in"), "{said:?}");
    }
    for origin in [Origin::Operator, Origin::User] {
        let config =
            Config::load(&[layer(origin, &format!("approval = \"never\"\n{revision}"))], []).unwrap();
        assert_eq!((config.approval.policy, config.revisions["a"].as_str()), (ApprovalPolicy::Never, "3"));
    }
    // What a later file defines under the name is something else.
    let later = layer(Origin::Workspace, "[executors.a]\nkind = \"human\"\n");
    let config = Config::load(&[layer(Origin::User, revision), later], []).unwrap();
    assert!(config.revisions.is_empty());
}

#[test]
fn what_the_operator_says_about_approval_is_never_loosened() {
    let operator = "[approval]\npolicy = \"all\"\nproof = \"signature\"\nseal = \"required\"\nseal_key = \"/k\"\nunattended = false\nelicitation = [\"a\"]\nallowed_signers = \"/s\"\nvalid = \"7d\"\npinned_images = true\n";
    let operator = layer(Origin::Operator, operator);
    let with = |text: &str| wrong(&[operator.clone(), layer(Origin::User, &format!("[approval]\n{text}\n"))]);
    for (key, looser, stricter) in [
        ("policy", "\"work\"", "\"all\""),
        ("proof", "\"presence\"", "\"touch\""),
        ("seal", "\"off\"", "\"required\""),
        ("seal_key", "\"/mine\"", "\"/k\""),
        ("unattended", "true", "false"),
        ("elicitation", "[\"a\", \"b\"]", "[]"),
        ("allowed_signers", "\"/mine\"", "\"/s\""),
        ("valid", "\"8d\"", "\"1d\""),
        ("pinned_images", "false", "true"),
    ] {
        let expected = format!("user.toml:2: `approval.{key}` asks for less than /etc/waypost/config.toml");
        assert_eq!(with(&format!("{key} = {looser}")), [expected]);
        assert_eq!(with(&format!("{key} = {stricter}")), [""; 0], "{key}");
    }
    // Where the operator says nothing, the user decides.
    let silent = layer(Origin::Operator, "[approval]\nproof = \"presence\"\n");
    assert_eq!(wrong(&[silent, layer(Origin::User, "approval = \"never\"\n")]), [""; 0]);
}

#[test]
fn only_the_operator_lists_trusted_folders() {
    let text = "[trust]\nfolders = [\"/srv/plans\"]\n";
    let config = Config::load(&[layer(Origin::Operator, text)], []).unwrap();
    assert_eq!(config.trusted_folders, [std::path::Path::new("/srv/plans")]);
    for origin in [Origin::User, Origin::Workspace, Origin::Named] {
        let said = wrong(&[layer(origin, text)]);
        assert!(said[0].contains(":2: `trust.folders` counts only in /etc/waypost/config.toml"), "{said:?}");
    }
    let said = wrong(&[layer(Origin::Operator, "[trust]\nfolders = [\"plans\"]\n")]);
    assert_eq!(said, ["etc.toml:2: `trust.folders` names \"plans\", which is not a full path"]);
}

#[test]
fn a_workspace_sends_no_secret_to_an_address() {
    let secret = "{ variable = \"KEY\" }";
    for (text, key) in [
        (
            format!("[reporters.r]\nkind = \"webhook\"\nurl = \"https://x\"\nheaders.X = {secret}\n"),
            "reporters.r.headers.X",
        ),
        (
            format!("[reporters.r]\nkind = \"webhook\"\nurl = \"https://x\"\nhmac = {secret}\n"),
            "reporters.r.hmac",
        ),
        (format!("[reporters.r]\nkind = \"webhook\"\nevents = []\nurl = {secret}\n"), "reporters.r.url"),
        (
            format!("[executors.e]\nkind = \"http\"\nurl = \"https://x\"\nheaders.X = {secret}\n"),
            "executors.e.headers.X",
        ),
        (
            format!("[executors.e]\nkind = \"http\"\nurl = \"https://x\"\nhmac = {secret}\n"),
            "executors.e.hmac",
        ),
    ] {
        let bad = Config::load(&[layer(Origin::Workspace, &text)], []).unwrap_err().problems.remove(0);
        assert_eq!((bad.line, bad.hint.as_str()), (Some(4), "move it to ~/.config/waypost/config.toml"));
        assert!(bad.what.starts_with(&format!("{key} sends a secret to an address")), "{bad}");
        assert_eq!(wrong(&[layer(Origin::User, &text)]), [""; 0]);
    }
    let process = format!("[executors.p]\nkind = \"process\"\ncommand = [\"a\"]\nsecrets.K = {secret}\n");
    assert_eq!(wrong(&[layer(Origin::Workspace, &process)]), [""; 0]);
}

#[test]
fn every_setting_of_a_file_is_listed_by_its_full_name() {
    let text =
        "default_executor = \"a\"\n[executors.a]\ncommand = [\"x\", \"y\"]\nsecrets.K = { file = \"k\" }\n";
    let settings = layer(Origin::Workspace, text).settings().unwrap();
    let lines: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let expected = [
        "default_executor = \"a\"",
        "executors.a.command = [\"x\",\"y\"]",
        "executors.a.secrets.K.file = \"k\"",
    ];
    assert_eq!(lines, expected);
    assert_eq!(layer(Origin::Workspace, "# nothing\n").settings().map(|all| all.len()), Some(0));
    assert_eq!(layer(Origin::Workspace, "a = \n").settings(), None);
    for no_object in ["[]", "5", "null", "{"] {
        let name = "todo.json".to_owned();
        let todo = Layer { origin: Origin::Workspace, name, text: no_object.to_owned() };
        assert_eq!(todo.settings(), None, "{no_object}");
    }
}

#[test]
fn an_approval_binds_the_revision_in_place_of_the_definition() {
    let executor = |path: &str, more: &str| {
        let text = format!("[executors.a]\nkind = \"process\"\ncommand = [{path:?}]\n{more}");
        Definitions::of(&Config::load(&[layer(Origin::User, &text)], []).unwrap())
    };
    let hash = |definitions: &Definitions, name: &str| {
        let work = Work { executor: name.to_owned(), inputs: Json::empty_object(), shape: None };
        definitions.of_work(&work).unwrap().hash()
    };
    let revised =
        |path: &str, revision: &str| hash(&executor(path, &format!("revision = {revision:?}\n")), "a");
    assert_eq!(revised("/opt/x", "3"), revised("/usr/x", "3"));
    assert_ne!(revised("/opt/x", "3"), revised("/opt/x", "4"));
    assert_ne!(hash(&executor("/opt/x", ""), "a"), hash(&executor("/usr/x", ""), "a"));
    assert_ne!(hash(&executor("/opt/x", ""), "a"), revised("/opt/x", "3"));
    // `waypost/revision/1`, the name, the kind and the revision, each with its length.
    let mut expected = CanonicalHasher::new("revision", 1);
    expected.text("a").text("process").text("3");
    assert_eq!(revised("/opt/x", "3"), expected.finish());
    // No revision stands for what agents can write: pinned files and prompts.
    let root = std::env::temp_dir().join(format!("waypost-revision-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let text = "[executors.a]\nkind = \"process\"\ncommand = [\"x\"]\npin = [\"run.sh\"]\nrevision = \"3\"\n";
    let mut config = Config::load(&[layer(Origin::User, text)], []).unwrap();
    config.pinned_files.workspace.clone_from(&root);
    let with = |content: &str| {
        std::fs::write(root.join("run.sh"), content).unwrap();
        hash(&Definitions::of(&config), "a")
    };
    assert_eq!(with("make"), with("make"));
    assert_ne!(with("make"), with("evil"));
    std::fs::remove_dir_all(&root).unwrap();
    let agent = |prompt: &str| {
        let text = format!(
            "[executors.a]\nkind = \"agent\"\ncommand = [\"x\"]\nprompt = {prompt:?}\nrevision = \"3\"\n"
        );
        hash(&Definitions::of(&Config::load(&[layer(Origin::User, &text)], []).unwrap()), "a")
    };
    assert_ne!(agent("be careful"), agent("be quick"));
}

#[test]
fn a_pin_stays_below_the_workspace() {
    for pattern in ["../x", "/etc/passwd", "a/***"] {
        let text = format!("[checks.c]\ncommand = [\"make\"]\npin = [{pattern:?}]\n");
        let said = load(&text).unwrap_err().remove(0);
        let said = said.split(" (").next().unwrap().to_owned();
        assert_eq!(
            said,
            format!(
                ".waypost/config.toml:3: `checks.c.pin`: {pattern:?} is no pattern of files below the workspace"
            )
        );
    }
    // An executor that a later file defines anew has its own pins.
    let first = layer(
        Origin::User,
        "[executors.run]\nkind = \"process\"\ncommand = [\"make\"]\npin = [\"Makefile\"]\n",
    );
    let later = layer(Origin::Workspace, "[executors.run]\nkind = \"process\"\ncommand = [\"make\"]\n");
    assert!(Config::load(&[first, later], []).unwrap().pinned_files.is_empty());
}

#[test]
fn where_images_are_pinned_a_tag_is_refused() {
    let workers = "[approval]\npinned_images = true\n[executors.d]\nkind = \"dispatch\"\n\
                   [executors.d.workers.c]\ntarget = \"container\"\nimage = \"alpine:3\"\n\
                   [executors.d.workers.fixed]\ntarget = \"container\"\nimage = \"alpine@sha256:00\"\n";
    let problems = Config::load(&[layer(Origin::User, workers)], []).unwrap_err().problems;
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let what = "the image \"alpine:3\" has no digest, which `approval.pinned_images` asks for";
    assert_eq!(said, [format!("executors.d.c: {what}")]);
    let free = workers.replace("pinned_images = true", "pinned_images = false");
    assert!(Config::load(&[layer(Origin::User, &free)], []).is_ok());
}

#[test]
fn a_target_replaces_the_workers_of_a_dispatch_executor_and_nothing_else() {
    let text = r#"
        [executors.dispatch]
        kind = "dispatch"
        end_when_lost = true
        [executors.dispatch.workers.edit]
        command = ["edit"]
        [executors.dispatch.workers.verify]
        command = ["verify"]
        [executors.dispatch.targets.cloud.workers.edit]
        target = "program"
        command = ["cloud"]
        settings = { cluster = "work" }
        secrets.KEY = { file = "cloud.key" }
        [executors.other]
        kind = "dispatch"
        [executors.other.workers.edit]
        command = ["edit"]
    "#;
    let layer = |text: &str| Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
    let config = Config::load(&[layer(text)], []).unwrap();
    assert!(config.end_when_lost.contains("dispatch") && !config.end_when_lost.contains("other"));
    assert_eq!(config.secret_files(), [std::path::PathBuf::from("cloud.key")], "whether it is chosen or not");
    let chosen = Config::load(&[layer(text), layer("target = \"cloud\"")], []).unwrap();
    let mut by_flag = config.clone();
    by_flag.use_target("cloud").unwrap();
    assert_eq!(by_flag.executors, chosen.executors);
    assert_eq!(chosen.executors["other"], config.executors["other"]);
    let Executor::Dispatch(workers) = &chosen.executors["dispatch"] else { panic!("{chosen:?}") };
    let Worker::Program(program) = &workers["edit"] else { panic!("{workers:?}") };
    assert_eq!((program.process.command.as_slice(), program.poll_seconds), (&["cloud".to_owned()][..], 5));
    assert_eq!(program.settings["cluster"], "work");
    assert!(!workers.contains_key("verify"), "what was forgotten does not run on the wrong side");
    let wrong = Config::load(&[layer(text), layer("target = \"moon\"")], []).unwrap_err();
    assert_eq!(wrong.problems[0].what, "no executor has workers for the target moon");
    assert_eq!(wrong.problems[0].hint, "name one of cloud");
}

#[test]
fn a_literal_credential_is_bound_by_its_hash_and_not_shown() {
    let definitions = |value: &str| {
        let text = format!(
            "[executors.h]\nkind = \"http\"\nurl = \"https://h.example/x?job=deploy&Token=q{value}\"\nheaders.Authorization = \"{value}\"\nheaders.X-Team = \"t{value}\"\n"
        );
        let config = Config::load(&[layer(Origin::User, &text)], []).unwrap();
        serde_json::to_string(&Definitions::of(&config)).unwrap()
    };
    let shown = definitions("s3cret");
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("https://h.example/x?job=deploy&Token=sha256:"), "{shown}");
    assert_ne!(shown, definitions("other"));
}
