//! The handshake of a connection: the times of its segments, and a guess which host is the client.

use super::rows::ClientKnownBy;
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Ports below 1024 are system ports, which are assigned to services (RFC 6335, 6). A host with a system port is the
/// server.
const FIRST_USER_PORT: u16 = 1024;
/// First bytes of a client's data.
const REQUESTS: [&[u8; 4]; 8] = [b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"CONN", b"PRI "];
/// First bytes of a server's data.
const ANSWERS: [&[u8; 4]; 2] = [b"HTTP", b"220 "];

/// The capture times of the three segments of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    pub syn_ts_ns: Nullable,
    pub synack_ts_ns: Nullable,
    pub ack_ts_ns: Nullable,
    pub synack_seen: bool,
    pub ack_seen: bool,
}

impl Handshake {
    pub(super) fn take_syn(&mut self, segment: &Segment, from_client: bool, answered: bool) {
        match (from_client, answered) {
            (true, false) if !self.synack_seen => self.syn_ts_ns = segment.ts_ns.into(),
            (false, true) if !self.synack_seen => {
                self.synack_seen = true;
                self.synack_ts_ns = segment.ts_ns.into();
            }
            _ => {}
        }
    }

    pub(super) fn take_ack(&mut self, segment: &Segment, from_client: bool) {
        if from_client && self.synack_seen && segment.flags.any(TcpFlags::ACK) {
            self.ack_seen = true;
            self.ack_ts_ns = segment.ts_ns.into();
        }
    }
}

/// Guesses the client from the first captured segment of a connection. Returns the kind of evidence, and whether the
/// segment's sender is the client.
pub(super) fn guess_client(segment: &Segment) -> (ClientKnownBy, bool) {
    if segment.flags.any(TcpFlags::SYN) {
        let answered = segment.flags.any(TcpFlags::ACK);
        return if answered { (ClientKnownBy::SynAck, false) } else { (ClientKnownBy::Syn, true) };
    }
    let data = segment.payload_start.to_be_bytes();
    if REQUESTS.contains(&&data) {
        return (ClientKnownBy::Data, true);
    }
    if ANSWERS.contains(&&data) {
        return (ClientKnownBy::Data, false);
    }
    let (low, high) = (segment.key.low().1, segment.key.high().1);
    let (from, to) = if segment.from_low { (low, high) } else { (high, low) };
    if from == to || (from >= FIRST_USER_PORT) == (to >= FIRST_USER_PORT) && from.abs_diff(to) < FIRST_USER_PORT {
        return (ClientKnownBy::First, true);
    }
    (ClientKnownBy::Port, from > to)
}
