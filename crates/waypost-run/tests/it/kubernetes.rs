//! Workers that are Jobs of a cluster. The cluster is a server on loopback that answers the requests of the API which we
//! use as an API server does (objects, watches, logs, conflicts); it schedules nothing.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use waypost_config::Config;
use waypost_core::{Actor, Command, Json, Plan, PlanId, Retry, Status};
use waypost_testkit::{id, plan_of};

use crate::processes::{Place, configured, with_inputs};
use crate::server::{Reply, Request, Server};
use crate::world::job;

const JOBS: &str = "/apis/batch/v1/namespaces/crew/jobs";
const PODS: &str = "/api/v1/namespaces/crew/pods";

/// What becomes of every pod.
#[derive(Clone, Default)]
struct Pod {
    log: &'static str,
    exit_code: i64,
    message: Option<&'static str>,
    /// It goes on until its Job is deleted.
    stays: bool,
    /// It does not begin, because of this.
    waits: Option<&'static str>,
    /// The log breaks off after so many bytes when it is followed.
    breaks_after: Option<usize>,
    /// The answer to the making of a Job is lost on the way.
    answer_lost: bool,
}

#[derive(Default)]
struct State {
    jobs: BTreeMap<String, Value>,
}

struct Cluster {
    server: Server,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Cluster {
    fn start(place: &Place, pod: Pod) -> Self {
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let kept = Arc::clone(&state);
        let server = Server::start(move |_, request, reply| answer(&kept, &pod, request, reply));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "main",
            "clusters": [{ "name": "c", "cluster": { "server": format!("http://{}", server.address) } }],
            "users": [{ "name": "u", "user": {} }],
            "contexts": [{ "name": "main", "context": { "cluster": "c", "user": "u", "namespace": "crew" } }],
        });
        fs::write(place.root.join("work/kubeconfig"), kubeconfig.to_string()).unwrap();
        Self { server, state }
    }

    fn put(&self, job: Value) {
        let name = job["metadata"]["name"].as_str().unwrap().to_owned();
        self.state.0.lock().unwrap().jobs.insert(name, job);
    }

    fn jobs(&self) -> Vec<String> {
        self.state.0.lock().unwrap().jobs.keys().cloned().collect()
    }

    /// What was asked, without queries.
    fn asked(&self) -> Vec<String> {
        let short = |request: &Request| {
            let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
            let watch = if query.contains("watch=true") { " (watch)" } else { "" };
            format!("{} {path}{watch}", request.method)
        };
        self.server.requests().iter().map(short).collect()
    }
}

fn config(keys: &str) -> Config {
    config_with("kubeconfig", keys)
}

fn config_with(kubeconfig: &str, keys: &str) -> Config {
    configured(&format!(
        "[executors.run]\nkind = \"dispatch\"\ntarget = \"kubernetes\"\n[executors.run.workers.w]\nimage = \"example.org/w:1\"\nkubeconfig = {kubeconfig:?}\n{keys}\n[retry]\nbackoff_seconds = 0\n"
    ))
}

fn answer(state: &(Mutex<State>, Condvar), pod: &Pod, request: &Request, reply: Reply<'_>) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let (lock, changed) = state;
    let status = |code: u16, reason: &str| json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason });
    let selected = query.split('&').find_map(|part| part.strip_prefix("labelSelector=")).unwrap_or("");
    let of_job = selected.rsplit("%3D").next().unwrap_or("").to_owned();
    match (request.method.as_str(), path) {
        ("POST", JOBS) => {
            let mut job: Value = serde_json::from_str(&request.body).unwrap();
            let name = job["metadata"]["name"].as_str().unwrap().to_owned();
            let mut state = lock.lock().unwrap();
            if state.jobs.contains_key(&name) {
                return reply.json(409, &status(409, "AlreadyExists"));
            }
            job["status"] = pod.job_status();
            state.jobs.insert(name, job.clone());
            changed.notify_all();
            drop(state);
            if pod.answer_lost {
                return reply.broken("");
            }
            reply.json(201, &job);
        }
        ("GET", JOBS) if query.contains("watch=true") => {
            let name = query.split("metadata.name%3D").nth(1).unwrap().split('&').next().unwrap().to_owned();
            let job = lock.lock().unwrap().jobs.get(&name).cloned();
            let mut flow = reply.begin();
            let Some(job) = job else { return };
            flow.line(&json!({ "type": "ADDED", "object": job }).to_string());
            wait_until_deleted(state, &name);
            flow.line(&json!({ "type": "DELETED", "object": job }).to_string());
        }
        ("GET", JOBS) => {
            let items: Vec<Value> = lock.lock().unwrap().jobs.values().cloned().collect();
            reply.json(
                200,
                &json!({ "apiVersion": "batch/v1", "kind": "JobList", "metadata": {}, "items": items }),
            );
        }
        ("GET", PODS) if query.contains("watch=true") => {
            let there = lock.lock().unwrap().jobs.contains_key(&of_job);
            let mut flow = reply.begin();
            if there {
                flow.line(&json!({ "type": "ADDED", "object": pod.object(&of_job) }).to_string());
                wait_until_deleted(state, &of_job);
                flow.line(&json!({ "type": "DELETED", "object": pod.object(&of_job) }).to_string());
            }
        }
        ("GET", PODS) => {
            let there = lock.lock().unwrap().jobs.contains_key(&of_job);
            let items: Vec<Value> = there.then(|| pod.object(&of_job)).into_iter().collect();
            reply.json(200, &json!({ "apiVersion": "v1", "kind": "PodList", "metadata": { "resourceVersion": "7" }, "items": items }));
        }
        ("GET", path) if path.ends_with("/log") => {
            let follows = query.contains("follow=true");
            if let Some(bytes) = pod.breaks_after.filter(|_| follows) {
                return reply.broken(&pod.log[..bytes]);
            }
            let mut flow = reply.begin();
            for line in pod.log.lines() {
                flow.line(line);
            }
            if pod.stays && follows {
                wait_until_deleted(
                    state,
                    path.trim_start_matches(PODS).trim_matches('/').trim_end_matches("-pod/log"),
                );
            }
        }
        ("GET", path) => match lock.lock().unwrap().jobs.get(path.trim_start_matches(JOBS).trim_matches('/'))
        {
            Some(job) => reply.json(200, job),
            None => reply.json(404, &status(404, "NotFound")),
        },
        ("DELETE", path) => {
            let name = path.trim_start_matches(JOBS).trim_matches('/');
            let gone = lock.lock().unwrap().jobs.remove(name);
            changed.notify_all();
            match gone {
                Some(job) => reply.json(200, &job),
                None => reply.json(404, &status(404, "NotFound")),
            }
        }
        (_, _) => reply.json(405, &status(405, "MethodNotAllowed")),
    }
}

fn wait_until_deleted(state: &(Mutex<State>, Condvar), name: &str) {
    let held = state.0.lock().unwrap();
    let there = |state: &mut State| state.jobs.contains_key(name);
    let _late = state.1.wait_timeout_while(held, Duration::from_secs(20), there).unwrap();
}

impl Pod {
    fn job_status(&self) -> Value {
        if self.stays {
            return json!({ "active": 1 });
        }
        let (kind, reason) = if self.exit_code == 0 {
            ("Complete", "CompletionsReached")
        } else {
            ("Failed", "BackoffLimitExceeded")
        };
        json!({ "conditions": [
            { "type": "SuccessCriteriaMet", "status": "False" },
            { "type": kind, "status": "True", "reason": reason, "message": "it is over" },
        ] })
    }

    fn object(&self, job: &str) -> Value {
        let state = match (self.waits, self.stays) {
            (Some(reason), _) => json!({ "waiting": { "reason": reason, "message": "back-off" } }),
            (None, true) => json!({ "running": {} }),
            (None, false) => {
                json!({ "terminated": { "exitCode": self.exit_code, "reason": "Error", "message": self.message } })
            }
        };
        let status = json!({ "containerStatuses": [{ "name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state }] });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("{job}-pod") }, "status": status })
    }
}

fn task() -> waypost_core::TaskSpec {
    let inputs = json!({ "subagent": "w", "workerInput": { "file": "a.rs" } });
    let mut task = with_inputs(job("a", &[], &[]), "run", inputs);
    task.retry = Some(Box::new(Retry { attempts: 1, backoff_seconds: 0, backoff_seconds_max: 0 }));
    task
}

fn state(plan: &Plan) -> (Status, String) {
    let state = &plan.task("a").unwrap().state;
    let output = state.output.as_ref().map(Json::as_str);
    let said = state.error.as_deref().or(output).or(state.result.as_deref());
    (state.status, said.unwrap_or_default().to_owned())
}

#[test]
fn a_job_is_made_followed_read_and_taken_away() {
    let place = Place::new();
    let log = "waypost:progress half\nwaypost:output {\"n\": 1}\nmore\nwaypost:output {\"n\": 2}\n";
    let cluster = Cluster::start(&place, Pod { log, ..Pod::default() });
    let keys = "command = [\"run\", \"it\"]\nservice_account = \"builder\"\nrequests.cpu = \"1\"\nlimits.memory = \"1Gi\"\nvariables.MODE = \"fast\"\nsecrets.TOKEN = { secret = \"tokens\", key = \"one\" }\ntimeout_seconds = 90\nttl_seconds = 60\npull_secrets = [\"registry\"]";
    let (plan, _, notices) = place.run(config(keys), plan_of([task()]));
    assert_eq!(state(&plan), (Status::Done, "{\"n\":2}".to_owned()));
    assert!(notices.iter().any(|notice| format!("{notice:?}").contains("half")), "{notices:?}");
    assert_eq!(cluster.jobs(), Vec::<String>::new(), "it is taken away");
    let made = cluster.server.requests().into_iter().find(|request| request.method == "POST").unwrap();
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("waypost-a-1-"), "{name}");
    let labels = &made["metadata"]["labels"];
    assert_eq!(
        (&labels["waypost/plan"], &labels["waypost/task"], &labels["waypost/attempt"]),
        (&plan.id().as_str().into(), &"a".into(), &"1".into())
    );
    let spec = &made["spec"];
    assert_eq!(
        (&spec["backoffLimit"], &spec["activeDeadlineSeconds"], &spec["ttlSecondsAfterFinished"]),
        (&0.into(), &90.into(), &60.into())
    );
    let pod = &spec["template"]["spec"];
    assert_eq!(
        (&pod["restartPolicy"], &pod["serviceAccountName"], &pod["imagePullSecrets"][0]["name"]),
        (&"Never".into(), &"builder".into(), &"registry".into())
    );
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["image"], &container["command"]),
        (&"example.org/w:1".into(), &json!(["run", "it"]))
    );
    assert_eq!(container["resources"], json!({ "requests": { "cpu": "1" }, "limits": { "memory": "1Gi" } }));
    let variable =
        |name: &str| container["env"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned();
    assert_eq!(variable("MODE").unwrap()["value"], "fast");
    assert_eq!(
        variable("TOKEN").unwrap()["valueFrom"]["secretKeyRef"],
        json!({ "name": "tokens", "key": "one" })
    );
    assert_eq!(variable("WAYPOST_IDEMPOTENCY_KEY").unwrap()["value"], format!("{}/a/1", plan.id()));
    assert_eq!(variable("WAYPOST_JOB_FILE").unwrap()["value"], "/waypost/job.json");
    let told: Value =
        serde_json::from_str(spec["template"]["metadata"]["annotations"]["waypost/job"].as_str().unwrap())
            .unwrap();
    assert_eq!((&told["task"], &told["inputs"]["file"]), (&"a".into(), &"a.rs".into()));
    assert_eq!(place.log(&plan, "a"), format!("waypost: Job {name} made\n{log}"));
}

#[test]
fn exit_codes_and_the_last_message_mean_what_the_contract_says() {
    for (pod, expected) in [
        (Pod { message: Some("[1]"), ..Pod::default() }, (Status::Done, "[1]")),
        (Pod { message: Some("in words"), log: "no output\n", ..Pod::default() }, (Status::Done, "in words")),
        (
            Pod { exit_code: 3, log: "on fire\n", ..Pod::default() },
            (Status::Failed, "it ended with exit code 3: on fire"),
        ),
        (
            Pod { exit_code: 75, log: "busy\n", ..Pod::default() },
            (Status::Failed, "it asked to be tried again: busy"),
        ),
        (
            Pod { log: "waypost:output 1234567\n", ..Pod::default() },
            (Status::Failed, "its output has more than 6 bytes"),
        ),
        (Pod { log: "waypost:output 123456\n", ..Pod::default() }, (Status::Done, "123456")),
    ] {
        let place = Place::new();
        let cluster = Cluster::start(&place, pod);
        let mut config = config("");
        config.output_bytes_max = 6;
        if expected.1 == "in words" {
            config.output_bytes_max = 100;
        }
        let (plan, _, _) = place.run(config, plan_of([task()]));
        assert_eq!(state(&plan), (expected.0, expected.1.to_owned()));
        assert_eq!(cluster.jobs(), Vec::<String>::new());
    }
}

#[test]
fn a_log_that_breaks_off_is_read_from_its_beginning() {
    let place = Place::new();
    let pod = Pod { log: "one\nwaypost:output 1\n", breaks_after: Some(6), ..Pod::default() };
    let cluster = Cluster::start(&place, pod);
    let (plan, _, _) = place.run(config(""), plan_of([task()]));
    assert_eq!(state(&plan), (Status::Done, "1".to_owned()));
    assert_eq!(cluster.asked().iter().filter(|asked| asked.ends_with("/log")).count(), 2);
}

/// A plan of one task whose first attempt was lost with its run.
fn with_lost_attempt(place: &Place) -> PlanId {
    let mut spec = task();
    spec.retry = None;
    let plan = place.create(plan_of([spec]));
    let ghost = Actor::worker("ghost");
    let start = Command::StartTask { task: id("a"), worker: "ghost".to_owned() };
    let lose = Command::LoseTask {
        task: id("a"),
        attempt: 1,
        retry: Some(Retry { attempts: 5, backoff_seconds: 0, backoff_seconds_max: 0 }),
    };
    place.write(&plan, &ghost, vec![start, lose]);
    plan
}

fn left_behind(plan: &PlanId, name: &str, key: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "status": status,
        "metadata": { "name": name, "labels": { "waypost/plan": plan.as_str(), "waypost/task": "a" }, "annotations": { "waypost/idempotency-key": key } },
    })
}

#[test]
fn a_job_that_outlived_its_run_is_followed_and_none_is_made() {
    let place = Place::new();
    let pod = Pod { log: "waypost:output \"from the first\"\n", ..Pod::default() };
    let cluster = Cluster::start(&place, pod.clone());
    let plan = with_lost_attempt(&place);
    cluster.put(left_behind(&plan, "old", &format!("{plan}/a/1"), &pod.job_status()));
    cluster.put(left_behind(
        &plan,
        "older-failed",
        &format!("{plan}/a/0"),
        &json!({ "conditions": [{ "type": "Failed", "status": "True" }] }),
    ));
    cluster.put(left_behind(&plan, "of-another", &format!("{plan}/a/b/1"), &pod.job_status()));
    let done = place.run_again(config(""), &plan);
    assert_eq!(state(&done), (Status::Done, "\"from the first\"".to_owned()));
    assert_eq!(done.task("a").unwrap().state.attempt, 2);
    assert!(!cluster.asked().iter().any(|asked| asked.starts_with("POST")), "{:?}", cluster.asked());
    assert_eq!(cluster.jobs(), ["of-another"]);
}

#[test]
fn a_job_whose_making_nobody_heard_of_is_not_made_twice() {
    let place = Place::new();
    let pod = Pod { log: "waypost:output 1\n", answer_lost: true, ..Pod::default() };
    let cluster = Cluster::start(&place, pod);
    let (plan, _, _) = place.run(config(""), plan_of([task()]));
    assert_eq!(state(&plan), (Status::Done, "1".to_owned()));
    assert!(place.log(&plan, "a").contains(" there already\n"), "{}", place.log(&plan, "a"));
    assert_eq!(cluster.asked().iter().filter(|asked| asked.starts_with("POST")).count(), 2);
}

#[test]
fn a_job_is_deleted_when_its_work_is_to_end() {
    let place = Place::new();
    let pod = Pod { log: "waypost:progress begun\n", stays: true, ..Pod::default() };
    let cluster = Cluster::start(&place, pod);
    let plan = place.create(plan_of([with_inputs(job("a", &[], &[]), "run", json!({ "subagent": "w" }))]));
    let stopped = place.run_until_progress(config(""), &plan);
    assert_eq!(state(&stopped).0, Status::Pending);
    assert_eq!(cluster.jobs(), Vec::<String>::new());
    let deleted = cluster.server.requests().into_iter().find(|request| request.method == "DELETE").unwrap();
    assert!(deleted.body.contains("\"propagationPolicy\":\"Background\""), "{}", deleted.body);
}

#[test]
fn what_a_pod_waits_for_is_told() {
    let place = Place::new();
    let pod = Pod { waits: Some("ImagePullBackOff"), stays: true, ..Pod::default() };
    let cluster = Cluster::start(&place, pod);
    let plan = place.create(plan_of([with_inputs(job("a", &[], &[]), "run", json!({ "subagent": "w" }))]));
    let stopped = place.run_until_progress(config(""), &plan);
    assert!(place.log(&stopped, "a").contains("the pod waits: ImagePullBackOff: back-off"));
    assert_eq!(cluster.jobs(), Vec::<String>::new());
}

#[test]
fn what_the_cluster_refuses_fails_with_its_words() {
    let place = Place::new();
    let server = Server::start(|_, _, reply| {
        reply.json(403, &json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "jobs.batch is forbidden" }));
    });
    let _cluster = Cluster::start(&place, Pod::default());
    let text = fs::read_to_string(place.root.join("work/kubeconfig")).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    kubeconfig["clusters"][0]["cluster"]["server"] = format!("http://{}", server.address).into();
    fs::write(place.root.join("work/kubeconfig"), kubeconfig.to_string()).unwrap();
    let (plan, _, _) = place.run(config(""), plan_of([task()]));
    let error = "the cluster refused to make a Job: jobs.batch is forbidden (403)";
    assert_eq!(state(&plan), (Status::Failed, error.to_owned()));
    let (plan, _, _) = place.run(config("context = \"other\""), plan_of([task()]));
    let (status, error) = state(&plan);
    assert_eq!(status, Status::Failed);
    assert!(error.starts_with("no cluster is configured here: "), "{error}");
}

/// Changes the kubeconfig of a place.
fn with_user(place: &Place, file: &str, user: Value) {
    let text = fs::read_to_string(place.root.join("work/kubeconfig")).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"] = user;
    fs::write(place.root.join(file), kubeconfig.to_string()).unwrap();
}

#[test]
fn each_request_carries_the_credentials_of_the_user() {
    for (user, header) in [
        (json!({ "token": "abc" }), "Bearer abc"),
        (json!({ "tokenFile": "token" }), "Bearer from a file"),
        (json!({ "username": "eve", "password": "1 2" }), "Basic ZXZlOjEgMg=="),
    ] {
        let place = Place::new();
        let cluster = Cluster::start(&place, Pod { log: "waypost:output 1\n", ..Pod::default() });
        fs::write(place.root.join("work/token"), "from a file\n").unwrap();
        with_user(&place, "work/kubeconfig", user);
        let (plan, _, _) = place.run(config(""), plan_of([task()]));
        assert_eq!(state(&plan), (Status::Done, "1".to_owned()));
        let requests = cluster.server.requests();
        assert!(requests.len() > 3, "{requests:?}");
        assert!(requests.iter().all(|request| request.headers["authorization"] == header), "{requests:?}");
    }
}

#[test]
fn a_program_gives_credentials_and_is_asked_again_when_they_have_expired() {
    let place = Place::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let server = Server::start(move |_, request, reply| {
        let said = request.headers.get("authorization").cloned().unwrap_or_default();
        kept.lock().unwrap().push(said.clone());
        match said.as_str() {
            "Bearer second" => {
                reply.json(403, &json!({ "kind": "Status", "message": "the second token", "code": 403 }))
            }
            _ => reply.json(401, &json!({ "kind": "Status", "message": "Unauthorized", "code": 401 })),
        }
    });
    let kubeconfig = json!({
        "current-context": "main",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://{}", server.address) } }],
        "users": [{ "name": "u", "user": { "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "provideClusterInfo": true,
            "args": ["-c", "echo \"$KUBERNETES_EXEC_INFO\" > $OUT.info; if [ -e $OUT ]; then t=second; else t=first; touch $OUT; fi; echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'$t'\"}}'"],
            "env": [{ "name": "OUT", "value": place.root.join("asked") }],
        } } }],
        "contexts": [{ "name": "main", "context": { "cluster": "c", "user": "u", "namespace": "crew" } }],
    });
    // Not in the workspace, where agents write.
    fs::write(place.root.join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let outside = place.root.join("kubeconfig").display().to_string();
    let (plan, _, _) = place.run(config_with(&outside, ""), plan_of([task()]));
    let error = "the cluster refused to make a Job: the second token (403)";
    assert_eq!(state(&plan), (Status::Failed, error.to_owned()));
    assert_eq!(seen.lock().unwrap()[..2], ["Bearer first", "Bearer second"]);
    let told: Value =
        serde_json::from_str(&fs::read_to_string(place.root.join("asked.info")).unwrap()).unwrap();
    assert_eq!(told["spec"]["cluster"]["server"], format!("http://{}", server.address));
    fs::write(place.root.join("work/kubeconfig"), kubeconfig.to_string()).unwrap();
    let (plan, _, _) = place.run(config(""), plan_of([task()]));
    let (status, error) = state(&plan);
    assert_eq!(status, Status::Failed);
    assert!(error.contains("lies in the workspace"), "{error}");
}

#[test]
fn more_than_a_pod_can_be_told_is_refused_before_anything_is_made() {
    let place = Place::new();
    let cluster = Cluster::start(&place, Pod::default());
    let large = json!({ "subagent": "w", "workerInput": "x".repeat(240 * 1024) });
    let (plan, _, _) = place.run(config(""), plan_of([with_inputs(task(), "run", large)]));
    let (status, error) = state(&plan);
    assert_eq!(status, Status::Failed);
    assert!(error.contains("pass large inputs and outputs by reference"), "{error}");
    assert_eq!(cluster.asked(), Vec::<String>::new());
}
