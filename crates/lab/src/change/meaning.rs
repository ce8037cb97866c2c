//! Meaning of each kind of change in an experiment file.

use narrows_model::prediction::ChangeKind;

/// Meaning of a change in an experiment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Another value of a key of the service.
    Key(&'static str, Amount),
    /// Another number, in a value whose name has one of these words.
    Size(&'static [&'static str], Amount),
    /// Something that is switched on, in a value whose name has one of these words.
    Switch(&'static [&'static str]),
    /// Another program. A variant whose name or whose only other parameter has one of these words may have it.
    Code(&'static [&'static str]),
}

/// Meaning of a change's amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    /// The new number.
    New,
    /// New ÷ old.
    Factor,
    /// Something else than the value, which is doubled.
    Unrelated,
}

/// Words of limits on requests or connections at a time.
const PLACES: &[&str] = &["worker", "thread", "pool", "connection", "concurren", "processes"];
/// Words of limits that do not say of what. They count only beside the size that the change names.
pub(super) const VAGUE: &[&str] = &["max", "limit", "size"];

/// The meaning of a kind of change.
pub(super) fn meaning(kind: ChangeKind) -> Meaning {
    match kind {
        ChangeKind::AddReplicas | ChangeKind::SpreadDatabase => Meaning::Key("replicas", Amount::New),
        ChangeKind::AddCpu => Meaning::Key("cpus", Amount::Factor),
        ChangeKind::RaiseMemory => Meaning::Size(&["memory", "heap", "xmx"], Amount::Unrelated),
        ChangeKind::RaiseLimit | ChangeKind::ResizePool => Meaning::Size(PLACES, Amount::New),
        ChangeKind::RaiseRate => Meaning::Size(&["rate", "units", "quota"], Amount::Factor),
        ChangeKind::BatchCommits => Meaning::Switch(&["batch", "group_commit"]),
        ChangeKind::Cache => Meaning::Switch(&["cache"]),
        ChangeKind::Parallelize => Meaning::Switch(&["parallel", "concurren"]),
        ChangeKind::JoinQueries => Meaning::Switch(&["join", "bulk", "eager", "batch"]),
        ChangeKind::RouteQuery => Meaning::Switch(&["route", "partition_key"]),
        ChangeKind::BalanceReplicas => Meaning::Switch(&["balanc", "round_robin"]),
        ChangeKind::CacheNames => Meaning::Switch(&["dns", "name_cache", "resolv"]),
        ChangeKind::ReuseConnections => Meaning::Switch(&["keepalive", "reuse", "persistent"]),
        ChangeKind::SplitLock | ChangeKind::ShortenSection => Meaning::Code(&["lock", "section"]),
        ChangeKind::ReleaseBefore => Meaning::Code(&["release"]),
        ChangeKind::RemoveStall => Meaning::Code(&["stall"]),
        ChangeKind::AddSidecar | ChangeKind::RemoveSidecar => Meaning::Code(&["sidecar", "mesh"]),
        ChangeKind::DropCall | ChangeKind::MoreLoad | ChangeKind::SaveCpu | ChangeKind::SpeedUp => Meaning::Code(&[]),
    }
}
