//! Close: the connection is closing. A retransmission no longer delays data that an application waits for, however long
//! the retransmission timer runs.
//!
//! - **Closed** in two cases. First, a FIN is retransmitted, only the FIN is unacknowledged, and the peer sends no data
//!   later. Second, anything is retransmitted to a receiver that had closed. A receiver had closed if its FIN came
//!   before the wait, and the sender sends a FIN too. The receiver then answers with a RST, or never acknowledges new
//!   data again.
//! - **Only possible** in the second case without a RST, because the path of a half-closed connection may have failed.
//! - **Opened by** the retransmission.
//! - **Disproved by** data of the peer after the FIN, or an ACK of the retransmitted bytes.
//! - **Source:** RFC 9293, 3.6; `docs/how-it-decides.md`, 4.2.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    if wait.is_late_fin() {
        return Some(Closed::proved(Cause::Close));
    }
    wait.is_to_closed_receiver()
        .then(|| Closed::consistent(Cause::Close).but_possible_if(!wait.direction.receiver_end.reset))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some, timed_out};
    use super::*;
    use crate::connection::{Confidence, Kind};
    use crate::wire::TcpFlags;

    fn late_fin(wait: &mut super::super::super::WaitRecord, direction: &mut super::super::super::DirectionFacts) {
        timed_out(wait, direction);
        wait.flags = TcpFlags(TcpFlags::FIN);
        wait.payload_bytes = 0;
        wait.wait.flight_after_bytes = some(1);
        direction.receiver_last_data_ts_ns = Some(1);
    }

    #[test]
    fn a_fin_sent_again_behind_all_data_is_the_close() {
        check_gate(
            gate,
            &[
                ("the FIN is all that is not acknowledged", late_fin, Some(Confidence::Proved)),
                (
                    "data are not acknowledged either",
                    |wait, direction| {
                        late_fin(wait, direction);
                        wait.wait.flight_after_bytes = some(1001);
                    },
                    None,
                ),
                (
                    "the other side sent data behind it",
                    |wait, direction| {
                        late_fin(wait, direction);
                        direction.receiver_last_data_ts_ns = Some(wait.ts_ns);
                    },
                    None,
                ),
            ],
        );
    }

    /// A retransmission of 31 bytes and the FIN, to a receiver that sent its own FIN 500 ms before.
    fn to_closed(wait: &mut super::super::super::WaitRecord, direction: &mut super::super::super::DirectionFacts) {
        timed_out(wait, direction);
        wait.flags = TcpFlags(TcpFlags::FIN);
        wait.payload_bytes = 31;
        wait.wait.flight_after_bytes = some(32);
        direction.finished = true;
        direction.receiver_end.closed_ts_ns = Some(wait.ts_ns - 500 * MS);
        direction.totals.ending.flight_after_bytes = some(32);
    }

    #[test]
    fn nobody_reads_what_is_sent_again_to_a_receiver_that_had_closed() {
        check_judge(&[
            ("nothing is acknowledged", to_closed, Some(Cause::Close)),
            (
                "the bytes are acknowledged: the receiver had only ended its own data",
                |wait, direction| {
                    to_closed(wait, direction);
                    direction.totals.ending.flight_after_bytes = some(0);
                },
                Some(Cause::Timeout),
            ),
            (
                "the receiver closed while the timer ran",
                |wait, direction| {
                    to_closed(wait, direction);
                    direction.receiver_end.closed_ts_ns = Some(wait.ts_ns - MS);
                },
                Some(Cause::Timeout),
            ),
            (
                "the sender itself has not closed",
                |wait, direction| {
                    to_closed(wait, direction);
                    direction.finished = false;
                },
                Some(Cause::Timeout),
            ),
        ]);
        check_gate(
            gate,
            &[
                ("silent", to_closed, Some(Confidence::Possible)),
                (
                    "a RST",
                    |wait, direction| {
                        to_closed(wait, direction);
                        direction.totals.ending.flight_after_bytes = some(0);
                        direction.receiver_end.reset = true;
                    },
                    Some(Confidence::Consistent),
                ),
            ],
        );
    }

    #[test]
    fn a_lost_fin_that_the_other_side_waited_for_is_a_timeout() {
        check_judge(&[
            ("nobody waited for it", late_fin, Some(Cause::Close)),
            (
                "the peer continued when the FIN came",
                |wait, direction| {
                    late_fin(wait, direction);
                    wait.kind = Kind::RtoRetransmit;
                    direction.receiver_last_data_ts_ns = Some(wait.ts_ns);
                },
                Some(Cause::Timeout),
            ),
        ]);
    }
}
