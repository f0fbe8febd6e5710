//! Reassembly of IP fragments (RFC 791, 3.2; RFC 8200, 4.5), bounded in memory and age.
//!
//! As in Linux, a datagram whose fragments overlap is given up as a whole (RFC 5722; for IPv4 since Linux 4.19), and an
//! exact copy of a fragment is ignored. Fragments that the capture cut count with their full length: the TCP header
//! stands in the first one, and lengths are all that is needed of the rest.

use std::collections::VecDeque;

use super::Layer;
use super::segment::{IpEndpoints, IpFacts};

/// Linux `ipfrag_time`: how long fragments wait for the rest.
const MAX_AGE_NS: i64 = 30_000_000_000;
/// Most datagrams that wait at a time; the oldest is given up first.
const MAX_DATAGRAMS: usize = 1024;
/// Linux `ipfrag_high_thresh`: most bytes that wait at a time.
const MAX_BYTES: usize = 4 << 20;
/// What a part costs beside its bytes.
const PART_BYTES: usize = 64;
/// IPv4 and IPv6 (without jumbograms, which may not be fragmented) reach no further.
const MAX_DATAGRAM_BYTES: usize = 65_535;

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentPlace {
    pub identification: u32,
    /// What the whole packet holds.
    pub protocol: u8,
    /// Bytes of the packet before it.
    pub offset: u16,
    /// Whether others follow.
    pub more: bool,
}

/// One fragment, as its IP header describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub facts: IpFacts,
    pub endpoints: IpEndpoints,
    pub place: FragmentPlace,
    /// Captured bytes of its part.
    pub data: &'a [u8],
    /// Bytes of its part on the wire.
    pub wire_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: [u64; 2],
    destination: [u64; 2],
    identification: u32,
    /// IPv6 tells datagrams apart without it (RFC 8200, 4.5), where it is 0 here.
    protocol: u8,
}

#[derive(Debug)]
struct Part {
    start: usize,
    end: usize,
    captured: Vec<u8>,
}

#[derive(Debug)]
struct Datagram {
    key: Key,
    first_ts_ns: Option<i64>,
    first_frame: u64,
    /// Known from the last fragment.
    total_bytes: Option<usize>,
    /// By offset, without overlap.
    parts: Vec<Part>,
    /// What the first fragment says.
    head: Option<(IpFacts, u8)>,
}

/// A datagram put together again.
#[derive(Debug)]
pub(crate) struct Reassembled {
    pub facts: IpFacts,
    pub endpoints: IpEndpoints,
    pub layer: Layer,
    /// How many fragments it came in.
    pub fragments: u16,
    /// Captured bytes up to the first that is missing.
    pub data: Vec<u8>,
    /// Length of the datagram's payload.
    pub wire_bytes: usize,
}

/// Datagrams that were given up, each reason with the frame of the first and how many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenUp {
    pub incomplete: Option<(u64, u64)>,
    pub overlapping: Option<(u64, u64)>,
    pub impossible: Option<(u64, u64)>,
}

/// Why a fragment gives its datagram up.
enum Broken {
    Overlap,
    /// It ends past the largest datagram or the last fragment, or inside a unit of eight bytes.
    Impossible,
}

/// The datagrams that wait for their missing fragments, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Reassembler {
    waiting: VecDeque<Datagram>,
    waiting_bytes: usize,
    given_up: GivenUp,
}

impl Reassembler {
    /// Takes a fragment in; gives the datagram if it is now whole.
    pub(crate) fn add(&mut self, fragment: &Fragment<'_>, frame: u64, ts_ns: Option<i64>) -> Option<Reassembled> {
        self.expire(ts_ns);
        let key = Key {
            source: fragment.endpoints.source,
            destination: fragment.endpoints.destination,
            identification: fragment.place.identification,
            protocol: if fragment.endpoints.v6 { 0 } else { fragment.place.protocol },
        };
        let at = self.waiting.iter().position(|datagram| datagram.key == key).unwrap_or_else(|| {
            self.waiting.push_back(Datagram {
                key,
                first_ts_ns: ts_ns,
                first_frame: frame,
                total_bytes: None,
                parts: Vec::new(),
                head: None,
            });
            self.waiting.len() - 1
        });
        let datagram = self.waiting.get_mut(at)?;
        match datagram.add(fragment) {
            Ok(kept_bytes) => self.waiting_bytes += kept_bytes,
            Err(broken) => {
                let first_frame = self.remove(at)?.first_frame;
                match broken {
                    Broken::Overlap => note(&mut self.given_up.overlapping, first_frame),
                    Broken::Impossible => note(&mut self.given_up.impossible, first_frame),
                }
                return None;
            }
        }
        if !self.waiting.get(at)?.is_whole() {
            return None;
        }
        self.remove(at)?.reassemble(fragment.endpoints)
    }

    /// What was given up, those that still wait counted in: the capture is at its end.
    pub(crate) fn finish(mut self) -> GivenUp {
        while let Some(datagram) = self.remove(0) {
            note(&mut self.given_up.incomplete, datagram.first_frame);
        }
        self.given_up
    }

    fn expire(&mut self, now_ns: Option<i64>) {
        while let Some(oldest) = self.waiting.front() {
            let age_ns = now_ns.zip(oldest.first_ts_ns).map_or(0, |(now, first)| now.saturating_sub(first));
            if age_ns <= MAX_AGE_NS && self.waiting.len() < MAX_DATAGRAMS && self.waiting_bytes < MAX_BYTES {
                return;
            }
            if let Some(datagram) = self.remove(0) {
                note(&mut self.given_up.incomplete, datagram.first_frame);
            }
        }
    }

    fn remove(&mut self, at: usize) -> Option<Datagram> {
        let datagram = self.waiting.remove(at)?;
        self.waiting_bytes -= datagram.parts.iter().map(|part| PART_BYTES + part.captured.len()).sum::<usize>();
        Some(datagram)
    }
}

impl Datagram {
    /// Takes a part in; gives the bytes kept of it.
    fn add(&mut self, fragment: &Fragment<'_>) -> Result<usize, Broken> {
        let place = fragment.place;
        let start = usize::from(place.offset);
        let end = start.saturating_add(fragment.wire_bytes);
        let ends_inside_a_unit = place.more && !fragment.wire_bytes.is_multiple_of(8);
        if end > MAX_DATAGRAM_BYTES || ends_inside_a_unit || self.total_bytes.is_some_and(|total| end > total) {
            return Err(Broken::Impossible);
        }
        let at = self.parts.partition_point(|part| part.start < start);
        if let Some(same) = self.parts.get(at)
            && (same.start, same.end) == (start, end)
        {
            return Ok(0);
        }
        let overlaps_next = self.parts.get(at).is_some_and(|next| next.start < end);
        let overlaps_previous =
            at.checked_sub(1).and_then(|at| self.parts.get(at)).is_some_and(|previous| previous.end > start);
        if overlaps_next || overlaps_previous {
            return Err(Broken::Overlap);
        }
        if !place.more {
            if self.parts.last().is_some_and(|last| last.end > end) {
                return Err(Broken::Impossible);
            }
            self.total_bytes = Some(end);
        }
        if start == 0 {
            self.head = Some((fragment.facts, place.protocol));
        }
        self.parts.insert(at, Part { start, end, captured: fragment.data.to_vec() });
        Ok(PART_BYTES + fragment.data.len())
    }

    fn is_whole(&self) -> bool {
        let mut reached = 0;
        for part in &self.parts {
            if part.start != reached {
                return false;
            }
            reached = part.end;
        }
        self.total_bytes == Some(reached)
    }

    fn reassemble(self, endpoints: IpEndpoints) -> Option<Reassembled> {
        let (facts, protocol) = self.head?;
        let wire_bytes = self.total_bytes?;
        let fragments = self.parts.len().min(usize::from(u16::MAX)) as u16;
        let mut data = Vec::with_capacity(wire_bytes);
        for part in self.parts {
            data.extend_from_slice(&part.captured);
            if data.len() < part.end {
                break;
            }
        }
        Some(Reassembled { facts, endpoints, layer: Layer::IpProtocol(protocol), fragments, data, wire_bytes })
    }
}

fn note(reason: &mut Option<(u64, u64)>, frame: u64) {
    let (first, count) = reason.unwrap_or((frame, 0));
    *reason = Some((first, count + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(offset: u16, data: &[u8], more: bool) -> Fragment<'_> {
        Fragment {
            facts: IpFacts::default(),
            endpoints: IpEndpoints::default(),
            place: FragmentPlace { identification: 7, protocol: 6, offset, more },
            data,
            wire_bytes: data.len(),
        }
    }

    #[test]
    fn fragments_in_any_order_become_the_datagram() {
        let mut reassembler = Reassembler::default();
        assert!(reassembler.add(&fragment(16, b"last", false), 1, Some(0)).is_none());
        assert!(reassembler.add(&fragment(0, b"first 8.", true), 2, Some(1)).is_none());
        let whole = reassembler.add(&fragment(8, b"second 8", true), 3, Some(2)).unwrap();
        assert_eq!(whole.data, b"first 8.second 8last");
        assert_eq!(whole.wire_bytes, 20);
        assert!(reassembler.finish().incomplete.is_none());
    }

    #[test]
    fn a_copy_of_a_fragment_is_ignored_and_an_overlap_gives_the_datagram_up() {
        let mut reassembler = Reassembler::default();
        assert!(reassembler.add(&fragment(0, b"first 8.", true), 1, None).is_none());
        assert!(reassembler.add(&fragment(0, b"first 8.", true), 2, None).is_none());
        assert!(reassembler.add(&fragment(0, b"sixteen bytes!!!", true), 3, None).is_none());
        assert!(reassembler.add(&fragment(8, b"rest", false), 4, None).is_none());
        let given_up = reassembler.finish();
        assert_eq!((given_up.overlapping, given_up.incomplete), (Some((1, 1)), Some((4, 1))));
    }

    #[test]
    fn a_fragment_waits_thirty_seconds_for_the_rest() {
        let mut reassembler = Reassembler::default();
        assert!(reassembler.add(&fragment(0, b"first 8.", true), 1, Some(0)).is_none());
        assert!(reassembler.add(&fragment(8, b"late", false), 2, Some(MAX_AGE_NS + 1)).is_none());
        assert_eq!(reassembler.finish().incomplete, Some((1, 2)));
    }

    #[test]
    fn a_flood_of_first_fragments_stays_within_its_bounds() {
        let mut reassembler = Reassembler::default();
        let part = [0; 8 * 1024];
        for identification in 0..10_000 {
            let mut fragment = fragment(0, &part, true);
            fragment.place.identification = identification;
            reassembler.add(&fragment, u64::from(identification), Some(0));
            assert!(reassembler.waiting.len() <= MAX_DATAGRAMS);
            assert!(reassembler.waiting_bytes <= MAX_BYTES + PART_BYTES + part.len());
        }
    }
}
