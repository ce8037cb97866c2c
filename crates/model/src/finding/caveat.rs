//! Limits of the reading of a finding.

use serde::{Deserialize, Serialize};

use super::evidence::cpu::CpuConsumers;
use super::evidence::hot_partition::PlaceKind;
use crate::scalability::Misfit;

/// Limit of a finding: something its data cannot show, or its figures leave out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caveat {
    /// A limit may be meant to protect a store or a budget.
    LimitMayBeIntended,
    /// A store reports neither what its partitions spend nor what they may.
    PartitionsNotMeasured {
        /// The store.
        store: String,
    },
    /// No reading shows a partition near its limit.
    NoPartitionSeenFull,
    /// The machine was nearly full, so CPU that one process gains, another may lose.
    MachineBusy {
        /// Share of the machine's CPU in use, 0 to 1.
        share: f64,
        /// The largest consumers.
        consumers: CpuConsumers,
    },
    /// The hypervisor took CPU time for other machines.
    CpuStolen {
        /// Share of the machine's CPU time that it took, 0 to 1.
        share: f64,
    },
    /// Several processes of a replica count as one.
    ProcessesCountTogether,
    /// Only the callers of a dependency have spans.
    DependencySendsNoSpans {
        /// The dependency.
        dependency: String,
    },
    /// The threads of Node.js that help its program may do something else than collect garbage.
    HelpersNotNamed,
    /// Sockets do not show which of several calls takes longest.
    SlowCallNotNamed {
        /// The peer that is called.
        peer: String,
    },
    /// Sockets do not show what a response says.
    StatusNotInSockets {
        /// The peer that responds.
        peer: String,
        /// Its caller.
        caller: String,
    },
    /// The span of a call to a database may begin before there is a connection.
    SpanMayWaitForConnection {
        /// The database.
        database: String,
    },
    /// Spans do not show how many rows a query returned.
    RowsNotShown,
    /// Neither the CPU nor the disks of a database were sampled.
    DatabaseNotSampled {
        /// The database.
        database: String,
    },
    /// More connections mean more queries at once, and how the database copes with them is not known.
    MoreQueriesAtOnce,
    /// The wait for connections is read from the gaps before queries.
    WaitReadFromGaps,
    /// No metric of the pool confirms the wait.
    NoPoolMetric,
    /// Weights that are set on purpose spread calls as unevenly.
    WeightsLookSame,
    /// So few keys are often this uneven by chance.
    FewKeysByChance {
        /// Kind of place.
        place: PlaceKind,
        /// Places that the keys spread over.
        places: usize,
    },
    /// The traces do not record what the calls are for.
    KeysNotRecorded,
    /// Spans do not show which partition they went to, so consumption is counted.
    ConsumptionCounted,
    /// A limit may be set on purpose, for a budget.
    BudgetMayBeIntended,
    /// Readings are so far apart that they hide single seconds.
    ReadingsFarApart {
        /// From one to the next, nanoseconds.
        step_ns: f64,
    },
    /// The provisioned throughput changed during the trial.
    ProvisionedChanged,
    /// One active replica with standbys looks like a single client.
    StandbysLookSame,
    /// No span names its client, so only the shares suggest that requests are routed by client.
    ClientsNotNamed,
    /// One query for all rows is not free.
    ReplacingQueryTakesTime,
    /// No values of the repeated queries are known.
    QueryValuesNotRecorded,
    /// Only summaries of the queries are known.
    QueryTextsNotRecorded,
    /// A list of one value may be a longer one, shortened.
    StatementMayBeBatch,
    /// Spans of calls go on after the end of the request that made them.
    CallsOutlastRequest {
        /// How many, at least 1.
        spans: usize,
    },
    /// Only one request was traced.
    OneRequest,
    /// One call for all items is not free.
    ReplacingCallTakesTime,
    /// The subject of each call is not known.
    RequestedItemsNotRecorded,
    /// A count that never varies may be the load's rather than the program's.
    CountMayFollowTestData,
    /// Parallel calls reach their destination at once.
    ParallelCallsNeedCapacity,
    /// Parallel calls are not all as fast as sequential ones.
    ParallelCallsSaveLess,
    /// Behind the last branch is the second last.
    NextBranchRemains,
    /// A store reports nothing of its partitions, so that they are counted in the traces.
    PartitionsCountedInTraces {
        /// The store.
        store: String,
    },
    /// All partitions report equally many rows, as for an aggregate.
    RowsAlikeInPartitions,
    /// No partition's rows are known.
    RowsNotRecorded,
    /// No charge of a call is known.
    ChargeNotRecorded,
    /// Retries follow a failure of another cause.
    FailureNotExplained {
        /// Callee that fails.
        callee: String,
    },
    /// Counts over all spans have nothing of these calls.
    CallsOnlySampled,
    /// The CPU of a database was not sampled.
    DatabaseCpuNotSampled {
        /// The database.
        database: String,
    },
    /// No span shows the conflicts that a store counts.
    ConflictsNotInSpans,
    /// A full table is reported for a table's own limit too.
    TableMayHaveLimit {
        /// The database.
        database: String,
    },
    /// A broker reports a failed disk in the same way as a full one.
    DiskMayHaveFailed {
        /// The broker.
        broker: String,
    },
    /// Means over a window include an outage.
    MeansIncludeOutage,
    /// Memory that grows may level off after the load has ended.
    GrowthMayLevelOff,
    /// No level after the heaviest load has less of it.
    LoadOnlyGrew,
    /// The universal scalability law does not describe the levels.
    ScalabilityLawFitsPoorly {
        /// Why its fit should not be relied on.
        misfit: Misfit,
    },
    /// The universal scalability law needs more levels.
    FewLevelsForScalabilityLaw {
        /// The levels that there are.
        levels: usize,
    },
    /// Whatever lies between the load generator and a service is outside of its spans too.
    NetworkAndProxiesOutside,
    /// Another request may change rows between two reads of them.
    RowsMayChangeBetween,
    /// Only numbers of rows show that queries have the same values.
    SameValuesReadFromRows,
    /// The effect of sidecars on latency shows only beside the same system without them.
    SidecarLatencyNotCompared,
    /// On one machine, sidecars take CPU from the services.
    SidecarsShareMachine,
    /// No metric shows how the load is spread over partitions.
    PartitionLoadNotMeasured,
    /// Replicas without a partition may be there to take over.
    SpareReplicasMayBeIntended,
}
