//! npm packages in a private folder, and a Node that is new enough for them. Install scripts run only for packages that
//! have to install a program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::apt;
use crate::exec::{cache_dir, must, output, program};

/// The version of Node that runs the packages. npm has it for each platform; Debian's is too old for some of them.
const NODE: &str = "26.10.0";

/// A folder with packages and their Node.
pub(crate) struct Packages {
    home: PathBuf,
}

impl Packages {
    /// Installs these packages in a folder of this name. Installs npm if it is missing; if that fails, the error names
    /// what is needed.
    pub(crate) fn install(name: &str, packages: &[(&str, &str)]) -> Result<Self> {
        Self::install_with(name, packages, &["--ignore-scripts", "--omit=optional"])
    }

    /// Like [`Self::install`], for packages that install programs for this platform.
    pub(crate) fn install_with_programs(name: &str, packages: &[(&str, &str)]) -> Result<Self> {
        Self::install_with(name, packages, &[])
    }

    fn install_with(name: &str, packages: &[(&str, &str)], options: &[&str]) -> Result<Self> {
        let home = cache_dir().join(name);
        let installed = Self { home: home.clone() };
        let runtime = runtime_package()?;
        let entries = packages.iter().copied().chain([(runtime.as_str(), NODE)]);
        let dependencies: Map<String, Value> =
            entries.map(|(package, version)| (package.to_owned(), Value::from(version))).collect();
        let wanted = json!({ "private": true, "dependencies": dependencies }).to_string();
        let stamp = home.join("installed.json");
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(installed);
        }
        if home.exists() {
            std::fs::remove_dir_all(&home)?;
        }
        std::fs::create_dir_all(&home)?;
        std::fs::write(home.join("package.json"), &wanted)?;
        let named: Vec<String> =
            packages.iter().map(|(package, version)| format!("{package}@{version}")).collect();
        available()?;
        let mut install = program("npm");
        install.args(["install", "--no-fund", "--no-audit"]).args(options);
        install.args(["--no-package-lock", "--prefer-online", "--loglevel=error"]).current_dir(&home);
        must(&format!("install {} from npm", named.join(", ")), &mut install)
            .with_context(|| format!("could not install from npm: {}", named.join(", ")))?;
        output(installed.node().arg("--version")).context("the Node installed from npm does not run")?;
        std::fs::write(&stamp, wanted)?;
        Ok(installed)
    }

    /// Returns Node, without arguments.
    pub(crate) fn node(&self) -> Command {
        program(self.program("node"))
    }

    /// Returns Node with a program of one of the packages.
    pub(crate) fn run(&self, name: &str) -> Command {
        let mut node = self.node();
        node.arg(self.program(name));
        node
    }

    /// Returns the folder. Scripts placed here find the packages.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the path of a program of one of the packages.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.home.join("node_modules/.bin").join(name)
    }
}

/// Returns the name of the package with Node for this platform.
fn runtime_package() -> Result<String> {
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        other => bail!("npm has no Node package for {other}"),
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("npm has no Node package for {other}"),
    };
    Ok(format!("node-{system}-{machine}"))
}

/// Installs npm if it is missing.
pub(crate) fn available() -> Result<()> {
    if program("npm").arg("--version").output().is_ok_and(|found| found.status.success()) {
        return Ok(());
    }
    apt::install(&["nodejs", "npm"]).context("npm is needed")
}
