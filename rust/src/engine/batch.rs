//! What a pass gives its caller.

use arrow_array::RecordBatch;

/// A batch of one of the tables. A connection and a flow come when they are over, behind their last segment or datagram.
#[derive(Debug)]
pub enum Batch {
    /// Rows of the segments table.
    Segments(RecordBatch),
    /// Rows of the datagrams table.
    Datagrams(RecordBatch),
    /// Rows of the connections table: connections that were closed, or the rest at the end; not in the order of their numbers.
    Connections(RecordBatch),
    /// Rows of the flows table: flows that were closed, or the rest at the end.
    Flows(RecordBatch),
    /// Rows of the accounts table, for connections that are over.
    Accounts(RecordBatch),
    /// Rows of the ledger table: all rows of one connection before those of another, the client's direction first, in order of time.
    Ledger(RecordBatch),
    /// What messages have to know of departures.
    Notes(RecordBatch),
}
