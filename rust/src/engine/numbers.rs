//! Numbers connections in the order in which they were opened.

use crate::flows::ConnectionRow;

/// The final numbers of connections. Each worker numbers its own connections from 0 first.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// For each worker, the final numbers of its connections in order of the worker's own numbers.
    threads: Vec<Vec<u32>>,
    count: u32,
}

impl Numbers {
    /// Starts the numbering for `threads` workers. If `threads` is 0, the workers' own numbers are final.
    pub(super) fn of(threads: usize) -> Self {
        Self { threads: vec![Vec::new(); threads], count: 0 }
    }

    /// Numbers new connections. For each worker, `opened` contains the indices of the packets that opened connections,
    /// in ascending order.
    pub(super) fn add<'a>(&mut self, opened: impl Iterator<Item = &'a [u32]>) {
        let of_thread = |(thread, places): (usize, &'a [u32])| places.iter().map(move |place| (*place, thread));
        let mut all: Vec<_> = opened.enumerate().flat_map(of_thread).collect();
        all.sort_unstable();
        for (_, thread) in all {
            if let Some(numbers) = self.threads.get_mut(thread) {
                numbers.push(self.count);
                self.count = self.count.wrapping_add(1);
            }
        }
    }

    /// Replaces a worker's own numbers in `rows` by the final ones.
    pub(super) fn renumber(&self, thread: usize, rows: &mut [ConnectionRow]) {
        for row in rows {
            row.conn = self.number(thread, row.conn);
        }
    }

    fn number(&self, thread: usize, own: u32) -> u32 {
        self.threads.get(thread).and_then(|numbers| numbers.get(own as usize)).copied().unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn connections_are_numbered_as_they_were_opened() {
        let mut numbers = Numbers::of(2);
        numbers.add([[1, 7].as_slice(), &[3]].into_iter());
        numbers.add([[].as_slice(), &[2, 9]].into_iter());
        numbers.add([[4].as_slice(), &[]].into_iter());
        let of = |thread, owns: std::ops::Range<u32>| owns.map(|own| numbers.number(thread, own)).collect::<Vec<_>>();
        assert_eq!((of(0, 0..3), of(1, 0..3)), (vec![0, 2, 5], vec![1, 3, 4]));
    }
}
