//! Reassembles fragmented 802.11 frames (IEEE 802.11, 10.5), with limits on memory and waiting time.

use std::collections::VecDeque;

use super::cursor::Cursor;

/// Maximum time from a frame's first fragment to its last one (Linux `net/mac80211/rx.c`: 2 seconds).
const MAX_AGE_NS: i64 = 2_000_000_000;
/// Maximum number of fragments of a frame. The fragment number has four bits.
const MAX_FRAGMENTS: usize = 16;
/// Maximum number of incomplete frames. A further frame replaces the oldest one.
const MAX_FRAMES: usize = 64;
/// Maximum number of bytes of all incomplete frames together.
const MAX_BYTES: usize = 1 << 20;

/// Which fragment of which 802.11 frame this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The addresses of receiver and transmitter.
    pub stations: [u8; 12],
    /// Traffic identifier, or `None` for a frame without `QoS`. Each identifier has its own sequence numbers.
    pub traffic: Option<u8>,
    pub sequence: u16,
    pub number: u8,
    pub more: bool,
}

/// An 802.11 frame with its fragments. A complete frame stays stored, so that late duplicates of its fragments are
/// ignored.
#[derive(Debug)]
struct Waiting {
    place: Place,
    first_frame: u64,
    first_ts_ns: Option<i64>,
    /// The fragments by number: captured bytes, and length on the wire.
    fragments: [Option<(Vec<u8>, usize)>; MAX_FRAGMENTS],
    /// Number of fragments of the frame, or `None` until the last fragment has arrived.
    count: Option<usize>,
    is_complete: bool,
}

#[derive(Debug, Default)]
pub(super) struct WifiFragments {
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The 802.11 frames that were dropped incomplete: the capture's frame number of the first fragment of the first
    /// dropped frame, and the count of dropped frames.
    given_up: Option<(u64, u64)>,
}

impl WifiFragments {
    /// Adds the fragment at `cursor`. If the 802.11 frame is now complete, returns its content and the length of this
    /// content on the wire. The content ends at the first byte that was not captured.
    pub(super) fn add(
        &mut self,
        place: Place,
        cursor: &Cursor<'_>,
        frame: u64,
        ts_ns: Option<i64>,
    ) -> Option<(Vec<u8>, usize)> {
        self.expire(ts_ns);
        let known = self.waiting.iter().position(|waiting| waiting.is_of(&place));
        let at = known.unwrap_or_else(|| {
            self.waiting.push_back(Waiting::new(place, frame, ts_ns));
            self.waiting.len() - 1
        });
        let waiting = self.waiting.get_mut(at)?;
        let before = waiting.bytes();
        let added = waiting.add(place, cursor);
        let whole = waiting.take_if_complete();
        self.waiting_bytes = self.waiting_bytes - before + waiting.bytes();
        if added.is_err() {
            self.give_up(at);
        }
        whole
    }

    /// Ends the reassembly. Incomplete frames count as dropped.
    pub(super) fn finish(mut self) -> Option<(u64, u64)> {
        while !self.waiting.is_empty() {
            self.give_up(0);
        }
        self.given_up
    }

    fn expire(&mut self, now_ns: Option<i64>) {
        while let Some(oldest) = self.waiting.front() {
            let has_room = self.waiting.len() < MAX_FRAMES && self.waiting_bytes < MAX_BYTES;
            let is_too_old =
                now_ns.zip(oldest.first_ts_ns).is_some_and(|(now, first)| now.saturating_sub(first) > MAX_AGE_NS);
            if has_room && !is_too_old {
                return;
            }
            self.give_up(0);
        }
    }

    fn give_up(&mut self, at: usize) {
        let Some(waiting) = self.waiting.remove(at) else { return };
        self.waiting_bytes -= waiting.bytes();
        if !waiting.is_complete {
            let (first, count) = self.given_up.unwrap_or((waiting.first_frame, 0));
            self.given_up = Some((first, count + 1));
        }
    }
}

/// A contradiction between a fragment and earlier fragments of its frame.
struct Contradiction;

impl Waiting {
    fn new(place: Place, first_frame: u64, first_ts_ns: Option<i64>) -> Self {
        let fragments = std::array::from_fn(|_| None);
        Self { place, first_frame, first_ts_ns, fragments, count: None, is_complete: false }
    }

    fn is_of(&self, place: &Place) -> bool {
        let key = |place: &Place| (place.stations, place.traffic, place.sequence);
        key(&self.place) == key(place)
    }

    fn bytes(&self) -> usize {
        self.fragments.iter().flatten().map(|(captured, _)| captured.len()).sum()
    }

    fn add(&mut self, place: Place, cursor: &Cursor<'_>) -> Result<(), Contradiction> {
        let number = usize::from(place.number);
        let count = if place.more { self.count } else { Some(number + 1) };
        let is_behind_the_last = count.is_some_and(|count| number >= count || place.more && number + 1 >= count);
        if self.is_complete {
            return Ok(());
        }
        let behind_it = count.and_then(|count| self.fragments.get(count..)).unwrap_or_default();
        let has_some_behind = behind_it.iter().any(Option::is_some);
        if is_behind_the_last || has_some_behind || self.count.is_some_and(|known| count != Some(known)) {
            return Err(Contradiction);
        }
        self.count = count;
        if let Some(fragment @ None) = self.fragments.get_mut(number) {
            *fragment = Some((cursor.data.to_vec(), cursor.wire_bytes));
        }
        Ok(())
    }

    fn take_if_complete(&mut self) -> Option<(Vec<u8>, usize)> {
        let fragments = self.fragments.get_mut(..self.count?)?;
        if self.is_complete || fragments.iter().any(Option::is_none) {
            return None;
        }
        self.is_complete = true;
        let (mut data, mut wire_bytes) = (Vec::new(), 0);
        for (captured, bytes) in fragments.iter_mut().filter_map(Option::take) {
            // Content after a missing byte is dropped, because its offsets would be wrong.
            if data.len() == wire_bytes {
                data.extend(captured);
            }
            wire_bytes += bytes;
        }
        Some((data, wire_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Trust;
    use super::*;

    fn place(sequence: u16, number: u8, more: bool) -> Place {
        Place { stations: [1; 12], traffic: None, sequence, number, more }
    }

    fn add(fragments: &mut WifiFragments, place: Place, data: &[u8], ts_ns: i64) -> Option<Vec<u8>> {
        let cursor = Cursor { data, wire_bytes: data.len(), trust: Trust::Whole };
        fragments.add(place, &cursor, u64::from(place.number) + 1, Some(ts_ns)).map(|(data, _)| data)
    }

    #[test]
    fn fragments_in_any_order_become_the_frame_and_late_copies_are_ignored() {
        let mut fragments = WifiFragments::default();
        assert_eq!(add(&mut fragments, place(5, 2, false), b"end", 0), None);
        assert_eq!(add(&mut fragments, place(5, 0, true), b"begin ", 0), None);
        assert_eq!(add(&mut fragments, place(5, 0, true), b"again ", 0), None);
        assert_eq!(add(&mut fragments, place(5, 1, true), b"middle ", 0), Some(b"begin middle end".to_vec()));
        assert_eq!(add(&mut fragments, place(5, 2, false), b"end", 0), None);
        assert_eq!((fragments.waiting_bytes, fragments.finish()), (0, None));
    }

    #[test]
    fn a_frame_waits_for_two_seconds_and_is_then_given_up() {
        for (late_ns, is_whole) in [(0, true), (1, false)] {
            let mut fragments = WifiFragments::default();
            add(&mut fragments, place(5, 0, true), b"begin ", 0);
            assert_eq!(add(&mut fragments, place(5, 1, false), b"end", MAX_AGE_NS + late_ns).is_some(), is_whole);
            assert_eq!(fragments.finish(), (!is_whole).then_some((1, 2)));
        }
    }

    #[test]
    fn a_second_end_or_a_fragment_behind_the_end_gives_the_frame_up() {
        for second in [place(5, 1, true), place(5, 1, false), place(5, 3, true), place(5, 3, false)] {
            let mut fragments = WifiFragments::default();
            add(&mut fragments, place(5, 2, false), b"end", 0);
            add(&mut fragments, second, b"other", 0);
            let contradicts = second != place(5, 1, true);
            assert_eq!(fragments.waiting.is_empty(), contradicts, "{second:?}");
        }
    }

    #[test]
    fn an_end_before_a_known_fragment_gives_the_frame_up() {
        let mut fragments = WifiFragments::default();
        add(&mut fragments, place(5, 0, true), b"begin ", 0);
        add(&mut fragments, place(5, 5, true), b"far behind", 0);
        assert_eq!(add(&mut fragments, place(5, 1, false), b"end", 0), None);
        assert_eq!((fragments.waiting_bytes, fragments.finish()), (0, Some((1, 1))));
    }

    #[test]
    fn a_flood_of_first_fragments_stays_within_its_bounds() {
        let mut fragments = WifiFragments::default();
        let body = vec![0; 100_000];
        for sequence in 0..1000 {
            add(&mut fragments, place(sequence, 0, true), &body, 0);
            assert!(fragments.waiting.len() <= MAX_FRAMES && fragments.waiting_bytes <= MAX_BYTES + body.len());
        }
        assert_eq!(fragments.finish(), Some((1, 1000)));
    }
}
