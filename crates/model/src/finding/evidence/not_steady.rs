//! Evidence of `not-steady`.

use serde::{Deserialize, Serialize};

/// A window that is called steady and is not, the worst of the trial; or a service that is not warm yet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NotSteady {
    /// The window, as people call it.
    pub window: String,
    /// The changes in it, one per quantity; the one that the finding is about comes first.
    pub changes: Vec<Change>,
    /// Other windows that are not steady, less strongly.
    pub other_windows: Vec<String>,
    /// Arrivals per second that the load offers in the window; none in closed models.
    pub offered: Option<f64>,
    /// Requests per second that succeed in it.
    pub completed: f64,
    /// Whether the latency grows because the load offers more than is completed.
    pub is_beyond_capacity: bool,
    /// The disturbance outside the system that explains that change; `None` if there is none.
    #[serde(default)]
    pub disturbance: Option<Disturbance>,
    /// A service that still becomes cheaper over the levels, if the finding is about that and not about a window.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
}

impl NotSteady {
    /// The change that the finding is about; `None` if there is none.
    pub fn worst(&self) -> Option<&Change> {
        self.changes.first()
    }
}

/// A service whose CPU per request falls over the levels of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WarmUp {
    /// The service.
    pub service: String,
    /// The levels, in order of time.
    pub levels: Vec<WarmLevel>,
    /// Label of the first level from which CPU per request stays the same; `None` if it falls to the end.
    pub warm_from: Option<String>,
    /// From the first level to that one, or to the last, nanoseconds.
    pub length_ns: i64,
}

/// CPU per request under one level of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WarmLevel {
    /// Label of the level.
    pub label: String,
    /// CPU per successful response, nanoseconds.
    pub cost_ns: f64,
}

impl WarmUp {
    /// CPU per request of the first level, and of the last, nanoseconds.
    pub fn ends(&self) -> Option<(f64, f64)> {
        Some((self.levels.first()?.cost_ns, self.levels.last()?.cost_ns))
    }

    /// Share by which CPU per request falls from the first level to the last, 0 to 1.
    pub fn fall(&self) -> f64 {
        self.ends().filter(|(first, _)| *first > 0.0).map_or(0.0, |(first, last)| (1.0 - last / first).clamp(0.0, 1.0))
    }
}

/// A disturbance outside the system that coincides with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Source of the disturbance.
    pub source: DisturbanceSource,
    /// Smallest mean of the disturbance over a tenth of the window: a share of the machine's CPU, 0 to 1; for the
    /// generator, nanoseconds by which requests were sent late.
    pub least: f64,
    /// Largest such mean; see `least`.
    pub most: f64,
    /// Rank correlation of the quantity with the disturbance over the tenths of the window, 0 to 1; above 0 if more
    /// disturbance makes the quantity worse.
    pub correlation: f64,
    /// The calm part of the window; `None` if the figures are not steady there either, or it is too short.
    pub calm: Option<Calm>,
}

/// The part of a window with little disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// Length in seconds.
    pub seconds: usize,
    /// Mean of the quantity in the calm part, in its unit.
    pub value: f64,
    /// Mean of the quantity in the rest of the window, in its unit.
    pub disturbed: f64,
}

/// A source outside the system that can disturb a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisturbanceSource {
    /// CPU taken from the machine by the hypervisor (steal).
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

/// Quantity that can be steady or not.
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
