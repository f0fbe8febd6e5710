//! Reads the columns of tables from Python.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int64Type};
use arrow_array::{Array, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::ArrowError;

fn column<'a>(rows: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, ArrowError> {
    let found = rows.column_by_name(name).map(AsRef::as_ref);
    found.ok_or_else(|| ArrowError::SchemaError(format!("the column {name:?} is missing")))
}

pub(super) fn values<'a, T: ArrowPrimitiveType>(
    rows: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<T>, ArrowError> {
    let found = column(rows, name)?.as_primitive_opt::<T>();
    found.ok_or_else(|| ArrowError::SchemaError(format!("the column {name:?} is not {}", T::DATA_TYPE)))
}

pub(super) fn booleans<'a>(rows: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, ArrowError> {
    let found = column(rows, name)?.as_boolean_opt();
    found.ok_or_else(|| ArrowError::SchemaError(format!("the column {name:?} is not Boolean")))
}

/// The value at index `place`, or `None` if it is null.
pub(super) fn at<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, place: usize) -> Option<T::Native> {
    array.is_valid(place).then(|| array.value(place))
}

/// Returns a function from a row's index to the list in this row. The list of a null row is empty.
///
/// # Errors
/// The column is missing or has another type.
pub(super) fn lists<'a>(rows: &'a RecordBatch, name: &str) -> Result<impl Fn(usize) -> &'a [i64], ArrowError> {
    let wrong = || ArrowError::SchemaError(format!("the column {name:?} is not List(Int64)"));
    let lists = column(rows, name)?.as_list_opt::<i64>().ok_or_else(wrong)?;
    let items = lists.values().as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
    Ok(move |place: usize| {
        let ends = lists.value_offsets().get(place..).unwrap_or_default();
        match ends {
            [begin, end, ..] if lists.is_valid(place) => {
                items.values().get(*begin as usize..*end as usize).unwrap_or_default()
            }
            _ => &[],
        }
    })
}
