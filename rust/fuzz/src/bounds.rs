//! Limits of time and memory for every input.

use std::time::{Duration, Instant};

use crate::memory;
use crate::pipeline::Account;

/// Maximum time per byte of an input: one second per 100 KB.
const NS_PER_BYTE: u64 = 1_000_000_000 / 100_000;
/// Maximum time for a short input.
const MIN_TIME: Duration = Duration::from_secs(1);
/// Memory for any input: buffers, the first slab of connections, and twice the largest record (16 MiB).
const BASE_BYTES: usize = 64 << 20;
/// Memory per byte of an input. A connection takes about 3 kB, and the smallest frame that opens a connection has 40
/// bytes.
const BYTES_PER_BYTE: usize = 64;
/// Other programs use the machine too, so an input fails only if each of this many trials is too slow.
const TRIALS: usize = 3;

/// The threads whose memory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The current thread.
    This,
    /// All threads.
    All,
}

/// Runs `run`, and panics if it exceeds the limits of time or memory. The limits grow with the number of bytes that
/// `run` reads, including decompressed bytes. `window_bytes` of memory are allowed in addition.
pub fn hold(input: &[u8], window_bytes: usize, run: impl Fn() -> Account) -> Account {
    hold_threads(Threads::This, input, window_bytes, run)
}

/// Runs `run` within the limits of [`hold`], and counts the memory of `threads`.
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
