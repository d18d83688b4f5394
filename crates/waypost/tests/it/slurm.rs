//! Plans whose work is done by a real Slurm cluster on this machine: a controller and three nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use waypost_core::{Phase, Plan, Status};
use waypost_testkit::slurm::{CPUS_PER_NODE, SlurmCluster};

use crate::examples::stored;
use crate::run::{configure, text};
use crate::transcript::Workspace;

/// How long a test waits for other processes before it gives up. A cluster takes half a minute to miss a node.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at what other processes have done.
const LOOK: Duration = Duration::from_millis(100);

/// The cluster that most tests share. It ends with this process.
fn shared() -> &'static SlurmCluster {
    static CLUSTER: OnceLock<SlurmCluster> = OnceLock::new();
    CLUSTER.get_or_init(|| SlurmCluster::start().expect("a Slurm of our own starts"))
}

/// Waits until something is so.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    // Nobody ever sends: it is waited for and nothing else.
    let (_sender, nothing): (_, Receiver<()>) = channel();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        let _time_passed = nothing.recv_timeout(LOOK);
    }
}

/// A workspace whose configuration has workers of a cluster, with a wrapper that notes each call of `sbatch`.
struct Place<'a> {
    cluster: &'a SlurmCluster,
    workspace: Workspace,
}

impl<'a> Place<'a> {
    /// Workers by name: their script, and other keys.
    fn new(cluster: &'a SlurmCluster, workers: &[(&str, &str, &str)]) -> Self {
        let workspace = Workspace::new();
        let mut config = "[queues.default]\nconcurrency = 40\n[retry]\nbackoff_seconds = 0\n[limits]\nstop_seconds = 3\n[executors.cluster]\nkind = \"dispatch\"\ntarget = \"slurm\"\n".to_owned();
        for (name, script, keys) in workers {
            let script = json!(script);
            config.push_str(&format!(
                "[executors.cluster.workers.{name}]\ncommand = [\"sh\", \"-c\", {script}]\n{keys}\n"
            ));
        }
        configure(&workspace, &config);
        let bin = workspace.root.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let calls = workspace.root.join("calls");
        let wrapper = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\nexec /usr/bin/sbatch \"$@\"\n",
            calls.display()
        );
        fs::write(bin.join("sbatch"), wrapper).unwrap();
        fs::set_permissions(bin.join("sbatch"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { cluster, workspace }
    }

    /// Tasks with what each depends on and its worker.
    fn put(&self, tasks: impl IntoIterator<Item = (String, Vec<String>, &'static str)>) {
        let tasks: Vec<Value> = tasks
            .into_iter()
            .map(|(id, depends_on, worker)| {
                let inputs = json!({ "subagent": worker, "workerInput": { "say": "$(touch never)'\"" } });
                json!({ "id": id, "depends_on": depends_on, "work": { "executor": "cluster", "inputs": inputs } })
            })
            .collect();
        let plan = json!({ "format": "waypost/1", "id": "p", "title": "p", "tasks": tasks });
        fs::write(self.workspace.work().join("p.json"), plan.to_string()).unwrap();
    }

    fn waypost(&self, words: &[&str]) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.workspace.root.join("bin").display());
        command.args(words).env("PATH", path).env("SLURM_CONF", self.cluster.conf());
        command.env("SECRET_SOURCE", "hunter2-hunter2");
        command
    }

    fn start(&self) -> Run {
        let mut command = self.waypost(&["run", "p.json"]);
        Run(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn plan(&self) -> Plan {
        stored(&self.workspace, "p")
    }

    /// What the workers have noted.
    fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(self.workspace.work().join("journal")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn wait_for_journal(&self, lines: usize) -> Vec<String> {
        wait_for("the workers", || Some(self.journal()).filter(|journal| journal.len() >= lines))
    }

    fn touch(&self, name: &str) {
        fs::write(self.workspace.work().join(name), "").unwrap();
    }

    /// The jobs of this workspace as Slurm knows them, each with its state.
    fn jobs(&self) -> Vec<(String, String)> {
        let folder = self.workspace.work().join(".waypost/slurm").display().to_string();
        let format = format!("--Format=ArrayJobID:|,ArrayTaskID:|,StateCompact:|,State:|,WorkDir:{}", 400);
        let words = ["--noheader", "--array", "--states=all", &format];
        let answer = self.cluster.tool("squeue", &words);
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let ours = answer.lines().filter(|line| line.trim_end().ends_with(&folder));
        ours.map(|line| {
            let fields: Vec<&str> = line.split('|').collect();
            let index = fields[1].parse::<u32>().map_or_else(|_| String::new(), |at| format!("_{at}"));
            (format!("{}{index}", fields[0]), fields[3].to_owned())
        })
        .collect()
    }

    /// The job of a task, once it has one.
    fn job(&self, task: &str) -> String {
        wait_for("the job of a task", || {
            let job = fs::read_to_string(self.folder(task)?.join("job")).ok();
            job.map(|job| job.trim().to_owned())
        })
    }

    /// The folder that an attempt of a task shares with the nodes.
    fn folder(&self, task: &str) -> Option<PathBuf> {
        let folders = fs::read_dir(self.workspace.work().join(".waypost/slurm")).ok()?;
        let wanted = format!("waypost-{task}-");
        let is_it =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&wanted));
        folders.filter_map(|entry| Some(entry.ok()?.path())).find(is_it)
    }

    /// Nothing is left that would hold a secret, an input or an output.
    fn is_clean(&self) {
        let folder = self.workspace.work().join(".waypost/slurm");
        let left: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(left, ["scripts"]);
        assert_eq!(fs::read_dir(self.workspace.work().join(".waypost/slurm/scripts")).unwrap().count(), 0);
    }

    fn log(&self, task: &str) -> String {
        text(&self.waypost(&["log", "p", task]).output().unwrap()).0
    }
}

/// A run that ends with the test.
struct Run(Child);

impl Run {
    fn ends(&mut self) -> Option<i32> {
        wait_for("the end of the run", || self.0.try_wait().unwrap()).code()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id() as i32).unwrap(), signal).unwrap();
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn ended(plan: &Plan, task: &str) -> (Status, u32, String) {
    let state = &plan.task(task).unwrap().state;
    (state.status, state.attempt, state.error.clone().unwrap_or_default())
}

#[test]
#[ignore = "needs Slurm"]
fn sixty_tasks_go_through_three_nodes_in_few_arrays_and_each_runs_once() {
    let script = "job=$(cat); echo \"$WAYPOST_TASK $WAYPOST_ATTEMPT $SLURMD_NODENAME\" >> journal; echo \"waypost:progress half $TOKEN\" >&2; sleep 0.3; printf '%s' \"$job\"";
    let keys = "cpus = 1\nmemory = \"10M\"\nnice = 5\noptions = [\"--distribution=cyclic\"]\nsecrets.TOKEN = { variable = \"SECRET_SOURCE\" }";
    let place = Place::new(shared(), &[("w", script, keys)]);
    let before = |number: usize| if number < 20 { Vec::new() } else { vec![format!("t{}", number - 20)] };
    place.put((0..60).map(|number| (format!("t{number}"), before(number), "w")));
    let output = place.waypost(&["run", "p.json"]).output().unwrap();
    let plan = place.plan();
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    assert_eq!(plan.counts().done, 60);
    let journal = place.journal();
    let started: BTreeSet<&str> = journal.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!((started.len(), journal.len()), (60, 60), "each task runs once: {journal:?}");
    let nodes: BTreeSet<&str> = journal.iter().map(|line| line.rsplit_once(' ').unwrap().1).collect();
    assert_eq!(nodes, BTreeSet::from(["node1", "node2", "node3"]));
    let calls = fs::read_to_string(place.workspace.root.join("calls")).unwrap();
    assert!(calls.lines().count() < 40, "{} submissions for 60 tasks", calls.lines().count());
    assert!(calls.lines().next().unwrap().contains("--array=0-19"), "{calls}");
    assert!(
        calls.contains("--nice=5") && calls.contains("--mem=10M") && !calls.contains("hunter2"),
        "{calls}"
    );
    // What a worker is told is what it gets, whatever stands in it.
    let told = plan.task("t3").unwrap().state.output.as_ref().unwrap().value();
    assert_eq!(told["inputs"]["say"], "$(touch never)'\"");
    assert!(!place.workspace.work().join("never").exists());
    let log = place.log("t3");
    assert!(log.contains(" is on node") && !log.contains("waypost:progress"), "{log}");
    let file = fs::read_to_string(place.workspace.work().join(".waypost/logs/p/t3.1.log")).unwrap();
    assert!(file.contains("waypost:progress half ***"), "{file}");
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn what_slurm_says_of_a_job_becomes_the_end_of_its_attempt() {
    let workers = [
        ("fails", "echo on fire >&2; exit 3", ""),
        ("later", "[ $WAYPOST_ATTEMPT -gt 1 ] || exit 75", ""),
        ("asks", "case $(cat) in *'\"answers\"'*) ;; *) echo waypost:question Which one? >&2 ;; esac", ""),
        ("sleeps", "exec sleep 300", "time_minutes = 1"),
        ("over", "exec sleep 300", "timeout_seconds = 3"),
        ("nowhere", "true", "partition = \"nope\""),
    ];
    let place = Place::new(shared(), &workers);
    let names = ["fails", "later", "asks", "over", "nowhere"].map(|name| (name.to_owned(), Vec::new(), name));
    let sleepers = ["cancelled", "late"].map(|name| (name.to_owned(), Vec::new(), "sleeps"));
    place.put(names.into_iter().chain(sleepers));
    let mut run = place.start();
    let late = place.job("late");
    wait_for("the job to run", || place.jobs().contains(&(late.clone(), "RUNNING".to_owned())).then_some(()));
    // Slurm counts in minutes, and an administrator can shorten one.
    let job = format!("JobId={late}");
    assert!(place.cluster.tool("scontrol", &["update", &job, "EndTime=now+1"]).status.success());
    assert!(place.cluster.tool("scancel", &[&place.job("cancelled")]).status.success());
    wait_for("the question", || {
        place
            .waypost(&["answer", "p", "asks", "blue"])
            .env("WAYPOST_INJECTED_TERMINAL", "yes")
            .output()
            .unwrap()
            .status
            .success()
            .then_some(())
    });
    assert_eq!(run.ends(), Some(1));
    let plan = place.plan();
    assert_eq!(ended(&plan, "asks").0, Status::Done);
    let fails = (Status::Failed, 1, "it ended with exit code 3: on fire".to_owned());
    assert_eq!(ended(&plan, "fails"), fails);
    assert_eq!(ended(&plan, "later").0, Status::Done);
    assert_eq!(ended(&plan, "later").1, 2);
    assert_eq!(ended(&plan, "over").2, "it took longer than 3 s and was stopped");
    let (_, _, error) = ended(&plan, "nowhere");
    assert!(error.contains("Invalid partition name"), "{error}");
    let (_, attempt, error) = ended(&plan, "cancelled");
    assert!(attempt == 1 && error.starts_with("it was cancelled in Slurm"), "{error}");
    let (_, attempt, error) = ended(&plan, "late");
    assert!(attempt == 1 && error.starts_with("it took longer than its time limit in Slurm"), "{error}");
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn a_plan_that_is_cancelled_ends_its_jobs_and_stays_cancelled() {
    let script =
        "trap 'echo term >> journal; exit 1' TERM; echo begun >> journal; while :; do sleep 0.1; done";
    let place = Place::new(shared(), &[("w", script, "")]);
    place.put((0..3).map(|number| (format!("t{number}"), Vec::new(), "w")));
    let mut run = place.start();
    place.wait_for_journal(3);
    assert!(place.waypost(&["cancel", "p"]).output().unwrap().status.success());
    run.ends();
    assert_eq!(place.plan().state().phase, Phase::Cancelled);
    let states: BTreeMap<String, String> = place.jobs().into_iter().collect();
    assert_eq!(states.len(), 3);
    assert!(states.values().all(|state| state == "CANCELLED"), "{states:?}");
    let asked = place.journal().iter().filter(|line| *line == "term").count();
    assert_eq!(asked, 3, "each was asked before it was killed");
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn a_killed_run_leaves_its_jobs_and_the_next_one_takes_them_over() {
    let script = "echo \"$WAYPOST_TASK $WAYPOST_ATTEMPT\" >> journal; until [ -e go-$WAYPOST_TASK ]; do sleep 0.1; done; echo \"{\\\"attempt\\\": $WAYPOST_ATTEMPT}\"";
    let place = Place::new(shared(), &[("w", script, "")]);
    place.put((0..4).map(|number| (format!("t{number}"), Vec::new(), "w")));
    let mut run = place.start();
    place.wait_for_journal(4);
    run.kill();
    // It may have died after it had submitted the job, and before it could note its number.
    fs::remove_file(place.folder("t1").unwrap().join("job")).unwrap();
    // One ends while nobody looks.
    let ended_alone = place.job("t0");
    place.touch("go-t0");
    wait_for("a job to end", || {
        place.jobs().contains(&(ended_alone.clone(), "COMPLETED".to_owned())).then_some(())
    });
    let mut run = place.start();
    let is_followed =
        |task: &str| place.log(task).contains("of an earlier attempt is there, and is followed");
    wait_for("the others to be followed", || (1..4).all(|at| is_followed(&format!("t{at}"))).then_some(()));
    (1..4).for_each(|at| place.touch(&format!("go-t{at}")));
    assert_eq!(run.ends(), Some(0));
    let plan = place.plan();
    assert_eq!(place.journal().len(), 4, "nothing was started twice: {:?}", place.journal());
    for at in 0..4 {
        let state = &plan.task(&format!("t{at}")).unwrap().state;
        assert_eq!((state.status, state.attempt), (Status::Done, 2));
        let output = state.output.as_ref().map(|output| output.value());
        assert_eq!(output, Some(json!({ "attempt": 1 })), "the result is that of the first attempt");
    }
    assert_eq!(fs::read_to_string(place.workspace.root.join("calls")).unwrap().lines().count(), 1);
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn a_job_whose_task_was_cancelled_while_its_run_was_dead_is_cancelled_by_the_next_run() {
    let script = "echo begun >> journal; while :; do sleep 0.1; done";
    let place = Place::new(shared(), &[("w", script, ""), ("quick", "true", "")]);
    place.put((0..3).map(|number| (format!("t{number}"), Vec::new(), "w")));
    let mut run = place.start();
    place.wait_for_journal(3);
    run.kill();
    // It may have died before it could note the number of the job.
    fs::remove_file(place.folder("t1").unwrap().join("job")).unwrap();
    let jobs = place.jobs();
    assert_eq!(jobs.len(), 3);
    assert!(jobs.iter().all(|(_, state)| state == "RUNNING"), "{jobs:?}");
    assert!(place.waypost(&["cancel", "p"]).output().unwrap().status.success());
    // The next run is one of another plan.
    let other = json!({ "format": "waypost/1", "id": "q", "title": "q", "tasks": [{ "id": "a", "work": { "executor": "noop" } }] });
    fs::write(place.workspace.work().join("q.json"), other.to_string()).unwrap();
    let output = place.waypost(&["run", "q.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    let jobs = place.jobs();
    assert!(jobs.iter().all(|(_, state)| state == "CANCELLED"), "{jobs:?}");
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn a_run_that_was_asleep_does_not_end_the_job_that_another_has_taken_over() {
    let script = "echo \"$WAYPOST_TASK $WAYPOST_ATTEMPT\" >> journal; until [ -e go ]; do sleep 0.1; done";
    let place = Place::new(shared(), &[("w", script, "")]);
    place.put([("a".to_owned(), Vec::new(), "w")]);
    let config = place.workspace.work().join(".waypost/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("[lease]\nseconds = 3\nheartbeat_seconds = 1\n{text}")).unwrap();
    place.workspace.trust();
    let mut asleep = place.start();
    place.wait_for_journal(1);
    let job = place.job("a");
    asleep.signal(Signal::STOP);
    let mut awake = place.start();
    wait_for("the job to be followed", || place.log("a").contains("is followed").then_some(()));
    asleep.signal(Signal::CONT);
    let log = place.workspace.work().join(".waypost/logs/p/a.1.log");
    wait_for("the run to wake up", || {
        fs::read_to_string(&log).unwrap().contains("a later attempt follows its job").then_some(())
    });
    assert_eq!(place.jobs(), [(job, "RUNNING".to_owned())]);
    place.touch("go");
    assert_eq!((awake.ends(), asleep.ends()), (Some(0), Some(0)));
    assert_eq!(place.journal(), ["a 1"]);
    assert_eq!(ended(&place.plan(), "a"), (Status::Done, 2, String::new()));
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn a_node_whose_daemon_is_killed_does_not_keep_a_plan_from_its_end() {
    let cluster = SlurmCluster::start().unwrap();
    let script = "echo \"$WAYPOST_TASK $WAYPOST_ATTEMPT $SLURMD_NODENAME $$\" >> journal; [ $WAYPOST_ATTEMPT -gt 1 ] || until [ -e go-$WAYPOST_TASK ]; do sleep 0.1; done";
    // Each takes all of a node.
    let place = Place::new(&cluster, &[("w", script, &format!("cpus = {CPUS_PER_NODE}"))]);
    let before = |number: usize| if number < 3 { Vec::new() } else { vec![format!("t{}", number - 3)] };
    place.put((0..6).map(|number| (format!("t{number}"), before(number), "w")));
    let mut run = place.start();
    let journal = place.wait_for_journal(3);
    let first = journal.iter().find(|line| line.starts_with("t0 ")).unwrap();
    let words: Vec<&str> = first.split(' ').collect();
    cluster.kill(words[2].trim_start_matches("node").parse().unwrap());
    (1..6).for_each(|at| place.touch(&format!("go-t{at}")));
    assert_eq!(run.ends(), Some(0));
    let plan = place.plan();
    assert_eq!(ended(&plan, "t0").1, 2, "the cluster missed the node, and the task was tried again");
    assert!((1..6).all(|at| ended(&plan, &format!("t{at}")).1 == 1));
    assert_eq!(place.journal().len(), 7, "{:?}", place.journal());
    // Its program outlived the daemon; it ends when it sees that nobody waits for it.
    let process = format!("/proc/{}", words[3]);
    wait_for("the program on the lost node to end", || (!fs::exists(&process).unwrap()).then_some(()));
}

#[test]
#[ignore = "needs Slurm"]
fn while_the_controller_is_away_nothing_is_lost_and_nothing_runs_twice() {
    let cluster = SlurmCluster::start().unwrap();
    let script = "echo \"$WAYPOST_TASK\" >> journal; until [ -e go ]; do sleep 0.1; done";
    let place = Place::new(&cluster, &[("w", script, "")]);
    place.put((0..6).map(|number| (format!("t{number}"), Vec::new(), "w")));
    cluster.kill(0);
    let doctor = place.waypost(&["doctor"]).output().unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{:?}", text(&doctor));
    assert!(text(&doctor).0.contains("Slurm's controller does not answer"), "{:?}", text(&doctor));
    let mut run = place.start();
    let calls = || fs::read_to_string(place.workspace.root.join("calls")).unwrap_or_default();
    wait_for("a submission that fails", || (calls().lines().count() >= 1).then_some(()));
    cluster.start_controller();
    place.wait_for_journal(6);
    // And once more while they run.
    cluster.kill(0);
    place.touch("go");
    wait_for("the programs to end", || (place.plan().counts().done >= 1).then_some(()));
    cluster.start_controller();
    assert_eq!(run.ends(), Some(0));
    assert_eq!(place.journal().len(), 6, "{:?}", place.journal());
    assert_eq!(place.plan().counts().done, 6);
}

#[test]
#[ignore = "needs Slurm"]
fn a_submission_whose_answer_is_lost_is_found_and_not_made_again() {
    let script = "echo \"$WAYPOST_TASK\" >> journal";
    let place = Place::new(shared(), &[("w", script, "")]);
    place.put((0..5).map(|number| (format!("t{number}"), Vec::new(), "w")));
    let wrapper = place.workspace.root.join("bin/sbatch");
    let lost = "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)' >&2; exit 1";
    let calls = place.workspace.root.join("calls");
    let text_of = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\n/usr/bin/sbatch \"$@\" > /dev/null\n{lost}\n",
        calls.display()
    );
    fs::write(&wrapper, text_of).unwrap();
    let output = place.waypost(&["run", "p.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    assert_eq!(fs::read_to_string(calls).unwrap().lines().count(), 1);
    assert_eq!(place.journal().len(), 5, "{:?}", place.journal());
    place.is_clean();
}

#[test]
#[ignore = "needs Slurm"]
fn a_machine_without_slurm_says_so() {
    let place = Place::new(shared(), &[("w", "true", "")]);
    place.put([("a".to_owned(), Vec::new(), "w")]);
    let missing = "sbatch is not in the PATH: run this where jobs of the cluster are submitted, or install Slurm's programs";
    let doctor = place.waypost(&["doctor"]).env("PATH", "/nowhere").output().unwrap();
    let (out, err) = text(&doctor);
    assert_eq!(
        (doctor.status.code(), out.trim_end()),
        (Some(1), format!("executor cluster: {missing}").as_str())
    );
    assert!(err.contains("scontrol ping"), "{err}");
    let run = place.waypost(&["run", "p.json"]).env("PATH", "/nowhere").output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert_eq!(ended(&place.plan(), "a"), (Status::Failed, 1, missing.to_owned()));
    let doctor = place.waypost(&["doctor"]).output().unwrap();
    assert_eq!(doctor.status.code(), Some(0), "{:?}", text(&doctor));
}
