//! Limits of a comparison.

use serde::{Deserialize, Serialize};

use crate::baseline::Machine;

/// Limit of a comparison of two variants, of two runs, or of a run with a baseline. Sides are named as in the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ComparisonCaveat {
    /// Sides with one trial, which does not show how far trials lie apart.
    MeasuredOnce {
        /// The sides.
        sides: Vec<String>,
        /// Standard deviation between trials that is assumed instead, as a share of the value, above 0.
        deviation: f64,
        /// True if the load of a side was somebody else's, so that it cannot be measured again.
        #[serde(default)]
        is_observed: bool,
    },
    /// A side without a finished trial.
    NoFinishedTrial {
        /// The side.
        side: String,
    },
    /// The two are of different runs.
    DifferentRuns,
    /// The two ran on different machines.
    DifferentMachines,
    /// The two are of different experiments.
    DifferentExperiments {
        /// Experiment of the first side.
        before: String,
        /// Experiment of the second side.
        after: String,
    },
    /// The two were always measured in the same order.
    MeasuredInTurn {
        /// First side.
        before: String,
        /// Second side.
        after: String,
    },
    /// The trials of the two were not interleaved.
    NotInterleaved {
        /// First side.
        before: String,
        /// Second side.
        after: String,
    },
    /// The load is closed, so each side set its own rate.
    ClosedLoad {
        /// First side and its rate, completed requests per second.
        before: (String, f64),
        /// Second side and its rate.
        after: (String, f64),
    },
    /// Closed loads with different numbers of users.
    DifferentUsers {
        /// Users of the first side.
        before: u32,
        /// Users of the second side.
        after: u32,
    },
    /// The sides have different shares of failed requests, which have no latency.
    DifferentErrors {
        /// First side and its share of failed requests, 0 to 1.
        before: (String, f64),
        /// Second side and its share.
        after: (String, f64),
    },
    /// Trials with doubtful figures.
    DoubtfulTrials {
        /// Trials, at least one.
        trials: Vec<String>,
        /// Reason of the first.
        reason: String,
    },
    /// The baseline is of another experiment.
    BaselineOfOtherExperiment,
    /// The baseline is of another machine.
    BaselineOfOtherMachine {
        /// Machine of the baseline.
        before: Machine,
        /// Machine of the run.
        after: Machine,
    },
    /// Variants that the baseline does not contain.
    NotInBaseline {
        /// The variants.
        variants: Vec<String>,
    },
    /// Operations of the baseline that the run has too rarely to check.
    TooRareNow {
        /// The operations.
        operations: Vec<String>,
    },
    /// Clocks that differ on a side. The ranking of services is corrected for it.
    ClocksDiffer {
        /// The side.
        side: String,
        /// The clocks, those furthest apart first; at least one.
        clocks: Vec<Skew>,
    },
}

/// Difference of the clocks of a caller and a callee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// Time by which the callee's clock is ahead of the caller's, nanoseconds; below 0 if it is behind.
    pub ahead_ns: f64,
}
