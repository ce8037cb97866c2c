//! The times at which users send next, earliest first. A user has at most one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// See the module. Times are Unix nanoseconds.
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Timers {
    pub(super) fn with_capacity(users: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(users) }
    }

    pub(super) fn push(&mut self, due_ns: i64, slot: usize) {
        self.heap.push(Reverse((due_ns, slot)));
    }

    /// The earliest time; `i64::MAX` when there is none.
    pub(super) fn next_ns(&self) -> i64 {
        self.heap.peek().map_or(i64::MAX, |Reverse((due_ns, _))| *due_ns)
    }

    /// The earliest user whose time has come, and that time.
    pub(super) fn pop(&mut self, now_ns: i64) -> Option<(i64, usize)> {
        if self.next_ns() > now_ns { None } else { self.heap.pop().map(|Reverse(entry)| entry) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_by_time_and_not_before_it() {
        let mut timers = Timers::with_capacity(4);
        assert_eq!((timers.next_ns(), timers.pop(100)), (i64::MAX, None));
        for (due, slot) in [(30, 0), (10, 1), (20, 2), (10, 0)] {
            timers.push(due, slot);
        }
        let mut popped = Vec::new();
        while let Some(entry) = timers.pop(20) {
            popped.push(entry);
        }
        assert_eq!(popped, [(10, 0), (10, 1), (20, 2)]);
        assert_eq!(timers.next_ns(), 30);
    }
}
