//! Limits of time and memory for every input.

use std::time::{Duration, Instant};

use crate::memory;
use crate::pipeline::Account;

/// An input hangs if it takes more than a second per 100 KB.
const NS_PER_BYTE: u64 = 1_000_000_000 / 100_000;
/// Inputs below 100 KB have one second too.
const MIN_TIME: Duration = Duration::from_secs(1);
/// Memory for any input: buffers, the first slab of connections, the largest record (16 MiB) twice.
const BASE_BYTES: usize = 64 << 20;
/// Memory for each byte read: a connection takes about 3 kB, and the smallest frame that opens one is 40 bytes.
const BYTES_PER_BYTE: usize = 64;
/// Other programs use the machine too, so an input is slow only if it is slow in every trial.
const TRIALS: usize = 3;

/// Which memory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Memory of this thread.
    This,
    /// Memory of all threads.
    All,
}

/// Runs `run`, and panics if it takes more time or memory than the limits allow for the bytes that it read, decompressed
/// bytes included. `window_bytes` of memory are allowed in addition.
pub fn hold(input: &[u8], window_bytes: usize, run: impl Fn() -> Account) -> Account {
    hold_threads(Threads::This, input, window_bytes, run)
}

/// Runs `run` within the limits, counting the memory of `threads`.
pub fn hold_threads(threads: Threads, input: &[u8], window_bytes: usize, run: impl Fn() -> Account) -> Account {
    let mut fastest = Duration::MAX;
    let mut allowed = MIN_TIME;
    for _ in 0..TRIALS {
        let started = Instant::now();
        let (account, peak_bytes) = match threads {
            Threads::This => memory::peak_of(&run),
            Threads::All => memory::peak_of_all(&run),
        };
        fastest = fastest.min(started.elapsed());
        let bytes = input.len().max(account.bytes_read);
        let allowed_bytes = BASE_BYTES + window_bytes + BYTES_PER_BYTE * bytes;
        assert!(
            peak_bytes <= allowed_bytes,
            "{peak_bytes} bytes of memory for {bytes} bytes read; {allowed_bytes} are allowed"
        );
        allowed = MIN_TIME.max(Duration::from_nanos(NS_PER_BYTE * bytes as u64));
        if fastest <= allowed {
            return account;
        }
    }
    panic!("{fastest:?} for {} bytes of input; {allowed:?} are allowed", input.len());
}
