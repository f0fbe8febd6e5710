//! Data of one direction that is not acknowledged yet. RTT samples and ACK lags are measured from the capture times of
//! this data.

use std::num::{NonZeroU16, NonZeroU32};

use super::queue::Queue;
use crate::nullable::Nullable;
use crate::wire::Segment;

/// Maximum number of stored segments per direction, enough for 180 MB in flight with segments of 1,448 bytes. Segments
/// above the limit are not stored, so no RTT is measured with them.
const MAX_SEGMENTS: usize = 1 << 17;
/// Maximum number of stored segments while no segment of the peer has been captured. The limit is not 0, because the
/// capture can still contain ACKs of the peer later.
const MAX_SEGMENTS_UNANSWERED: usize = 1 << 10;
/// If an empty queue has more capacity than this, its memory is released.
const KEPT_CAPACITY: usize = 256;

/// The identity of one packet: capture time, frame number, TCP timestamp and IP ID. A retransmission of the packet
/// differs in at least one of these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Capture time.
    pub ts_ns: Nullable,
    pub frame: u64,
    /// TCP timestamp of the packet; `None` if the packet has no timestamp, or the timestamp 0.
    pub tsval: Option<NonZeroU32>,
    /// IP ID of the packet; `None` if the packet has no IP ID, or the IP ID 0. (Hosts that always send 0 do not number
    /// their packets.)
    pub ip_id: Option<NonZeroU16>,
}

impl Stamp {
    #[inline]
    pub(crate) fn of(segment: &Segment) -> Self {
        Self {
            ts_ns: segment.ts_ns.into(),
            frame: segment.frame,
            tsval: segment.options.timestamps.and_then(|(value, _)| NonZeroU32::new(value)),
            ip_id: segment.ip.id.and_then(NonZeroU16::new),
        }
    }
}

/// A range of bytes that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub start: i64,
    pub end: i64,
    /// The last packet that carried these bytes.
    pub stamp: Stamp,
    /// How often any byte of this range was retransmitted.
    pub resends: u16,
    /// Number of sequence numbers in this range that SYN and FIN occupy.
    controls: u8,
}

/// Earlier transmissions of unacknowledged bytes that are now retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// Time of the previous transmission of the first of these bytes.
    pub before_ts_ns: Nullable,
    /// Number of retransmissions of the byte with the most retransmissions, including this one.
    pub resends: u16,
}

/// The bytes that an ACK acknowledges for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// Capture time of the oldest acknowledged byte.
    pub oldest_ts_ns: Nullable,
    /// Capture time of the newest acknowledged segment, if it can start an RTT sample (Karn's algorithm).
    pub sample_from_ns: Nullable,
    /// The segment that ends with the last acknowledged byte.
    pub newest: Option<Newest>,
    /// Number of segments whose last byte is acknowledged for the first time.
    pub segments: u32,
    /// Number of acknowledged segments on the wire. A captured segment longer than the MSS counts as several.
    pub wire_segments: u32,
    /// Number of data bytes that are acknowledged for the first time.
    pub payload_bytes: i64,
    /// Capture time of the oldest segment whose TCP timestamp the ACK echoes.
    pub echoed_ts_ns: Nullable,
    /// Capture time of the SYN, if the SYN was sent once and the ACK covers only the SYN.
    pub syn_ts_ns: Nullable,
}

/// The segment that ends with the last byte that an ACK acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    /// Capture time of the segment's last transmission.
    pub ts_ns: Nullable,
    /// Bytes of data.
    pub payload_bytes: i64,
    /// Whether any byte of the segment was retransmitted.
    pub resent: bool,
    /// Whether a segment with lower sequence numbers was captured after this segment. The ACK may have waited for the
    /// segment that was captured later.
    pub overtaken: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    queue: Queue<Sent>,
}

impl Outstanding {
    /// Adds the bytes `start..end`, which are above all bytes sent before.
    #[inline(always)]
    pub(crate) fn push(&mut self, (start, end): (i64, i64), stamp: Stamp, controls: u8, resends: u16, answered: bool) {
        let most = if answered { MAX_SEGMENTS } else { MAX_SEGMENTS_UNANSWERED };
        if self.queue.len() < most {
            self.queue.push_back(Sent { start, end, stamp, resends, controls });
        }
    }

    /// Records another capture of the bytes `start..end`, which are below the highest offset sent. `resent` is true for
    /// a retransmission, and false for an original that was captured late. For a retransmission, returns the earlier
    /// transmissions if any of its bytes are still stored.
    pub(crate) fn seen_again(
        &mut self,
        start: i64,
        end: i64,
        stamp: Stamp,
        controls: u8,
        resent: bool,
    ) -> Option<Repeat> {
        let first = self.queue.partition_point(|sent| sent.end <= start);
        let mut repeat: Option<Repeat> = None;
        for sent in self.queue.iter_mut().skip(first).take_while(|sent| sent.start < end) {
            sent.resends = sent.resends.saturating_add(u16::from(resent));
            let repeat = repeat.get_or_insert(Repeat { before_ts_ns: sent.stamp.ts_ns, resends: 0 });
            repeat.resends = repeat.resends.max(sent.resends);
            sent.stamp = stamp;
        }
        if repeat.is_none() && self.queue.len() < MAX_SEGMENTS {
            self.queue.insert(first, Sent { start, end, stamp, resends: u16::from(resent), controls });
        }
        repeat.filter(|_| resent)
    }

    /// Releases the memory of the queue if it is empty. Called after a FIN, when no more data is expected.
    pub(crate) fn release(&mut self) {
        if self.queue.is_empty() {
            self.queue = Queue::default();
        }
    }

    /// The range that contains the byte at `offset`; `None` if the byte is not outstanding.
    pub(crate) fn at(&self, offset: i64) -> Option<&Sent> {
        let at = self.queue.partition_point(|sent| sent.end <= offset);
        self.queue.get(at).filter(|sent| sent.start <= offset)
    }

    /// Capture time of the SYN (offset 0) that `ack` answers, if the SYN was sent once and the ACK covers only the SYN.
    #[inline(always)]
    fn answered_syn(&self, ack: i64) -> Nullable {
        let syn =
            self.queue.front().filter(|sent| sent.start == 0 && sent.controls > 0 && sent.resends == 0 && ack > 0);
        let Some(syn) = syn else { return Nullable::NULL };
        let behind = self.queue.get(1).is_some_and(|next| next.start < ack);
        if behind { Nullable::NULL } else { syn.stamp.ts_ns }
    }

    /// Processes an ACK of all bytes below `ack`; bytes below `una` were acknowledged before. `echo` is the TCP
    /// timestamp that the ACK echoes, or 0.
    ///
    /// An ACK gives an RTT sample if it acknowledges up to the end of a segment and no acknowledged byte was
    /// retransmitted (Karn's algorithm). There is no sample either if a segment with lower sequence numbers was
    /// captured later than the segment at the end: the later segment then triggered the ACK.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, ack: i64, una: i64, echo: u32, mss_bytes: u32) -> Acknowledged {
        let mss = if mss_bytes > 0 { i64::from(mss_bytes) } else { i64::MAX };
        let mut found = Acknowledged::default();
        let mut newest: Option<Sent> = None;
        let mut resent = false;
        let mut latest_ts_ns = Nullable::default();
        found.syn_ts_ns = self.answered_syn(ack);
        while let Some(sent) = self.queue.front().copied() {
            if sent.start >= ack {
                break;
            }
            if sent.end <= una {
                // The range was captured again after its ACK, so this ACK gives no information about the range.
                self.queue.pop_front();
                continue;
            }
            if !found.oldest_ts_ns.is_some() {
                found.oldest_ts_ns = sent.stamp.ts_ns;
            }
            if echo != 0 && sent.stamp.tsval.is_some_and(|value| value.get() == echo) && !found.echoed_ts_ns.is_some() {
                found.echoed_ts_ns = sent.stamp.ts_ns;
            }
            found.payload_bytes += (sent.end.min(ack) - sent.start.max(una) - i64::from(sent.controls)).max(0);
            if sent.end > ack {
                found.wire_segments = found.wire_segments.saturating_add(((ack - sent.start) / mss) as u32);
                newest = None;
                if let Some(front) = self.queue.front_mut() {
                    front.start = ack;
                }
                break;
            }
            found.segments += 1;
            resent |= sent.resends > 0;
            if let Some(before) = newest {
                latest_ts_ns =
                    if before.stamp.ts_ns.value() > latest_ts_ns.value() { before.stamp.ts_ns } else { latest_ts_ns };
            }
            newest = Some(sent);
            let bytes = sent.end - sent.start;
            let pieces = if bytes <= mss { 1 } else { (bytes / mss + i64::from(bytes % mss > 0)) as u32 };
            found.wire_segments = found.wire_segments.saturating_add(pieces);
            self.queue.pop_front();
        }
        if self.queue.is_empty() && self.queue.capacity() > KEPT_CAPACITY {
            self.queue = Queue::default();
        }
        if let Some(sent) = newest.filter(|sent| sent.end == ack) {
            let overtaken = latest_ts_ns.value() > sent.stamp.ts_ns.value();
            let payload_bytes = sent.end - sent.start - i64::from(sent.controls);
            found.newest = Some(Newest { ts_ns: sent.stamp.ts_ns, payload_bytes, resent: sent.resends > 0, overtaken });
            if !resent && !overtaken {
                found.sample_from_ns = sent.stamp.ts_ns;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Newest, Nullable, Outstanding, Repeat, Stamp};

    fn at(ts_ns: i64) -> Nullable {
        Some(ts_ns).into()
    }

    fn seen(ts_ns: i64) -> Stamp {
        Stamp { ts_ns: at(ts_ns), tsval: std::num::NonZeroU32::new(ts_ns as u32), ..Stamp::default() }
    }

    fn two_segments() -> Outstanding {
        let mut sent = Outstanding::default();
        sent.push((1, 1001), seen(10), 0, 0, true);
        sent.push((1001, 2001), seen(20), 0, 0, true);
        sent
    }

    #[test]
    fn an_ack_of_two_samples_from_the_newest_and_lags_from_the_oldest() {
        let acknowledged = two_segments().acknowledge(2001, 1, 0, 1460);
        assert_eq!((acknowledged.oldest_ts_ns, acknowledged.sample_from_ns), (at(10), at(20)));
        assert_eq!((acknowledged.segments, acknowledged.payload_bytes), (2, 2000));
    }

    #[test]
    fn a_resent_segment_gives_no_sample() {
        let mut sent = two_segments();
        let repeat = sent.seen_again(1, 1001, seen(300), 0, true);
        assert_eq!(repeat, Some(Repeat { before_ts_ns: at(10), resends: 1 }));
        let acknowledged = sent.acknowledge(2001, 1, 0, 1460);
        assert_eq!((acknowledged.oldest_ts_ns, acknowledged.sample_from_ns), (at(300), Nullable::default()));
        let newest = Newest { ts_ns: at(20), payload_bytes: 1000, resent: false, overtaken: true };
        assert_eq!(acknowledged.newest, Some(newest));
    }

    #[test]
    fn a_segment_that_came_late_hides_the_sample_of_the_one_before_it() {
        let mut sent = Outstanding::default();
        sent.push((1001, 2001), seen(20), 0, 0, true);
        assert_eq!(sent.seen_again(1, 1001, seen(25), 0, false), None);
        let acknowledged = sent.acknowledge(2001, 1, 0, 1460);
        assert_eq!((acknowledged.oldest_ts_ns, acknowledged.sample_from_ns), (at(25), Nullable::default()));
    }

    #[test]
    fn an_ack_inside_a_segment_gives_a_lag_but_no_sample() {
        let mut sent = two_segments();
        let acknowledged = sent.acknowledge(501, 1, 0, 1460);
        assert_eq!((acknowledged.oldest_ts_ns, acknowledged.sample_from_ns), (at(10), Nullable::default()));
        assert_eq!((acknowledged.segments, acknowledged.payload_bytes, acknowledged.newest), (0, 500, None));
        let acknowledged = sent.acknowledge(1001, 501, 0, 1460);
        assert_eq!((acknowledged.oldest_ts_ns, acknowledged.sample_from_ns), (at(10), at(10)));
    }

    #[test]
    fn an_echoed_timestamp_shows_which_segment_let_the_ack_go() {
        assert_eq!(two_segments().acknowledge(2001, 1, 10, 1460).echoed_ts_ns, at(10));
        assert_eq!(two_segments().acknowledge(2001, 1, 20, 1460).echoed_ts_ns, at(20));
        assert_eq!(two_segments().acknowledge(2001, 1, 15, 1460).echoed_ts_ns, Nullable::default());
    }

    #[test]
    fn bytes_that_were_acknowledged_before_are_not_counted_again() {
        let mut sent = two_segments();
        sent.acknowledge(2001, 1, 0, 1460);
        sent.seen_again(1, 1001, seen(300), 0, true);
        let acknowledged = sent.acknowledge(2001, 2001, 0, 1460);
        assert_eq!((acknowledged.segments, acknowledged.payload_bytes, acknowledged.newest), (0, 0, None));
    }

    #[test]
    fn a_super_segment_counts_as_the_segments_that_it_becomes() {
        let mut sent = Outstanding::default();
        sent.push((1, 3622), seen(10), 0, 0, true); // 3,621 bytes: 1,460 + 1,460 + 701
        assert_eq!(sent.acknowledge(2921, 1, 0, 1460).wire_segments, 2);
        assert_eq!(sent.acknowledge(3622, 2921, 0, 1460).wire_segments, 1);
    }
}
