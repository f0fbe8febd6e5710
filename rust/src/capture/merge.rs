//! Several files in the order of their timestamps.
//!
//! Within a file the order never changes, even where its time runs backward. Frames of equal time come in the order
//! of the paths (mergecap takes the last path first; for files of a ring buffer that would swap neighbours). A frame
//! without a time follows its predecessor at once, as mergecap has it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::reader::Reader;
use crate::error::CaptureError;

/// When a file's current frame is due, then the file's place among the paths.
type Due = (i64, usize);

/// The order of the frames.
pub(super) struct Merge {
    /// Files whose current frame is known and was not given out, but for the current one.
    waiting: BinaryHeap<Reverse<Due>>,
    /// Files that were not asked for their first frame yet begin here.
    unasked: usize,
    /// The file whose frame was given out last.
    current: Option<usize>,
    number: u64,
}

impl Merge {
    pub(super) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), unasked: 0, current: None, number: 0 }
    }

    /// Moves to the next frame of any file; false at the end of all.
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
        // Mostly the same file goes on (files of a ring buffer follow one another), and the heap stays as it is.
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

    /// The file that has the current frame, and the frame's number among all.
    pub(super) fn current(&self) -> Option<(usize, u64)> {
        self.current.map(|index| (index, self.number))
    }
}

/// Moves a file to its next frame and says when that is due.
fn ask(readers: &mut [Reader], index: usize) -> Result<Option<Due>, CaptureError> {
    let Some(reader) = readers.get_mut(index) else {
        return Ok(None);
    };
    let moved = reader.advance()?;
    Ok(moved.then(|| (reader.record().ts_ns.unwrap_or(i64::MIN), index)))
}
