use std::borrow::Cow;

use waypost_text::{
    escape_json, excerpt, has_hidden, is_unsafe_char, one_line, reveal, reveal_lines, sanitize,
    sanitize_line, truncate,
};

fn check_line(text: &str, expected: &str) {
    assert_eq!(sanitize_line(text), expected, "{text:?}");
    assert_eq!(sanitize_line(expected), expected, "what is clean stays as it is: {expected:?}");
}

#[test]
fn a_line_shows_that_there_was_more_in_it() {
    for (text, expected) in [
        ("", ""),
        ("plain ~ text", "plain ~ text"),
        // Terminal sequences: colour, title, link, clear; with ESC and with the C1 control that means the same.
        ("\u{1b}[31mx", "�[31mx"),
        ("a\u{1b}]0;title\u{7}b", "a�]0;title�b"),
        ("a\u{9b}2Jb\u{7f}c\0d", "a�2Jb�c�d"),
        ("ab\u{8}\u{8}c", "ab�c"),
        // Overrides, embeddings, isolates and marks of direction.
        ("file\u{202e}txt.exe", "file�txt.exe"),
        ("\u{2066}a\u{2069}\u{200f}b\u{61c}c\u{200e}", "�a�b�c�"),
        // What nobody sees.
        ("a\u{200b}b\u{2060}c\u{feff}d\u{ad}e\u{34f}f", "a�b�c�d�e�f"),
        ("a\u{115f}b\u{3164}c\u{ffa0}d\u{17b4}e", "a�b�c�d�e"),
        ("a\u{fff9}b\u{fffe}c\u{1ffff}d\u{fdd0}e", "a�b�c�d�e"),
        ("a\u{1d173}b\u{1bca0}c\u{206a}d\u{2064}", "a�b�c�d�"),
        // A message in tag characters is one sign, however long it is.
        ("go\u{e0001}\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}\u{e007f}!", "go�!"),
        ("\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", "\u{1f3f4}�"),
        // Line ends and tabs.
        ("a\nb\tc", "a b c"),
        ("a\r\nb\rc\u{b}d\u{c}e\u{85}f\u{2028}g\u{2029}h", "a b c d e f g h"),
        // What looks odd and is right.
        ("naïve 日本語 עברית العربية e\u{301}\u{323}", "naïve 日本語 עברית العربية e\u{301}\u{323}"),
        ("� was here", "� was here"),
        ("a\u{a0}b\u{3000}c", "a\u{a0}b\u{3000}c"),
    ] {
        check_line(text, expected);
    }
}

#[test]
fn joiners_and_selectors_stay_where_a_script_or_an_emoji_needs_them() {
    for (text, expected) in [
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        ("👩🏽‍🚀 ❤️‍🔥 🏳️‍🌈", "👩🏽‍🚀 ❤️‍🔥 🏳️‍🌈"),
        ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ("क्\u{200d}ष", "क्\u{200d}ष"),
        ("☺\u{fe0e} 葛\u{e0100} 1\u{fe0f}\u{20e3}", "☺\u{fe0e} 葛\u{e0100} 1\u{fe0f}\u{20e3}"),
        ("ᠠ\u{180b}ᠨ\u{180e}ᠠ", "ᠠ\u{180b}ᠨ\u{180e}ᠠ"),
        // Between ASCII characters they only hide.
        ("rm\u{200d} -rf", "rm� -rf"),
        ("a\u{200c}b", "a�b"),
        ("a\u{fe0f}b", "a�b"),
        ("1\u{fe01}b", "1�b"),
        (" \u{200d}", " �"),
        ("\u{200d}x", "�x"),
        // One after the other they carry a message.
        ("😀\u{fe00}\u{fe01}\u{fe02}\u{e0100}\u{e01ef}!", "😀\u{fe00}�!"),
        ("日\u{200d}\u{200c}\u{200d}本", "日\u{200d}�本"),
        ("日\u{200d}\u{fe0f}本", "日\u{200d}�本"),
        ("\u{202e}\u{200d}x", "�x"),
    ] {
        check_line(text, expected);
    }
}

#[test]
fn several_lines_keep_their_ends_and_tabs() {
    for (text, expected) in [
        ("one\n\ttwo\n", "one\n\ttwo\n"),
        ("one\r\ntwo\r\n\r\nthree", "one\ntwo\n\nthree"),
        ("10%\r20%\rdone", "10%\n20%\ndone"),
        ("a\u{2028}b\u{2029}c\u{85}d\u{c}e", "a\nb\nc\nd\ne"),
        ("\u{1b}[2Ja\n\u{1b}\u{202e}b", "�[2Ja\n�b"),
        ("\u{1b}\n\u{1b}", "�\n�"),
    ] {
        assert_eq!(sanitize(text), expected, "{text:?}");
        assert_eq!(sanitize(expected), expected);
    }
}

#[test]
fn words_of_one_line_have_one_space_between_them() {
    for (text, expected) in [
        ("two words", "two words"),
        ("  two\n\n  lines\tand\u{a0}\u{3000}more \r\n", "two lines and more"),
        ("\u{1b}[1m  x", "�[1m x"),
        (" \n\t", ""),
    ] {
        assert_eq!(one_line(text), expected, "{text:?}");
    }
}

#[test]
fn a_clean_text_is_not_copied() {
    for text in ["plain", "日本語 👩‍👩‍👧", ""] {
        assert!(matches!(sanitize(text), Cow::Borrowed(_)));
        assert!(matches!(sanitize_line(text), Cow::Borrowed(_)));
        assert!(matches!(one_line(text), Cow::Borrowed(_)));
        assert!(matches!(escape_json(text), Cow::Borrowed(_)));
        assert!(matches!(truncate(text, 40), Cow::Borrowed(_)));
        assert!(matches!(excerpt(text, 40), Cow::Borrowed(_)));
    }
    assert!(matches!(sanitize("two\n\tlines"), Cow::Borrowed(_)));
}

#[test]
fn no_unsafe_character_passes_whatever_it_stands_beside() {
    let all = (0..=u32::from(char::MAX)).filter_map(char::from_u32);
    let mut seen = 0;
    for character in all.filter(|&character| is_unsafe_char(character)) {
        seen += 1;
        for text in
            [format!("{character}"), format!("a{character}b"), format!("日{character}本 😀{character}")]
        {
            assert!(!sanitize_line(&text).contains(is_unsafe_char), "{text:?}");
            assert!(!one_line(&text).contains(is_unsafe_char), "{text:?}");
            assert!(!truncate(&text, 2).contains(is_unsafe_char), "{text:?}");
            let is_layout = |shown: char| matches!(shown, '\n' | '\t');
            assert!(
                !sanitize(&text).contains(|shown| is_unsafe_char(shown) && !is_layout(shown)),
                "{text:?}"
            );
        }
    }
    assert!(seen > 4_000, "planes of tags and noncharacters are among them: {seen}");
    for visible in "aZ09~é日क😀�…◐€".chars() {
        assert!(!is_unsafe_char(visible), "{visible}");
    }
}

#[test]
fn an_id_in_a_message_cannot_leave_its_place() {
    let id = "\u{1b}[31mx\u{1b}]8;;http://evil\u{7}\n\u{202e}error: all is well";
    let message = format!("no plan is called {id}");
    assert_eq!(
        sanitize_line(&message),
        "no plan is called �[31mx�]8;;http://evil� �error: all is well",
        "neither a colour nor another line"
    );
}

#[test]
fn json_means_the_same_with_escapes() {
    for (json, expected) in [
        (r#"{"a": "b"}"#, r#"{"a": "b"}"#),
        ("{\n\t\"日本\": \"é\"\r\n}", "{\n\t\"日本\": \"é\"\r\n}"),
        ("\"a\u{202e}b\u{7f}c\u{9b}d\"", r#""a\u202eb\u007fc\u009bd""#),
        ("\"\u{e0041}\u{200d}\u{2028}a👩‍👧\"", r#""\udb40\udc41\u200d\u2028a👩‍👧""#),
    ] {
        assert_eq!(escape_json(json), expected);
    }
}

#[test]
fn what_is_invisible_is_revealed_and_never_dropped() {
    let cases = [
        ("plain", "plain", "plain"),
        ("a\u{200b}b", r"a\u{200b}b", r"a\u{200b}b"),
        ("g\u{200b}\u{9b}1m", r"g\u{200b}\u{9b}1m", r"g\u{200b}\u{9b}1m"),
        ("a\u{200d}b", r"a\u{200d}b", r"a\u{200d}b"),
        ("é\u{200d}é", r"é\u{200d}é", "é\u{200d}é"),
        ("❤\u{fe0f}", "❤\u{fe0f}", "❤\u{fe0f}"),
        // One after each visible character spells a message.
        ("é\u{e0163}é\u{e0165}", r"é\u{e0163}é\u{e0165}", r"é\u{e0163}é\u{e0165}"),
        ("é\u{fe00}\u{2800}x", r"é\u{fe00}\u{2800}x", r"é\u{fe00}\u{2800}x"),
        ("é\n\tf\r\ng\rh", r"é\u{a}\u{9}f\u{d}\u{a}g\u{d}h", "é\n\tf\r\ng\\u{d}h"),
    ];
    for (text, on_one_line, on_lines) in cases {
        assert_eq!((reveal(text).as_ref(), reveal_lines(text).as_ref()), (on_one_line, on_lines));
        assert_eq!(has_hidden(text), text != on_lines, "{text:?}");
    }
}
