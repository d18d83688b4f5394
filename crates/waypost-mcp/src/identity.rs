//! The agent's name, sanitized from the client's own name for itself.

/// Maximum number of characters in an agent's name.
pub const AGENT_NAME_CHARACTERS_MAX: usize = 64;
/// The name of an agent that has no other.
pub(crate) const NOBODY: &str = "main";

/// Hosts by the names that their MCP clients give themselves, without case and with hyphens for spaces. A name also
/// stands for itself with a hyphen and more behind it, such as the name of the server. Shells of these hosts are named
/// the same (`waypost-account`).
const HOSTS: &[(&str, &str)] = &[
    ("codex-mcp-client", "codex"),
    ("gemini-cli-mcp-client", "gemini"),
    ("gemini-cli", "gemini"),
    ("cursor-vscode", "cursor"),
    ("visual-studio-code", "vscode"),
    ("github-copilot-developer", "copilot"),
    ("copilot-cli", "copilot"),
    ("continue-cli-client", "continue"),
    ("continue-client", "continue"),
    ("amp-mcp-client", "amp"),
    ("windsurf-client", "windsurf"),
    ("roo-code", "roo"),
    ("kiro", "kiro"),
    ("q-dev-cli", "kiro"),
    ("goose-cli", "goose"),
    ("goose-desktop", "goose"),
    ("zed", "zed"),
    ("@cline/core", "cline"),
    ("cline", "cline"),
];

/// Returns the name of the agent behind a client: the host's, if it is known, or else what the client calls itself.
pub(crate) fn client_agent_name(client: &str) -> Option<String> {
    let name = agent_name(client)?;
    let plain = name.to_lowercase().replace(' ', "-");
    let is_it =
        |known: &str| plain.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let host = HOSTS.iter().find(|(known, _)| is_it(known));
    Some(host.map_or(name, |(_, short)| (*short).to_owned()))
}

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
    fn hosts_are_called_by_their_short_names() {
        let check = |client: &str, expected: Option<&str>| {
            assert_eq!(client_agent_name(client).as_deref(), expected, "{client}");
        };
        check("codex-mcp-client", Some("codex"));
        check("gemini-cli-mcp-client-waypost", Some("gemini"));
        check("Visual Studio Code", Some("vscode"));
        check("Visual Studio Code - Insiders", Some("vscode"));
        check("Roo Code", Some("roo"));
        check("Zed", Some("zed"));
        check("@cline/core", Some("cline"));
        check("copilot-cli", Some("copilot"));
        check("claude-code", Some("claude-code"));
        check("zedong", Some("zedong"));
        check("my codex-mcp-client", Some("my codex-mcp-client"));
        check("person:ada", Some("person-ada"));
        check("\u{7}", None);
    }

    #[test]
    fn a_name_ends_at_its_limit() {
        let long = "x".repeat(AGENT_NAME_CHARACTERS_MAX);
        check(&long, Some(&long));
        check(&format!("{long}y"), Some(&long));
    }
}
