//! Builds columns of the segments table from blocks of rows.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::rows::{BLOCK_ROWS, Block, Of, SegmentRows};
use crate::nullable::Nullable;
use crate::wire::PathNames;

/// Builds a column of the segments table.
pub(super) type SegmentColumn = fn(&SegmentRows, &PathNames) -> ArrayRef;

/// The values of a column for all rows.
pub(super) fn values<T, V>(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<T>, value: impl Fn(&T) -> V) -> Vec<V> {
    let mut all = Vec::with_capacity(rows.len());
    for block in rows.blocks() {
        let column = column(block);
        all.extend(column.get(..block.len).unwrap_or(column).iter().map(&value));
    }
    all
}

/// A mask with one bit per row of a block.
#[inline]
pub(super) fn bits<T>(column: &Of<T>, value: impl Fn(&T) -> bool) -> u64 {
    /// A multiplication by this factor gathers the bits of eight bytes with value 0 or 1. The bits end up, in order, in
    /// the highest byte of the product.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    // The compiler vectorizes this loop only because it does nothing else.
    let mut bytes = [0; BLOCK_ROWS];
    for (byte, one) in bytes.iter_mut().zip(column) {
        *byte = u8::from(value(one));
    }
    let (eights, _) = bytes.as_chunks::<8>();
    let word = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    eights.iter().rev().fold(0, |words, eight| words << 8 | word(eight))
}

/// A mask of the rows in a block whose value is not null.
#[inline]
pub(super) fn some(column: &Of<Nullable>) -> u64 {
    let (eights, _) = column.as_chunks::<8>();
    // Null is the smallest number. Eight adjacent values are mostly all null or all not null, so one test for all eight
    // usually suffices.
    let some = |eight: &[Nullable; 8]| {
        let (any, all) = eight.iter().fold((0, -1), |(any, all), one| (any | one.value(), all & one.value()));
        match (any, all) {
            (0.., _) => 0xff,
            (i64::MIN, i64::MIN) => 0,
            _ => eight.iter().rev().fold(0, |bits, one| bits << 1 | u64::from(one.is_some())),
        }
    };
    eights.iter().rev().fold(0, |bits, eight| bits << 8 | some(eight))
}

/// A mask with one bit per row of the batch.
pub(super) fn words(rows: &SegmentRows, word: impl Fn(&Block) -> u64) -> BooleanBuffer {
    const { assert!(BLOCK_ROWS == u64::BITS as usize) };
    let words: Vec<u64> = rows.blocks().map(|block| word(block).to_le()).collect();
    BooleanBuffer::new(Buffer::from_vec(words), 0, rows.len())
}

/// A mask of the rows whose value is not null, or `None` if all rows have a value.
pub(super) fn nulls(rows: &SegmentRows, some: impl Fn(&Block) -> u64) -> Option<NullBuffer> {
    Some(NullBuffer::new(words(rows, some))).filter(|nulls| nulls.null_count() > 0)
}

pub(super) fn boolean(rows: &SegmentRows, word: impl Fn(&Block) -> u64, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(BooleanArray::new(words(rows, word), nulls))
}

pub(super) fn flags(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<bool>) -> ArrayRef {
    boolean(rows, |block| set(column(block)), None)
}

/// The mask of a column of flags, which are stored as bytes.
#[inline]
pub(super) fn set(column: &Of<bool>) -> u64 {
    bits(column, |flag| *flag)
}

pub(super) fn numbers<T: ArrowPrimitiveType>(
    rows: &SegmentRows,
    column: impl Fn(&Block) -> &Of<T::Native>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values(rows, column, |value| *value).into(), None))
}

/// A column of numbers. Rows without `has` are null.
pub(super) fn maybe<T: ArrowPrimitiveType>(
    rows: &SegmentRows,
    column: impl Fn(&Block) -> &Of<T::Native>,
    has: impl Fn(&Block) -> &Of<bool>,
) -> ArrayRef {
    let nulls = nulls(rows, |block| set(has(block)));
    Arc::new(PrimitiveArray::<T>::new(values(rows, column, |value| *value).into(), nulls))
}

/// A column of numbers in which `none` stands for null. A null row stores 0, because some readers of Arrow files look
/// up the number of a null row in the dictionary.
pub(super) fn but<T: ArrowPrimitiveType>(
    rows: &SegmentRows,
    none: T::Native,
    column: impl Fn(&Block) -> &Of<T::Native>,
) -> ArrayRef {
    // An early exit would prevent vectorization, so all values are counted.
    let with = |block: &Block| column(block).iter().filter(|value| **value != none).count();
    if rows.blocks().map(with).sum::<usize>() == 0 {
        return Arc::new(PrimitiveArray::<T>::new_null(rows.len()));
    }
    let nulls = nulls(rows, |block| bits(column(block), |value| *value != none));
    let or_zero = |value: &T::Native| if *value == none { T::Native::default() } else { *value };
    Arc::new(PrimitiveArray::<T>::new(values(rows, column, or_zero).into(), nulls))
}

pub(super) fn nullable(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<Nullable>) -> ArrayRef {
    amounts(rows, &column, nulls(rows, |block| some(column(block))))
}

/// A column of numbers with a given null mask.
pub(super) fn amounts(
    rows: &SegmentRows,
    column: impl Fn(&Block) -> &Of<Nullable>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(Int64Array::new(values(rows, column, |value| value.value()).into(), nulls))
}
