//! What a pass gives its caller.

use arrow_array::RecordBatch;

/// A batch of one of the tables. A connection and a flow come when they are over, behind their last segment or datagram.
#[derive(Debug)]
pub enum Batch {
    /// Of the segments table.
    Segments(RecordBatch),
    /// Of the datagrams table.
    Datagrams(RecordBatch),
    /// Of the connections table: some that were closed, or the rest at the end; not in the order of their numbers.
    Connections(RecordBatch),
    /// Of the flows table, likewise.
    Flows(RecordBatch),
    /// Of the accounts table: of connections that are over.
    Accounts(RecordBatch),
    /// Of the ledger table: all of one connection before those of another, the client's direction first, in order of time.
    Ledger(RecordBatch),
    /// What messages have to know of departures.
    Notes(RecordBatch),
}
