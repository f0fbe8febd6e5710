//! Judges the waits of finished connections and produces their tables. The caller's thread does this while
//! other threads continue to read.

use std::collections::VecDeque;
use std::io;

use arrow_schema::{ArrowError, SchemaRef};

use super::batch::Batch;
use crate::flows::ConnectionRow;
use crate::ledger::summary::{DirectionDetails, JudgedRows, Judging, PARALLEL_RECORDS, Summaries};
use crate::ledger::{EndedWaits, Worth};
use crate::table;

/// Maximum number of connections judged together, divided among the threads.
const TOGETHER: usize = 256;
/// Approximate number of waits of those connections.
const TOGETHER_RECORDS: u64 = 1 << 16;
/// Approximate number of rows per batch.
const BATCH_ROWS: usize = 16_384;

/// Finished connections and what was derived from them.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// `None` if nothing about waits is wanted.
    summaries: Option<Summaries>,
    coming: VecDeque<(ConnectionRow, EndedWaits)>,
    judging: Option<Judging>,
    rows: JudgedRows,
    ledger_columns: Vec<String>,
}

fn failed(error: io::Error) -> ArrowError {
    ArrowError::IoError(error.to_string(), error)
}

impl Judged {
    pub(super) fn new(ledger: Option<Vec<String>>, worth: Option<Vec<Worth>>, most: usize) -> Self {
        let wanted = ledger.is_some() || worth.is_some();
        let summaries = wanted.then(|| Summaries::new(ledger.is_some(), worth, most));
        Self { summaries, ledger_columns: ledger.unwrap_or_default(), ..Self::default() }
    }

    /// Whether waits are judged at all.
    pub(super) fn wanted(&self) -> bool {
        self.summaries.is_some()
    }

    /// Adds finished connections.
    pub(super) fn add(&mut self, rows: Vec<ConnectionRow>, waits: Vec<EndedWaits>) {
        if self.wanted() {
            self.coming.extend(rows.into_iter().zip(waits));
        }
    }

    /// Stops judging, because waits could not be stored.
    pub(super) fn fail(&mut self, error: io::Error) -> ArrowError {
        *self = Self::default();
        failed(error)
    }

    /// The next batch; `None` if every connection added so far is judged and its rows are emitted.
    pub(super) fn next_batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        while self.largest() < BATCH_ROWS {
            match self.judge_more() {
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

    /// Judges some more waits. Returns false if there are none.
    fn judge_more(&mut self) -> io::Result<bool> {
        let Some(summaries) = &mut self.summaries else { return Ok(false) };
        if self.judging.is_none() {
            let mut records = 0;
            let is_one_of_them = |(_, waits): &&(_, EndedWaits)| {
                records += waits.records();
                waits.records() <= PARALLEL_RECORDS && records <= TOGETHER_RECORDS
            };
            let few = self.coming.iter().take(TOGETHER).take_while(is_one_of_them).count();
            if few > 1 {
                summaries.judge_all(self.coming.drain(..few).collect(), &mut self.rows)?;
                return Ok(true);
            }
            let Some((row, waits)) = self.coming.pop_front() else { return Ok(false) };
            self.judging = Some(summaries.begin(row, waits)?);
        }
        if let Some(mut judging) = self.judging.take() {
            if judging.go_on(&mut self.rows)? {
                self.judging = Some(judging);
            } else {
                summaries.end(judging, &mut self.rows)?;
            }
        }
        Ok(true)
    }

    /// A batch of one of the tables that have rows.
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

    /// The schema of ledger batches.
    pub(super) fn ledger_schema(&self) -> Result<SchemaRef, ArrowError> {
        table::ledger(&[], &self.ledger_columns).map(|batch| batch.schema())
    }

    /// The details of the connections that lose the most time, and of those whose handshake failed.
    pub(super) fn details(&self) -> impl Iterator<Item = (u32, &DirectionDetails)> {
        self.summaries.iter().flat_map(Summaries::details)
    }
}
