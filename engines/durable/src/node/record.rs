//! What nodes say about themselves, and which of them are alive.
//!
//! Every beat increases a counter in the record. A node is alive as long as its record changes. Each reader measures with its
//! own clock how long a record has not changed, so clocks need not agree. A record has the age that it had when it was
//! read: a reader that stood still since then knows nothing newer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How often a node says something within its lease.
pub(crate) const BEATS: u32 = 5;

/// What a node says about itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
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
    /// How many activities wait on it; none if it takes none of other nodes.
    pub(crate) waiting: Option<usize>,
    /// What its partitions do.
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

/// All nodes, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    all: BTreeMap<String, Member>,
    /// Before they were last read.
    read: Option<Instant>,
}

impl Members {
    /// Takes in what all nodes said last, which was read after `begun` and has come by `now`. Records that cannot be read
    /// are passed over.
    pub(crate) fn hear(&mut self, said: Vec<(String, Vec<u8>)>, begun: Instant, now: Instant) {
        let mut all = BTreeMap::new();
        for (name, bytes) in said {
            let Ok(record) = serde_json::from_slice::<Record>(&bytes) else { continue };
            let same = |member: &&Member| member.record.run == record.run && member.record.beat == record.beat;
            let changed = self.all.get(&name).filter(same).map_or(now, |member| member.changed);
            all.insert(name, Member { record, changed });
        }
        (self.all, self.read) = (all, Some(begun));
    }

    /// How long a record was known not to change when it was last read.
    pub(crate) fn silent(&self, member: &Member) -> Duration {
        self.read.map_or(Duration::ZERO, |read| read.saturating_duration_since(member.changed))
    }

    /// Whether a node is lost that was first seen at `seen` to have taken something. It was alive when it took that, so
    /// records that were read earlier do not count.
    pub(crate) fn is_lost(&self, name: &str, seen: Instant, silence: Duration) -> bool {
        let is_silent = self.all.get(name).is_none_or(|member| self.silent(member) >= silence);
        is_silent && self.read.is_some_and(|read| read > seen)
    }

    /// All of them, in order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &Member)> {
        self.all.iter()
    }

    /// What each said last: its run, and how often it had said something.
    pub(crate) fn said(&self) -> BTreeMap<String, (u64, u64)> {
        self.all.iter().map(|(name, member)| (name.clone(), (member.record.run, member.record.beat))).collect()
    }

    /// How long the slowest takes for so many beats.
    pub(crate) fn beats(&self, count: u32) -> Duration {
        let lease_ms = self.all.values().map(|member| member.record.lease_ms).max().unwrap_or(0);
        Duration::from_millis(lease_ms) * count / BEATS
    }

    /// Those that have not been silent for `silence`.
    pub(crate) fn alive(&self, silence: Duration) -> impl Iterator<Item = (&String, &Member)> {
        self.all.iter().filter(move |(_, member)| self.silent(member) < silence)
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
}
