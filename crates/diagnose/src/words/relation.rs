//! Texts of relations between findings: one whole sentence or two.

use narrows_model::finding::{Finding, Mechanism, Precedence, Relation};

use super::{InWords, cause_name};

/// A relation as a reason of the finding that has it. `None` if the trial's findings do not contain the other one.
pub(super) fn reason(relation: &Relation, trial: &[Finding]) -> Option<String> {
    match relation {
        Relation::EffectOf { number, why } => {
            let cause = numbered(trial, *number)?;
            Some(format!(
                "It is a likely effect of {}: {}. {}",
                cause_name(cause.kind()),
                cause.title(),
                mechanism(*why)
            ))
        }
        Relation::After { number, why } => {
            Some(format!("{}: {}.", precedence(*why), numbered(trial, *number)?.title()))
        }
    }
}

fn numbered(findings: &[Finding], number: u32) -> Option<&Finding> {
    findings.iter().find_map(
        |finding| {
            if finding.number == number { Some(finding) } else { numbered(&finding.effects, number) }
        },
    )
}

/// How a cause brings about its effect, as a sentence.
pub(crate) fn mechanism(why: Mechanism) -> &'static str {
    match why {
        Mechanism::FullDisk => "What writes to a full disk fails or stops, and callers retry.",
        Mechanism::NoDescriptor => "A process without a free descriptor can accept and open no connection.",
        Mechanism::RefusedConnections => "Calls whose connections are refused fail and are retried.",
        Mechanism::NoPort => "Calls that find no local port fail and are retried.",
        Mechanism::DroppedPages => {
            "For lack of memory, the kernel drops pages of the service and reads them from the disk again."
        }
        Mechanism::OutOfMemory => "A replica that is killed at its memory limit is down until it has started again.",
        Mechanism::DownReplica => "Calls to a replica that is down fail and are retried.",
        Mechanism::UnevenLoad => "With an even load, the partitions together would have capacity left.",
        Mechanism::SpentThroughput => "A store that has spent its provisioned throughput rejects further calls.",
        Mechanism::QueriesWithoutRows => "Each partition spends throughput on queries that it has no rows for.",
        Mechanism::WorkOfCalls => "Every call is work for the callee.",
        Mechanism::CpuOfCalls => "Every call costs CPU time on both sides.",
        Mechanism::ConnectionsOfCalls => "Every call takes up a connection.",
        Mechanism::FullestPartition => "The partition with the most load is full first.",
        Mechanism::CpuOfConnections => "Handshakes of new connections use CPU at both ends.",
        Mechanism::CpuOfCollections => "Collections use CPU and let no request run meanwhile.",
        Mechanism::StoppedLoop => "No callback runs while garbage is collected.",
        Mechanism::FullThread => "The event loop runs on the thread that is full, so events queue for it.",
        Mechanism::LostConflict => "A transaction that loses a conflict is started again.",
        Mechanism::RetriesFill => "Without the retries it would not be full.",
        Mechanism::SameLimit => "It is the same limit, seen from the machine.",
        Mechanism::LateResponses => "A saturated service responds late or not at all, so callers retry.",
        Mechanism::HeldConnections => "Connections are held for longer while the server behind them is saturated.",
        Mechanism::SlowServer => "Every query takes longer on a saturated server.",
        Mechanism::LockedData => {
            "A statement waits until the lock is released, and what waits for the statement waits as long."
        }
        Mechanism::BlockedThread => "The server's one thread serves nothing else meanwhile.",
        Mechanism::LongQuery => "A connection is held for as long as the query takes.",
        Mechanism::NoConnection => "A request that gets no connection in time is rejected.",
        Mechanism::OnTheWay => "The load's requests pass through it, and further ones only wait there.",
        Mechanism::HeldWorkers => "Workers that wait for it take on the next requests later.",
        Mechanism::BeforeAccepted => "A request has no span before its connection is accepted.",
        Mechanism::NoThread => "A request without a thread waits, before its work and mostly before its span begins.",
        Mechanism::SlowBranch => "The slow branch waits for it.",
        Mechanism::NoResponses => "No request gets its response while it lasts.",
    }
}

/// The beginning of a sentence, before the title of what comes first.
pub(crate) fn precedence(why: Precedence) -> &'static str {
    match why {
        Precedence::NoCapacityElsewhere => "The store's other partitions have no capacity left either",
        Precedence::LowersLoad => "It lowers the load on a store that rejects calls now",
        Precedence::RejectedSooner => "While the store rejects calls, parallel calls would only be rejected sooner",
        Precedence::RoomInOtherReplicas => "Replicas with fewer partitions have CPU left",
    }
}
