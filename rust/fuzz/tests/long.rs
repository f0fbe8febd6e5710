//! Long inputs, with the known worst case of each list in the engine. libFuzzer tries only short inputs, which do not
//! show quadratic cost.

use tcptrace_lab_core::capture::{Frame, LinkType};
use tcptrace_lab_fuzz::bounds;
use tcptrace_lab_fuzz::pipeline::{Account, Pipeline};

const RAW: LinkType = 101;
const ERF: LinkType = 197;
/// Number of frames per input, which exceeds the limit of most lists in the engine.
const FRAMES: u32 = 100_000;

const FIN_AND_SYN: u8 = 3;
const SYN: u8 = 2;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;
const MORE_FRAGMENTS: u32 = 0x2000;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Reads the frames that `frame` makes from the numbers 0, 1, 2 and so on. `frame` returns the captured bytes, and the
/// number of bytes that the capture lacks.
fn read(link_type: LinkType, frames: u32, frame: impl Fn(u32) -> (Vec<u8>, u32)) -> Account {
    bounds::hold(&[], 0, || {
        let mut pipeline = Pipeline::default();
        for at in 0..frames {
            let (data, uncaptured_bytes) = frame(at);
            pipeline.take(&Frame {
                number: u64::from(at) + 1,
                ts_ns: Some(i64::from(at) * 1_000),
                link_type: Some(link_type),
                original_bytes: data.len() as u32 + uncaptured_bytes,
                data: &data,
            });
        }
        pipeline.finish()
    })
}

/// An IPv4 packet with length 0 in its header, so the frame's length counts. `fragment` is the second word of the
/// header.
fn ip(protocol: u8, fragment: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0];
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(rest);
    bytes
}

fn segment(from_client: bool, seq: u32, flags: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = if from_client { vec![0x9c, 0x40, 0, 80] } else { vec![0, 80, 0x9c, 0x40] };
    bytes.extend(seq.to_be_bytes());
    bytes.extend(1u32.to_be_bytes());
    bytes.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    let mut packet = ip(TCP, 0, &bytes);
    if !from_client {
        packet[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
    }
    packet
}

/// A handshake, followed by the segments from `segment_at`.
fn after_handshake(at: u32, segment_at: impl Fn(u32) -> (Vec<u8>, u32)) -> (Vec<u8>, u32) {
    match at {
        0 => (segment(true, 0, SYN), 0),
        1 => (segment(false, 0, SYN_ACK), 0),
        _ => segment_at(at),
    }
}

#[test]
fn a_large_flight_is_resent_as_a_whole_again_and_again() {
    read(RAW, 2 * FRAMES, |at| {
        after_handshake(
            at,
            |at| {
                if at < FRAMES { (segment(true, at, ACK), 1) } else { (segment(true, 1, ACK), FRAMES) }
            },
        )
    });
}

#[test]
fn a_hole_is_filled_byte_by_second_byte() {
    read(RAW, 3 * FRAMES, |at| {
        after_handshake(at, |at| (segment(true, if at == 2 { 1 << 30 } else { 2 * at }, ACK), 1))
    });
}

#[test]
fn a_large_flight_gets_bytes_in_its_middle() {
    read(RAW, 2 * FRAMES, |at| {
        after_handshake(at, |at| {
            let seq = if at < FRAMES { 2 * at } else { 2 * (at - FRAMES) + 1 };
            (segment(true, seq, ACK), 1)
        })
    });
}

#[test]
fn a_packet_comes_in_thousands_of_fragments() {
    let last = 8_000;
    read(RAW, FRAMES, |at| (ip(TCP, (at / last) << 16 | MORE_FRAGMENTS | (at % last), &[0; 8]), 0));
}

#[test]
fn every_fragment_waits_for_others() {
    read(RAW, FRAMES, |at| (ip(TCP, at << 16 | MORE_FRAGMENTS, &[0; 8]), 0));
}

#[test]
fn every_cell_is_of_another_channel() {
    let account = read(ERF, FRAMES, |at| {
        // ERF header: 8 bytes of time, type 3 (a cell), flags, record length, loss counter, length on the wire.
        let mut record = vec![0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 72, 0, 0, 0, 52];
        record.extend((at.wrapping_mul(7_919) << 4 & 0x0fff_fff0).to_be_bytes());
        record.extend([0; 48]);
        (record, 0)
    });
    assert_eq!(account.segments, 0, "no PDU ends");
}

#[test]
fn every_frame_comes_by_another_path_of_layers() {
    read(RAW, FRAMES, |at| {
        // The upper bits of a Weyl sequence look random and never repeat.
        let mut choices = (u64::from(at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let mut packet = segment(true, 1, ACK);
        for _ in 0..7 {
            packet = match choices % 3 {
                0 => ip(4, 0, &packet),
                1 => ip(137, 0, &[&[0, 0, 1, 0], packet.as_slice()].concat()),
                _ => ip(47, 0, &[&[0, 0, 8, 0], packet.as_slice()].concat()),
            };
            choices /= 3;
        }
        (packet, 0)
    });
}

#[test]
fn every_segment_opens_a_connection() {
    let account = read(RAW, FRAMES, |_| (segment(true, 1, FIN_AND_SYN), 0));
    assert_eq!(account.segments, u64::from(FRAMES));
}

/// Opens more connections at a time than the engine tracks. A connection that is closed to make room is returned once,
/// and its later segments open a new connection.
#[test]
fn more_connections_than_are_followed_take_turns() {
    let frames = 4 * FRAMES;
    let account = read(RAW, frames, |at| {
        // This step has no common factor with the number of hosts, so it visits all of them before the first one comes
        // again.
        let host = at.wrapping_mul(7_919) % (3 * FRAMES / 2);
        let flags = [SYN, ACK, FIN_AND_SYN, ACK][at as usize % 4];
        let mut packet = segment(true, at, flags);
        packet[12..16].copy_from_slice(&host.to_be_bytes());
        (packet, 0)
    });
    assert_eq!(account.segments, u64::from(frames));
}

#[test]
fn every_datagram_opens_a_flow() {
    read(RAW, FRAMES, |at| (ip(UDP, 0, &[at.to_be_bytes(), [0, 8, 0, 0]].concat()), 0));
}
