//! The dashboard: builds it from `web/` with the packages of its lock file, compares the result with the committed
//! `crates/waypost-http/assets`, and tests it in a real browser. Works on copies; only `build` and `screenshots` write into the tree.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::exec::{cache_dir, must, program, root};
use crate::npm::Packages;

/// The browser driver, and the accessibility checker.
const PACKAGES: &[(&str, &str)] = &[("playwright-core", "1.65.0"), ("axe-core", "4.14.0")];
/// The parts of `web/` that the build reads.
const SOURCES: [&str; 8] = [
    "index.html",
    "licences.d.mts",
    "licences.mjs",
    "package.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];
/// Maximum compressed size of these files.
pub(crate) const FIRST_PAINT_BYTES_MAX: usize = 100 * 1024;

/// `cargo xtask web [build|check]`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["build"] => build(),
        [] | ["check"] => check(),
        other => bail!("unknown argument {:?}: `cargo xtask web` takes build or check", other.join(" ")),
    }
}

/// Builds the dashboard into `crates/waypost-http/assets`, which the binary embeds.
fn build() -> Result<()> {
    let built = built()?;
    let dist = root().join("crates/waypost-http/assets");
    if dist.exists() {
        std::fs::remove_dir_all(&dist)?;
    }
    copy(&built, &dist)
}

/// Checks the types and tests, and that `crates/waypost-http/assets` matches the source.
pub(crate) fn check() -> Result<()> {
    let built = files(&built()?)?;
    let committed = files(&root().join("crates/waypost-http/assets"))?;
    let names = built.keys().chain(committed.keys());
    let mut differ: Vec<&str> =
        names.filter(|name| built.get(*name) != committed.get(*name)).map(String::as_str).collect();
    differ.dedup();
    if !differ.is_empty() {
        bail!(
            "crates/waypost-http/assets is out of date ({}): run `cargo xtask web build` and commit it",
            differ.join(", ")
        );
    }
    weigh(&committed)
}

/// Returns the files that a browser fetches before the first paint: the page and what it names; the rest is loaded on demand.
pub(crate) fn first_paint(index: &str) -> Vec<&str> {
    let named = index.split(['"', '\'']).filter_map(|part| part.strip_prefix('/'));
    let files = named.filter(|name| name.contains('.') && !name.contains(char::is_whitespace));
    std::iter::once("index.html").chain(files).collect()
}

/// Prints how much a browser fetches before the first paint. Fails if that is too much.
fn weigh(files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let mut total = 0;
    let index = files.get("index.html").context("the dashboard has no index.html")?;
    for name in first_paint(&String::from_utf8_lossy(index)) {
        let bytes = files.get(name).with_context(|| format!("the dashboard has no {name}"))?;
        total += gzip(bytes)?;
    }
    println!("── dashboard first paint: {total} bytes (gzip -9), limit {FIRST_PAINT_BYTES_MAX}");
    if total > FIRST_PAINT_BYTES_MAX {
        bail!("first paint transfers {total} bytes, limit {FIRST_PAINT_BYTES_MAX}");
    }
    Ok(())
}

/// Returns the compressed size of these bytes.
fn gzip(bytes: &[u8]) -> Result<usize> {
    let mut gzip = program("gzip").args(["-9", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = gzip.stdin.take().context("gzip: no standard input")?;
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = gzip.wait_with_output()?;
    writer.join().ok().context("gzip: the writer thread panicked")??;
    Ok(output.stdout.len())
}

/// Checks types and tests in a copy of the source, and returns the folder with the built files.
fn built() -> Result<PathBuf> {
    let packages = packages()?;
    let home = cache_dir().join("web");
    let web = root().join("web");
    std::fs::create_dir_all(&home)?;
    for name in SOURCES {
        let to = home.join(name);
        match to.is_dir() {
            true => std::fs::remove_dir_all(&to)?,
            false if to.exists() => std::fs::remove_file(&to)?,
            false => {}
        }
        copy(&web.join(name), &to)?;
    }
    install(&web, &home)?;
    let tool = |entry: &str| {
        let mut node = packages.node();
        node.arg(home.join("node_modules").join(entry)).current_dir(&home);
        node
    };
    must(
        "check the dashboard's types (svelte-check)",
        tool("svelte-check/bin/svelte-check").args(["--tsconfig", "./tsconfig.json", "--fail-on-warnings"]),
    )?;
    must("test the dashboard (vitest)", tool("vitest/vitest.mjs").arg("run"))?;
    must("build the dashboard (vite)", tool("vite/bin/vite.js").args(["build", "--logLevel", "warn"]))?;
    Ok(home.join("dist"))
}

/// Installs the locked packages, unless they are already installed. `npm ci` requires an entry for the programs of
/// every platform, so `npm install` is used, which also takes the versions and checksums of the lock file.
fn install(web: &Path, home: &Path) -> Result<()> {
    let wanted = std::fs::read(web.join("package-lock.json"))?;
    let stamp = home.join("installed.json");
    if std::fs::read(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    let modules = home.join("node_modules");
    if modules.exists() {
        std::fs::remove_dir_all(&modules)?;
    }
    std::fs::write(home.join("package-lock.json"), &wanted)?;
    let mut install = program("npm");
    install.args(["install", "--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error"]);
    must("install the dashboard's packages from npm", install.current_dir(home))?;
    std::fs::write(stamp, wanted)?;
    Ok(())
}

/// Tests the dashboard in a browser, against the built binary.
pub(crate) fn journeys(waypost: &Path) -> Result<()> {
    must("test the dashboard in a browser", browser(waypost, "journeys.mjs", "journeys")?.arg(root()))
}

/// `cargo xtask screenshots`: pictures of the main views for the documentation.
pub(crate) fn screenshots(waypost: &Path) -> Result<()> {
    let images = root().join("docs/images");
    std::fs::create_dir_all(&images)?;
    must(
        "take screenshots of the dashboard",
        browser(waypost, "screenshots.mjs", "screenshots")?.arg(root()).arg(images),
    )
}

/// Returns how long a browser takes for large plans, as named figures.
#[cfg(feature = "bench")]
pub(crate) fn measured(waypost: &Path) -> Result<serde_json::Value> {
    let printed = crate::exec::output(&mut browser(waypost, "measure.mjs", "measure")?)?;
    let last = printed.lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("the browser script printed no figures: {printed}"))
}

/// Returns Node with a script. Its arguments are the folder of the packages, the browser, the binary and a new folder.
fn browser(waypost: &Path, script: &str, name: &str) -> Result<Command> {
    let packages = packages()?;
    let chromium = chromium()?;
    let scratch = cache_dir().join("browser").join(name);
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(&scratch)?;
    let mut node = packages.node();
    node.arg(root().join("xtask/src/web").join(script));
    node.arg(packages.home()).arg(chromium).arg(waypost).arg(scratch);
    Ok(node)
}

fn packages() -> Result<Packages> {
    Packages::install("node-web", PACKAGES)
}

/// Returns the installed browser, or installs Debian's.
fn chromium() -> Result<&'static str> {
    const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
    let found = || {
        NAMES
            .into_iter()
            .find(|name| program(name).arg("--version").output().is_ok_and(|answer| answer.status.success()))
    };
    if let Some(name) = found() {
        return Ok(name);
    }
    apt::install(&["chromium"]).context("the dashboard tests need Chromium")?;
    found().context("chromium was installed but does not start")
}

/// Copies a file, or a folder with everything in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        std::fs::copy(from, to).with_context(|| format!("copy {}", from.display()))?;
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns the files of a folder, by their path in it.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| format!("read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            found.insert(name, std::fs::read(&path)?);
        }
    }
    Ok(found)
}
