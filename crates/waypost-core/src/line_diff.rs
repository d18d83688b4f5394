//! Line diff of two texts. Does not know what the texts are.

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
}
