//! Builds the columns of the segments table from [`SegmentRows`], which are already stored by column.

use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, LargeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::block_columns::{SegmentColumn, bits, boolean, but, flags, maybe, nullable, nulls, numbers, some, values};
use super::columns::dictionary;
use super::departure;
use super::rows::{BLOCK_ROWS, NO_CODE, SegmentRows};
use crate::wire::{AtmFacts, Ecn, PathNames};

/// The first columns of the table in order, before those in [`departure::SEGMENT_COLUMNS`].
const SEGMENT_COLUMNS: &[(&str, SegmentColumn)] = &[
    ("frame", |rows, _| numbers::<UInt64Type>(rows, |block| &block.frame)),
    ("ts_ns", |rows, _| nullable(rows, |block| &block.ts_ns)),
    ("conn", |rows, _| numbers::<UInt32Type>(rows, |block| &block.conn)),
    ("from_client", |rows, _| flags(rows, |block| &block.from_client)),
    ("seq", |rows, _| numbers::<Int64Type>(rows, |block| &block.seq)),
    ("ack", |rows, _| nullable(rows, |block| &block.ack)),
    ("payload_bytes", |rows, _| numbers::<Int64Type>(rows, |block| &block.payload_bytes)),
    ("captured_payload_bytes", |rows, _| numbers::<Int64Type>(rows, |block| &block.captured_payload_bytes)),
    ("flags", |rows, _| numbers::<UInt16Type>(rows, |block| &block.flags)),
    ("window_bytes", |rows, _| nullable(rows, |block| &block.window_bytes)),
    ("sack_blocks", |rows, _| sack_blocks(rows)),
    ("tsval", |rows, _| maybe::<UInt32Type>(rows, |block| &block.tsval, |block| &block.timed)),
    ("tsecr", |rows, _| maybe::<UInt32Type>(rows, |block| &block.tsecr, |block| &block.timed)),
    ("ip_id", |rows, _| maybe::<UInt16Type>(rows, |block| &block.ip_id, |block| &block.identified)),
    ("ttl", |rows, _| numbers::<UInt8Type>(rows, |block| &block.ttl)),
    ("ect", |rows, _| numbers::<UInt8Type>(rows, |block| &block.ect)),
    ("ce", |rows, _| boolean(rows, |block| bits(&block.ect, |ect| *ect == Ecn::CE), None)),
    ("kind", |rows, _| numbers::<UInt8Type>(rows, |block| &block.kind)),
    ("evidence", |rows, _| numbers::<UInt8Type>(rows, |block| &block.evidence)),
    ("evidence_frame", |rows, _| but::<UInt64Type>(rows, 0, |block| &block.evidence_frame)),
    ("confidence", |rows, _| numbers::<UInt8Type>(rows, |block| &block.confidence)),
    ("retransmit_trigger", |rows, _| but::<UInt8Type>(rows, NO_CODE, |block| &block.retransmit_trigger)),
    ("transmission", |rows, _| but::<UInt8Type>(rows, 0, |block| &block.transmission)),
    ("dsack", |rows, _| flags(rows, |block| &block.dsack)),
    ("reset_kind", |rows, _| but::<UInt8Type>(rows, NO_CODE, |block| &block.reset_kind)),
    ("tfo", |rows, _| but::<UInt8Type>(rows, NO_CODE, |block| &block.tfo)),
    ("ecn_signal", |rows, _| but::<UInt8Type>(rows, NO_CODE, |block| &block.ecn_signal)),
    ("in_flight_bytes", |rows, _| nullable(rows, |block| &block.in_flight_bytes)),
    ("usable_window_bytes", |rows, _| nullable(rows, |block| &block.usable_window_bytes)),
    ("since_previous_ns", |rows, _| nullable(rows, |block| &block.since_previous_ns)),
    ("since_last_ack_ns", |rows, _| nullable(rows, |block| &block.since_last_ack_ns)),
    ("since_last_data_ns", |rows, _| nullable(rows, |block| &block.since_last_data_ns)),
    ("released_by", |rows, _| but::<UInt8Type>(rows, NO_CODE, |block| &block.released_by)),
    ("released_by_frame", |rows, _| {
        let frames = values(rows, |block| &block.released_by_frame, |frame| frame.value() as u64);
        Arc::new(PrimitiveArray::<UInt64Type>::new(frames.into(), nulls(rows, |block| some(&block.released_by_frame))))
    }),
    ("acked_bytes", |rows, _| nullable(rows, |block| &block.acked_bytes)),
    ("acked_unseen_bytes", |rows, _| nullable(rows, |block| &block.acked_unseen_bytes)),
    ("ack_lag_ns", |rows, _| nullable(rows, |block| &block.ack_lag_ns)),
    ("rtt_ns", |rows, _| nullable(rows, |block| &block.rtt_ns)),
    ("layers", |rows, paths| dictionary(values(rows, |block| &block.path, |path| *path), paths)),
    ("vpi", |rows, _| of_atm(rows, |atm| atm.channel.map(|(vpi, _)| vpi))),
    ("vci", |rows, _| of_atm(rows, |atm| atm.channel.map(|(_, vci)| vci))),
    ("cells", |rows, _| of_atm(rows, |atm| Some(atm.cells))),
];

/// The names of all columns of the segments table in order.
pub fn segment_column_names() -> impl Iterator<Item = &'static str> {
    all_columns().map(|(name, _)| *name)
}

fn all_columns() -> impl Iterator<Item = &'static (&'static str, SegmentColumn)> {
    SEGMENT_COLUMNS.iter().chain(departure::SEGMENT_COLUMNS)
}

/// Builds batches of the segments table with all or some of its columns.
///
/// ```
/// use tcptrace_lab_core::table::Segments;
///
/// let wanted = ["payload_bytes".to_owned(), "frame".to_owned()];
/// let schema = Segments::new(Some(&wanted)).schema();
/// let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
/// assert_eq!(names, ["frame", "payload_bytes"]); // the order in the table
/// ```
#[derive(Debug)]
pub struct Segments {
    columns: Vec<SegmentColumn>,
    schema: SchemaRef,
    has_departures: bool,
}

impl Segments {
    /// Selects the columns in `wanted`, or all columns if `wanted` is `None`. The columns have the order of the table.
    #[must_use]
    pub fn new(wanted: Option<&[String]>) -> Self {
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name));
        let (none, paths) = (SegmentRows::default(), PathNames::default());
        let (fields, columns): (Vec<Field>, Vec<SegmentColumn>) = all_columns()
            .filter(|(name, _)| is_wanted(name))
            .map(|(name, make)| (Field::new(*name, make(&none, &paths).data_type().clone(), true), *make))
            .unzip();
        let has_departures = departure::SEGMENT_COLUMNS.iter().any(|(name, _)| is_wanted(name));
        Self { columns, schema: Arc::new(Schema::new(fields)), has_departures }
    }

    /// Whether a selected column needs the waits before segments.
    #[must_use]
    pub fn has_departures(&self) -> bool {
        self.has_departures
    }

    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// One batch of the selected columns.
    ///
    /// # Errors
    /// No error occurs in practice, because all columns have the same length.
    pub fn batch(&self, rows: &SegmentRows, paths: &PathNames) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(self.schema(), self.columns.iter().map(|make| make(rows, paths)).collect())
    }
}

/// A column of ATM values, which few rows have.
fn of_atm(rows: &SegmentRows, value: impl Fn(AtmFacts) -> Option<u16>) -> ArrayRef {
    if rows.atm.is_empty() {
        return Arc::new(PrimitiveArray::<UInt16Type>::new_null(rows.len()));
    }
    let mut all = vec![None; rows.len()];
    for (at, atm) in &rows.atm {
        if let Some(place) = all.get_mut(*at) {
            *place = value(*atm);
        }
    }
    Arc::new(PrimitiveArray::<UInt16Type>::from_iter(all))
}

fn sack_blocks(rows: &SegmentRows) -> ArrayRef {
    let mut edges = Vec::new();
    let mut offsets = Vec::with_capacity(rows.len() + 1);
    let mut words = vec![0_u64; rows.len().div_ceil(BLOCK_ROWS)];
    for (at, blocks) in &rows.sack_blocks {
        offsets.resize(at + 1, edges.len() as i64);
        edges.extend_from_slice(blocks);
        if let Some(word) = words.get_mut(at / BLOCK_ROWS) {
            *word |= 1_u64 << (at % BLOCK_ROWS);
        }
    }
    offsets.resize(rows.len() + 1, edges.len() as i64);
    let some = words.into_iter().map(u64::to_le).collect::<Vec<_>>();
    let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(some), 0, rows.len()));
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    Arc::new(LargeListArray::new(item, OffsetBuffer::new(offsets.into()), Arc::new(Int64Array::from(edges)), nulls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::{SegmentRow, SegmentSink};
    use crate::sender::Wait;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    /// Rows with different optional values, which depend on the number of the row.
    fn rows(numbers: &[Option<u16>]) -> SegmentRows {
        let mut rows = SegmentRows::default();
        // Old values remain in the memory after this loop.
        for _ in 0..100 {
            let departure = Wait { wait_ns: Some(-1).into(), ..Wait::default() };
            rows.push(SegmentRow { departure: Some(departure), dsack: true, ..SegmentRow::default() });
        }
        rows.clear();
        for number in numbers {
            let departure = number.map(|number| Wait {
                wait_ns: Some(i64::from(number)).filter(|held| held % 3 > 0).into(),
                ..Wait::default()
            });
            rows.push(SegmentRow {
                ack: number.map(|number| i64::from(number) - 100).into(),
                ip_id: *number,
                transmission: number.unwrap_or(0) as u8,
                sack_blocks: number.map(|number| vec![i64::from(number); usize::from(number % 3)].into()),
                atm: number.map(|cells| AtmFacts { channel: None, cells }),
                departure,
                ..SegmentRow::default()
            });
        }
        rows
    }

    proptest! {
        #[test]
        fn every_row_keeps_its_values_and_its_nulls(numbers in prop::collection::vec(any::<Option<u16>>(), 0..200)) {
            let batch = Segments::new(None).batch(&rows(&numbers), &PathNames::default()).unwrap();
            let column = |name: &str| batch.column_by_name(name).unwrap();
            let amounts = |name: &str| column(name).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
            let codes = |name: &str| column(name).as_primitive::<UInt16Type>().iter().collect::<Vec<_>>();
            let each = |value: fn(u16) -> Option<i64>| numbers.iter().map(|n| n.and_then(value)).collect::<Vec<_>>();
            prop_assert_eq!(amounts("ack"), each(|number| Some(i64::from(number) - 100)));
            prop_assert_eq!(amounts("wait_ns"), each(|number| Some(i64::from(number)).filter(|held| held % 3 > 0)));
            prop_assert_eq!(codes("ip_id"), numbers.clone());
            prop_assert_eq!(codes("cells"), numbers.clone());
            let transmission = column("transmission").as_primitive::<UInt8Type>().iter().collect::<Vec<_>>();
            let sent = numbers.iter().map(|number| Some(number.unwrap_or(0) as u8).filter(|times| *times > 0));
            prop_assert_eq!(transmission, sent.collect::<Vec<_>>());
            let dsack = column("dsack").as_boolean();
            prop_assert_eq!((dsack.true_count(), dsack.null_count()), (0, 0));
            for (number, blocks) in numbers.iter().zip(column("sack_blocks").as_list::<i64>().iter()) {
                let blocks = blocks.map(|blocks| blocks.as_primitive::<Int64Type>().values().to_vec());
                let pushed = number.map(|number| vec![i64::from(number); usize::from(number % 3)]);
                prop_assert_eq!(blocks, pushed);
            }
        }
    }

    #[test]
    fn only_wanted_columns_are_made_in_the_order_of_the_table() {
        let wanted = ["seq", "frame", "wait_ns"].map(str::to_owned);
        let table = Segments::new(Some(&wanted));
        let batch = table.batch(&rows(&[Some(1)]), &PathNames::default()).unwrap();
        let names = table.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        assert_eq!(names, ["frame", "seq", "wait_ns"]);
        assert_eq!((batch.num_columns(), batch.num_rows()), (3, 1));
    }
}
