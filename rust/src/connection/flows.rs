//! UDP datagrams → flows: who spoke first is the client, and each datagram knows how long its side was silent before.

use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::row::Nullable;
use crate::wire::{Datagram, FlowKey};

/// One row of the datagrams table; `schema.py` says what each column means.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // one fact has one home
pub struct DatagramRow {
    pub frame: u64,
    pub ts_ns: Nullable,
    pub flow: u32,
    pub from_client: bool,
    pub payload_bytes: u32,
    pub captured_payload_bytes: u32,
    pub fragments: u16,
    pub since_previous_ns: Nullable,
    pub since_other_ns: Nullable,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub path: u16,
}

/// One row of the flows table; `schema.py` says what each column means.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // one fact has one home
pub struct FlowRow {
    pub flow: u32,
    pub client: (IpAddr, u16),
    pub server: (IpAddr, u16),
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    client_is_low: bool,
    /// Time of the client's and of the server's last datagram.
    last_ts_ns: [Nullable; 2],
}

/// All UDP flows of a capture, by their endpoints.
#[derive(Debug, Default)]
pub struct Flows {
    hasher: RandomState,
    numbers: HashTable<u32>,
    all: Vec<Flow>,
}

impl Flows {
    /// Takes one datagram in.
    pub fn take(&mut self, datagram: &Datagram) -> DatagramRow {
        let number = self.find(datagram);
        let now = Nullable::from(datagram.ts_ns);
        let mut row = DatagramRow {
            frame: datagram.frame,
            ts_ns: now,
            flow: number,
            payload_bytes: datagram.payload_bytes,
            captured_payload_bytes: datagram.captured_payload_bytes,
            fragments: datagram.fragments,
            ip_id: datagram.ip.id,
            ttl: datagram.ip.ttl,
            path: datagram.path,
            ..DatagramRow::default()
        };
        if let Some(flow) = self.all.get_mut(number as usize) {
            row.from_client = datagram.from_low == flow.client_is_low;
            let [client, server] = &mut flow.last_ts_ns;
            let (own, other) = if row.from_client { (client, server) } else { (server, client) };
            row.since_previous_ns = now.since(*own);
            row.since_other_ns = now.since(*other);
            *own = now;
        }
        row
    }

    /// The rows of all flows, by number.
    #[must_use]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = FlowRow> + '_ {
        self.all.iter().enumerate().map(|(number, flow)| {
            let (low, high) = (flow.key.low(), flow.key.high());
            let (client, server) = if flow.client_is_low { (low, high) } else { (high, low) };
            FlowRow { flow: number as u32, client, server }
        })
    }

    fn find(&mut self, datagram: &Datagram) -> u32 {
        let (all, hasher) = (&self.all, &self.hasher);
        let hash = hasher.hash_one(datagram.key);
        let same = |at: &u32| all.get(*at as usize).is_some_and(|flow| flow.key == datagram.key);
        if let Some(found) = self.numbers.find(hash, same) {
            return *found;
        }
        let number = all.len() as u32;
        let rehash = |at: &u32| all.get(*at as usize).map_or(0, |flow| hasher.hash_one(flow.key));
        self.numbers.insert_unique(hash, number, rehash);
        self.all.push(Flow { key: datagram.key, client_is_low: datagram.from_low, last_ts_ns: Default::default() });
        number
    }
}
