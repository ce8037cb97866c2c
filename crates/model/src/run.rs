//! A run, its trials and their windows, and the machine it all happened on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::caveat::TrialCaveat;
use crate::load::LoadProgram;

/// One execution of an experiment: what the single row of the run file's `run` table holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Sixteen lower-case hexadecimal digits, unique to this run.
    pub id: String,
    /// The experiment's name, from its file.
    pub experiment: String,
    /// The version of Narrows that wrote the file.
    pub narrows_version: String,
    /// When the run began.
    pub started_ns: i64,
    /// When the run ended; none while it lasts or when it was cut short.
    pub ended_ns: Option<i64>,
    /// How far the run came.
    pub state: RunState,
    /// The seed of everything random in the run.
    pub seed: u64,
    /// The factor on the durations of the load; 1 means as in the file.
    pub time_scale: f64,
    /// Repetitions of each variant, 1 or more.
    pub repetitions: u32,
    /// The experiment file's text, without secrets.
    pub experiment_source: String,
    /// The machine.
    pub environment: Environment,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Its process is at work on it.
    Running,
    /// Every trial is done.
    Complete,
    /// It was cut short, by a signal or by its process's death; it can be resumed.
    Interrupted,
    /// A trial failed; it can be resumed.
    Failed,
}

/// One variant of the system, once under the experiment's load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The trial's number in its run, from 1.
    pub id: i64,
    /// The variant's name.
    pub variant: String,
    /// The repetition, from 1.
    pub repetition: u32,
    /// How far the trial came.
    pub state: TrialState,
    /// When its first component was started.
    pub started_ns: Option<i64>,
    /// When its last component had stopped.
    pub ended_ns: Option<i64>,
    /// The parameters as this variant binds them, without secrets.
    pub parameters: BTreeMap<String, String>,
    /// Whether the generator's own numbers can be trusted.
    pub validity: Validity,
    /// Fault of a trial that failed.
    pub error: Option<String>,
    /// Limits of the reading of this trial: a cap that could not be set, a CPU that was stolen.
    pub caveats: Vec<TrialCaveat>,
    /// The program that sent the load; `None` if Narrows did.
    #[serde(default)]
    pub load_program: Option<LoadProgram>,
}

impl Trial {
    /// True if the load was somebody else's: it was collected or imported, and cannot be repeated.
    pub fn is_observed(&self) -> bool {
        self.caveats.iter().any(|caveat| matches!(caveat, TrialCaveat::RequestsOfOthers { .. }))
    }

    /// `variant` or, from the second repetition on, `variant#2`: how commands address a trial.
    pub fn label(&self) -> String {
        if self.repetition > 1 { format!("{}#{}", self.variant, self.repetition) } else { self.variant.clone() }
    }
}

/// How far a trial came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// Not begun.
    Planned,
    /// At work.
    Running,
    /// Ended as planned; its rows are whole.
    Done,
    /// Cut short; its rows are partial.
    Interrupted,
    /// Could not go on; `error` holds the reason.
    Failed,
}

/// An interval of a trial under one load, in which numbers may be averaged if it is steady.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Position in the trial, from 0.
    pub index: u32,
    /// Use of the numbers in it.
    pub kind: WindowKind,
    /// For people: `warm-up`, `8 users`, `1 → 40 users`.
    pub label: String,
    /// First instant.
    pub start_ns: i64,
    /// First instant after.
    pub end_ns: i64,
    /// Time of the last response to the load, `end_ns` or later, if the load ended with this window.
    #[serde(default)]
    pub drained_ns: Option<i64>,
    /// Virtual users at the end of the window; 0 in an open model, whose users follow from its rate.
    pub vus: u32,
    /// Arrivals per second at the end of the window, of all open models together; `None` if there is none.
    pub rate: Option<f64>,
}

/// Use of the numbers of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowKind {
    /// Not counted.
    Warmup,
    /// Counted: the load is constant.
    Steady,
    /// Counted, but the load changes in it, so a mean over it mixes load levels.
    Ramp,
}

/// The generator's judgement on its own measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Validity {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, when it is not `valid`: whole sentences.
    pub reasons: Vec<String>,
}

/// Whether measurements can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing speaks against the numbers.
    #[default]
    Valid,
    /// Read them with the reasons in mind.
    Doubtful,
    /// The generator, not the system, shaped the numbers.
    Invalid,
}

/// The machine a run happened on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Environment {
    /// Kernel name and release.
    pub kernel: String,
    /// The processor's own name for itself.
    pub cpu_model: String,
    /// Logical processors this process may use.
    pub cores: u32,
    /// Physical memory.
    pub memory_bytes: u64,
}

/// End of the name of the service that a service's sidecars are recorded under. Experiments cannot name a service so.
const SIDECAR: &str = ".sidecar";

/// The name that the sidecars of a service are recorded under.
pub fn sidecar_name(service: &str) -> String {
    format!("{service}{SIDECAR}")
}

/// The service whose sidecars are recorded under this name; `None` if it is no sidecars' name.
pub fn sidecar_of(name: &str) -> Option<&str> {
    name.strip_suffix(SIDECAR)
}

/// One replica of one service of a trial, as it was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceInstance {
    /// The service's name in the experiment file.
    pub service: String,
    /// The replica, from 0.
    pub replica: u32,
    /// Its root process.
    pub pid: u32,
    /// The port it was given.
    pub port: u16,
    /// The command as it was run.
    pub command: Vec<String>,
    /// The CPU cap that is in force, in cores; `None` if it is not capped.
    pub cpu_limit_cores: Option<f64>,
    /// The memory cap that is in force; `None` if it is not capped.
    pub memory_limit_bytes: Option<u64>,
    /// Ports at which sidecars stand in for it: calls to these are calls to it.
    pub stand_in_ports: Vec<u16>,
    /// Where it runs.
    #[serde(default)]
    pub machine: Machine,
}

/// On which machine a replica runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Machine {
    /// On the one that measured: it shares that machine's processors.
    #[default]
    Here,
    /// Somewhere: it is known from what it reports itself.
    Unknown,
}

impl ServiceInstance {
    /// A replica of this machine that Narrows did not start: a process without a known port, command or cap.
    pub fn watched(service: &str, replica: u32, pid: u32) -> Self {
        Self {
            service: service.to_owned(),
            replica,
            pid,
            port: 0,
            command: Vec::new(),
            cpu_limit_cores: None,
            memory_limit_bytes: None,
            stand_in_ports: Vec::new(),
            machine: Machine::Here,
        }
    }

    /// True if Narrows started it, and not only watched it or read its figures.
    pub fn is_started(&self) -> bool {
        self.port != 0
    }

    /// Whether who calls this port calls the replica.
    pub fn is_reached_at(&self, port: u16) -> bool {
        self.port == port || self.stand_in_ports.contains(&port)
    }
}
