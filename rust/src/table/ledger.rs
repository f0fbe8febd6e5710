//! The tables about waits and their causes: accounts, ledger, notes, and the evidence for findings.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, LargeListBuilder};
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};

use super::columns::{bits, texts, validity};
use super::{Column, batch, flags, maybe, numbers};
use crate::ledger::direction::DirectionFacts;
use crate::ledger::summary::kinds::Kind;
use crate::ledger::summary::locks::Lock;
use crate::ledger::summary::longest::{KeptWait, Proof};
use crate::ledger::summary::rows::{AccountRow, Bounds, DirectionDetails, LedgerRow, NoteRow};
use crate::ledger::summary::timers::{Ended, StallTimer};
use crate::ledger::{Cause, Interval};
use crate::nullable::Nullable;

/// One batch of the accounts table.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn accounts(rows: &[AccountRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<Column> = vec![("conn".into(), numbers::<UInt32Type, _>(rows, |row| row.conn))];
    for (side, name) in ["client", "server"].into_iter().enumerate() {
        columns.extend(Cause::ALL.map(|cause| {
            let ns = |row: &AccountRow| row.sums?.get(side)?.get(cause as usize).copied();
            (format!("{name}_{}_ns", cause.name().replace('-', "_")), maybe::<Int64Type, _>(rows, ns))
        }));
        columns.push((format!("{name}_rivals"), texts(rows, |row| row.rivals.get(side)?.names())));
    }
    batch(columns)
}

/// The schema of the batches of the accounts table.
///
/// # Errors
/// No error occurs in practice, because the batch behind the schema is empty.
pub fn accounts_schema() -> Result<SchemaRef, ArrowError> {
    accounts(&[]).map(|batch| batch.schema())
}

/// An interval of one direction, with the figures of the wait around it.
struct IntervalRow {
    conn: u32,
    from_client: bool,
    interval: Interval,
    proof: Option<Proof>,
    bounds: Bounds,
}

impl From<&LedgerRow> for IntervalRow {
    fn from(row: &LedgerRow) -> Self {
        let LedgerRow { conn, from_client, interval, proof, bounds } = *row;
        Self { conn, from_client, interval, proof, bounds }
    }
}

impl From<&Of<'_, KeptWait>> for IntervalRow {
    fn from(row: &Of<'_, KeptWait>) -> Self {
        let KeptWait { interval, proof, .. } = *row.value;
        let (from_client, bounds) = (row.direction.from_client, Bounds::of(row.direction));
        Self { conn: row.conn, from_client, interval, proof, bounds }
    }
}

impl IntervalRow {
    fn ack_late_ns(&self) -> Option<i64> {
        let lag_ns = self.proof?.ack_lag_ns.get()?;
        Some(lag_ns.saturating_sub(self.bounds.rtt_min_ns).max(0))
    }

    fn timer(&self) -> Option<StallTimer> {
        let (cause, kind) = (self.interval.cause, self.proof?.kind);
        let receiver_beats = self.bounds.receiver_beats;
        Ended { cause, kind, ack_late_ns: self.ack_late_ns(), receiver_beats }.by()
    }
}

type MakeColumn = fn(&[IntervalRow]) -> ArrayRef;

/// The columns of an interval: the columns of the ledger, and the columns of the wait around the interval
/// (`schema.WAITS`).
const WAIT_COLUMNS: [(&str, MakeColumn); 25] = [
    ("conn", |rows| numbers::<UInt32Type, _>(rows, |row| row.conn)),
    ("from_client", |rows| flags(rows, |row| row.from_client)),
    ("start_ns", |rows| numbers::<Int64Type, _>(rows, |row| row.interval.start_ns)),
    ("end_ns", |rows| numbers::<Int64Type, _>(rows, |row| row.interval.start_ns.saturating_add(row.interval.ns))),
    ("cause", |rows| numbers::<UInt8Type, _>(rows, |row| row.interval.cause as u8)),
    ("frame_before", |rows| maybe::<Int64Type, _>(rows, |row| row.interval.frame_before.map(|frame| frame as i64))),
    ("frame_after", |rows| maybe::<Int64Type, _>(rows, |row| row.interval.frame_after.map(|frame| frame as i64))),
    ("confidence", |rows| numbers::<UInt8Type, _>(rows, |row| row.interval.confidence as u8)),
    ("rivals", |rows| texts(rows, |row| row.interval.rivals.names())),
    ("kind", |rows| maybe::<UInt8Type, _>(rows, |row| row.proof.map(|proof| proof.kind as u8))),
    ("threshold_ns", |rows| numbers::<Int64Type, _>(rows, |row| row.bounds.threshold_ns)),
    ("base_rtt_ns", |rows| numbers::<Int64Type, _>(rows, |row| row.bounds.rtt_ns)),
    ("timer", |rows| maybe::<UInt8Type, _>(rows, |row| row.timer().map(|timer| timer as u8))),
    ("ack_frame", |rows| proved(rows, |proof| proof.ack_frame)),
    ("ack_lag_ns", |rows| proved(rows, |proof| proof.ack_lag_ns)),
    ("ack_late_ns", |rows| maybe::<Int64Type, _>(rows, IntervalRow::ack_late_ns)),
    ("flight_before_bytes", |rows| proved(rows, |proof| proof.flight_before_bytes)),
    ("flight_after_bytes", |rows| proved(rows, |proof| proof.flight_after_bytes)),
    ("usable_window_before_bytes", |rows| proved(rows, |proof| proof.usable_window_before_bytes)),
    ("smss_bytes", |rows| proved(rows, |proof| proof.smss_bytes)),
    ("payload_bytes", |rows| maybe::<Int64Type, _>(rows, |row| row.proof.map(|proof| proof.payload_bytes))),
    ("wait_ns", |rows| proved(rows, |proof| proof.wait_ns)),
    ("since_all_acked_ns", |rows| proved(rows, |proof| proof.since_all_acked_ns)),
    ("since_ack_ns", |rows| proved(rows, |proof| proof.since_ack_ns)),
    ("peer_spoke", |rows| {
        let values = bits(rows, |row| row.proof.is_some_and(|proof| proof.peer_spoke));
        Arc::new(BooleanArray::new(values, validity(rows, |row| row.proof.is_some())))
    }),
];

fn proved(rows: &[IntervalRow], value: fn(&Proof) -> Nullable) -> ArrayRef {
    maybe::<Int64Type, _>(rows, |row| value(&row.proof?).get())
}

/// The column names of the ledger.
#[must_use]
pub fn ledger_column_names() -> [&'static str; WAIT_COLUMNS.len()] {
    WAIT_COLUMNS.map(|(name, _)| name)
}

/// One batch of the ledger with these columns.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn ledger(rows: &[LedgerRow], columns: &[String]) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<IntervalRow> = rows.iter().map(IntervalRow::from).collect();
    let wanted = WAIT_COLUMNS.iter().filter(|(name, _)| columns.iter().any(|column| column == name));
    batch(wanted.map(|(name, make)| ((*name).into(), make(&rows))).collect())
}

/// One batch of notes.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn notes(rows: &[NoteRow]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        ("conn".into(), numbers::<UInt32Type, _>(rows, |row| row.conn)),
        ("frame".into(), numbers::<UInt64Type, _>(rows, |row| row.frame)),
        ("stall_cause".into(), maybe::<UInt8Type, _>(rows, |row| row.note.stall_cause.map(|cause| cause as u8))),
        ("caused_ns".into(), numbers::<Int64Type, _>(rows, |row| row.caused_ns)),
        ("short_nagle_delay".into(), flags(rows, |row| row.note.short_nagle_delay)),
        ("paused".into(), flags(rows, |row| row.note.paused)),
        ("is_resent".into(), flags(rows, |row| row.note.is_resent)),
    ])
}

/// The schema of the batches of the notes table.
///
/// # Errors
/// No error occurs in practice, because the batch behind the schema is empty.
pub fn notes_schema() -> Result<SchemaRef, ArrowError> {
    notes(&[]).map(|batch| batch.schema())
}

/// A value of one direction.
struct Of<'a, T> {
    conn: u32,
    direction: &'a DirectionFacts,
    value: &'a T,
}

/// The columns that identify a direction: connection, sender.
fn keys<T>(rows: &[Of<'_, T>]) -> Vec<Column> {
    vec![
        ("conn".into(), numbers::<UInt32Type, _>(rows, |row| row.conn)),
        ("from_client".into(), flags(rows, |row| row.direction.from_client)),
    ]
}

/// One row for each value of every direction.
fn rows_of<'a, T>(
    details: impl Iterator<Item = (u32, &'a DirectionDetails)>,
    values: fn(&'a DirectionDetails) -> &'a [T],
) -> Vec<Of<'a, T>> {
    details
        .flat_map(|(conn, of)| values(of).iter().map(move |value| Of { conn, direction: &of.direction, value }))
        .collect()
}

/// The table of causes: total time and number of waits for each cause in each direction.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn kinds<'a>(details: impl Iterator<Item = (u32, &'a DirectionDetails)>) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<Of<'_, Kind>> = rows_of(details, |of| &of.kinds);
    let mut columns = keys(&rows);
    columns.extend([
        ("cause".into(), numbers::<UInt8Type, _>(&rows, |row| row.value.cause as u8)),
        ("ns".into(), numbers::<Int64Type, _>(&rows, |row| row.value.ns)),
        ("waits".into(), numbers::<Int64Type, _>(&rows, |row| row.value.waits as i64)),
        ("sure_waits".into(), numbers::<Int64Type, _>(&rows, |row| row.value.sure_waits as i64)),
        ("sure_ns".into(), numbers::<Int64Type, _>(&rows, |row| row.value.sure_ns)),
        ("proved_ns".into(), numbers::<Int64Type, _>(&rows, |row| row.value.proved_ns)),
        ("median_ns".into(), numbers::<Float64Type, _>(&rows, |row| row.value.median_ns)),
    ]);
    batch(columns)
}

/// The table of the longest waits for each cause in each direction, with their evidence.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn waits<'a>(details: impl Iterator<Item = (u32, &'a DirectionDetails)>) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<Of<'_, KeptWait>> = rows_of(details, |of| &of.waits);
    let intervals: Vec<IntervalRow> = rows.iter().map(IntervalRow::from).collect();
    let place = |value: fn(&KeptWait) -> Option<u16>| {
        maybe::<Int64Type, _>(&rows, |row: &Of<'_, KeptWait>| value(row.value).map(i64::from))
    };
    let mut columns: Vec<Column> = WAIT_COLUMNS.iter().map(|(name, make)| ((*name).into(), make(&intervals))).collect();
    columns.extend([
        ("place".into(), place(|wait| wait.place)),
        ("place_in_cause".into(), place(|wait| wait.place_in_cause)),
        // A stall is an interval above a threshold that is equal for the whole direction. The stalls are therefore the
        // longest intervals. A stall has the same place among the stalls as among all intervals.
        ("place_in_stalls".into(), place(|wait| wait.place.filter(|_| wait.is_stall))),
    ]);
    batch(columns)
}

/// The table of throughput deadlocks, with at most one row per direction.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn locks<'a>(details: impl Iterator<Item = (u32, &'a DirectionDetails)>) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<Of<'_, Lock>> = rows_of(details, |of| of.lock.as_slice());
    let bytes = |value: fn(&Lock) -> i64| numbers::<Int64Type, _>(&rows, |row| value(row.value));
    let mut columns = keys(&rows);
    columns.extend([
        ("flight_bytes".into(), bytes(|lock| lock.flight_bytes)),
        ("min_flight_bytes".into(), bytes(|lock| lock.min_flight_bytes)),
        ("queued_bytes".into(), bytes(|lock| lock.queued_bytes)),
        ("min_buffer_bytes".into(), bytes(|lock| lock.min_buffer_bytes)),
        ("smss_bytes".into(), bytes(|lock| lock.smss_bytes)),
        ("window_bytes".into(), bytes(|lock| lock.window_bytes)),
        ("rounds".into(), numbers::<Int64Type, _>(&rows, |row| row.value.rounds as i64)),
        ("ns".into(), bytes(|lock| lock.ns)),
        ("median_ns".into(), bytes(|lock| lock.median_ns)),
        ("nagle".into(), flags(&rows, |row| row.value.nagle)),
        ("may_fill_buffer".into(), flags(&rows, |row| row.value.may_fill_buffer)),
        ("frames".into(), {
            let mut frames = LargeListBuilder::new(Int64Builder::new());
            for row in &rows {
                frames.append_value(row.value.frames.iter().map(|frame| Some(*frame as i64)));
            }
            Arc::new(frames.finish()) as ArrayRef
        }),
    ]);
    batch(columns)
}

/// The table of directions: capture point and base RTT.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn direction_facts<'a>(
    details: impl Iterator<Item = (u32, &'a DirectionDetails)>,
) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<Of<'_, DirectionDetails>> = rows_of(details, |of| std::slice::from_ref(of));
    let mut columns = keys(&rows);
    columns.extend([
        ("near_sender".into(), flags(&rows, |row| row.direction.near_sender)),
        ("to_sender_ns".into(), numbers::<Int64Type, _>(&rows, |row| row.direction.to_sender_ns)),
        ("base_rtt_ns".into(), numbers::<Int64Type, _>(&rows, |row| row.direction.rtt_ns)),
    ]);
    batch(columns)
}
