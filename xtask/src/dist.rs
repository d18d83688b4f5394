//! `cargo xtask dist`: everything that is distributed for one platform, made from one binary. `cargo xtask test-install`
//! installs it into empty folders and runs a plan with each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::exec::{cargo, must, output, program, root};

/// The platforms with a binary: the target, npm's words for it, the tag of the wheel, and Debian's word.
const PLATFORMS: [Platform; 6] = [
    Platform::new("x86_64-unknown-linux-gnu", "linux", "x64", "linux_x86_64", Some("amd64")),
    Platform::new("aarch64-unknown-linux-gnu", "linux", "arm64", "linux_aarch64", Some("arm64")),
    // Without a C library of the system, so that one binary runs on all of them.
    Platform::new(
        "x86_64-unknown-linux-musl",
        "linux",
        "x64",
        "manylinux2014_x86_64.musllinux_1_1_x86_64",
        Some("amd64"),
    ),
    Platform::new(
        "aarch64-unknown-linux-musl",
        "linux",
        "arm64",
        "manylinux2014_aarch64.musllinux_1_1_aarch64",
        Some("arm64"),
    ),
    Platform::new("x86_64-apple-darwin", "darwin", "x64", "macosx_10_12_x86_64", None),
    Platform::new("aarch64-apple-darwin", "darwin", "arm64", "macosx_11_0_arm64", None),
];

/// The shells with completions, and where Debian keeps them.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/waypost"),
    ("zsh", "usr/share/zsh/vendor-completions/_waypost"),
    ("fish", "usr/share/fish/vendor_completions.d/waypost.fish"),
];

/// Where Debian keeps manual pages.
const MAN_FOLDER: &str = "usr/share/man/man1";

struct Platform {
    target: &'static str,
    os: &'static str,
    cpu: &'static str,
    wheel: &'static str,
    debian: Option<&'static str>,
}

impl Platform {
    const fn new(
        target: &'static str,
        os: &'static str,
        cpu: &'static str,
        wheel: &'static str,
        debian: Option<&'static str>,
    ) -> Self {
        Self { target, os, cpu, wheel, debian }
    }

    fn find(target: &str) -> Result<&'static Self> {
        let known = || PLATFORMS.map(|platform| platform.target).join(", ");
        let found = PLATFORMS.iter().find(|platform| platform.target == target);
        found.with_context(|| format!("{target} is not distributed; known targets: {}", known()))
    }

    fn npm_package(&self) -> String {
        format!("@waypost/{}-{}", self.os, self.cpu)
    }
}

/// Makes the files for this platform, or for the named target.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let host = output(Command::new("rustc").arg("-vV"))?;
    let host =
        host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let (target, is_cross) = match words {
        [] => (host.to_owned(), false),
        ["--target", target] => ((*target).to_owned(), true),
        _ => bail!("usage: cargo xtask dist [--target TRIPLE]"),
    };
    let platform = Platform::find(&target)?;
    let mut build = cargo();
    build.args(["build", "--profile", "dist", "--locked", "--package", "waypost"]);
    if is_cross {
        build.args(["--target", &target]);
    }
    must("build the binary that is distributed", &mut build)?;
    let built = if is_cross { target_dir().join(&target) } else { target_dir() };
    let out = folder();
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let work = out.join("work");
    fs::create_dir_all(&work)?;
    Files {
        platform,
        binary: built.join("dist/waypost"),
        version: version()?,
        out: out.clone(),
        work: work.clone(),
    }
    .make(is_cross && target != host)?;
    fs::remove_dir_all(&work)?;
    println!("── made in {}:", out.display());
    for entry in fs::read_dir(&out)? {
        let entry = entry?;
        println!("{:>8.1} MB  {}", entry.metadata()?.len() as f64 / 1e6, entry.file_name().display());
    }
    Ok(())
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The folder with the files.
fn folder() -> PathBuf {
    target_dir().join("dist-files")
}

fn version() -> Result<String> {
    let metadata: Value =
        serde_json::from_str(&output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let own = packages.iter().find(|package| package["name"] == "waypost").context("the package waypost")?;
    Ok(own["version"].as_str().context("version")?.to_owned())
}

struct Files {
    platform: &'static Platform,
    binary: PathBuf,
    version: String,
    out: PathBuf,
    work: PathBuf,
}

impl Files {
    fn make(&self, is_foreign: bool) -> Result<()> {
        // A binary for another platform cannot print its completions and manual pages.
        let printed = if is_foreign { Vec::new() } else { self.printed()? };
        self.archive(&printed)?;
        self.npm()?;
        self.wheel()?;
        if let Some(architecture) = self.platform.debian {
            self.deb(architecture, &printed)?;
        }
        fs::copy(root().join("packaging/install.sh"), self.out.join("install.sh"))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.out)? {
            names.push(entry?.file_name());
        }
        names.retain(|name| name != "work");
        names.sort_unstable();
        let sums = output(Command::new("sha256sum").args(&names).current_dir(&self.out))?;
        fs::write(self.out.join("SHA256SUMS"), sums)?;
        Ok(())
    }

    /// The completions and manual pages, each with the place where Debian keeps it.
    fn printed(&self) -> Result<Vec<(String, String)>> {
        let mut files = Vec::new();
        for (shell, place) in SHELLS {
            let script = output(Command::new(&self.binary).args(["completions", shell]))?;
            files.push((place.to_owned(), script));
        }
        output(Command::new(&self.binary).arg("man").arg(self.man()))?;
        for entry in fs::read_dir(self.man())? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("a name in UTF-8")?;
            files.push((format!("{MAN_FOLDER}/{name}"), fs::read_to_string(entry.path())?));
        }
        files.sort_unstable();
        Ok(files)
    }

    /// The folder with the manual pages, if there are any.
    fn man(&self) -> PathBuf {
        self.work.join("man")
    }

    fn put(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::copy(&self.binary, path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    fn archive(&self, printed: &[(String, String)]) -> Result<()> {
        let name = format!("waypost-{}", self.platform.target);
        let folder = self.work.join(&name);
        self.put(&folder.join("waypost"))?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(root().join(file), folder.join(file))?;
        }
        for (place, text) in printed {
            let part = folder.join(if place.starts_with(MAN_FOLDER) { "man" } else { "completions" });
            fs::create_dir_all(&part)?;
            fs::write(part.join(Path::new(place).file_name().context("a name")?), text)?;
        }
        let file = self.out.join(format!("{name}.tar.xz"));
        must("archive", program("tar").arg("-cJf").arg(file).arg("-C").arg(&self.work).arg(name))
    }

    /// The launcher, and the package with the binary of this platform, of which npm installs the one that fits.
    fn npm(&self) -> Result<()> {
        let about = |name: &str| {
            json!({
                "name": name, "version": self.version, "license": "MIT OR Apache-2.0",
                "description": "Plans that agents write, people approve and machines run.",
                "repository": { "type": "git", "url": "git+https://github.com/waypost/waypost.git" },
            })
        };
        let folder = self.work.join("npm-binary");
        self.put(&folder.join("bin/waypost"))?;
        let mut package = about(&self.platform.npm_package());
        package["os"] = json!([self.platform.os]);
        package["cpu"] = json!([self.platform.cpu]);
        package["files"] = json!(["bin"]);
        self.pack(&folder, &package)?;

        let folder = self.work.join("npm");
        fs::create_dir_all(&folder)?;
        fs::copy(root().join("packaging/npm/waypost.js"), folder.join("waypost.js"))?;
        fs::copy(root().join("README.md"), folder.join("README.md"))?;
        let mut package = about("waypost");
        package["bin"] = json!({ "waypost": "waypost.js" });
        package["files"] = json!(["waypost.js"]);
        package["engines"] = json!({ "node": ">=18" });
        let binaries = PLATFORMS.iter().map(|platform| (platform.npm_package(), json!(self.version)));
        package["optionalDependencies"] = Value::Object(binaries.collect());
        self.pack(&folder, &package)
    }

    fn pack(&self, folder: &Path, package: &Value) -> Result<()> {
        fs::write(folder.join("package.json"), format!("{package:#}\n"))?;
        let name = package["name"].as_str().unwrap_or_default();
        let mut pack = program("npm");
        pack.args(["pack", "--silent", "--pack-destination"]).arg(&self.out).current_dir(folder);
        must(&format!("npm package {name}"), &mut pack)
    }

    fn wheel(&self) -> Result<()> {
        let mut make = program("python3");
        make.arg("packaging/make_wheel.py").arg(&self.binary).args([
            &self.version,
            self.platform.wheel,
            "README.md",
        ]);
        must("wheel", make.arg(&self.out).arg(self.man()))
    }

    fn deb(&self, architecture: &str, printed: &[(String, String)]) -> Result<()> {
        let folder = self.work.join("deb");
        self.put(&folder.join("usr/bin/waypost"))?;
        for (place, text) in printed {
            fs::create_dir_all(folder.join(place).parent().context("a folder")?)?;
            fs::write(folder.join(place), text)?;
        }
        if folder.join(MAN_FOLDER).is_dir() {
            let mut gzip = program("sh");
            gzip.args(["-c", "gzip -9n *.1"]).current_dir(folder.join(MAN_FOLDER));
            must("compress the manual pages", &mut gzip)?;
        }
        let licences =
            ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"].map(|file| fs::read_to_string(root().join(file)));
        let licences: Result<Vec<String>, _> = licences.into_iter().collect();
        fs::create_dir_all(folder.join("usr/share/doc/waypost"))?;
        fs::write(folder.join("usr/share/doc/waypost/copyright"), licences?.join("\n"))?;
        // A binary that was linked here needs the C library of this system, or a later one.
        let library = match self.platform.target.ends_with("gnu") {
            false => String::new(),
            true => {
                let said = output(Command::new("ldd").arg("--version"))?;
                let version = said.lines().next().and_then(|line| line.split_whitespace().last());
                format!("Depends: libc6 (>= {})\n", version.context("ldd names no version")?)
            }
        };
        let control = format!(
            "Package: waypost\nVersion: {}\nArchitecture: {architecture}\nMaintainer: The Waypost authors <waypost@users.noreply.github.com>\n{library}Recommends: git\nSection: devel\nPriority: optional\nHomepage: https://github.com/waypost/waypost\nDescription: Plans that agents write, people approve and machines run\n A durable, versioned, executable plan store for AI agents.\n",
            self.version
        );
        fs::create_dir_all(folder.join("DEBIAN"))?;
        fs::write(folder.join("DEBIAN/control"), control)?;
        let file = self.out.join(format!("waypost_{}_{architecture}.deb", self.version));
        must(
            "Debian package",
            program("dpkg-deb").args(["--root-owner-group", "-Zxz", "--build"]).arg(folder).arg(file),
        )
    }
}

/// Installs each file into an empty folder and runs a plan with what was installed.
pub(crate) fn test() -> Result<()> {
    run(&[])?;
    let (out, version) = (folder(), version()?);
    let scratch = target_dir().join("test-install");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    let fresh = |name: &str| -> Result<PathBuf> {
        let folder = scratch.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let find = |end: &str| -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&out)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
        if found.is_empty() { bail!("dist made no *{end}") } else { Ok(found) }
    };

    let folder = fresh("npm")?;
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let mut install = program("npm");
    install.args(["install", "--no-fund", "--no-audit", "--loglevel=error"]).args(find(".tgz")?);
    must("install the npm packages", install.current_dir(&folder))?;
    try_out("npm", &folder.join("node_modules/.bin/waypost"), &version, &fresh("npm-work")?)?;

    let folder = fresh("wheel")?;
    must("make a Python environment", program("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = program(folder.join("bin/pip"));
    must("install the wheel", install.args(["install", "--quiet", "--no-index"]).args(find(".whl")?))?;
    try_out("wheel", &folder.join("bin/waypost"), &version, &fresh("wheel-work")?)?;

    let folder = fresh("deb")?;
    must("unpack the Debian package", program("dpkg-deb").arg("--extract").args(find(".deb")?).arg(&folder))?;
    try_out("deb", &folder.join("usr/bin/waypost"), &version, &fresh("deb-work")?)?;
    if !folder.join(MAN_FOLDER).join("waypost-run.1.gz").is_file() {
        bail!("deb: there is no manual page of waypost run");
    }

    let folder = fresh("script")?;
    let target = output(Command::new("rustc").arg("-vV"))?;
    let target = target.lines().find_map(|line| line.strip_prefix("host: ")).context("host")?.to_owned();
    let mut install = program("sh");
    install.arg("packaging/install.sh").env("WAYPOST_DOWNLOADS", &out).env("WAYPOST_TARGET", target);
    must("install by the script", install.env("WAYPOST_INSTALL_DIR", &folder))?;
    try_out("script", &folder.join("waypost"), &version, &fresh("script-work")?)?;
    println!("all packages can be installed and run a plan");
    Ok(())
}

/// Runs a plan, and writes and reads one, in an empty folder.
fn try_out(name: &str, binary: &Path, version: &str, work: &Path) -> Result<()> {
    let run = |words: &[&str]| {
        let mut command = Command::new(binary);
        // A store of its own: the folder is below the repository.
        output(command.args(words).env("WAYPOST_STORE", "sqlite:plans.db").current_dir(work))
    };
    let said = run(&["--version"])?;
    if said.trim() != format!("waypost {version}") {
        bail!("{name}: --version says {said:?}");
    }
    let demo = run(&["demo"])?;
    if !demo.contains("completed") {
        bail!("{name}: the demo did not complete:\n{demo}");
    }
    run(&["new", "First plan", "--id", "first", "--task", "Look around"])?;
    run(&["next", "first", "--claim"])?;
    run(&["done", "first", "t1"])?;
    let shown: Value = serde_json::from_str(&run(&["show", "first", "--json"])?)?;
    if shown["phase"] != "completed" && shown["plan"]["phase"] != "completed" {
        bail!("{name}: the plan is not completed:\n{shown}");
    }
    println!("── {name}: ran the demo, and a plan was created, worked on and completed");
    Ok(())
}
