//! The predicates of a wait by name, to explain why the wait has its cause (`examples/why.rs`).

use super::Evidence;

macro_rules! predicates {
    ($($name:ident,)+) => {
        impl Evidence<'_> {
            /// The names of the predicates that are true of this wait, in alphabetical order.
            #[must_use]
            pub fn true_predicates(&self) -> Vec<&'static str> {
                let all = [$((stringify!($name), self.$name())),+];
                all.into_iter().filter(|(_, is_true)| *is_true).map(|(name, _)| name).collect()
            }
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

// All predicates that gates can use.
predicates! {
    ack_is_unseen, ack_just_came, ack_was_held, ack_was_late, all_acked, answer_may_be_lost, buffer_was_emptied,
    bytes_are_missing, came_with_ack, ends_otherwise, fills_window, first_was_forced_in, fits_any_congestion_window,
    flight_stands, had_in_flight, had_little_in_flight, has_begun_anew, has_flown, has_stopped, holds_one_message,
    is_after_loss, is_bare_fin, is_bulk, is_first_data, is_in_burst, is_in_own_queue, is_in_queue, is_in_train,
    is_late_fin, is_needless, is_no_larger, is_on_plateau, is_probe_of_new_data, is_recovering, is_released_in_turn,
    is_repair, is_resent, is_small, is_strange, is_syn, is_tail_probe, is_timed_out, is_to_closed_receiver,
    is_window_probe, left_as_half_a_window, left_at_its_pace, may_be_far, may_fill_buffer, may_have_refilled_buffer,
    may_have_timed_out_early, met_no_queue, minshall_pending, more_was_buffered, nagle_may_have_held, nagle_may_hold,
    nothing_was_short, peer_spoke, received_first_ack, room_is_unseen, says_when, sender_received_nothing, shows_pacing,
    small_ones_pass, stopped_halfway, waited_for_ack, was_acked_at_once, was_cut_to_window, was_deferred_by_window,
    was_delayed_on_path, was_drained_bit_by_bit, was_filled_while_held, was_forced_in, was_forced_in_unscaled,
    was_held_at_first, was_held_behind_small, was_held_by_nagle, was_kept_back, was_kept_behind_window, was_late_alone,
    was_late_with_neighbour, was_lost_before_capture, was_on_the_way, was_only_late, was_paced_by_sender,
    was_released_by_ack, was_released_by_answer, was_released_late, was_repaired, was_repaired_by_timeout,
    was_sent_again, was_taken_in_turn, was_taken_one_by_one, was_written_by_clock, was_written_with_the_ack,
    window_is_known, window_is_near, window_opened, window_owns_all, window_released_it, window_was_full,
    window_was_nearly_full,
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn the_list_has_every_predicate_that_gates_can_ask() {
        let module = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ledger/evidence");
        let mut declared = Vec::new();
        let mut collect = |path: &str, visibility: &str| {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let name = line.trim().strip_prefix(visibility).and_then(|rest| rest.strip_suffix("(&self) -> bool {"));
                declared.extend(name.map(str::to_owned));
            }
        };
        collect(&format!("{module}.rs"), "pub(super) fn ");
        for file in std::fs::read_dir(module).unwrap() {
            collect(file.unwrap().path().to_str().unwrap(), "pub(in super::super) fn ");
        }
        declared.sort_unstable();
        assert!(declared.len() > 50);
        assert_eq!(declared, NAMES);
    }
}
