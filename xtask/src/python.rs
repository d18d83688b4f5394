//! Private Python environments with the packages that tests and benchmarks need.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::exec::{cache_dir, must, program};

/// `check-jsonschema` includes the schema of the Compose specification.
const PACKAGES: &[&str] = &["jsonschema==4.25.1", "networkx==3.5", "check-jsonschema==0.39.0"];

/// Returns the interpreter with the validators of exported files.
pub(crate) fn interpreter() -> Result<PathBuf> {
    with_packages("python", PACKAGES)
}

/// Returns a private Python with these packages. Installs Python if it is missing; if that fails, the error names the
/// packages.
pub(crate) fn with_packages(name: &str, packages: &[&str]) -> Result<PathBuf> {
    installed(name, packages, &[])
}

/// Like [`with_packages`], with these wheels only, without their dependencies. Nothing is compiled.
pub(crate) fn with_wheels(name: &str, packages: &[&str]) -> Result<PathBuf> {
    installed(name, packages, &["--no-deps", "--only-binary", ":all:"])
}

fn installed(name: &str, packages: &[&str], options: &[&str]) -> Result<PathBuf> {
    let home = cache_dir().join(name);
    let python = home.join("bin/python");
    let stamp = home.join("packages.txt");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    std::fs::create_dir_all(cache_dir())?;
    let venv = |home: &PathBuf| program("python3").args(["-m", "venv", "--clear"]).arg(home).status();
    let made = venv(&home).is_ok_and(|status| status.success());
    if !made {
        // Debian ships the venv module in a package of its own.
        apt::install(&["python3", "python3-venv"]).context("Python 3 with its venv module is needed")?;
        if !venv(&home)?.success() {
            bail!("python3 -m venv fails although python3-venv is installed");
        }
    }
    let mut pip = program(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(options).args(packages);
    must("install the Python packages", &mut pip)
        .with_context(|| format!("could not install from PyPI: {}", packages.join(", ")))?;
    std::fs::write(&stamp, wanted)?;
    Ok(python)
}
