//! External events that the code has not taken yet, and the code that waits for them.
//!
//! Events of one name are taken in the order they came. Nothing is handed to a waiter before it polls, so a waiter that
//! is given up takes no event with it.

use std::collections::{HashMap, VecDeque};

use crate::ids::Name;
use crate::model::scope::Branch;
use crate::payload::Payload;

#[derive(Default)]
pub(super) struct Mailbox {
    letters: HashMap<Name, VecDeque<(u64, Payload)>>,
    came: u64,
    waits: Vec<EventWaiter>,
    waited: u64,
}

struct EventWaiter {
    number: u64,
    name: Name,
    branch: Option<Branch>,
}

impl Mailbox {
    /// Puts an event in. Whether somebody waits for one of its name.
    pub(super) fn put(&mut self, name: Name, data: Payload) -> bool {
        let mut is_awaited = false;
        for waiting in self.waits.iter().filter(|waiting| waiting.name == name) {
            is_awaited = true;
            if let Some(branch) = &waiting.branch {
                branch.wake();
            }
        }
        self.letters.entry(name).or_default().push_back((self.came, data));
        self.came += 1;
        is_awaited
    }

    /// Takes the oldest event of a name.
    pub(super) fn take(&mut self, name: &Name) -> Option<Payload> {
        let letters = self.letters.get_mut(name)?;
        let (_, data) = letters.pop_front()?;
        if letters.is_empty() {
            self.letters.remove(name);
        }
        Some(data)
    }

    /// Notes who waits; the number is for [`Mailbox::forget`], and given again to note another branch.
    pub(super) fn wait(&mut self, number: Option<u64>, name: &Name, branch: Option<Branch>) -> u64 {
        if let Some(waiting) = number.and_then(|number| self.waits.iter_mut().find(|found| found.number == number)) {
            waiting.branch = branch;
            return waiting.number;
        }
        let number = self.waited;
        self.waited += 1;
        self.waits.push(EventWaiter { number, name: name.clone(), branch });
        number
    }

    pub(super) fn forget(&mut self, number: u64) {
        self.waits.retain(|waiting| waiting.number != number);
    }

    /// Everything, in the order it came.
    pub(super) fn into_letters(self) -> Vec<(Name, Payload)> {
        let mut all: Vec<(u64, Name, Payload)> = Vec::new();
        for (name, letters) in self.letters {
            all.extend(letters.into_iter().map(|(came, data)| (came, name.clone(), data)));
        }
        all.sort_unstable_by_key(|(came, ..)| *came);
        all.into_iter().map(|(_, name, data)| (name, data)).collect()
    }
}
