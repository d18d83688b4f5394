//! The known agent hosts: which file each reads, and how to detect that it is in use.

use std::path::Path;

use clap::ValueEnum;

use super::merge::{self, Entry, Merged, Unmergeable};

/// A program that runs agents and starts MCP servers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Host {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Gemini CLI.
    Gemini,
}

pub(super) struct HostFacts {
    /// Its name on the command line.
    pub(super) word: &'static str,
    /// The file of the workspace that it reads its MCP servers from.
    pub(super) file: &'static str,
    /// The instruction file that it reads instead of AGENTS.md.
    pub(super) instead_of_agents: Option<&'static str>,
    servers: &'static str,
    more: &'static [(&'static str, &'static str)],
    traces: &'static [&'static str],
    programs: &'static [&'static str],
    /// What a person has to do next.
    pub(super) next: &'static str,
}

impl Host {
    pub(super) const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Cursor, Self::Vscode, Self::Gemini];

    pub(super) fn known(self) -> HostFacts {
        match self {
            Self::Claude => HostFacts {
                word: "claude",
                file: ".mcp.json",
                instead_of_agents: Some("CLAUDE.md"),
                servers: "mcpServers",
                more: &[],
                traces: &[".mcp.json", ".claude", "CLAUDE.md"],
                programs: &["claude"],
                next: "Claude Code asks once whether to use the servers of .mcp.json; /mcp shows them",
            },
            Self::Codex => HostFacts {
                word: "codex",
                file: ".codex/config.toml",
                instead_of_agents: None,
                servers: "mcp_servers",
                more: &[],
                traces: &[".codex"],
                programs: &["codex"],
                next: "Codex reads .codex/config.toml in folders that you trust, which it asks once; /mcp shows the servers",
            },
            Self::Cursor => HostFacts {
                word: "cursor",
                file: ".cursor/mcp.json",
                instead_of_agents: None,
                servers: "mcpServers",
                more: &[],
                traces: &[".cursor", ".cursorrules"],
                programs: &["cursor", "cursor-agent"],
                next: "Cursor: switch the server on under Settings, MCP",
            },
            Self::Vscode => HostFacts {
                word: "vscode",
                file: ".vscode/mcp.json",
                instead_of_agents: None,
                servers: "servers",
                more: &[("type", "stdio")],
                traces: &[".vscode"],
                programs: &["code"],
                next: "VS Code: start the server with the command \"MCP: List Servers\"",
            },
            Self::Gemini => HostFacts {
                word: "gemini",
                file: ".gemini/settings.json",
                instead_of_agents: Some("GEMINI.md"),
                servers: "mcpServers",
                more: &[],
                traces: &[".gemini", "GEMINI.md"],
                programs: &["gemini"],
                next: "Gemini CLI reads .gemini/settings.json in folders that you trust; /mcp shows the servers",
            },
        }
    }

    /// Whether it is used in this workspace or installed.
    pub(super) fn is_used(self, workspace: &Path, is_program: &dyn Fn(&str) -> bool) -> bool {
        let known = self.known();
        known.traces.iter().any(|trace| workspace.join(trace).exists())
            || known.programs.iter().any(|program| is_program(program))
    }

    /// Merges our entry into its file.
    pub(super) fn merged(self, old: Option<&str>, entry: &Entry) -> Result<Merged, Unmergeable> {
        let known = self.known();
        let entry = Entry { more: known.more, ..entry.clone() };
        match self {
            Self::Codex => merge::toml(old, known.servers, &entry),
            Self::Claude | Self::Cursor | Self::Vscode | Self::Gemini => {
                merge::json(old, known.servers, &entry)
            }
        }
    }
}
