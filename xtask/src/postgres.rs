//! The PostgreSQL that the tests share: Debian's package, a private cluster that is gone when the chore ends.

use anyhow::{Context, Result, anyhow};
use waypost_testkit::postgres::{PostgresServer, folder_of_programs};

use crate::run::{must, program};

/// Starts it. What is missing on the machine is installed, or named.
pub(crate) fn server() -> Result<PostgresServer> {
    if folder_of_programs().is_none() {
        must("install postgresql", program("apt-get").args(["install", "-y", "postgresql"]))
            .context("the tests need PostgreSQL 14 or later: install postgresql")?;
    }
    PostgresServer::start().map_err(|why| anyhow!(why))
}
