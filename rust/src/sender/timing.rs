//! The distance between capture point and sender, and how soon an effect must follow its cause.

pub(crate) const NS_PER_MS: i64 = 1_000_000;
/// The capture point counts as at the sender if the round trip to the sender is less than 1/10 of the whole RTT (a
/// heuristic).
const NEAR_SENDER_PART: i64 = 10;
/// A round trip shorter than this consists only of the reaction time of the hosts and does not show which host is near
/// the capture point. In this case, the order of the packets shows which host is near.
pub(crate) const NO_DISTANCE_NS: i64 = 50_000;
/// The bound that replaces [`NO_DISTANCE_NS`] if the handshake was not captured. Without a handshake, only the response
/// times of the applications are known, not the response times of the TCP stacks (`HOST_NS` of `hosts/vantage.rs`).
const NO_DISTANCE_OF_PROGRAMS_NS: i64 = 500_000;
/// The shortest observed round trip to the sender is reduced by 1/32, because the path may be slightly faster than any
/// observed round trip shows.
pub(super) const TOLERANCE_PART: i64 = 32;
/// The longest connection whose waits are judged: 2^57 ns, about 4.5 years (a heuristic: no capture is that long). An
/// i64 can hold 60 times this value. If a connection is longer, the times of its packets are invalid.
pub const LONGEST_NS: i64 = 1 << 57;

/// Whether the sender answers later than the receiver, but both hosts are so near that the capture point may be at
/// either.
#[inline]
pub(crate) fn at_either(to_sender_ns: Option<i64>, to_receiver_ns: Option<i64>) -> bool {
    let near = |(sender_ns, receiver_ns): (i64, i64)| {
        sender_ns > receiver_ns && sender_ns.saturating_add(receiver_ns) < NO_DISTANCE_NS
    };
    to_sender_ns.zip(to_receiver_ns).is_some_and(near)
}

/// The time that is added to the capture time of an arrival, for comparison with the capture times of the sender's
/// segments. This time is about the shortest round trip between capture point and sender, and 0 in a capture at the
/// sender.
#[inline]
pub(crate) fn shift_ns(to_sender_ns: Option<i64>, to_receiver_ns: Option<i64>, begun: bool) -> i64 {
    let Some(to_sender_ns) = to_sender_ns else { return 0 };
    let whole_ns = to_sender_ns.saturating_add(to_receiver_ns.unwrap_or(0));
    let no_distance_ns = if begun { NO_DISTANCE_NS } else { NO_DISTANCE_OF_PROGRAMS_NS };
    if to_sender_ns < no_distance_ns.max(whole_ns / NEAR_SENDER_PART) {
        0
    } else {
        to_sender_ns - to_sender_ns / TOLERANCE_PART
    }
}

/// The shortest round trip between capture point and sender, which shows when an arrival reaches the sender.
/// [`shift_ns`] is slightly shorter, so that an arrival counts as soon as it may have reached the sender.
pub(super) fn whole_ns(shift_ns: i64) -> i64 {
    shift_ns.saturating_add(shift_ns / (TOLERANCE_PART - 1))
}

#[cfg(test)]
mod tests {
    use super::LONGEST_NS;

    #[test]
    fn sixty_of_the_longest_times_fit_in_a_number() {
        assert!(LONGEST_NS.checked_mul(60).is_some());
    }
}
