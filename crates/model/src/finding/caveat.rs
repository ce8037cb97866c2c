//! What limits the reading of a finding.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::evidence::cpu::CpuConsumers;
use super::evidence::hot_partition::PlaceKind;
use crate::scalability::Misfit;
use crate::units;

/// What a finding's data cannot show, or what its figures leave out. It reads as one whole sentence or a few.
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
        /// What a place is.
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
    /// What each call requests is not known.
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
        /// What is called and fails.
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
    /// What sidecars do to latency shows only beside the same system without them.
    SidecarLatencyNotCompared,
    /// On one machine, sidecars take CPU from the services.
    SidecarsShareMachine,
    /// No metric shows how the load is spread over partitions.
    PartitionLoadNotMeasured,
    /// Replicas without a partition may be there to take over.
    SpareReplicasMayBeIntended,
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitMayBeIntended => f.write_str(
                "The traces do not show whether the limit is intentional, to protect the store or a budget.",
            ),
            Self::PartitionsNotMeasured { store } => write!(
                f,
                "{store} reports neither the consumption nor the provisioned throughput of its partitions, so it is \
                 not shown that they reached their limit."
            ),
            Self::NoPartitionSeenFull => f.write_str(
                "No reading shows a partition near its limit. Readings are taken at intervals and can miss a second \
                 at the limit.",
            ),
            Self::MachineBusy { share, consumers } => write!(
                f,
                "The machine itself was {} busy, so CPU that one process gains, another may lose: {consumers}.",
                units::percent(*share)
            ),
            Self::CpuStolen { share } => write!(
                f,
                "The hypervisor took {} of the machine's CPU time for others, so a part of this limit is not the \
                 service's own.",
                units::percent(*share)
            ),
            Self::ProcessesCountTogether => f.write_str(
                "The samples add up all processes of a replica: several processes that happen to use one core together \
                 look the same.",
            ),
            Self::DependencySendsNoSpans { dependency } => write!(
                f,
                "{dependency} sends no spans, so a part of this time may be the network or a wait for a connection."
            ),
            Self::SpanMayWaitForConnection { database } => write!(
                f,
                "The span of a call to {database} may begin before it has a connection, so a part may be a wait for \
                 one."
            ),
            Self::RowsNotShown => f.write_str(
                "The spans do not show how many rows were returned, so a query may have had more work to do.",
            ),
            Self::DatabaseNotSampled { database } => write!(
                f,
                "The CPU and the disks of {database} were not sampled, so it is not known which of them is full."
            ),
            Self::MoreQueriesAtOnce => f.write_str(
                "More connections mean more queries at once: how the database copes with them is not known.",
            ),
            Self::WaitReadFromGaps => {
                f.write_str("The wait is estimated from the gaps before queries: it is an upper limit.")
            }
            Self::WeightsLookSame => f.write_str("Intentional weights look the same."),
            Self::FewKeysByChance { place, places } => write!(
                f,
                "A test artefact: that few keys over {places} {}s are often this uneven by chance, and more keys would \
                 not be.",
                place.word()
            ),
            Self::KeysNotRecorded => f.write_str(
                "The traces do not record the keys, so it is not known whether the load has enough different ones.",
            ),
            Self::ConsumptionCounted => f.write_str(
                "No span shows which partition it went to, so the consumption of each partition is counted instead.",
            ),
            Self::BudgetMayBeIntended => {
                f.write_str("The series do not show whether the limit is intentional, for a budget.")
            }
            Self::ReadingsFarApart { step_ns } => write!(
                f,
                "Readings are {} apart: single seconds in between may be fuller than their mean.",
                units::duration(*step_ns)
            ),
            Self::ProvisionedChanged => f.write_str(
                "The provisioned throughput changed during the trial (autoscale); its highest value is compared.",
            ),
            Self::StandbysLookSame => f.write_str("One active replica with intentional standbys looks the same."),
            Self::ClientsNotNamed => {
                f.write_str("No span names its client: the shares suggest that the balancer routes by client.")
            }
            Self::NoPoolMetric => f.write_str("No pool metric (pending requests, wait time) confirms it."),
            Self::ReplacingQueryTakesTime => {
                f.write_str("The query that replaces these takes time too, so not all of the cost can be saved.")
            }
            Self::QueryValuesNotRecorded => f.write_str(
                "The traces do not record the values of the queries, so it is not shown that they differ.",
            ),
            Self::QueryTextsNotRecorded => f.write_str("The traces carry summaries of the queries, not their text."),
            Self::StatementMayBeBatch => {
                f.write_str("If the instrumentation shortens lists of values, this statement may be a batch.")
            }
            Self::CallsOutlastRequest { spans } => write!(
                f,
                "{} of these spans end after the request that they belong to: only their time up to its end counts. The \
                 request does not wait for them, or their end was recorded wrongly.",
                units::count(*spans as u64)
            ),
            Self::OneRequest => f.write_str(
                "Only one request was traced, so it is not shown how often this happens and whether other requests do the \
                 same.",
            ),
            Self::ReplacingCallTakesTime => {
                f.write_str("The call that replaces these takes time too, so not all of the cost can be saved.")
            }
            Self::RequestedItemsNotRecorded => f.write_str(
                "The traces do not record what each call requests, so it is not shown that the calls differ or are not \
                 pages.",
            ),
            Self::CountMayFollowTestData => {
                f.write_str("Their number is the same in all traces: the reason may be the data of the load.")
            }
            Self::ParallelCallsNeedCapacity => f.write_str(
                "Parallel calls put the same load on their destination in less time: check its limits first.",
            ),
            Self::ParallelCallsSaveLess => f.write_str(
                "They rarely all take their longest time together, and each may take longer than alone: expect \
                 somewhat less than the whole saving.",
            ),
            Self::NextBranchRemains => f.write_str(
                "A fix saves no more than this time: after that, the request waits for the branch that ends next.",
            ),
            Self::PartitionsCountedInTraces { store } => {
                write!(f, "{store} does not report its partitions; their number is taken from the traces.")
            }
            Self::RowsAlikeInPartitions => f.write_str(
                "Each partition reports as many rows as the others, as for an aggregate. It is not shown that most have \
                 nothing to add, only that the query filters by equality.",
            ),
            Self::RowsNotRecorded => f.write_str(
                "The traces do not record how many rows were returned, so it is not shown that most partitions have \
                 none.",
            ),
            Self::ChargeNotRecorded => {
                f.write_str("The traces record no charge, so partitions are counted instead of request units.")
            }
            Self::FailureNotExplained { callee } => write!(
                f,
                "The finding does not show why {callee} began to fail: retries amplify a failure and rarely cause it."
            ),
            Self::CallsOnlySampled => f.write_str(
                "The counts over all spans do not include these calls: the figures are from the sampled traces.",
            ),
            Self::DatabaseCpuNotSampled { database } => {
                write!(f, "The CPU of {database} was not sampled: it may be busy with other queries.")
            }
            Self::ConflictsNotInSpans => f.write_str("No span shows which operation had them or how it ended."),
            Self::TableMayHaveLimit { database } => write!(
                f,
                "{database} only reports a full table, which can also be a size limit of the table or its tablespace."
            ),
            Self::DiskMayHaveFailed { broker } => {
                write!(f, "{broker} only reports that it cannot use its storage: the disk may have failed instead.")
            }
            Self::MeansIncludeOutage => {
                f.write_str("Means over the whole window include this time. Times are in whole seconds of the load.")
            }
            Self::GrowthMayLevelOff => f.write_str(
                "A heap or a cache that is still being filled looks the same: a longer load shows whether it levels off.",
            ),
            Self::LoadOnlyGrew => f.write_str(
                "The load only grew: a level with fewer users after the heaviest would show whether throughput \
                 recovers.",
            ),
            Self::ScalabilityLawFitsPoorly { misfit } => {
                write!(f, "The universal scalability law does not describe these levels: {misfit}.")
            }
            Self::FewLevelsForScalabilityLaw { levels } => {
                write!(f, "{levels} levels are too few for the universal scalability law.")
            }
            Self::NetworkAndProxiesOutside => f.write_str(
                "A network or a proxy that is not part of the trial, between the load generator and the service, takes time \
                 outside of the spans too.",
            ),
            Self::RowsMayChangeBetween => f.write_str(
                "Another request can change the rows in between: a second read on purpose, to see that, looks the same.",
            ),
            Self::SameValuesReadFromRows => f.write_str(
                "The traces do not record the values of the queries. Equal numbers of rows suggest that the values are \
                 the same.",
            ),
            Self::SidecarLatencyNotCompared => f.write_str(
                "To see their effect on latency, compare with the same system without them, at the same rate.",
            ),
            Self::SidecarsShareMachine => f.write_str(
                "On one machine, sidecars also take CPU from the services; on several machines they would not.",
            ),
            Self::PartitionLoadNotMeasured => f.write_str(
                "The load of each partition is not measured: partitions that are busier than others look the same.",
            ),
            Self::SpareReplicasMayBeIntended => f.write_str(
                "Replicas without a partition may be intended, to take over from one that fails.",
            ),
        }
    }
}

/// Writes each caveat with its text beside its data.
pub(super) fn with_text<S: Serializer>(caveats: &[Caveat], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithText<'a> {
        #[serde(flatten)]
        caveat: &'a Caveat,
        text: String,
    }
    serializer.collect_seq(caveats.iter().map(|caveat| WithText { caveat, text: caveat.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, FindingKind};

    #[test]
    fn files_hold_data_and_text() {
        let caveats = vec![Caveat::LimitMayBeIntended, Caveat::PartitionsNotMeasured { store: "store".into() }];
        let finding = Finding { caveats, ..Finding::new(FindingKind::Throttling, 1) };
        let value = serde_json::to_value(&finding).unwrap();
        assert_eq!(value["caveats"][1]["kind"], "partitions-not-measured");
        assert_eq!(value["caveats"][1]["store"], "store");
        assert!(value["caveats"][1]["text"].as_str().unwrap().starts_with("store reports neither"));
        assert_eq!(serde_json::from_value::<Finding>(value).unwrap(), finding);
    }
}
