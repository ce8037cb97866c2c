//! Gains of changes to a system: predictions from one trial, with what they rest on.

mod gain;
mod ladder;
mod scored;
mod tried;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::FindingKind;
use crate::finding::evidence::load::LoadLevel;

pub use gain::{Gain, GainOutcome, PredictedGain};
pub use ladder::Ladder;
pub use scored::{Accuracy, LevelAccuracy, RuleFigures, ScoreCard, Scored};
pub use tried::{MadeChange, Tried};

/// A change to a system or to its load, as it is written: `NAME=TARGET,AMOUNT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Kind of change.
    pub kind: ChangeKind,
    /// Target: a service, an operation, a store or a dependency by its name; empty for the load.
    pub target: String,
    /// How much: a factor, a number of replicas, of users, or of arrivals per second; `None` for the usual.
    pub amount: Option<f64>,
}

/// Declares the kinds of changes, which is the only list of them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $name:literal;)*) => {
        /// Kind of change. Its name is the one on the command line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ChangeKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl ChangeKind {
            /// Every kind, in the order of their names.
            pub const ALL: &[ChangeKind] = &[$(ChangeKind::$kind,)*];

            /// The name used on the command line and in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(ChangeKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A service may use more CPU.
    AddCpu => "add-cpu";
    /// A service runs as more processes.
    AddReplicas => "add-replicas";
    /// A proxy stands beside services.
    AddSidecar => "add-sidecar";
    /// Requests are spread evenly over the replicas that there are.
    BalanceReplicas => "balance-replicas";
    /// Synced writes of several requests share one commit.
    BatchCommits => "batch-commits";
    /// A part of the calls is served from memory.
    Cache => "cache";
    /// A service looks no name up again.
    CacheNames => "cache-names";
    /// Calls are no longer made.
    DropCall => "drop-call";
    /// Calls for one item each become one call for all.
    JoinQueries => "join-queries";
    /// The same system under another load.
    MoreLoad => "more-load";
    /// Calls that are made one after another are made at the same time.
    Parallelize => "parallelize";
    /// A service works on more requests at a time.
    RaiseLimit => "raise-limit";
    /// A service has enough memory.
    RaiseMemory => "raise-memory";
    /// A store provides more request units.
    RaiseRate => "raise-rate";
    /// Calls made while something is held are made outside of the hold.
    ReleaseBefore => "release-before";
    /// The proxies beside services are gone.
    RemoveSidecar => "remove-sidecar";
    /// Times in which a service does not respond are gone.
    RemoveStall => "remove-stall";
    /// A pool has another number of connections.
    ResizePool => "resize-pool";
    /// Connections are kept for further calls.
    ReuseConnections => "reuse-connections";
    /// A query goes to the partition that has its rows.
    RouteQuery => "route-query";
    /// A request needs less CPU.
    SaveCpu => "save-cpu";
    /// The work that one request at a time may do takes less time.
    ShortenSection => "shorten-section";
    /// A service, an operation or a dependency takes less time.
    SpeedUp => "speed-up";
    /// Requests do at the same time what they took turns at.
    SplitLock => "split-lock";
    /// A database runs on more nodes.
    SpreadDatabase => "spread-database";
}

impl Change {
    /// A change of the usual size.
    pub fn new(kind: ChangeKind, target: impl Into<String>) -> Self {
        Self { kind, target: target.into(), amount: None }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match (self.target.as_str(), self.amount) {
            ("", None) => Ok(()),
            ("", Some(amount)) => write!(f, "={amount}"),
            (target, None) => write!(f, "={target}"),
            (target, Some(amount)) => write!(f, "={target},{amount}"),
        }
    }
}

/// Figures of a trial, measured or computed by a model of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Successful responses per second.
    pub rate: f64,
    /// Mean latency, nanoseconds.
    pub mean_ns: f64,
    /// 95 % latency, nanoseconds.
    pub p95_ns: f64,
}

/// A predicted value.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// The value expected.
    pub value: f64,
    /// Lower end of its 90 % interval.
    pub low: f64,
    /// Upper end of its 90 % interval.
    pub high: f64,
}

impl Estimate {
    /// How far it is off what was measured: predicted ÷ measured − 1.
    pub fn error(&self, measured: f64) -> f64 {
        self.value / measured - 1.0
    }

    /// Whether the interval holds what was measured.
    pub fn holds(&self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }
}

/// Predicted figures.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Forecast {
    /// Successful responses per second.
    pub rate: Estimate,
    /// Mean latency, nanoseconds.
    pub mean_ns: Estimate,
    /// 95 % latency, nanoseconds.
    pub p95_ns: Estimate,
}

/// One level of the load, measured and as the model has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineLevel {
    /// For people, such as `8 users`.
    pub label: String,
    /// Offered load.
    pub load: LoadLevel,
    /// Requests it was measured with.
    pub requests: u64,
    /// Measurement.
    pub measured: Figures,
    /// Throughput of the model, per second.
    pub model_rate: f64,
    /// Mean latency of the model, nanoseconds.
    pub model_mean_ns: f64,
}

/// One level of the load, measured and with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelForecast {
    /// For people, such as `8 users`.
    pub label: String,
    /// Offered load.
    pub load: LoadLevel,
    /// Measurement; `None` for a load that was not.
    pub now: Option<Figures>,
    /// Predicted value.
    pub after: Forecast,
}

/// Expected result of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The change.
    pub change: Change,
    /// Further changes that are made with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<Change>,
    /// The finding that suggests it; `None` for a change that was asked for.
    pub because: Option<FindingKind>,
    /// Measurement over all levels, or at the heaviest level where the change is of the load.
    pub now: Figures,
    /// The same with the change.
    pub after: Forecast,
    /// The levels of the load, lightest first.
    pub levels: Vec<LevelForecast>,
    /// First limit of throughput as it is; `None` if nothing is known to limit it.
    pub limit_now: Option<Resource>,
    /// First limit with the change.
    pub limit_after: Option<Resource>,
    /// Assumptions.
    pub assumptions: Vec<Assumption>,
    /// Doubts about the prediction; may be empty.
    pub doubts: Vec<Doubt>,
    /// Measurement once the change was made; `None` if nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Measurement of a later trial, with the change made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The trial.
    pub trial: String,
    /// Over the loads that the prediction is for.
    pub figures: Figures,
    /// At each of [`Prediction::levels`], in their order; empty in files of earlier versions.
    #[serde(default)]
    pub levels: Vec<Figures>,
}

impl Prediction {
    /// Of a change alone, without levels, limits, assumptions or doubts, and not yet measured.
    pub fn new(change: Change, now: Figures, after: Forecast) -> Self {
        Self {
            change,
            with: Vec::new(),
            because: None,
            now,
            after,
            levels: Vec::new(),
            limit_now: None,
            limit_after: None,
            assumptions: Vec::new(),
            doubts: Vec::new(),
            measured: None,
        }
    }

    /// Whether no doubt is so serious that the figures should not be used.
    pub fn is_trusted(&self) -> bool {
        !self.doubts.iter().any(Doubt::is_serious)
    }

    /// How much throughput is gained, new ÷ old − 1; 0 when nothing was completed.
    pub fn rate_gain(&self) -> f64 {
        if self.now.rate > 0.0 { self.after.rate.value / self.now.rate - 1.0 } else { 0.0 }
    }

    /// How the mean latency changes, new ÷ old − 1; 0 when none was measured.
    pub fn mean_change(&self) -> f64 {
        if self.now.mean_ns > 0.0 { self.after.mean_ns.value / self.now.mean_ns - 1.0 } else { 0.0 }
    }
}

/// Gains of changes to the system of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// The trial.
    pub trial: String,
    /// Its load, measured and as the model reproduces it.
    pub baseline: Vec<BaselineLevel>,
    /// The changes, those that gain most first.
    pub predictions: Vec<Prediction>,
    /// Order of the changes that gain most together; empty if changes were asked for, or one gains all.
    #[serde(default, skip_serializing_if = "Ladder::is_empty")]
    pub ladder: Ladder,
    /// Findings that suggest no change that can be predicted.
    pub not_predicted: Vec<NotPredicted>,
    /// Meaning in one sentence.
    pub sentence: String,
}

/// A finding without a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotPredicted {
    /// The finding.
    pub finding: FindingKind,
    /// Why not, a clause without a full stop.
    pub because: String,
}

/// Something that only so much can be had of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Kind of resource.
    pub kind: ResourceKind,
    /// Whose it is: a service or a store; empty for the machine. Of an unexplained limit the requests at a time.
    pub name: String,
    /// How much of it is used at the heaviest level, as a share, 0 to about 1.
    pub used_share: f64,
    /// The throughput at which it is used up, requests per second.
    pub rate_max: f64,
}

/// Possible limit of throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// The CPU that a service may use.
    Cpu,
    /// The one thread of a service.
    Thread,
    /// The one core that the threads of a service take turns at.
    OneCore,
    /// The machine's CPU.
    Machine,
    /// Request units of a store's busiest partition.
    RequestUnits,
    /// A section that one request at a time may enter.
    OneAtATime,
    /// Connections of a pool.
    Connections,
    /// Commits that wait for a disk.
    Commits,
    /// Writes that are synced to a disk one by one.
    SyncedWrites,
    /// A lock of a database.
    Lock,
    /// Threads of a pool.
    Threads,
    /// Requests that a service handles at a time.
    Requests,
    /// The replica that gets most of the requests.
    FullestReplica,
    /// Something that so many requests at a time pass, by the throughput alone.
    Unexplained,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            ResourceKind::Cpu => write!(f, "the CPU of {name}"),
            ResourceKind::Thread => write!(f, "the single thread of {name}"),
            ResourceKind::Machine => f.write_str("the machine's CPU"),
            ResourceKind::RequestUnits => write!(f, "the request units of {name}"),
            ResourceKind::OneAtATime => write!(f, "the section of {name} that one request at a time enters"),
            ResourceKind::Connections => write!(f, "the connections of {name}"),
            ResourceKind::Commits => write!(f, "the commits of {name}"),
            ResourceKind::OneCore => write!(f, "the one core that the threads of {name} share"),
            ResourceKind::SyncedWrites => write!(f, "the synced writes of {name}"),
            ResourceKind::Lock => write!(f, "the lock in {name}"),
            ResourceKind::Threads => write!(f, "the threads of {name}"),
            ResourceKind::Requests => write!(f, "the number of requests that {name} handles at a time"),
            ResourceKind::FullestReplica => write!(f, "the replica of {name} that gets most requests"),
            ResourceKind::Unexplained => write!(f, "something unexplained, at most {name} at a time"),
        }
    }
}

/// Assumption of a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Assumption {
    /// Users and their think time stay the same.
    SameUsers {
        /// Time between a response and the next request, nanoseconds.
        think_ns: f64,
    },
    /// A request costs as much CPU under every load.
    CpuPerRequest,
    /// All services share one machine.
    OneMachine {
        /// Its cores.
        cores: u32,
    },
    /// Time outside of queues is the same under every load.
    RestIsDelay {
        /// How long, nanoseconds.
        delay_ns: f64,
        /// Its share of the latency at the lightest load, 0 to 1.
        share: f64,
    },
    /// The lightest levels say nothing, because a service was still warming up.
    WarmLevels {
        /// Levels that are left out.
        left_out: usize,
    },
    /// The branches do not slow each other down.
    BranchesAreIndependent,
    /// A call for all items takes as long as one of those that it replaces, and a bounded time for each further item.
    OneCallForAll {
        /// Calls that it replaces, mean.
        calls: f64,
    },
    /// The CPU of a callee follows the number of calls.
    CpuFollowsCalls {
        /// The callee.
        callee: String,
    },
    /// Requests that make none of the calls and yet take long may wait for the calls of others.
    OthersMayWait,
    /// Only the partition that has rows is queried.
    OnePartition,
    /// Refused calls, and the waits to retry them, are gone.
    NoRefusals {
        /// Time of a request that they take now, mean, nanoseconds.
        gained_ns: f64,
    },
    /// Refused calls stay as frequent as they are.
    RefusalsStay,
    /// Nothing but the time that sidecars report, and their CPU, goes with them.
    SidecarsOnly,
    /// Time in the service, including its waits, shrinks by the factor.
    AllOwnTime {
        /// The factor.
        factor: f64,
    },
    /// Requests are spread evenly over the replicas.
    EvenReplicas,
    /// Replicas have partitions, and requests are spread as those are.
    WholePartitions {
        /// Partitions, from 1.
        partitions: u32,
        /// Replicas, from 1.
        replicas: u32,
    },
    /// Replicas do not share a cache, and entries live as long as now.
    CacheOfEachReplica {
        /// Share of the requests that it does not serve now, 0 to 1.
        misses: f64,
        /// The same with the change at the same rate.
        misses_after: f64,
    },
    /// A connection is held as long as now.
    ConnectionsHeldAsLong,
    /// Calls are served from memory whatever they ask for.
    HitsAreIndependent {
        /// The share of them, 0 to 1.
        hit_rate: f64,
    },
    /// Reads are spread over the nodes, writes are made on each.
    WritesOnEachNode {
        /// The share of the database's work that writes, 0 to 1.
        writes: f64,
    },
    /// A proxy costs so much CPU each time a request passes it.
    SidecarCost {
        /// CPU for each pass, nanoseconds.
        pass_ns: f64,
        /// Passes of a request, mean.
        passes: f64,
    },
    /// A commit takes as long for several requests as for one.
    CommitsTakeAsLong {
        /// How long it takes, nanoseconds.
        held_ns: f64,
    },
    /// The work that requests take turns at takes as long when several do it at the same time.
    SectionTakesAsLong {
        /// How long it takes a request, nanoseconds.
        held_ns: f64,
    },
    /// The work in a section, its calls and its CPU, shrinks by the factor.
    SectionShrinks {
        /// The factor.
        factor: f64,
    },
    /// CPU of a request is divided by the factor; its waits stay the same.
    CpuShrinks {
        /// The factor.
        factor: f64,
    },
    /// Calls that are made while something is held take as long outside of the hold.
    CallsOutsideHold {
        /// How long they take a request, nanoseconds.
        calls_ns: f64,
    },
    /// A wait is gone, and nothing comes in its place.
    WaitGone {
        /// For what a request no longer waits.
        reason: String,
        /// How long it takes a request now, mean, nanoseconds.
        wait_ns: f64,
    },
    /// Opening and closing a connection costs so much CPU.
    ConnectionCost {
        /// CPU of a request for them at both ends together, nanoseconds.
        cpu_ns: f64,
    },
}

/// Doubt about a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Doubt {
    /// The model does not reproduce what was measured.
    BaselineMissed {
        /// The level at which it is furthest off.
        label: String,
        /// Difference.
        measure: Measure,
        /// Measured value: requests per second, or nanoseconds.
        measured: f64,
        /// Value of the model.
        model: f64,
    },
    /// One level alone cannot show whether the model holds.
    OneLevel,
    /// The figures lie far beyond what was tested.
    BeyondTested {
        /// The load or throughput as a multiple of the greatest that was tested.
        factor: f64,
    },
    /// Requests failed, and what those cost is not known.
    Failures {
        /// Failed ÷ ended, 0 to 1.
        share: f64,
    },
    /// A finding makes the figures of the trial invalid.
    Invalid {
        /// The finding.
        finding: FindingKind,
    },
    /// Few traces show the change.
    FewTraces {
        /// How many.
        traces: usize,
    },
    /// Most of a request's time outside queues passes where no trace shows it, so a change to traces says little.
    OutsideTraces {
        /// The share of a request's time outside queues that traces show, 0 to 1.
        share: f64,
    },
    /// More arrives than the system with the change can complete, so latency would grow without end.
    Overloaded,
    /// The change does not touch what limits the service.
    OneThread {
        /// The service.
        service: String,
    },
}

/// Subject of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Throughput.
    Rate,
    /// Mean latency.
    Mean,
}

impl Doubt {
    /// Whether the figures should not be used.
    pub fn is_serious(&self) -> bool {
        matches!(self, Doubt::BaselineMissed { .. } | Doubt::Invalid { .. } | Doubt::OutsideTraces { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted_and_written_as_they_are_named() {
        assert!(ChangeKind::ALL.is_sorted_by(|one, other| one.name() < other.name()));
        for kind in ChangeKind::ALL {
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{}\"", kind.name()));
        }
    }

    #[test]
    fn a_change_reads_as_it_is_written() {
        let change = |kind, target: &str, amount| Change { kind, target: target.into(), amount }.to_string();
        assert_eq!(change(ChangeKind::MoreLoad, "", Some(80.0)), "more-load=80");
        assert_eq!(change(ChangeKind::Parallelize, "GET /a", None), "parallelize=GET /a");
        assert_eq!(change(ChangeKind::AddCpu, "shop", Some(2.5)), "add-cpu=shop,2.5");
    }
}
