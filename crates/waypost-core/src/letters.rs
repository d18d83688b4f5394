//! Characters that steer a screen instead of standing on it. Texts of plans are written by models: what is shown of them must
//! neither move the cursor nor turn the text around it.

/// Whether a character is a control, or turns the direction of what stands around it.
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// A line without such characters; tabs stay.
pub fn seemly(line: &str) -> String {
    line.chars().filter(|&character| character == '\t' || !steers(character)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_screen_is_left_out_and_everything_else_stays() {
        assert_eq!(seemly("a\u{1b}[2Jb\u{202e}c\u{2066}d\te\r"), "a[2Jbcd\te");
        let plain = "naïve 日本語 👩‍👩‍👧 עברית العربية";
        assert_eq!(seemly(plain), plain);
    }
}
