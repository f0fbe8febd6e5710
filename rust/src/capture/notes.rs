//! Problems in a capture that did not stop the reader. For each kind of problem, the number of occurrences and the
//! place of the first occurrence are stored.

use std::ffi::{OsStr, OsString};

use crate::error::Problem;

/// The problems of one file. The number of kinds is small, so the kinds are stored in a list.
#[derive(Default)]
pub(super) struct Notes {
    problems: Vec<Problem>,
}

impl Notes {
    /// Counts one occurrence of the problem `what`. Records the place of its first occurrence.
    #[cold]
    #[inline(never)]
    pub(super) fn add(&mut self, what: &'static str, frame: u64, offset: u64) {
        match self.problems.iter_mut().find(|problem| problem.what == what) {
            Some(problem) => problem.count += 1,
            None => self.problems.push(Problem {
                what: what.to_owned(),
                path: OsString::new(),
                frame: (frame > 0).then_some(frame),
                offset: Some(offset),
                count: 1,
                loses_data: false,
            }),
        }
    }

    /// The problems so far, with `path` as the name of the file.
    pub(super) fn of(&self, path: &OsStr) -> impl Iterator<Item = Problem> {
        self.problems.iter().map(move |problem| Problem { path: path.to_owned(), ..problem.clone() })
    }
}
