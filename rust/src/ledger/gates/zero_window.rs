//! Zero window: the receiver advertises a window of 0.
//!
//! - **Closed** while the window is 0, or until a window probe.
//! - **Opened by** a window update, or by the probe.
//! - **Disproved by** a window that had room for the segment before the segment was sent.
//! - **Source:** RFC 9293, 3.8.6.1; `docs/how-it-decides.md`, 4.4.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let closed = wait.wait.window_closed && wait.window_was_full() && wait.window_released_it();
    (wait.is_window_probe() || closed)
        .then(|| Closed::proved(Cause::ZeroWindow).opened_before(wait.window_opened_before_ns()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::{Confidence, Kind};

    #[test]
    fn a_closed_window_holds_until_it_opens_or_is_probed() {
        check_gate(
            gate,
            &[
                (
                    "closed, and opened just before",
                    |wait, _| {
                        wait.wait.window_closed = true;
                        wait.wait.usable_window_before_bytes = some(0);
                        wait.wait.window_opened_ns = some(50_000);
                    },
                    Some(Confidence::Proved),
                ),
                ("a probe", |wait, _| wait.kind = Kind::ZeroWindowProbe, Some(Confidence::Proved)),
                ("closed meanwhile, with room for a segment before", |wait, _| wait.wait.window_closed = true, None),
            ],
        );
    }

    #[test]
    fn a_window_that_opened_long_before_did_not_hold_the_departure() {
        check_judge(&[(
            "it opened 8 ms before, and an ACK released this one",
            |wait, _| {
                wait.wait.window_closed = true;
                wait.wait.usable_window_before_bytes = some(0);
                wait.wait.window_opened_ns = some(8 * MS);
            },
            Some(Cause::SlowStart),
        )]);
    }
}
