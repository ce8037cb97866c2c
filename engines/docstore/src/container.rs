//! One container: its definition, its throughput, and the ranges of its hash space with a physical partition for each.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::budget::{Budget, Excess, Phase};
use crate::charge::Charge;
use crate::config::MAX_PARTITIONS;
use crate::definition::Definition;
use crate::document::Document;
use crate::effective_key::EffectiveKey;
use crate::moment::Moment;
use crate::partition::{Command, Completed, Operation, Partition, Refusal, Stamp, Step};
use crate::partition_key::PartitionKey;
use crate::ranges::{Range, Ranges};
use crate::resource_id::ContainerId;
use crate::seed;
use crate::storage::{Change, ContainerRecord, Journal, Mark};
use crate::stored_document::StoredDocument;
use crate::throughput::Throughput;

/// Cosmos DB's limit of a document's id.
const MAX_ID_BYTES: usize = 1_023;
/// How often a request looks for its partition again after a split.
const MOVES_MAX: usize = 16;

/// One container with its documents.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) id: ContainerId,
    pub(crate) rid: String,
    pub(crate) created_unix_s: u64,
    definition: RwLock<Arc<Definition>>,
    throughput: Mutex<Throughput>,
    ranges: RwLock<Arc<Ranges>>,
    next_number: Arc<AtomicU64>,
    setting: Surroundings,
}

/// Surroundings of a container.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Where changes go.
    pub(crate) journal: Journal,
    /// The time at which the store's clock began.
    pub(crate) opened_unix_s: u64,
    /// The text beyond which a partition is split.
    pub(crate) split_bytes: usize,
    /// Treatment of requests that go beyond a budget.
    pub(crate) excess: Excess,
    /// Seed of the phases of the partitions' seconds.
    pub(crate) seed: u64,
}

/// Where a document lives and under which key.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) key: Vec<u8>,
    pub(crate) effective: EffectiveKey,
    pub(crate) partition_key: PartitionKey,
}

/// Parts of a new container.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) definition: Definition,
    pub(crate) throughput: Throughput,
    pub(crate) partitions: u32,
}

impl Container {
    /// An empty container; `unix_s` is the time of its creation.
    pub(crate) fn new(id: ContainerId, plan: Plan, unix_s: u64, setting: Surroundings) -> Self {
        let Plan { definition, throughput, partitions } = plan;
        let definition = Arc::new(definition);
        let next_number = Arc::new(AtomicU64::new(1));
        let partition = |range| {
            let stamp = Stamp { container: id, range, next_number: Arc::clone(&next_number) };
            setting.partition(share(throughput, partitions), &definition, stamp)
        };
        let ranges = Ranges::equal(partitions, partition);
        Self::of(id, unix_s, definition, throughput, ranges, next_number, setting)
    }

    /// The container of a record, for [`Container::restore`] to fill; the error says what cannot be. `marks` has that of each
    /// current range.
    pub(crate) fn restored(
        record: &ContainerRecord,
        marks: &BTreeMap<u32, Mark>,
        setting: Surroundings,
    ) -> Result<Self, String> {
        let ContainerRecord { id, created_unix_s, definition, throughput, ranges } = record;
        let last = marks.values().map(|mark| mark.number).max().unwrap_or_default();
        let next_number = Arc::new(AtomicU64::new(last.saturating_add(1)));
        let partition = |range| {
            let stamp = Stamp { container: *id, range, next_number: Arc::clone(&next_number) };
            // `distribute` provides for it.
            setting.partition(Charge::ZERO, definition, stamp)
        };
        let ranges = Ranges::restored(ranges, partition)?;
        for range in ranges.iter() {
            range.partition.go_on(*marks.get(&range.id).ok_or_else(|| format!("range {} has no mark", range.id))?);
        }
        let definition = Arc::clone(definition);
        let restored = Self::of(*id, *created_unix_s, definition, *throughput, ranges, next_number, setting);
        restored.distribute(*throughput, Duration::ZERO);
        Ok(restored)
    }

    fn of(
        id: ContainerId,
        created_unix_s: u64,
        definition: Arc<Definition>,
        throughput: Throughput,
        ranges: Ranges,
        next_number: Arc<AtomicU64>,
        setting: Surroundings,
    ) -> Self {
        Self {
            name: definition.name.clone(),
            id,
            rid: id.text(),
            created_unix_s,
            definition: RwLock::new(definition),
            throughput: Mutex::new(throughput),
            ranges: RwLock::new(Arc::new(ranges)),
            next_number,
            setting,
        }
    }

    /// Takes a document from the disk; the error says why it cannot be here.
    pub(crate) fn restore(&self, ranges: &Ranges, held: StoredDocument) -> Result<(), String> {
        ranges.holding(held.entry.effective.place()).partition.restore(held)
    }

    /// Whether the documents that were restored are all that `marks` count.
    pub(crate) fn check_restored(&self, marks: &BTreeMap<u32, Mark>) -> Result<(), String> {
        for range in self.ranges().iter() {
            let (found, mark) = (range.partition.mark(), marks.get(&range.id).copied().unwrap_or_default());
            if found.documents != mark.documents {
                let (id, found, expected) = (range.id, found.documents, mark.documents);
                return Err(format!("range {id} has {found} documents, expected {expected}"));
            }
        }
        Ok(())
    }

    /// The container as plain data.
    pub(crate) fn record(&self) -> ContainerRecord {
        let throughput = self.lock_throughput();
        self.described(self.definition(), *throughput, &self.ranges())
    }

    fn described(&self, definition: Arc<Definition>, throughput: Throughput, ranges: &Ranges) -> ContainerRecord {
        let (id, created_unix_s, ranges) = (self.id, self.created_unix_s, ranges.record());
        ContainerRecord { id, created_unix_s, definition, throughput, ranges }
    }

    /// Fills the container with `documents` generated ones.
    pub(crate) fn seed(&self, documents: u32) {
        for position in 0..documents {
            let document = Document::from(seed::document(position));
            if let Ok(address) = self.address_of(&document.fields()) {
                let Address { key, effective, .. } = address;
                let place = effective.place();
                let operation = Operation::Upsert(document);
                let command = Command { key, effective, operation, if_match: None, if_none_match: None };
                self.ranges().holding(place).partition.load(command);
                self.setting.journal.wait_for_room();
            }
        }
    }

    /// The ranges as they are now.
    pub(crate) fn ranges(&self) -> Arc<Ranges> {
        Arc::clone(&self.ranges.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn definition(&self) -> Arc<Definition> {
        Arc::clone(&self.definition.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what may be changed of the definition.
    pub(crate) fn redefine(&self, definition: Definition) -> Result<(), String> {
        // Who changes the container holds its throughput, so that no partition misses a change in a split.
        let throughput = self.lock_throughput();
        let mut current = self.definition.write().unwrap_or_else(PoisonError::into_inner);
        current.may_become(&definition)?;
        *current = Arc::new(definition);
        for range in self.ranges().iter() {
            range.partition.redefine(&current);
        }
        let changed = self.described(Arc::clone(&current), *throughput, &self.ranges());
        self.setting.journal.describe(Change::AlterContainer(changed));
        Ok(())
    }

    pub(crate) fn throughput(&self) -> Throughput {
        *self.lock_throughput()
    }

    /// Provides another throughput from now on, split evenly over enough partitions.
    pub(crate) fn provision(&self, throughput: Throughput, now: Duration) {
        let mut current = self.lock_throughput();
        *current = throughput;
        while self.ranges().count() < throughput.partitions() {
            let ranges = self.ranges();
            let widest = ranges.widest();
            if !self.split(widest.id, widest.span.middle(), throughput) {
                break;
            }
        }
        self.distribute(throughput, now);
        let changed = self.described(self.definition(), throughput, &self.ranges());
        self.setting.journal.describe(Change::AlterContainer(changed));
    }

    /// Splits a range where it divides its text evenly, if that is more than a partition should have.
    fn relieve(&self, id: u32, now: Duration) {
        let throughput = self.lock_throughput();
        let ranges = self.ranges();
        let Some(range) = ranges.get(id) else { return };
        let partition = &range.partition;
        // A partition of one key is looked at again once it has doubled.
        let limit = self.setting.split_bytes.max(partition.indivisible_bytes() * 2);
        if partition.text_bytes() <= limit || ranges.count() >= MAX_PARTITIONS {
            return;
        }
        if let Some(at) = partition.middle()
            && self.split(id, at, *throughput)
        {
            self.distribute(*throughput, now);
        }
    }

    /// Splits a range at `at`. Both halves admit requests at once; `distribute` then evens out all partitions.
    fn split(&self, id: u32, at: u128, throughput: Throughput) -> bool {
        let definition = self.definition();
        // Requests wait for the ranges here, so they see the state before the split or after it.
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let provided = share(throughput, ranges.count() + 1);
        let partition = |range| {
            let stamp = Stamp { container: self.id, range, next_number: Arc::clone(&self.next_number) };
            self.setting.partition(provided, &definition, stamp)
        };
        let split = ranges.split(id, at, partition);
        let is_split = split.is_some();
        if let Some(split) = split {
            // A half is written to only once the ranges have it, so the disk gets the split before these writes.
            let container = self.described(Arc::clone(&definition), throughput, &split);
            let halves = split.halves_of(id);
            self.setting.journal.describe(Change::Split { container, parent: id, halves });
            *ranges = Arc::new(split);
        }
        is_split
    }

    fn distribute(&self, throughput: Throughput, now: Duration) {
        let ranges = self.ranges();
        for range in ranges.iter() {
            range.partition.provision(share(throughput, ranges.count()), now);
        }
    }

    /// The effective key of a partition key.
    pub(crate) fn effective(&self, partition_key: &PartitionKey) -> EffectiveKey {
        EffectiveKey::new(partition_key, self.definition().key.is_hierarchical())
    }

    /// The range a partition key belongs to.
    pub(crate) fn range_of(&self, partition_key: &PartitionKey) -> u32 {
        self.ranges().holding(self.effective(partition_key).place()).id
    }

    /// Where the document `id` of a logical partition lives.
    pub(crate) fn address(&self, partition_key: PartitionKey, id: &str) -> Address {
        let mut key = Vec::new();
        partition_key.encode(&mut key);
        key.extend_from_slice(id.as_bytes());
        Address { key, effective: self.effective(&partition_key), partition_key }
    }

    /// Place of a whole document; the error names its fault.
    pub(crate) fn address_of(&self, document: &Map<String, Value>) -> Result<Address, String> {
        let id = match document.get("id") {
            Some(Value::String(id)) => id,
            Some(other) => return Err(format!("the property \"id\" is {other}, expected a string")),
            None => return Err("the property \"id\" is missing, expected a string".to_owned()),
        };
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.contains(['/', '\\', '?', '#']) {
            return Err(format!("the property \"id\" must have 1 to {MAX_ID_BYTES} bytes without / \\ ? #"));
        }
        Ok(self.address(self.definition().key.of_document(document)?, id))
    }

    /// Runs operations on documents of one logical partition, wherever that is after a split.
    pub(crate) fn transact(
        &self,
        effective: &EffectiveKey,
        moment: &Moment,
        commands: &[Command],
    ) -> Result<(u32, Completed<Vec<Step>>), Refusal> {
        let (range, done) = self.at(effective.place(), |partition| partition.transact(moment, commands))?;
        if done.text_bytes > self.setting.split_bytes && self.setting.journal.check().is_ok() {
            self.relieve(range, moment.now);
        }
        Ok((range, done))
    }

    /// Runs `request` on the partition that holds `place`, and again on the one that holds it after a split.
    pub(crate) fn at<T>(
        &self,
        place: u128,
        request: impl Fn(&Partition) -> Result<T, Refusal>,
    ) -> Result<(u32, T), Refusal> {
        let holder = |ranges: &Ranges| ranges.holding(place).clone();
        self.on_range(holder, |range| request(&range.partition)).map(|(range, done)| (range.id, done))
    }

    /// Runs `request` on the range that `choose` finds, and again on the one it finds after a split.
    pub(crate) fn on_range<T>(
        &self,
        choose: impl Fn(&Ranges) -> Range,
        request: impl Fn(&Range) -> Result<T, Refusal>,
    ) -> Result<(Range, T), Refusal> {
        for _ in 0..MOVES_MAX {
            let range = choose(&self.ranges());
            match request(&range) {
                Err(Refusal::Moved) => {}
                done => return done.map(|done| (range, done)),
            }
        }
        Err(Refusal::Moved)
    }

    fn lock_throughput(&self) -> MutexGuard<'_, Throughput> {
        self.throughput.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Surroundings {
    fn partition(&self, per_second: Charge, definition: &Arc<Definition>, stamp: Stamp) -> Partition {
        let budget = Budget::new(per_second, Phase::of_range(self.seed, stamp.range)).with(self.excess);
        Partition::new(budget, Arc::clone(definition), stamp, self.journal.clone(), self.opened_unix_s)
    }
}

/// Units that each of `partitions` provides. Hundredths of a request unit that do not divide evenly are not provided.
fn share(throughput: Throughput, partitions: u32) -> Charge {
    Charge::from_hundredths(u64::from(throughput.ru_per_second()) * 100 / u64::from(partitions.max(1)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::partition_key::KeyDefinition;
    use crate::scalar::Scalar;

    fn small() -> Container {
        let definition = Definition::plain("c", KeyDefinition::of_property("ownerId"));
        let plan = Plan { definition, throughput: Throughput::Manual(900), partitions: 9 };
        let setting = Surroundings {
            journal: Journal::none(),
            opened_unix_s: 0,
            split_bytes: usize::MAX,
            excess: Excess::Overdraw,
            seed: 1,
        };
        Container::new(ContainerId { database: 0, container: 0 }, plan, 0, setting)
    }

    #[test]
    fn an_address_depends_on_id_and_partition_key() {
        let container = small();
        let text = |text: &str| PartitionKey(vec![Scalar::Text(text.to_owned())]);
        let one = container.address(text("o1"), "d1");
        assert_ne!(one.key, container.address(text("o1d"), "1").key);
        assert_ne!(one.key, container.address(text("o2"), "d1").key);
        assert_eq!(one.effective, container.address(text("o1"), "d2").effective);
    }

    #[test]
    fn the_halves_of_a_split_admit_requests_before_throughput_is_distributed() {
        let container = small();
        let middle = container.ranges().widest().span.middle();
        assert!(container.split(container.ranges().widest().id, middle, container.throughput()));
        for place in [middle - 1, middle] {
            let (_, done) = container.at(place, |half| half.transact(&Moment::at(Duration::ZERO), &[])).unwrap();
            assert_eq!(done.text_bytes, 0);
        }
    }

    #[test]
    fn a_document_that_cannot_be_placed_says_why() {
        let container = small();
        let why = |document: Value| container.address_of(document.as_object().unwrap()).unwrap_err();
        assert_eq!(why(json!({})), "the property \"id\" is missing, expected a string");
        assert_eq!(why(json!({"id": 3})), "the property \"id\" is 3, expected a string");
        assert!(why(json!({"id": "a/b"})).contains("without / \\ ? #"));
        assert!(why(json!({"id": "a", "ownerId": []})).contains("expected a scalar"));
    }
}
