//! The batches that a pass produces.

use arrow_array::RecordBatch;

/// A batch of one table. The row of a connection or flow follows its last segment or datagram.
#[derive(Debug)]
pub enum Batch {
    /// Rows of the segments table.
    Segments(RecordBatch),
    /// Rows of the datagrams table.
    Datagrams(RecordBatch),
    /// Rows of the connections table: closed connections, and the rest at the end. They are not in the order of
    /// their numbers.
    Connections(RecordBatch),
    /// Rows of the flows table: closed flows, and the rest at the end.
    Flows(RecordBatch),
    /// Rows of the accounts table for finished connections.
    Accounts(RecordBatch),
    /// Rows of the ledger table. All rows of one connection are adjacent: the client's direction first, each in
    /// time order.
    Ledger(RecordBatch),
    /// What the reconstruction of messages needs to know about departures.
    Notes(RecordBatch),
}
