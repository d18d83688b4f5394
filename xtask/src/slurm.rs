//! What the tests of Slurm need on the machine: Debian's packages. The cluster itself is started by the tests, privately.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run::{must, program};

/// Sees to it that they are there, or says what is missing.
pub(crate) fn installed() -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/usr/bin"]);
    let folders: Vec<&str> = folders.collect();
    let is_there = |name: &str| folders.iter().any(|folder| Path::new(folder).join(name).is_file());
    if ["slurmctld", "slurmd", "sbatch", "munged"].into_iter().all(is_there) {
        return Ok(());
    }
    must("install slurm-wlm and munge", program("apt-get").args(["install", "-y", "slurm-wlm", "munge"]))
        .context("the tests need Slurm: install slurm-wlm and munge")
}
