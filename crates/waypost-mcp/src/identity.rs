//! The agent's name, sanitized from the client's own name for itself.

/// Maximum number of characters in an agent's name.
pub const AGENT_NAME_CHARACTERS_MAX: usize = 64;
/// The name of an agent that has no other.
pub(crate) const NOBODY: &str = "main";

/// Sanitizes a name chosen by others. Letters, digits, spaces and `._-@/+` stay; every run of other characters, such as control
/// characters and the colon of `person:`, becomes one hyphen. Returns `None` if nothing is left.
pub fn agent_name(said: &str) -> Option<String> {
    let mut name = String::new();
    for character in said.trim().chars().take(AGENT_NAME_CHARACTERS_MAX) {
        let stays = character.is_alphanumeric() || " ._-@/+".contains(character);
        match (stays, name.chars().next_back()) {
            (true, _) => name.push(character),
            (false, Some('-') | None) => {}
            (false, Some(_)) => name.push('-'),
        }
    }
    let name = name.trim_matches([' ', '-']).to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, expected: Option<&str>) {
        assert_eq!(agent_name(said).as_deref(), expected);
    }

    #[test]
    fn a_name_stays_a_name() {
        check("claude-code", Some("claude-code"));
        check("  My Agent 2.0 ", Some("My Agent 2.0"));
        check("person:ada", Some("person-ada"));
        check("agent:person:ada", Some("agent-person-ada"));
        check("a\nb\u{1b}[31mc\u{202e}d", Some("a-b-31mc-d"));
        check("\u{7}\u{200b}", None);
        check(" : ", None);
        check("", None);
        check("名前", Some("名前"));
    }

    #[test]
    fn a_name_ends_at_its_limit() {
        let long = "x".repeat(AGENT_NAME_CHARACTERS_MAX);
        check(&long, Some(&long));
        check(&format!("{long}y"), Some(&long));
    }
}
