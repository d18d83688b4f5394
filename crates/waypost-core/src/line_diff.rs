//! Line diff of two texts, and the merge of two texts that were made from a third. Does not know what the texts are.
//!
//! Which lines two texts have in common, where there are several ways to see it, is part of the format in which plans
//! travel: another choice would merge the same texts to another plan. Golden files hold it.

/// Maximum cells of the table that finds common lines; larger texts are shown as fully removed and added.
const CELLS_MAX: usize = 4_000_000;
/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// One line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A line in both texts.
    Same(&'a str),
    /// A line of the old text only.
    Old(&'a str),
    /// A line of the new text only.
    New(&'a str),
    /// This many equal lines are omitted.
    Gap(usize),
}

/// Returns the changes from `old` to `new`, with two lines of context.
pub fn line_changes<'a>(old: &'a str, new: &'a str) -> Vec<Change<'a>> {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut all: Vec<Change<'a>> = a[..start].iter().map(|line| Change::Same(line)).collect();
    between(&a[start..a.len() - end], &b[start..b.len() - end], &mut all);
    all.extend(a[a.len() - end..].iter().map(|line| Change::Same(line)));
    with_gaps(&all)
}

/// Diffs two lists that have no common prefix or suffix.
fn between<'a>(a: &[&'a str], b: &[&'a str], all: &mut Vec<Change<'a>>) {
    if a.len().saturating_mul(b.len()) > CELLS_MAX {
        all.extend(a.iter().map(|line| Change::Old(line)));
        all.extend(b.iter().map(|line| Change::New(line)));
        return;
    }
    // `common[i][j]` is the length of the longest common subsequence of `a[i..]` and `b[j..]`.
    let row = b.len() + 1;
    let mut common = vec![0u32; (a.len() + 1) * row];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * row + j] = if a[i] == b[j] {
                common[(i + 1) * row + j + 1] + 1
            } else {
                common[(i + 1) * row + j].max(common[i * row + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            all.push(Change::Same(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || i < a.len() && common[(i + 1) * row + j] >= common[i * row + j + 1] {
            all.push(Change::Old(a[i]));
            i += 1;
        } else {
            all.push(Change::New(b[j]));
            j += 1;
        }
    }
}

/// Returns which lines two texts have in common, in order; `None` if that would cost too much to find out.
fn common_lines(a: &[&str], b: &[&str]) -> Option<Vec<(usize, usize)>> {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (middle_a, middle_b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    if middle_a.len().saturating_mul(middle_b.len()) > CELLS_MAX {
        return None;
    }
    let mut common: Vec<(usize, usize)> = (0..start).map(|line| (line, line)).collect();
    let mut changes = Vec::new();
    between(middle_a, middle_b, &mut changes);
    let (mut i, mut j) = (start, start);
    for change in changes {
        match change {
            Change::Same(_) => {
                common.push((i, j));
                (i, j) = (i + 1, j + 1);
            }
            Change::Old(_) => i += 1,
            Change::New(_) => j += 1,
            Change::Gap(_) => {}
        }
    }
    common.extend((0..end).map(|line| (a.len() - end + line, b.len() - end + line)));
    Some(common)
}

/// Merges two texts that were made from `base`, line by line. `None` if both changed the same lines, or lines next to each
/// other, in different ways, or if the texts are too different to compare.
pub fn merged_texts(base: &str, a: &str, b: &str) -> Option<String> {
    if a == b || b == base {
        return Some(a.to_owned());
    }
    if a == base {
        return Some(b.to_owned());
    }
    let [base, a, b] = [base, a, b].map(|text| text.split('\n').collect::<Vec<&str>>());
    let (in_a, in_b) = (common_lines(&base, &a)?, common_lines(&base, &b)?);
    let mut lines: Vec<&str> = Vec::new();
    // The lines up to here are merged.
    let (mut from, mut from_a, mut from_b) = (0, 0, 0);
    let mut places_b = in_b.iter().copied().peekable();
    // The last one stands after all three texts.
    let ends = (base.len(), a.len());
    for (line, line_a) in in_a.iter().copied().chain([ends]) {
        while places_b.next_if(|(other, _)| *other < line).is_some() {}
        let line_b = match places_b.peek() {
            _ if line == base.len() => b.len(),
            Some((other, line_b)) if *other == line => *line_b,
            Some(_) | None => continue,
        };
        let (old, new_a, new_b) = (&base[from..line], &a[from_a..line_a], &b[from_b..line_b]);
        lines.extend(match () {
            () if new_a == new_b || new_b == old => new_a,
            () if new_a == old => new_b,
            () => return None,
        });
        if line < base.len() {
            lines.push(base[line]);
        }
        (from, from_a, from_b) = (line + 1, line_a + 1, line_b + 1);
    }
    Some(lines.join("\n"))
}

fn with_gaps<'a>(all: &[Change<'a>]) -> Vec<Change<'a>> {
    let mut near = vec![false; all.len()];
    for (at, change) in all.iter().enumerate() {
        if !matches!(change, Change::Same(_)) {
            let to = (at + CONTEXT + 1).min(all.len());
            near[at.saturating_sub(CONTEXT)..to].fill(true);
        }
    }
    let mut shown = Vec::new();
    for (change, near) in all.iter().zip(near) {
        match (near, shown.last_mut()) {
            (true, _) => shown.push(*change),
            (false, Some(Change::Gap(count))) => *count += 1,
            (false, _) => shown.push(Change::Gap(1)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let lines = line_changes(old, new).into_iter().map(|change| match change {
            Change::Same(line) => format!(" {line}"),
            Change::Old(line) => format!("-{line}"),
            Change::New(line) => format!("+{line}"),
            Change::Gap(count) => format!("@{count}"),
        });
        assert_eq!(lines.collect::<Vec<_>>().join("|"), expected);
    }

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        check("a\nb\nc", "a\nx\nc", " a|-b|+x| c");
        check("1\n2\n3\n4\n5\n6\n7", "1\n2\n3\n4\n5\n6\nseven", "@4| 5| 6|-7|+seven");
        check("", "a\nb", "+a|+b");
        check("a\nb\nc\nd", "b\nc\ne\nd", "-a| b| c|+e| d");
        check("same", "same", "@1");
    }

    #[test]
    fn changes_of_different_lines_are_merged_and_others_are_not() {
        let merged = |base: &str, a: &str, b: &str| {
            let merged = merged_texts(base, a, b);
            assert_eq!(merged, merged_texts(base, b, a), "neither side is preferred");
            merged
        };
        assert_eq!(merged("a\nb\nc", "x\nb\nc", "a\nb\ny").as_deref(), Some("x\nb\ny"));
        assert_eq!(merged("a\nb\nc", "a\nc", "a\nb\nc\nd").as_deref(), Some("a\nc\nd"));
        assert_eq!(merged("a\nb", "x\nb", "x\nb").as_deref(), Some("x\nb"), "both did the same");
        assert_eq!(merged("a", "", "a").as_deref(), Some(""));
        assert_eq!(merged("a\n", "b\n", "a\n\n").as_deref(), Some("b\n\n"));
        assert_eq!(merged("a\nb\nc", "x\nb\nc", "y\nb\nc"), None, "the same line");
        assert_eq!(merged("a\nb", "x\nb", "a\ny"), None, "lines next to each other");
        assert_eq!(merged("", "x", "y"), None);
    }

    #[test]
    fn texts_that_would_cost_too_much_are_not_merged() {
        let lines = |word: &str| (0..2_001).map(|n| format!("{word} {n}\n")).collect::<String>();
        assert_eq!(merged_texts(&lines("a"), &lines("b"), &lines("c")), None);
        const { assert!(CELLS_MAX < 2_001 * 2_001) };
    }
}
