//! The batches of rows that a pass over a capture produces.

use arrow_array::RecordBatch;

/// A batch of one table. The batch with the row of a connection or flow comes after the batches with its segments or
/// datagrams.
#[derive(Debug)]
pub enum Batch {
    /// Rows of the segments table.
    Segments(RecordBatch),
    /// Rows of the datagrams table.
    Datagrams(RecordBatch),
    /// Rows of the connections table. The rows of connections that are still open follow at the end of the capture. The
    /// rows are not in the order of the connection numbers.
    Connections(RecordBatch),
    /// Rows of the flows table. The rows of flows that are still open follow at the end of the capture.
    Flows(RecordBatch),
    /// Rows of the accounts table for finished connections.
    Accounts(RecordBatch),
    /// Rows of the ledger table. The rows of one connection are adjacent: first those of the client's direction, then
    /// those of the server's, each in time order.
    Ledger(RecordBatch),
    /// Notes on transmissions, from which messages are reconstructed.
    Notes(RecordBatch),
}
