//! What nodes say about themselves, and which of them are alive.
//!
//! A record counts up with every beat. A node is alive as long as its record changes; how long ago it last did is timed
//! by whoever reads it, with a clock of its own. So nothing depends on clocks that agree.

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
}

impl Members {
    /// Takes in what all nodes said last. Records that cannot be read are passed over.
    pub(crate) fn hear(&mut self, said: Vec<(String, Vec<u8>)>, now: Instant) {
        let mut all = BTreeMap::new();
        for (name, bytes) in said {
            let Ok(record) = serde_json::from_slice::<Record>(&bytes) else { continue };
            let same = |member: &&Member| member.record.run == record.run && member.record.beat == record.beat;
            let changed = self.all.get(&name).filter(same).map_or(now, |member| member.changed);
            all.insert(name, Member { record, changed });
        }
        self.all = all;
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
    pub(crate) fn alive(&self, now: Instant, silence: Duration) -> impl Iterator<Item = (&String, &Member)> {
        self.all.iter().filter(move |(_, member)| member.age(now) < silence)
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
        let alive = |members: &Members, now| members.alive(now, silence).count();
        members.hear(said(1, 5), at(0));
        members.hear(said(1, 5), at(3));
        assert_eq!((alive(&members, at(3)), alive(&members, at(4))), (1, 0), "what it says is old");
        members.hear(said(1, 6), at(5));
        assert_eq!(alive(&members, at(8)), 1);
        members.hear(said(2, 6), at(9));
        assert_eq!(alive(&members, at(12)), 1, "another run of it has begun");
        members.hear(Vec::new(), at(12));
        assert_eq!(alive(&members, at(12)), 0, "it is forgotten");
    }
}
