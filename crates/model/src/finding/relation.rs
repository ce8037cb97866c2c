//! Relations between findings of a trial.

use serde::{Deserialize, Serialize};

/// Relation of a finding to another of its trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "relation", rename_all = "kebab-case")]
pub enum Relation {
    /// It is a likely effect of the other.
    EffectOf {
        /// The other's number.
        number: u32,
        /// How the other brings it about.
        why: Mechanism,
    },
    /// The other is to be dealt with first.
    After {
        /// The other's number.
        number: u32,
        /// Why it comes first.
        why: Precedence,
    },
}

/// How one thing brings about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Writers to a full disk fail or stop.
    FullDisk,
    /// A process without a free descriptor can accept and open no connection.
    NoDescriptor,
    /// Calls to a database that refuses connections fail.
    RefusedConnections,
    /// Calls that find no local port fail.
    NoPort,
    /// A replica that the kernel killed for lack of memory is down.
    OutOfMemory,
    /// The kernel drops pages of a service for lack of memory, and reads them from the disk again.
    DroppedPages,
    /// Calls to a replica that is down fail and are retried.
    DownReplica,
    /// All partitions together would have capacity left.
    UnevenLoad,
    /// A store that has spent its throughput rejects calls.
    SpentThroughput,
    /// Partitions spend throughput on queries that they have no rows for.
    QueriesWithoutRows,
    /// Every call is work for the callee.
    WorkOfCalls,
    /// Every call costs CPU time on both sides.
    CpuOfCalls,
    /// Every call takes up a connection.
    ConnectionsOfCalls,
    /// The partition with the most load is full first.
    FullestPartition,
    /// Collections of garbage use the processor.
    CpuOfCollections,
    /// Opening connections uses the processor.
    CpuOfConnections,
    /// Collections of garbage stop the event loop.
    StoppedLoop,
    /// The event loop runs on the thread that is full.
    FullThread,
    /// A transaction that loses a conflict starts again.
    LostConflict,
    /// Only the retries make it full.
    RetriesFill,
    /// It is the same limit, seen from the machine.
    SameLimit,
    /// Callers of a saturated service retry.
    LateResponses,
    /// Connections to a saturated server are held for longer.
    HeldConnections,
    /// Every query takes longer on a saturated server.
    SlowServer,
    /// A statement waits until the lock is released, and what waits for the statement waits as long.
    LockedData,
    /// The server's one thread serves nothing else meanwhile.
    BlockedThread,
    /// A connection is held for as long as the query takes.
    LongQuery,
    /// A request that gets no connection in time is rejected.
    NoConnection,
    /// The load's requests pass through it and wait there.
    OnTheWay,
    /// Workers that wait for it take on the next requests later.
    HeldWorkers,
    /// A request has no span before its connection is accepted.
    BeforeAccepted,
    /// Requests wait for a thread before their work begins.
    NoThread,
    /// The slow branch waits for it.
    SlowBranch,
    /// No request gets its response while it lasts.
    NoResponses,
}

/// Why one thing is to be dealt with before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precedence {
    /// The store's other partitions have no capacity left either.
    NoCapacityElsewhere,
    /// The later change lowers the load on a store that rejects calls now.
    LowersLoad,
    /// Parallel calls would only be rejected sooner.
    RejectedSooner,
    /// Other replicas of the service have room.
    RoomInOtherReplicas,
}
