//! `cargo xtask test-hosts`: Claude Code and Codex from npm work through a plan with the configuration that `waypost
//! init` wrote. Their model is a script on loopback: no account, no key and, after installation, no network.

mod model;
mod script;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::model::{Model, Record};
pub(crate) use self::script::TOOLS;
use self::script::{FINISHED, TASKS, TITLE};
use crate::exec::{binary, cache_dir, cargo, must, output};
use crate::npm::Packages;

/// Packages in versions that are known to work.
const PACKAGES: [(&str, &str); 2] = [("@anthropic-ai/claude-code", "2.1.197"), ("@openai/codex", "0.166.0")];
/// Maximum time of a host, in seconds.
const HOST_SECONDS_MAX: u64 = 120;
/// Time between two checks whether a plan awaits approval or a host has exited.
const LOOK: Duration = Duration::from_millis(100);
/// The prompt of a host.
const PROMPT: &str = "Make a plan with the tools of waypost, have it approved, and work through it.";

/// A host under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    Claude,
    Codex,
}

impl Host {
    const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted: Vec<Host> = match words {
        [] => Host::ALL.to_vec(),
        words => {
            let find = |word: &&str| Host::ALL.into_iter().find(|host| host.as_str() == *word);
            let hosts: Option<Vec<Host>> = words.iter().map(find).collect();
            hosts.context("unknown host: expected claude or codex")?
        }
    };
    let installed = Packages::install_with_programs("hosts/npm", &PACKAGES)?;
    let programs = installed.home().join("node_modules/.bin");
    must("build the binary", cargo().args(["build", "--quiet", "--package", "waypost"]))?;
    for host in wanted {
        println!("── {}", host.as_str());
        Scene::new(host, &programs)?.play()?;
    }
    println!("every host completed its plan");
    Ok(())
}

/// One host in a repository of its own.
struct Scene {
    host: Host,
    repository: PathBuf,
    /// The host's home directory.
    home: PathBuf,
    /// The program search path: the built binary and the hosts come first.
    path: std::ffi::OsString,
    model: Model,
}

impl Scene {
    fn new(host: Host, programs: &Path) -> Result<Self> {
        let scratch = cache_dir().join("hosts").join(host.as_str());
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        let (repository, home) = (scratch.join("repository"), scratch.join("home"));
        fs::create_dir_all(&repository)?;
        fs::create_dir_all(&home)?;
        let ours = binary("debug");
        let mut folders = vec![ours.parent().unwrap_or(&ours).to_owned(), programs.to_owned()];
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(folders)?;
        Ok(Self { host, repository: repository.canonicalize()?, home, path, model: Model::start()? })
    }

    fn play(&self) -> Result<()> {
        output(self.command("git").args(["init", "--quiet", "."]))?;
        let made = output(self.command("waypost").args(["init", "--yes", "--client", self.host.as_str()]))?;
        print!("{made}");
        // By default only plans with machine work need a person's approval.
        let config = self.repository.join(".waypost/config.toml");
        let text = fs::read_to_string(&config)?.replace("#approval = \"work\"", "approval = \"all\"");
        fs::write(config, text)?;
        let ended = self.run_host()?;
        let record = self.model.record();
        self.check(&record).with_context(|| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let calls: Vec<String> =
                record.made.iter().map(|made| format!("  {}: {}", made.tool, made.answer)).collect();
            format!(
                "{} ended with {}\nstdout:\n{}\nstderr:\n{}\ncalls:\n{}\nfinal message: {}",
                self.host.as_str(),
                ended.status,
                text(&ended.stdout),
                text(&ended.stderr),
                calls.join("\n"),
                record.said
            )
        })
    }

    /// A program run as a person, without the caller's environment.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .current_dir(&self.repository)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("USER", "tester")
            .stdin(Stdio::null());
        command
    }

    /// Runs the host to its end, while a person approves plans that await approval.
    fn run_host(&self) -> Result<Output> {
        let mut command = match self.host {
            Host::Claude => self.claude(),
            Host::Codex => self.codex()?,
        };
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {command:?}"))?;
        let id = child.id();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || tell.send(child.wait_with_output()));
        let until = Instant::now() + Duration::from_secs(HOST_SECONDS_MAX);
        let mut approved = false;
        loop {
            match told.recv_timeout(LOOK) {
                Ok(ended) => return Ok(ended?),
                Err(_) if Instant::now() < until => approved = approved || self.approve()?,
                Err(_) => {
                    output(Command::new("kill").arg(id.to_string()))?;
                    bail!(
                        "{} did not exit within {HOST_SECONDS_MAX} s; {:?}",
                        self.host.as_str(),
                        self.model.record()
                    );
                }
            }
        }
    }

    /// Approves a waiting plan as a person. Returns whether there was one.
    fn approve(&self) -> Result<bool> {
        let Some(plan) = self.plan("awaiting_approval")? else { return Ok(false) };
        println!("a person: waypost approve {plan}");
        let preview: Value =
            serde_json::from_str(&output(self.command("waypost").args(["preview", &plan, "--json"]))?)?;
        let digest = preview["digest"].as_str().unwrap_or_default();
        // Approving needs a terminal, and `script` makes one.
        let line = format!("waypost --as person:tester approve {plan} --note go --yes --seen {digest}");
        output(self.command("script").args(["-qec", &line, "/dev/null"]))?;
        Ok(true)
    }

    /// Returns a plan in this phase.
    fn plan(&self, phase: &str) -> Result<Option<String>> {
        let answer = output(self.command("waypost").args(["list", "--json", "--phase", phase]))?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["plans"][0]["id"].as_str().map(str::to_owned))
    }

    fn claude(&self) -> Command {
        let mut command = self.command("claude");
        command
            .args(["-p", PROMPT, "--allowedTools", "mcp__waypost__*", "--output-format", "json"])
            .env("ANTHROPIC_BASE_URL", format!("http://{}", self.model.address))
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_ERROR_REPORTING", "1")
            .env("DISABLE_TELEMETRY", "1");
        command
    }

    fn codex(&self) -> Result<Command> {
        let home = self.home.join(".codex");
        fs::create_dir_all(&home)?;
        // A person has to trust the folder once: only then does Codex read its configuration.
        let settings = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"http://{}/v1\"\nwire_api = \"responses\"\n\n\
             [analytics]\nenabled = false\n\n\
             [projects.{:?}]\ntrust_level = \"trusted\"\n",
            self.model.address,
            self.repository.display().to_string()
        );
        fs::write(home.join("config.toml"), settings)?;
        let mut command = self.command("codex");
        command.args(["exec", "--json", PROMPT]).env("CODEX_HOME", home);
        Ok(command)
    }

    /// Checks that the host did everything it should.
    fn check(&self, record: &Record) -> Result<()> {
        ensure!(record.requests > 0, "the host sent no request to its model");
        let names: Vec<&str> = record.tools.iter().map(|(name, _)| name.as_str()).collect();
        println!("tools offered to the model: {}", names.join(", "));
        let missing: Vec<&&str> = TOOLS.iter().filter(|tool| !names.contains(tool)).collect();
        ensure!(missing.is_empty(), "the model was not offered {missing:?}");
        ensure!(record.said == FINISHED, "unexpected final message: {}", record.said);

        let plan = self.plan("completed")?.context("no completed plan")?;
        let shown = output(self.command("waypost").args(["show", &plan, "--json"]))?;
        let shown: Value = serde_json::from_str(&shown)?;
        ensure!(shown["title"] == TITLE, "unexpected plan title {}", shown["title"]);
        ensure!(shown["counts"]["done"] == TASKS.len(), "unfinished tasks: {}", shown["counts"]);
        let maker = shown["created_by"].as_str().unwrap_or_default();
        ensure!(maker.starts_with("agent:"), "the plan was created by {maker:?}, not by an agent");
        let history = output(self.command("waypost").args(["history", &plan]))?;
        let is_approval = |line: &str| line.contains("person:tester") && line.contains("approved");
        ensure!(history.lines().any(is_approval), "the history has no approval by person:tester:\n{history}");
        println!("plan {plan} of {maker}: completed, {} tasks done, approved by person:tester", TASKS.len());
        Ok(())
    }
}
