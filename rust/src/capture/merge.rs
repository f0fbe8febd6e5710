//! Merges several files in the order of their timestamps.
//!
//! The order of frames within a file never changes, even if its timestamps run backwards. Frames of several files with
//! equal timestamps are returned in the order of the paths. (mergecap returns the frame of the last path first. That
//! order would swap the last frame of one ring-buffer file and the first frame of the next file.) A frame without a
//! timestamp directly follows the frame before it, as in mergecap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::reader::Reader;
use crate::error::CaptureError;

/// The timestamp of a file's current frame, and the index of the file.
type Due = (i64, usize);

/// The merge state.
pub(super) struct Merge {
    /// Files whose next frame was read but is not returned yet, except the current file.
    waiting: BinaryHeap<Reverse<Due>>,
    /// Index of the first file that has not been read yet.
    unasked: usize,
    /// Index of the file whose frame was returned last.
    current: Option<usize>,
    number: u64,
}

impl Merge {
    pub(super) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), unasked: 0, current: None, number: 0 }
    }

    /// Moves to the next frame of any file; false at the end of all files.
    pub(super) fn advance(&mut self, readers: &mut [Reader]) -> Result<bool, CaptureError> {
        while self.unasked < readers.len() {
            let index = self.unasked;
            self.unasked += 1;
            if let Some(due) = ask(readers, index)? {
                self.waiting.push(Reverse(due));
            }
        }
        let next = match self.current.take() {
            Some(index) => ask(readers, index)?,
            None => None,
        };
        // In most cases the next frame is in the same file (the files of a ring buffer follow one another), and the
        // heap stays unchanged.
        let due = match (next, self.waiting.peek()) {
            (Some(due), Some(Reverse(earliest))) if *earliest < due => {
                self.waiting.push(Reverse(due));
                self.waiting.pop().map(|Reverse(due)| due)
            }
            (Some(due), _) => Some(due),
            (None, _) => self.waiting.pop().map(|Reverse(due)| due),
        };
        self.current = due.map(|(_, index)| index);
        self.number += u64::from(self.current.is_some());
        Ok(self.current.is_some())
    }

    /// The index of the file with the current frame, and the frame's number among all files.
    pub(super) fn current(&self) -> Option<(usize, u64)> {
        self.current.map(|index| (index, self.number))
    }
}

/// Moves a file to its next frame. Returns that frame's time and the file's index.
fn ask(readers: &mut [Reader], index: usize) -> Result<Option<Due>, CaptureError> {
    let Some(reader) = readers.get_mut(index) else {
        return Ok(None);
    };
    let moved = reader.advance()?;
    Ok(moved.then(|| (reader.record().ts_ns.unwrap_or(i64::MIN), index)))
}
