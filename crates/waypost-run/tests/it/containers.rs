//! Workers in containers. With `WAYPOST_TEST_ENGINE` (the full path of a docker or podman) and `WAYPOST_TEST_IMAGE` (one
//! with `sh`, `cat` and `sleep`) these are real; otherwise a script stands for the engine, which starts the program on this
//! machine, outside of the engine's own process group, and knows `run`, `ps` and `rm`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command as Program;

use serde_json::json;
use waypost_config::Config;
use waypost_core::{Actor, Command, Json, PlanId, Status, TaskSpec};
use waypost_store::worker_name;
use waypost_testkit::{id, plan_of};

use crate::processes::{Place, configured, with_inputs};
use crate::world::job;

const STAND_IN: &str = r#"#!/bin/sh
state=STATE
printf '%s\n' "$*" >> $state/calls
case $1 in
run)
    shift; labels=
    while :; do
        case $1 in
        --name) name=$2; shift 2 ;;
        --label) labels="$labels $2"; shift 2 ;;
        --rm|--interactive|--init) shift ;;
        --*) shift 2 ;;
        *) break ;;
        esac
    done
    shift
    exec 3<&0
    # The program's own process writes the note before it is the program, as an engine knows a container before it runs.
    setsid sh -c 'note=$1; labels=$2; shift 2; echo "$$$labels" > "$note"; exec "$@"' \
        note $state/containers/$name "$labels" "$@" <&3 3<&- 9>&- & child=$!
    trap 'kill -TERM $child' TERM
    while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || break; done
    rm -f $state/containers/$name
    exit $code ;;
ps)
    for file in $state/containers/*; do
        [ -e "$file" ] || continue
        for filter in "$@"; do
            case $filter in
            name=*) [ "name=^${file##*/}\$" = "$filter" ] || continue 2 ;;
            label=*) case " $(cat $file) " in *" ${filter#label=} "*) ;; *) continue 2 ;; esac ;;
            esac
        done
        echo ${file##*/}
    done ;;
rm)
    [ -e $state/containers/$3 ] || exit 0
    read child rest < $state/containers/$3
    kill -KILL -$child 2>/dev/null
    rm -f $state/containers/$3 ;;
esac
"#;

struct Engine {
    program: PathBuf,
    image: String,
    state: PathBuf,
    real: bool,
}

impl Engine {
    fn new(place: &Place) -> Self {
        let said = |name: &str| std::env::vars().find(|(known, _)| known == name).map(|(_, value)| value);
        let state = place.root.join("engine");
        fs::create_dir_all(state.join("containers")).unwrap();
        if let (Some(program), Some(image)) = (said("WAYPOST_TEST_ENGINE"), said("WAYPOST_TEST_IMAGE")) {
            return Self { program: program.into(), image, state, real: true };
        }
        let program = state.join("docker");
        fs::write(&program, STAND_IN.replace("STATE", state.to_str().unwrap())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, image: "image".to_owned(), state, real: false }
    }

    fn config(&self, script: &str, keys: &str) -> Config {
        let (engine, image, script) = (&self.program, &self.image, Json::of(&script));
        let init = if self.real { "init = false\n" } else { "" };
        configured(&format!(
            "[limits]\nstop_seconds = 1\n[executors.run]\nkind = \"dispatch\"\ntarget = \"container\"\n[executors.run.workers.w]\nengine = {engine:?}\nimage = {image:?}\ncommand = [\"sh\", \"-c\", {script}]\n{init}{keys}\n"
        ))
    }

    fn containers(&self) -> String {
        let listed = Program::new(&self.program)
            .args(["ps", "--all", "--quiet", "--filter", "label=waypost.task=a"])
            .output()
            .unwrap();
        String::from_utf8(listed.stdout).unwrap()
    }
}

fn task() -> TaskSpec {
    with_inputs(job("a", &[], &[]), "run", json!({ "subagent": "w", "workerInput": { "n": 1 } }))
}

/// A line of JSON that names a field of what came in is enough for a shell.
const WORKER: &str = "job=$(cat); echo \"waypost:progress $WAYPOST_TASK $TOKEN\" >&2; case $job in *'\"n\":1'*) echo '{\"ok\": true}' ;; *) exit 3 ;; esac";

#[test]
fn a_container_keeps_to_the_contract_of_a_program() {
    let place = Place::new();
    let engine = Engine::new(&place);
    fs::create_dir_all(place.root.join("work/src")).unwrap();
    let keys = "mounts = [{ source = \"src\", target = \"/src\" }, { source = \"\", target = \"/all\", write = true }]\nworkdir = \"/\"\nmemory = \"64m\"\npids = 50\nuser = \"0\"\nenvironment = [\"LANG\"]\nsecrets.TOKEN = { variable = \"SECRET_SOURCE\" }";
    let (plan, _, _) = place.run(engine.config(WORKER, keys), plan_of([task()]));
    let state = &plan.task("a").unwrap().state;
    assert_eq!((state.status, &state.error), (Status::Done, &None), "{}", place.log(&plan, "a"));
    assert_eq!(state.output.as_ref().map(Json::as_str), Some("{\"ok\":true}"));
    assert!(place.log(&plan, "a").contains("waypost:progress a ***"), "{}", place.log(&plan, "a"));
    assert_eq!(engine.containers(), "");
    let notes = fs::read_dir(place.root.join("runs"))
        .unwrap()
        .filter_map(|entry| entry.ok()?.path().extension().map(|end| end == "containers"));
    assert!(!notes.into_iter().any(|is_note| is_note), "nothing is noted of what is gone");
    if engine.real {
        return;
    }
    let root = place.root.join("work").canonicalize().unwrap();
    let calls = fs::read_to_string(engine.state.join("calls")).unwrap();
    let call = calls.lines().next().unwrap();
    let (name, rest) =
        call.strip_prefix("run --rm --interactive --name waypost-a-1-").unwrap().split_once(' ').unwrap();
    assert_eq!(name.len(), 10);
    let root = root.display();
    let expected = format!(
        "--label waypost.plan={plan} --label waypost.task=a --label waypost.attempt=1 --label waypost.run={run} --security-opt no-new-privileges --network none --mount type=bind,source={root}/src,target=/src,readonly --mount type=bind,source={root},target=/all --workdir / --memory 64m --pids-limit 50 --user 0 --env LANG --env TOKEN --env WAYPOST_PLAN --env WAYPOST_TASK --env WAYPOST_ATTEMPT --env WAYPOST_IDEMPOTENCY_KEY --env WAYPOST_ACTOR --init image sh -c {WORKER}",
        plan = plan.id(),
        run = worker_name()
    );
    assert_eq!(rest, expected);
    assert!(!calls.contains("hunter2"), "{calls}");
}

#[test]
fn exit_codes_mean_what_the_contract_says() {
    let place = Place::new();
    let engine = Engine::new(&place);
    let (plan, _, _) = place.run(engine.config("echo on fire >&2; exit 3", ""), plan_of([task()]));
    let error = plan.task("a").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("it ended with exit code 3: on fire"));
}

#[test]
fn a_container_that_does_not_listen_is_ended_with_its_attempt() {
    let place = Place::new();
    let engine = Engine::new(&place);
    let plan = place.create(plan_of([task()]));
    let script = "trap '' TERM; echo waypost:progress begun >&2; while :; do sleep 1; done";
    let stopped = place.run_until_progress(engine.config(script, ""), &plan);
    assert_eq!(stopped.task("a").unwrap().state.status, Status::Pending);
    assert_eq!(engine.containers(), "");
}

/// A run of this machine that is dead: its process began at another time. Its task is at work, and here are its notes.
fn dead_run(place: &Place, plan: &PlanId) -> (String, PathBuf) {
    let own = worker_name();
    let (front, back) = own.rsplit_once(':').unwrap();
    let (began, namespace) = back.split_once('.').unwrap();
    let dead = format!("{front}:{:x}.{namespace}", u64::from_str_radix(began, 16).unwrap() - 1);
    let start = Command::StartTask { task: id("a"), worker: dead.clone() };
    place.write(plan, &Actor::worker(&*dead), vec![start]);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = dead.chars().map(plain).collect();
    let notes = place.root.join(format!("runs/{name}.containers"));
    fs::create_dir_all(&notes).unwrap();
    (dead, notes)
}

#[test]
fn a_container_that_outlived_its_run_is_ended_before_its_task_starts_again() {
    let place = Place::new();
    let engine = Engine::new(&place);
    let plan = place.create(plan_of([task()]));
    let (dead, notes) = dead_run(&place, &plan);
    let (label, run) = (format!("waypost.plan={plan}"), format!("waypost.run={dead}"));
    let mut left = Program::new(&engine.program)
        .args([
            "run",
            "--rm",
            "--interactive",
            "--name",
            "waypost-left",
            "--label",
            &label,
            "--label",
            "waypost.task=a",
            "--label",
            &run,
            "--network",
            "none",
        ])
        .args([&engine.image, "sh", "-c", "echo up; while :; do sleep 1; done"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(left.stdout.as_mut().unwrap(), &mut up).unwrap();
    left.kill().unwrap();
    left.wait().unwrap();
    assert_ne!(engine.containers(), "", "it runs, and its engine's program is gone");
    fs::write(notes.join("waypost-left"), engine.program.to_str().unwrap()).unwrap();
    // This one was not written to its end, so nothing was started.
    fs::write(notes.join("waypost-cut"), "").unwrap();
    // Whoever can write notes ends no container that the run did not make.
    for other in ["production-db", "--all"] {
        fs::write(notes.join(other), engine.program.to_str().unwrap()).unwrap();
    }
    let done = place.run_again(engine.config("echo 2", ""), &plan);
    let state = &done.task("a").unwrap().state;
    assert_eq!((state.status, state.attempt), (Status::Done, 2), "{:?}", state.error);
    assert_eq!(engine.containers(), "");
    assert!(!notes.exists());
    if !engine.real {
        let calls = fs::read_to_string(engine.state.join("calls")).unwrap();
        let at = |start: &str| calls.lines().position(|call| call.starts_with(start)).unwrap();
        assert!(at("rm --force waypost-left") < at("run --rm --interactive --name waypost-a-2-"), "{calls}");
        let ended: Vec<&str> = calls.lines().filter(|call| call.starts_with("rm ")).collect();
        assert!(ended.iter().all(|call| call.contains("waypost-")), "{calls}");
    }
}

#[test]
fn a_note_that_names_a_program_of_its_own_runs_nothing() {
    let place = Place::new();
    let engine = Engine::new(&place);
    let plan = place.create(plan_of([task()]));
    let (_, notes) = dead_run(&place, &plan);
    let evil = place.root.join("evil");
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\n", place.root.join("pwned").display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(notes.join("waypost-x"), evil.to_str().unwrap()).unwrap();
    let stuck = place.run_briefly(engine.config("echo 2", ""), &plan);
    assert_eq!(
        stuck.task("a").unwrap().state.status,
        Status::Running,
        "the lease of the dead run has to end first"
    );
    assert!(!place.root.join("pwned").exists());
}
