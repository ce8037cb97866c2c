//! One container: a partition key, the ranges of its hash space and a physical partition for each.

use serde_json::{Map, Value, json};

use crate::budget::{Budget, Stagger};
use crate::charge::Charge;
use crate::config::Config;
use crate::effective_key::{EffectiveKey, KeyRanges};
use crate::partition::{Partition, Stamp};
use crate::resource_id;
use crate::scalar::Scalar;
use crate::seed;

const MAX_ID_BYTES: usize = 255;

/// One container with its documents.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) rid: String,
    pub(crate) partition_key: String,
    pub(crate) ranges: KeyRanges,
    number: u32,
    partitions: Vec<Partition>,
}

/// Where a document lives and under which key; what a write needs besides the document.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) range: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) partition_key: Scalar,
}

impl Container {
    /// Container number `number` of the store, seeded with its documents; `unix_s` is their time of writing.
    pub(crate) fn seeded(number: u32, name: &str, config: &Config, unix_s: u64) -> Self {
        let ranges = KeyRanges::new(config.partitions);
        // A hundredth of a request unit that does not divide evenly is nobody's.
        let share =
            Charge::from_hundredths(u64::from(config.throughput_ru_per_second) * 100 / u64::from(ranges.count()));
        let stagger = |partition| Stagger { partition, partitions: ranges.count() };
        let partitions = (0..ranges.count()).map(|range| Partition::new(Budget::new(share, stagger(range)))).collect();
        let container = Self {
            name: name.to_owned(),
            rid: resource_id::container(number),
            partition_key: config.partition_key.clone(),
            ranges,
            number,
            partitions,
        };
        for position in 0..config.documents_per_container {
            let document = seed::document(position);
            if let Ok(address) = container.address_of(&document) {
                let stamp = container.stamp(address.range, unix_s);
                container.partitions[address.range as usize].load(address.key, document, &stamp);
            }
        }
        container
    }

    /// The partition of range `range`, if there is one.
    pub(crate) fn partition(&self, range: u32) -> Option<&Partition> {
        self.partitions.get(range as usize)
    }

    /// Every partition, in the order of the ranges.
    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// The range a partition key belongs to.
    pub(crate) fn range_of(&self, partition_key: &Scalar) -> u32 {
        self.ranges.index_of(EffectiveKey::from_scalar(partition_key))
    }

    /// Where the document `id` of a logical partition lives.
    pub(crate) fn address(&self, partition_key: Scalar, id: &str) -> Address {
        let mut key = Vec::new();
        partition_key.encode(&mut key);
        key.extend_from_slice(id.as_bytes());
        Address { range: self.range_of(&partition_key), key, partition_key }
    }

    /// Where a whole document belongs; the error says what is wrong with it.
    pub(crate) fn address_of(&self, document: &Map<String, Value>) -> Result<Address, String> {
        let id = match document.get("id") {
            Some(Value::String(id)) => id,
            Some(other) => return Err(format!("the property \"id\" is {other}, expected a string")),
            None => return Err("the property \"id\" is missing, expected a string".to_owned()),
        };
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.contains(['/', '\\', '?', '#']) {
            return Err(format!("the property \"id\" must have 1 to {MAX_ID_BYTES} bytes without / \\ ? #"));
        }
        let partition_key = match document.get(&self.partition_key) {
            None => Scalar::Undefined,
            Some(value) => Scalar::from_json(value).ok_or_else(|| {
                format!("the partition key {:?} is an array or an object, expected a scalar", self.partition_key)
            })?,
        };
        Ok(self.address(partition_key, id))
    }

    /// What gives the documents of `range` their system properties at `unix_s`.
    pub(crate) fn stamp(&self, range: u32, unix_s: u64) -> impl Stamp + use<'_> {
        SystemProperties { container: self, range, unix_s }
    }
}

struct SystemProperties<'a> {
    container: &'a Container,
    range: u32,
    unix_s: u64,
}

impl Stamp for SystemProperties<'_> {
    fn stamp(&self, document: &mut Map<String, Value>, position: u32, lsn: u64) {
        let number = (u64::from(self.range) << 32) | u64::from(position);
        let rid = resource_id::document(self.container.number, number);
        let path = format!("dbs/{}/colls/{}/docs/{rid}/", resource_id::database(), self.container.rid);
        document.insert("_rid".to_owned(), json!(rid));
        document.insert("_self".to_owned(), json!(path));
        document.insert("_etag".to_owned(), json!(format!("\"{:08x}-{lsn:016x}\"", self.range)));
        document.insert("_attachments".to_owned(), json!("attachments/"));
        document.insert("_ts".to_owned(), json!(self.unix_s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Container {
        let config = Config { documents_per_container: 0, ..Config::default() };
        Container::seeded(0, "c", &config, 0)
    }

    #[test]
    fn an_address_depends_on_id_and_partition_key() {
        let container = small();
        let text = |text: &str| Scalar::Text(text.to_owned());
        let one = container.address(text("o1"), "d1");
        assert_ne!(one.key, container.address(text("o1d"), "1").key);
        assert_ne!(one.key, container.address(text("o2"), "d1").key);
        assert_eq!(one.range, container.address(text("o1"), "d2").range);
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
