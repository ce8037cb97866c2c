//! Evidence of `offered-load-limited`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;
use super::variant::VariantFigures;

/// A load that offers less than the system can carry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OfferedLoadLimited {
    /// How much less it offers.
    pub room: Room,
    /// Conclusion that it does not allow.
    pub hidden: Hidden,
}

/// How much less a load offers than the system can carry.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Room {
    /// Whole of the share.
    pub of: RoomOf,
    /// The least of all windows, 0 to 1; slightly more where more completes in a window than arrives in it.
    pub share: f64,
}

/// Sign that a load leaves room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoomOf {
    /// Users of a closed load that think at any time.
    #[default]
    Thinking,
    /// Arrivals of an open load that are completed.
    Completed,
}

/// Conclusion that a load which leaves room does not allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum Hidden {
    /// The capacity, in a trial whose load rises in steps.
    Capacity(Steps),
    /// Changes of other variants beside the first.
    Others {
        /// The first variant.
        first: VariantFigures,
        /// The names of the others.
        others: Vec<String>,
    },
    /// Changes of a variant.
    Variant(Pair),
}

impl Default for Hidden {
    fn default() -> Self {
        Self::Capacity(Steps::default())
    }
}

/// Steps of a load that meet no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Steps {
    /// The step with the least load.
    pub lightest: Step,
    /// The step with the most.
    pub heaviest: Step,
    /// The service that uses most of its CPU in the heaviest step.
    pub busiest_service: String,
    /// How much of the CPU available to it that is, 0 to 1.
    pub busiest_share: f64,
}

/// One step of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    /// Offered load.
    pub load: LoadLevel,
    /// Requests that succeed per second.
    pub rate: f64,
    /// Mean time of a request from its send, nanoseconds.
    pub service_ns: f64,
}

/// A variant beside the first, with the same throughput.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pair {
    /// The first variant.
    pub first: VariantFigures,
    /// The other one.
    pub other: VariantFigures,
    /// Whether their mean latency differs by more than noise.
    pub latency_differs: bool,
    /// Whether their CPU for each request differs.
    pub cpu_differs: bool,
}
