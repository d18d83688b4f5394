//! Two clones of a repository in which people, agents and servers act at random through the command line and MCP, sync and
//! are killed. At the end both have the same plans, every question can be answered, and nothing that was acknowledged is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use waypost_testkit::{SeededRng, injected_account, program_path};

const WAYPOST: &str = env!("CARGO_BIN_EXE_waypost");
const NAMES: [&str; 2] = ["a", "b"];
/// Plans that there are at most.
const PLANS_MAX: usize = 8;
/// Tasks of a plan above which more are removed than added.
const TASKS_MAX: usize = 60;
/// Rounds of syncs after which clones must agree.
const ROUNDS_MAX: usize = 6;

/// A process of `waypost mcp`, which answers line by line.
struct Agent {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Agent {
    fn start(mut command: Command) -> Self {
        let command = command.args(["mcp", "--toolset", "native", "--agent", "robin"]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = pipes.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut agent = Self { process, input, output: BufReader::new(output), number: 0 };
        let client = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        agent.request("initialize", &hello);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(agent.input, "{ready}").unwrap();
        agent
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let call = json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters });
        writeln!(self.input, "{call}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "{call}: the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.number && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool. Returns its answer, if it did what it was asked.
    fn call(&mut self, tool: &str, arguments: &Value) -> Option<Value> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        (result["isError"] != true).then(|| result["structuredContent"].clone())
    }

    /// Sends a call, and kills the server before it may have answered.
    fn kill_in_call(mut self, tool: &str, arguments: &Value, after: Duration) {
        let call = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": call });
        writeln!(self.input, "{call}").unwrap();
        pause(after);
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have been killed already.
        let _gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn pause(time: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _later = receiver.recv_timeout(time);
}

/// A clone with those who work there.
struct Clone {
    folder: PathBuf,
    agent: Option<Agent>,
    server: Option<Child>,
    /// The tasks of each plan, as they were seen last.
    tasks: BTreeMap<String, Vec<String>>,
}

/// See the module.
pub(crate) struct Soak {
    root: PathBuf,
    clones: Vec<Clone>,
    plans: Vec<String>,
    dice: SeededRng,
    number: usize,
    /// The words that acknowledged writes brought, each of them once, with what was done.
    acknowledged: BTreeMap<String, String>,
    /// The tasks that were added, with their plans.
    added: BTreeSet<(String, String)>,
    counts: BTreeMap<&'static str, [usize; 2]>,
}

impl Soak {
    pub(crate) fn new(seed: u64) -> Self {
        let root = std::env::temp_dir().join(format!("waypost-clones-{}-{seed}", std::process::id()));
        // Left by a process of this number that was killed.
        let _none = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("home/.config/waypost")).unwrap();
        let root = fs::canonicalize(root).unwrap();
        let clone = |name: &&str| Clone {
            folder: root.join(name),
            agent: None,
            server: None,
            tasks: BTreeMap::new(),
        };
        let soak = Self {
            clones: NAMES.iter().map(clone).collect(),
            root: root.clone(),
            plans: Vec::new(),
            dice: SeededRng::new(seed),
            number: 0,
            acknowledged: BTreeMap::new(),
            added: BTreeSet::new(),
            counts: BTreeMap::new(),
        };
        soak.git(&root, &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        soak.git(&root, &["init", "--quiet", "--initial-branch=main", "seed"]);
        soak.git(&root.join("seed"), &["commit", "--quiet", "--allow-empty", "-m", "begin"]);
        soak.git(&root.join("seed"), &["push", "--quiet", "../origin.git", "main"]);
        NAMES.iter().for_each(|name| drop(soak.git(&root, &["clone", "--quiet", "origin.git", name])));
        soak.must(0, &["init", "--git"]);
        soak.must(0, &["sync"]);
        soak.must(1, &["init", "--git"]);
        soak
    }

    fn command(&self, folder: &Path, program: &str) -> Command {
        let mut command = Command::new(program);
        let home = self.root.join("home");
        let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        command
            .current_dir(folder)
            .env_clear()
            .env("PATH", program_path())
            .env("HOME", &home)
            .env("LC_ALL", "C.UTF-8")
            .envs(names.map(|name| (name, "ada@example.org")))
            .envs(injected_account(&home))
            .stdin(Stdio::null());
        command
    }

    fn waypost(&self, at: usize, words: &[&str]) -> Command {
        let mut command = self.command(&self.clones[at].folder, WAYPOST);
        command.env("WAYPOST_INJECTED_TERMINAL", "yes").args(words);
        command
    }

    fn git(&self, folder: &Path, words: &[&str]) -> String {
        let output = self.command(folder, "git").args(words).output().unwrap();
        assert!(output.status.success(), "git {words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn run(&self, at: usize, words: &[&str]) -> Output {
        let output = self.waypost(at, &[words, &["--json"]].concat()).output().unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains("panicked") && output.status.code().is_some(), "{words:?}: {said}");
        output
    }

    /// Runs a command that has to succeed.
    #[track_caller]
    fn must(&self, at: usize, words: &[&str]) -> Value {
        let output = self.run(at, words);
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert!(output.status.success(), "{} {words:?} after {} acts: {said}", NAMES[at], self.number);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Counts whether an act was done or refused, and notes what it brought.
    fn note(&mut self, act: &'static str, at: usize, answer: Option<&Value>, plan: &str, word: &str) {
        self.counts.entry(act).or_default()[usize::from(answer.is_none())] += 1;
        let Some(answer) = answer else { return };
        if !word.is_empty() {
            self.acknowledged.insert(word.to_owned(), format!("{act} in {} of {}", NAMES[at], plan));
        }
        let ids = [&answer["task"], &answer["added"]].into_iter().filter_map(Value::as_str);
        let ids: Vec<String> =
            ids.filter(|_| act.contains("add")).flat_map(|ids| ids.split(", ")).map(str::to_owned).collect();
        for id in ids.into_iter().filter(|id| !id.is_empty()) {
            self.clones[at].tasks.entry(plan.to_owned()).or_default().push(id.clone());
            self.added.insert((plan.to_owned(), id));
        }
    }

    /// Does something at the command line of a clone, which may be refused.
    fn act(&mut self, act: &'static str, at: usize, plan: &str, word: &str, words: &[&str]) {
        let output = self.run(at, words);
        let answer = output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap());
        self.note(act, at, answer.as_ref(), plan, word);
    }

    /// Starts a command and kills it a little later, unless it was faster. Nobody was told that it was done.
    fn kill(&mut self, at: usize, words: &[&str]) {
        let time = Duration::from_millis(self.dice.below(150) as u64);
        let mut command = self.waypost(at, words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        pause(time);
        // It may have ended by itself.
        let _gone = child.kill();
        child.wait().unwrap();
        *self.counts.entry("kill").or_default() =
            [self.counts.get("kill").map_or(1, |[done, _]| done + 1), 0];
    }

    fn agent(&mut self, at: usize) -> Agent {
        let running = self.clones[at].agent.take();
        running.unwrap_or_else(|| Agent::start(self.command(&self.clones[at].folder, WAYPOST)))
    }

    /// Lets the agent of a clone call a tool, which may be refused.
    fn call(
        &mut self,
        act: &'static str,
        at: usize,
        plan: &str,
        word: &str,
        tool: &str,
        arguments: Value,
    ) -> Option<Value> {
        let mut agent = self.agent(at);
        if self.dice.below(60) == 0 {
            let time = Duration::from_millis(self.dice.below(40) as u64);
            agent.kill_in_call(tool, &arguments, time);
            return None;
        }
        let answer = agent.call(tool, &arguments);
        self.clones[at].agent = Some(agent);
        self.note(act, at, answer.as_ref(), plan, word);
        answer
    }

    fn edit(&mut self, act: &'static str, at: usize, plan: &str, word: &str, op: Value) {
        self.call(act, at, plan, word, "plan_edit", json!({ "plan": plan, "ops": [op] }));
    }

    /// The plan in the native format; `None` if the clone does not have it.
    fn exported(&self, at: usize, plan: &str) -> Option<Value> {
        let output = self.run(at, &["export", plan, "--format", "native"]);
        let answer: Value =
            output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())?;
        Some(serde_json::from_str(answer["text"].as_str().unwrap()).unwrap())
    }

    fn look(&mut self, at: usize, plan: &str) {
        let tasks =
            self.exported(at, plan).map(|found| found["tasks"].as_array().cloned().unwrap_or_default());
        let ids =
            tasks.into_iter().flatten().filter_map(|task| task["id"].as_str().map(str::to_owned)).collect();
        self.clones[at].tasks.insert(plan.to_owned(), ids);
    }

    fn new_plan(&mut self, at: usize) {
        let plan = format!("p{}", self.plans.len());
        let word = format!("w{}x", self.number);
        let words = ["new", &word, "--id", &plan, "--task", "one", "--task", "two", "--task", "three"];
        self.must(at, &words);
        self.must(at, &["share", &plan]);
        self.acknowledged.insert(word, format!("new {plan}"));
        self.plans.push(plan);
    }

    /// Does so many acts.
    pub(crate) fn act_at_random(&mut self, acts: usize) {
        for _ in 0..2 {
            self.new_plan(0);
        }
        for at in [0, 1] {
            self.must(at, &["sync"]);
        }
        // In the last third, servers and agents sync in the background.
        let background = self.number + acts * 2 / 3;
        let end = self.number + acts;
        while self.number < end {
            self.number += 1;
            if self.number == background {
                let config = self.root.join("home/.config/waypost/config.toml");
                fs::write(config, "[git]\nsync = \"auto\"\n").unwrap();
                self.clones.iter_mut().for_each(|clone| clone.agent = None);
            }
            let at = self.dice.below(2);
            if self.number > background && self.clones[at].server.is_none() {
                let mut serve = self.waypost(at, &["serve", "--no-worker", "--listen", "127.0.0.1:0"]);
                let serve = serve.stdout(Stdio::null()).stderr(Stdio::null());
                self.clones[at].server = Some(serve.spawn().unwrap());
            }
            self.act_once(at);
        }
        for clone in &mut self.clones {
            clone.agent = None;
            if let Some(mut server) = clone.server.take() {
                server.kill().unwrap();
                server.wait().unwrap();
            }
        }
        let config = self.root.join("home/.config/waypost/config.toml");
        // The background may never have begun.
        let _none = fs::remove_file(config);
    }

    fn act_once(&mut self, at: usize) {
        let plan = self.dice.pick(&self.plans).clone();
        let plan = plan.as_str();
        if self.dice.below(12) == 0 || !self.clones[at].tasks.contains_key(plan) {
            self.look(at, plan);
        }
        let ids = self.clones[at].tasks.get(plan).filter(|ids| !ids.is_empty()).cloned();
        let ids = ids.unwrap_or_else(|| vec!["t1".to_owned()]);
        let (task, other) = (self.dice.pick(&ids).clone(), self.dice.pick(&ids).clone());
        let (task, other) = (task.as_str(), other.as_str());
        let word = format!("w{}x", self.number);
        let word = word.as_str();
        let is_full = ids.len() > TASKS_MAX;
        match self.dice.below(200) {
            // What agents do, through MCP.
            0..18 if !is_full => {
                let mut op = json!({ "op": "add", "description": word });
                match self.dice.below(4) {
                    0 => op["parent"] = json!(other),
                    1 => op["depends_on"] = json!([other]),
                    _ => {}
                }
                self.edit("agent adds", at, plan, word, op);
            }
            18..26 => {
                let lines = format!("one\n- {word}\n{}\nfour", self.dice.below(3));
                self.edit(
                    "agent notes",
                    at,
                    plan,
                    word,
                    json!({ "op": "revise", "task": task, "notes": lines }),
                );
            }
            26..30 => self.edit(
                "agent describes",
                at,
                plan,
                word,
                json!({ "op": "revise", "task": task, "description": word }),
            ),
            30..34 => self.edit(
                "agent depends",
                at,
                plan,
                "",
                json!({ "op": "revise", "task": task, "depends_on": [other] }),
            ),
            34..38 => {
                self.edit("agent moves", at, plan, "", json!({ "op": "move", "task": task, "parent": other }))
            }
            38..41 => self.edit(
                "agent removes",
                at,
                plan,
                "",
                json!({ "op": "remove", "task": task, "detach": true }),
            ),
            41..45 => {
                self.edit(
                    "agent comments",
                    at,
                    plan,
                    word,
                    json!({ "op": "comment", "task": task, "text": word }),
                );
            }
            45..48 => {
                self.edit(
                    "agent labels",
                    at,
                    plan,
                    word,
                    json!({ "op": "label", "task": task, "labels": [word] }),
                );
            }
            48..50 => self.edit("agent plans", at, plan, word, json!({ "op": "plan", "body": word })),
            50..56 => {
                let status = *self.dice.pick(&["pending", "skipped", "cancelled"]);
                self.edit(
                    "agent sets",
                    at,
                    plan,
                    "",
                    json!({ "op": "status", "task": task, "status": status }),
                );
            }
            56..59 => {
                let op = json!({ "op": "hold", "task": task, "reason": word });
                self.edit("agent holds", at, plan, "", op);
            }
            59..62 => self.edit("agent lifts", at, plan, "", json!({ "op": "unhold", "task": task })),
            62..66 => drop(self.call("agent starts", at, plan, "", "plan_start", json!({ "plan": plan }))),
            66..88 => self.work(at, plan, word),
            // What people do, at the command line.
            88..96 if !is_full => {
                let (parent, depends) = (self.dice.below(4) == 0, self.dice.below(4) == 0);
                let mut words = vec!["task", "add", plan, word];
                words.extend(parent.then_some(["--parent", other]).into_iter().flatten());
                words.extend(depends.then_some(["--depends-on", task]).into_iter().flatten());
                if self.dice.below(8) == 0 {
                    // Two clones may give one name.
                    words.extend(["--id", *self.dice.pick(&["alpha", "beta", "gamma"])]);
                }
                self.act("adds", at, plan, word, &words);
            }
            96..100 => self.act("notes", at, plan, word, &["task", "revise", plan, task, "--notes", word]),
            100..103 => {
                self.act("describes", at, plan, word, &["task", "revise", plan, task, "--description", word]);
            }
            103..105 => {
                let priority = self.dice.below(4).to_string();
                self.act("ranks", at, plan, "", &["task", "revise", plan, task, "--priority", &priority]);
            }
            105..109 => {
                let depends = ["task", "revise", plan, task, "--depends-on", other];
                self.act("depends", at, plan, "", &depends);
            }
            109..113 => {
                let to = match self.dice.below(3) {
                    0 => vec!["--first"],
                    1 => vec!["--root"],
                    _ => vec!["--parent", other],
                };
                let words = [vec!["task", "move", plan, task], to].concat();
                self.act("moves", at, plan, "", &words);
            }
            113..116 => {
                let words = ["task", "remove", plan, task, "--drop-dependencies"];
                self.act("removes", at, plan, "", &words);
            }
            116..120 => self.act("does", at, plan, word, &["done", plan, task, "--result", word]),
            120..122 => self.act("fails", at, plan, word, &["fail", plan, task, "--error", word]),
            122..124 => self.act("skips", at, plan, word, &["skip", plan, task, "--reason", word]),
            124..126 => self.act("cancels", at, plan, word, &["cancel", plan, task, "--reason", word]),
            126..130 => self.act("retries", at, plan, "", &["retry", plan, task]),
            130..132 => self.act("starts", at, plan, "", &["start", plan, task]),
            132..134 => self.act("asks", at, plan, word, &["ask", plan, task, word]),
            134..138 => self.answer_worker(at, plan, word),
            138..140 => self.act("pauses", at, plan, "", &["pause", plan, "--reason", word]),
            140..143 => self.act("resumes", at, plan, "", &["resume", plan]),
            143 => {
                self.act("finishes", at, plan, word, &["finish-plan", plan, "completed", "--summary", word])
            }
            144 => self.act("archives", at, plan, "", &["archive", plan]),
            145 => self.act("deletes", at, plan, "", &["delete", plan]),
            146..149 => self.act("unarchives", at, plan, "", &["unarchive", plan]),
            149 => self.act("requests", at, plan, "", &["request-approval", plan, "--message", word]),
            150..153 => self.act("approves", at, plan, "", &["approve", plan]),
            153 => self.act("rejects", at, plan, "", &["reject", plan, "--reason", word]),
            154..156 => {
                let to = format!("{}", 1 + self.dice.below(12));
                self.act("restores", at, plan, "", &["restore", plan, &to]);
            }
            156..159 => self.update(at, plan, word),
            159 => {
                if self.plans.len() < PLANS_MAX {
                    self.new_plan(at);
                }
            }
            // Questions, syncs, kills and what others do to the remote.
            160..168 => drop(self.answer_questions(at, 2)),
            168..184 => drop(self.must(at, &["sync"])),
            184..187 => drop(self.must(at, &["sync", "--offline"])),
            187..191 => self.kill(at, &["sync"]),
            191..193 => self.kill(at, &["task", "revise", plan, task, "--notes", "not acknowledged"]),
            193 => self.kill(at, &["task", "add", plan, "not acknowledged"]),
            194 => {
                if let Some(mut server) = self.clones[at].server.take() {
                    server.kill().unwrap();
                    server.wait().unwrap();
                }
            }
            195 => {
                // Somebody forces the branch of the remote back to its beginning.
                let bare = self.root.join("origin.git");
                let first = self.git(&bare, &["rev-list", "--max-parents=0", "-n", "1", "waypost-plans"]);
                self.git(&bare, &["update-ref", "refs/heads/waypost-plans", first.trim()]);
            }
            _ => self.act("assigns", at, plan, word, &["task", "assign", plan, task, word]),
        }
    }

    /// Lets an agent claim a task and report on it.
    fn work(&mut self, at: usize, plan: &str, word: &str) {
        let claimed = self.call("agent claims", at, plan, "", "task_next", json!({ "plan": plan }));
        let claimed = claimed.and_then(|claimed| claimed["task"]["id"].as_str().map(str::to_owned));
        let Some(task) = claimed else { return };
        let status = *self.dice.pick(&["done", "done", "done", "failed", "question", "release", "progress"]);
        let mut report = json!({ "plan": plan, "task": task, "status": status, "text": word });
        if status == "done" && self.dice.below(3) == 0 {
            report["output"] = json!({ "seen": word, "ratio": 0.5 });
        }
        // A note of progress and the reason of a release stay with the attempt.
        let word = if matches!(status, "progress" | "release") { "" } else { word };
        self.call("agent reports", at, plan, word, "task_report", report);
    }

    /// Answers what an agent asked, if anything waits.
    fn answer_worker(&mut self, at: usize, plan: &str, word: &str) {
        let waiting = self.run(at, &["answer", plan]);
        let waiting: Value = serde_json::from_slice(&waiting.stdout).unwrap_or_default();
        let items = waiting["items"].as_array().cloned().unwrap_or_default();
        let asked =
            items.iter().filter(|item| item["kind"] == "question").find_map(|item| item["task"].as_str());
        if let Some(task) = asked {
            self.act("answers", at, plan, word, &["answer", plan, task, word]);
        }
    }

    /// Replaces a plan by a text in which tasks are added, shuffled, changed and left out.
    fn update(&mut self, at: usize, plan: &str, word: &str) {
        let Some(mut found) = self.exported(at, plan) else { return };
        let Some(tasks) = found["tasks"].as_array_mut() else { return };
        if tasks.len() > 2 {
            let (one, other) = (self.dice.below(tasks.len()), self.dice.below(tasks.len()));
            tasks.swap(one, other);
            tasks[one]["notes"] = json!(word);
        }
        let id = *self.dice.pick(&["alpha", "beta", "gamma", "delta"]);
        if tasks.iter().all(|task| task["id"] != id) {
            tasks.push(json!({ "id": id, "description": word }));
        }
        let file = self.clones[at].folder.join("plan.json");
        fs::write(&file, found.to_string()).unwrap();
        // What of it is new may be nothing but an order.
        self.act("updates", at, plan, "", &["update", plan, "--from-file", file.to_str().unwrap()]);
    }

    /// Answers open questions about merges, each in one of the ways that it lists.
    fn answer_questions(&mut self, at: usize, count: usize) -> usize {
        let mut answered = 0;
        while answered < count {
            let open = self.must(at, &["conflicts"]);
            let plans = open["plans"].as_array().cloned().unwrap_or_default();
            if plans.is_empty() {
                break;
            }
            let of = self.dice.pick(&plans).clone();
            let question = self.dice.pick(of["questions"].as_array().unwrap()).clone();
            let plan = of["plan"].as_str().unwrap();
            let place = question["task"].as_str().map_or(plan.to_owned(), |task| format!("{plan}/{task}"));
            let ways = question["answers"].as_array().unwrap();
            let way = self.dice.pick(ways).as_str().unwrap().to_owned();
            let word = format!("w{}x{answered}x", self.number);
            let versions = question["versions"].as_array().cloned().unwrap_or_default();
            let mut words = vec!["resolve", &place, question["subject"].as_str().unwrap()];
            let taken = match way.as_str() {
                "take" => vec!["--take", self.dice.pick(&versions)["record"].as_str().unwrap()],
                "text" => vec!["--text", &word],
                "keep" => vec!["--keep"],
                "remove" => vec!["--remove"],
                _ => vec!["--dismiss"],
            };
            words.extend(taken);
            let output = self.run(at, &words);
            if !output.status.success() {
                // What a server brought meanwhile may have answered it.
                let now = self.must(at, &["conflicts", plan]);
                let said = text(&output.stderr);
                assert!(!now.to_string().contains(question["digest"].as_str().unwrap()), "{words:?}: {said}");
                answered += 1;
                continue;
            }
            if way == "text" {
                self.acknowledged.insert(word.clone(), format!("resolve {place}"));
            }
            answered += 1;
        }
        answered
    }

    /// Syncs until everything has arrived everywhere, and compares the plans.
    fn settle(&mut self) {
        let mut commits = Vec::new();
        for _ in 0..ROUNDS_MAX {
            commits =
                [0, 1].map(|at| self.must(at, &["sync"])).map(|report| report["commit"].clone()).to_vec();
            if commits[0] == commits[1] {
                break;
            }
        }
        assert_eq!(commits[0], commits[1], "the clones do not settle");
        self.compare();
    }

    /// Takes back every attempt: what runs goes on in its clone, whatever it would wait for, and is nobody else's state.
    fn release_all(&mut self) {
        for (at, plan) in [0, 1].into_iter().flat_map(|at| self.plans.iter().map(move |plan| (at, plan))) {
            let Some(found) = self.exported(at, plan) else { continue };
            for task in found["tasks"].as_array().unwrap() {
                if task["state"]["status"] == "running" {
                    let task = task["id"].as_str().unwrap();
                    self.must(at, &["release", plan, task, "--reason", "the end"]);
                }
            }
        }
    }

    fn compare(&self) {
        let mut unlike = Vec::new();
        for plan in &self.plans {
            let [a, b] = [0, 1].map(|at| self.exported(at, plan).map(content).unwrap_or_default());
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            // Which of several causes a skip names depends on which came first.
            let is_other_cause =
                |key: &str| key.ends_with(" state because_of") && a.contains_key(key) && b.contains_key(key);
            // A stop travels, and its end does not: a hold that was lifted in one clone holds in the other.
            // What nobody asks any more is told only to those who were there.
            let is_told_once = |key: &str| key.ends_with(" state held") || key.contains(" answer to ");
            let is_local = |key: &str| is_told_once(key) && (!a.contains_key(key) || !b.contains_key(key));
            let differs =
                |key: &&String| a.get(*key) != b.get(*key) && !is_other_cause(key) && !is_local(key);
            let found = keys.into_iter().filter(differs);
            unlike.extend(
                found.map(|key| format!("{plan} {key}\n  a: {:?}\n  b: {:?}", a.get(key), b.get(key))),
            );
        }
        let [a, b] = [0, 1].map(|at| without_claims(&self.must(at, &["conflicts"])["plans"]));
        if a != b {
            unlike.push(format!("questions\n  a: {a}\n  b: {b}"));
        }
        assert!(unlike.is_empty(), "the clones differ in {}:\n{}", self.root.display(), unlike.join("\n"));
    }

    /// Checks what has to hold at the end. Returns what happened, in figures.
    pub(crate) fn judge(mut self) -> String {
        self.release_all();
        self.settle();
        // Two people may contradict each other, which is a question again.
        for round in 0.. {
            let answered =
                self.answer_questions(round % 2, 3) + self.answer_questions((round + 1) % 2, 2_000);
            self.settle();
            if answered == 0 {
                break;
            }
            assert!(round < 20, "questions do not end");
        }
        for at in [0, 1] {
            assert_eq!(self.must(at, &["conflicts"])["plans"], json!([]));
            // Questions of workers can be answered, too, wherever they were asked.
            for plan in self.plans.clone() {
                if self.exported(at, &plan).is_some() {
                    self.answer_worker(at, &plan, &format!("w0x{at}"));
                }
            }
        }
        self.settle();
        for at in [0, 1] {
            let found = self.must(at, &["doctor"]);
            assert_eq!(found["findings"], json!([]), "{found}");
            let listed = self.must(at, &["share", "--list"]);
            for shared in listed["plans"].as_array().unwrap() {
                assert_eq!(shared["unpublished"], 0, "{listed}");
            }
        }
        self.lost_nothing();
        self.rebuild();
        let acts = self.counts.iter().map(|(act, [done, refused])| format!("{act} {done}/{refused}"));
        let acts = acts.collect::<Vec<_>>().join(", ");
        let (words, tasks) = (self.acknowledged.len(), self.added.len());
        format!("{} acts: {words} texts and {tasks} tasks acknowledged and found ({acts})", self.number)
    }

    /// Every acknowledged text is in a record of the remote's branch, and every task that was added is there unless a
    /// record removes it.
    fn lost_nothing(&self) {
        let words = ["clone", "--quiet", "--branch", "waypost-plans", "origin.git", "records"];
        self.git(&self.root, &words);
        let (mut text, mut removed) = (String::new(), BTreeSet::new());
        for plan in fs::read_dir(self.root.join("records/plans")).unwrap() {
            let plan = plan.unwrap();
            for file in fs::read_dir(plan.path()).unwrap() {
                let lines = fs::read_to_string(file.unwrap().path()).unwrap();
                for line in lines.lines() {
                    let record: Value = serde_json::from_str(line).unwrap();
                    let actions = record["do"].as_array().unwrap().iter();
                    for action in actions.filter(|action| action["op"] == "remove") {
                        let tasks = action["tasks"].as_array().unwrap().iter().filter_map(Value::as_str);
                        let names = tasks.map(|task| task.split('#').next().unwrap().to_owned());
                        let plan = plan.file_name().into_string().unwrap();
                        removed.extend(names.map(|name| (plan.clone(), name)));
                    }
                }
                text.push_str(&lines);
            }
        }
        let found: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let lost: Vec<_> =
            self.acknowledged.iter().filter(|(word, _)| !found.contains(word.as_str())).collect();
        assert!(lost.is_empty(), "{} acknowledged writes are in no record: {lost:?}", lost.len());
        let mut there = BTreeSet::new();
        for plan in &self.plans {
            let tasks =
                self.exported(0, plan).map(|found| found["tasks"].as_array().cloned().unwrap_or_default());
            let ids = tasks.into_iter().flatten().filter_map(|task| task["id"].as_str().map(str::to_owned));
            there.extend(ids.map(|id| (plan.clone(), id)));
        }
        let lost: Vec<_> =
            self.added.iter().filter(|id| !there.contains(*id) && !removed.contains(*id)).collect();
        assert!(lost.is_empty(), "tasks that nobody removed are gone: {lost:?}");
    }

    /// A clone that begins now reads the same plans.
    fn rebuild(&mut self) {
        self.git(&self.root, &["clone", "--quiet", "origin.git", "late"]);
        self.clones[1] =
            Clone { folder: self.root.join("late"), agent: None, server: None, tasks: BTreeMap::new() };
        self.must(1, &["sync"]);
        self.compare();
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        for clone in &mut self.clones {
            clone.agent = None;
            if let Some(mut server) = clone.server.take() {
                let _gone = server.kill();
                let _ended = server.wait();
            }
        }
        if !std::thread::panicking() {
            let _gone = fs::remove_dir_all(&self.root);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Who did something is proved where it was done, and claimed elsewhere.
fn without_claims(found: &Value) -> Value {
    serde_json::from_str(&found.to_string().replace(" (unverified)", "")).unwrap()
}

/// What a plan says, by task and field, without what belongs to one clone: times, versions, attempts, leases, approvals.
fn content(plan: Value) -> BTreeMap<String, Value> {
    let mut plan = without_claims(&plan);
    const LOCAL: [&str; 15] = [
        "version",
        "created_at",
        "updated_at",
        "started_at",
        "finished_at",
        "attempt",
        "attempts",
        "worker",
        "lease",
        "tries",
        "queued_at",
        "again_at",
        "answers",
        "evidence",
        "received",
    ];
    let mut found = BTreeMap::new();
    let tasks = plan["tasks"].as_array().cloned().unwrap_or_default();
    plan.as_object_mut().unwrap().remove("tasks");
    let state = plan["state"].take();
    for (key, value) in plan.as_object().unwrap().iter().filter(|(key, _)| *key != "version") {
        found.insert(format!("plan {key}"), value.clone());
    }
    found.insert("plan archived".to_owned(), state["archived"].clone());
    for (place, mut task) in tasks.into_iter().enumerate() {
        let id = task["id"].as_str().unwrap().to_owned();
        let mut state = task["state"].take();
        found.insert(format!("{id} place"), json!(place));
        for (key, value) in task.as_object().unwrap() {
            found.insert(format!("{id} {key}"), value.clone());
        }
        for given in state["answers"].as_array().into_iter().flatten() {
            // The last answer to a question counts.
            let question = given["question"].as_str().unwrap();
            found.insert(format!("{id} answer to {question}"), given["answer"].clone());
        }
        if let Some(state) = state.as_object_mut() {
            state.retain(|key, _| !LOCAL.contains(&key.as_str()));
            // Why an attempt here was taken back.
            state.retain(|_, value| !value.as_str().is_some_and(|text| text.ends_with("by an import")));
            let has_reason = ["failed", "skipped", "cancelled"].map(|status| json!(status));
            if !state.get("status").is_some_and(|status| has_reason.contains(status)) {
                // Why the last attempt here ended.
                state.retain(|key, _| !["reason", "error", "progress"].contains(&key.as_str()));
            }
            if let Some(question) = state.get_mut("question").and_then(Value::as_object_mut) {
                question.retain(|key, _| ["text", "choices"].contains(&key.as_str()));
            }
            for (key, value) in state {
                found.insert(format!("{id} state {key}"), value.clone());
            }
        }
    }
    found
}
