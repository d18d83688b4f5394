//! What a person should look at before approving. Risks sort and warn; they forbid nothing, and their absence proves nothing.

use serde::Serialize;
use serde_json::Value;
use waypost_config::Definitions;
use waypost_core::TaskSpec;
use waypost_text::has_hidden;

/// Attempts of one task above which the approver is warned.
const ATTEMPTS_USUAL_MAX: u32 = 10;
/// Words that hint at deletion.
const DELETION_WORDS: &[&str] = &[
    "rm", "rmdir", "del", "delete", "drop", "destroy", "prune", "purge", "truncate", "shred", "mkfs", "wipe",
    "erase",
];
const DELETION_COMMANDS: &[(&str, &str)] = &[("git", "clean"), ("git", "--hard"), ("git", "--force")];
/// Words that hint at production systems.
const PRODUCTION_WORDS: &[&str] = &["prod", "production", "live", "release"];
/// Programs that change what others use.
const PRODUCTION_PROGRAMS: &[&str] =
    &["kubectl", "helm", "terraform", "tofu", "pulumi", "ansible", "ansible-playbook"];
/// Commands that publish.
const PUBLISHING_COMMANDS: &[(&str, &str)] = &[
    ("git", "push"),
    ("docker", "push"),
    ("podman", "push"),
    ("npm", "publish"),
    ("cargo", "publish"),
    ("twine", "upload"),
];
const NETWORK_PROGRAMS: &[&str] = &[
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "aws",
    "gcloud", "gsutil", "az", "gh", "glab",
];
const NETWORK_COMMANDS: &[(&str, &str)] = &[
    ("git", "pull"),
    ("git", "fetch"),
    ("git", "clone"),
    ("docker", "pull"),
    ("podman", "pull"),
    ("npm", "install"),
    ("pip", "install"),
];
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "fish", "eval", "pwsh", "powershell"];
/// Programs that run the text after `-c` or `-e`, by how their names begin.
const INTERPRETERS: &[&str] = &["python", "perl", "ruby", "node", "deno", "php", "lua"];

/// What a person should look at before approving, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A text has characters that are not visible, or that change the direction of text.
    InvisibleCharacters,
    /// A command or an input has a word such as `rm` or `delete`.
    Deletion,
    /// A command or an input has a word such as `prod`, or a program that publishes or changes a cluster.
    Production,
    /// It gets a secret.
    Secrets,
    /// It can use the keys of the SSH agent.
    SshAgent,
    /// A command runs through a shell, or is a program text such as that of `python -c`.
    Shell,
    /// It reaches the network, or names a program that does.
    Network,
    /// The image's tag can be moved to another image.
    MovableImage,
    /// An agent changes the workspace itself.
    AgentWithoutWorktree,
    /// No other task of this plan runs this program in this way.
    UsedOnce,
    /// It may be tried many times.
    ManyAttempts,
    /// Nothing limits how long it takes.
    NoTimeout,
}

impl Risk {
    /// Returns the risk as a clause for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::InvisibleCharacters => "invisible characters",
            Self::Deletion => "deletes",
            Self::Production => "reaches production",
            Self::Secrets => "gets secrets",
            Self::SshAgent => "can use SSH keys",
            Self::Shell => "runs in a shell",
            Self::Network => "uses the network",
            Self::MovableImage => "image can change",
            Self::AgentWithoutWorktree => "agent works in the workspace itself",
            Self::ManyAttempts => "many attempts",
            Self::NoTimeout => "no time limit",
            Self::UsedOnce => "used once",
        }
    }
}

/// Returns how often a task may be tried.
fn attempts(definitions: &Definitions, spec: &TaskSpec) -> u32 {
    spec.retry.as_ref().map_or(definitions.retry.attempts, |retry| retry.attempts)
}

/// Returns the risks of one task, the gravest first. The particulars are what the approver is shown besides the program.
pub(crate) fn risks(
    definitions: &Definitions,
    spec: &TaskSpec,
    program: &str,
    particulars: &[(&'static str, String)],
    used: &[&Value],
) -> Vec<Risk> {
    let mut risks = Vec::new();
    let mut warn = |risk, applies: bool| risks.extend(applies.then_some(risk));
    let hidden = has_hidden(program) || particulars.iter().any(|(_, text)| has_hidden(text));
    warn(Risk::InvisibleCharacters, hidden);
    // An agent does what the words say.
    let by_agent = used.iter().any(|definition| definition.get("agent").is_some());
    let runs_text = |name: &str| match name {
        "inputs" | "check" | "check's inputs" => true,
        "description" | "notes" => by_agent,
        _ => false,
    };
    let texts = particulars.iter().filter(|(name, _)| runs_text(name)).map(|(_, text)| text.as_str());
    for text in std::iter::once(program).chain(texts) {
        let words = command_words(text);
        let has = |programs: &[&str]| words.iter().any(|word| is_one_of(word, programs));
        let runs = |commands: &[(&str, &str)]| commands.iter().any(|command| has_command(&words, *command));
        let publishes = runs(PUBLISHING_COMMANDS) || has(PRODUCTION_PROGRAMS);
        warn(Risk::Deletion, has_word(text, DELETION_WORDS) || runs(DELETION_COMMANDS));
        warn(Risk::Production, has_word(text, PRODUCTION_WORDS) || publishes);
        warn(
            Risk::Network,
            text.contains("://") || publishes || has(NETWORK_PROGRAMS) || runs(NETWORK_COMMANDS),
        );
        warn(Risk::Shell, has(SHELLS) || has_program_text(&words));
    }
    warn(Risk::ManyAttempts, attempts(definitions, spec) > ATTEMPTS_USUAL_MAX);
    for definition in used {
        let Some((kind, value)) = definition.as_object().and_then(|kinds| kinds.iter().next()) else {
            continue;
        };
        let process = value.get("process").unwrap_or(value);
        let limited = spec.timeout_seconds.or(definitions.timeout_seconds).is_some();
        warn(Risk::NoTimeout, !limited && process["timeout_seconds"].is_null());
        warn(Risk::Shell, process["shell"] == true);
        let secrets = process["secrets"].as_object().is_some_and(|secrets| !secrets.is_empty());
        let header_secret = |header: &Value| header[1].get("secret").is_some();
        let headers = value["headers"].as_array().is_some_and(|headers| headers.iter().any(header_secret));
        warn(Risk::Secrets, secrets || headers || !value["hmac"].is_null());
        let environment = process["environment"].as_array();
        let ssh = |names: &Vec<Value>| names.iter().any(|name| name == "SSH_AUTH_SOCK");
        warn(Risk::SshAgent, environment.is_some_and(ssh));
        let is_container = kind == "container" || kind == "kubernetes";
        let open_network = kind == "container" && value["network"] != "none";
        warn(Risk::Network, kind == "http" || kind == "kubernetes" || open_network);
        let image = value["image"].as_str().unwrap_or_default();
        warn(Risk::MovableImage, is_container && !image.contains("@sha256:"));
        warn(Risk::AgentWithoutWorktree, kind == "agent" && value["worktree"] != true);
    }
    risks.sort_unstable();
    risks.dedup();
    risks
}

/// Whether one of the words occurs in a text as a whole word.
fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| is_one_of(word, words))
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|wanted| wanted.eq_ignore_ascii_case(word))
}

/// Returns the words of a command line, of programs without their folders.
fn command_words(text: &str) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&(){}[]<>,=$\\".contains(c);
    let words = text.split(is_between).filter(|word| !word.is_empty());
    words.map(|word| word.rsplit('/').next().unwrap_or(word)).collect()
}

/// Whether a program is called with this argument, at any place after it.
fn has_command(words: &[&str], (program, argument): (&str, &str)) -> bool {
    let program = words.iter().position(|word| word.eq_ignore_ascii_case(program));
    program.is_some_and(|at| words[at..].iter().any(|word| word.eq_ignore_ascii_case(argument)))
}

fn has_program_text(words: &[&str]) -> bool {
    let is_interpreter = |word: &str| INTERPRETERS.iter().any(|name| word.starts_with(name));
    let is_option =
        |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(['c', 'e']);
    words.windows(2).any(|pair| is_interpreter(pair[0]) && is_option(pair[1]))
}
