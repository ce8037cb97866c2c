//! What `not-steady` rests on.

use serde::{Deserialize, Serialize};

/// A window that is called steady and is not, the worst of the trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NotSteady {
    /// The window, as people call it.
    pub window: String,
    /// What is not steady in it, each quantity once, the one that the finding is about first.
    pub changes: Vec<Change>,
    /// Other windows that are not steady, less strongly.
    pub other_windows: Vec<String>,
    /// Arrivals per second that the load offers in the window; none in closed models.
    pub offered: Option<f64>,
    /// Requests per second that succeed in it.
    pub completed: f64,
    /// Whether the latency grows because the load offers more than is completed.
    pub is_beyond_capacity: bool,
    /// What outside the system explains that change; none if nothing does.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
}

impl NotSteady {
    /// The change that the finding is about; none without any.
    pub fn worst(&self) -> Option<&Change> {
        self.changes.first()
    }
}

/// Something outside the system that goes along with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Who disturbs.
    pub source: DisturbanceSource,
    /// Its smallest and its largest mean over a tenth of the window: a share of the machine's CPU, 0 to 1, or, of the
    /// generator, nanoseconds by which requests were sent late.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// Rank correlation of the quantity with it over the tenths of the window, 0 to 1; above 0 if more of it makes the
    /// quantity worse.
    pub correlation: f64,
    /// The part of the window with little of it; none if the figures are not steady there either, or too little is left.
    pub calm: Option<Calm>,
}

/// The part of a window with little disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// How long it is, seconds.
    pub seconds: usize,
    /// Mean of the quantity there, in its unit.
    pub value: f64,
    /// Mean of the quantity in the rest, in its unit.
    pub disturbed: f64,
}

/// What can disturb a measurement from outside the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisturbanceSource {
    /// The hypervisor takes processors from the machine (steal).
    Hypervisor,
    /// Programs that are not part of the run.
    OtherPrograms,
    /// The load generator sends late.
    Generator,
}

/// A quantity that is not steady.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The quantity.
    pub quantity: Quantity,
    /// In which way.
    pub unrest: Unrest,
    /// How large the change is, as a share of the quantity, from 0.
    pub share: f64,
}

/// What can be steady or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Requests that succeed per second.
    Throughput,
    /// Mean latency, nanoseconds.
    Latency,
}

/// In which way a window is not steady. Values are in the quantity's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "kebab-case")]
pub enum Unrest {
    /// It goes one way.
    Trend {
        /// Mean of the first half.
        first: f64,
        /// Mean of the second half.
        second: f64,
        /// Standard deviations of Mann's and Kendall's test, below 0 for a fall.
        z: f64,
    },
    /// Its start differs from the rest.
    Start {
        /// Mean of the start.
        start: f64,
        /// Mean of the rest.
        rest: f64,
        /// How long the start is, seconds.
        seconds: usize,
    },
    /// It goes up and down.
    Wave {
        /// How long one wave is, seconds.
        seconds: usize,
        /// Standard deviation ÷ mean, from 0.
        spread: f64,
    },
}
