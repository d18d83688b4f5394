//! The Python and the TypeScript client, installed from their packages and type-checked, against a real `waypost serve`: the examples
//! of `docs/clients.md`, and a scenario behind a proxy that turns requests away and loses replies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::lossy_proxy::LossyProxy;
use super::server::Server;
use super::workspace::Workspace;
use crate::client_packages::{self, Built};
use crate::exec::{must, program, root};
use crate::{npm, python};

/// The dependencies of the Python client, and a type checker.
const PYTHON_PACKAGES: &[&str] = &[
    "httpx==0.28.1",
    "attrs==26.1.0",
    "python-dateutil==4.0.0",
    "mypy==2.4.1",
    "types-python-dateutil==2.9.0.20261104",
];
const PYTHON_SCENARIO: &str = include_str!("python_client.py");
const TYPESCRIPT_SCENARIO: &str = include_str!("typescript_client.ts");
/// What a generator writes is checked where it is used.
const MYPY: &str = "[mypy]\n[mypy-waypost_client.generated.*]\nignore_errors = True\n";
/// The address in the examples, and the variable with the token.
const EXAMPLE_URL: &str = "http://127.0.0.1:8021";
const TOKEN: &str = "WAYPOST_TOKEN";

pub(super) fn run(waypost: &Path) -> Result<()> {
    let built = client_packages::run()?;
    python_client(waypost, &built)?;
    typescript_client(waypost, &built)
}

/// A server, and a proxy before it.
struct Scene {
    workspace: Workspace,
    server: Server,
    proxy: LossyProxy,
}

impl Scene {
    fn new(waypost: &Path, name: &str) -> Result<Self> {
        let workspace = Workspace::empty(name)?;
        let server = Server::start(waypost, &workspace, &["native"], &["worker"])?;
        let proxy = LossyProxy::start(server.site())?;
        Ok(Self { workspace, server, proxy })
    }

    /// A program that gets the address of the proxy and the token.
    fn program(&self, program: &Path, script: &Path) -> Command {
        let mut command = crate::exec::program(program);
        self.workspace.enter(&mut command);
        command.arg(script).arg(self.proxy.url()).env(TOKEN, &self.server.tokens()[0]);
        command
    }

    /// Writes the example of the page in this language, with the address of the server itself.
    fn example(&self, language: &str, file: &str) -> Result<PathBuf> {
        let page = fs::read_to_string(root().join("docs/clients.md"))?;
        let fence = format!("```{language}\n");
        let code = page.split(&fence).nth(1).and_then(|rest| rest.split("```").next());
        let code = code.with_context(|| format!("docs/clients.md has no example in {language}"))?;
        ensure!(code.contains(EXAMPLE_URL), "the example in {language} does not name {EXAMPLE_URL}");
        self.workspace.write(file, &code.replace(EXAMPLE_URL, self.server.site()))
    }
}

fn python_client(waypost: &Path, built: &Built) -> Result<()> {
    let python = python::with_packages("python-client", PYTHON_PACKAGES)?;
    let mut install = program(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    must("install the Python client", install.args(["--force-reinstall", "--no-index"]).arg(&built.wheel))?;
    let scene = Scene::new(waypost, "python-client")?;
    let example = scene.example("python", "example.py")?;
    let scenario = scene.workspace.write("scenario.py", PYTHON_SCENARIO)?;
    scene.workspace.write("mypy.ini", MYPY)?;
    let mut check = program(python.with_file_name("mypy"));
    scene.workspace.enter(&mut check);
    check.args(["--strict", "--package", "waypost_client"]);
    must("check the types of the Python client (mypy)", &mut check)?;
    let mut check = program(python.with_file_name("mypy"));
    scene.workspace.enter(&mut check);
    must(
        "check the types of its example and test (mypy)",
        check.arg("--strict").arg(&example).arg(&scenario),
    )?;
    must("run the example of the Python client", &mut scene.program(&python, &example))?;
    must("test the Python client", &mut scene.program(&python, &scenario))
}

fn typescript_client(waypost: &Path, built: &Built) -> Result<()> {
    let scene = Scene::new(waypost, "typescript-client")?;
    let folder = &scene.workspace.folder;
    scene.workspace.write("package.json", "{ \"private\": true, \"type\": \"module\" }\n")?;
    npm::available()?;
    let mut install = program("npm");
    scene.workspace.enter(&mut install);
    install.args(["install", "--no-fund", "--no-audit", "--loglevel=error"]).arg(&built.npm);
    must("install the TypeScript client", &mut install)?;
    scene.example("ts", "example.ts")?;
    scene.workspace.write("scenario.ts", TYPESCRIPT_SCENARIO)?;
    let mut compile = built.node.run("tsc");
    compile.args([
        "--strict",
        "--target",
        "ES2022",
        "--module",
        "NodeNext",
        "--lib",
        "ES2023,DOM,DOM.Iterable",
    ]);
    compile
        .args(["--types", "node", "--typeRoots"])
        .arg(std::path::absolute(built.node.home())?.join("node_modules/@types"));
    compile.args(["example.ts", "scenario.ts"]).current_dir(folder);
    must("check the types of its example and test (tsc)", &mut compile)?;
    let node = built.node.program("node");
    let node = std::path::absolute(node)?;
    must("run the example of the TypeScript client", &mut scene.program(&node, &folder.join("example.js")))?;
    must("test the TypeScript client", &mut scene.program(&node, &folder.join("scenario.js")))
}
