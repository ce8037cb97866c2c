//! The streams of a hub and the subjects in them.
//!
//! Each partition has a stream `NRW_hub_p0` with the subjects `nrw.hub.p0.log` (frames) and `.own` (the owner).
//! `NRW_hub_names` keeps the last message of each subject: the hub's shape, the records of nodes, and blobs or the
//! places of their parts; `NRW_hub_parts` has the parts of long blobs. `NRW_hub_alive` drops messages within seconds,
//! and shows which stores are open. `NRW_hub_damaged_1` and so on hold copies of damaged data after a repair.

use narrows_durable::PartitionId;

/// The names of a hub.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    hub: String,
}

impl Subjects {
    /// `hub` is checked to hold `a-z 0-9 - _` only.
    pub(super) fn new(hub: &str) -> Self {
        Self { hub: hub.to_owned() }
    }

    pub(super) fn log_stream(&self, partition: PartitionId) -> String {
        format!("NRW_{}_p{partition}", self.hub)
    }

    pub(super) fn names_stream(&self) -> String {
        format!("NRW_{}_names", self.hub)
    }

    pub(super) fn parts_stream(&self) -> String {
        format!("NRW_{}_parts", self.hub)
    }

    pub(super) fn alive_stream(&self) -> String {
        format!("NRW_{}_alive", self.hub)
    }

    pub(super) fn of_partition(&self, partition: PartitionId, last: &str) -> String {
        format!("nrw.{}.p{partition}.{last}", self.hub)
    }

    pub(super) fn shape(&self) -> String {
        format!("nrw.{}.name.hub", self.hub)
    }

    pub(super) fn number(&self) -> String {
        format!("nrw.{}.name.number", self.hub)
    }

    pub(super) fn node(&self, name: &str) -> String {
        format!("nrw.{}.name.node.{}", self.hub, name.replace('.', "_"))
    }

    /// The name of a node out of its subject.
    pub(super) fn node_of(&self, subject: &str) -> Option<String> {
        subject.strip_prefix(&self.node("")).map(|name| name.replace('_', "."))
    }

    pub(super) fn blob(&self, name: &str) -> String {
        // Neither `_` nor `.` between slashes can be in a name otherwise.
        format!("nrw.{}.name.blob.{}", self.hub, name.replace('.', "_").replace('/', "."))
    }

    /// The name of a blob out of its subject.
    pub(super) fn blob_of(&self, subject: &str) -> Option<String> {
        subject.strip_prefix(&self.blob("")).map(|name| name.replace('.', "/").replace('_', "."))
    }

    /// Subjects of all blobs in the folder that `prefix` begins with, and perhaps of others.
    pub(super) fn blobs(&self, prefix: &str) -> String {
        let folder = prefix.rfind('/').map_or("", |at| &prefix[..=at]);
        format!("{}>", self.blob(folder))
    }

    pub(super) fn nodes(&self) -> String {
        format!("{}*", self.node(""))
    }

    pub(super) fn all_names(&self) -> String {
        format!("nrw.{}.name.>", self.hub)
    }

    /// A part of a long blob; `*` for all.
    pub(super) fn part(&self, blob: i64, part: &str) -> String {
        format!("nrw.{}.part.{blob:016x}.{part}", self.hub)
    }

    pub(super) fn all_parts(&self) -> String {
        format!("nrw.{}.part.>", self.hub)
    }

    pub(super) fn alive(&self, session: i64) -> String {
        format!("nrw.{}.alive.{session:016x}", self.hub)
    }

    pub(super) fn all_alive(&self) -> String {
        format!("nrw.{}.alive.*", self.hub)
    }

    /// Stream with copies of damaged logs and snapshots.
    pub(super) fn copies_stream(&self, number: usize) -> String {
        format!("NRW_{}_damaged_{number}", self.hub)
    }

    pub(super) fn copies(&self, number: usize, what: &str) -> String {
        format!("nrw.{}.damaged.{number}.{what}", self.hub)
    }

    /// A subject without the prefix that all subjects of the hub share.
    pub(super) fn within<'a>(&self, subject: &'a str) -> &'a str {
        let rest = subject.strip_prefix("nrw.").and_then(|rest| rest.strip_prefix(self.hub.as_str()));
        rest.map_or(subject, |rest| rest.trim_start_matches('.'))
    }

    /// Where the messages to a node go.
    pub(super) fn to(&self, line: i64) -> String {
        format!("nrw.{}.to.{line:016x}", self.hub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_out_of_subjects() {
        let subjects = Subjects::new("orders");
        for name in ["a", "p0/payload/17", "p0/snapshot-3.new", "..."] {
            assert_eq!(subjects.blob_of(&subjects.blob(name)).as_deref(), Some(name));
            assert!(!subjects.blob(name).contains(".."), "no part is empty");
        }
        assert_eq!(subjects.node_of(&subjects.node("a.b-1")).as_deref(), Some("a.b-1"));
        assert_eq!(subjects.blobs("p0/pay"), "nrw.orders.name.blob.p0.>");
        assert_eq!(subjects.blobs("p0/payload/"), "nrw.orders.name.blob.p0.payload.>");
        assert_eq!(subjects.blobs(""), "nrw.orders.name.blob.>");
    }
}
