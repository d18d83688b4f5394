//! What tests need on the machine itself: Debian's packages. What they bring is started by the tests, privately.

use std::path::Path;

use anyhow::{Context, Result};

use crate::exec::{must, program};

/// Programs, and the packages that they come with.
const NEEDED: [(&[&str], &[&str]); 2] =
    [(&["slurmctld", "slurmd", "sbatch", "munged"], &["slurm-wlm", "munge"]), (&["tmux"], &["tmux"])];

/// Sees to it that they are there, or says what is missing.
pub(crate) fn installed() -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/usr/bin"]);
    let folders: Vec<&str> = folders.collect();
    let is_there = |name: &&str| folders.iter().any(|folder| Path::new(folder).join(name).is_file());
    for (programs, packages) in NEEDED {
        if !programs.iter().all(is_there) {
            let names = packages.join(" and ");
            must(&format!("install {names}"), program("apt-get").args(["install", "-y"]).args(packages))
                .with_context(|| format!("the tests need {}: install {names}", programs.join(", ")))?;
        }
    }
    Ok(())
}
