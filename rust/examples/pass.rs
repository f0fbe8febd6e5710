//! Runs the engine up to one stage. `pass segments|accounts|ledger|details FILE…` reads the files as one capture,
//! merged by time, and prints the number of rows. `benchmarks/speed/instructions.py` compares the cost of successive
//! stages.
//!
//! - `segments`: segment rows without accounts
//! - `accounts`: the account and the row of each connection, without segment rows
//! - `ledger`: accounts, and every interval of every direction with its cause
//! - `details`: accounts, and the input of findings: sums, longest waits, deadlocks

use tcptrace_lab_core::engine::{Batch, Engine, Options};
use tcptrace_lab_core::ledger::{Cause, Worth};

/// Columns of the segments table that need no accounts.
const SEGMENT_COLUMNS: [&str; 8] = ["frame", "ts_ns", "conn", "seq", "ack", "payload_bytes", "kind", "rtt_ns"];
const LEDGER_COLUMNS: [&str; 5] = ["conn", "start_ns", "end_ns", "cause", "confidence"];

fn options(stage: &str) -> Option<Options> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let worth = |cause| Worth { cause, ns: 1, share: 0.0, of_client_alone: false, of_data_alone: false };
    let accounts = Options { columns: Some(Vec::new()), ..Options::default() };
    match stage {
        "segments" => Some(Options { columns: Some(owned(&SEGMENT_COLUMNS)), summaries: false, ..Options::default() }),
        "accounts" => Some(accounts),
        "ledger" => Some(Options { ledger: Some(owned(&LEDGER_COLUMNS)), ..accounts }),
        "details" => Some(Options { worth: Some(Cause::ALL.map(worth).to_vec()), ..accounts }),
        _ => None,
    }
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((options, files)) = arguments
        .split_first()
        .and_then(|(stage, files)| Some((options(stage)?, files)))
        .filter(|(_, files)| !files.is_empty())
    else {
        eprintln!("usage: pass segments|accounts|ledger|details FILE…");
        return 2.into();
    };
    match pass(files, options) {
        Ok(counts) => {
            println!("{counts}");
            0.into()
        }
        Err(error) => {
            eprintln!("{error}");
            1.into()
        }
    }
}

/// Reads all batches. Returns the number of rows as text.
fn pass(files: &[String], options: Options) -> Result<String, Box<dyn std::error::Error>> {
    let mut engine = Engine::open(files, options)?;
    let (mut segments, mut connections, mut intervals, mut notes) = (0, 0, 0, 0);
    while let Some(batch) = engine.next_batch()? {
        match batch {
            Batch::Segments(batch) => segments += batch.num_rows(),
            Batch::Connections(batch) => connections += batch.num_rows(),
            Batch::Ledger(batch) => intervals += batch.num_rows(),
            Batch::Notes(batch) => notes += batch.num_rows(),
            Batch::Accounts(_) | Batch::Datagrams(_) | Batch::Flows(_) => {}
        }
    }
    let (packets, details) = (engine.summary().packets, engine.details().count());
    Ok(format!(
        "{packets} packets, {segments} segments, {connections} connections, {intervals} intervals, {notes} notes, {details} details"
    ))
}
