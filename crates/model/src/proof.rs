//! The verdict on whether one variant is faster than another, with its evidence.

use serde::{Deserialize, Serialize};

use crate::caveat::ComparisonCaveat;
use crate::comparison::Interval;
use crate::units;

/// Declares the quantities, which is the only list of them.
macro_rules! quantities {
    ($($(#[$doc:meta])* $kind:ident => $name:literal, $words:literal;)*) => {
        /// A figure of a trial that two variants are compared by.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Quantity {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl Quantity {
            /// Every quantity, in the order of tables.
            pub const ALL: &[Quantity] = &[$(Quantity::$kind,)*];

            /// Its name on the command line and in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Quantity::$kind => $name,)*
                }
            }

            /// Its name in a sentence.
            pub fn words(self) -> &'static str {
                match self {
                    $(Quantity::$kind => $words,)*
                }
            }
        }
    };
}

quantities! {
    /// Successful responses per second.
    Rate => "rate", "throughput";
    /// Mean latency from intended send, nanoseconds.
    Mean => "mean", "mean latency";
    /// Median latency, nanoseconds.
    P50 => "p50", "median latency";
    /// 95 % latency, nanoseconds.
    P95 => "p95", "95 % latency";
    /// 99 % latency, nanoseconds.
    P99 => "p99", "99 % latency";
    /// CPU of all services for each successful request, nanoseconds.
    Cpu => "cpu", "CPU per request";
}

impl Quantity {
    /// The quantity of this name; `None` if the name is unknown.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|quantity| quantity.name() == name)
    }

    /// Whether a rise is an improvement: of throughput only.
    pub fn is_better_higher(self) -> bool {
        self == Quantity::Rate
    }

    /// A value of it, as people read it.
    pub fn shown(self, value: f64) -> String {
        match self {
            Quantity::Rate => units::rate(value),
            _ => units::duration(value),
        }
    }
}

/// Two variants compared trial by trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Reference: a variant, perhaps with its run.
    pub before: String,
    /// Subject of the comparison.
    pub after: String,
    /// The quantity that the verdict is about.
    pub by: Quantity,
    /// The smallest relative difference that matters, above 0.
    pub margin: f64,
    /// How often, at most, a difference is claimed where there is none: 0.05.
    pub error_rate: f64,
    /// Result.
    pub verdict: Ruling,
    /// How the two were measured.
    pub design: Design,
    /// All quantities that were measured on both sides, in the order of [`Quantity::ALL`].
    pub quantities: Vec<QuantityChange>,
    /// Failed ÷ ended requests over all trials, before and after, 0 to 1.
    pub errors: (f64, f64),
    /// Trials of each variant that would be needed to tell; `None` if the verdict is clear, and when more than
    /// [`REPEATS_MAX`] would be.
    pub repeats_wanted: Option<u32>,
    /// Limits of the comparison.
    pub caveats: Vec<ComparisonCaveat>,
    /// The verdict in a sentence.
    pub sentence: String,
}

/// Trials of each variant in a run, at most.
pub const REPEATS_MAX: u32 = 1000;

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// The second variant is better by more than noise explains.
    Faster,
    /// The second variant is worse by more than noise explains.
    Slower,
    /// The whole interval lies within the margin.
    NoDifference,
    /// The interval holds both no difference and one that matters.
    CannotTell,
}

impl Ruling {
    /// Every ruling.
    pub const ALL: [Ruling; 4] = [Ruling::Faster, Ruling::Slower, Ruling::NoDifference, Ruling::CannotTell];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Ruling::Faster => "faster",
            Ruling::Slower => "slower",
            Ruling::NoDifference => "no-difference",
            Ruling::CannotTell => "cannot-tell",
        }
    }

    /// Whether more trials could change nothing that matters.
    pub fn is_clear(self) -> bool {
        self != Ruling::CannotTell
    }
}

/// How two variants were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// In what order.
    pub order: Order,
    /// Trials that count, before and after.
    pub trials: (u32, u32),
    /// Trials of each that were planned at most, when the comparison could end early; `None` if their number was fixed.
    pub planned: Option<u32>,
    /// Whether arrivals were scheduled, or sent by users who wait for responses.
    pub load: LoadShape,
}

/// In what order the trials of two variants were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Order {
    /// In pairs, in random order.
    Randomised {
        /// Seed of the order.
        seed: u64,
    },
    /// In pairs, always in the same order.
    InTurn,
    /// One after the other, or in two runs.
    Apart,
}

/// Shape of the load of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadShape {
    /// Arrivals at a given rate, the same for both.
    Open,
    /// Users who wait for responses: the faster variant gets more requests.
    Closed,
}

/// One quantity on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantityChange {
    /// Which.
    pub quantity: Quantity,
    /// Geometric mean over the trials before; nanoseconds, or responses per second.
    pub before: f64,
    /// The same after.
    pub after: f64,
    /// New ÷ old − 1.
    pub ratio: f64,
    /// Its interval; `None` if the trials are too few for one.
    pub interval: Option<Interval>,
}

impl QuantityChange {
    /// Whether the interval leaves out no change at all.
    pub fn is_change(&self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
    }

    /// Whether it moved in the good direction.
    pub fn is_better(&self) -> bool {
        (self.ratio > 0.0) == self.quantity.is_better_higher()
    }
}
