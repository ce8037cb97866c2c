//! How many users there are, or how often iterations begin, when. k6's words.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many virtual users, when. k6's words.
#[derive(Debug, Clone, PartialEq)]
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
    /// An exact number of iterations for each of a fixed number of users.
    PerVuIterations {
        /// Users, at least 1.
        vus: u32,
        /// Iterations of each user.
        iterations: u64,
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
    /// An exact number of iterations shared by a fixed number of users.
    SharedIterations {
        /// Users, at least 1.
        vus: u32,
        /// Iterations in total.
        iterations: u64,
        /// When to stop even if iterations are left.
        max_duration: Option<Duration>,
    },
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
}

/// A part of a `ramping-arrival-rate` load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStage {
    /// How long it takes.
    pub duration: Duration,
    /// Arrivals per second at its end.
    pub target: f64,
    /// How the rate gets there.
    pub shape: StageShape,
}

/// A part of a `ramping-vus` load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// How long it takes.
    pub duration: Duration,
    /// Users at its end.
    pub target: u32,
    /// How the number of users gets there.
    pub shape: StageShape,
}

/// How the number of users moves to a stage's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageShape {
    /// Evenly over the stage.
    Linear,
    /// At once, then it stays: a step.
    Step,
}
