//! Judges waits: assigns a cause to each wait of finished connections, and builds the tables of the results. Judging
//! happens on the caller's thread while other threads continue to read.

use std::io;

use arrow_schema::{ArrowError, SchemaRef};

use super::batch::Batch;
use crate::flows::ConnectionRow;
use crate::ledger::summary::rows::{DirectionDetails, JudgedRows};
use crate::ledger::{EndedWaits, Summaries, Worth};
use crate::table;

/// Approximate number of rows per batch.
const BATCH_ROWS: usize = 16_384;

/// Finished connections, and the rows that follow from them.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The judged connections, or `None` if the caller wants neither the ledger nor evidence for findings.
    summaries: Option<Summaries>,
    rows: JudgedRows,
    ledger_columns: Vec<String>,
}

fn failed(error: io::Error) -> ArrowError {
    ArrowError::IoError(error.to_string(), error)
}

impl Judged {
    /// A state without connections. The capture has at least `in_capture` connections. `max_memory_bytes` limits the
    /// memory for waits of ended connections.
    pub(super) fn new(
        ledger: Option<Vec<String>>,
        worth: Option<Vec<Worth>>,
        most: usize,
        in_capture: usize,
        max_memory_bytes: usize,
    ) -> Self {
        let wanted = ledger.is_some() || worth.is_some();
        let alone = wanted.then(|| Summaries::new(ledger.is_some(), worth, most));
        let summaries = alone.map(|summaries| summaries.with_neighbours(in_capture, max_memory_bytes));
        Self { summaries, ledger_columns: ledger.unwrap_or_default(), ..Self::default() }
    }

    /// Whether this pass judges waits.
    pub(super) fn wanted(&self) -> bool {
        self.summaries.is_some()
    }

    pub(super) fn add(&mut self, rows: Vec<ConnectionRow>, waits: Vec<EndedWaits>) -> Result<(), ArrowError> {
        let added = self.summaries.as_mut().map_or(Ok(()), |summaries| summaries.add(rows.into_iter().zip(waits)));
        added.map_err(|error| self.fail(error))
    }

    /// Called after the last connection. Returns true if waits of stored connections are not judged yet.
    pub(super) fn complete(&mut self) -> Result<bool, ArrowError> {
        let completed = self.summaries.as_mut().map_or(Ok(false), Summaries::complete);
        completed.map_err(|error| self.fail(error))
    }

    /// Drops all results, because waits could not be stored. Returns the error for the caller.
    pub(super) fn fail(&mut self, error: io::Error) -> ArrowError {
        *self = Self::default();
        failed(error)
    }

    /// The next batch, or `None` if all added connections are judged, and all of their rows returned.
    pub(super) fn next_batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        while self.largest() < BATCH_ROWS {
            let goes_on = self.summaries.as_mut().map_or(Ok(false), |summaries| summaries.go_on(&mut self.rows));
            match goes_on {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(self.fail(error)),
            }
        }
        self.batch()
    }

    fn largest(&self) -> usize {
        let JudgedRows { accounts, ledger, notes } = &self.rows;
        accounts.len().max(ledger.len()).max(notes.len())
    }

    fn batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        let JudgedRows { accounts, ledger, notes } = &mut self.rows;
        Ok(if !ledger.is_empty() {
            Some(Batch::Ledger(table::ledger(&std::mem::take(ledger), &self.ledger_columns)?))
        } else if !notes.is_empty() {
            Some(Batch::Notes(table::notes(&std::mem::take(notes))?))
        } else if !accounts.is_empty() {
            Some(Batch::Accounts(table::accounts(&std::mem::take(accounts))?))
        } else {
            None
        })
    }

    pub(super) fn ledger_schema(&self) -> Result<SchemaRef, ArrowError> {
        table::ledger(&[], &self.ledger_columns).map(|batch| batch.schema())
    }

    /// The evidence for findings. It covers the connections that lose the most time, and failed handshakes.
    pub(super) fn details(&self) -> impl Iterator<Item = (u32, &DirectionDetails)> {
        self.summaries.iter().flat_map(Summaries::details)
    }
}
