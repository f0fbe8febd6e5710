//! The timer that ended a stall.

use super::super::cause::Cause;
use crate::connection::Kind;
use crate::hosts::fixed_timer_ms;
use crate::sender::NS_PER_MS;

/// Longest ACK delay by a heartbeat timer of 200 ms, with a margin for the path (a heuristic).
const HEARTBEAT_NS: i64 = 215 * NS_PER_MS;

/// The timers that can end a stall, in the order of `STALL_TIMERS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StallTimer {
    /// A delayed-ACK timer of 40 ms.
    Ack40,
    /// A delayed-ACK timer of 50 ms.
    Ack50,
    /// A delayed-ACK timer of 100 ms.
    Ack100,
    /// A delayed-ACK timer of 200 ms.
    Ack200,
    /// A delayed-ACK timer that expires periodically, every 200 ms.
    AckHeartbeat,
    /// The retransmission timer.
    Retransmission,
    /// The tail-loss probe timer.
    TailProbe,
    /// The persist timer.
    Persist,
}

/// The facts that show which timer ended an interval.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The cause of the interval.
    pub cause: Cause,
    /// The kind of the segment that ended the wait.
    pub kind: Kind,
    /// Delay of the ACK that arrived during the wait.
    pub ack_late_ns: Option<i64>,
    /// Whether the receiver sends its delayed ACKs by a periodic timer (heartbeat).
    pub receiver_beats: bool,
}

impl Ended {
    /// The timer that ended the interval; `None` if no timer did.
    ///
    /// ```
    /// use tcptrace_lab_core::connection::Kind;
    /// use tcptrace_lab_core::ledger::Cause;
    /// use tcptrace_lab_core::ledger::summary::timers::{Ended, StallTimer};
    ///
    /// let cause = Cause::NagleDelayedAck;
    /// let ended = Ended { cause, kind: Kind::New, ack_late_ns: Some(41_000_000), receiver_beats: false };
    /// assert_eq!(ended.by(), Some(StallTimer::Ack40));
    /// ```
    #[must_use]
    pub fn by(&self) -> Option<StallTimer> {
        match self.kind {
            kind if self.cause == Cause::Timeout && kind.is_resent() => Some(StallTimer::Retransmission),
            Kind::TailProbe => Some(StallTimer::TailProbe),
            Kind::ZeroWindowProbe if self.cause != Cause::ReceiverWindow => Some(StallTimer::Persist),
            _ => self.by_ack(),
        }
    }

    fn by_ack(&self) -> Option<StallTimer> {
        let delayed = matches!(self.cause, Cause::NagleDelayedAck | Cause::DelayedAck);
        let late_ns = self.ack_late_ns.filter(|_| delayed)?;
        if self.receiver_beats && late_ns < HEARTBEAT_NS {
            return Some(StallTimer::AckHeartbeat);
        }
        match fixed_timer_ms(late_ns.div_euclid(NS_PER_MS))? {
            40 => Some(StallTimer::Ack40),
            50 => Some(StallTimer::Ack50),
            100 => Some(StallTimer::Ack100),
            200 => Some(StallTimer::Ack200),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Ended, Kind, NS_PER_MS, StallTimer};

    #[test]
    fn the_cause_the_segment_and_the_delay_show_the_timer() {
        use StallTimer::{Ack40, Ack50, Ack100, Ack200, AckHeartbeat, Persist, Retransmission, TailProbe};
        let table = [
            (Cause::Timeout, Kind::RtoRetransmit, None, false, Some(Retransmission)),
            (Cause::Timeout, Kind::TailProbe, None, false, Some(Retransmission)),
            (Cause::LossRecovery, Kind::TailProbe, None, false, Some(TailProbe)),
            (Cause::LossRecovery, Kind::Retransmit, None, false, None),
            (Cause::ZeroWindow, Kind::ZeroWindowProbe, None, false, Some(Persist)),
            (Cause::ReceiverWindow, Kind::ZeroWindowProbe, None, false, None),
            (Cause::DelayedAck, Kind::New, Some(34), false, None),
            (Cause::DelayedAck, Kind::New, Some(35), false, Some(Ack40)),
            (Cause::NagleDelayedAck, Kind::New, Some(50), false, Some(Ack50)),
            (Cause::NagleDelayedAck, Kind::New, Some(60), false, None),
            (Cause::NagleDelayedAck, Kind::New, Some(95), false, Some(Ack100)),
            (Cause::NagleDelayedAck, Kind::New, Some(214), false, Some(Ack200)),
            (Cause::NagleDelayedAck, Kind::New, Some(215), false, None),
            (Cause::NagleDelayedAck, Kind::New, Some(120), true, Some(AckHeartbeat)),
            (Cause::NagleDelayedAck, Kind::New, Some(215), true, None),
            (Cause::NagleDelayedAck, Kind::New, None, true, None),
            (Cause::Nagle, Kind::New, Some(40), false, None),
        ];
        for (cause, kind, late_ms, receiver_beats, expected) in table {
            let ended = Ended { cause, kind, ack_late_ns: late_ms.map(|ms: i64| ms * NS_PER_MS), receiver_beats };
            assert_eq!(ended.by(), expected, "{ended:?}");
        }
    }
}
