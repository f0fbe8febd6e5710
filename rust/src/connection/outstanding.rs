//! What one direction has sent and not yet seen acknowledged: the source of round-trip samples and ACK lags.

use std::collections::VecDeque;

use super::row::Nullable;

/// Most segments remembered per direction: a flight of 180 MB in segments of 1448 bytes. Past it the newest are not
/// remembered, so their samples are missing; nothing else changes.
const MAX_SEGMENTS: usize = 1 << 17;
/// The same where the other side was never seen (one direction captured only): its ACK may still come, for a while.
const MAX_SEGMENTS_UNANSWERED: usize = 1 << 10;
/// A queue that once grew past this gives its memory back when it runs empty.
const KEPT_CAPACITY: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Sent {
    start: i64,
    end: i64,
    /// When these bytes were last seen.
    ts_ns: Nullable,
    /// Whether any of these bytes was sent more than once.
    resent: bool,
}

/// What an ACK tells about the bytes that it acknowledges for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Time of the oldest byte.
    pub oldest_ts_ns: Nullable,
    /// Time of the newest segment, where Karn's rule admits it as the start of a round trip.
    pub sample_from_ns: Nullable,
}

/// The queue, ordered by offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    queue: VecDeque<Sent>,
}

impl Outstanding {
    /// Bytes `start..end` were sent, beyond all earlier ones.
    #[inline]
    pub(super) fn push(&mut self, start: i64, end: i64, ts_ns: Nullable, answered: bool) {
        let most = if answered { MAX_SEGMENTS } else { MAX_SEGMENTS_UNANSWERED };
        if self.queue.len() < most {
            self.queue.push_back(Sent { start, end, ts_ns, resent: false });
        }
    }

    /// Bytes `start..end`, below the highest sent, were seen now: again, or late for the first time.
    pub(super) fn seen_again(&mut self, start: i64, end: i64, ts_ns: Nullable, resent: bool) {
        let first = self.queue.partition_point(|sent| sent.end <= start);
        let mut overlaps = false;
        for sent in self.queue.range_mut(first..).take_while(|sent| sent.start < end) {
            sent.ts_ns = ts_ns;
            sent.resent |= resent;
            overlaps = true;
        }
        if !overlaps && self.queue.len() < MAX_SEGMENTS {
            self.queue.insert(first, Sent { start, end, ts_ns, resent });
        }
    }

    /// Gives the memory of an empty queue back: nothing more is expected.
    pub(super) fn release(&mut self) {
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
    }

    /// When the byte at `offset` was last seen, if it is outstanding.
    pub(super) fn last_seen(&self, offset: i64) -> Nullable {
        let at = self.queue.partition_point(|sent| sent.end <= offset);
        self.queue.get(at).filter(|sent| sent.start <= offset).map(|sent| sent.ts_ns).unwrap_or_default()
    }

    /// All bytes below `ack` were acknowledged.
    ///
    /// A sample needs that the segment whose end is acknowledged was sent once, that nothing else acknowledged with it
    /// was resent (Karn), that it is the one seen last (else a late one let the ACK go), and that the ACK ends on it.
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: i64) -> Acknowledged {
        let mut oldest: Option<Sent> = None;
        let mut newest: Option<Sent> = None;
        let mut admissible = true;
        while let Some(sent) = self.queue.front().copied() {
            if sent.end > ack {
                if sent.start < ack {
                    oldest.get_or_insert(sent);
                    admissible = false;
                    if let Some(front) = self.queue.front_mut() {
                        front.start = ack;
                    }
                }
                break;
            }
            admissible &= !sent.resent && newest.is_none_or(|before| before.ts_ns.value() <= sent.ts_ns.value());
            oldest.get_or_insert(sent);
            newest = Some(sent);
            self.queue.pop_front();
        }
        if self.queue.is_empty() && self.queue.capacity() > KEPT_CAPACITY {
            self.queue = VecDeque::new();
        }
        Acknowledged {
            oldest_ts_ns: oldest.map(|sent| sent.ts_ns).unwrap_or_default(),
            sample_from_ns: newest
                .filter(|sent| admissible && sent.end == ack)
                .map(|sent| sent.ts_ns)
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, Nullable, Outstanding};

    fn at(ts_ns: i64) -> Nullable {
        Some(ts_ns).into()
    }

    fn two_segments() -> Outstanding {
        let mut sent = Outstanding::default();
        sent.push(1, 1001, at(10), true);
        sent.push(1001, 2001, at(20), true);
        sent
    }

    #[test]
    fn an_ack_of_two_samples_from_the_newest_and_lags_from_the_oldest() {
        let acknowledged = two_segments().acknowledge(2001);
        assert_eq!(acknowledged, Acknowledged { oldest_ts_ns: at(10), sample_from_ns: at(20) });
    }

    #[test]
    fn a_resent_segment_gives_no_sample() {
        let mut sent = two_segments();
        sent.seen_again(1, 1001, at(300), true);
        let acknowledged = sent.acknowledge(2001);
        assert_eq!(acknowledged, Acknowledged { oldest_ts_ns: at(300), sample_from_ns: Nullable::default() });
    }

    #[test]
    fn a_segment_that_came_late_hides_the_sample_of_the_one_before_it() {
        let mut sent = Outstanding::default();
        sent.push(1001, 2001, at(20), true);
        sent.seen_again(1, 1001, at(25), false);
        assert_eq!(sent.acknowledge(2001), Acknowledged { oldest_ts_ns: at(25), sample_from_ns: Nullable::default() });
    }

    #[test]
    fn an_ack_inside_a_segment_gives_a_lag_but_no_sample() {
        let mut sent = two_segments();
        assert_eq!(sent.acknowledge(501), Acknowledged { oldest_ts_ns: at(10), sample_from_ns: Nullable::default() });
        assert_eq!(sent.acknowledge(1001), Acknowledged { oldest_ts_ns: at(10), sample_from_ns: at(10) });
    }
}
