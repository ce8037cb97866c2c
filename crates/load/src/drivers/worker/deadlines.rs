//! Whose time is up: the users that wait for a response, by the moment until which they wait.
//!
//! A user stands here once at most. Its deadline may be long past because its request has completed; whoever takes it
//! out sees whether it still waits. So a request costs one look at a flag, not a place in a queue, and looking for
//! timeouts does not go through all users.

use super::timers::Timers;

/// See the module. Times are Unix nanoseconds.
pub(super) struct Deadlines {
    timers: Timers,
    is_watched: Vec<bool>,
}

impl Deadlines {
    pub(super) fn new(users: usize) -> Self {
        Self { timers: Timers::with_capacity(0), is_watched: vec![false; users] }
    }

    /// Takes note of a user's deadline, unless one that is no later stands here.
    pub(super) fn watch(&mut self, slot: usize, deadline_ns: i64) {
        if !self.is_watched[slot] {
            self.is_watched[slot] = true;
            self.timers.push(deadline_ns, slot);
        }
    }

    /// Nobody's time is up before then; `i64::MAX` when nobody waits.
    pub(super) fn next_ns(&self) -> i64 {
        self.timers.next_ns()
    }

    /// A user whose time may be up, no longer watched.
    pub(super) fn pop(&mut self, now_ns: i64) -> Option<usize> {
        let (_, slot) = self.timers.pop(now_ns)?;
        self.is_watched[slot] = false;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_stands_here_once_with_its_earliest_deadline() {
        let mut deadlines = Deadlines::new(2);
        assert_eq!((deadlines.next_ns(), deadlines.pop(100)), (i64::MAX, None));
        for (slot, deadline_ns) in [(1, 20), (0, 10), (0, 30), (1, 40)] {
            deadlines.watch(slot, deadline_ns);
        }
        assert_eq!((deadlines.next_ns(), deadlines.pop(9)), (10, None));
        assert_eq!([deadlines.pop(15), deadlines.pop(15)], [Some(0), None]);
        deadlines.watch(0, 30);
        assert_eq!([deadlines.pop(50), deadlines.pop(50), deadlines.pop(50)], [Some(1), Some(0), None]);
    }
}
