//! Extracts the TCP segment or UDP datagram from a frame, without analysis of connections.
//!
//! Some frames need data of earlier frames. The module therefore stores fragments of IP packets ([`fragments`]) and of
//! 802.11 frames ([`wifi_fragments`]), cells of AAL5 PDUs ([`aal5`]), and headers for header compression ([`vj`]).
//!
//! A loop over [`Layer`]s dissects a frame. Each step reads one header, moves the [`Cursor`] past it, and returns the
//! next layer. A limit on the number of headers keeps the loop finite. A truncated or contradictory header ends the
//! loop with a [`Stop`], which contains the reason. No input causes a panic.

mod aal5;
mod atm;
mod cursor;
mod erf;
mod ethernet;
mod fast_path;
mod fragments;
mod halt;
mod ip;
mod layers;
mod link;
mod segment;
mod tcp;
mod tunnel;
mod udp;
mod vj;
mod walk;
mod wifi;
mod wifi_fragments;

pub use aal5::aal5_cells;
pub use cursor::Stop;
pub use layers::PathNames;
pub use link::{link_name, link_supported};
pub use segment::{
    AtmFacts, Datagram, Ecn, FastOpen, FlowKey, IpFacts, Packet, SackBlocks, Segment, TcpFlags, TcpOptions,
};

use crate::capture::Frame;
use aal5::Cells;
use cursor::{Cursor, Trust};
use fragments::Reassembler;
use halt::Halt;
pub(crate) use layers::Layer;
use layers::{MAX_LAYERS, Path, Paths};
use segment::IpEndpoints;
use vj::Decompressor;
use walk::{Innermost, walk};
use wifi_fragments::WifiFragments;

/// Upper bound for the payload of an AAL5 PDU in bytes. The length field has 16 bits.
const MAX_PDU_BYTES: usize = 1 << 16;

/// A problem that can affect several frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Description of the problem for users.
    pub what: &'static str,
    /// Frame number of the first occurrence.
    pub first_frame: u64,
    /// Number of occurrences.
    pub count: u64,
}

/// Dissects frames. The dissector stores the fragments and cells of incomplete packets, and the previous headers of
/// connections with header compression.
///
/// ```
/// use tcptrace_lab_core::capture::Capture;
/// use tcptrace_lab_core::wire::{Dissector, Packet, TcpFlags};
///
/// let mut capture = Capture::open(&["../captures/ethernet-loss.pcapng"])?;
/// let (mut dissector, mut packets) = (Dissector::default(), Vec::new());
/// capture.advance()?;
/// assert_eq!(dissector.read(&capture.frame(), &mut packets), Ok(()));
/// let [Packet::Tcp(syn)] = packets[..] else { panic!("one TCP segment") };
/// assert_eq!((syn.flags.0, syn.options.mss), (TcpFlags::SYN, Some(1460)));
/// # Ok::<(), tcptrace_lab_core::error::CaptureError>(())
/// ```
#[derive(Debug, Default)]
pub struct Dissector {
    reassembler: Reassembler,
    wifi_fragments: WifiFragments,
    cells: Cells,
    decompressor: Decompressor,
    /// The reason why a packet was not read, and the frame number, for each unreadable packet in a frame that contains
    /// or completes several packets.
    asides: Vec<(Stop, u64)>,
    paths: Paths,
}

/// The IP header around a reassembled datagram.
#[derive(Clone, Copy)]
struct Around {
    facts: IpFacts,
    endpoints: IpEndpoints,
    fragments: u16,
}

/// The progress of a walk through headers: the layers read so far, and the number of halts.
#[derive(Clone, Copy)]
struct Position {
    path: Path,
    halts: usize,
}

/// The flow of the segment in a frame. `None` means that the fast path cannot read the frame; the frame can still
/// contain a segment.
#[inline]
#[must_use]
pub fn usual_flow(frame: &Frame<'_>) -> Option<FlowKey> {
    if frame.link_type == Some(link::ETHERNET) { fast_path::flow(frame) } else { None }
}

impl Dissector {
    /// Returns the stops that `read` has not returned, with their frame numbers. Each stop is returned only once.
    pub fn asides(&mut self) -> impl Iterator<Item = (Stop, u64)> + '_ {
        self.asides.drain(..)
    }

    /// The names of the layer paths, indexed by the numbers in [`Segment::path`].
    #[must_use]
    pub fn path_names(&self) -> PathNames {
        self.paths.names.clone()
    }

    /// Dissects a frame and adds its TCP segment or UDP datagram to `packets`.
    ///
    /// An 802.11 frame can contain several packets, and an ATM cell can end two PDUs. All packets of such a frame are
    /// added. A reassembled packet gets the number of the frame that completes it, as in Wireshark.
    ///
    /// A PDU that has lost its last cell is recognized only at the end of the channel's next PDU. The packet of the
    /// damaged PDU still has the frame number and time of the damaged PDU's own last captured cell.
    ///
    /// # Errors
    /// A [`Stop`] with the reason why the frame gave no packet.
    #[inline]
    pub fn read(&mut self, frame: &Frame<'_>, packets: &mut Vec<Packet>) -> Result<(), Stop> {
        let Some(link_type) = frame.link_type else { return Err(Stop::NotTcp) };
        if link_type == link::ETHERNET && fast_path::read(frame, packets) {
            return Ok(());
        }
        let wire_bytes = (frame.original_bytes as usize).max(frame.data.len());
        let mut cursor = Cursor { data: frame.data, wire_bytes, trust: Trust::Whole };
        if link_type == link::ERF {
            return self.record(&mut cursor, frame, packets);
        }
        let mut atm = None;
        let layer = link::first_layer(link_type, &mut cursor, &mut atm)?;
        let pdu_bytes = cursor.wire_bytes;
        self.inside(layer, &mut cursor, frame, packets)?;
        if let Some(atm) = atm {
            set_pdu(packets, atm, Some(pdu_bytes), false);
        }
        Ok(())
    }

    fn inside(
        &mut self,
        layer: Layer,
        cursor: &mut Cursor<'_>,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let mut path = Path::default();
        // Only an Ethernet or AAL5 header counts as header bytes. Record headers and pseudo-headers are never
        // transmitted.
        let data = if matches!(layer, Layer::Ethernet | Layer::Aal5) { cursor.data } else { &[] };
        let frame = &Frame { data, ..*frame };
        match walk(layer, cursor, &mut path) {
            Ok(inner) => self.innermost(&inner, cursor, &path, 1, frame, packets),
            Err(halt) => self.continued(&halt, cursor, &Position { path, halts: 0 }, frame, packets),
        }
    }

    fn innermost(
        &mut self,
        inner: &Innermost,
        cursor: &mut Cursor<'_>,
        path: &Path,
        fragments: u16,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let path = self.paths.number(path);
        match inner.udp_ports {
            None => tcp::read(cursor, frame, inner.ip, &inner.endpoints, path, packets),
            Some((source, destination)) => {
                let (key, from_low) = FlowKey::new(&inner.endpoints, source, destination);
                packets.push(Packet::Udp(Datagram {
                    frame: frame.number,
                    ts_ns: frame.ts_ns,
                    key,
                    from_low,
                    payload_bytes: cursor.wire_bytes as u32,
                    captured_payload_bytes: cursor.data.len() as u32,
                    fragments,
                    ip: inner.ip,
                    path,
                }));
                Ok(())
            }
        }
    }

    /// Reads an ERF record, which contains a packet, a PDU, or a cell.
    fn record(&mut self, cursor: &mut Cursor<'_>, frame: &Frame<'_>, packets: &mut Vec<Packet>) -> Result<(), Stop> {
        /// Largest payload type of a user cell. An odd payload type marks the last cell of a PDU (I.361, 2.2.4).
        const MAX_USER_TYPE: u8 = 3;
        let record = match erf::record(cursor)? {
            erf::Record::Layer(layer) => return self.inside(layer, cursor, frame, packets),
            record => record,
        };
        let header = u32::from_be_bytes(*cursor.take::<4>("ATM cell header")?);
        let channel = ((header >> 20 & 0xff) as u16, (header >> 4 & 0xffff) as u16);
        if record == erf::Record::Aal5 {
            return self.whole_pdu(channel, cursor, frame, packets);
        }
        let payload_type = (header >> 1 & 7) as u8;
        if payload_type > MAX_USER_TYPE {
            return Err(Stop::NotTcp);
        }
        let payload = cursor.take::<{ aal5::CELL_BYTES }>("ATM cell")?;
        let before = packets.len();
        for pdu in self.cells.add(channel, payload, payload_type & 1 == 1, (frame.number, frame.ts_ns)) {
            let (number, ts_ns) = pdu.seen;
            if let Err(stop) = self.pdu(&pdu, &Frame { number, ts_ns, ..*frame }, packets) {
                self.asides.push((stop, number));
            }
        }
        if packets.len() > before { Ok(()) } else { Err(Stop::NotTcp) }
    }

    /// Reads a PDU that was captured without cells. The CRC of a truncated PDU cannot be checked.
    fn whole_pdu(
        &mut self,
        channel: aal5::Channel,
        cursor: &mut Cursor<'_>,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let cells = (cursor.wire_bytes / aal5::CELL_BYTES) as u16;
        let is_cut = cursor.data.len() < cursor.wire_bytes;
        let damaged = !is_cut && !aal5::is_whole(cursor.data);
        if let (false, false, Some(length)) = (is_cut, damaged, aal5::payload_length(cursor.data)) {
            cursor.limit(length);
        }
        let pdu_bytes = cursor.wire_bytes;
        let read = self.inside(Layer::Aal5, cursor, frame, packets);
        if damaged && read.is_err() {
            return Err(Stop::DamagedPdu);
        }
        read?;
        set_pdu(packets, AtmFacts { channel: Some(channel), cells }, (!is_cut).then_some(pdu_bytes), damaged);
        Ok(())
    }

    fn pdu(&mut self, pdu: &aal5::Pdu, frame: &Frame<'_>, packets: &mut Vec<Packet>) -> Result<(), Stop> {
        // A damaged PDU was longer when it was sent. The trailer contains the sent length. If the trailer is lost, only
        // the IP header contains a length.
        let (wire_bytes, trust) = match (pdu.damaged, pdu.payload_bytes) {
            (false, _) => (pdu.data.len(), Trust::Whole),
            (true, Some(length)) => (length.max(pdu.data.len()), Trust::LengthOnly),
            (true, None) => (MAX_PDU_BYTES, Trust::Nothing),
        };
        let mut cursor = Cursor { data: &pdu.data, wire_bytes, trust };
        let read = self.inside(Layer::Aal5, &mut cursor, frame, packets);
        if pdu.damaged && read.is_err() {
            return Err(Stop::DamagedPdu);
        }
        read?;
        set_pdu(packets, pdu.atm, Some(wire_bytes), pdu.damaged);
        Ok(())
    }

    /// Continues a walk that has halted at `cursor`.
    #[cold]
    fn continued(
        &mut self,
        halt: &Halt<'_>,
        cursor: &mut Cursor<'_>,
        at: &Position,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let at = &Position { halts: at.halts + 1, ..*at };
        if at.halts > MAX_LAYERS {
            return Err(Stop::TooDeep);
        }
        let mut trust = Trust::Whole;
        let (layer, data, wire_bytes, around) = match *halt {
            Halt::Stop(stop) => return Err(stop),
            Halt::Aggregate => return self.aggregate(cursor, at, frame, packets),
            Halt::Fragment(ref fragment) => {
                let whole = self.reassembler.add(fragment, frame.number, frame.ts_ns).ok_or(Stop::Fragment)?;
                let around = Around { facts: whole.facts, endpoints: whole.endpoints, fragments: whole.fragments };
                (whole.layer, whole.data, whole.wire_bytes, Some(around))
            }
            Halt::WifiFragment(place) => {
                let whole = self.wifi_fragments.add(place, cursor, frame.number, frame.ts_ns);
                let (data, wire_bytes) = whole.ok_or(Stop::Fragment)?;
                (Layer::Llc, data, wire_bytes, None)
            }
            Halt::VanJacobson(form) => {
                let (data, wire_bytes) = self.decompressor.read(form, cursor)?;
                if !form.compressed {
                    trust = cursor.trust;
                }
                (Layer::Ipv4, data, wire_bytes, None)
            }
        };
        let mut cursor = Cursor { data: &data, wire_bytes, trust };
        self.onwards(layer, &mut cursor, around, at, frame, packets)
    }

    fn onwards(
        &mut self,
        layer: Layer,
        cursor: &mut Cursor<'_>,
        around: Option<Around>,
        at: &Position,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let mut at = *at;
        let mut inner = match walk(layer, cursor, &mut at.path) {
            Ok(inner) => inner,
            Err(halt) => return self.continued(&halt, cursor, &at, frame, packets),
        };
        // The innermost IP header is used. `around` applies only if the walk has found no further IP header.
        if let Some(around) = around.filter(|_| !inner.endpoints.is_set()) {
            (inner.ip, inner.endpoints) = (around.facts, around.endpoints);
        }
        let fragments = around.map_or(1, |around| around.fragments);
        self.innermost(&inner, cursor, &at.path, fragments, frame, packets)
    }

    /// Reads the packets in an 802.11 frame with several packets. The reasons for unreadable packets become asides.
    fn aggregate(
        &mut self,
        cursor: &mut Cursor<'_>,
        at: &Position,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let before = packets.len();
        // No header bytes are counted, because the packets share the headers of the frame.
        let frame = &Frame { data: &[], ..*frame };
        while let Some(part) = wifi::subframe(cursor) {
            let read = part.and_then(|mut part| self.onwards(Layer::Llc, &mut part, None, at, frame, packets));
            if let Err(stop) = read {
                self.asides.push((stop, frame.number));
            }
        }
        if packets.len() > before { Ok(()) } else { Err(Stop::NotTcp) }
    }

    /// Ends the dissection. Returns the problems with fragments and cells.
    #[must_use]
    pub fn incidents(self) -> Vec<Incident> {
        let given_up = self.reassembler.finish();
        let incomplete = "fragments of an IP packet are missing: the packet is not analyzed";
        let overlapping = "fragments of an IP packet overlap: the packet is discarded, as in Linux";
        let impossible = "an IP fragment ends beyond its packet or inside a unit of eight bytes: it is not analyzed";
        let wifi = "fragments of an 802.11 frame are missing: its content is not analyzed";
        let unfinished = "the last cell of an AAL5 PDU is missing: its content is not analyzed";
        [
            (incomplete, given_up.incomplete),
            (overlapping, given_up.overlapping),
            (impossible, given_up.impossible),
            (wifi, self.wifi_fragments.finish()),
            (unfinished, self.cells.finish()),
        ]
        .into_iter()
        .filter_map(|(what, seen)| seen.map(|(first_frame, count)| Incident { what, first_frame, count }))
        .collect()
    }
}

/// Sets the AAL5 PDU of the last packet. `pdu_bytes` is the length of the PDU's payload without padding, if known. A
/// fragmented packet gets the PDU of its last fragment.
fn set_pdu(packets: &mut [Packet], atm: AtmFacts, pdu_bytes: Option<usize>, damaged: bool) {
    let Some(Packet::Tcp(segment)) = packets.last_mut() else { return };
    segment.atm = Some(atm);
    segment.damaged = damaged;
    // Bytes after the TCP payload, such as the FCS of a bridged frame, count as header bytes too.
    let beside_data = pdu_bytes.and_then(|bytes| bytes.checked_sub(segment.payload_bytes as usize));
    segment.header_bytes = match beside_data.and_then(|bytes| u16::try_from(bytes).ok()) {
        _ if damaged || segment.header_bytes == 0 => 0,
        Some(bytes) => bytes,
        None => segment.header_bytes,
    };
}
