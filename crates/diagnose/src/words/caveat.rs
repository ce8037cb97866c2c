//! Texts of caveats on findings: each one whole sentence or a few.

use std::fmt;

use narrows_model::finding::Caveat;
use narrows_model::units;

use crate::words;

/// Text of a caveat.
pub fn caveat(caveat: &Caveat) -> String {
    Text(caveat).to_string()
}

struct Text<'a>(&'a Caveat);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Caveat::LimitMayBeIntended => f.write_str(
                "The traces do not show whether the limit is intentional, to protect the store or a budget.",
            ),
            Caveat::PartitionsNotMeasured { store } => write!(
                f,
                "{store} reports neither the consumption nor the provisioned throughput of its partitions, so it is \
                 not shown that they reached their limit."
            ),
            Caveat::NoPartitionSeenFull => f.write_str(
                "No reading shows a partition near its limit. Readings are taken at intervals and can miss a second \
                 at the limit.",
            ),
            Caveat::MachineBusy { share, consumers } => write!(
                f,
                "The machine itself was {} busy, so CPU that one process gains, another may lose: {}.",
                units::percent(*share),
                words::consumers(consumers)
            ),
            Caveat::CpuStolen { share } => write!(
                f,
                "The hypervisor took {} of the machine's CPU time for others, so a part of this limit is not the \
                 service's own.",
                units::percent(*share)
            ),
            Caveat::ProcessesCountTogether => f.write_str(
                "The samples add up all processes of a replica: several processes that happen to use one core together \
                 look the same.",
            ),
            Caveat::DependencySendsNoSpans { dependency } => write!(
                f,
                "{dependency} sends no spans, so a part of this time may be the network or a wait for a connection."
            ),
            Caveat::HelpersNotNamed => f.write_str(
                "The threads of Node.js have one name: buffers outside of the heap that helper threads hash or compress \
                 look the same.",
            ),
            Caveat::SlowCallNotNamed { peer } => write!(
                f,
                "Sockets do not show which of the calls to {peer} takes longest; one that is made before or after the others \
                 looks the same."
            ),
            Caveat::StatusNotInSockets { peer, caller } => write!(
                f,
                "Sockets do not show what {peer} responds: calls that fail and are retried after a sleep look the same, \
                 and so does a limit of its own that {caller} keeps by sleeping."
            ),
            Caveat::SpanMayWaitForConnection { database } => write!(
                f,
                "The span of a call to {database} may begin before it has a connection, so a part may be a wait for \
                 one."
            ),
            Caveat::RowsNotShown => f.write_str(
                "The spans do not show how many rows were returned, so a query may have had more work to do.",
            ),
            Caveat::DatabaseNotSampled { database } => write!(
                f,
                "The CPU and the disks of {database} were not sampled, so it is not known which of them is full."
            ),
            Caveat::MoreQueriesAtOnce => f.write_str(
                "More connections mean more queries at once: how the database copes with them is not known.",
            ),
            Caveat::WaitReadFromGaps => {
                f.write_str("The wait is estimated from the gaps before queries: it is an upper limit.")
            }
            Caveat::WeightsLookSame => f.write_str("Intentional weights look the same."),
            Caveat::FewKeysByChance { place, places } => write!(
                f,
                "A test artefact: that few keys over {places} {}s are often this uneven by chance, and more keys would \
                 not be.",
                place.word()
            ),
            Caveat::KeysNotRecorded => f.write_str(
                "The traces do not record the keys, so it is not known whether the load has enough different ones.",
            ),
            Caveat::ConsumptionCounted => f.write_str(
                "No span shows which partition it went to, so the consumption of each partition is counted instead.",
            ),
            Caveat::BudgetMayBeIntended => {
                f.write_str("The series do not show whether the limit is intentional, for a budget.")
            }
            Caveat::ReadingsFarApart { step_ns } => write!(
                f,
                "Readings are {} apart: single seconds in between may be fuller than their mean.",
                units::duration(*step_ns)
            ),
            Caveat::ProvisionedChanged => f.write_str(
                "The provisioned throughput changed during the trial (autoscale); its highest value is compared.",
            ),
            Caveat::StandbysLookSame => f.write_str("One active replica with intentional standbys looks the same."),
            Caveat::ClientsNotNamed => {
                f.write_str("No span names its client: the shares suggest that the balancer routes by client.")
            }
            Caveat::NoPoolMetric => f.write_str("No pool metric (pending requests, wait time) confirms it."),
            Caveat::ReplacingQueryTakesTime => {
                f.write_str("The query that replaces these takes time too, so not all of the cost can be saved.")
            }
            Caveat::QueryValuesNotRecorded => f.write_str(
                "The traces do not record the values of the queries, so it is not shown that they differ.",
            ),
            Caveat::QueryTextsNotRecorded => f.write_str("The traces carry summaries of the queries, not their text."),
            Caveat::StatementMayBeBatch => {
                f.write_str("If the instrumentation shortens lists of values, this statement may be a batch.")
            }
            Caveat::CallsOutlastRequest { spans } => write!(
                f,
                "{} of these spans end after the request that they belong to: only their time up to its end counts. The \
                 request does not wait for them, or their end was recorded wrongly.",
                units::count(*spans as u64)
            ),
            Caveat::OneRequest => f.write_str(
                "Only one request was traced, so it is not shown how often this happens and whether other requests do the \
                 same.",
            ),
            Caveat::ReplacingCallTakesTime => {
                f.write_str("The call that replaces these takes time too, so not all of the cost can be saved.")
            }
            Caveat::RequestedItemsNotRecorded => f.write_str(
                "The traces do not record what each call requests, so it is not shown that the calls differ or are not \
                 pages.",
            ),
            Caveat::CountMayFollowTestData => {
                f.write_str("Their number is the same in all traces: the reason may be the data of the load.")
            }
            Caveat::ParallelCallsNeedCapacity => f.write_str(
                "Parallel calls put the same load on their destination in less time: check its limits first.",
            ),
            Caveat::ParallelCallsSaveLess => f.write_str(
                "They rarely all take their longest time together, and each may take longer than alone: expect \
                 somewhat less than the whole saving.",
            ),
            Caveat::NextBranchRemains => f.write_str(
                "A fix saves no more than this time: after that, the request waits for the branch that ends next.",
            ),
            Caveat::PartitionsCountedInTraces { store } => {
                write!(f, "{store} does not report its partitions; their number is taken from the traces.")
            }
            Caveat::RowsAlikeInPartitions => f.write_str(
                "Each partition reports as many rows as the others, as for an aggregate. It is not shown that most have \
                 nothing to add, only that the query filters by equality.",
            ),
            Caveat::RowsNotRecorded => f.write_str(
                "The traces do not record how many rows were returned, so it is not shown that most partitions have \
                 none.",
            ),
            Caveat::ChargeNotRecorded => {
                f.write_str("The traces record no charge, so partitions are counted instead of request units.")
            }
            Caveat::FailureNotExplained { callee } => write!(
                f,
                "The finding does not show why {callee} began to fail: retries amplify a failure and rarely cause it."
            ),
            Caveat::CallsOnlySampled => f.write_str(
                "The counts over all spans do not include these calls: the figures are from the sampled traces.",
            ),
            Caveat::DatabaseCpuNotSampled { database } => {
                write!(f, "The CPU of {database} was not sampled: it may be busy with other queries.")
            }
            Caveat::ConflictsNotInSpans => f.write_str("No span shows which operation had them or how it ended."),
            Caveat::TableMayHaveLimit { database } => write!(
                f,
                "{database} only reports a full table, which can also be a size limit of the table or its tablespace."
            ),
            Caveat::DiskMayHaveFailed { broker } => {
                write!(f, "{broker} only reports that it cannot use its storage: the disk may have failed instead.")
            }
            Caveat::MeansIncludeOutage => {
                f.write_str("Means over the whole window include this time. Times are in whole seconds of the load.")
            }
            Caveat::GrowthMayLevelOff => f.write_str(
                "A heap or a cache that is still being filled looks the same: a longer load shows whether it levels off.",
            ),
            Caveat::LoadOnlyGrew => f.write_str(
                "The load only grew: a level with fewer users after the heaviest would show whether throughput \
                 recovers.",
            ),
            Caveat::ScalabilityLawFitsPoorly { misfit } => {
                write!(f, "The universal scalability law does not describe these levels: {}.", words::misfit(*misfit))
            }
            Caveat::FewLevelsForScalabilityLaw { levels } => {
                write!(f, "{levels} levels are too few for the universal scalability law.")
            }
            Caveat::NetworkAndProxiesOutside => f.write_str(
                "A network or a proxy that is not part of the trial, between the load generator and the service, takes time \
                 outside of the spans too.",
            ),
            Caveat::RowsMayChangeBetween => f.write_str(
                "Another request can change the rows in between: a second read on purpose, to see that, looks the same.",
            ),
            Caveat::SameValuesReadFromRows => f.write_str(
                "The traces do not record the values of the queries. Equal numbers of rows suggest that the values are \
                 the same.",
            ),
            Caveat::SidecarLatencyNotCompared => f.write_str(
                "To see their effect on latency, compare with the same system without them, at the same rate.",
            ),
            Caveat::SidecarsShareMachine => f.write_str(
                "On one machine, sidecars also take CPU from the services; on several machines they would not.",
            ),
            Caveat::PartitionLoadNotMeasured => f.write_str(
                "The load of each partition is not measured: partitions that are busier than others look the same.",
            ),
            Caveat::SpareReplicasMayBeIntended => f.write_str(
                "Replicas without a partition may be intended, to take over from one that fails.",
            ),
        }
    }
}
