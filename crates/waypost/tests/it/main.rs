//! The built program, as people and scripts use it: transcripts of whole commands with exit code, stdout and stderr.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod agent_hosts;
mod agents_at_once;
mod approval_fuzz;
mod authenticity;
mod aws;
mod brought_and_shown;
mod callers;
mod commit_links;
mod damaged_plans;
mod evidence;
mod examples;
mod first_run;
mod front_ends;
mod gates;
mod http_crash;
mod links;
mod mcp_files;
mod mcp_jaato;
mod mcp_reporters;
mod migrating;
mod model;
mod other_tools;
mod performance;
mod planner;
mod postgres;
mod printed_commands;
mod processes;
mod readme;
mod refusals;
mod run;
mod run_crash;
mod run_reporters;
mod run_security;
mod same_effect;
mod serve;
#[expect(dead_code, reason = "only the engine's own tests need all that it can do")]
#[path = "../../../waypost-run/tests/it/server.rs"]
mod server;
mod shared_rules;
mod sharing;
mod signed_approvals;
mod slurm;
mod store_faults;
mod tmux;
mod traces;
mod transcript;
mod trust;
mod tui;
mod tui_screens;
mod unwritable;
mod webhook;
mod workers;
mod workspaces;
mod write_back;

use transcript::check;

#[test]
fn a_plan_is_made_worked_on_and_finished() {
    check("first-steps");
}

#[test]
fn an_absent_store_is_empty_and_reading_makes_none() {
    check("absent-store");
}

#[test]
fn plans_of_every_format_are_imported() {
    check("import");
}

#[test]
fn what_is_wrong_is_reported_all_at_once_and_nothing_is_written() {
    check("invalid");
}

#[test]
fn what_points_nowhere_is_dropped_only_when_asked_to() {
    check("repair");
}

#[test]
fn changed_histories_are_found() {
    check("verify");
}

#[test]
fn folders_of_other_programs_are_imported() {
    check("folders");
}

#[test]
fn plans_are_listed_on_bounded_pages() {
    check("list");
}

#[test]
fn a_plan_is_shown_as_a_tree_in_levels_and_task_by_task() {
    check("show");
}

#[test]
fn wide_characters_keep_their_columns() {
    check("wide");
}

#[test]
fn tasks_are_added_changed_moved_and_removed() {
    check("tasks");
}

#[test]
fn work_is_claimed_reported_and_retried() {
    check("work");
}

#[test]
fn a_stale_writer_writes_nothing_and_learns_what_changed() {
    check("conflict");
}

#[test]
fn only_a_person_can_approve() {
    check("approval");
}

#[test]
fn an_agent_cannot_pretend_to_be_a_person() {
    check("actor");
}

#[test]
fn every_version_can_be_seen_compared_and_restored() {
    check("history");
}

#[test]
fn plans_are_put_away_and_never_purged_without_a_person() {
    check("archive");
}

#[test]
fn plans_are_exported_and_losses_are_named() {
    check("export");
}

#[test]
fn a_file_is_written_into_a_plan_without_echoing_it() {
    check("update");
}

#[test]
fn an_edited_draft_is_saved_or_kept() {
    check("edit");
}

#[test]
fn programs_get_one_json_object_whatever_happens() {
    check("json");
}

#[test]
fn inputs_have_the_shape_that_the_configuration_asks_for_or_are_not_written() {
    check("shapes");
}

#[test]
fn events_are_chosen_by_kind_task_and_agent() {
    check("events");
}

#[test]
fn the_store_is_looked_after() {
    check("store");
}

#[test]
fn a_store_is_copied_with_everything_in_it() {
    check("copy");
}

#[test]
fn what_ended_long_ago_is_forgotten_when_a_person_says_so() {
    check("prune");
}

#[test]
fn the_examples_of_the_repository_work() {
    check("examples");
}

#[test]
fn a_workspace_is_set_up_for_the_hosts_of_agents() {
    check("init");
}

#[test]
fn setting_up_changes_no_file_without_a_persons_word() {
    check("init-existing");
}

#[test]
fn agents_can_read_how_plans_work_from_a_shell() {
    check("instructions");
}

#[test]
fn without_a_command_it_says_what_is_going_on() {
    check("overview");
}

#[test]
fn help_names_the_exit_codes_and_mistakes_are_explained() {
    check("usage");
}
