//! Figures and conclusions of experiments whose parameters are a little lower or higher.
//!
//! Recorded as far as conclusions are drawn from it, so that a table of dozens of runs can be made again from one small file.

use serde::{Deserialize, Serialize};

use crate::run::Environment;

/// The layout of a record. It changes when a field is renamed, removed or gets another meaning.
pub const FORMAT: &str = "narrows-sensitivity/1";

/// Experiments whose parameters were scaled, one at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// [`FORMAT`].
    pub format: String,
    /// By how much a parameter was lower or higher, as a share of its value: above 0, at most 1.
    pub change: f64,
    /// The experiments, in the order they were named.
    pub experiments: Vec<Examined>,
}

/// One experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examined {
    /// Its name.
    pub experiment: String,
    /// The factor on the durations of the load.
    pub time_scale: f64,
    /// The unchanged runs, spread over the others. Their differences are noise.
    pub as_is: Vec<Point>,
    /// The parameters that were scaled.
    pub parameters: Vec<ScaledParameter>,
    /// Other choices of the experiment, and why they were not scaled.
    pub left_out: Vec<LeftOut>,
}

/// A parameter that was scaled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScaledParameter {
    /// Its name.
    pub name: String,
    /// Its value without a change; see [`Scaled::value`].
    pub value: String,
    /// With the lower value.
    pub lower: Scaled,
    /// With the higher value.
    pub higher: Scaled,
}

/// An experiment with one parameter scaled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaled {
    /// The parameter's value; those of the variants in order, each once, where they differ.
    pub value: String,
    /// Figures of the run; none without a complete run.
    pub point: Option<Point>,
}

/// Something that was chosen and not scaled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// A parameter, or what an experiment says in words.
    pub what: String,
    /// Why, as a clause without a full stop.
    pub reason: String,
}

/// Figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When the run began.
    pub started_ns: i64,
    /// The machine.
    pub machine: Environment,
    /// The variants in order.
    pub variants: Vec<PointOfVariant>,
    /// The figures that can be compared between variants.
    pub figures: Vec<PointFigure>,
    /// The published conclusions in order; empty if the experiment names none, or in a record older than its conclusions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conclusions: Vec<PointConclusion>,
}

/// A published conclusion, judged by one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointConclusion {
    /// The conclusion, in a sentence.
    pub claim: String,
    /// True if the run shows the same; `None` if the run did not measure it.
    pub comes_back: Option<bool>,
    /// The measurement that contradicts it, in words; empty if it comes back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instead: String,
}

/// Figures of a variant in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointOfVariant {
    /// The variant.
    pub variant: String,
    /// Its bottleneck without figures, such as `throttling at docstore`.
    pub bottleneck: String,
}

/// One figure over the variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointFigure {
    /// Quantity, with the unit of a metric.
    pub name: String,
    /// One for each variant in order, in the figure's unit; `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
    /// Whether the value was made to come out as published, for each variant.
    pub fitted: Vec<bool>,
    /// The position of the variant that each one's ratio is to.
    pub bases: Vec<usize>,
}

impl PointFigure {
    /// A variant's value ÷ that of its base; `None` where one of them is missing or not above 0.
    pub fn ratio_to_base(&self, variant: usize) -> Option<f64> {
        let value =
            |at: usize| self.values.get(at).copied().flatten().filter(|value| value.is_finite() && *value > 0.0);
        Some(value(variant)? / value(*self.bases.get(variant)?)?)
    }
}

impl Point {
    /// The figure of that name.
    pub fn figure(&self, name: &str) -> Option<&PointFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_needs_two_values_above_zero() {
        let values = vec![Some(4.0), Some(6.0), None, Some(0.0), Some(f64::NAN), Some(3.0), Some(3.0)];
        let bases = vec![0, 0, 0, 0, 0, 1, 3];
        let figure = PointFigure { name: "throughput".to_owned(), values, fitted: Vec::new(), bases };
        let ratios: Vec<Option<f64>> = (0..8).map(|variant| figure.ratio_to_base(variant)).collect();
        assert_eq!(ratios, [Some(1.0), Some(1.5), None, None, None, Some(0.5), None, None]);
    }
}
