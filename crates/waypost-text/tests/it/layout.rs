use waypost_text::{fit, fit_right, pad, skip_columns, width, wrap};

const ALL: usize = usize::MAX;

#[test]
fn cells_are_filled_by_columns() {
    assert_eq!(pad("日本", 6), "日本  ");
    assert_eq!(pad("wider", 3), "wider");
    assert_eq!(fit("日本語", 5), "日本…");
    assert_eq!(fit("日本語", 4), "日… ");
    assert_eq!(fit_right("7", 3), "  7");
    assert_eq!(fit_right("1234", 3), "12…");
    assert_eq!(fit("👩‍👩‍👧", 4), "👩‍👩‍👧  ");
}

#[test]
fn lines_break_at_spaces_and_beside_wide_characters() {
    for (text, columns, lines_max, expected) in [
        ("one two three", 7, ALL, vec!["one two", "three"]),
        ("one two three", 6, ALL, vec!["one", "two", "three"]),
        ("abcdefghij", 4, ALL, vec!["abcd", "efgh", "ij"]),
        ("a\n\nb\n\n", 4, ALL, vec!["a", "", "b"]),
        ("a\r\nb\u{2028}c", 4, ALL, vec!["a", "b", "c"]),
        ("日本語", 3, ALL, vec!["日", "本", "語"]),
        ("日本", 1, ALL, vec!["日", "本"]),
        ("ab 日本語", 5, ALL, vec!["ab 日", "本語"]),
        ("see path/to-file.rs, then", 17, ALL, vec!["see", "path/to-file.rs,", "then"]),
        ("in /home/user/a-long-name.md", 12, ALL, vec!["in", "/home/user/", "a-long-", "name.md"]),
        ("  indented words here", 12, ALL, vec!["  indented", "words here"]),
        ("      deep", 4, ALL, vec!["deep"]),
        ("one two three four", 9, 2, vec!["one two", "three fo…"]),
        ("one two\nthree", 9, 1, vec!["one two …"]),
        ("one two\nthree", 7, 1, vec!["one tw…"]),
        ("one", 9, 1, vec!["one"]),
        ("one\n\n\n", 9, 1, vec!["one"]),
        ("bad\u{1b}[31m red\tend", 20, ALL, vec!["bad�[31m red end"]),
        ("", 9, 3, vec![]),
        ("text", 0, 3, vec![]),
        ("text", 3, 0, vec![]),
    ] {
        assert_eq!(wrap(text, columns, lines_max), expected, "{text:?} in {columns} × {lines_max}");
    }
}

#[test]
fn no_line_is_wider_than_it_may_be_and_no_word_is_lost() {
    let text =
        "日本語の計画 with 👩‍👩‍👧 families, e\u{301}tudes and a_very_long_identifier_without_spaces\n  and more";
    let without_spaces = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    for columns in 2..60 {
        let lines = wrap(text, columns, ALL);
        assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
        assert_eq!(without_spaces(&lines.concat()), without_spaces(text), "{columns}");
        for lines_max in 1..lines.len() {
            let fewer = wrap(text, columns, lines_max);
            assert_eq!(fewer.len(), lines_max);
            assert!(fewer.iter().all(|line| width(line) <= columns), "{columns}: {fewer:?}");
            assert!(fewer[lines_max - 1].ends_with('…'), "{columns}: {fewer:?}");
            assert_eq!(fewer[..lines_max - 1], lines[..lines_max - 1]);
        }
    }
    let long = "word ".repeat(1_000_000);
    assert_eq!(wrap(&long, 9, 2), ["word word", "word wor…"]);
}

#[test]
fn a_line_can_be_scrolled_to_the_side() {
    for (columns, expected) in
        [(0, "a日本b"), (1, "日本b"), (2, " 本b"), (3, "本b"), (5, "b"), (6, ""), (9, "")]
    {
        assert_eq!(skip_columns("a日本b", columns), expected);
    }
}
