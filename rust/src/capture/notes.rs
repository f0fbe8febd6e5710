//! Problems that did not stop the reader.

use std::ffi::{OsStr, OsString};

use crate::error::Problem;

/// The problems of one file: the number of occurrences and the first place, for each kind. There are few kinds, so a
/// list suffices.
#[derive(Default)]
pub(super) struct Notes {
    problems: Vec<Problem>,
}

impl Notes {
    /// Counts an occurrence of the problem `what`. The first occurrence of a problem also records its place.
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

    /// The problems so far, in the file named `path`.
    pub(super) fn of(&self, path: &OsStr) -> impl Iterator<Item = Problem> {
        self.problems.iter().map(move |problem| Problem { path: path.to_owned(), ..problem.clone() })
    }
}
