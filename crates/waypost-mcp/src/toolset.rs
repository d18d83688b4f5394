//! Which sets of tools there are. A server offers one or several of them.

use crate::tool::Tool;
use crate::{documents, jaato, native, orchestrator};

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Toolset {
    /// A few tools for everything, made for small contexts.
    Native,
    /// The tools of the jaato todo plugin, under their names.
    Jaato,
    /// Plan documents: a text, a version, and the author's free words for where it stands.
    Plans,
    /// For agents that hand work to machines.
    Orchestrator,
}

impl Toolset {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Native, Self::Jaato, Self::Plans, Self::Orchestrator];

    /// The name of it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Jaato => "jaato",
            Self::Plans => "plans",
            Self::Orchestrator => "orchestrator",
        }
    }

    pub(crate) fn tools(self) -> Vec<Tool> {
        match self {
            Self::Native => native::tools(),
            Self::Jaato => jaato::tools(),
            Self::Plans => documents::tools(),
            Self::Orchestrator => orchestrator::tools(),
        }
    }

    /// Other names under which its tools can be called. They are not listed: every listed tool costs the model's context.
    pub(crate) fn synonyms(self) -> Vec<Tool> {
        match self {
            Self::Plans => documents::synonyms(),
            Self::Native | Self::Jaato | Self::Orchestrator => Vec::new(),
        }
    }
}
