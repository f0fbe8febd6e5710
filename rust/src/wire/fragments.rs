//! Reassembles IP fragments (RFC 791, 3.2; RFC 8200, 4.5), with limits on memory and waiting time.
//!
//! The reassembly follows the rules of Linux (`net/ipv4/inet_fragment.c`, `ip_fragment.c`, `net/ipv6/reassembly.c`). If
//! fragments overlap, the whole datagram is dropped (RFC 5722; for IPv4 since Linux 4.19). A fragment without new bytes
//! is ignored.
//!
//! A fragment counts with its full length even if the capture truncated it. The bytes themselves matter only in the
//! first fragment, which contains the TCP header.

use std::collections::VecDeque;

use super::layers::{FragmentPlace, Layer};
use super::segment::{Ecn, IpEndpoints, IpFacts};

/// Maximum time from an IPv4 datagram's first fragment to its last one (Linux `ipfrag_time`).
const MAX_AGE_NS: i64 = 30_000_000_000;
/// Maximum time from an IPv6 datagram's first fragment to its last one (Linux `ip6frag_time`; RFC 8200, 4.5).
const MAX_AGE_V6_NS: i64 = 60_000_000_000;
/// Fragments have a multiple of this length, except the last fragment of a datagram.
const UNIT_BYTES: usize = 8;
/// Maximum number of incomplete datagrams. A further datagram replaces the oldest one.
const MAX_DATAGRAMS: usize = 1024;
/// Maximum number of bytes of all incomplete datagrams together (Linux `ipfrag_high_thresh`).
const MAX_BYTES: usize = 4 << 20;
/// Memory for the bookkeeping of one fragment, in bytes.
const PART_BYTES: usize = 64;
/// Largest datagram of IPv4 and IPv6 in bytes. Larger IPv6 packets (jumbograms) must not be fragmented.
const MAX_DATAGRAM_BYTES: usize = 65_535;

/// One IP fragment, according to its IP header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub facts: IpFacts,
    pub endpoints: IpEndpoints,
    pub place: FragmentPlace,
    /// The captured bytes of the payload.
    pub data: &'a [u8],
    /// Length of the payload on the wire.
    pub wire_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: [u64; 2],
    destination: [u64; 2],
    identification: u32,
    /// IP protocol number, or 0 for IPv6, where the protocol number does not distinguish datagrams (RFC 8200, 4.5).
    protocol: u8,
}

#[derive(Debug)]
struct Part {
    start: usize,
    end: usize,
    captured: Vec<u8>,
}

/// Contiguous received bytes, from one fragment or from several fragments that arrived in order. A fragment inside a
/// run is a duplicate.
#[derive(Debug)]
struct Run {
    start: usize,
    end: usize,
}

#[derive(Debug)]
struct Datagram {
    key: Key,
    max_age_ns: i64,
    first_ts_ns: Option<i64>,
    first_frame: u64,
    /// Length of the datagram's payload, or `None` until the last fragment has arrived.
    total_bytes: Option<usize>,
    /// The fragments in order of their offsets, without overlap.
    parts: Vec<Part>,
    /// The received runs in order of their offsets.
    runs: Vec<Run>,
    /// The IP header fields and the protocol number of the first fragment.
    head: Option<(IpFacts, u8)>,
    /// Whether any fragment has a CE mark, which gives the reassembled datagram a CE mark too (RFC 3168, 5.3).
    met_congestion: bool,
}

#[derive(Debug)]
pub(crate) struct Reassembled {
    pub facts: IpFacts,
    pub endpoints: IpEndpoints,
    pub layer: Layer,
    pub fragments: u16,
    /// The captured bytes of the payload, up to the first byte that is missing in the capture.
    pub data: Vec<u8>,
    pub wire_bytes: usize,
}

/// The dropped datagrams by reason. Each pair is the first frame of the first dropped datagram, and the number of
/// dropped datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenUp {
    pub incomplete: Option<(u64, u64)>,
    pub overlapping: Option<(u64, u64)>,
    pub impossible: Option<(u64, u64)>,
}

/// The reason why a fragment does not fit into its datagram.
enum Broken {
    Overlap,
    /// The fragment is empty, exceeds the largest datagram, ends after the last fragment, or claims to be the last
    /// fragment although later bytes have arrived.
    Impossible,
    /// The IPv6 fragment ends inside a unit, or it exceeds the largest datagram. Only the fragment is ignored, not its
    /// datagram.
    Unfit,
}

/// The incomplete datagrams, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Reassembler {
    waiting: VecDeque<Datagram>,
    waiting_bytes: usize,
    given_up: GivenUp,
}

impl Reassembler {
    /// Adds a fragment. Returns the datagram if it is now complete.
    pub(crate) fn add(&mut self, fragment: &Fragment<'_>, frame: u64, ts_ns: Option<i64>) -> Option<Reassembled> {
        self.expire(ts_ns);
        let key = Key {
            source: fragment.endpoints.source,
            destination: fragment.endpoints.destination,
            identification: fragment.place.identification,
            protocol: if fragment.endpoints.v6 { 0 } else { fragment.place.protocol },
        };
        let mut known = self.waiting.iter().position(|datagram| datagram.key == key);
        if let Some(at) = known
            && self.waiting.get(at).is_some_and(|datagram| datagram.is_too_old(ts_ns))
        {
            self.give_up(at);
            known = None;
        }
        let at = known.unwrap_or_else(|| {
            self.waiting.push_back(Datagram::new(key, fragment.endpoints.v6, frame, ts_ns));
            self.waiting.len() - 1
        });
        let datagram = self.waiting.get_mut(at)?;
        match datagram.add(fragment) {
            Ok(Some(kept_bytes)) => self.waiting_bytes += kept_bytes,
            Ok(None) => return None,
            Err(Broken::Unfit) => {
                note(&mut self.given_up.impossible, frame);
                if datagram.parts.is_empty() {
                    self.remove(at);
                }
                return None;
            }
            Err(Broken::Overlap) => {
                note(&mut self.given_up.overlapping, self.waiting.get(at)?.first_frame);
                self.remove(at);
                return None;
            }
            Err(Broken::Impossible) => {
                note(&mut self.given_up.impossible, self.waiting.get(at)?.first_frame);
                self.remove(at);
                return None;
            }
        }
        if !self.waiting.get(at)?.is_whole() {
            return None;
        }
        self.remove(at)?.reassemble(fragment.endpoints)
    }

    /// Ends the reassembly. Incomplete datagrams count as dropped.
    pub(crate) fn finish(mut self) -> GivenUp {
        while !self.waiting.is_empty() {
            self.give_up(0);
        }
        self.given_up
    }

    fn give_up(&mut self, at: usize) {
        if let Some(datagram) = self.remove(at) {
            note(&mut self.given_up.incomplete, datagram.first_frame);
        }
    }

    fn expire(&mut self, now_ns: Option<i64>) {
        while let Some(oldest) = self.waiting.front() {
            let has_room = self.waiting.len() < MAX_DATAGRAMS && self.waiting_bytes < MAX_BYTES;
            if has_room && !oldest.is_too_old(now_ns) {
                return;
            }
            self.give_up(0);
        }
    }

    fn remove(&mut self, at: usize) -> Option<Datagram> {
        let datagram = self.waiting.remove(at)?;
        self.waiting_bytes -= datagram.parts.iter().map(|part| PART_BYTES + part.captured.len()).sum::<usize>();
        Some(datagram)
    }
}

impl Datagram {
    fn new(key: Key, v6: bool, first_frame: u64, first_ts_ns: Option<i64>) -> Self {
        Self {
            key,
            max_age_ns: if v6 { MAX_AGE_V6_NS } else { MAX_AGE_NS },
            first_ts_ns,
            first_frame,
            total_bytes: None,
            parts: Vec::new(),
            runs: Vec::new(),
            head: None,
            met_congestion: false,
        }
    }

    /// Whether the datagram has waited too long for its fragments. The result is false if a capture time is unknown.
    fn is_too_old(&self, now_ns: Option<i64>) -> bool {
        now_ns.zip(self.first_ts_ns).is_some_and(|(now, first)| now.saturating_sub(first) > self.max_age_ns)
    }

    /// The end of the last received byte, as an offset in the datagram.
    fn reach(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// Adds a fragment. Returns the memory that the fragment needs, or `None` if the fragment has no new bytes.
    fn add(&mut self, fragment: &Fragment<'_>) -> Result<Option<usize>, Broken> {
        let place = fragment.place;
        let start = usize::from(place.offset);
        let end = Self::end(fragment)?;
        let behind_the_last = self.total_bytes.is_some_and(|total| end > total);
        let last_before_others =
            !place.more && (end < self.reach() || self.total_bytes.is_some_and(|total| end != total));
        if start == end || behind_the_last || last_before_others {
            return Err(Broken::Impossible);
        }
        if !place.more {
            self.total_bytes = Some(end);
        }
        if !self.add_run(start, end)? {
            return Ok(None);
        }
        if start == 0 {
            self.head = Some((fragment.facts, place.protocol));
        }
        self.met_congestion |= fragment.facts.ecn.0 == Ecn::CE;
        let captured = fragment.data.get(..end - start).unwrap_or(fragment.data).to_vec();
        let kept_bytes = PART_BYTES + captured.len();
        let at = self.parts.partition_point(|part| part.start < start);
        self.parts.insert(at, Part { start, end, captured });
        Ok(Some(kept_bytes))
    }

    /// The end of a fragment, as an offset in the datagram. All fragments except the last must end at a multiple of
    /// eight bytes. IPv4 drops the excess bytes; IPv6 treats them as an error.
    fn end(fragment: &Fragment<'_>) -> Result<usize, Broken> {
        let v6 = fragment.endpoints.v6;
        let end = usize::from(fragment.place.offset).saturating_add(fragment.wire_bytes);
        let inside_a_unit = if fragment.place.more { end % UNIT_BYTES } else { 0 };
        match (end > MAX_DATAGRAM_BYTES, inside_a_unit) {
            (false, 0) => Ok(end),
            (true, _) if !v6 => Err(Broken::Impossible),
            (false, more) if !v6 => Ok(end - more),
            _ => Err(Broken::Unfit),
        }
    }

    /// Records received bytes. Returns false if all of these bytes have arrived before.
    ///
    /// As in Linux, only a fragment that begins at the end of the last run extends a run. A fragment that repeats
    /// several earlier fragments is therefore recognized as a duplicate only if the earlier fragments arrived in order.
    fn add_run(&mut self, start: usize, end: usize) -> Result<bool, Broken> {
        let at = self.runs.partition_point(|run| run.end <= start);
        match self.runs.get(at) {
            Some(run) if run.start <= start && end <= run.end => return Ok(false),
            Some(run) if run.start < end => return Err(Broken::Overlap),
            _ => {}
        }
        match self.runs.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => self.runs.insert(at, Run { start, end }),
        }
        Ok(true)
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
        let (mut facts, protocol) = self.head?;
        if self.met_congestion {
            facts.ecn = Ecn(Ecn::CE);
        }
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
mod tests;
