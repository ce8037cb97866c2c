//! How many users there are, or how often iterations begin, when. k6's words.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many virtual users, when. k6's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LoadModel {
    /// A fixed number of users for a fixed time.
    ConstantVus {
        /// Users, at least 1.
        vus: u32,
        /// For how long.
        duration: Duration,
    },
    /// A number of users that follows stages.
    RampingVus {
        /// Users at the beginning.
        start_vus: u32,
        /// The stages, in order.
        stages: Vec<Stage>,
    },
    /// An exact number of iterations by a fixed number of users.
    Iterations {
        /// Users, at least 1.
        vus: u32,
        /// Iterations to begin.
        iterations: Iterations,
        /// When to stop even if iterations are left.
        max_duration: Option<Duration>,
    },
    /// Iterations that begin at a fixed rate, however many are under way: an open model.
    ConstantArrivalRate {
        /// Iterations to begin each second, above 0.
        rate: f64,
        /// For how long.
        duration: Duration,
        /// The most users (and so connections) at a time. An arrival that finds all busy waits for one and counts as
        /// late.
        vus_max: u32,
        /// How arrivals are spaced.
        arrivals: Arrivals,
    },
    /// Iterations that begin at a rate that follows stages: an open model.
    RampingArrivalRate {
        /// The rate at the beginning, per second.
        start_rate: f64,
        /// The stages, in order.
        stages: Vec<RateStage>,
        /// See [`LoadModel::ConstantArrivalRate`].
        vus_max: u32,
        /// How arrivals are spaced.
        arrivals: Arrivals,
    },
}

/// Number of iterations of a load that they limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Iterations {
    /// Iterations of all users together: a fast user does more of them than a slow one.
    Shared(u64),
    /// Iterations of each user: a fast user is done sooner than a slow one.
    PerVu(u64),
}

impl Iterations {
    /// Iterations of all users together.
    pub fn total(self, vus: u32) -> u64 {
        match self {
            Self::Shared(all) => all,
            Self::PerVu(each) => each.saturating_mul(u64::from(vus)),
        }
    }
}

/// The limits of a load model, for whoever only needs to know how much it can be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLimits {
    /// The most users at a time.
    pub vus_max: u32,
    /// Of an open model the highest rate of arrivals, per second; `None` for a closed one.
    pub rate_max: Option<f64>,
    /// Of an open model how arrivals are spaced.
    pub arrivals: Option<Arrivals>,
    /// Iterations of all users together; `None` if only time ends it.
    pub iterations: Option<u64>,
    /// How long it lasts; `None` if only iterations end it.
    pub duration: Option<Duration>,
}

impl LoadModel {
    /// The limits of this model.
    pub fn limits(&self) -> LoadLimits {
        let closed = |vus_max| LoadLimits { vus_max, rate_max: None, arrivals: None, iterations: None, duration: None };
        let open = |vus_max, rate_max, arrivals| LoadLimits {
            rate_max: Some(rate_max),
            arrivals: Some(arrivals),
            ..closed(vus_max)
        };
        match self {
            Self::ConstantVus { vus, duration } => LoadLimits { duration: Some(*duration), ..closed(*vus) },
            Self::RampingVus { start_vus, stages } => LoadLimits {
                duration: Some(stages.iter().map(|stage| stage.duration).sum()),
                ..closed(stages.iter().map(|stage| stage.target).fold(*start_vus, u32::max))
            },
            Self::Iterations { vus, iterations, max_duration } => {
                LoadLimits { iterations: Some(iterations.total(*vus)), duration: *max_duration, ..closed(*vus) }
            }
            Self::ConstantArrivalRate { rate, duration, vus_max, arrivals } => {
                LoadLimits { duration: Some(*duration), ..open(*vus_max, *rate, *arrivals) }
            }
            Self::RampingArrivalRate { start_rate, stages, vus_max, arrivals } => LoadLimits {
                duration: Some(stages.iter().map(|stage| stage.duration).sum()),
                ..open(*vus_max, stages.iter().map(|stage| stage.target).fold(*start_rate, f64::max), *arrivals)
            },
        }
    }

    /// Whether iterations begin at a rate, however many are under way.
    pub fn is_open(&self) -> bool {
        self.limits().rate_max.is_some()
    }
}

/// How the arrivals of an open model are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Uniform,
    /// At random, as those of many independent clients: a Poisson process.
    Poisson,
    /// So many at the same moment, at least 1, then none until the next burst: clients whose timers tick together.
    Bursts(u32),
    /// Those of so many nanoseconds, at least 1, at the beginning of that time: the same clients at any rate.
    BurstsEvery(u64),
}

/// A part of a `ramping-arrival-rate` load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateStage {
    /// How long it takes.
    pub duration: Duration,
    /// Arrivals per second at its end.
    pub target: f64,
    /// How the rate gets there.
    pub shape: StageShape,
}

/// A part of a `ramping-vus` load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// How long it takes.
    pub duration: Duration,
    /// Users at its end.
    pub target: u32,
    /// How the number of users gets there.
    pub shape: StageShape,
}

/// How the number of users moves to a stage's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageShape {
    /// Evenly over the stage.
    Linear,
    /// At once, then it stays: a step.
    Step,
}
