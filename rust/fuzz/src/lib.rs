//! Fuzz targets of the engine. Arbitrary bytes must produce rows or a clear problem, in limited time and memory.
//!
//! A target is a function of bytes that panics if an invariant is violated. libFuzzer calls the targets
//! (`fuzz_targets/`, started by `./run`). The tests call the targets too, with the seeds and with mutations of the
//! seeds (`tests/seeds.rs`).
//!
//! - [`file`]: the bytes of a capture file of any format and compression.
//! - [`merge`], [`engine`]: the bytes of one to four files, read as one capture. `engine` runs the engine with several
//!   threads.
//! - [`ethernet`], [`loopback_cooked_raw`], [`atm`], [`erf`], [`wifi_ppp_other`], [`pseudo`], [`juniper`]: frames of
//!   one family of link types.
//! - [`segments`]: TCP segments with arbitrary numbers between few endpoints.
//! - [`sender`], [`ledger`]: segments at arbitrary times, for the waits of the senders and the causes of the waits. The
//!   engine's feature `small-limits` lowers memory limits, so that short inputs reach the limits.
//!
//! All targets except `sender` and `ledger` use [`pipeline`], which does the work of the engine in one thread and
//! checks the results. [`totals`] compares the engine with the pipeline. [`bounds`] limits time and memory of every
//! input, and [`memory`] counts allocations.

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

/// Returns what the target read, or panics if an invariant is violated.
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

/// Ethernet and everything on it: VLAN tags, MPLS, `PPPoE`, tunnels, IP fragments.
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

/// 802.11, PPP, and all other link types, known or not.
pub fn wifi_ppp_other(input: &[u8]) -> Account {
    frames::read(input, &frames::WIFI_PPP_OTHER)
}

/// Pseudo-headers of capture tools and operating systems, and rare links: AX.25, ARCNET, Fibre Channel, IEEE
/// 1394, mPackets.
pub fn pseudo(input: &[u8]) -> Account {
    frames::read(input, &frames::PSEUDO)
}

/// Juniper routers.
pub fn juniper(input: &[u8]) -> Account {
    frames::read(input, &frames::JUNIPER)
}
