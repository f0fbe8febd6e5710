//! Builds the messages table, and reads its input: segments and notes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{Int64Builder, LargeListBuilder};
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_schema::ArrowError;

use super::columns::{batch, flags, maybe, numbers};
use super::input::{at, booleans, values};
use crate::connection::Confidence;
use crate::ledger::{Cause, Note};
use crate::messages::{Message, Noted, Segment};

/// Reads segments. Categories must be codes.
///
/// # Errors
/// A column is missing or has another type.
pub fn segments_of_messages(rows: &RecordBatch) -> Result<impl Iterator<Item = Segment>, ArrowError> {
    let (frame, conn) = (values::<UInt64Type>(rows, "frame")?, values::<UInt32Type>(rows, "conn")?);
    let from_client = booleans(rows, "from_client")?;
    let (flag, kind) = (values::<UInt16Type>(rows, "flags")?, values::<UInt8Type>(rows, "kind")?);
    let number = |name| values::<Int64Type>(rows, name);
    let (ts_ns, seq, ack, payload_bytes) = (number("ts_ns")?, number("seq")?, number("ack")?, number("payload_bytes")?);
    let (acked, unseen, smss) = (number("acked_bytes")?, number("acked_unseen_bytes")?, number("smss_bytes")?);
    Ok((0..rows.num_rows()).map(move |place| Segment {
        conn: conn.value(place),
        from_client: from_client.value(place),
        frame: frame.value(place) as i64,
        ts_ns: at(ts_ns, place),
        seq: seq.value(place),
        ack: at(ack, place),
        payload_bytes: payload_bytes.value(place),
        flags: flag.value(place),
        kind: kind.value(place),
        acked_bytes: at(acked, place).unwrap_or(0),
        acked_unseen_bytes: at(unseen, place).unwrap_or(0),
        smss_bytes: at(smss, place),
    }))
}

/// Reads notes from a batch of the notes table. Categories must be codes.
///
/// # Errors
/// A column is missing or has another type.
pub fn noted(rows: &RecordBatch) -> Result<impl Iterator<Item = Noted>, ArrowError> {
    let (frame, cause) = (values::<UInt64Type>(rows, "frame")?, values::<UInt8Type>(rows, "stall_cause")?);
    let caused_ns = values::<Int64Type>(rows, "caused_ns")?;
    let (short_nagle_delay, paused) = (booleans(rows, "short_nagle_delay")?, booleans(rows, "paused")?);
    let is_resent = booleans(rows, "is_resent")?;
    Ok((0..rows.num_rows()).map(move |place| Noted {
        frame: frame.value(place) as i64,
        note: Note {
            stall_cause: at(cause, place).and_then(|code| Cause::ALL.get(usize::from(code)).copied()),
            short_nagle_delay: short_nagle_delay.value(place),
            paused: paused.value(place),
            is_resent: is_resent.value(place),
        },
        caused_ns: caused_ns.value(place),
    }))
}

/// One batch of the messages table.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn messages(rows: &[Message]) -> Result<RecordBatch, ArrowError> {
    let number = |value: fn(&Message) -> i64| numbers::<Int64Type, _>(rows, value);
    let optional = |value: fn(&Message) -> Option<i64>| maybe::<Int64Type, _>(rows, value);
    let mut writes = LargeListBuilder::new(Int64Builder::new());
    let mut confidences: Vec<Option<Confidence>> = Vec::with_capacity(rows.len());
    for row in rows {
        let sizes = row.writes();
        let fits = sizes.as_ref().map(|sizes| row.writes_fit(sizes));
        confidences.push(fits.map(|fits| if fits { Confidence::Consistent } else { Confidence::Possible }));
        writes.append_option(sizes.map(|sizes| sizes.into_iter().map(Some)));
    }
    batch(vec![
        ("conn".into(), numbers::<UInt32Type, _>(rows, |row| row.conn)),
        ("from_client".into(), flags(rows, |row| row.from_client)),
        ("index".into(), number(|row| row.index)),
        ("start_offset".into(), number(|row| row.start_offset)),
        ("payload_bytes".into(), number(|row| row.end_offset.saturating_sub(row.start_offset))),
        ("segments".into(), number(|row| row.segments)),
        ("first_frame".into(), number(|row| row.first_frame)),
        ("last_frame".into(), number(|row| row.last_frame)),
        ("stall_frame".into(), optional(|row| row.stall_frame)),
        ("first_ts_ns".into(), optional(|row| row.first_ts_ns)),
        ("last_ts_ns".into(), optional(|row| row.last_ts_ns)),
        ("acked_ts_ns".into(), optional(|row| row.acked_ts_ns)),
        ("answer_ts_ns".into(), optional(Message::answer_ts_ns)),
        ("transfer_ns".into(), optional(|row| Some(row.last_ts_ns?.saturating_sub(row.first_ts_ns?)))),
        ("stalled_ns".into(), number(|row| row.stalled_ns)),
        ("stall_cause".into(), maybe::<UInt8Type, _>(rows, |row| row.stall_cause().map(|cause| cause as u8))),
        ("short_nagle_wait_ns".into(), number(|row| row.short_nagle_wait_ns)),
        ("short_nagle_wait_frame".into(), optional(|row| row.short_nagle_wait_frame)),
        ("writes_inferred".into(), Arc::new(writes.finish())),
        ("writes_confidence".into(), maybe::<UInt8Type, _>(&confidences, |of| of.map(|confidence| confidence as u8))),
        ("state".into(), numbers::<UInt8Type, _>(rows, |row| row.state() as u8)),
    ])
}
