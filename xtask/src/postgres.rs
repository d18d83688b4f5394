//! The PostgreSQL server that the tests share: a private cluster that ends with this process.

use anyhow::{Context, Result, anyhow};
use waypost_testkit::postgres::{PostgresServer, folder_of_programs};

use crate::apt;

/// Starts the server; installs PostgreSQL first if it is missing.
pub(crate) fn server() -> Result<PostgresServer> {
    if folder_of_programs().is_none() {
        apt::install(&["postgresql"]).context("the tests need PostgreSQL 14 or later")?;
    }
    PostgresServer::start().map_err(|why| anyhow!(why))
}
