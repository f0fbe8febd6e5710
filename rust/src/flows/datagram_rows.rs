//! The rows of the UDP tables.

use std::net::IpAddr;

use super::histogram::Quantiles;
use crate::nullable::Nullable;

/// One row of the datagrams table.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each column
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

/// One row of the flows table.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each column
pub struct FlowRow {
    pub flow: u32,
    pub client: (IpAddr, u16),
    pub server: (IpAddr, u16),
    /// Response times of the server.
    pub echoes: Echoes,
    /// The figures of both directions, the client's direction first.
    pub directions: [FlowDirection; 2],
}

/// The response times of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echoes {
    /// Number of answers.
    pub samples: u64,
    /// Shortest time to an answer.
    pub min_ns: Nullable,
    /// Quantiles of the times to an answer.
    pub quantiles: Quantiles,
    /// Longest time to an answer.
    pub max_ns: Nullable,
}

/// The figures of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each column
pub struct FlowDirection {
    pub datagrams: u64,
    pub payload_bytes: u64,
    pub fragmented_datagrams: u64,
    pub min_payload_bytes: Option<u32>,
    pub mean_payload_bytes: Option<i64>,
    pub max_payload_bytes: Option<u32>,
    pub distinct_sizes: Option<usize>,
    pub first_ts_ns: Nullable,
    pub last_ts_ns: Nullable,
    pub rate_bps: Option<f64>,
    pub gap: Quantiles,
    pub gap_max_ns: Nullable,
    pub gap_variation: Option<f64>,
    pub missing_datagrams: Option<u64>,
    pub reordered_datagrams: Option<u64>,
}
