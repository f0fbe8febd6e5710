//! Targets: frames of one family of link types.
//!
//! The first byte of an input contains the first link type (bits 0 to 3, and above them bits 6 and 7) and the time of
//! the first frame (bits 4 and 5). The other bytes are frames. Each frame has a byte of [control](Control), two bytes
//! of length (little-endian), and its data. The last frame can be shorter than its length.

use tcptrace_lab_core::capture::{Frame, LinkType};

use crate::bounds;
use crate::pipeline::{Account, Pipeline};

/// The link types of a family with their numbers in tcpdump.org's LINKTYPE registry, at most 64.
pub type Family = [LinkType];

/// Link types of [`crate::ethernet`].
pub const ETHERNET: [LinkType; 1] = [1];
/// Link types NULL, LOOP, `LINUX_SLL`, `LINUX_SLL2`, RAW with all of its numbers, IPV4, IPV6.
pub const LOOPBACK_COOKED_RAW: [LinkType; 9] = [0, 108, 113, 276, 101, 12, 14, 228, 229];
/// Link types `ATM_RFC1483`, `ATM_CLIP`, `SUNATM`.
pub const ATM: [LinkType; 3] = [100, 106, 123];
/// Link type ERF.
pub const ERF: [LinkType; 1] = [197];
/// Link types `IEEE802_11` without and with radiotap, PPP in three forms, Cisco HDLC, Frame Relay, FDDI, Token Ring,
/// SLIP, ARCNET, NFLOG, `IPOIB`, an unassigned one, `PPP_WITH_DIR`, Cisco HDLC of NetBSD.
pub const WIFI_PPP_OTHER: [LinkType; 16] = [105, 127, 9, 50, 51, 104, 107, 10, 6, 8, 129, 239, 242, u32::MAX, 204, 112];
/// Link types `AX25`, `AX25_KISS`, `ARCNET`, `ENC` with both of its numbers, `PFLOG`, `PRISM_HEADER`, `AVS`,
/// `IP_OVER_FC`, `TZSP`, `APPLE_IP_OVER_IEEE1394`, `PKTAP`, `IPNET`, `SYMANTEC_FIREWALL`, `ETHERNET_MPACKET`, `PPI`.
pub const PSEUDO: [LinkType; 16] = [3, 202, 7, 13, 109, 117, 119, 163, 122, 128, 138, 258, 226, 99, 274, 192];
/// Link types `JUNIPER_…`: multilink PPP and Frame Relay, GGSN, ATM 2, services, ATM 1, `PPPoE`, Ethernet, PPP, Frame
/// Relay, Cisco HDLC, voice, secure tunnel.
pub const JUNIPER: [LinkType; 13] = [130, 131, 133, 135, 136, 137, 167, 178, 179, 180, 181, 183, 200];

/// Times of the first frame: 1970, 2023, and both limits of 64 bits.
const FIRST_TS_NS: [i64; 4] = [0, 1_700_000_000_000_000_000, i64::MAX - 1_000_000, -i64::MAX];
/// Times from one frame to the next: none, the RTTs of a fast and a slow path, a delayed ACK, one second, longer than
/// fragments are kept, and two steps backward.
const STEPS_NS: [i64; 8] = [0, 1_000, 1_000_000, 40_000_000, 1_000_000_000, 31_000_000_000, -1_000_000, -i64::MAX];
/// Numbers of bytes on the wire that the capture lacks.
const UNCAPTURED_BYTES: [u32; 4] = [0, 1, 1_400, 70_000];

/// The control byte of a frame.
struct Control {
    step_ns: i64,
    uncaptured_bytes: u32,
    has_time: bool,
    /// Added to the index of the first link type in its family.
    link: usize,
}

/// Splits a control byte. Bits 0 to 2 are the time step, bits 3 and 4 the missing bytes, and bits 6 and 7 the link
/// type. If bit 5 is set, the frame has no time.
fn control(byte: u8) -> Control {
    let bits = |shift: u8, mask: u8| usize::from(byte >> shift & mask);
    Control {
        step_ns: STEPS_NS[bits(0, 7)],
        uncaptured_bytes: UNCAPTURED_BYTES[bits(3, 3)],
        has_time: bits(5, 1) == 0,
        link: bits(6, 3),
    }
}

/// Reads the frames of `input` as frames of `family`.
pub fn read(input: &[u8], family: &Family) -> Account {
    let Some((&head, frames)) = input.split_first() else { return Account::default() };
    bounds::hold(input, 0, || {
        let mut pipeline = Pipeline::default();
        let mut ts_ns = FIRST_TS_NS[usize::from(head >> 4 & 3)];
        let first_link = usize::from(head & 0b1111 | head >> 2 & 0b11_0000);
        let mut number = 0;
        let mut rest = frames;
        while let [first, low, high, tail @ ..] = rest {
            let frame_bytes = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
            let (data, after) = tail.split_at(frame_bytes);
            rest = after;
            let Control { step_ns, uncaptured_bytes, has_time, link } = control(*first);
            // The engine uses the smallest number for null, so it is not a time.
            ts_ns = ts_ns.saturating_add(step_ns).max(-i64::MAX);
            number += 1;
            pipeline.take(&Frame {
                number,
                ts_ns: has_time.then_some(ts_ns),
                link_type: family.get((first_link + link) % family.len()).copied(),
                original_bytes: data.len() as u32 + uncaptured_bytes,
                data,
            });
        }
        pipeline.finish()
    })
}
