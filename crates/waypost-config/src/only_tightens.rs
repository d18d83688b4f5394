//! A configuration file that an agent or a worker names may only tighten: ask for more approval, lower a limit. Whatever
//! it could run, or send something to, belongs to a person's configuration.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::layer::Layer;
use crate::problem::{BadConfig, ConfigProblem};
use crate::settings::Config;

/// The keys that such a file can have.
const KEYS: [&str; 4] = ["approval", "limits", "queues", "retry"];
/// What a file that waives approval would do.
const LESS: &str = "ask for less approval";
/// The hint for everything else.
const HINT: &str = "a person puts it into their own configuration";

impl Layer {
    /// Checks that a file by `whom` ("an agent", "a worker") has only keys that can tighten.
    pub fn has_only_tightening_keys(&self, whom: &str) -> Result<(), BadConfig> {
        if self.name.ends_with(".json") {
            return refuse(vec![self.problem(whom, "be a todo.json", &[])]);
        }
        // A file that cannot be parsed defines nothing, and is refused when it is loaded.
        let Ok(parsed) = DeTable::parse(&self.text) else { return Ok(()) };
        let names = parsed.get_ref().iter().map(|(name, _)| name.get_ref().to_string());
        let others = names.filter(|name| !KEYS.contains(&name.as_str()));
        let mut problems: Vec<ConfigProblem> =
            others.map(|name| self.problem(whom, &format!("define {name}"), &[&name])).collect();
        // No named file can say this, whoever names it.
        let settings = self.settings().unwrap_or_default();
        if ["approval", "approval.policy"]
            .iter()
            .any(|key| settings.get(*key).is_some_and(|word| word == "\"never\""))
        {
            problems.push(self.problem(whom, LESS, &["approval"]));
        }
        refuse(problems)
    }

    /// Checks that loading this file on top made a configuration stricter, or left it as it was.
    pub fn tightens(&self, whom: &str, before: &Config, after: &Config) -> Result<(), BadConfig> {
        let mut problems = Vec::new();
        if after.approval.policy < before.approval.policy || after.approval.proof < before.approval.proof {
            problems.push(self.problem(whom, LESS, &["approval"]));
        }
        let unlimited = |seconds: Option<u32>| seconds.map_or(u64::MAX, u64::from);
        let limits: [(&[&str], u64, u64); 6] = [
            (&["retry", "attempts"], before.retry.attempts.into(), after.retry.attempts.into()),
            (
                &["limits", "timeout_seconds"],
                unlimited(before.timeout_seconds),
                unlimited(after.timeout_seconds),
            ),
            (&["limits", "stop_seconds"], before.stop_seconds.into(), after.stop_seconds.into()),
            (
                &["limits", "lock_wait_seconds"],
                before.lock_wait_seconds.into(),
                after.lock_wait_seconds.into(),
            ),
            (&["limits", "output_bytes_max"], before.output_bytes_max, after.output_bytes_max),
            (&["limits", "log_bytes_max"], before.log_bytes_max, after.log_bytes_max),
        ];
        let raised = limits.into_iter().filter(|(_, before, after)| after > before);
        problems.extend(raised.map(|(key, ..)| self.problem(whom, &format!("raise {}", key.join(".")), key)));
        for (name, queue) in &after.queues {
            let known = before.queues.get(name);
            if known.is_none_or(|known| queue.concurrency > known.concurrency) {
                let what = if known.is_none() { "define" } else { "raise" };
                problems.push(self.problem(whom, &format!("{what} queues.{name}"), &["queues", name]));
            }
        }
        refuse(problems)
    }

    fn problem(&self, whom: &str, what: &str, key: &[&str]) -> ConfigProblem {
        let line = DeTable::parse(&self.text)
            .ok()
            .and_then(|parsed| offset(parsed.get_ref(), key))
            .map(|at| self.text.get(..at).unwrap_or("").matches('\n').count() + 1);
        ConfigProblem {
            place: self.name.clone(),
            line,
            what: format!("{whom}'s --config cannot {what}"),
            hint: HINT.to_owned(),
        }
    }
}

fn refuse(problems: Vec<ConfigProblem>) -> Result<(), BadConfig> {
    if problems.is_empty() { Ok(()) } else { Err(BadConfig { problems }) }
}

/// The offset of a key, or of the innermost table around it.
fn offset(table: &DeTable<'_>, key: &[&str]) -> Option<usize> {
    let (first, rest) = key.split_first()?;
    let (name, value): (_, &Spanned<DeValue<'_>>) = table.iter().find(|(name, _)| name.get_ref() == first)?;
    let inner = value.get_ref().as_table().and_then(|table| offset(table, rest));
    Some(inner.unwrap_or(name.span().start))
}
