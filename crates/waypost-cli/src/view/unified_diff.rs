//! The difference of two texts as a unified diff.

use similar::TextDiff;
use waypost_text::sanitize;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// The lines of the diff; empty if the texts are equal.
pub fn lines(name: &str, old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let diff = TextDiff::from_slices(&old, &new);
    let mut lines = Vec::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        let [Some(first), Some(last)] = [hunk.ops().first(), hunk.ops().last()] else { continue };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        lines.push(format!("@@ -{},{} +{},{} @@", old.start + 1, old.len(), new.start + 1, new.len()));
        // Control characters are removed, so that a file's text cannot control the terminal. Tabs stay. A newline
        // inside a line is replaced, because it would look like another line of the diff.
        lines.extend(hunk.iter_changes().map(|change| {
            format!("{}{}", change.tag(), sanitize(change.value().trim_end_matches('\r')).replace('\n', " "))
        }));
    }
    if !lines.is_empty() {
        lines.splice(0..0, [format!("--- a/{name}"), format!("+++ b/{name}")]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &[&str]) {
        assert_eq!(lines("f", old, new), expected);
    }

    #[test]
    fn hunks_say_where_they_stand_in_both_texts() {
        let named = ["--- a/f", "+++ b/f"];
        let one = ["@@ -1,3 +1,4 @@", " a", " b", "+x", " c"];
        check("a\nb\nc\n", "a\nb\nx\nc\n", &[&named[..], &one].concat());
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\nII\n3\n4\n5\n6\n7\n8\nIX\nX\n";
        let first = ["@@ -1,4 +1,4 @@", " 1", "-2", "+II", " 3", " 4"];
        let second = ["@@ -7,3 +7,4 @@", " 7", " 8", "-9", "+IX", "+X"];
        check(old, new, &[&named[..], &first, &second].concat());
        check("a\n", "a\n", &[]);
        check("a\u{1b}[2J\n", "b\n", &[&named[..], &["@@ -1,1 +1,1 @@", "-a�[2J", "+b"]].concat());
    }
}
