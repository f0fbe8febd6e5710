//! Builds columns from rows of any type.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt16Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::nullable::Nullable;
use crate::wire::PathNames;

pub(super) type Column = (String, ArrayRef);

pub(super) fn numbers<T: ArrowPrimitiveType, R>(rows: &[R], value: impl Fn(&R) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(rows.iter().map(value)))
}

pub(super) fn maybe<T: ArrowPrimitiveType, R>(rows: &[R], value: impl Fn(&R) -> Option<T::Native>) -> ArrayRef {
    let values = rows.iter().map(|row| value(row).unwrap_or_default()).collect::<Vec<_>>();
    Arc::new(PrimitiveArray::<T>::new(values.into(), validity(rows, |row| value(row).is_some())))
}

/// A column of numbers that few rows have. If no row has a number, building the column takes almost no time.
pub(super) fn rare<T: ArrowPrimitiveType, R>(rows: &[R], value: impl Fn(&R) -> Option<T::Native>) -> ArrayRef {
    // An early exit would prevent vectorization, so all rows are checked.
    if rows.iter().fold(false, |any, row| any | value(row).is_some()) {
        return maybe::<T, R>(rows, value);
    }
    Arc::new(PrimitiveArray::<T>::new_null(rows.len()))
}

/// A column of texts that few rows have.
pub(super) fn texts<R>(rows: &[R], value: impl Fn(&R) -> Option<String>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<StringArray>())
}

pub(super) fn nullable<R>(rows: &[R], value: impl Fn(&R) -> Nullable) -> ArrayRef {
    let values = rows.iter().map(value).collect::<Vec<_>>();
    let all = values.iter().all(|value| value.is_some());
    let nulls = (!all).then(|| NullBuffer::new(bits(&values, |value| value.is_some())));
    let values = values.into_iter().map(Nullable::value).collect::<Vec<_>>();
    Arc::new(PrimitiveArray::<Int64Type>::new(values.into(), nulls))
}

pub(super) fn flags<R>(rows: &[R], value: impl Fn(&R) -> bool) -> ArrayRef {
    Arc::new(BooleanArray::new(bits(rows, value), None))
}

/// A mask of the rows whose value is not null, or `None` if all rows have a value.
pub(super) fn validity<R>(rows: &[R], is_some: impl Fn(&R) -> bool) -> Option<NullBuffer> {
    Some(NullBuffer::new(bits(rows, is_some))).filter(|nulls| nulls.null_count() > 0)
}

/// A mask with one bit per row. The values become bytes of 0 or 1 first, and eight bytes at a time become bits, which
/// is several times faster than packing bit by bit.
pub(super) fn bits<R>(rows: &[R], value: impl Fn(&R) -> bool) -> BooleanBuffer {
    /// A multiplication by this factor gathers the bits of eight bytes with value 0 or 1. The bits end up, in order, in
    /// the highest byte of the product.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut bytes: Vec<u8> = rows.iter().map(|row| u8::from(value(row))).collect();
    bytes.resize(rows.len().next_multiple_of(8), 0);
    let (eights, _) = bytes.as_chunks::<8>();
    let packed: Vec<u8> =
        eights.iter().map(|eight| (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) as u8).collect();
    BooleanBuffer::new(packed.into(), 0, rows.len())
}

pub(super) fn batch(columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        columns.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    // A batch without columns has 0 rows.
    let options = RecordBatchOptions::new().with_row_count(Some(arrays.first().map_or(0, |array| array.len())));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}

/// A dictionary column with the layer path of each row. The dictionary contains the path names known so far.
pub(super) fn dictionary(paths_of_rows: Vec<u16>, paths: &PathNames) -> ArrayRef {
    let rows = paths_of_rows.len();
    let keys = PrimitiveArray::<UInt16Type>::new(paths_of_rows.into(), None);
    let names: StringArray = paths.so_far().iter().map(Some).collect();
    match DictionaryArray::<UInt16Type>::try_new(keys, Arc::new(names)) {
        Ok(array) => Arc::new(array),
        // An error is impossible, because a path gets its name before any row refers to it.
        Err(_) => arrow_array::new_null_array(&layers_type(), rows),
    }
}

pub(super) fn layers_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8))
}

pub(super) fn addresses<R>(rows: &[R], value: impl Fn(&R) -> std::net::IpAddr) -> ArrayRef {
    let mut strings = StringBuilder::new();
    for row in rows {
        strings.append_value(value(row).to_string());
    }
    Arc::new(strings.finish())
}

#[cfg(test)]
mod tests {
    use super::bits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_keeps_its_bit(flags in prop::collection::vec(any::<bool>(), 0..200)) {
            let packed = bits(&flags, |flag| *flag);
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), flags);
        }
    }
}
