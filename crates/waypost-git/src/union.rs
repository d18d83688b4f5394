//! Joins two commits of the branch: the union of their files, because a file never changes after its commit.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::GitError;
use crate::layout::{Segment, is_pack, plan_of_path};
use crate::plan_branch::PlanBranch;
use crate::publish::{Author, Publication};
use crate::repository::Oid;
use crate::tree::TreeFile;

type Files = BTreeMap<String, Oid>;

/// What the union adds to the other side's files, and which of them it removes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Union {
    taken: Vec<TreeFile>,
    removed: Vec<String>,
    /// Files that have the same name on both sides and another content.
    differing: Vec<TreeFile>,
}

/// Whether a side packed files of a plan since the common commit.
fn packed(side: &Files, base: &Files) -> BTreeSet<String> {
    let is_new_pack = |path: &&String| is_pack(path) && !base.contains_key(*path);
    let plans = side.keys().filter(is_new_pack).filter_map(|path| plan_of_path(path));
    plans.map(|plan| plan.to_string()).collect()
}

/// Computes the union on top of `theirs`. A file that a side removed since the common commit stays removed if that
/// side packed the plan meanwhile; otherwise somebody deleted it, and it comes back.
fn union(ours: &Files, theirs: &Files, base: &Files) -> Union {
    let (packed_here, packed_there) = (packed(ours, base), packed(theirs, base));
    let is_of = |plans: &BTreeSet<String>, path: &str| {
        plan_of_path(path).is_some_and(|plan| plans.contains(plan.as_str()))
    };
    let mut union = Union::default();
    for (path, oid) in ours {
        let file = || TreeFile { path: path.clone(), oid: oid.clone() };
        match theirs.get(path) {
            Some(same) if same == oid => {}
            Some(_) if plan_of_path(path).is_some() => union.differing.push(file()),
            Some(_) => {}
            None if base.contains_key(path) && is_of(&packed_there, path) => {}
            None => union.taken.push(file()),
        }
    }
    let is_gone =
        |path: &&String| base.contains_key(*path) && !ours.contains_key(*path) && is_of(&packed_here, path);
    union.removed = theirs.keys().filter(is_gone).cloned().collect();
    union
}

impl PlanBranch<'_> {
    /// Joins another commit into the branch, and returns where the branch is then. Nothing of either side is lost:
    /// related histories get a commit with both parents; onto a history that was squashed or started again, only what
    /// it lacks is added.
    pub fn join(&self, ours: Option<&Oid>, theirs: &Oid, author: Author) -> Result<Oid, GitError> {
        self.check_format(theirs)?;
        let Some(ours) = ours else {
            self.step(None, theirs, None)?;
            return Ok(theirs.clone());
        };
        if ours == theirs || self.repository.is_ancestor(theirs, ours)? {
            return Ok(ours.clone());
        }
        if self.repository.is_ancestor(ours, theirs)? {
            self.step(Some(ours), theirs, None)?;
            return Ok(theirs.clone());
        }
        let common = self.repository.merge_base(ours, theirs)?;
        let files = |commit: &Oid| -> Result<Files, GitError> {
            let (files, _) = self.repository.files(commit, "")?;
            Ok(files.into_iter().map(|file| (file.path, file.oid)).collect())
        };
        let base = common.as_ref().map(files).transpose()?.unwrap_or_default();
        let Union { taken, removed, differing } = union(&files(ours)?, &files(theirs)?, &base);
        let mut publication = Publication {
            taken,
            removed,
            message: "Merge plans of another clone\n".to_owned(),
            files: self.renamed(ours, &differing)?,
        };
        if common.is_none() && publication.is_empty() {
            self.step(Some(ours), theirs, None)?;
            return Ok(theirs.clone());
        }
        publication.taken.sort();
        let second = common.is_some().then_some(ours);
        self.commit(Some(ours), Some(theirs), second, &publication, author)
    }

    /// Returns files that have another content elsewhere under names of their own.
    fn renamed(&self, commit: &Oid, files: &[TreeFile]) -> Result<Vec<Segment>, GitError> {
        let mut renamed = Vec::new();
        for file in files {
            let Some(plan) = file.plan() else { continue };
            let mut lines = Vec::new();
            self.repository
                .read_lines(commit, std::slice::from_ref(file), |line| lines.push(line.text.to_owned()))?;
            renamed.push(Segment::pack(&plan, lines.iter().map(String::as_str).collect()));
        }
        Ok(renamed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Files {
        let oid = |path: &str| Oid::new(&format!("{:040x}", path.len())).unwrap();
        paths.iter().map(|path| (format!("plans/p/{path}.jsonl"), oid(path))).collect()
    }

    #[test]
    fn what_either_side_has_is_in_the_union_and_what_a_side_packed_stays_packed() {
        let base = files(&["s1", "s2"]);
        let check = |ours: &[&str], theirs: &[&str], taken: &[&str], removed: &[&str]| {
            let found = union(&files(ours), &files(theirs), &base);
            let paths = |files: &[&str]| -> Vec<String> {
                files.iter().map(|path| format!("plans/p/{path}.jsonl")).collect()
            };
            let names: Vec<String> = found.taken.iter().map(|file| file.path.clone()).collect();
            assert_eq!((names, found.removed), (paths(taken), paths(removed)), "{ours:?} {theirs:?}");
        };
        check(&["s1", "s2", "s3"], &["s1", "s2", "s4"], &["s3"], &[]);
        // They deleted a file without a pack: it comes back.
        check(&["s1", "s2"], &["s1"], &["s2"], &[]);
        // They packed.
        check(&["s1", "s2", "s3"], &["pack-1"], &["s3"], &[]);
        // We packed.
        check(&["pack-1"], &["s1", "s2", "s4"], &["pack-1"], &["s1", "s2"]);
        // Both did.
        check(&["pack-1"], &["pack-2", "s4"], &["pack-1"], &[]);
    }
}
