//! Fuzz targets of the engine: bytes from anywhere must give rows or a clean problem, in bounded time and memory.
//!
//! Each target is a function of bytes that panics where a promise is broken. libFuzzer calls them (`fuzz_targets/`,
//! started by `./run`), and so do the tests, which replay the seeds and changes of them (`tests/seeds.rs`).
//!
//! - [`file`]: the bytes of a capture file, of any format and compression.
//! - [`merge`], [`engine`]: the bytes of one to four of them, read as one; and so by the engine with its three threads.
//! - [`ethernet`], [`loopback_cooked_raw`], [`atm`], [`erf`], [`wifi_ppp_other`], [`pseudo`], [`juniper`]: frames of one family
//!   of link types.
//! - [`segments`]: TCP segments between few endpoints, with any numbers in them.
//! - [`sender`], [`ledger`]: the same at any times; the waits of their senders, and the causes of these. Limits in memory are so low
//!   here that short inputs reach them (`small-limits` of the engine).
//!
//! All but the last two go through [`pipeline`], which does in one thread what the engine does in three, and checks what it gives;
//! [`totals`] says whether both gave the same.
//! [`bounds`] holds every input to its time and memory; [`memory`] counts.

pub mod bounds;
pub mod file;
pub mod files;
pub mod followed;
pub mod frames;
pub mod ledger;
pub mod memory;
pub mod pipeline;
pub mod sender;
pub mod tcp;
pub mod totals;

pub use file::file;
pub use files::{engine, merge};
pub use ledger::ledger;
pub use sender::sender;
pub use tcp::segments;

use pipeline::Account;

/// A target: tells what it read, and panics where a promise is broken.
pub type Target = fn(&[u8]) -> Account;

/// All targets by name.
pub const TARGETS: [(&str, Target); 13] = [
    ("file", file),
    ("merge", merge),
    ("engine", engine),
    ("ethernet", ethernet),
    ("loopback_cooked_raw", loopback_cooked_raw),
    ("atm", atm),
    ("erf", erf),
    ("wifi_ppp_other", wifi_ppp_other),
    ("pseudo", pseudo),
    ("juniper", juniper),
    ("segments", segments),
    ("sender", sender),
    ("ledger", ledger),
];

/// Ethernet, with all that can stand on it: VLAN tags, MPLS, `PPPoE`, tunnels, IP fragments.
pub fn ethernet(input: &[u8]) -> Account {
    frames::read(input, &frames::ETHERNET)
}

/// BSD loopback, Linux cooked captures, and IP without a link header.
pub fn loopback_cooked_raw(input: &[u8]) -> Account {
    frames::read(input, &frames::LOOPBACK_COOKED_RAW)
}

/// AAL5 PDUs: RFC 1483, Classical IP, `SunATM`.
pub fn atm(input: &[u8]) -> Account {
    frames::read(input, &frames::ATM)
}

/// ERF records: Ethernet, HDLC, AAL5 PDUs, ATM cells.
pub fn erf(input: &[u8]) -> Account {
    frames::read(input, &frames::ERF)
}

/// 802.11, PPP, and every other link type, known or not.
pub fn wifi_ppp_other(input: &[u8]) -> Account {
    frames::read(input, &frames::WIFI_PPP_OTHER)
}

/// Headers of capture tools and of systems, and what few have: AX.25, ARCNET, Fibre Channel, IEEE 1394, mPackets.
pub fn pseudo(input: &[u8]) -> Account {
    frames::read(input, &frames::PSEUDO)
}

/// Juniper's routers.
pub fn juniper(input: &[u8]) -> Account {
    frames::read(input, &frames::JUNIPER)
}
