//! `cargo xtask test`: installs what the tests need and runs all of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use waypost_testkit::PROGRAMS;
use waypost_testkit::postgres::{NO_POSTGRES, POSTGRES};

use crate::exec::{binary, cache_dir, cargo, must, must_say, output, program, root, timed};
use crate::test_jobs::{THREADS, TestBinary};

/// The variable with a Python interpreter that has moto, a local AWS.
const MOTO_PYTHON: &str = "WAYPOST_TEST_MOTO_PYTHON";
const MOTO: &[&str] = &["moto[server,ecs,batch,logs]==5.2.5", "boto3==1.44.3"];

pub(crate) fn run(filter: &[&str]) -> Result<()> {
    // The licence test reads the dependencies of every platform, and a build fetches only those of this one.
    must("cargo fetch", cargo().args(["fetch", "--locked", "--quiet"]))?;
    crate::apt::install_missing()?;
    let server = crate::postgres::server()?;
    let moto = crate::python::with_packages("moto", MOTO)?;
    // Most tests wait for programs that they started.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let with_programs = |command: &mut Command| {
        command.env(POSTGRES, server.url("postgres")).env(MOTO_PYTHON, &moto);
    };
    if !filter.is_empty() {
        let (cargo_arguments, names) =
            filter.split_at(filter.iter().position(|word| *word == "--").unwrap_or(filter.len()));
        let mut test = cargo();
        test.args(["test", "--workspace", "--quiet", "--no-fail-fast"]).args(cargo_arguments);
        test.args(["--", "--include-ignored"]).args(names.get(1..).unwrap_or_default());
        if std::env::var_os(THREADS).is_none() {
            test.env(THREADS, (2 * cores).to_string());
        }
        with_programs(&mut test);
        return must("cargo test", &mut test);
    }

    // The last of the two is what the tests start, and has to stay in its place.
    let plain = build()?;
    let mut build = cargo();
    build.args(["test", "--workspace", "--quiet", "--no-run", "--message-format=json-render-diagnostics"]);
    let binaries = TestBinary::built(&must_say("build the tests", &mut build)?)?;
    let program = test_program()?;
    let bare = bare_path()?;
    let (faults, others): (Vec<_>, Vec<_>) = binaries.iter().partition(|one| one.target == "faults");
    let mut jobs = Vec::new();
    // Most of their time, the fault tests wait for leases to end.
    for faults in faults {
        let mut job = faults.job("faults", &["--include-ignored"], 2 * cores);
        with_programs(&mut job.command);
        jobs.push(job);
    }
    for binary in others {
        // What `cargo test` runs must pass without the programs that were installed above.
        let mut job = binary.job("needs only Rust", &[], 2 * cores);
        job.command.env(POSTGRES, NO_POSTGRES).env(PROGRAMS, &bare).env("PATH", &bare);
        jobs.push(job);
        let mut job = binary.job("needs other programs", &["--ignored"], 2 * cores);
        with_programs(&mut job.command);
        jobs.push(job);
    }
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            crate::web::check()?;
            third_party_validators(&plain)?;
            crate::clients::run_one(&program)
        });
        let tests = timed("tests", || crate::test_jobs::run(jobs, cores + 1));
        clients.join().expect("a thread that does not panic").and(tests)
    })?;
    crate::web::journeys(&program)
}

/// Programs that a machine with Rust may lack, besides those that [`crate::apt`] installs. A name stands for all that begin
/// with it.
const ABSENT: [&str; 12] = [
    "chromium", "docker", "initdb", "node", "npm", "npx", "pg_", "podman", "postgres", "psql", "sinfo",
    "squeue",
];

/// Returns a folder with a link to every program on PATH that a machine with only Rust has too.
fn bare_path() -> Result<PathBuf> {
    let folder = std::path::absolute(cache_dir())?.join("bare");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let absent: Vec<&str> = crate::apt::programs().chain(ABSENT).collect();
    for programs in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        for program in std::fs::read_dir(programs).into_iter().flatten().flatten() {
            let name = program.file_name();
            let is_absent = name.to_str().is_none_or(|name| absent.iter().any(|one| name.starts_with(one)));
            if !is_absent {
                // The first on PATH is the one that is meant.
                let _there_already = std::os::unix::fs::symlink(program.path(), folder.join(name));
            }
        }
    }
    Ok(folder)
}

/// `cargo xtask test-clients`: only the clients.
pub(crate) fn clients() -> Result<()> {
    crate::clients::run(&test_build()?)
}

/// `cargo xtask test-clients packages`: only the Python and TypeScript clients.
pub(crate) fn client_packages() -> Result<()> {
    crate::clients::run_packages(&test_build()?)
}

/// `cargo xtask test-browser`: only the dashboard in a browser.
pub(crate) fn browser() -> Result<()> {
    crate::web::journeys(&test_build()?)
}

/// `cargo xtask screenshots`.
pub(crate) fn screenshots() -> Result<()> {
    crate::web::screenshots(&test_build()?)
}

/// Builds the program as users do, and returns a copy: the next build of the tests takes its place.
fn build() -> Result<PathBuf> {
    must("build the binary", cargo().args(["build", "--quiet", "--package", "waypost"]))?;
    lacks_injection(&binary("debug"))?;
    // The one that people use, if they have built it.
    if binary("release").exists() {
        lacks_injection(&binary("release"))?;
    }
    copied("plain-build", "waypost")
}

/// Copies the program that was built last to a place where no build replaces it.
fn copied(folder: &str, name: &str) -> Result<PathBuf> {
    let folder = std::path::absolute(cache_dir())?.join(folder);
    std::fs::create_dir_all(&folder)?;
    let copy = folder.join(name);
    // A copy that still runs cannot be written to.
    let _absent = std::fs::remove_file(&copy);
    std::fs::copy(binary("debug"), &copy).context("copy the program")?;
    Ok(copy)
}

/// Builds the program that third-party clients and browsers start. Its account's home is `$HOME`, which they set to a folder of
/// their own, so that nothing is read from or written to the home of whoever runs the tests; and it is no agent's, whoever
/// started the tests.
fn test_build() -> Result<PathBuf> {
    let feature = ["--features", "waypost-account/injected"];
    must(
        "build the binary for tests",
        cargo().args(["build", "--quiet", "--package", "waypost"]).args(feature),
    )?;
    test_program()
}

/// Returns what starts the program that was built last, as above.
fn test_program() -> Result<PathBuf> {
    let injected = copied("test-build", "waypost-injected")?;
    ensure!(has_injection(&std::fs::read(&injected)?), "{} reads no {INJECTED}…", injected.display());
    let script = format!(
        "#!/bin/sh\nWAYPOST_INJECTED_HOME=\"$HOME\" WAYPOST_INJECTED_ANCESTORS= exec '{}' \"$@\"\n",
        injected.display()
    );
    let program = injected.with_file_name("waypost");
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// Fails if a program for users lets variables replace its account, its ancestors or its terminal, as tests do.
fn lacks_injection(program: &Path) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    ensure!(
        !has_injection(&bytes),
        "{} reads {INJECTED}…: it was built with the feature `injected`, which is for tests",
        program.display()
    );
    Ok(())
}

/// The beginning of the variables that only programs for tests read.
const INJECTED: &str = "WAYPOST_INJECTED";

fn has_injection(program: &[u8]) -> bool {
    program.windows(INJECTED.len()).any(|bytes| bytes == INJECTED.as_bytes())
}

/// Validates what Waypost writes with independent programs.
fn third_party_validators(waypost: &Path) -> Result<()> {
    let python = crate::python::interpreter()?;
    let scratch = cache_dir().join("validators");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(&scratch)?;

    let scripts = root().join("crates/waypost-formats/tests/python");
    let pairs = schema_pairs(waypost, &scratch)?;
    let mut check = program(&python);
    check.arg(scripts.join("schema_check.py")).args(pairs);
    must("validate exported documents against their schemas (jsonschema)", &mut check)?;

    let graph = scratch.join("release.graphml");
    let plan = root().join("examples/auth.json");
    let mut draw = program(waypost);
    draw.args(["graph", "--format", "graphml", "--output"]).arg(&graph).arg(&plan);
    output(&mut draw)?;
    must(
        "read exported GraphML (networkx)",
        program(&python).arg(scripts.join("graphml_check.py")).arg(&graph),
    )?;
    compose(&python, &scratch)
}

/// Validates the Compose file against the schema of the Compose specification, and checks that the schema rejects a
/// mistake.
fn compose(python: &Path, scratch: &Path) -> Result<()> {
    let validator = |file: &Path| {
        let mut check = program(python);
        check.args(["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]).arg(file);
        check
    };
    let ours = root().join("deploy/compose.yaml");
    must(
        "validate deploy/compose.yaml against the Compose specification (check-jsonschema)",
        &mut validator(&ours),
    )?;
    let wrong = scratch.join("compose-wrong.yaml");
    let text = std::fs::read_to_string(&ours)?;
    std::fs::write(&wrong, text.replace("stop_grace_period:", "stop_grace_time:"))?;
    let judged = validator(&wrong).output()?;
    ensure!(
        !judged.status.success() && String::from_utf8_lossy(&judged.stdout).contains("stop_grace_time"),
        "the Compose schema accepted the unknown key stop_grace_time"
    );
    Ok(())
}

/// Returns pairs of a schema and a document: the output of each writer for each example.
fn schema_pairs(waypost: &Path, scratch: &Path) -> Result<Vec<PathBuf>> {
    const FORMATS: [(&str, &str); 6] = [
        ("native", "waypost-1.schema.json"),
        ("clido", "clido-plan.schema.json"),
        ("jaato", "jaato-plan.schema.json"),
        ("frctl", "plan-v1.schema.json"),
        ("agora", "agora-run.schema.json"),
        ("plan-document", "plan-document.schema.json"),
    ];
    let mut pairs = Vec::new();
    let store = format!("sqlite:{}", scratch.join("waypost.db").display());
    for example in ["auth.json", "fanout.json", "release.md"] {
        let mut import = program(waypost);
        import.args(["--store", &store, "--json", "import"]).arg(root().join("examples").join(example));
        let answer: serde_json::Value = serde_json::from_str(&output(&mut import)?)?;
        let id = find_id(&answer).with_context(|| format!("import of {example} returned no id: {answer}"))?;
        for (format, schema) in FORMATS {
            for form in ["document", "program"] {
                let file = scratch.join(format!("{example}.{format}.{form}.json"));
                let mut export = program(waypost);
                export
                    .args(["--store", &store, "export", &id, "--format", format, "--form", form, "--output"])
                    .arg(&file);
                output(&mut export)?;
                pairs.push(root().join("crates/waypost-formats/schemas").join(schema));
                pairs.push(file);
            }
        }
    }
    Ok(pairs)
}

/// Returns the first `id` anywhere in a reply.
fn find_id(answer: &serde_json::Value) -> Option<String> {
    match answer {
        serde_json::Value::Object(fields) => {
            let own = fields.get("id").and_then(|id| id.as_str()).map(str::to_owned);
            own.or_else(|| fields.values().find_map(find_id))
        }
        serde_json::Value::Array(items) => items.iter().find_map(find_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The features of `waypost-account` in the program, with these kinds of dependencies.
    fn account_features(edges: &str) -> String {
        let mut tree = cargo();
        tree.args(["tree", "--offline", "--package", "waypost", "--prefix", "none", "--edges", edges]);
        let all = output(&mut tree).unwrap();
        all.lines().filter(|line| line.starts_with("waypost-account")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn only_the_tests_of_the_program_have_the_feature_that_injects_callers() {
        assert!(account_features("normal,build,dev,features").contains("feature \"injected\""));
        let of_users = account_features("normal,build,features");
        assert!(!of_users.is_empty() && !of_users.contains("injected"), "{of_users}");
        let manifest = std::fs::read_to_string(root().join("crates/waypost/Cargo.toml")).unwrap();
        assert!(!manifest.contains("[features]"), "no feature of the program may turn it on");
    }

    #[test]
    fn an_ignored_test_says_what_it_needs() {
        let mut sources = crate::rust_source::crates().unwrap();
        sources.extend(crate::rust_source::test_binaries().unwrap());
        let lines = sources.iter().flat_map(|one| &one.files).flat_map(|file| file.text.lines());
        let ignored: Vec<&str> = lines.map(str::trim).filter(|line| line.starts_with("#[ignore")).collect();
        assert!(ignored.len() > 50, "{}", ignored.len());
        let silent: Vec<&&str> =
            ignored.iter().filter(|line| !line.starts_with("#[ignore = \"needs ")).collect();
        assert!(silent.is_empty(), "no test is left out for another reason: {silent:?}");
    }

    #[test]
    fn a_program_with_the_feature_is_recognized() {
        assert!(has_injection(b"\0\x7fWAYPOST_INJECTED_HOME\0"));
        assert!(!has_injection(b"WAYPOST_INJECTE D"));
    }
}
