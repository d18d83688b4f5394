//! What is said of damaged files of a store, and what helps. Knows no file.

/// What helps with damage.
pub const HINT: &str = "`waypost doctor` names all damage, and `waypost doctor --repair` repairs what it can";
/// How plans travel that version control does not merge by lines.
pub const SHARE_INSTEAD: &str =
    "once it is repaired, `waypost share PLAN` lets a plan travel with the repository without such conflicts";

/// What a warning about a damaged file says.
const IS_DAMAGED: &str = " is damaged: ";
/// What is said of a file that version control merged by lines.
const MERGED_BY_LINES: [&str; 2] = ["a merge left a conflict marker", "both sides of a merge are there"];

/// Whether a warning is about a damaged file.
pub fn is_damage(warning: &str) -> bool {
    warning.contains(IS_DAMAGED)
}

/// Whether version control did the damage.
pub fn is_of_version_control(damage: &str) -> bool {
    MERGED_BY_LINES.iter().any(|words| damage.contains(words))
}

/// Returns a hint with how plans get no such damage, if version control did it.
pub fn with_way_out(hint: &str, damage: &str) -> String {
    match is_of_version_control(damage) {
        true => format!("{hint}; {SHARE_INSTEAD}"),
        false => hint.to_owned(),
    }
}
