//! Problems that did not stop a reader, counted by kind, with the place of the first.

use std::ffi::{OsStr, OsString};

use crate::error::Problem;

/// The problems of one file. There are few kinds, so a list is searched.
#[derive(Default)]
pub(super) struct Notes {
    problems: Vec<Problem>,
}

impl Notes {
    /// Counts one occurrence of `what` and records the place of the first.
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

    /// The problems so far, attributed to `path`.
    pub(super) fn of(&self, path: &OsStr) -> impl Iterator<Item = Problem> {
        self.problems.iter().map(move |problem| Problem { path: path.to_owned(), ..problem.clone() })
    }
}
