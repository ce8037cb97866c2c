//! The detailed part of a reading: what is read at most once a second, of replicas and of the host.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::ReplicaKey;
use super::cgroups;
use super::host::{self, Network};
use super::limits::{Absence, sum};
use super::process;
use super::sockets::{Connections, Listener};
use super::stat::TaskId;
use super::states::Mean;
use super::text::{Disk, Switches};

/// Reading of `/proc` and control groups at one instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Details {
    /// Since boot, by the clock that processes' start times are in.
    pub(super) since_boot: Duration,
    pub(super) host: host::Figures,
    pub(super) groups: BTreeMap<ReplicaKey, GroupDetails>,
}

/// Of one replica.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct GroupDetails {
    pub(super) threads: u64,
    /// Empty when no thread was sampled since the detailed reading before.
    pub(super) states: Vec<Mean>,
    pub(super) descriptors: Option<u64>,
    /// Of the process closest to its limit on them.
    pub(super) fullest: Option<Descriptors>,
    pub(super) pss_bytes: Option<u64>,
    /// `None` if one process could not be read.
    pub(super) disk: Option<HashMap<TaskId, DiskUse>>,
    pub(super) switches: HashMap<TaskId, Switches>,
    pub(super) network: Option<Network>,
    /// Its listening sockets.
    pub(super) listeners: Vec<Listener>,
    /// Its connections since the detailed reading before; `None` if they were not sampled.
    pub(super) connections: Option<Connections>,
    /// `ListenOverflows` of its own network namespace.
    pub(super) overflows: Option<u64>,
    /// Ports that this namespace has for connections to one peer.
    pub(super) ephemeral_ports: Option<u64>,
    pub(super) cgroup: cgroups::Figures,
}

/// Open descriptors of a process, and its soft limit on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptors {
    pub(super) open: u64,
    /// From 1.
    pub(super) limit: u64,
}

impl Descriptors {
    fn of(details: &process::Details) -> Option<Self> {
        let limit = details.descriptors_limit.filter(|limit| *limit > 0)?;
        Some(Self { open: details.descriptors.ok()?, limit })
    }

    /// The open ones as a share of the limit; above 1 after the limit was lowered.
    pub(super) fn share(self) -> f64 {
        self.open as f64 / self.limit as f64
    }
}

/// Bytes that a process had read and written, its children that were waited for included; and its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskUse {
    pub(super) parent: u32,
    pub(super) disk: Disk,
}

impl GroupDetails {
    /// Adds up processes: each with its parent's number and its details.
    pub(super) fn sum(processes: &[(TaskId, u32, &process::Details)]) -> Self {
        let each = || processes.iter().map(|(_, _, details)| details);
        let is_unread = each().any(|details| details.disk == Err(Absence::Unread));
        let disk = processes
            .iter()
            .filter_map(|(id, parent, details)| Some((*id, DiskUse { parent: *parent, disk: details.disk.ok()? })));
        Self {
            threads: each().map(|details| details.threads).sum(),
            descriptors: sum(each().map(|details| details.descriptors)),
            fullest: each()
                .filter_map(|details| Descriptors::of(details))
                .max_by(|one, other| one.share().total_cmp(&other.share())),
            pss_bytes: sum(each().map(|details| details.pss_bytes)),
            disk: Some(disk.collect()).filter(|disk: &HashMap<_, _>| !is_unread && !disk.is_empty()),
            switches: each()
                .flat_map(|details| details.switches.iter().map(|(id, switches)| (*id, *switches)))
                .collect(),
            ..Self::default()
        }
    }
}
