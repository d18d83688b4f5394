//! One configuration file and its origin.

use std::io;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The operator's file. Later files can only tighten its `[approval]`.
    Operator,
    /// The user's own file, found by the account.
    User,
    /// The same where a variable chose another file: only its `[approval]` counts.
    UserApproval,
    /// The workspace's file, which may come with a repository and is therefore trusted less.
    Workspace,
    /// The workspace's file, which nobody has trusted on this account: it can only ask for more approval.
    Untrusted,
    /// A file named on the command line.
    Named,
}

impl Origin {
    /// Whether the file belongs to the account, so that no workspace and no variable can bring it.
    pub fn is_of_account(self) -> bool {
        match self {
            Self::Operator | Self::User | Self::UserApproval => true,
            Self::Workspace | Self::Untrusted | Self::Named => false,
        }
    }

    /// Whether the file belongs to the workspace, and so may come with a repository.
    pub fn is_of_workspace(self) -> bool {
        match self {
            Self::Workspace | Self::Untrusted => true,
            Self::Operator | Self::User | Self::UserApproval | Self::Named => false,
        }
    }

    /// Whether only `[approval]` counts.
    pub(crate) fn is_for_approval_only(self) -> bool {
        match self {
            Self::UserApproval | Self::Untrusted => true,
            Self::Operator | Self::User | Self::Workspace | Self::Named => false,
        }
    }
}

/// One configuration file.
#[derive(Clone, Debug)]
pub struct Layer {
    pub origin: Origin,
    /// Its path, as shown in messages.
    pub name: String,
    pub text: String,
}

/// Reads a file that a configuration names.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;
