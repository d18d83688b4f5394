//! The repository's chores. `cargo xtask help` lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "chores talk to the person who runs them")]

mod arrows;
mod bench;
mod ci;
mod clients;
mod generate;
mod hosts;
mod licences;
mod llm;
mod npm;
mod packages;
mod postgres;
mod python;
mod run;
mod serving;
mod test;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test [FILTER]   set up what the tests need, then run all of them
cargo xtask test-clients    only those tests in which clients that are not ours talk to the built binary
cargo xtask ci              what must pass before a change lands: format, lints, generated files, licences, tests
cargo xtask bench [GROUP]   measure the budgets beside their floors (core: library and process; commits; run; agents;
                            http; peers; postgres; tui; all; with quick, http and postgres measure less)
cargo xtask test-hosts      let Claude Code and Codex work through a plan (from npm; not part of ci)
cargo xtask test-llm [N]    let the planner work on ten goals (or N) with a real, small model (from PyPI; not part of ci)
cargo xtask web [build]     check the dashboard's types, tests and built files; build: write web/dist anew
cargo xtask test-browser    only those tests in which people use the dashboard in a browser
cargo xtask screenshots     take the pictures of docs/images anew
cargo xtask generate        write the generated files anew
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test", filter @ ..] => test::run(filter),
        ["test-clients"] => test::clients(),
        ["test-browser"] => test::browser(),
        ["screenshots"] => test::screenshots(),
        ["web", rest @ ..] => web::run(rest),
        ["ci"] => ci::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["test-hosts", rest @ ..] => hosts::run(rest),
        ["test-llm", rest @ ..] => llm::run(rest),
        ["generate"] => generate::run(),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("no chore is called {:?}\n\n{HELP}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
