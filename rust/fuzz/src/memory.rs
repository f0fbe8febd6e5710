//! Counts the allocations of each thread, so that the memory of an input can be limited.
#![allow(unsafe_code, reason = "an allocator cannot be written without; this one only counts and calls the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

/// Bytes that this thread has allocated and not freed. The number is negative if this thread frees memory of other
/// threads.
struct Account {
    live: Cell<isize>,
    peak: Cell<isize>,
}

thread_local! {
    // A constant without a destructor needs no allocation for its first use.
    static ACCOUNT: Account = const { Account { live: Cell::new(0), peak: Cell::new(0) } };
}

/// The count for all threads together. Tests run several inputs at once in one process, so tests cannot use this count.
#[cfg(feature = "libfuzzer")]
mod process {
    use std::sync::atomic::{AtomicIsize, Ordering};

    static LIVE: AtomicIsize = AtomicIsize::new(0);
    static PEAK: AtomicIsize = AtomicIsize::new(0);

    pub(super) fn count(bytes: isize) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }

    pub(super) fn reset() -> isize {
        let live = LIVE.load(Ordering::Relaxed);
        PEAK.store(live, Ordering::Relaxed);
        live
    }

    pub(super) fn peak() -> isize {
        PEAK.load(Ordering::Relaxed)
    }
}

fn count(bytes: isize) {
    #[cfg(feature = "libfuzzer")]
    process::count(bytes);
    ACCOUNT.with(|account| {
        let live = account.live.get().wrapping_add(bytes);
        account.live.set(live);
        account.peak.set(account.peak.get().max(live));
    });
}

// SAFETY: every call passes the caller's arguments unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // Both allocations can exist while the bytes are moved.
        count(new_bytes.cast_signed());
        count(-layout.size().cast_signed());
        unsafe { System.realloc(pointer, layout, new_bytes) }
    }
}

/// The result of `run`, and the peak of the memory that all threads allocated during `run`. In tests, which run at the
/// same time, only the memory of this thread is counted.
pub fn peak_of_all<T>(run: impl FnOnce() -> T) -> (T, usize) {
    #[cfg(feature = "libfuzzer")]
    {
        let before = process::reset();
        let result = run();
        (result, usize::try_from(process::peak() - before).unwrap_or(0))
    }
    #[cfg(not(feature = "libfuzzer"))]
    peak_of(run)
}

/// The result of `run`, and the peak of the memory that this thread allocated during `run`.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = ACCOUNT.with(|account| {
        account.peak.set(account.live.get());
        account.live.get()
    });
    let result = run();
    let peak = ACCOUNT.with(|account| account.peak.get());
    (result, usize::try_from(peak - before).unwrap_or(0))
}
