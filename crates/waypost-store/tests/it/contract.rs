//! What every backend promises. A backend joins with one line in `promises!`.

mod across;
mod chain;
mod happenings;
mod hearing;
mod keeping;
mod lists;
mod log;
mod names;
mod sharing;
mod subscribers;
mod tables;
mod together;
mod versions;
mod watching;
mod workers;

use crate::place::Place;

macro_rules! promises {
    (@one $attribute:tt $backend:ident: $($module:ident::$promise:ident)*) => {
        mod $backend {
            $(
                #[test]
                # $attribute
                fn $promise() {
                    super::$module::$promise(&super::Place::$backend());
                }
            )*
        }
    };
    (@spread $attribute:tt $backend:ident { $($module:ident::$promise:ident)* }) => {
        promises!(@one $attribute $backend: $($module::$promise)*);
    };
    ($($backend:ident $attribute:tt)*; $promises:tt) => {
        $(promises!(@spread $attribute $backend $promises);)*
    };
}

promises! {
    memory [cfg(all())] file [cfg(all())] sqlite [cfg(all())] postgres [ignore = "needs PostgreSQL"];
    {
        versions::a_plan_that_was_made_can_be_read_back
        versions::every_write_makes_one_version_and_what_changes_nothing_makes_none
        versions::every_version_keeps_who_when_what_and_what_came_of_it
        versions::a_writer_who_knows_an_old_version_is_told_what_changed_and_writes_nothing
        versions::small_commands_need_no_version
        versions::a_batch_with_a_refused_command_leaves_nothing
        versions::a_plan_can_be_read_as_it_was_at_every_version
        versions::snapshots_can_be_lost_without_losing_anything
        versions::time_never_goes_backwards_within_a_plan
        versions::a_store_can_be_closed_and_opened_again
        chain::every_version_follows_from_the_one_before_it
        chain::a_changed_version_is_the_first_break
        chain::a_removed_version_is_the_first_break
        chain::swapped_versions_are_the_first_break
        chain::a_changed_snapshot_is_the_first_break
        chain::a_history_that_was_cut_or_written_anew_is_shown_by_an_anchor
        chain::a_pruned_plan_is_sound_and_its_next_version_follows_from_the_kept_hash
        chain::versions_without_hashes_are_covered_by_the_first_version_that_has_one
        chain::a_copy_keeps_the_hashes_of_random_histories
        chain::a_purged_plan_leaves_no_hash
        chain::a_store_has_an_id_of_its_own_that_stays
        sharing::rows_about_shared_plans_are_stored_by_group_and_read_page_by_page
        sharing::a_purged_plan_leaves_no_records
        sharing::a_purge_leaves_the_rows_that_go_with_it_and_nothing_is_gone_if_the_plan_was_written_meanwhile
        names::an_id_is_never_used_twice_not_even_after_a_purge
        names::a_plan_gets_a_fresh_id_when_none_is_asked_for
        names::an_unambiguous_beginning_names_a_plan
        names::a_purged_plan_is_gone_and_only_a_person_can_purge
        lists::pages_go_on_where_the_last_one_ended_in_every_order
        lists::a_page_goes_on_although_plans_change_in_between
        lists::filters_find_what_they_name
        lists::a_text_is_found_in_ids_and_titles_whatever_the_case
        lists::the_archive_is_a_shelf_of_its_own
        lists::what_needs_a_person_comes_first_and_pages_keep_their_limit
        lists::heads_say_what_the_plans_say
        lists::totals_add_up_what_the_heads_say
        log::the_log_has_no_gaps_and_follows_the_commits
        log::the_log_can_be_read_by_plan_by_actor_and_page_by_page
        log::the_log_tells_which_plans_were_written_since
        tables::the_tables_follow_random_histories
        tables::ready_tasks_come_by_urgency_and_only_from_plans_that_may_run
        tables::of_tasks_that_are_as_urgent_those_of_the_oldest_plan_come_first
        tables::what_its_author_skips_counts_as_skipped_before_the_start
        tables::a_lock_that_another_plan_holds_is_refused_and_its_holder_named
        tables::shared_locks_coexist
        tables::a_batch_cannot_take_one_lock_twice_but_can_pass_it_on
        tables::leases_are_listed_when_they_end_and_can_be_renewed
        tables::waits_are_found_by_what_they_wait_for
        tables::the_doctor_finds_a_wrong_index_and_puts_it_right
        together::writers_in_many_threads_lose_nothing
        together::a_refused_command_leaves_the_others_of_its_group_alone
        together::callers_that_are_served_together_get_each_their_own_answer
        together::readers_see_whole_versions_only
        together::two_processes_see_each_others_writes
        together::what_only_one_may_have_is_had_by_one_until_it_gives_it_back
        together::a_transaction_that_fails_leaves_nothing
        across::what_ends_later_is_told_to_whoever_waits_for_it
        across::what_has_ended_already_is_told_at_once
        across::plans_that_would_wait_for_each_other_are_refused_with_the_path
        across::who_waits_for_an_agent_waits_for_the_plan_that_goes_on
        across::what_failed_and_is_done_after_all_is_told_again
        across::of_commands_for_themselves_only_the_refused_are_left_out
        hearing::a_second_result_reaches_whoever_has_not_begun
        hearing::what_is_set_back_is_waited_for_again_by_whoever_has_not_begun
        hearing::plans_that_ended_for_a_failure_elsewhere_go_on_when_it_is_put_right
        hearing::a_plan_that_is_named_with_its_agent_must_be_that_agents
        hearing::what_can_never_be_is_refused_and_what_may_yet_be_is_named
        hearing::a_plan_that_ends_without_the_task_is_heard_of
        hearing::who_waits_follows_a_plan_that_is_handed_over
        hearing::plans_that_are_put_away_or_purged_are_heard_of
        hearing::what_would_close_a_ring_is_not_set_back
        hearing::whoever_has_not_begun_knows_how_things_stand
        happenings::events_come_one_by_one_in_the_order_of_the_log
        happenings::what_followed_from_an_event_is_told_with_it
        happenings::filters_choose_by_agent_kind_plan_and_task
        happenings::a_page_ends_within_a_version_and_the_next_goes_on_there
        happenings::a_filter_that_matches_nothing_looks_at_a_bounded_part_of_the_log
        happenings::readers_who_come_from_anywhere_are_told_the_same
        happenings::of_a_purged_plan_nothing_is_told
        happenings::whoever_waits_is_told_as_soon_as_something_matches
        happenings::a_wait_ends_when_its_time_is_over
        subscribers::a_subscription_is_found_again_with_what_was_not_read
        subscribers::a_cursor_moves_forward_and_never_back_or_beyond_the_end
        subscribers::a_subscription_belongs_to_its_owner
        subscribers::there_is_a_limit_to_subscriptions_and_to_filters
        subscribers::a_purged_plan_breaks_no_subscription
        subscribers::what_was_given_up_is_told_by_the_doctor_until_it_is_put_right
        subscribers::nobody_is_woken_by_subscriptions
        workers::a_worker_is_found_again_until_it_is_dropped_or_forgotten
        workers::workers_come_by_name_and_page_by_page
        workers::a_worker_is_alive_silent_and_dead_by_the_stores_clock
        workers::whoever_is_asked_to_drain_finds_that_in_its_own_row
        workers::leases_tell_who_works_on_what_since_when_and_in_which_slot
        workers::progress_is_kept_with_the_lease_wakes_watchers_and_makes_no_version
        workers::a_queue_has_so_many_slots_for_all_workers_together
        workers::what_ends_within_its_version_and_what_agents_do_takes_no_slot
        workers::the_copy_of_a_log_is_found_again_where_copies_are_kept
        workers::nobody_is_woken_by_workers_and_logs_and_no_version_comes_of_them
        keeping::forgotten_events_leave_the_plan_and_the_numbers_of_the_log
        keeping::a_process_that_knew_an_early_version_sees_the_plan_whose_events_were_pruned
        keeping::a_plan_whose_events_were_forgotten_can_be_gone_on_with
        keeping::only_plans_that_ended_long_ago_are_pruned_and_only_by_a_person
        keeping::what_a_subscription_has_not_read_is_held_back
        keeping::a_copy_has_everything_that_the_store_has
        watching::a_write_by_another_wakes
        watching::no_write_is_missed_between_reading_and_waiting
        watching::an_idle_store_wakes_nobody_nor_do_readers_and_renewed_leases
        watching::a_busy_writer_does_not_wake_too_often
    }
}
