//! A queue that stores its first element inline. Most directions never have more than one segment in flight, so their
//! queue needs no heap memory.

use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    /// The front element, if it was added to an empty queue.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<T> Queue<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.rest.capacity()
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        match (&self.first, at) {
            (None, at) => self.rest.get(at),
            (first, 0) => first.as_ref(),
            (_, at) => self.rest.get(at - 1),
        }
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.as_ref().or_else(|| self.rest.front())
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut().or_else(|| self.rest.front_mut())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    /// Number of elements at the front for which `holds` is true. `holds` must be false for all later elements.
    pub(crate) fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        match &self.first {
            Some(first) if !holds(first) => 0,
            first => usize::from(first.is_some()) + self.rest.partition_point(holds),
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        if self.is_empty() {
            self.first = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    /// Inserts an element before the one at index `at`, or at the end.
    pub(crate) fn insert(&mut self, at: usize, element: T) {
        match (&mut self.first, at) {
            (None, _) if self.rest.is_empty() => self.first = Some(element),
            (None, at) => self.rest.insert(at, element),
            (Some(first), 0) => self.rest.push_front(std::mem::replace(first, element)),
            (Some(_), at) => self.rest.insert(at - 1, element),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::Queue;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        PushBack(u32),
        PopFront,
        Insert(usize, u32),
        Add(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => any::<u32>().prop_map(Step::PushBack),
            4 => Just(Step::PopFront),
            1 => (0..5_usize, any::<u32>()).prop_map(|(at, element)| Step::Insert(at, element)),
            1 => any::<u32>().prop_map(Step::Add),
        ]
    }

    proptest! {
        /// The queue gets few elements at a time, so that it is often empty.
        #[test]
        fn it_holds_what_a_plain_one_holds(steps in prop::collection::vec(step(), 0..60)) {
            let (mut queue, mut plain) = (Queue::default(), VecDeque::new());
            for step in steps {
                match step {
                    Step::PushBack(element) => {
                        queue.push_back(element);
                        plain.push_back(element);
                    }
                    Step::PopFront => prop_assert_eq!(queue.pop_front(), plain.pop_front()),
                    Step::Insert(at, element) => {
                        let at = at.min(plain.len());
                        queue.insert(at, element);
                        plain.insert(at, element);
                    }
                    Step::Add(number) => {
                        queue.front_mut().into_iter().for_each(|front| *front ^= number);
                        plain.front_mut().into_iter().for_each(|front| *front ^= number);
                        queue.iter_mut().skip(1).for_each(|element| *element = element.wrapping_add(number));
                        plain.range_mut(1.min(plain.len())..).for_each(|element| *element = element.wrapping_add(number));
                    }
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!(queue.front(), plain.front());
                let elements: Vec<_> = (0..=plain.len()).map(|at| queue.get(at)).collect();
                prop_assert_eq!(elements, (0..=plain.len()).map(|at| plain.get(at)).collect::<Vec<_>>());
                // The test needs a sorted queue, because real queues are sorted.
                let (mut sorted, mut plain_sorted) = (queue.clone(), plain.clone());
                plain_sorted.make_contiguous().sort_unstable();
                sorted.iter_mut().zip(&plain_sorted).for_each(|(element, in_order)| *element = *in_order);
                let below = |element: &u32| *element < u32::MAX / 2;
                prop_assert_eq!(sorted.partition_point(below), plain_sorted.partition_point(below));
            }
        }
    }

    #[test]
    fn one_at_a_time_takes_no_memory() {
        let mut queue = Queue::default();
        for element in 0..3 {
            queue.push_back(element);
            assert_eq!((queue.pop_front(), queue.capacity()), (Some(element), 0));
        }
        queue.push_back(3);
        queue.push_back(4);
        assert!(queue.capacity() > 0);
    }
}
