//! One file of configuration, and where it came from.

use std::io;
use std::path::Path;

/// Where the text of a configuration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's own file.
    User,
    /// The workspace's file, which may travel with a repository.
    Workspace,
    /// A file that was named on the command line.
    Named,
}

/// One file of configuration.
#[derive(Clone, Debug)]
pub struct Layer {
    pub origin: Origin,
    /// How it is spoken of: its path.
    pub name: String,
    pub text: String,
}

/// Reads a file that a configuration names.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;
