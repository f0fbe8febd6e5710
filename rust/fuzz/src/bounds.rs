//! The bounds that every input keeps: time and memory.

use std::time::{Duration, Instant};

use crate::memory;
use crate::pipeline::Account;

/// The promise: a hang is more than a second for each 100 KB.
const NS_PER_BYTE: u64 = 1_000_000_000 / 100_000;
/// Inputs below 100 KB have that second too.
const LEAST_TIME: Duration = Duration::from_secs(1);
/// Memory for any input: buffers, the first slab of connections, the largest record (16 MiB) twice.
const BASE_BYTES: usize = 64 << 20;
/// Memory for each byte read: a connection takes about three kilobytes, and the smallest frame that opens one is 40 bytes.
const BYTES_PER_BYTE: usize = 64;
/// Other programs use the machine too: an input is slow only if it is so every time.
const TRIALS: usize = 3;

/// Which memory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// This thread's.
    This,
    /// That of all threads.
    All,
}

/// Runs `run`, whose account tells the bytes that it read: what a compressed input expands to counts.
/// `window_bytes` more memory are allowed.
pub fn hold(input: &[u8], window_bytes: usize, run: impl Fn() -> Account) -> Account {
    hold_threads(Threads::This, input, window_bytes, run)
}

/// The same, where other threads may take part.
pub fn hold_threads(threads: Threads, input: &[u8], window_bytes: usize, run: impl Fn() -> Account) -> Account {
    let mut fastest = Duration::MAX;
    let mut allowed = LEAST_TIME;
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
        allowed = LEAST_TIME.max(Duration::from_nanos(NS_PER_BYTE * bytes as u64));
        if fastest <= allowed {
            return account;
        }
    }
    panic!("{fastest:?} for {} bytes of input; {allowed:?} are allowed", input.len());
}
