//! Users of an open scenario who are free, on one thread.
//!
//! Targets take turns, so that each of several gets its share of the arrivals however few are under way. Of a target's
//! users the one whose connection was used last comes first, so that no more connections are open than the load needs;
//! one without a connection only when there is none.

use std::ops::Range;

use super::user::User;

/// See the module.
pub(super) struct Free {
    first_slot: usize,
    /// By target.
    groups: Vec<Group>,
    /// Whose turn it is.
    turn: usize,
    count: usize,
}

#[derive(Default)]
struct Group {
    /// Those that had a connection when they became free, the last one last.
    connected: Vec<usize>,
    others: Vec<usize>,
}

impl Free {
    /// All users of some slots, whose targets follow each other with a period of `targets`, at least 1.
    pub(super) fn new(slots: Range<usize>, targets: usize) -> Self {
        let mut free = Self { first_slot: slots.start, groups: Vec::new(), turn: 0, count: slots.len() };
        free.groups.resize_with(targets.min(slots.len()).max(1), Group::default);
        // The first user is taken first.
        for slot in slots.rev() {
            free.group(slot).others.push(slot);
        }
        free
    }

    fn group(&mut self, slot: usize) -> &mut Group {
        let at = (slot - self.first_slot) % self.groups.len();
        &mut self.groups[at]
    }

    /// Whether there is nobody.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One that is no longer free from now on.
    pub(super) fn take(&mut self, users: &[User]) -> Option<usize> {
        let targets = self.groups.len();
        for at in (0..targets).map(|step| (self.turn + step) % targets) {
            if let Some(slot) = self.groups[at].take(users) {
                self.turn = (at + 1) % targets;
                self.count -= 1;
                return Some(slot);
            }
        }
        None
    }

    /// Takes back a user.
    pub(super) fn give(&mut self, slot: usize, user: &User) {
        self.count += 1;
        let group = self.group(slot);
        let to = if user.is_connected { &mut group.connected } else { &mut group.others };
        to.push(slot);
    }
}

impl Group {
    /// A connection that was closed while its user was free is found out here.
    fn take(&mut self, users: &[User]) -> Option<usize> {
        while let Some(slot) = self.connected.pop() {
            if users[slot].is_connected {
                return Some(slot);
            }
            self.others.push(slot);
        }
        self.others.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(n: usize) -> Vec<User> {
        (0..n).map(|vu| User::new(0, vu as u32, ([127, 0, 0, 1], 9).into())).collect()
    }

    #[test]
    fn the_connection_used_last_is_used_next_and_a_closed_one_is_no_connection() {
        let (mut free, mut users) = (Free::new(0..3, 1), users(3));
        for slot in 0..3 {
            assert_eq!(free.take(&users), Some(slot));
            users[slot].is_connected = true;
        }
        for slot in [2, 0, 1] {
            free.give(slot, &users[slot]);
        }
        users[0].is_connected = false;
        let taken: Vec<Option<usize>> = (0..4).map(|_| free.take(&users)).collect();
        assert_eq!(taken, [Some(1), Some(2), Some(0), None]);
        assert!(free.is_empty());
    }

    #[test]
    fn targets_take_turns_though_one_user_at_a_time_would_do() {
        let (mut free, mut users) = (Free::new(2..8, 3), users(8));
        let taken: Vec<usize> = (0..5)
            .map(|_| {
                let slot = free.take(&users).unwrap();
                users[slot].is_connected = true;
                free.give(slot, &users[slot]);
                slot
            })
            .collect();
        assert_eq!(taken, [2, 3, 4, 2, 3]);
    }

    #[test]
    fn where_a_target_has_nobody_free_the_next_one_is_asked() {
        let (mut free, users) = (Free::new(0..4, 2), users(4));
        let taken: Vec<usize> = (0..4).map(|_| free.take(&users).unwrap()).collect();
        assert_eq!(taken, [0, 1, 2, 3]);
        free.give(0, &users[0]);
        free.give(2, &users[2]);
        assert_eq!((free.take(&users), free.take(&users), free.take(&users)), (Some(2), Some(0), None));
    }
}
