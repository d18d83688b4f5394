//! The files of the branch: their names, their limits, and which of them belong to which plan.

use waypost_core::PlanId;
use waypost_core::canonical::sha256;
use waypost_text::hex;

/// The format of the branch that this build writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// The file with the format.
pub(crate) const FORMAT_FILE: &str = "format";
/// The file for people who find the branch.
pub(crate) const README_FILE: &str = "README.md";
/// The folder of the plans.
pub(crate) const PLANS: &str = "plans/";
/// Maximum bytes of one line.
pub const LINE_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Maximum bytes of a file that is read.
pub const FILE_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Bytes at which a segment is full.
pub const SEGMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes at which a pack is full.
pub const PACK_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Number of segments of a plan above which they are packed into one file.
pub const SEGMENTS_MAX: usize = 16;
/// Maximum bytes of a clone's tag in a file name.
const TAG_BYTES_MAX: usize = 16;
/// Hexadecimal characters of a content's hash in a file name.
const HASH_CHARACTERS: usize = 12;

pub(crate) fn format_text() -> String {
    format!("waypost-git {FORMAT}\n")
}

/// Reads the format; `None` if the text is not that of a plan branch.
pub(crate) fn read_format(text: &str) -> Option<u32> {
    text.trim().strip_prefix("waypost-git ")?.parse().ok()
}

pub(crate) const README: &str = "\
# Shared plans

This branch holds plans that travel between clones of this repository. Waypost reads and writes it; nobody needs to check it out.

- `plans/PLAN/*.jsonl` are sets of records, one per line. A file is never changed after its commit.
- Merge it as you like: a union of the files is always right. Squashing or force-pushing it loses nothing: the clones put back what is missing.
- `waypost sync` exchanges it with the remote, `waypost list` shows the plans, `waypost conflicts` lists open questions.
";

/// The lines of one publication of a plan, as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its path in the branch.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

fn hash(bytes: &[u8]) -> String {
    hex(&sha256(bytes))[..HASH_CHARACTERS].to_owned()
}

impl Segment {
    /// Makes the file of what one clone wrote: the lines in their order, the first clock, and the clone's tag.
    pub fn new(plan: &PlanId, clock: u64, tag: &str, lines: &[&str]) -> Self {
        let tag: String = tag.chars().filter(char::is_ascii_alphanumeric).take(TAG_BYTES_MAX).collect();
        let bytes = joined(lines);
        let path = format!("{PLANS}{plan}/{clock:06}-{tag}-{}.jsonl", hash(&bytes));
        Self { path, bytes }
    }

    /// Makes a pack: the lines of several files, sorted and each once, so that clones that pack the same lines write
    /// the same file.
    pub(crate) fn pack(plan: &PlanId, mut lines: Vec<&str>) -> Self {
        lines.sort_unstable();
        lines.dedup();
        let bytes = joined(&lines);
        let path = format!("{PLANS}{plan}/pack-{}.jsonl", hash(&bytes));
        Self { path, bytes }
    }
}

fn joined(lines: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// Whether every part of a path is plain, so that it needs no quoting and leads nowhere else.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.eq_ignore_ascii_case(".git");
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b'~'))
        && path.split('/').all(is_part)
}

/// Returns the plan that a file of records belongs to: `plans/PLAN/NAME.jsonl`.
pub fn plan_of_path(path: &str) -> Option<PlanId> {
    let (plan, file) = path.strip_prefix(PLANS)?.split_once('/')?;
    let is_records = is_plain_path(path) && !file.contains('/') && file.ends_with(".jsonl");
    is_records.then(|| PlanId::new(plan).ok()).flatten()
}

/// Whether a file of records is a pack.
pub fn is_pack(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|file| file.starts_with("pack-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_records_belong_to_a_plan() {
        assert_eq!(plan_of_path("plans/k3m/000001-abc-00.jsonl").unwrap().as_str(), "k3m");
        for path in [
            "plans/k3m/PLAN.md",
            "plans/k3m/a/b.jsonl",
            "plans/.git/x.jsonl",
            "plans/../x.jsonl",
            "plans/a b/x.jsonl",
            "plan/k3m/x.jsonl",
            "plans//x.jsonl",
            "plans/k3m/..jsonl/..",
            "plans/-x/a.jsonl",
        ] {
            assert_eq!(plan_of_path(path), None, "{path}");
        }
    }

    #[test]
    fn a_segment_is_named_by_its_content_and_a_pack_does_not_depend_on_the_order() {
        let plan = PlanId::new("k3m").unwrap();
        let segment = Segment::new(&plan, 42, "k7f", &["b", "a"]);
        assert_eq!(
            segment.path,
            "plans/k3m/000042-k7f-6cfa0a0f4b0a.jsonl".replace("6cfa0a0f4b0a", &hash(b"b\na\n"))
        );
        assert_eq!(segment.bytes, b"b\na\n");
        let pack = Segment::pack(&plan, vec!["b", "a", "b"]);
        assert_eq!(pack, Segment::pack(&plan, vec!["a", "b"]));
        assert!(is_pack(&pack.path) && !is_pack(&segment.path));
    }

    #[test]
    fn the_format_is_a_number_after_the_name() {
        assert_eq!(read_format(&format_text()), Some(FORMAT));
        assert_eq!(read_format("waypost-git 7\n"), Some(7));
        assert_eq!(read_format("beads 1"), None);
    }
}
