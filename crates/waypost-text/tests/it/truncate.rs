use waypost_text::{
    excerpt, excerpt_bytes, fit, fit_right, head_bytes, tail_bytes, truncate, truncate_bytes, width,
};

#[test]
fn width_is_what_a_terminal_shows() {
    for (text, columns) in [
        ("", 0),
        ("plain", 5),
        ("日本語", 6),
        ("e\u{301}", 1),
        ("👩‍👩‍👧", 2),
        ("👩🏽‍🚀", 2),
        ("❤️‍🔥", 2),
        ("한글", 4),
        ("ｆｕｌｌ", 8),
        ("עברית", 5),
        ("a\u{301}\u{302}\u{303}b", 2),
        ("…◐✓✗⊘■", 6),
    ] {
        assert_eq!(width(text), columns, "{text}");
    }
}

#[test]
fn a_text_is_truncated_by_columns_and_never_inside_a_grapheme() {
    for (text, columns, expected) in [
        ("plain", 5, "plain"),
        ("plain text", 6, "plain…"),
        ("plain text", 7, "plain…"),
        ("plain text", 1, "…"),
        ("plain text", 0, ""),
        ("", 0, ""),
        ("日本語の計画", 7, "日本語…"),
        ("日本語の計画", 6, "日本…"),
        ("日本語", 6, "日本語"),
        ("日本語", 2, "…"),
        ("🎯 goal", 4, "🎯…"),
        ("👩‍👩‍👧👩‍👩‍👧", 4, "👩‍👩‍👧👩‍👩‍👧"),
        ("👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"),
        ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
        ("two\n  lines", 40, "two   lines"),
        ("a\u{1b}[31mbc", 6, "a�[31…"),
        ("می\u{200c}خواهم", 4, "می\u{200c}خ…"),
    ] {
        assert_eq!(truncate(text, columns), expected, "{text:?} in {columns}");
    }
}

#[test]
fn an_excerpt_is_words_with_one_space_between_them() {
    for (text, columns, expected) in [
        ("two\nlines\tand  more", 40, "two lines and more"),
        ("two\nlines\tand  more", 10, "two lines…"),
        ("  \n  indented", 40, "indented"),
        ("bad\u{1b}[31m", 10, "bad�[31m"),
        ("a b", 2, "a…"),
    ] {
        assert_eq!(excerpt(text, columns), expected, "{text:?} in {columns}");
    }
}

#[test]
fn at_every_width_a_cell_is_as_wide_as_it_should_be() {
    let texts = [
        "A plain sentence, with a comma.",
        "日本語の計画と very mixed テキスト",
        "👩‍👩‍👧 family 👩🏽‍🚀 astronaut ❤️‍🔥 🏳️‍🌈",
        "Zal\u{301}\u{302}\u{303}\u{304}go e\u{301}\u{323}",
        "عربي \u{202e}and\u{1b}[2J hostile\u{e0041}\u{e0042} עברית",
        "tabs\tand\r\nlines\u{2028}here",
    ];
    for text in texts {
        for columns in 0..=width(text) + 4 {
            let (cut, short) = (truncate(text, columns), excerpt(text, columns));
            assert!(
                width(&cut) <= columns && width(&short) <= columns,
                "{text:?} in {columns}: {cut:?} {short:?}"
            );
            assert_eq!(width(&fit(text, columns)), columns, "{text:?}");
            assert_eq!(width(&fit_right(text, columns)), columns, "{text:?}");
            assert_eq!(truncate(&cut, columns), cut, "{text:?} in {columns}: once is enough");
            let whole = truncate(text, usize::MAX);
            if let Some(kept) = cut.strip_suffix('…') {
                assert!(whole.starts_with(kept) && width(&whole) > columns, "{text:?} in {columns}: {cut:?}");
            } else if columns > 0 {
                assert_eq!(cut, whole, "what was cut shows: {text:?} in {columns}");
            }
        }
    }
}

#[test]
fn a_text_of_megabytes_costs_what_is_seen_of_it() {
    let marks = format!("a{}b", "\u{301}".repeat(1_000_000));
    let cut = truncate(&marks, 10);
    assert!(cut.ends_with('…') && cut.len() < 1_000, "{}", cut.len());
    let long = "word ".repeat(1_000_000);
    assert_eq!(truncate(&long, 12), "word word w…");
    assert_eq!(excerpt(&long, 12), "word word w…");
    assert_eq!(excerpt(&format!("{}x", " ".repeat(1_000_000)), 12), "x");
}

#[test]
fn bytes_are_cut_between_characters() {
    for (text, bytes, expected) in [
        ("äöü", 6, "äöü"),
        ("äöüäöü", 7, "äö…"),
        ("äöüäöü", 8, "äö…"),
        ("äöüäöü", 3, "…"),
        ("äöüäöü", 2, "ä"),
        ("äöüäöü", 1, ""),
        ("two\nlines", 8, "two\nl…"),
        ("日本語", 8, "日…"),
    ] {
        assert_eq!(truncate_bytes(text, bytes), expected, "{text:?} in {bytes}");
        assert!(truncate_bytes(text, bytes).len() <= bytes);
    }
    assert_eq!(excerpt_bytes("two\n  lines", 40), "two lines");
    assert_eq!(excerpt_bytes("\u{1b}two\n  lines", 8), "�tw…");
    for bytes in 0..=12 {
        let (head, tail) = (head_bytes("日本語ab", bytes), tail_bytes("ab日本語", bytes));
        assert!(head.len() <= bytes && "日本語ab".starts_with(head) && head.len() + 3 > bytes.min(11));
        assert!(tail.len() <= bytes && "ab日本語".ends_with(tail) && tail.len() + 3 > bytes.min(11));
    }
}
