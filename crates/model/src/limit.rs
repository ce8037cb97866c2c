//! Limit of a trial's throughput: the levels of its load beside each other, and a verdict.

use serde::{Deserialize, Serialize};

use crate::breakdown::{OwnPart, ServiceThreads, TimeCategory, TimePart};
use crate::finding::FindingKind;
use crate::finding::evidence::cpu::LoadPoint;
use crate::finding::evidence::load::LoadLevel;
use crate::finding::evidence::offered_load_limited::Room;

/// Limit of the throughput of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The parts of the load in which it was constant or nearly so, in order of time; empty without a load.
    pub levels: Vec<LevelSummary>,
    /// The place in `levels` of the knee, where throughput ÷ mean latency is greatest (L. Kleinrock, "Power and
    /// deterministic rules of thumb", ICC 1979); `None` with fewer than three steady levels of
    /// different loads, or if it would be the heaviest.
    pub knee: Option<usize>,
    /// The conclusion.
    pub verdict: LimitVerdict,
}

/// Figures of one level of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// For people, such as `“8 users”`.
    pub label: String,
    /// Offered load.
    pub load: LoadLevel,
    /// Whether the load is constant in it; false in a part of a ramp.
    pub is_steady: bool,
    /// How long it is, seconds.
    pub seconds: f64,
    /// Successful responses per second.
    pub rate: f64,
    /// Mean latency from intended send, nanoseconds; 0 without a success, as the others are.
    pub mean_ns: f64,
    /// Median latency, nanoseconds.
    pub p50_ns: f64,
    /// 95 % latency, nanoseconds.
    pub p95_ns: f64,
    /// Failed ÷ ended, 0 to 1.
    pub error_rate: f64,
    /// CPU of each service, medians, in the order they were started; without those that were not sampled.
    pub services: Vec<ServiceCpu>,
    /// State of the threads of each service, in the same order; without those that were not sampled.
    pub threads: Vec<ServiceThreads>,
    /// CPU of the machine; `None` if it was not sampled.
    pub machine: Option<MachineCpu>,
}

/// CPU that a service used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceCpu {
    /// The service.
    pub service: String,
    /// All its replicas together, cores, median.
    pub cores: f64,
    /// How busy its busiest replica is, as a share of its limit, of the machine or of one thread: 0 to about 1.
    pub busy_share: f64,
}

/// The machine's CPU, divided among those who used it. Medians, in cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineCpu {
    /// Its logical processors.
    pub all: f64,
    /// Used by the services of the trial, sidecars included.
    pub services: f64,
    /// Used by Narrows itself, the load generator included.
    pub narrows: f64,
    /// Used by other programs.
    pub others: f64,
    /// Taken by the hypervisor.
    pub stolen: f64,
}

impl MachineCpu {
    /// Cores in use or taken.
    pub fn used(&self) -> f64 {
        self.services + self.narrows + self.others + self.stolen
    }

    /// The same as a share of all cores, 0 to 1: medians may add up to a little more than there is.
    pub fn used_share(&self) -> f64 {
        if self.all > 0.0 { (self.used() / self.all).min(1.0) } else { 0.0 }
    }

    /// Cores that neither the services nor Narrows had.
    pub fn foreign(&self) -> f64 {
        self.others + self.stolen
    }

    /// Whether the services and Narrows had less than the rest.
    pub fn is_mostly_foreign(&self) -> bool {
        self.foreign() > self.services + self.narrows
    }
}

/// Limit of the throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LimitVerdict {
    /// A finding names the limit.
    Finding {
        /// The finding.
        finding: FindingKind,
        /// Where it is.
        resource: String,
        /// Who used the machine where it was full; none elsewhere.
        machine: Option<MachineCpu>,
    },
    /// CPU is used up, though no lighter load was measured that would prove that more is needed.
    Cpu {
        /// The service that uses up its CPU; `None` for the whole machine.
        service: Option<String>,
        /// Of the whole machine: the service that has more than half of what all services use; `None` where none has.
        mostly: Option<String>,
        /// The share of its CPU, or the machine's, that is in use: 0 to about 1.
        share: f64,
        /// Threads that wait for a processor at any moment, a mean; `None` where a service uses up its own limit, and where
        /// threads were not sampled.
        waiting: Option<f64>,
        /// Use of the machine; `None` if it was not sampled.
        machine: Option<MachineCpu>,
    },
    /// Something that is not CPU.
    NotCpu {
        /// Sign that there is a limit.
        sign: LimitSign,
        /// Where requests wait; `None` if neither spans nor the system tell.
        place: Option<WaitingPlace>,
    },
    /// More load would get more responses.
    BelowLimit {
        /// The lightest level.
        lighter: LoadPoint,
        /// The heaviest level.
        heavier: LoadPoint,
    },
    /// The load itself offers no more.
    AsksNoMore {
        /// Why it does not.
        because: Ask,
        /// The finding that costs most at this load; none without one.
        costs: Option<FindingKind>,
    },
    /// The evidence does not suffice.
    CannotTell {
        /// Why it does not.
        because: Unclear,
    },
}

/// Sign that there is a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LimitSign {
    /// Throughput does not follow the load.
    FlatThroughput {
        /// The lighter load.
        lighter: LoadPoint,
        /// The heavier load.
        heavier: LoadPoint,
    },
    /// Requests take longer because they queue.
    Queueing {
        /// The lightest load.
        lighter: LoadPoint,
        /// The load under which they queue.
        heavier: LoadPoint,
    },
    /// Fewer requests are completed than arrive.
    Behind {
        /// The load.
        at: LoadPoint,
    },
    /// Users without think time wait for their responses nearly all the time.
    UsersWait {
        /// The load.
        at: LoadPoint,
    },
}

/// Where requests spend most of their time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitingPlace {
    /// The service or dependency.
    pub name: String,
    /// Spending of the time; `None` if no spans were recorded.
    pub category: Option<TimeCategory>,
    /// Its share of the latency, 0 to 1; `None` if neither spans nor sockets show it.
    pub share: Option<f64>,
    /// CPU of the service, cores; `None` if it is not a service of the trial or was not sampled.
    pub cores: Option<f64>,
    /// Wait of most of the requests there, and the number of requests there; `None` if its threads were not sampled
    /// or did not show it.
    pub waits: Option<(OwnPart, f64)>,
}

/// Why a load offers no more than the system completes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ask {
    /// Users think, or arrivals are all completed.
    Room(Room),
    /// A single user waits for each response before it sends the next request.
    OneUser {
        /// The load.
        at: LoadPoint,
        /// Longest wait of the requests that took most time, if that is a notable part of it.
        wait: Option<TimePart>,
    },
}

/// Why a verdict is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Unclear {
    /// Narrows recorded no load.
    NoLoad,
    /// Only totals of the load are known, from the program that sent it.
    OnlyTotals,
    /// The heaviest part of the load was not steady.
    NotSteady,
    /// The load rose in steps that are too short to see what each used.
    ShortSteps {
        /// Sign that there is a limit.
        sign: LimitSign,
    },
    /// A finding makes the figures invalid.
    Invalid {
        /// The finding.
        finding: FindingKind,
    },
    /// Requests failed, and what failed requests cost is not known.
    Failures {
        /// Failed ÷ ended, 0 to 1.
        share: f64,
    },
    /// Other programs or the hypervisor had the CPU.
    Neighbours {
        /// Who used the machine.
        machine: MachineCpu,
    },
    /// Only one load was tried, and it shows no limit by itself.
    OneLevel {
        /// The load.
        at: LoadPoint,
        /// Its busiest service's share of its CPU, 0 to about 1; `None` if none was sampled.
        busiest: Option<f64>,
    },
}
