//! The difference of two texts as one unified diff. Knows nothing of what the texts are.

use waypost_core::{Change, line_changes};
use waypost_text::sanitize;

/// The lines of the diff; none where nothing differs.
pub(crate) fn lines(name: &str, old: &str, new: &str) -> Vec<String> {
    let all = line_changes(old, new);
    let mut lines = Vec::new();
    let (mut old_at, mut new_at) = (1, 1);
    for part in all.split_inclusive(|change| matches!(change, Change::Gap(_))) {
        let (hunk, gap) = match part.split_last() {
            Some((Change::Gap(count), hunk)) => (hunk, *count),
            Some(_) | None => (part, 0),
        };
        let count = |is_there: fn(&Change<'_>) -> bool| hunk.iter().filter(|change| is_there(change)).count();
        let old_count = count(|change| matches!(change, Change::Same(_) | Change::Old(_)));
        let new_count = count(|change| matches!(change, Change::Same(_) | Change::New(_)));
        if !hunk.is_empty() {
            lines.push(format!("@@ -{old_at},{old_count} +{new_at},{new_count} @@"));
            lines.extend(hunk.iter().filter_map(line));
        }
        old_at += old_count + gap;
        new_at += new_count + gap;
    }
    if !lines.is_empty() {
        lines.splice(0..0, [format!("--- a/{name}"), format!("+++ b/{name}")]);
    }
    lines
}

/// A line of the diff, without control characters: the text of a file cannot steer a terminal.
fn line(change: &Change<'_>) -> Option<String> {
    let (sign, text) = match change {
        Change::Same(text) => (' ', text),
        Change::Old(text) => ('-', text),
        Change::New(text) => ('+', text),
        Change::Gap(_) => return None,
    };
    // Tabs stay; another line end inside of it would look like another line of the diff.
    Some(format!("{sign}{}", sanitize(text.trim_end_matches('\r')).replace('\n', " ")))
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
