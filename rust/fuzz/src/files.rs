//! Targets: several capture files read as one, and the engine with its threads.
//!
//! An input is one byte of options, followed by files. Each file except the last begins with its length in two bytes
//! (little-endian). The last file takes the rest of the input.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Cursor;
use std::sync::Arc;

use tcptrace_lab_core::capture::{Capture, Frame};
use tcptrace_lab_core::engine::{Batch, Engine, Options};
use tcptrace_lab_core::error::CaptureError;

use crate::bounds::{self, Threads};
use crate::file::{MAX_WINDOW_BYTES, each_frame, is_compressed};
use crate::pipeline::{Account, Pipeline};
use crate::totals::Totals;

/// Numbers of rows per batch. Two bits of the first input byte select the number.
const BATCH_ROWS: [usize; 4] = [1, 7, 1024, 4096];
const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

/// Number of files: bits 0 and 1 of the first byte, plus one.
fn file_count(head: u8) -> usize {
    usize::from(head & 3) + 1
}

fn split(head: u8, mut rest: &[u8]) -> Vec<Arc<[u8]>> {
    let mut files: Vec<Arc<[u8]>> = Vec::new();
    for _ in 1..file_count(head) {
        let [low, high, tail @ ..] = rest else { break };
        let (file, after) = tail.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(tail.len()));
        files.push(file.into());
        rest = after;
    }
    files.push(rest.into());
    files
}

fn open(files: &[Arc<[u8]>]) -> Result<Capture, CaptureError> {
    let streams: Vec<_> = NAMES.into_iter().zip(files.iter().cloned().map(Cursor::new)).collect();
    Capture::from_streams(streams)
}

/// Memory for the decompression windows of an input.
fn window_bytes(files: &[Arc<[u8]>]) -> usize {
    files.iter().filter(|file| is_compressed(file)).count() * MAX_WINDOW_BYTES
}

/// A frame without its number. `due_ns` is the time by which frames are merged.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    due_ns: i64,
    digest: u64,
}

impl Seen {
    fn of(frame: &Frame<'_>) -> Self {
        let mut digest = DefaultHasher::new();
        (frame.link_type, frame.original_bytes, frame.data).hash(&mut digest);
        // A frame without a time directly follows the previous one.
        Self { due_ns: frame.ts_ns.unwrap_or(i64::MIN), digest: digest.finish() }
    }
}

/// Reads several files as one capture, and compares the result with the files alone. The next frame is always the
/// earliest of the files' next frames. If several are equally early, the frame of the first file is next.
pub fn merge(input: &[u8]) -> Account {
    let Some((&head, rest)) = input.split_first() else { return Account::default() };
    let files = split(head, rest);
    let account = bounds::hold(input, window_bytes(&files), || {
        let mut pipeline = Pipeline::default();
        if let Ok(mut capture) = open(&files) {
            let mut frames = 0;
            each_frame(&mut capture, files.len(), |frame| {
                frames += 1;
                assert!(files.len() == 1 || frame.number == frames, "frames are numbered over all files");
                pipeline.take(frame);
            });
        }
        pipeline.finish()
    });
    let Ok(mut capture) = open(&files) else { return account };
    let mut merged = Vec::new();
    let mut ends = each_frame(&mut capture, files.len(), |frame| merged.push(Seen::of(frame)));
    let (expected, mut expected_ends) = merged_by_hand(&files);
    assert!(merged == expected, "{} frames, or their order, where {} are expected", merged.len(), expected.len());
    // Each file ends once, so sorting by path gives the errors a fixed order.
    ends.sort_by(|one, other| one.path.cmp(&other.path));
    expected_ends.sort_by(|one, other| one.path.cmp(&other.path));
    let place = |error: &CaptureError| (error.path.clone(), error.kind, error.frame, error.offset);
    let (ends, expected_ends): (Vec<_>, Vec<_>) =
        (ends.iter().map(place).collect(), expected_ends.iter().map(place).collect());
    assert_eq!(ends, expected_ends, "files end otherwise together than alone");
    account
}

/// The expected result of merging: the files are read one by one, and merged in the simplest way.
fn merged_by_hand(files: &[Arc<[u8]>]) -> (Vec<Seen>, Vec<CaptureError>) {
    let mut ends = Vec::new();
    let mut queues: Vec<_> = Vec::new();
    for (name, file) in NAMES.into_iter().zip(files) {
        let mut seen = Vec::new();
        let mut capture = Capture::from_stream(name, Cursor::new(file.clone())).expect("opened with the others");
        ends.extend(each_frame(&mut capture, 1, |frame| seen.push(Seen::of(frame))));
        queues.push(seen.into_iter().peekable());
    }
    let mut merged = Vec::new();
    while let Some((_, at)) =
        queues.iter_mut().enumerate().filter_map(|(at, queue)| queue.peek().map(|seen| (seen.due_ns, at))).min()
    {
        merged.extend(queues[at].next());
    }
    (merged, ends)
}

/// Reads files with the engine as users do, with several threads and batches. For any batch size, the tables must equal
/// those of the single-threaded pipeline.
///
/// Bits of the first byte:
/// - 2 and 3: rows per batch
/// - 4: with UDP flows
/// - 5: only the first batch is read
/// - 6: with datagrams
pub fn engine(input: &[u8]) -> Account {
    let Some((&head, rest)) = input.split_first() else { return Account::default() };
    let files = split(head, rest);
    let Ok(mut capture) = open(&files) else { return Account::default() };
    let mut pipeline = Pipeline::default();
    pipeline.totals = Some(Totals::default());
    // The engine builds the rows of such a short capture at the end of the capture, with the resolution from all
    // headers.
    let mut ahead = open(&files).expect("opened before");
    each_frame(&mut ahead, files.len(), |_| ());
    pipeline.resolution_ns = ahead.info().resolution_ns;
    let mut frames = 0;
    let ends = each_frame(&mut capture, files.len(), |frame| {
        frames += 1;
        pipeline.take(frame);
    });
    let (account, totals) = pipeline.finish_with_totals();
    let mut expected = totals.expect("wanted");
    let [flows, first_only, datagrams] = [4, 5, 6].map(|bit| head >> bit & 1 == 1);
    for (table, is_wanted) in [("flows", flows), ("datagrams", datagrams)] {
        if !is_wanted {
            expected.forget(table);
        }
    }
    bounds::hold_threads(Threads::All, input, window_bytes(&files), || {
        let batch_rows = BATCH_ROWS[usize::from(head >> 2 & 3)];
        let options = Options { batch_rows, datagrams, flows, ..Options::default() };
        let mut engine = Engine::of(open(&files).expect("opened before"), options).expect("threads");
        let mut found = Totals::default();
        while let Some(batch) = engine.next_batch().expect("columns of one length") {
            match batch {
                Batch::Segments(batch) => found.add("segments", &batch),
                Batch::Datagrams(batch) => found.add("datagrams", &batch),
                Batch::Connections(batch) => found.add("connections", &batch),
                Batch::Flows(batch) => found.add("flows", &batch),
                Batch::Accounts(_) | Batch::Ledger(_) | Batch::Notes(_) => panic!("nobody asked for accounts"),
            }
            if first_only {
                return account;
            }
        }
        assert_eq!(found.first_difference(&expected), None, "a column of the engine's tables, and of one thread's");
        let summary = engine.summary();
        assert_eq!((summary.packets, summary.tcp_segments), (frames, account.segments), "frames and segments");
        assert_eq!(summary.udp_datagrams, account.datagrams, "datagrams");
        assert!(ends.is_empty() || !summary.complete(), "a file ended early, and nothing is said");
        account
    })
}
