//! `cargo xtask clients`: builds the Python and the TypeScript client of the HTTP API. Each is a thin layer, which `clients/`
//! holds, over code that public generators write from `docs/openapi.json`; that code is built into the packages and not committed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::exec::{cache_dir, must, output, program, root};
use crate::npm::Packages;
use crate::python;

/// What generates the Python client and packs it.
const PYTHON_TOOLS: &[&str] = &["openapi-python-client==0.29.1", "build==1.6.1", "hatchling==1.33.0"];
/// What generates the TypeScript client and compiles it. Its only dependency comes with it.
const NODE_TOOLS: &[(&str, &str)] = &[
    ("openapi-typescript", "7.13.0"),
    ("typescript", "5.9.3"),
    ("openapi-fetch", "0.17.0"),
    ("@types/node", "26.6.6"),
];
/// Endings of files that a tool leaves beside the sources.
const LEFT_BEHIND: &[&str] = &["node_modules", "dist", "__pycache__"];

/// The built packages.
pub(crate) struct Built {
    pub(crate) wheel: PathBuf,
    pub(crate) npm: PathBuf,
    /// The folder with the Node packages that the TypeScript client was built with.
    pub(crate) node: Packages,
}

/// Builds both packages into one folder.
pub(crate) fn run() -> Result<Built> {
    let folder = std::path::absolute(cache_dir())?.join("client-packages");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let out = folder.join("out");
    fs::create_dir_all(&out)?;
    let document = root().join("docs/openapi.json");
    let described: Value = serde_json::from_str(&fs::read_to_string(&document)?)?;
    let version = described["info"]["version"].as_str().context("docs/openapi.json names no version")?;
    let wheel = python_client(&folder, &document, version, &out)?;
    let (npm, node) = typescript_client(&folder, &document, version, &out)?;
    println!("{}\n{}", wheel.display(), npm.display());
    Ok(Built { wheel, npm, node })
}

fn python_client(folder: &Path, document: &Path, version: &str, out: &Path) -> Result<PathBuf> {
    let python = python::with_packages("python-client-tools", PYTHON_TOOLS)?;
    let source = folder.join("python");
    copy(&root().join("clients/python"), &source)?;
    fs::write(source.join("waypost_client/version.py"), format!("__version__ = \"{version}\"\n"))?;
    let mut generate = program(python.with_file_name("openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--fail-on-warning", "--overwrite", "--path"]).arg(document);
    generate.arg("--output-path").arg(source.join("waypost_client/generated"));
    generate.arg("--config").arg(source.join("generator.yml")).current_dir(&source);
    must("generate the Python client (openapi-python-client)", &mut generate)?;
    let mut build = program(&python);
    build.args(["-m", "build", "--wheel", "--no-isolation", "--outdir"]).arg(out).arg(&source);
    must("build the Python client", build.current_dir(&source))?;
    find(out, ".whl")
}

fn typescript_client(
    folder: &Path,
    document: &Path,
    version: &str,
    out: &Path,
) -> Result<(PathBuf, Packages)> {
    let node = Packages::install("typescript-client-tools", NODE_TOOLS)?;
    let source = folder.join("typescript");
    copy(&root().join("clients/typescript"), &source)?;
    std::os::unix::fs::symlink(
        std::path::absolute(node.home())?.join("node_modules"),
        source.join("node_modules"),
    )?;
    let manifest = source.join("package.json");
    let mut package: Value = serde_json::from_str(&fs::read_to_string(&manifest)?)?;
    package["version"] = version.into();
    fs::write(&manifest, format!("{package:#}\n"))?;
    let mut generate = node.run("openapi-typescript");
    generate.arg(document).arg("--output").arg(source.join("src/schema.ts")).current_dir(&source);
    // A field of a request that has a default may be left out.
    generate.arg("--default-non-nullable=false");
    must("generate the TypeScript client (openapi-typescript)", &mut generate)?;
    let mut compile = node.run("tsc");
    must("compile the TypeScript client", compile.arg("--project").arg(&source).current_dir(&source))?;
    let mut pack = program("npm");
    pack.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]).arg(out).current_dir(&source);
    output(&mut pack)?;
    Ok((find(out, ".tgz")?, node))
}

/// Copies a folder without what tools left in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        if LEFT_BEHIND.iter().any(|left| name == *left) {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to.join(name))?,
            false => fs::copy(entry.path(), to.join(name)).map(drop)?,
        }
    }
    Ok(())
}

fn find(folder: &Path, ending: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(ending) {
            return Ok(path);
        }
    }
    bail!("no *{ending} was built in {}", folder.display())
}
