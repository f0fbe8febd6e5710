//! Handshake: the segment is a SYN or SYN-ACK, or a retransmission of one.
//!
//! - **Closed** until the SYN is answered.
//! - **Opened by** the answer.
//! - **Disproved by** a segment without SYN.
//! - **Source:** RFC 9293, 3.5; RFC 6298, 2.1 (the first timeout is 1 s); `docs/how-it-decides.md`, 4.1.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    wait.is_syn().then(|| Closed::proved(Cause::Handshake))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_gate, check_judge};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;
    use crate::wire::TcpFlags;

    #[test]
    fn a_syn_belongs_to_the_handshake_and_nothing_else_does() {
        check_gate(
            gate,
            &[
                ("a SYN sent again", |wait, _| wait.flags = TcpFlags(TcpFlags::SYN), Some(Confidence::Proved)),
                ("data behind the handshake", |_, _| (), None),
            ],
        );
    }

    #[test]
    fn data_that_an_ack_releases_is_not_the_handshakes() {
        check_judge(&[
            (
                "the timer of the SYN ended the wait",
                |wait, _| {
                    wait.flags = TcpFlags(TcpFlags::SYN);
                    wait.wait.since_ack_ns = Nullable::NULL;
                },
                Some(Cause::Handshake),
            ),
            ("the ACK of data ended it", |_, _| (), Some(Cause::SlowStart)),
        ]);
    }
}
