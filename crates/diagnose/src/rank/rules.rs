//! Causes and effects among kinds of findings, as one table: which findings absorb which, and which only come before others.
//!
//! A cause absorbs a symptom only where something ties the two; without a tie they are two findings, however alike they
//! look. Of several causes that are tied to one symptom, the first rule decides, then cost. The table goes one way: no
//! detector's findings can be both cause and symptom of another's, but for one pair, a full service and the repeated
//! calls that it gets, where figures decide which way it goes.

use narrows_model::finding::FindingKind::{
    self, AcceptQueue, BlockingCommand, ChattyHttp, ConflictRetry, ConnectionChurn, ConnectionLimit, CpuSaturation,
    CrossPartitionQuery, DatabaseSaturation, DescriptorExhaustion, DiskBound, DiskFull, DuplicateQuery, EventLoopLag,
    GarbageCollection, HotPartition, InterpreterLock, LockWait, MemoryGrowth, NPlusOne, Outage, PoolWait,
    PortExhaustion, ProvisionedRate, RetrogradeThroughput, RetryStorm, SerialFanOut, SerialisedSection, SlowDependency,
    SlowQuery, Stall, StragglerBranch, ThreadPool, Throttling, TimeOutsideSpans, UnevenAssignment,
};
use narrows_model::finding::{Mechanism, Precedence};

/// Findings of some kinds.
type Findings = &'static [FindingKind];

/// Possible relations of two findings. The first is the cause, or the one to deal with first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tie {
    /// Both are about one service or store; of a full machine, the service that uses most of it.
    SameResource,
    /// The calls that the first shows go to what the second is about.
    FirstCalls,
    /// The calls that the second shows go to what the first is about.
    SecondCalls,
    /// The place of the second calls that of the first, by any of its calls.
    Behind,
    /// Both are about one operation of one service, or of services that call one another.
    SameOperation,
    /// The load's requests pass by what the first is about.
    OnTheWay,
    /// The branch that the second shows is what the first is about, or calls it.
    InBranch,
    /// Both are about one service, and the first says that it was killed for lack of memory.
    KilledForMemory,
    /// Both are about one service, and the first says that it was short of memory.
    ShortOfMemory,
    /// Both are about one store, and it would have room if all its partitions had the same load.
    Uneven,
    /// Requests wait before the second takes them on, more of them under more load, and those that it has wait for the
    /// first.
    HeldWorkers,
    /// The repetitions that the first counts go to what the second is about, and without them that would not be full.
    Amplified,
    /// Both are about one service, and the first's collections take much of its time.
    Collecting,
    /// The first's connections begin or end at what the second is about, and take much of its processor time.
    Connecting,
    /// The first is full even without the repetitions that the second counts, and these go to it.
    FullAnyway,
}

/// One row: any of its ties suffices.
pub(super) struct Rule<Why> {
    pub(super) first: Findings,
    pub(super) then: Findings,
    pub(super) ties: &'static [Tie],
    pub(super) why: Why,
}

/// Causes and their symptoms.
pub(super) const CAUSES: &[Rule<Mechanism>] = &[
    Rule {
        first: &[DiskFull],
        then: &[Outage, RetryStorm],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::FullDisk,
    },
    Rule {
        first: &[DescriptorExhaustion],
        then: &[AcceptQueue, RetryStorm],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::NoDescriptor,
    },
    Rule {
        first: &[ConnectionLimit],
        then: &[RetryStorm],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::RefusedConnections,
    },
    Rule {
        first: &[PortExhaustion],
        then: &[RetryStorm],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::NoPort,
    },
    Rule { first: &[MemoryGrowth], then: &[Outage], ties: &[Tie::KilledForMemory], why: Mechanism::OutOfMemory },
    Rule { first: &[MemoryGrowth], then: &[DiskBound], ties: &[Tie::ShortOfMemory], why: Mechanism::DroppedPages },
    Rule {
        first: &[Outage],
        then: &[Throttling, RetryStorm],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::DownReplica,
    },
    Rule {
        first: &[HotPartition],
        then: &[Throttling, ProvisionedRate],
        ties: &[Tie::Uneven],
        why: Mechanism::UnevenLoad,
    },
    Rule {
        first: &[Throttling],
        then: &[ProvisionedRate],
        ties: &[Tie::SameResource],
        why: Mechanism::SpentThroughput,
    },
    Rule {
        first: &[CrossPartitionQuery],
        then: &[ProvisionedRate],
        ties: &[Tie::FirstCalls],
        why: Mechanism::QueriesWithoutRows,
    },
    Rule {
        first: &[CrossPartitionQuery],
        then: &[PoolWait],
        ties: &[Tie::SameResource],
        why: Mechanism::ConnectionsOfCalls,
    },
    Rule {
        first: &[NPlusOne, ChattyHttp, CrossPartitionQuery],
        then: &[DatabaseSaturation],
        ties: &[Tie::FirstCalls, Tie::SameResource],
        why: Mechanism::WorkOfCalls,
    },
    Rule {
        first: &[NPlusOne, ChattyHttp, CrossPartitionQuery],
        then: &[CpuSaturation, InterpreterLock],
        ties: &[Tie::SameResource, Tie::FirstCalls],
        why: Mechanism::CpuOfCalls,
    },
    Rule {
        first: &[HotPartition],
        then: &[DatabaseSaturation, CpuSaturation, InterpreterLock, SerialisedSection],
        ties: &[Tie::SameResource],
        why: Mechanism::FullestPartition,
    },
    Rule {
        first: &[GarbageCollection],
        then: &[CpuSaturation],
        ties: &[Tie::Collecting],
        why: Mechanism::CpuOfCollections,
    },
    Rule {
        first: &[ConnectionChurn],
        then: &[CpuSaturation, InterpreterLock],
        ties: &[Tie::Connecting],
        why: Mechanism::CpuOfConnections,
    },
    Rule { first: &[CpuSaturation], then: &[EventLoopLag], ties: &[Tie::SameResource], why: Mechanism::FullThread },
    Rule {
        first: &[GarbageCollection],
        then: &[EventLoopLag],
        ties: &[Tie::SameResource],
        why: Mechanism::StoppedLoop,
    },
    Rule { first: &[ConflictRetry], then: &[RetryStorm], ties: &[Tie::SameOperation], why: Mechanism::LostConflict },
    Rule {
        first: &[RetryStorm],
        then: &[DatabaseSaturation, CpuSaturation, InterpreterLock],
        ties: &[Tie::Amplified],
        why: Mechanism::RetriesFill,
    },
    Rule {
        first: &[DatabaseSaturation],
        then: &[CpuSaturation],
        ties: &[Tie::SameResource],
        why: Mechanism::SameLimit,
    },
    Rule {
        first: &[DatabaseSaturation, CpuSaturation, InterpreterLock],
        then: &[RetryStorm],
        ties: &[Tie::FullAnyway],
        why: Mechanism::LateResponses,
    },
    Rule {
        first: &[DatabaseSaturation, CpuSaturation, InterpreterLock],
        then: &[PoolWait],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::HeldConnections,
    },
    Rule {
        first: &[HotPartition, DatabaseSaturation, CpuSaturation],
        then: &[SlowQuery],
        ties: &[Tie::SameResource],
        why: Mechanism::SlowServer,
    },
    Rule {
        first: &[BlockingCommand],
        then: &[CpuSaturation, DatabaseSaturation, SlowQuery, PoolWait, SerialisedSection],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::BlockedThread,
    },
    Rule { first: &[BlockingCommand], then: &[Stall], ties: &[Tie::OnTheWay], why: Mechanism::BlockedThread },
    Rule {
        first: &[DatabaseSaturation, CpuSaturation],
        then: &[LockWait],
        ties: &[Tie::SameResource],
        why: Mechanism::SlowServer,
    },
    Rule {
        first: &[LockWait],
        then: &[SlowQuery, PoolWait, SerialisedSection],
        ties: &[Tie::SameResource, Tie::Behind],
        why: Mechanism::LockedData,
    },
    Rule { first: &[SlowQuery], then: &[PoolWait], ties: &[Tie::SameOperation], why: Mechanism::LongQuery },
    Rule { first: &[PoolWait], then: &[Throttling], ties: &[Tie::SameResource], why: Mechanism::NoConnection },
    Rule {
        first: &[
            Throttling,
            RetryStorm,
            DatabaseSaturation,
            LockWait,
            BlockingCommand,
            CpuSaturation,
            GarbageCollection,
            EventLoopLag,
            InterpreterLock,
            PoolWait,
            PortExhaustion,
        ],
        then: &[RetrogradeThroughput],
        ties: &[Tie::OnTheWay],
        why: Mechanism::OnTheWay,
    },
    Rule {
        first: &[
            Throttling,
            HotPartition,
            DatabaseSaturation,
            LockWait,
            BlockingCommand,
            CpuSaturation,
            GarbageCollection,
            EventLoopLag,
            InterpreterLock,
            PoolWait,
            RetryStorm,
            NPlusOne,
            SerialFanOut,
            ChattyHttp,
            CrossPartitionQuery,
            SlowQuery,
        ],
        then: &[StragglerBranch],
        ties: &[Tie::InBranch],
        why: Mechanism::SlowBranch,
    },
    Rule {
        first: &[DiskBound, CpuSaturation, GarbageCollection, EventLoopLag, InterpreterLock, MemoryGrowth, Outage],
        then: &[Stall],
        ties: &[Tie::SameResource],
        why: Mechanism::NoResponses,
    },
    Rule { first: &[Stall], then: &[TimeOutsideSpans], ties: &[Tie::SameResource], why: Mechanism::NoResponses },
    Rule {
        first: &[AcceptQueue],
        then: &[TimeOutsideSpans],
        ties: &[Tie::SameResource],
        why: Mechanism::BeforeAccepted,
    },
    Rule {
        first: &[ThreadPool],
        then: &[AcceptQueue, TimeOutsideSpans],
        ties: &[Tie::SameResource],
        why: Mechanism::NoThread,
    },
    Rule {
        first: &[EventLoopLag, GarbageCollection, InterpreterLock, SlowDependency],
        then: &[AcceptQueue, ThreadPool, TimeOutsideSpans],
        ties: &[Tie::HeldWorkers],
        why: Mechanism::HeldWorkers,
    },
    Rule {
        first: &[
            Throttling,
            DatabaseSaturation,
            LockWait,
            BlockingCommand,
            CpuSaturation,
            PoolWait,
            RetryStorm,
            DuplicateQuery,
            NPlusOne,
            SerialFanOut,
            ChattyHttp,
            SlowQuery,
            StragglerBranch,
        ],
        then: &[AcceptQueue, ThreadPool, TimeOutsideSpans],
        ties: &[Tie::HeldWorkers],
        why: Mechanism::HeldWorkers,
    },
];

/// Findings that only precede others. In this order, so that the foremost is moved last.
pub(super) const ORDER: &[Rule<Precedence>] = &[
    Rule {
        first: &[Throttling],
        then: &[HotPartition],
        ties: &[Tie::SameResource],
        why: Precedence::NoCapacityElsewhere,
    },
    Rule {
        first: &[Throttling],
        then: &[CrossPartitionQuery],
        ties: &[Tie::SecondCalls, Tie::SameOperation],
        why: Precedence::LowersLoad,
    },
    Rule {
        first: &[Throttling],
        then: &[SerialFanOut],
        ties: &[Tie::SecondCalls, Tie::SameOperation],
        why: Precedence::RejectedSooner,
    },
    Rule {
        first: &[UnevenAssignment],
        then: &[CpuSaturation],
        ties: &[Tie::SameResource],
        why: Precedence::RoomInOtherReplicas,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Every pair of the table that figures do not decide.
    fn pairs() -> impl Iterator<Item = (FindingKind, FindingKind)> {
        let undecided = CAUSES.iter().filter(|rule| rule.ties != [Tie::FullAnyway]);
        undecided.flat_map(|rule| rule.first.iter().flat_map(|a| rule.then.iter().map(|b| (*a, *b))))
    }

    #[test]
    fn no_cause_is_the_symptom_of_its_symptoms() {
        let mut depth: BTreeMap<FindingKind, usize> = BTreeMap::new();
        for _ in 0..FindingKind::ALL.len() {
            for (first, then) in pairs() {
                let least = depth.get(&first).copied().unwrap_or(0) + 1;
                let known = depth.entry(then).or_default();
                *known = least.max(*known);
            }
        }
        let deepest = depth.values().max().copied().unwrap_or(0);
        assert!((2..FindingKind::ALL.len()).contains(&deepest), "a circle among {depth:?}");
    }

    #[test]
    fn every_rule_has_a_tie() {
        let ties = CAUSES.iter().map(|rule| rule.ties).chain(ORDER.iter().map(|rule| rule.ties));
        assert!(ties.into_iter().all(|ties| !ties.is_empty()));
    }
}
