//! The known agent hosts, as a table: where each keeps its MCP servers, in which form, and what it reads instead of
//! AGENTS.md. docs/agents.md has the same table for people.

use std::path::Path;

use super::merge::{self, Entry, Fields, Merged, Unmergeable};

/// A program that runs agents and starts MCP servers for them.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its name on the command line.
    pub(super) word: &'static str,
    file: ConfigFile,
    format: Format,
    /// The key that holds the servers by name.
    servers: &'static str,
    fields: Fields,
    /// The instruction file that it reads instead of AGENTS.md. It can import others.
    pub(super) instead_of_agents: Option<&'static str>,
    /// Files that show that the host is used in a workspace.
    traces: &'static [&'static str],
    programs: &'static [&'static str],
    /// What a person has to do next.
    pub(super) next: &'static str,
}

/// Where a host keeps its MCP servers.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConfigFile {
    /// Below the workspace, to be committed.
    Workspace(&'static str),
    /// In the user's home, which `init` does not change.
    User(&'static str),
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Json,
    Toml,
    /// Only shown: no host has a workspace file in YAML alone.
    Yaml,
}

/// The other name of opencode's file.
const OPENCODE_WITH_COMMENTS: &str = "opencode.jsonc";
/// What most hosts call the fields of a server.
pub(super) const FIELDS: Fields =
    Fields { before: &[], command: "command", arguments: Some("args"), after: &[] };
/// What every host has that differs in nothing else.
const HOST: Host = Host {
    word: "",
    file: ConfigFile::Workspace(""),
    format: Format::Json,
    servers: "mcpServers",
    fields: FIELDS,
    instead_of_agents: None,
    traces: &[],
    programs: &[],
    next: "",
};

/// All hosts. Sources: each host's documentation, and for those that npm has their programs (`cargo xtask test-hosts`).
pub(super) const HOSTS: &[Host] = &[
    Host {
        word: "claude",
        file: ConfigFile::Workspace(".mcp.json"),
        instead_of_agents: Some("CLAUDE.md"),
        traces: &[".mcp.json", ".claude", "CLAUDE.md"],
        programs: &["claude"],
        next: "Claude Code asks once whether to use the servers of .mcp.json; /mcp shows them",
        ..HOST
    },
    Host {
        word: "codex",
        file: ConfigFile::Workspace(".codex/config.toml"),
        format: Format::Toml,
        servers: "mcp_servers",
        traces: &[".codex"],
        programs: &["codex"],
        next: "Codex reads .codex/config.toml in folders that you trust, which it asks once; /mcp shows the servers",
        ..HOST
    },
    Host {
        word: "cursor",
        file: ConfigFile::Workspace(".cursor/mcp.json"),
        traces: &[".cursor", ".cursorrules"],
        programs: &["cursor", "cursor-agent"],
        next: "Cursor: switch the server on under Settings, MCP",
        ..HOST
    },
    Host {
        word: "vscode",
        file: ConfigFile::Workspace(".vscode/mcp.json"),
        servers: "servers",
        fields: Fields { before: &[("type", "\"stdio\"")], ..FIELDS },
        traces: &[".vscode"],
        programs: &["code"],
        next: "VS Code: start the server with the command \"MCP: List Servers\"",
        ..HOST
    },
    Host {
        word: "gemini",
        file: ConfigFile::Workspace(".gemini/settings.json"),
        instead_of_agents: Some("GEMINI.md"),
        traces: &[".gemini", "GEMINI.md"],
        programs: &["gemini"],
        next: "Gemini CLI reads .gemini/settings.json in folders that you trust; /mcp shows the servers",
        ..HOST
    },
    Host {
        word: "opencode",
        file: ConfigFile::Workspace("opencode.json"),
        servers: "mcp",
        fields: Fields {
            before: &[("type", "\"local\"")],
            command: "command",
            arguments: None,
            after: &[("enabled", "true")],
        },
        traces: &["opencode.json", OPENCODE_WITH_COMMENTS, ".opencode"],
        programs: &["opencode"],
        next: "opencode starts the server of its file; `opencode mcp list` shows it",
        ..HOST
    },
    Host {
        word: "copilot",
        file: ConfigFile::Workspace(".mcp.json"),
        traces: &[".github/copilot-instructions.md", ".github/mcp.json"],
        programs: &["copilot"],
        next: "Copilot CLI reads .mcp.json in folders that you trust, which it asks once; /mcp shows the servers",
        ..HOST
    },
    Host {
        word: "zed",
        file: ConfigFile::Workspace(".zed/settings.json"),
        servers: "context_servers",
        traces: &[".zed"],
        programs: &["zed", "zeditor"],
        next: "Zed asks whether to trust the folder, then shows the server under Settings, AI, MCP Servers",
        ..HOST
    },
    Host {
        word: "amp",
        file: ConfigFile::Workspace(".amp/settings.json"),
        servers: "amp.mcpServers",
        traces: &[".amp"],
        programs: &["amp"],
        next: "Amp: allow the workspace's server with `amp mcp approve waypost`",
        ..HOST
    },
    Host {
        word: "kiro",
        file: ConfigFile::Workspace(".kiro/settings/mcp.json"),
        traces: &[".kiro"],
        programs: &["kiro", "kiro-cli"],
        next: "Kiro reads .kiro/settings/mcp.json; /mcp shows the servers",
        ..HOST
    },
    Host {
        word: "junie",
        file: ConfigFile::Workspace(".junie/mcp/mcp.json"),
        traces: &[".junie"],
        programs: &["junie"],
        next: "Junie reads .junie/mcp/mcp.json; in an IDE see Settings, Tools, Junie, MCP Settings",
        ..HOST
    },
    Host {
        word: "roo",
        file: ConfigFile::Workspace(".roo/mcp.json"),
        traces: &[".roo", ".roorules", ".roomodes"],
        next: "Roo Code shows the server in its MCP view, under project servers",
        ..HOST
    },
    Host {
        word: "continue",
        file: ConfigFile::Workspace(".continue/mcpServers/waypost.json"),
        traces: &[".continue"],
        next: "Continue's extension reads .continue/mcpServers in agent mode; its CLI only the mcpServers of ~/.continue/config.yaml",
        ..HOST
    },
    Host {
        word: "cline",
        file: ConfigFile::User("~/.cline/data/settings/cline_mcp_settings.json"),
        traces: &[".cline", ".clinerules"],
        programs: &["cline"],
        next: "Cline: in VS Code, MCP Servers, Configure opens the file to add this to",
        ..HOST
    },
    Host {
        word: "windsurf",
        file: ConfigFile::User("~/.codeium/windsurf/mcp_config.json"),
        traces: &[".windsurf", ".windsurfrules"],
        programs: &["windsurf"],
        next: "Windsurf: add this, then refresh under Cascade, MCPs",
        ..HOST
    },
    Host {
        word: "goose",
        file: ConfigFile::User("~/.config/goose/config.yaml"),
        format: Format::Yaml,
        servers: "extensions",
        fields: Fields {
            before: &[("type", "\"stdio\""), ("name", "\"waypost\"")],
            command: "cmd",
            arguments: Some("args"),
            after: &[("enabled", "true"), ("timeout", "300")],
        },
        traces: &[".goosehints"],
        programs: &["goose"],
        next: "goose: `goose session` starts the extension",
        ..HOST
    },
];

impl Host {
    /// The names of all hosts.
    pub(crate) fn names() -> Vec<&'static str> {
        HOSTS.iter().map(|host| host.word).collect()
    }

    /// Whether it is used in this workspace or installed.
    pub(super) fn is_used(&self, workspace: &Path, is_program: &dyn Fn(&str) -> bool) -> bool {
        self.traces.iter().any(|trace| workspace.join(trace).exists())
            || self.programs.iter().any(|program| is_program(program))
    }

    /// Its file in this workspace, which opencode has by two names.
    pub(super) fn file_in(&self, workspace: &Path) -> ConfigFile {
        match self.file {
            ConfigFile::Workspace("opencode.json")
                if workspace.join(OPENCODE_WITH_COMMENTS).exists()
                    && !workspace.join("opencode.json").exists() =>
            {
                ConfigFile::Workspace(OPENCODE_WITH_COMMENTS)
            }
            file @ (ConfigFile::Workspace(_) | ConfigFile::User(_)) => file,
        }
    }

    /// Merges our entry into its file.
    pub(super) fn merged(&self, old: Option<&str>, entry: &Entry) -> Result<Merged, Unmergeable> {
        let entry = Entry { fields: self.fields, ..entry.clone() };
        match self.format {
            Format::Json => merge::json(old, self.servers, &entry),
            Format::Toml => merge::toml(old, self.servers, &entry),
            Format::Yaml => Ok(Merged::Text(merge::yaml(self.servers, &entry))),
        }
    }
}
