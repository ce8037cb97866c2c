//! The records of nodes about themselves, and which nodes are alive.
//!
//! Every beat increases a counter in the record. A node is alive as long as its record changes. Each reader measures
//! with its own clock how long a record has not changed, so clocks need not agree. The age of a record is the one at
//! the time of the last read: a reader that was paused since then has no newer information.
//!
//! A node is identified by its name and its incarnation, which increases each time a node of that name is opened. Each
//! incarnation has a separate record, so that a node that wakes up finds the record of its successor and cannot
//! overwrite it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How often a node says something within its lease.
pub(crate) const BEATS: u32 = 5;

/// Identity of a node: its name, and which of the nodes opened under that name it is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Identity {
    /// The node's name; empty in records of programs without incarnations, where the key of the record is the name.
    pub(crate) name: String,
    /// Greater than that of all nodes opened earlier under this name.
    pub(crate) incarnation: u64,
}

impl Identity {
    /// The key of its record, which is also the node's name as an owner in the store.
    pub(crate) fn key(&self) -> String {
        format!("{}.{}", self.name, self.incarnation)
    }

    /// The identity of a node that is being opened. `number` is greater than all that the store returned before.
    pub(crate) fn next(name: &str, number: u64, said: Vec<(String, Vec<u8>)>, now: Instant) -> Self {
        let mut members = Members::default();
        members.hear(said, now, now);
        // A store that was restored from a copy may return numbers again.
        let known = members.newest.get(name).map_or(0, |known| known.saturating_add(1));
        Self { name: name.to_owned(), incarnation: number.max(known) }
    }
}

/// Record of a node about itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Identity of the node.
    #[serde(flatten)]
    pub(crate) identity: Identity,
    /// A number that no other run of any node has.
    pub(crate) run: u64,
    /// How often it has said something.
    pub(crate) beat: u64,
    /// Where it receives messages.
    pub(crate) address: String,
    /// The format of its frames.
    pub(crate) format: u16,
    /// Its lease, milliseconds.
    pub(crate) lease_ms: u64,
    /// The version of its program, for people.
    pub(crate) version: String,
    /// Whether it is giving all its partitions back.
    pub(crate) is_leaving: bool,
    /// How many activities wait on it; `None` if it takes none of other nodes.
    pub(crate) waiting: Option<usize>,
    /// Activity of its partitions.
    pub(crate) loads: Vec<PartitionLoad>,
}

/// How much a partition has to do, as its node says it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartitionLoad {
    /// The partition.
    pub partition: u16,
    /// Activities under way and waiting, and messages that have not arrived.
    pub pending: u64,
    /// Instances it holds.
    pub instances: u64,
    /// Events per second since the beat before.
    pub events_per_s: f64,
    /// The longest that a request, message or result has waited for the partition since the beat before, milliseconds.
    pub waited_ms: u64,
}

/// A node that has said something and is not forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) record: Record,
    changed: Instant,
}

impl Member {
    /// How long ago its record was seen to change.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.changed)
    }
}

/// All nodes, by the keys of their records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    all: BTreeMap<String, Member>,
    /// The greatest incarnation of each name.
    newest: BTreeMap<String, u64>,
    /// Before they were last read.
    read: Option<Instant>,
}

impl Members {
    /// Takes in what all nodes said last, which was read after `begun` and has come by `now`. Records that cannot be read
    /// are passed over.
    pub(crate) fn hear(&mut self, said: Vec<(String, Vec<u8>)>, begun: Instant, now: Instant) {
        let (mut all, mut newest) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
        for (key, bytes) in said {
            let Ok(mut record) = serde_json::from_slice::<Record>(&bytes) else { continue };
            if record.identity.name.is_empty() {
                record.identity.name.clone_from(&key);
            }
            let known = newest.entry(record.identity.name.clone()).or_default();
            *known = record.identity.incarnation.max(*known);
            let same = |member: &&Member| member.record.run == record.run && member.record.beat == record.beat;
            let changed = self.all.get(&key).filter(same).map_or(now, |member| member.changed);
            all.insert(key, Member { record, changed });
        }
        (self.all, self.newest, self.read) = (all, newest, Some(begun));
    }

    /// Whether another node was opened later under its name.
    pub(crate) fn is_replaced(&self, identity: &Identity) -> bool {
        self.newest.get(&identity.name).is_some_and(|newest| *newest > identity.incarnation)
    }

    /// Whether the node with this key is known to have been replaced.
    pub(crate) fn is_replaced_by_key(&self, key: &str) -> bool {
        self.all.get(key).is_some_and(|member| self.is_replaced(&member.record.identity))
    }

    /// The name of the node with this key.
    pub(crate) fn name<'a>(&'a self, key: &'a str) -> &'a str {
        self.all.get(key).map_or(key, |member| &member.record.identity.name)
    }

    /// How long a record was known not to change when it was last read.
    pub(crate) fn silent(&self, member: &Member) -> Duration {
        self.read.map_or(Duration::ZERO, |read| read.saturating_duration_since(member.changed))
    }

    /// Whether a node is lost that was first seen at `seen` to have taken something. It was alive when it took that, so
    /// records that were read earlier do not count.
    pub(crate) fn is_lost(&self, key: &str, seen: Instant, silence: Duration) -> bool {
        let is_silent = self.all.get(key).is_none_or(|member| self.silent(member) >= silence);
        is_silent && self.read.is_some_and(|read| read > seen)
    }

    /// All nodes, ordered by key.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &Member)> {
        self.all.iter()
    }

    /// Last record of each: its run, and how often it had said something.
    pub(crate) fn said(&self) -> BTreeMap<String, (u64, u64)> {
        self.all.iter().map(|(key, member)| (key.clone(), (member.record.run, member.record.beat))).collect()
    }

    /// How long the slowest takes for so many beats.
    pub(crate) fn beats(&self, count: u32) -> Duration {
        let lease_ms = self.all.values().map(|member| member.record.lease_ms).max().unwrap_or(0);
        Duration::from_millis(lease_ms) * count / BEATS
    }

    /// Nodes that have been silent for less than `silence` and have not been replaced.
    pub(crate) fn alive(&self, silence: Duration) -> impl Iterator<Item = (&String, &Member)> {
        let is_alive = move |member: &Member| self.silent(member) < silence;
        self.all.iter().filter(move |(_, member)| is_alive(member) && !self.is_replaced(&member.record.identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_alive_as_long_as_its_record_changes() {
        let (begin, silence) = (Instant::now(), Duration::from_secs(4));
        let at = |seconds| begin + Duration::from_secs(seconds);
        let said = |run, beat| {
            let (address, version) = (String::new(), String::new());
            let record = Record {
                identity: Identity::default(),
                run,
                beat,
                address,
                format: 1,
                lease_ms: 5_000,
                version,
                is_leaving: false,
                waiting: None,
                loads: Vec::new(),
            };
            vec![("a".to_owned(), serde_json::to_vec(&record).expect("a record")), ("b".to_owned(), b"{".to_vec())]
        };
        let mut members = Members::default();
        let alive = |members: &Members| members.alive(silence).count();
        members.hear(said(1, 5), at(0), at(1));
        members.hear(said(1, 5), at(4), at(9));
        assert_eq!(alive(&members), 1, "it was read before that was known to be old");
        members.hear(said(1, 5), at(5), at(5));
        assert_eq!(alive(&members), 0, "what it says is old");
        members.hear(said(1, 6), at(6), at(6));
        members.hear(said(1, 6), at(9), at(9));
        assert_eq!(alive(&members), 1);
        members.hear(said(2, 6), at(10), at(10));
        members.hear(said(2, 6), at(13), at(13));
        assert_eq!(alive(&members), 1, "another run of it has begun");
        let is_lost = |members: &Members, seen| members.is_lost("a", at(seen), silence);
        assert!(!is_lost(&members, 1));
        members.hear(Vec::new(), at(14), at(14));
        assert_eq!(alive(&members), 0, "it is forgotten");
        assert_eq!((is_lost(&members, 13), is_lost(&members, 14)), (true, false), "it may be new");
    }

    #[test]
    fn of_the_nodes_of_one_name_only_the_one_that_was_opened_last_counts() {
        let now = Instant::now();
        let silence = Duration::from_secs(4);
        let said = |name: &str, incarnation| {
            let identity = Identity { name: name.to_owned(), incarnation };
            let json = serde_json::json!({
                "name": name, "incarnation": incarnation, "run": 1, "beat": 1, "address": "", "format": 1,
                "lease_ms": 5_000, "version": "", "is_leaving": false, "waiting": null, "loads": [],
            });
            (identity.key(), json.to_string().into_bytes())
        };
        let old = serde_json::json!({
            "run": 1, "beat": 1, "address": "", "format": 1, "lease_ms": 5_000, "version": "", "is_leaving": false,
            "waiting": null, "loads": [],
        });
        let all = vec![said("a", 7), said("a", 12), said("b", 9), ("c".to_owned(), old.to_string().into_bytes())];
        let mut members = Members::default();
        members.hear(all.clone(), now, now);
        let alive: Vec<&String> = members.alive(silence).map(|(key, _)| key).collect();
        assert_eq!(alive, ["a.12", "b.9", "c"], "a program that knows of no incarnations has a name for a key");
        assert!(members.is_replaced_by_key("a.7") && !members.is_replaced_by_key("a.12"));
        assert_eq!((members.name("a.12"), members.name("c"), members.name("gone.3")), ("a", "c", "gone.3"));
        assert_eq!(Identity::next("a", 20, all.clone(), now).incarnation, 20);
        assert_eq!(Identity::next("a", 3, all, now).incarnation, 13, "the store gives numbers again");
    }
}
