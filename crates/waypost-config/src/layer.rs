//! One configuration file and its origin.

use std::io;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's own file.
    User,
    /// The workspace's file, which may come with a repository and is therefore trusted less.
    Workspace,
    /// A file named on the command line.
    Named,
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
