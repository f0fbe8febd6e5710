//! Extracts the TCP segment or UDP datagram from a frame. The module does not analyze TCP connections. It stores only
//! data that is needed to read later frames: fragments of IP packets ([`fragments`]) and of 802.11 frames
//! ([`wifi_fragments`]), cells of AAL5 PDUs ([`aal5`]), and the previous headers of connections with header compression
//! ([`vj`]).
//!
//! A loop over [`Layer`]s dissects a frame. Each step reads one header, moves the [`Cursor`] past the header, and
//! returns the next layer. The number of headers is limited, so deep nesting cannot hang the loop. A truncated or
//! contradictory header ends the loop with a [`Stop`], which contains the reason. No input causes a panic.

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

/// Maximum length of the payload of an AAL5 PDU in bytes, rounded up: the length field has 16 bits.
const MAX_PDU_BYTES: usize = 1 << 16;

/// A problem that affects several frames, with the first frame and the number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// What happened, for users.
    pub what: &'static str,
    /// Frame number of the first occurrence.
    pub first_frame: u64,
    /// Number of occurrences.
    pub count: u64,
}

/// Dissects frames. Stores incomplete packets (their fragments or cells), and the previous headers of connections with
/// header compression.
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
    /// The reasons why packets were not read, with frame numbers. Only frames that contain or complete several packets
    /// add reasons here.
    asides: Vec<(Stop, u64)>,
    paths: Paths,
}

/// The IP header of a reassembled datagram.
#[derive(Clone, Copy)]
struct Around {
    facts: IpFacts,
    endpoints: IpEndpoints,
    fragments: u16,
}

/// The position of a walk through headers: the layers read so far, and how often the walk halted.
#[derive(Clone, Copy)]
struct Position {
    path: Path,
    halts: usize,
}

/// The flow of the segment in a frame. `None` means only that the fast path does not handle the frame.
#[inline]
#[must_use]
pub fn usual_flow(frame: &Frame<'_>) -> Option<FlowKey> {
    if frame.link_type == Some(link::ETHERNET) { fast_path::flow(frame) } else { None }
}

impl Dissector {
    /// The stops that `read` has not returned, with their frame numbers. Each stop is returned once.
    pub fn asides(&mut self) -> impl Iterator<Item = (Stop, u64)> + '_ {
        self.asides.drain(..)
    }

    /// The names of the layer paths, indexed by the numbers in [`Segment::path`].
    #[must_use]
    pub fn path_names(&self) -> PathNames {
        self.paths.names.clone()
    }

    /// Dissects a frame and adds its TCP segment or UDP datagram to `packets`. If the function returns a [`Stop`], no
    /// packet is added. Several packets are added if an 802.11 frame contains several, or if an ATM cell ends two PDUs.
    /// A reassembled packet has the number of the frame that completes it, as in Wireshark. If the last cell of a PDU
    /// was lost, the PDU is recognized only when the next PDU of its channel ends. The PDU still has the frame number
    /// and time of its own last captured cell.
    ///
    /// # Errors
    /// A [`Stop`] with the reason why no packet was read from the frame.
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
        // Header bytes are counted only if the frame begins with Ethernet or AAL5, because record headers and
        // pseudo-headers were not transmitted.
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

    /// Reads an ERF record, which contains a packet, a PDU, or a cell that may end one or two PDUs.
    fn record(&mut self, cursor: &mut Cursor<'_>, frame: &Frame<'_>, packets: &mut Vec<Packet>) -> Result<(), Stop> {
        /// User cells have payload types 0 to 3. An odd payload type marks the last cell of a PDU (I.361, 2.2.4).
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

    /// Reads a PDU that was captured as a whole, not as cells. If snaplen truncated the PDU, its CRC cannot be checked.
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
        // `wire_bytes` includes the lost part of a damaged PDU. The length that was sent is in the trailer; if the
        // trailer is lost, it is in the IP header.
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

    /// Continues a walk after `halt`. `cursor` is at the position where the walk halted.
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

    /// Continues the walk at `layer`.
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
        // The innermost IP header is used, not the IP header of a tunnel around it.
        if let Some(around) = around.filter(|_| !inner.endpoints.is_set()) {
            (inner.ip, inner.endpoints) = (around.facts, around.endpoints);
        }
        let fragments = around.map_or(1, |around| around.fragments);
        self.innermost(&inner, cursor, &at.path, fragments, frame, packets)
    }

    /// Reads the packets in an 802.11 frame that contains several. If a packet cannot be read, the reason is added to
    /// the asides.
    fn aggregate(
        &mut self,
        cursor: &mut Cursor<'_>,
        at: &Position,
        frame: &Frame<'_>,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Stop> {
        let before = packets.len();
        // The packets share the frame, so header bytes are not counted for any of them.
        let frame = &Frame { data: &[], ..*frame };
        while let Some(part) = wifi::subframe(cursor) {
            let read = part.and_then(|mut part| self.onwards(Layer::Llc, &mut part, None, at, frame, packets));
            if let Err(stop) = read {
                self.asides.push((stop, frame.number));
            }
        }
        if packets.len() > before { Ok(()) } else { Err(Stop::NotTcp) }
    }

    /// Called at the end of the capture. Returns the problems of packets with missing fragments or cells.
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

/// Records the AAL5 PDU that carried the last packet, or the last fragment of that packet. `pdu_bytes` is the length of
/// the PDU's payload without padding, if known.
fn set_pdu(packets: &mut [Packet], atm: AtmFacts, pdu_bytes: Option<usize>, damaged: bool) {
    let Some(Packet::Tcp(segment)) = packets.last_mut() else { return };
    segment.atm = Some(atm);
    segment.damaged = damaged;
    // Bytes after the TCP payload, such as the FCS of a bridged frame, count as header bytes.
    let beside_data = pdu_bytes.and_then(|bytes| bytes.checked_sub(segment.payload_bytes as usize));
    segment.header_bytes = match beside_data.and_then(|bytes| u16::try_from(bytes).ok()) {
        _ if damaged || segment.header_bytes == 0 => 0,
        Some(bytes) => bytes,
        None => segment.header_bytes,
    };
}
