//! Transfers that this instance has acknowledged, and the proof that the database has them: `GET /ledger`.
//!
//! Every transfer has its own number and writes a row with it in the table `ledger`, in its own transaction. The
//! instance remembers how many it acknowledged and their sum, which are under way, and of which it does not know what
//! became of their commit. All others must be in the table, no more and no less, on every node; and every item must
//! have what it had in the beginning and what the whole table, of all instances, says that came and went. Numbers begin
//! anew with the process, so each process has its own identifier.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::session::random;

/// Transfers of unknown fate that are remembered one by one; past it they are only counted.
const UNKNOWN_MAX: usize = 1_000;

/// How many, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub(crate) struct Sum {
    pub(crate) writes: u64,
    pub(crate) amount: i64,
}

/// The transfers of one process.
#[derive(Debug)]
pub(crate) struct Ledger {
    instance: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
    unknown_left_out: u64,
    acknowledged: Sum,
}

/// Rows that the table must hold of one process: of the numbers below `below`, all that are not `excepted` and were not
/// undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) instance: u64,
    pub(crate) below: u64,
    /// Those under way, and those with an unknown outcome.
    pub(crate) excepted: Vec<u64>,
    /// How many more of unknown fate there are, whose numbers were not kept.
    pub(crate) left_out: u64,
    pub(crate) acknowledged: Sum,
}

impl Claim {
    /// Whether what was found in the table, without the excepted, is what was acknowledged.
    pub(crate) fn is_met_by(&self, found: Sum) -> bool {
        match self.left_out {
            0 => found == self.acknowledged,
            left_out => (self.acknowledged.writes..=self.acknowledged.writes + left_out).contains(&found.writes),
        }
    }
}

impl Ledger {
    pub(crate) fn new() -> Self {
        // The column is signed, as the client library's texts for unsigned ones differ between servers.
        Self { instance: random() >> 1, state: Mutex::default() }
    }

    /// Opens an entry with the next number.
    pub(crate) fn enter(&self) -> Entry<'_> {
        let mut state = self.state();
        let seq = state.next;
        state.next += 1;
        state.open.insert(seq);
        Entry { ledger: self, seq, fate: Fate::Undone }
    }

    /// The rows that must be in the table now.
    pub(crate) fn claim(&self) -> Claim {
        let state = self.state();
        Claim {
            instance: self.instance,
            below: state.next,
            excepted: state.open.union(&state.unknown).copied().collect(),
            left_out: state.unknown_left_out,
            acknowledged: state.acknowledged,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing of it is in the database.
    Undone,
    Unknown,
    Acknowledged(u32),
}

/// One transfer on its way. However it ends, and also when its client goes away, it is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    ledger: &'a Ledger,
    seq: u64,
    fate: Fate,
}

impl Entry<'_> {
    /// Its key in the table.
    pub(crate) fn key(&self) -> (u64, u64) {
        (self.ledger.instance, self.seq)
    }

    /// The same as reported to a client.
    pub(crate) fn id(&self) -> String {
        format!("{:016x}-{}", self.ledger.instance, self.seq)
    }

    /// The commit is sent: from now on nobody knows, until the database has responded.
    pub(crate) fn committing(&mut self) {
        self.fate = Fate::Unknown;
    }

    /// The database has undone it.
    pub(crate) fn not_committing(&mut self) {
        self.fate = Fate::Undone;
    }

    /// The database has it, and the client is about to get its response.
    pub(crate) fn acknowledge(mut self, amount: u32) {
        self.fate = Fate::Acknowledged(amount);
    }

    /// The database did not say what became of it.
    pub(crate) fn forsake(mut self) {
        self.fate = Fate::Unknown;
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut state = self.ledger.state();
        state.open.remove(&self.seq);
        match self.fate {
            Fate::Undone => {}
            Fate::Unknown if state.unknown.len() < UNKNOWN_MAX => {
                state.unknown.insert(self.seq);
            }
            Fate::Unknown => state.unknown_left_out += 1,
            Fate::Acknowledged(amount) => {
                state.acknowledged.writes += 1;
                state.acknowledged.amount += i64::from(amount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fate_is_kept_where_it_belongs() {
        let ledger = Ledger::new();
        let open = ledger.enter();
        drop(ledger.enter());
        ledger.enter().acknowledge(5);
        ledger.enter().forsake();
        let mut gone_in_commit = ledger.enter();
        gone_in_commit.committing();
        drop(gone_in_commit);
        let mut conflicted = ledger.enter();
        conflicted.committing();
        conflicted.not_committing();
        drop(conflicted);
        let claim = ledger.claim();
        assert_eq!((claim.below, claim.excepted.as_slice(), claim.left_out), (6, &[0, 3, 4][..], 0));
        assert_eq!(claim.acknowledged, Sum { writes: 1, amount: 5 });
        open.acknowledge(7);
        assert_eq!(ledger.claim().acknowledged, Sum { writes: 2, amount: 12 });
        assert_eq!(ledger.claim().excepted, [3, 4]);
    }

    #[test]
    fn a_claim_is_met_by_what_was_acknowledged_and_nothing_else() {
        let acknowledged = Sum { writes: 3, amount: 30 };
        let claim = |left_out| Claim { instance: 1, below: 9, excepted: vec![], left_out, acknowledged };
        for (left_out, writes, amount, is_met) in [
            (0, 3, 30, true),
            (0, 2, 20, false),
            (0, 4, 40, false),
            (0, 3, 29, false),
            (2, 3, 30, true),
            (2, 5, 99, true),
            (2, 6, 99, false),
            (2, 2, 20, false),
        ] {
            assert_eq!(claim(left_out).is_met_by(Sum { writes, amount }), is_met, "{left_out} {writes} {amount}");
        }
    }

    #[test]
    fn unknown_fates_are_bounded_and_then_counted() {
        let ledger = Ledger::new();
        (0..UNKNOWN_MAX + 3).for_each(|_| ledger.enter().forsake());
        let claim = ledger.claim();
        assert_eq!((claim.excepted.len(), claim.left_out), (UNKNOWN_MAX, 3));
    }
}
