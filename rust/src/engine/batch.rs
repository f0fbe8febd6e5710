//! The batches of rows that a pass over a capture produces.

use arrow_array::RecordBatch;

/// A batch of one table. The row of a connection comes after the batches with the connection's segments. The row of a
/// flow comes after the batches with the flow's datagrams.
#[derive(Debug)]
pub enum Batch {
    /// Rows of the segments table.
    Segments(RecordBatch),
    /// Rows of the datagrams table.
    Datagrams(RecordBatch),
    /// Rows of the connections table, not in order of the connection numbers. Connections that are still open at the
    /// end of the capture come last.
    Connections(RecordBatch),
    /// Rows of the flows table. Flows that are still open at the end of the capture come last.
    Flows(RecordBatch),
    /// Rows of the accounts table for finished connections.
    Accounts(RecordBatch),
    /// Rows of the ledger table. The rows of one connection are adjacent: first the rows of the client's direction,
    /// then the rows of the server's direction. The rows of a direction are in order of time.
    Ledger(RecordBatch),
    /// Notes about transmissions, for the reconstruction of messages.
    Notes(RecordBatch),
}
