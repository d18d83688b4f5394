//! Plans that are no JSON: numbered lines, steps, bullets. Only read where somebody asked for that, and always told of.

use waypost_core::Complexity;

use crate::similarity::significant_words;

/// Steps that are read of one text.
pub const STEPS_MAX: usize = 1_000;

/// Headings of the sections of such plans, which are no steps.
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

/// A step of a plan in prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is to be done.
    pub description: String,
    /// The indented lines below it.
    pub notes: String,
}

/// Whether the text says that its steps follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They are numbered.
    Numbered,
    /// They are a list without numbers.
    Free,
}

/// The steps of a plan in prose, and what their marks say of their order. None where there are no marks: prose is not guessed at.
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

/// What the complexity of such a step is taken for.
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

/// The mark of a line and what follows it.
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

/// The text without the marks of Markdown that close after it.
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
        // `1. **Read** …` has its mark in front.
        if let Some(inside) = text.strip_prefix(mark)
            && inside.matches(mark).count() == 0
        {
            return inside.trim();
        }
    }
    text
}

/// The lines without the indentation that all of them have.
fn dedented(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let said = lines.iter().filter(|line| !line.trim().is_empty());
    let all_indented = said.clone().all(|line| line.starts_with(char::is_whitespace));
    if !all_indented {
        return lines;
    }
    // What all have in common is the first line's, or a part of it; spaces beside tabs have nothing in common.
    let first = said.clone().next().map_or("", |line| &line[..line.len() - line.trim_start().len()]);
    let common = said.fold(first, |common, line| {
        let shared = common.chars().zip(line.chars()).take_while(|(one, other)| one == other);
        &common[..shared.map(|(one, _)| one.len_utf8()).sum()]
    });
    let bare =
        |line: &'_ str| if common.is_empty() { line.len() - line.trim_start().len() } else { common.len() };
    lines.into_iter().map(|line| line.get(bare(line)..).unwrap_or_default()).collect()
}
