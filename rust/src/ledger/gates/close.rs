//! Close: a retransmitted FIN delays no byte once all data of both directions is delivered, however long its timer
//! runs.
//!
//! - **Closed** when a FIN is retransmitted, nothing but the FIN is unacknowledged, and the peer sends no data later.
//! - **Opened by** the retransmitted FIN.
//! - **Disproved by** data of either direction after the FIN.
//! - **Source:** RFC 9293, 3.6; `docs/how-it-decides.md`, 4.2.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    wait.is_late_fin().then(|| Closed::proved(Cause::Close))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_gate, check_judge, some, timed_out};
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

    #[test]
    fn a_lost_fin_that_the_other_side_waited_for_is_a_timeout() {
        check_judge(&[
            ("nobody waited for it", late_fin, Some(Cause::Close)),
            (
                "the other side went on when it came",
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
