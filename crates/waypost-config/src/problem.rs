//! What is wrong in a configuration, and the nearest known name.

use std::fmt;

/// Something wrong in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file, or the variable of the environment.
    pub place: String,
    /// The line in it, from 1; nothing for a variable.
    pub line: Option<usize>,
    /// What is wrong, a lowercase clause.
    pub what: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.what),
            None => write!(f, "{}: {}", self.place, self.what),
        }
    }
}

/// Everything that is wrong in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} {}", problems.len(), if problems.len() == 1 { "problem" } else { "problems" })]
pub struct BadConfig {
    /// All of it, in the order of the layers.
    pub problems: Vec<ConfigProblem>,
}

/// The name that is closest to `wanted`, if one is close at all.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    let far = |name: &&'a str| (distance(wanted, name), *name);
    names.into_iter().map(|name| far(&name)).filter(|&(far, _)| far <= allowed).min().map(|(_, name)| name)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
