//! Merges several files in the order of their timestamps.
//!
//! Frames of one file keep their order, even if the timestamps of the file run backwards. Frames of several files with
//! equal timestamps follow the order of the paths. mergecap takes the last path first, which would swap frames at the
//! border between two ring-buffer files. A frame without a timestamp directly follows the previous frame of its file,
//! as in mergecap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::reader::Reader;
use crate::error::CaptureError;

/// The timestamp of a file's current frame, and the index of the file.
type Due = (i64, usize);

pub(super) struct Merge {
    /// Files with a frame that is read but not returned yet, except the current file.
    waiting: BinaryHeap<Reverse<Due>>,
    /// Index of the first file that has not been read yet.
    unasked: usize,
    /// Index of the file with the current frame.
    current: Option<usize>,
    number: u64,
}

impl Merge {
    pub(super) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), unasked: 0, current: None, number: 0 }
    }

    /// Moves to the next frame of any file. Returns false at the end of all files.
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
        // Mostly, the next frame is in the current file, because ring-buffer files follow one another. In this case,
        // the heap stays as it is.
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

/// Moves a file to its next frame. Returns the time of this frame and the index of the file.
fn ask(readers: &mut [Reader], index: usize) -> Result<Option<Due>, CaptureError> {
    let Some(reader) = readers.get_mut(index) else {
        return Ok(None);
    };
    let moved = reader.advance()?;
    Ok(moved.then(|| (reader.record().ts_ns.unwrap_or(i64::MIN), index)))
}
