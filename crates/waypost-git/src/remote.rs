//! Exchanges the branch with a remote: never by force, so that what another clone wrote stays there.

use crate::error::GitError;
use crate::plan_branch::PlanBranch;
use crate::program::Access;
use crate::repository::{Oid, RemoteName};

/// Number of fetches that others may overtake.
const FETCHES_MAX: usize = 5;

/// What a fetch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The remote's branch.
    Tip(Oid),
    /// The remote has no such branch.
    NoBranch,
    /// The remote did not answer, or refused; with git's message.
    Unreachable(String),
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The remote has it.
    Done,
    /// Another clone was faster: fetch and join first.
    Behind,
    /// The remote did not answer, or refused; with git's message.
    Refused(String),
}

impl PlanBranch<'_> {
    /// Fetches the branch of a remote into its remote-tracking reference.
    pub fn fetch(&self, remote: &RemoteName) -> Result<Fetched, GitError> {
        let tracking = self.name.tracking(remote);
        let refspec = format!("+{}:{tracking}", self.name.as_str());
        let words = [
            "fetch",
            "--progress",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-prune",
            "--",
            remote.as_str(),
            &refspec,
        ];
        // Of a pack that it takes apart while it arrives, git does not say how far it is. The first one may be large.
        let mut keeps_pack = self.repository.tip(&tracking)?.is_none();
        let mut tries = 0;
        let output = loop {
            let settings: &[&str] = if keeps_pack { &["-c", "fetch.unpackLimit=1"] } else { &[] };
            let output = match self.repository.output(Access::Remote, &[settings, &words].concat(), b"") {
                Err(GitError::TimedOut { .. }) if !keeps_pack => {
                    keeps_pack = true;
                    continue;
                }
                Err(error @ GitError::TimedOut { .. }) => return Ok(Fetched::Unreachable(error.to_string())),
                output => output?,
            };
            tries += 1;
            // Somebody else fetched at the same moment: what that was is read again.
            let is_overtaken =
                output.message.contains("cannot lock ref") && output.message.contains("but expected");
            if output.succeeded || !is_overtaken || tries == FETCHES_MAX {
                break output;
            }
        };
        if output.succeeded {
            let tip = self.repository.tip(&tracking)?;
            return Ok(tip.map_or(Fetched::NoBranch, |tip| Fetched::Tip(tip.commit)));
        }
        match output.message.contains("couldn't find remote ref") {
            true => Ok(Fetched::NoBranch),
            false => Ok(Fetched::Unreachable(output.message)),
        }
    }

    /// Pushes a commit to the branch of a remote.
    pub fn push(&self, remote: &RemoteName, commit: &Oid) -> Result<Pushed, GitError> {
        let refspec = format!("{commit}:{}", self.name.as_str());
        let words = [
            "push",
            "--progress",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--",
            remote.as_str(),
            &refspec,
        ];
        let output = match self.repository.output(Access::Remote, &words, b"") {
            Err(error @ GitError::TimedOut { .. }) => return Ok(Pushed::Refused(error.to_string())),
            output => output?,
        };
        if output.succeeded {
            return Ok(Pushed::Done);
        }
        let report = String::from_utf8_lossy(&output.text);
        let refused = report.lines().find(|line| line.starts_with('!')).unwrap_or_default();
        // `failed to update ref` is what a remote says to the slower of two pushes at the same moment.
        let behind = [
            "(fetch first)",
            "(non-fast-forward)",
            "(stale info)",
            "(failed to update ref)",
            "cannot lock ref",
        ];
        if behind.iter().any(|words| refused.contains(words) || output.message.contains(words)) {
            return Ok(Pushed::Behind);
        }
        let reason = refused.rsplit('\t').next().unwrap_or_default().trim();
        let message = match (reason.is_empty(), output.message.is_empty()) {
            (true, _) => output.message,
            (false, true) => reason.to_owned(),
            (false, false) => format!("{reason}: {}", output.message),
        };
        Ok(Pushed::Refused(message))
    }
}
