use waypost_planner::prose_plan::{Order, STEPS_MAX, steps_of_text};

#[track_caller]
fn check(text: &str, steps: &[&str], order: Order) {
    let (found, found_order) = steps_of_text(text).unwrap();
    let found: Vec<&str> = found.iter().map(|step| step.description.as_str()).collect();
    assert_eq!((found.as_slice(), found_order), (steps, order), "{text}");
}

#[test]
fn numbered_lines_and_bullets_are_steps() {
    check("Step 1: a\nstep 2. b", &["a", "b"], Order::Numbered);
    check("1. foo\n2) bar\n3.baz", &["foo", "bar", "baz"], Order::Numbered);
    check("- foo\n* bar\n• baz\n- [ ] qux", &["foo", "bar", "baz", "qux"], Order::Free);
    check("  1. in\n  2. dented", &["in", "dented"], Order::Numbered);
    check("**1. Bold**\n2. **Read** the code\n3. `x`", &["Bold", "**Read** the code", "x"], Order::Numbered);
}

#[test]
fn sections_are_no_steps() {
    let text = "## 1. Goal\nDo it\n## 2. Approach\nWell\n## 5. Steps\nStep 1: one\nStep 2: two\n## 6. Risks/Edge Cases\n1. none";
    check(text, &["one", "two"], Order::Numbered);
    check("1. Goal\n2. Read\n3. Risks", &["Read"], Order::Numbered);
}

#[test]
fn prose_is_not_guessed_at() {
    for text in ["", "Just do it.", "2026 was a year", "v1.2.3 release", "Step N: letters", "10.5 percent"] {
        assert_eq!(steps_of_text(text), None, "{text}");
    }
}

#[test]
fn steps_are_bounded() {
    let text: String = (1..=STEPS_MAX + 1).map(|n| format!("{n}. do {n}\n")).collect();
    assert_eq!(steps_of_text(&text).unwrap().0.len(), STEPS_MAX);
}
