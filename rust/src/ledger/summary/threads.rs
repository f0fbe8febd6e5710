//! Distributes work over threads.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Applies `work` to each item and returns the results in the order of the items. The caller's thread and `threads` − 1
/// others take one item after another until none is left. If the system can start only fewer threads, these do all the
/// work.
///
/// # Errors
/// The first error that `work` returns.
pub(super) fn by_threads<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let count = items.len();
    let others = threads.min(count).saturating_sub(1);
    if others == 0 {
        return items.into_iter().map(work).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work_on =
        || std::iter::from_fn(next).map(|(place, item)| Ok((place, work(item)?))).collect::<io::Result<Vec<_>>>();
    let done = thread::scope(|scope| {
        let start = |_| thread::Builder::new().name("judge".into()).spawn_scoped(scope, work_on);
        let started: Vec<_> = (0..others).map_while(|other| start(other).ok()).collect();
        let own = work_on();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        started.into_iter().map(join).chain([own]).collect::<io::Result<Vec<_>>>()
    })?;
    let mut results: Vec<_> = std::iter::repeat_with(|| None).take(count).collect();
    for (place, result) in done.into_iter().flatten() {
        if let Some(slot) = results.get_mut(place) {
            *slot = Some(result);
        }
    }
    Ok(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::by_threads;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for threads in [0, 1, 2, 8] {
            let doubled = by_threads(threads, (0..1000).collect(), |number: u32| Ok(2 * number)).unwrap();
            assert!(doubled.into_iter().eq((0..1000).map(|number| 2 * number)), "{threads} threads");
        }
        assert!(by_threads(4, Vec::<u32>::new(), Ok).unwrap().is_empty());
    }

    #[test]
    fn an_error_of_one_item_is_that_of_all() {
        for threads in [1, 3] {
            let work = |number: u32| if number == 70 { Err(io::ErrorKind::InvalidData.into()) } else { Ok(number) };
            let result = by_threads(threads, (0..100).collect(), work);
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData, "{threads} threads");
        }
    }
}
