//! The kinds of findings: one for each detector, with the evidence of each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::evidence;

/// Declares the kinds, the id of each and the file of its evidence, which is the only list of them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $id:literal, $file:ident;)*) => {
        /// Which cause or limit a finding names. Its id is also that of its detector and of its page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FindingKind {
            $($(#[$doc])* #[serde(rename = $id)] $kind,)*
        }

        impl FindingKind {
            /// Every kind, in the order of their ids.
            pub const ALL: &[FindingKind] = &[$(FindingKind::$kind,)*];

            /// The id used in files, tables and links: lower case with dashes.
            pub fn id(self) -> &'static str {
                match self {
                    $(FindingKind::$kind => $id,)*
                }
            }
        }

        /// Evidence of a finding, by its kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "detector", content = "evidence")]
        pub enum Evidence {
            $($(#[$doc])* #[serde(rename = $id)] $kind(evidence::$file::$kind),)*
        }

        impl Evidence {
            /// The cause or limit that it is evidence of.
            pub fn kind(&self) -> FindingKind {
                match self {
                    $(Evidence::$kind(_) => FindingKind::$kind,)*
                }
            }

        }

        /// Evidence of this kind without data, for tests.
        impl From<FindingKind> for Evidence {
            fn from(kind: FindingKind) -> Self {
                match kind {
                    $(FindingKind::$kind => Evidence::$kind(evidence::$file::$kind::default()),)*
                }
            }
        }

        $(impl From<evidence::$file::$kind> for Evidence {
            fn from(evidence: evidence::$file::$kind) -> Self {
                Evidence::$kind(evidence)
            }
        })*
    };
}

kinds! {
    /// Connections wait before a service accepts them, or are dropped.
    AcceptQueue => "accept-queue", accept_queue;
    /// A request calls another service once for each item of an earlier response.
    ChattyHttp => "chatty-http", chatty_http;
    /// Database transactions conflict; one of them fails or is repeated.
    ConflictRetry => "conflict-retry", conflict_retry;
    /// A service uses all the CPU it may or can use.
    CpuSaturation => "cpu-saturation", cpu_saturation;
    /// A query goes to every partition of a store, and most have no rows for it.
    CrossPartitionQuery => "cross-partition-query", cross_partition_query;
    /// A database has no capacity left, so every query waits for others.
    DatabaseSaturation => "database-saturation", database_saturation;
    /// A process has opened nearly all the files and connections that it may.
    DescriptorExhaustion => "descriptor-exhaustion", descriptor_exhaustion;
    /// Requests wait for a disk, and more load brings no more throughput.
    DiskBound => "disk-bound", disk_bound;
    /// Operations of a service or a database fail because a disk is full.
    DiskFull => "disk-full", disk_full;
    /// Requests wait while a service looks names up.
    Dns => "dns", dns;
    /// A request sends a query again whose result it already has.
    DuplicateQuery => "duplicate-query", duplicate_query;
    /// Callbacks block the event loop of a service, and every request waits for it.
    EventLoopLag => "event-loop-lag", event_loop_lag;
    /// The load has too few clients for a hash of them to spread requests evenly.
    FewClients => "few-clients", few_clients;
    /// The garbage collector of a runtime stops a service for much of the time, or for long.
    GarbageCollection => "garbage-collection", garbage_collection;
    /// The load generator, not the system, determined the figures.
    GeneratorLimited => "generator-limited", generator_limited;
    /// One of several equal partitions or replicas gets more than its share and is the slowest for it.
    HotPartition => "hot-partition", hot_partition;
    /// Most of an operation's time is unexplained, because a callee sends no spans.
    InstrumentationGap => "instrumentation-gap", instrumentation_gap;
    /// The threads of a process take turns at one lock, so that together they use no more than one core.
    InterpreterLock => "interpreter-lock", interpreter_lock;
    /// The memory of a service grows towards its limit, or it was killed there.
    MemoryGrowth => "memory-growth", memory_growth;
    /// A request queries the database once for each row of an earlier result.
    NPlusOne => "n-plus-one", n_plus_one;
    /// A window that is called steady is not, so its mean depends on when it is taken.
    NotSteady => "not-steady", not_steady;
    /// The load asks too little to show what the system can carry.
    OfferedLoadLimited => "offered-load-limited", offered_load_limited;
    /// A replica was down during the load.
    Outage => "outage", outage;
    /// Requests wait for a connection from a pool.
    PoolWait => "pool-wait", pool_wait;
    /// A service cannot open connections because no local port is left for them.
    PortExhaustion => "port-exhaustion", port_exhaustion;
    /// A partition of a store spends nearly all of its provisioned throughput.
    ProvisionedRate => "provisioned-rate", provisioned_rate;
    /// More load, less throughput.
    RetrogradeThroughput => "retrograde-throughput", retrograde_throughput;
    /// Failing calls are repeated and add load to a system that already cannot respond.
    RetryStorm => "retry-storm", retry_storm;
    /// A request makes independent calls one after another.
    SerialFanOut => "serial-fan-out", serial_fan_out;
    /// Requests of a service take turns, so that one is at work at a time.
    SerialisedSection => "serialised-section", serialised_section;
    /// Cost of proxies beside the services in CPU and time.
    SidecarCost => "sidecar-cost", sidecar_cost;
    /// Requests wait for a dependency that sends no spans.
    SlowDependency => "slow-dependency", slow_dependency;
    /// A request waits for one query that is slow by itself.
    SlowQuery => "slow-query", slow_query;
    /// One of several parallel branches is nearly always the last.
    StragglerBranch => "straggler-branch", straggler_branch;
    /// All threads of a pool work, and requests wait for one.
    ThreadPool => "thread-pool", thread_pool;
    /// A store rejects calls beyond its provisioned throughput, and they are retried.
    Throttling => "throttling", throttling;
    /// Users wait much longer than the spans of the service last.
    TimeOutsideSpans => "time-outside-spans", time_outside_spans;
    /// Two variants completed different rates, so their CPU and latency cannot be compared.
    UnequalRates => "unequal-rates", unequal_rates;
    /// Some replicas have more partitions than others and are full, while the others have room.
    UnevenAssignment => "uneven-assignment", uneven_assignment;
}

impl fmt::Display for FindingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.id())
    }
}

impl FromStr for FindingKind {
    type Err = UnknownKind;

    fn from_str(id: &str) -> Result<Self, UnknownKind> {
        Self::ALL.iter().copied().find(|kind| kind.id() == id).ok_or_else(|| UnknownKind(id.to_owned()))
    }
}

/// An id that no kind has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind(String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "no finding is called `{}`", self.0)
    }
}

impl std::error::Error for UnknownKind {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for kind in FindingKind::ALL {
            assert_eq!(kind.id().parse(), Ok(*kind));
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{kind}\""));
        }
        assert!("n+1".parse::<FindingKind>().is_err());
    }

    #[test]
    fn ids_are_sorted_and_unique() {
        assert!(FindingKind::ALL.is_sorted_by(|one, other| one.id() < other.id()));
    }
}
