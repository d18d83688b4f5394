//! Writes commits to the branch: objects first, under a reference of their own, then one step of the branch that fails
//! if somebody else moved it. No work tree, no index and no hook is involved.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use waypost_core::PlanId;

use crate::error::GitError;
use crate::layout::{
    FORMAT_FILE, PACK_BYTES_MAX, PLANS, README, README_FILE, SEGMENTS_MAX, Segment, format_text, is_pack,
};
use crate::plan_branch::PlanBranch;
use crate::program::Access;
use crate::repository::{Oid, malformed};
use crate::tree::TreeFile;

/// References of commits that the branch does not reach yet.
const PENDING: &str = "refs/waypost-pending/";

/// When a commit is made.
#[derive(Clone, Copy, Debug)]
pub struct Author {
    /// Seconds since 1970.
    pub seconds: i64,
}

/// What a commit adds to the branch and removes from it.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// New files.
    pub files: Vec<Segment>,
    /// Files of another commit whose content is in the repository already.
    pub taken: Vec<TreeFile>,
    /// Paths to remove.
    pub removed: Vec<String>,
    /// The message of the commit.
    pub message: String,
}

impl Publication {
    /// Whether the commit would change nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.taken.is_empty() && self.removed.is_empty()
    }
}

impl PlanBranch<'_> {
    /// Commits to the branch on top of `expected`. Fails with [`GitError::Moved`] if the branch is not there any more.
    pub fn publish(
        &self,
        expected: Option<&Oid>,
        publication: &Publication,
        author: Author,
    ) -> Result<Oid, GitError> {
        self.commit(expected, expected, None, publication, author)
    }

    /// Refuses to move a branch that somebody looks at, and returns where it is.
    pub(crate) fn movable(&self) -> Result<Option<Oid>, GitError> {
        match self.tip()? {
            Some(tip) => match tip.checked_out {
                Some(folder) => Err(GitError::CheckedOut { name: self.name.short().to_owned(), folder }),
                None => Ok(Some(tip.commit)),
            },
            None => Ok(None),
        }
    }

    /// Commits on top of `parent`, with a second parent, and moves the branch there from `expected`.
    pub(crate) fn commit(
        &self,
        expected: Option<&Oid>,
        parent: Option<&Oid>,
        second: Option<&Oid>,
        publication: &Publication,
        author: Author,
    ) -> Result<Oid, GitError> {
        if self.movable()?.as_ref() != expected {
            return Err(GitError::Moved(self.name.short().to_owned()));
        }
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pending = format!("{PENDING}{}-{}-{number}", std::process::id(), author.seconds);
        let (name, address) = self.repository.identity()?;
        let mut running = self
            .repository
            .start(Access::Write, &["fast-import", "--quiet", "--done", "--date-format=raw", "--force"])?;
        let (input, output) = (running.input()?, running.output()?);
        let commit =
            Commit { pending: &pending, name: &name, address: &address, parent, second, publication, author };
        let (written, answer) = std::thread::scope(|scope| {
            let reader = scope.spawn(move || io::read_to_string(output));
            let written = commit.write(io::BufWriter::new(input));
            (written, reader.join().unwrap_or_else(|_| Ok(String::new())))
        });
        // Git's own message explains a broken pipe.
        running.finish()?;
        let io = |error| GitError::Io { command: "fast-import".to_owned(), error };
        written.map_err(io)?;
        let answer = answer.map_err(io)?;
        let made = Oid::new(answer.trim()).map_err(|_| malformed("fast-import", &answer))?;
        self.step(expected, &made, Some(&pending))?;
        Ok(made)
    }

    /// Moves the branch, if it is still where it was, and removes the pending reference in the same step.
    pub(crate) fn step(
        &self,
        expected: Option<&Oid>,
        to: &Oid,
        pending: Option<&str>,
    ) -> Result<(), GitError> {
        // The branch may have been checked out meanwhile, which a reference's old value does not show.
        self.movable()?;
        self.repository.identity()?;
        let name = self.name.as_str();
        let old = expected.map_or_else(|| to.zero(), Oid::to_string);
        let mut orders = format!("option no-deref\nupdate {name} {to} {old}\n");
        if let Some(pending) = pending {
            orders.push_str(&format!("option no-deref\ndelete {pending} {to}\n"));
        }
        let words = ["update-ref", "--stdin", "-m", "waypost"];
        let output = self.repository.output(Access::Write, &words, orders.as_bytes())?;
        if output.succeeded {
            return Ok(());
        }
        if let Some(pending) = pending {
            // What is left of it is removed by the next sync.
            let _ = self.repository.output(Access::Write, &["update-ref", "-d", pending], b"");
        }
        match self.movable()?.as_ref() == expected {
            true => Err(GitError::Failed { command: "update-ref".to_owned(), message: output.message }),
            false => Err(GitError::Moved(self.name.short().to_owned())),
        }
    }

    /// Removes references that killed processes left. Only for a caller that is the only one to publish.
    pub fn clean(&self) -> Result<(), GitError> {
        let listed = self.repository.succeed(
            Access::Read,
            &["for-each-ref", "--format=option no-deref%0adelete %(refname) %(objectname)", "--", PENDING],
            b"",
        )?;
        if !listed.text.is_empty() {
            self.repository.succeed(Access::Write, &["update-ref", "--stdin"], &listed.text)?;
        }
        Ok(())
    }

    /// Plans the packing of a plan whose files have become many: one file with the lines of them all.
    pub fn packing(&self, commit: &Oid, plan: &PlanId) -> Result<Option<Publication>, GitError> {
        let (files, _) = self.repository.files(commit, &format!("{PLANS}{plan}/"))?;
        let records: Vec<TreeFile> =
            files.into_iter().filter(|file| file.plan().as_ref() == Some(plan)).collect();
        let (packs, segments): (Vec<TreeFile>, Vec<TreeFile>) =
            records.into_iter().partition(|file| is_pack(&file.path));
        let chosen = match (packs.len() > SEGMENTS_MAX, segments.len() > SEGMENTS_MAX) {
            (true, _) => [packs, segments].concat(),
            (false, true) => segments,
            (false, false) => return Ok(None),
        };
        let (mut lines, mut bytes, mut packed) = (Vec::new(), 0, Vec::new());
        for file in chosen {
            let mut own = Vec::new();
            let damage = self.repository.read_lines(commit, std::slice::from_ref(&file), |line| {
                own.push(line.text.to_owned());
            })?;
            bytes += own.iter().map(String::len).sum::<usize>();
            // A file that cannot be read completely stays as it is.
            let is_whole = damage.is_empty() && own.iter().all(|line| line.starts_with('{'));
            if is_whole && bytes <= PACK_BYTES_MAX {
                packed.push(file.path);
                lines.extend(own);
            }
        }
        if packed.len() < 2 {
            return Ok(None);
        }
        let pack = Segment::pack(plan, lines.iter().map(String::as_str).collect());
        packed.retain(|path| *path != pack.path);
        Ok(Some(Publication { files: vec![pack], removed: packed, ..Publication::default() }))
    }
}

/// A commit as the input of fast-import.
struct Commit<'a> {
    pending: &'a str,
    name: &'a str,
    address: &'a str,
    parent: Option<&'a Oid>,
    second: Option<&'a Oid>,
    publication: &'a Publication,
    author: Author,
}

impl Commit<'_> {
    fn write(&self, mut to: impl Write) -> io::Result<()> {
        let Self { pending, name, address, publication, .. } = self;
        let message = &publication.message;
        writeln!(
            to,
            "commit {pending}\nmark :1\ncommitter {name} <{address}> {} +0000",
            self.author.seconds
        )?;
        writeln!(to, "data {}\n{message}", message.len())?;
        if let Some(parent) = self.parent {
            writeln!(to, "from {parent}")?;
        }
        if let Some(second) = self.second {
            writeln!(to, "merge {second}")?;
        }
        if self.parent.is_none() {
            file(&mut to, FORMAT_FILE, format_text().as_bytes())?;
            file(&mut to, README_FILE, README.as_bytes())?;
        }
        for path in &publication.removed {
            writeln!(to, "D {path}")?;
        }
        for TreeFile { path, oid } in &publication.taken {
            writeln!(to, "M 100644 {oid} {path}")?;
        }
        for Segment { path, bytes } in &publication.files {
            file(&mut to, path, bytes)?;
        }
        writeln!(to, "\nget-mark :1\ndone")?;
        to.flush()
    }
}

fn file(to: &mut impl Write, path: &str, bytes: &[u8]) -> io::Result<()> {
    writeln!(to, "M 100644 inline {path}\ndata {}", bytes.len())?;
    to.write_all(bytes)?;
    writeln!(to)
}
