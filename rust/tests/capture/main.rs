//! Tests of capture files that are handwritten, truncated and damaged at every byte, or compared with Wireshark's
//! tools.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod compressed;
mod erf;
mod hostile;
mod merged;
mod opened;
mod pcap;
mod pcapng;
mod support;
mod witness;
