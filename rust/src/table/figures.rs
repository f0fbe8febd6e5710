//! The input and output tables of figures.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt64Type};
use arrow_schema::ArrowError;

use super::columns::{batch, flags, maybe, numbers};
use super::input::{at, booleans, lists, values};
use crate::figures::{Band, Burst, Mark, Point, Segment, Tracked};
use crate::ledger::Cause;
use crate::wire::TcpFlags;

/// Reads the segments of one connection. All timestamps must be known, and categories must be codes.
///
/// # Errors
/// A column is missing or has another type.
pub fn segments(rows: &RecordBatch) -> Result<impl Iterator<Item = Segment<'_>>, ArrowError> {
    let (frame, from_client) = (values::<UInt64Type>(rows, "frame")?, booleans(rows, "from_client")?);
    let (flag, kind) = (values::<UInt16Type>(rows, "flags")?, values::<UInt8Type>(rows, "kind")?);
    let number = |name| values::<Int64Type>(rows, name);
    let (ts_ns, seq, ack, payload_bytes) = (number("ts_ns")?, number("seq")?, number("ack")?, number("payload_bytes")?);
    let (window_bytes, ack_lag_ns, rtt_ns) = (number("window_bytes")?, number("ack_lag_ns")?, number("rtt_ns")?);
    let sack_blocks = lists(rows, "sack_blocks")?;
    Ok((0..rows.num_rows()).map(move |place| Segment {
        frame: frame.value(place) as i64,
        ts_ns: ts_ns.value(place),
        from_client: from_client.value(place),
        seq: seq.value(place),
        ack: at(ack, place),
        payload_bytes: payload_bytes.value(place),
        flags: TcpFlags(flag.value(place)),
        window_bytes: at(window_bytes, place),
        sack_blocks: sack_blocks(place),
        kind: kind.value(place),
        ack_lag_ns: at(ack_lag_ns, place),
        rtt_ns: at(rtt_ns, place),
    }))
}

/// Reads rows from a table that [`tracked()`] has built.
///
/// # Errors
/// A column is missing or has another type.
pub fn tracked_rows(rows: &RecordBatch) -> Result<impl Iterator<Item = Tracked>, ArrowError> {
    let (t_ns, mine) = (values::<Int64Type>(rows, "t_ns")?, booleans(rows, "mine")?);
    let number = |name| values::<Int64Type>(rows, name);
    let (sent, acked, edge) = (number("sent")?, number("acked")?, number("edge")?);
    let (sent_before, flight, offered) = (number("sent_before")?, number("flight")?, number("offered")?);
    Ok((0..rows.num_rows()).map(move |place| Tracked {
        t_ns: t_ns.value(place),
        mine: mine.value(place),
        sent: at(sent, place),
        acked: at(acked, place),
        edge: at(edge, place),
        sent_before: at(sent_before, place),
        flight: at(flight, place),
        offered: at(offered, place),
    }))
}

/// Builds the table of the columns that tracking adds to the segments.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn tracked(rows: &[Tracked]) -> Result<RecordBatch, ArrowError> {
    let optional = |value: fn(&Tracked) -> Option<i64>| maybe::<Int64Type, _>(rows, value);
    batch(vec![
        ("t_ns".into(), numbers::<Int64Type, _>(rows, |row| row.t_ns)),
        ("mine".into(), flags(rows, |row| row.mine)),
        ("sent".into(), optional(|row| row.sent)),
        ("acked".into(), optional(|row| row.acked)),
        ("edge".into(), optional(|row| row.edge)),
        ("sent_before".into(), optional(|row| row.sent_before)),
        ("flight".into(), optional(|row| row.flight)),
        ("offered".into(), optional(|row| row.offered)),
    ])
}

/// Reads the waits of one direction in order of time. Categories must be codes.
///
/// # Errors
/// A column is missing or has another type.
pub fn waits(rows: &RecordBatch) -> Result<impl Iterator<Item = Band>, ArrowError> {
    let (start_ns, end_ns) = (values::<Int64Type>(rows, "start_ns")?, values::<Int64Type>(rows, "end_ns")?);
    let cause = values::<UInt8Type>(rows, "cause")?;
    Ok((0..rows.num_rows()).filter_map(move |place| {
        let cause = *Cause::ALL.get(usize::from(cause.value(place)))?;
        Some(Band { start_ns: start_ns.value(place), end_ns: end_ns.value(place), cause })
    }))
}

/// Builds the table of bursts.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn bursts(rows: &[Burst]) -> Result<RecordBatch, ArrowError> {
    let number = |value: fn(&Burst) -> i64| numbers::<Int64Type, _>(rows, value);
    batch(vec![
        ("t_ns".into(), number(|row| row.t_ns)),
        ("t_end_ns".into(), number(|row| row.t_end_ns)),
        ("low".into(), number(|row| row.low)),
        ("high".into(), number(|row| row.high)),
        ("segments".into(), number(|row| row.segments)),
        ("payload_bytes".into(), number(|row| row.payload_bytes)),
        ("frame".into(), numbers::<UInt64Type, _>(rows, |row| row.frame as u64)),
        ("frame_end".into(), numbers::<UInt64Type, _>(rows, |row| row.frame_end as u64)),
    ])
}

/// Reads the points of a line from a table that [`line()`] has built.
///
/// # Errors
/// A column is missing or has another type.
pub fn points(rows: &RecordBatch) -> Result<impl Iterator<Item = Point>, ArrowError> {
    let (t_ns, y) = (values::<Int64Type>(rows, "t_ns")?, values::<Int64Type>(rows, "y")?);
    let frame = values::<UInt64Type>(rows, "frame")?;
    Ok((0..rows.num_rows()).map(move |place| Point {
        t_ns: t_ns.value(place),
        y: y.value(place),
        frame: frame.value(place) as i64,
    }))
}

/// Builds the table of a line's points.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn line(rows: &[Point]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        ("t_ns".into(), numbers::<Int64Type, _>(rows, |row| row.t_ns)),
        ("y".into(), numbers::<Int64Type, _>(rows, |row| row.y)),
        ("frame".into(), numbers::<UInt64Type, _>(rows, |row| row.frame as u64)),
    ])
}

/// Builds the table of marks.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn marks(rows: &[Mark]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        ("t_ns".into(), numbers::<Int64Type, _>(rows, |row| row.t_ns)),
        ("low".into(), maybe::<Int64Type, _>(rows, |row| row.low)),
        ("payload_bytes".into(), numbers::<Int64Type, _>(rows, |row| row.payload_bytes)),
        ("frame".into(), numbers::<UInt64Type, _>(rows, |row| row.frame as u64)),
    ])
}

/// Builds the table of bins for throughput.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn throughput(rows: &[(i64, i64)]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        ("t_ns".into(), numbers::<Int64Type, _>(rows, |row| row.0)),
        ("unique_bytes".into(), numbers::<Int64Type, _>(rows, |row| row.1)),
    ])
}
