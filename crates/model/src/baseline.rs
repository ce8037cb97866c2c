//! Baseline of a run, small enough to keep in a repository, and a later run beside it.

use serde::{Deserialize, Serialize};

use crate::caveat::ComparisonCaveat;
use crate::comparison::Interval;
use crate::diff::Fate;
use crate::proof::Quantity;

/// The layout of a baseline. It changes when a field is renamed, removed or gets another meaning.
pub const FORMAT: &str = "narrows-baseline/1";

/// The figures of a run to compare later runs with. Lists are sorted and values rounded, so that a renewed file differs
/// only where the system does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// [`FORMAT`].
    pub format: String,
    /// The experiment's name.
    pub experiment: String,
    /// Of the experiment's text without comments and of the factor on its durations: sixteen hexadecimal digits.
    pub experiment_digest: String,
    /// Where it was measured.
    pub machine: Machine,
    /// The variants, by name.
    pub variants: Vec<VariantBaseline>,
}

/// Properties of a machine that decide whether figures can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's own name for itself.
    pub cpu_model: String,
    /// Logical processors.
    pub cores: u32,
    /// Physical memory, rounded to whole gibibytes.
    pub memory_gib: u64,
}

/// One variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantBaseline {
    /// Its name.
    pub variant: String,
    /// Trials that were measured.
    pub trials: u32,
    /// Figures of the requests of the load, in the order of [`Quantity::ALL`].
    pub figures: Vec<LoadFigure>,
    /// Requests that ended.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// The operations of its services, by service and name.
    pub operations: Vec<OperationFigure>,
    /// Findings, by kind and place.
    pub findings: Vec<KnownFinding>,
    /// Where the time of requests goes, by service.
    pub critical_path: Vec<ServiceTime>,
}

/// A quantity of the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadFigure {
    /// Which.
    pub quantity: Quantity,
    /// Geometric mean over the trials: nanoseconds, or responses per second.
    pub value: f64,
    /// Standard deviation of the logarithm between trials; `None` if there was one trial.
    pub spread: Option<f64>,
}

/// The mean duration of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationFigure {
    /// The service that responds.
    pub service: String,
    /// The operation's name.
    pub operation: String,
    /// Geometric mean over the trials, nanoseconds.
    pub mean_ns: f64,
    /// See [`LoadFigure::spread`].
    pub spread: Option<f64>,
    /// Trials in which it was seen.
    pub trials: u32,
}

/// A finding, by what identifies it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFinding {
    /// Its id, such as `n-plus-one`.
    pub kind: String,
    /// The service or store it is about.
    pub resource: String,
    /// The operation it is about; `None` if it is about a service.
    pub operation: Option<String>,
}

/// A service's part of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTime {
    /// The service, or what is called that sends no spans.
    pub service: String,
    /// Of the latency of requests, 0 to 1.
    pub share: f64,
    /// Of each request, a mean, nanoseconds.
    pub mean_ns: f64,
}

/// A run beside a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The experiment's name.
    pub experiment: String,
    /// The run that was checked.
    pub run: String,
    /// The smallest relative change that fails, above 0.
    pub margin: f64,
    /// How often, at most, any figure fails although nothing changed: 0.05.
    pub error_rate: f64,
    /// Each variant of the baseline.
    pub variants: Vec<VariantCheck>,
    /// Limits of the check.
    pub caveats: Vec<ComparisonCaveat>,
    /// Meaning in one sentence.
    pub sentence: String,
}

impl Check {
    /// Whether a figure is worse.
    pub fn is_worse(&self) -> bool {
        self.variants.iter().any(|variant| variant.worse().next().is_some())
    }
}

/// A variant beside the baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantCheck {
    /// Its name.
    pub variant: String,
    /// Trials, of the baseline and now.
    pub trials: (u32, u32),
    /// Figures of the load, then the mean duration of each operation.
    pub figures: Vec<FigureCheck>,
    /// Findings that appeared or vanished.
    pub findings: Vec<FindingCheck>,
    /// The services, the largest change of their part of a request first.
    pub services: Vec<ServiceCheck>,
}

impl VariantCheck {
    /// The figures that are worse.
    pub fn worse(&self) -> impl Iterator<Item = &FigureCheck> {
        self.figures.iter().filter(|figure| figure.grade == Grade::Worse)
    }
}

/// One figure beside the baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureCheck {
    /// Quantity.
    pub measure: Measure,
    /// As it was: nanoseconds, responses per second, or failed ÷ ended requests.
    pub before: f64,
    /// As it is.
    pub after: f64,
    /// New ÷ old − 1 with its interval; for failed requests the difference of the shares. None without an interval.
    pub interval: Option<Interval>,
    /// Judgement.
    pub grade: Grade,
}

impl FigureCheck {
    /// New ÷ old − 1; not finite when it was 0.
    pub fn ratio(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// Quantity of a figure of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Measure {
    /// A quantity of all requests of the load.
    Load {
        /// Which.
        quantity: Quantity,
    },
    /// Failed requests ÷ all that ended.
    Errors,
    /// The mean duration of an operation.
    Operation {
        /// The service that responds.
        service: String,
        /// The operation's name.
        operation: String,
    },
}

/// Judgement of a figure beside the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Better by more than noise and the margin.
    Better,
    /// Worse by more than noise and the margin.
    Worse,
    /// No such change is shown.
    Same,
    /// Noise could hide a change that matters.
    Unclear,
}

/// A finding that is new, or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingCheck {
    /// Appeared or vanished.
    pub fate: Fate,
    /// Which.
    pub finding: KnownFinding,
    /// Its title; none of one that vanished, which the baseline knows by its kind and place only.
    pub title: Option<String>,
}

/// A service's part of requests on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceCheck {
    /// The service.
    pub service: String,
    /// Of each request before, a mean, nanoseconds; 0 when it had no part.
    pub before_ns: f64,
    /// The same now.
    pub after_ns: f64,
}
