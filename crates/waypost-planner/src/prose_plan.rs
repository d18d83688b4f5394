//! Reads plans in prose: numbered lines, steps, bullets. Used only if enabled, and always reported as a repair.

use waypost_core::Complexity;

use crate::similarity::significant_words;

/// Maximum number of steps read from one text.
pub const STEPS_MAX: usize = 1_000;

/// Headings of sections in such plans, which are not steps.
const SECTIONS: &[&str] = &[
    "goal",
    "current state",
    "problems",
    "gaps",
    "problems gaps",
    "approach",
    "steps",
    "plan",
    "risks",
    "edge cases",
    "risks edge cases",
    "understanding",
    "verification",
    "summary",
    "overview",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub description: String,
    /// The indented lines below it.
    pub notes: String,
}

/// Whether the steps depend on each other in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Numbered steps: in order.
    Numbered,
    /// A list without numbers: in any order.
    Free,
}

/// Reads the steps of a plan in prose, and their order. `None` if there are no list marks: plain prose is not interpreted.
pub fn steps_of_text(text: &str) -> Option<(Vec<Step>, Order)> {
    let lines: Vec<Line<'_>> = dedented(text).into_iter().map(Line::of).collect();
    for (mark, order) in [
        (Mark::Step, Order::Numbered),
        (Mark::Number, Order::Numbered),
        (Mark::NumberedHeading, Order::Numbered),
        (Mark::Bullet, Order::Free),
    ] {
        let steps = steps_with(&lines, mark);
        if !steps.is_empty() {
            return Some((steps, order));
        }
    }
    None
}

/// The complexity of such a step.
pub const STEP_COMPLEXITY: Complexity = Complexity::Medium;

fn steps_with(lines: &[Line<'_>], mark: Mark) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut open = false;
    for line in lines {
        if line.mark == Some(mark) && !line.indented && !is_section(line.text) {
            if steps.len() == STEPS_MAX {
                break;
            }
            steps.push(Step { description: line.text.to_owned(), notes: String::new() });
            open = true;
        } else if let (true, true, Some(step)) = (open, line.indented, steps.last_mut()) {
            if !step.notes.is_empty() {
                step.notes.push('\n');
            }
            step.notes.push_str(line.whole);
        } else if !line.whole.is_empty() {
            open = false;
        }
    }
    steps
}

fn is_section(text: &str) -> bool {
    SECTIONS.contains(&significant_words(text.trim_end_matches(':')).join(" ").as_str())
        || SECTIONS.contains(&text.trim_end_matches(':').trim().to_lowercase().as_str())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// `Step 3: …`
    Step,
    /// `3. …`, `3) …`
    Number,
    /// `## 3. …`
    NumberedHeading,
    /// `- …`
    Bullet,
}

struct Line<'a> {
    indented: bool,
    mark: Option<Mark>,
    /// Without its mark.
    text: &'a str,
    whole: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let indented = line.starts_with(char::is_whitespace);
        let whole = line.trim();
        let (mark, text) = match marked(whole) {
            Some((mark, text)) => (Some(mark), text),
            None => (None, whole),
        };
        Self { indented, mark, text, whole }
    }
}

/// The mark of a line and the text after it.
fn marked(line: &str) -> Option<(Mark, &str)> {
    let is_heading = line.starts_with('#');
    let bare = line.trim_start_matches(['*', '#', '_', '>', '`', '▶', '-', '+', '•', '–', ' ']);
    if let Some(word) = bare.get(..4)
        && word.eq_ignore_ascii_case("step")
        && let Some(text) = numbered(bare[4..].trim_start(), &[':', '.', ')'])
    {
        return Some((Mark::Step, text));
    }
    let is_bullet = ["- ", "* ", "+ ", "• ", "– "].iter().any(|mark| line.starts_with(mark));
    if let Some(text) = numbered(bare, &['.', ')']).filter(|_| !is_bullet) {
        return Some((if is_heading { Mark::NumberedHeading } else { Mark::Number }, text));
    }
    let text = line.trim_start_matches(['-', '*', '+', '•', '–', ' ']);
    let text = ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text);
    is_bullet.then(|| (Mark::Bullet, without_marks(text))).filter(|(_, text)| !text.is_empty())
}

fn numbered<'a>(text: &'a str, marks: &[char]) -> Option<&'a str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].strip_prefix(marks)?;
    // `1.2.3` is a version, and `10.5` a number.
    if digits == 0 || rest.starts_with(|next: char| next.is_ascii_digit()) {
        return None;
    }
    Some(without_marks(rest)).filter(|text| !text.is_empty())
}

/// Removes Markdown emphasis around the text, or a part of it whose other mark was removed before.
fn without_marks(text: &str) -> &str {
    let text = text.trim();
    for mark in ["**", "__", "*", "`"] {
        if let Some(inside) = text.strip_suffix(mark)
            && inside.matches(mark).count() % 2 == 0
        {
            return inside.trim();
        }
        if let Some(inside) = text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark))
            && !inside.contains(mark)
        {
            return inside.trim();
        }
        // `1. **Read` has its mark in front only.
        if let Some(inside) = text.strip_prefix(mark)
            && inside.matches(mark).count() == 0
        {
            return inside.trim();
        }
    }
    text
}

/// Removes the common indentation of all lines.
fn dedented(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let said = lines.iter().filter(|line| !line.trim().is_empty());
    let all_indented = said.clone().all(|line| line.starts_with(char::is_whitespace));
    if !all_indented {
        return lines;
    }
    // The common indentation is a prefix of the first line's. Tabs and spaces share none.
    let first = said.clone().next().map_or("", |line| &line[..line.len() - line.trim_start().len()]);
    let common = said.fold(first, |common, line| {
        let shared = common.chars().zip(line.chars()).take_while(|(one, other)| one == other);
        &common[..shared.map(|(one, _)| one.len_utf8()).sum()]
    });
    let bare =
        |line: &'_ str| if common.is_empty() { line.len() - line.trim_start().len() } else { common.len() };
    lines.into_iter().map(|line| line.get(bare(line)..).unwrap_or_default()).collect()
}
