//! One physical partition: its documents, their index and the budget they are read and written from.
//!
//! Every operation requests admission, runs and books its charge under one lock, so the sum booked in a second never
//! depends on how requests interleave. Documents are kept as the text that responses carry.

mod feed;
mod patch;
mod queries;
mod split;
mod stamp;
mod state;
mod texts;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::state::State;
use crate::budget::Budget;
use crate::charge::Charge;
use crate::definition::Definition;
use crate::moment::Moment;
use crate::storage::{Journal, Mark, Unavailable};
use crate::stored_document::StoredDocument;

pub(crate) use self::feed::{Changes, Scope, Since};
pub(crate) use self::patch::Patch;
pub(crate) use self::stamp::{Stamp, etag_of};
pub(crate) use self::write::{Command, MAX_DOCUMENT_BYTES, Operation, Outcome, Step};

/// Result, with its cost and the partition's log sequence number after it.
#[derive(Debug)]
pub(crate) struct Completed<T> {
    pub(crate) outcome: T,
    pub(crate) charge: Charge,
    pub(crate) lsn: u64,
    /// The bytes of all documents' text after it.
    pub(crate) text_bytes: usize,
}

/// Why nothing was done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It takes longer than other requests can wait, and must run on a separate thread.
    Long,
    /// The disk takes no more writes.
    Unavailable(Unavailable),
    /// The second's budget is used up; a second with units left begins after `retry_after`.
    Throttled { retry_after: Duration, charge: Charge },
    /// The partition was split; its documents are in others now.
    Moved,
}

/// A partition's throughput since the store opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Units that each second provides.
    pub(crate) provisioned: Charge,
    /// Cost of all requests together.
    pub(crate) consumed: Charge,
    /// Requests that were refused because the budget was spent.
    pub(crate) throttled: u64,
    /// The bytes of its documents' text at this moment.
    pub(crate) text_bytes: usize,
}

/// Why an admitted request was not done.
enum Undone {
    /// Its charge exceeds the budget.
    Uncovered,
    /// It takes longer than other requests can wait.
    Long,
}

/// Some documents of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) documents: Vec<Arc<str>>,
    /// The number of the document the next page starts at, if there may be one.
    pub(crate) next: Option<u64>,
}

/// One physical partition.
#[derive(Debug)]
pub(crate) struct Partition {
    state: Mutex<State>,
    journal: Journal,
    opened_unix_s: u64,
}

impl Partition {
    /// An empty partition; `opened_unix_s` is the time at which the store's clock began.
    pub(crate) fn new(
        budget: Budget,
        definition: Arc<Definition>,
        stamp: Stamp,
        journal: Journal,
        opened_unix_s: u64,
    ) -> Self {
        let state = Mutex::new(State::new(budget, definition, stamp, journal.clone()));
        Self { state, journal, opened_unix_s }
    }

    /// Goes on where `mark` was, with the documents that [`Partition::restore`] is given.
    pub(crate) fn go_on(&self, mark: Mark) {
        let mut state = self.lock();
        state.go_on(mark);
        state.reserve(mark.documents);
    }

    /// Takes a document from the disk; the error says why it cannot be here.
    pub(crate) fn restore(&self, held: StoredDocument) -> Result<(), String> {
        self.lock().restore(held)
    }

    /// Refuses requests as one that was split.
    pub(crate) fn retire(&self) {
        self.lock().is_retired = true;
    }

    /// How far the partition is.
    pub(crate) fn mark(&self) -> Mark {
        self.lock().mark()
    }

    /// Reads up to `limit` documents, from document number `from` on.
    pub(crate) fn list(
        &self,
        moment: &Moment,
        scope: &Scope,
        from: u64,
        limit: usize,
    ) -> Result<Completed<Page>, Refusal> {
        self.metered(moment, |state| {
            let (documents, next) = state.list(scope, state.position_of(from), limit);
            let next = next.map(|position| state.entries[position as usize].number);
            let charge = Charge::query_page(documents.len(), 0);
            Ok((Page { documents, next }, charge))
        })
    }

    /// Reads up to `limit` documents that changed.
    pub(crate) fn changes(
        &self,
        moment: &Moment,
        scope: &Scope,
        since: Since,
        limit: usize,
    ) -> Result<Completed<Changes>, Refusal> {
        self.metered(moment, |state| {
            let changes = state.changes(scope, since, limit);
            let bytes = changes.documents.iter().map(String::len).sum();
            Ok((changes, Charge::point_read(bytes)))
        })
    }

    /// Runs operations as one transaction: all of them or none.
    pub(crate) fn transact(&self, moment: &Moment, commands: &[Command]) -> Result<Completed<Vec<Step>>, Refusal> {
        let unix_s = self.unix_s(moment.now);
        let is_write = commands.iter().any(|command| !command.operation.is_read());
        if is_write {
            self.journal.check().map_err(Refusal::Unavailable)?;
        }
        self.metered(moment, |state| {
            let steps = state.transact(commands, unix_s, Budget::covers).ok_or(Undone::Uncovered)?;
            let charge = steps.iter().map(|step| step.charge).sum();
            Ok((steps, charge))
        })
    }

    /// Writes a document before the store opens, without checking the budget.
    pub(crate) fn load(&self, command: Command) {
        self.lock().transact(&[command], self.opened_unix_s, |_, _| true);
    }

    /// Provides `per_second` from now on.
    pub(crate) fn provision(&self, per_second: Charge, now: Duration) {
        self.lock().budget.provision(per_second, now);
    }

    /// Obeys a changed definition from now on.
    pub(crate) fn redefine(&self, definition: &Arc<Definition>) {
        self.lock().redefine(Arc::clone(definition));
    }

    /// Units provided, used and refused so far. A partition that was split provides nothing more.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.lock();
        let provisioned = if state.is_retired { Charge::ZERO } else { state.budget.per_second() };
        let State { consumed, throttled, text_bytes, .. } = *state;
        Usage { provisioned, consumed, throttled, text_bytes }
    }

    /// The bytes of all documents' text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.lock().text_bytes
    }

    /// The bytes it had when it was found to have one partition key.
    pub(crate) fn indivisible_bytes(&self) -> usize {
        self.lock().indivisible_bytes
    }

    fn unix_s(&self, now: Duration) -> u64 {
        self.opened_unix_s.saturating_add(now.as_secs())
    }

    /// Runs a request within the budget. `run` returns its outcome and charge.
    fn metered<T>(
        &self,
        moment: &Moment,
        run: impl FnOnce(&mut State) -> Result<(T, Charge), Undone>,
    ) -> Result<Completed<T>, Refusal> {
        let mut state = self.admitted(moment)?;
        match run(&mut state) {
            Ok((outcome, charge)) => state.booked(moment, outcome, charge),
            Err(Undone::Uncovered) => {
                let retry_after = state.budget.rest(moment.now);
                Err(state.refused(retry_after))
            }
            Err(Undone::Long) => Err(Refusal::Long),
        }
    }

    /// The partition's state, if the budget admits a request.
    fn admitted(&self, moment: &Moment) -> Result<MutexGuard<'_, State>, Refusal> {
        let mut state = self.lock();
        if state.is_retired {
            return Err(Refusal::Moved);
        }
        if let Err(retry_after) = state.budget.admit(moment.now) {
            return Err(state.refused(retry_after));
        }
        state.expire(self.unix_s(moment.now));
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Books a request, if the budget covers its charge.
    fn booked<T>(&mut self, moment: &Moment, outcome: T, charge: Charge) -> Result<Completed<T>, Refusal> {
        if !self.budget.covers(charge) {
            return Err(self.refused(self.budget.rest(moment.now)));
        }
        self.budget.spend(charge);
        self.consumed = self.consumed + charge;
        moment.saw(self.ticket);
        Ok(Completed { outcome, charge, lsn: self.lsn, text_bytes: self.text_bytes })
    }

    /// Counts a refusal that the budget has booked.
    fn refused(&mut self, retry_after: Duration) -> Refusal {
        let charge = self.budget.refusal();
        self.throttled += 1;
        self.consumed = self.consumed + charge;
        Refusal::Throttled { retry_after, charge }
    }
}

fn as_locked(partition: &Partition) -> MutexGuard<'_, State> {
    partition.lock()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::budget::{Excess, Phase};
    use crate::document::Document;
    use crate::effective_key::EffectiveKey;
    use crate::partition_key::{KeyDefinition, PartitionKey};
    use crate::query::Selection;
    use crate::resource_id::ContainerId;
    use crate::scalar::Scalar;
    use crate::sql::Progress;

    fn empty() -> Partition {
        kept_by(Journal::none())
    }

    fn kept_by(journal: Journal) -> Partition {
        let budget = Budget::new(Charge::from_hundredths(10_000), Phase::ZERO);
        let container = ContainerId { database: 0, container: 0 };
        let stamp = Stamp { container, range: 0, next_number: Arc::default() };
        Partition::new(budget, Arc::new(Definition::plain("c", KeyDefinition::of_property("n"))), stamp, journal, 0)
    }

    fn upsert(partition: &Partition, key: &str, document: serde_json::Value) {
        let effective = EffectiveKey::new(&PartitionKey(vec![Scalar::Text(key.to_owned())]), false);
        let document = Document::from(document.as_object().unwrap().clone());
        let operation = Operation::Upsert(document);
        partition.load(Command { key: key.into(), effective, operation, if_match: None, if_none_match: None });
    }

    fn partition(documents: usize, bytes_each: usize) -> Partition {
        let partition = empty();
        for number in 0..documents {
            let document = json!({ "n": number, "even": number % 2 == 0, "text": "x".repeat(bytes_each) });
            upsert(&partition, &number.to_string(), document);
        }
        partition
    }

    fn selection(sql: &str) -> Selection {
        Selection::from_body(json!({ "query": sql }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn requests_at_once_are_admitted_as_many_as_in_turn() {
        let partition = partition(0, 0);
        let selection = selection("SELECT * FROM c");
        let admitted: usize = std::thread::scope(|scope| {
            let ask = || {
                (0..50)
                    .filter(|_| {
                        partition.query(&Moment::at(Duration::ZERO), &selection, &Progress::default(), 1).is_ok()
                    })
                    .count()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 32);
        let usage = partition.usage();
        let refusals = 8 * 50 - 32;
        let consumed = Charge::from_hundredths(32 * 320 + refusals * 38);
        assert_eq!((usage.consumed, usage.throttled), (consumed, refusals));
    }

    #[test]
    fn usage_adds_up_over_the_seconds() {
        let partition = partition(0, 0);
        for second in 0..3 {
            for _ in 0..40 {
                let _ = partition.query(
                    &Moment::at(Duration::from_secs(second)),
                    &selection("SELECT * FROM c"),
                    &Progress::default(),
                    1,
                );
            }
        }
        let expected = Usage {
            provisioned: Charge::from_hundredths(10_000),
            // The second and the third second have a debt of 5.44 and 5.24 RU.
            consumed: Charge::from_hundredths((32 + 30 + 30) * 320 + (8 + 10 + 10) * 38),
            throttled: 8 + 10 + 10,
            text_bytes: 0,
        };
        assert_eq!(partition.usage(), expected);
    }

    #[test]
    fn what_a_strict_budget_does_not_cover_is_undone() {
        let partition = empty();
        let budget = Budget::new(Charge::from_hundredths(900), Phase::ZERO);
        partition.lock().budget = budget.with(Excess::Strict);
        let create = |id: &str| {
            let effective = EffectiveKey::new(&PartitionKey(vec![Scalar::Text("o".to_owned())]), false);
            let document = Document::from(json!({ "id": id }).as_object().unwrap().clone());
            let operation = Operation::Create(document);
            Command { key: id.into(), effective, operation, if_match: None, if_none_match: None }
        };
        let refused = Refusal::Throttled { retry_after: Duration::from_secs(1), charge: Charge::ZERO };
        // A create costs 5.80 + 0.30.
        let both = [create("1"), create("2")];
        assert_eq!(partition.transact(&Moment::at(Duration::ZERO), &both).unwrap_err(), refused);
        assert_eq!(partition.mark(), Mark { number: partition.mark().number, ..Mark::default() });
        partition.transact(&Moment::at(Duration::ZERO), &[create("1")]).unwrap();
        assert_eq!(partition.transact(&Moment::at(Duration::ZERO), &[create("2")]).unwrap_err(), refused);
        let query = || {
            let (moment, all) = (Moment::at(Duration::ZERO), selection("SELECT * FROM c"));
            partition.query(&moment, &all, &Progress::default(), 10).map(drop)
        };
        assert_eq!(query().unwrap_err(), refused);
        let usage = partition.usage();
        assert_eq!((usage.consumed, usage.throttled), (Charge::from_hundredths(610), 3));
        assert_eq!(partition.mark().documents, 1);
    }

    #[test]
    fn conditions_meet_in_the_index() {
        let partition = partition(10, 0);
        let count = |sql| {
            let done =
                partition.query(&Moment::at(Duration::ZERO), &selection(sql), &Progress::default(), 100).unwrap();
            done.outcome.unwrap().items.len()
        };
        assert_eq!(count("SELECT * FROM c WHERE c.even = true"), 5);
        assert_eq!(count("SELECT * FROM c WHERE c.even = true AND c.n = 4"), 1);
        assert_eq!(count("SELECT * FROM c WHERE c.even = true AND c.n = 5"), 0);
        assert_eq!(count("SELECT * FROM c WHERE c.missing = true"), 0);
    }

    #[test]
    fn who_reads_a_write_waits_for_it_as_its_writer_does() {
        let journal = Journal::new();
        let partition = kept_by(journal.clone());
        let seen_by_a_reader = || {
            let moment = Moment::at(Duration::ZERO);
            partition.query(&moment, &selection("SELECT * FROM c"), &Progress::default(), 1).unwrap();
            moment.seen()
        };
        let before = seen_by_a_reader();
        upsert(&partition, "0", json!({ "n": 0 }));
        let after = seen_by_a_reader();
        assert!(before < after, "{before:?} {after:?}");
        let [lower, upper] = [Journal::none(), Journal::none()].map(kept_by);
        partition.split(1, [&lower, &upper]);
        let moment = Moment::at(Duration::ZERO);
        lower.transact(&moment, &[]).unwrap();
        assert_eq!(moment.seen(), after);
    }

    #[test]
    fn a_replaced_document_leaves_nothing_in_the_index() {
        let partition = partition(1, 0);
        upsert(&partition, "0", json!({ "n": 7 }));
        let state = partition.lock();
        let holders = |n| state.index.proposals(&["n".to_owned()], &Scalar::Number(n));
        assert_eq!((holders(0.0), holders(7.0)), ([].as_slice(), [0].as_slice()));
    }

    #[test]
    fn a_page_is_cut_at_its_bytes_but_never_empty() {
        let partition = partition(5, MAX_DOCUMENT_BYTES - 1_000);
        let from = Progress { number: 1, ..Progress::default() };
        let done = partition.query(&Moment::at(Duration::ZERO), &selection("SELECT * FROM c"), &from, 100).unwrap();
        let page = done.outcome.unwrap();
        let next = Progress { number: 3, emitted: 2, ..Progress::default() };
        assert_eq!((page.items.len(), page.next), (2, Some(next)));
    }
}
