//! Numbers of executions.

/// The number that the first execution of an unused identifier gets.
///
/// It is above the numbers of all executions that were purged, so that late results for one of those reach no later
/// execution.
#[derive(Debug, Default)]
pub(super) struct Generations {
    next: u64,
    /// As far as the log knows.
    logged: u64,
}

impl Generations {
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Raises the number, for the next frame to say so.
    pub(super) fn raise(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// Raises the number to one that the log has.
    pub(super) fn restore(&mut self, next: u64) {
        self.raise(next);
        self.logged = self.next;
    }

    /// The number, if it has grown since the log was last told.
    pub(super) fn newly_raised(&mut self) -> Option<u64> {
        (self.next > self.logged).then(|| {
            self.logged = self.next;
            self.next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_of_a_number_once_and_never_of_a_smaller_one() {
        let mut generations = Generations::default();
        generations.restore(5);
        assert_eq!((generations.next(), generations.newly_raised()), (5, None), "it is from the log");
        generations.raise(3);
        assert_eq!(generations.newly_raised(), None);
        generations.raise(7);
        assert_eq!((generations.newly_raised(), generations.newly_raised()), (Some(7), None));
    }
}
