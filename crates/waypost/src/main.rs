//! The `waypost` program: plans that agents write, people approve and machines run, from the command line.
//!
//! Parses the command line, runs one command, prints its output, and exits with a documented exit code.

#![warn(clippy::wildcard_enum_match_arm)]

mod cli;
mod commands;
mod completion;
mod instructions;
mod planning;
mod webhooks;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::cli::Cli;
use waypost_cli::context::{Context, Program};
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::output::{Color, Output};
use waypost_cli::{background_sync, links, load_config, runner};
use waypost_core::nearest;

fn main() -> ExitCode {
    if completion::answer(PROGRAM) {
        return ExitCode::SUCCESS;
    }
    let matches = Cli::command().try_get_matches();
    let cli = match matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
        Ok((cli, matches)) => {
            runner::keep_config(config_option(&matches), takes_config);
            cli
        }
        Err(error) => return misread(error),
    };
    runner::keep_actor(cli.global.actor.as_deref());
    let mut context = Context::new(cli.global, PROGRAM);
    runner::keep_place(&context.place_options());
    waypost_exec::traces::begin(&load_config::variables());
    let outcome = run(&mut context, cli.command);
    waypost_exec::traces::finish();
    ended(context.out, outcome)
}

/// The option that names the configuration of some commands.
const CONFIG_OPTION: &str = "config";

/// The configuration that the command line names.
fn config_option(matches: &ArgMatches) -> Option<&PathBuf> {
    let (_, mut command) = matches.subcommand()?;
    while let Some((_, below)) = command.subcommand() {
        command = below;
    }
    command.try_get_one(CONFIG_OPTION).ok().flatten()
}

/// Whether a command can be given a configuration.
fn takes_config(verb: &str) -> bool {
    let mut definition = Cli::command();
    definition.build();
    let command = definition.find_subcommand(verb);
    command.is_some_and(|command| command.get_arguments().any(|argument| argument.get_id() == CONFIG_OPTION))
}

/// Commands that are named in place of one that does not exist.
const SUGGESTIONS_MAX: usize = 3;

const PROGRAM: Program = Program { definition: Cli::command, run_line };

fn run(context: &mut Context, command: Option<cli::Command>) -> Outcome {
    let keeping = command.as_ref().map_or(links::Keeping::Around, cli::Command::keeps_links);
    let run = |context: &mut Context| match command {
        Some(command) => command.run(context),
        None => commands::overview::run(context),
    };
    context.enter()?;
    links::around(context, keeping, |context| background_sync::around(context, keeping, run))
}

fn run_line(line: &str, store: &str) -> Outcome {
    let cli = Cli::try_parse_from(line.split(' ')).map_err(|error| Failure::usage(error.to_string(), ""))?;
    let mut context = Context::new(cli.global, PROGRAM).with_store(store);
    let outcome = run(&mut context, cli.command);
    let outcome = context.out.finish().and(outcome);
    outcome.inspect_err(|failure| context.out.failure(failure))
}

/// Prints the output and the failure, and returns the exit code.
fn ended(mut out: Output, outcome: Outcome) -> ExitCode {
    match out.finish().and(outcome) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out.failure(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Prints help, or the error of the command line: as clap formats it for people, as one JSON object for programs.
fn misread(error: clap::Error) -> ExitCode {
    // clap drops escape sequences from its messages without a trace, and keeps other unsafe characters. So it reads the
    // arguments again as they are shown.
    let shown =
        std::env::args_os().map(|word| waypost_text::sanitize_line(&word.to_string_lossy()).into_owned());
    let error = with_best_suggestions(Cli::try_parse_from(shown).err().unwrap_or(error));
    let is_help_of_help = |error: &clap::Error| {
        let word = error.get(ContextKind::InvalidSubcommand);
        matches!(word, Some(ContextValue::String(word)) if word == "--help" || word == "-h")
    };
    let error = match is_help_of_help(&error) {
        true => Cli::try_parse_from([runner::NAME, "--help"]).err().unwrap_or(error),
        false => error,
    };
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let for_programs =
        std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    let text = plain_words(&error.render().to_string());
    if !asked_for && for_programs {
        let mut paragraphs = text.split("\n\n");
        let message = paragraphs.next().unwrap_or("").trim_start_matches("error: ").trim();
        let failure =
            Failure::usage(message.replace('\n', " "), "`waypost help` shows the commands and their options");
        return ended(Output::new(true, Color::Never), Err(failure));
    }
    let is_changed = text != error.render().to_string();
    if is_changed || text.contains(|shown| shown != '\n' && waypost_text::is_unsafe_char(shown)) {
        return ended(
            Output::new(false, Color::Auto),
            Err(Failure::usage(text.trim_start_matches("error: "), "")),
        );
    }
    match error.print() {
        // Whoever asked for it has not got it, unless they closed the pipe because they had read enough.
        Err(why) if asked_for && why.kind() != std::io::ErrorKind::BrokenPipe => {
            ended(Output::new(for_programs, Color::Auto), Err(Failure::unwritten(&why)))
        }
        // If the terminal is gone, there is nowhere to report it.
        Ok(()) | Err(_) if asked_for => ExitCode::SUCCESS,
        Ok(()) | Err(_) => ExitCode::from(Exit::Usage as u8),
    }
}

/// What newcomers call a command that has another name here.
const OTHER_NAMES: [(&str, &str); 3] = [("create", "new"), ("generate", "plan"), ("make", "new")];

/// Puts the nearest command first, and names few and no hidden ones: the parser lists all that are somewhat alike, the nearest last.
fn with_best_suggestions(mut error: clap::Error) -> clap::Error {
    fn add_names(command: &clap::Command, names: &mut BTreeSet<String>) {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            names.extend(command.get_name_and_visible_aliases().into_iter().map(str::to_owned));
            add_names(command, names);
        }
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let mut definition = Cli::command();
    definition.build();
    let mut names = BTreeSet::new();
    add_names(&definition, &mut names);
    let other_name = OTHER_NAMES.iter().find(|(other, _)| other == word);
    let near: Vec<String> = match (other_name, error.get(ContextKind::SuggestedSubcommand)) {
        (Some((_, name)), _) => vec![(*name).to_owned()],
        (None, Some(ContextValue::Strings(near))) => {
            near.iter().rev().filter(|name| names.contains(*name)).take(SUGGESTIONS_MAX).cloned().collect()
        }
        // The parser compares nothing with what is behind `help`.
        (None, _) => nearest(word, names.iter().map(String::as_str)).into_iter().collect(),
    };
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
    error
}

/// Replaces what the parser of numbers says by words for people.
fn plain_words(text: &str) -> String {
    text.replace("invalid digit found in string", "it is not a whole number")
        .replace("cannot parse integer from empty string", "it is not a whole number")
        .replace("number too large to fit in target type", "the number is too large")
        .replace("number too small to fit in target type", "the number is too small")
}
