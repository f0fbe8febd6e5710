//! Totals of a table, which do not depend on the size of its batches.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::DataType;

/// Totals of columns by (table, name of the column).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Totals(BTreeMap<(&'static str, String), Column>);

/// Totals of a column.
#[derive(Debug, Default, PartialEq, Eq)]
struct Column {
    rows: u64,
    nulls: u64,
    /// Sum over the hashes of all values. Each value is hashed with the number of its row. Rows of connections have no
    /// fixed order, so their values are hashed with the number of the connection. The digest of a column of texts or
    /// lists is 0.
    digest: u64,
}

impl Totals {
    /// Adds a batch of the table `name`.
    pub fn add(&mut self, name: &'static str, batch: &RecordBatch) {
        if batch.num_rows() == 0 {
            return;
        }
        let conns = (name == "connections")
            .then(|| batch.column_by_name("conn").expect("a number").as_primitive::<UInt32Type>());
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let column = self.0.entry((name, field.name().clone())).or_default();
            let numbers: Vec<u64> = match conns {
                Some(conns) => conns.values().iter().map(|conn| u64::from(*conn)).collect(),
                None => (column.rows..).take(array.len()).collect(),
            };
            column.digest = column.digest.wrapping_add(digest(array, &numbers));
            column.rows += array.len() as u64;
            column.nulls += array.null_count() as u64;
        }
    }

    /// The first table and column with different totals, and both totals.
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        let names = self.0.keys().chain(other.0.keys());
        names
            .map(|name| (name, self.0.get(name), other.0.get(name)))
            .find(|(_, one, other)| one != other)
            .map(|(name, one, other)| format!("{name:?}: {one:?}, {other:?}"))
    }

    /// Removes a table.
    pub fn forget(&mut self, name: &str) {
        self.0.retain(|(table, _), _| *table != name);
    }
}

fn digest(array: &ArrayRef, numbers: &[u64]) -> u64 {
    match array.data_type() {
        DataType::UInt8 => values::<UInt8Type>(array, numbers, u64::from),
        DataType::UInt16 => values::<UInt16Type>(array, numbers, u64::from),
        DataType::UInt32 => values::<UInt32Type>(array, numbers, u64::from),
        DataType::UInt64 => values::<UInt64Type>(array, numbers, |value| value),
        DataType::Int64 => values::<Int64Type>(array, numbers, i64::cast_unsigned),
        DataType::Float64 => values::<Float64Type>(array, numbers, f64::to_bits),
        DataType::Boolean => all(numbers, array.as_boolean().iter().map(|value| value.map(u64::from))),
        _ => 0,
    }
}

fn values<T: ArrowPrimitiveType>(array: &ArrayRef, numbers: &[u64], bits: impl Fn(T::Native) -> u64) -> u64 {
    all(numbers, array.as_primitive::<T>().iter().map(|value| value.map(&bits)))
}

fn all(numbers: &[u64], values: impl Iterator<Item = Option<u64>>) -> u64 {
    numbers.iter().zip(values).fold(0, |sum, row| {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        sum.wrapping_add(hasher.finish())
    })
}
