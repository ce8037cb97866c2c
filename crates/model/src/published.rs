//! Figures that someone published about the same experiment elsewhere, to stand beside the measured ones.
//!
//! They come from the experiment file and are never mixed with what was measured: a report marks which is which.

use serde::{Deserialize, Serialize};

use crate::finding::FindingKind;
use crate::prices::Prices;

/// Notes of an experiment file for readers of its results.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Parameters that have a reason, in the order of the file.
    pub parameters: Vec<ParameterNote>,
    /// Published figures.
    pub published: Option<Published>,
    /// Prices of the resources that a variant needs.
    #[serde(default)]
    pub prices: Option<Prices>,
}

/// A parameter and why it has its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterNote {
    /// Its name.
    pub name: String,
    /// Its value before any variant.
    pub value: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// Figures published elsewhere.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Published {
    /// Where: title and publisher, and the address if there is one.
    pub source: String,
    /// The service whose operation [`Measure`]s of an operation are about.
    pub service: Option<String>,
    /// That operation's name; without it, durations and what was completed are those of all requests of the load.
    pub operation: Option<String>,
    /// Conclusion of those who published them, in a few sentences; may be empty.
    #[serde(default)]
    pub found: String,
    /// Variant, and the variant that its ratios are to; those of others are to the first variant.
    #[serde(default)]
    pub ratio_to: Vec<(String, String)>,
    /// The figures in the order of the file.
    pub figures: Vec<PublishedFigure>,
    /// Conclusions of those who published them, in the order of the file.
    #[serde(default)]
    pub conclusions: Vec<Conclusion>,
}

/// A published conclusion, and what shows that a run comes to it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// The conclusion, in a sentence.
    pub claim: String,
    /// Conditions that are all true where it comes back; at least one.
    pub holds: Vec<Condition>,
    /// Why it comes back, or does not, in a sentence; may be empty.
    pub because: String,
}

/// A condition on one variant of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The variant.
    pub variant: String,
    /// Subject of the condition.
    pub subject: Subject,
}

/// Subject of a [`Condition`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Kind of the bottleneck that is named for the variant.
    Bottleneck(FindingKind),
    /// Kind of a finding of the variant, at any rank.
    Finding(FindingKind),
    /// Bounds of a figure of the variant, both included.
    Figure {
        /// See [`figure_name`].
        name: String,
        /// The variant whose value is the base of the ratio that is bounded; `None` where the value itself is.
        to: Option<String>,
        /// The lower bound.
        at_least: Option<f64>,
        /// The upper bound.
        at_most: Option<f64>,
        /// Variants from whose values this one's is less far than from that of `to`.
        #[serde(default)]
        larger_than_to: Vec<String>,
    },
}

/// One figure over the variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Measure.
    pub measure: Measure,
    /// The metric, of [`Measure::Metric`].
    #[serde(default)]
    pub metric: Option<String>,
    /// The part that it is about; `None` for the whole.
    #[serde(default)]
    pub part: Option<Part>,
    /// Variant and value, in the measure's unit.
    pub values: Vec<(String, f64)>,
    /// Variants whose measured value was made to come out as published, and what was chosen so that it does: parameters of
    /// the experiment, or a few words; see [`chosen`].
    #[serde(default)]
    pub fitted: Vec<(String, String)>,
    /// Variants whose measured value follows by arithmetic from another published fact, and that fact.
    #[serde(default)]
    pub given: Vec<(String, String)>,
    /// [Name](figure_name) of the figure that this one has in another unit.
    #[serde(default)]
    pub restates: Option<String>,
    /// Notes that a comparison needs, such as why the measured value differs; may be empty.
    pub remark: String,
}

/// Part of an experiment that a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A service.
    Service(String),
    /// A scenario of the load.
    Scenario(String),
}

impl Part {
    /// Name of the service or the scenario.
    pub fn name(&self) -> &str {
        let (Part::Service(name) | Part::Scenario(name)) = self;
        name
    }
}

/// Name of a figure in files: the word of its measure, or its metric, after the part that it is about: `writes: mean`.
pub fn figure_name(word: &str, part: Option<&str>) -> String {
    part.map_or_else(|| word.to_owned(), |part| format!("{part}: {word}"))
}

/// Names in a text of [`PublishedFigure::fitted`], one by one: commas separate names of parameters and other words.
pub fn chosen(fitted: &str) -> impl Iterator<Item = &str> {
    fitted.split(',').map(str::trim).filter(|part| !part.is_empty())
}

impl Published {
    /// Values chosen so that figures of these variants come out as published, each once, in the order of the file.
    pub fn chosen_for(&self, is_meant: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut all = Vec::new();
        let fitted = self.figures.iter().flat_map(|figure| &figure.fitted);
        for part in fitted.filter(|(variant, _)| is_meant(variant)).flat_map(|(_, text)| chosen(text)) {
            if !all.contains(&part) {
                all.push(part);
            }
        }
        all
    }
}

/// Quantity that can be published and measured. Latencies are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Successful responses per second.
    Rate,
    /// Requests of the load that ended, well or not.
    Requests,
    /// Those of them that failed.
    Failed,
    /// Their share, 0 to 1.
    ErrorRate,
    /// Mean duration of the operation, nanoseconds.
    Mean,
    /// Its median, nanoseconds.
    P50,
    /// Its 95 %, nanoseconds.
    P95,
    /// Its 99 %, nanoseconds.
    P99,
    /// CPU of all services together, sidecars included, cores: the sum of `kubectl top`. Or that of one service.
    Cpu,
    /// Their memory, bytes.
    Memory,
    /// CPU of the replica of a service that uses most of its limit, as a share of that limit.
    CpuShare,
    /// Requests of the replica of a service that receives most, as a share of those of all its replicas, 0 to 1.
    RequestShare,
    /// Completed operations.
    Completed,
    /// Attempts of database calls that were throttled.
    Throttled,
    /// Successful database calls per completed operation.
    CallsPerOperation,
    /// Attempts of database calls per completed operation.
    AttemptsPerOperation,
    /// Request units per completed operation.
    ChargePerOperation,
    /// A metric that a service reports, in the metric's unit.
    Metric,
}

impl Measure {
    /// All, in the order they are documented.
    pub const ALL: [Measure; 18] = [
        Measure::Rate,
        Measure::Requests,
        Measure::Failed,
        Measure::ErrorRate,
        Measure::Mean,
        Measure::P50,
        Measure::P95,
        Measure::P99,
        Measure::Cpu,
        Measure::Memory,
        Measure::CpuShare,
        Measure::RequestShare,
        Measure::Completed,
        Measure::Throttled,
        Measure::CallsPerOperation,
        Measure::AttemptsPerOperation,
        Measure::ChargePerOperation,
        Measure::Metric,
    ];

    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Measure::Rate => "rate",
            Measure::Requests => "requests",
            Measure::Failed => "failed",
            Measure::ErrorRate => "error_rate",
            Measure::Mean => "mean",
            Measure::P50 => "p50",
            Measure::P95 => "p95",
            Measure::P99 => "p99",
            Measure::Cpu => "cpu",
            Measure::Memory => "memory",
            Measure::CpuShare => "cpu_share",
            Measure::RequestShare => "request_share",
            Measure::Completed => "completed",
            Measure::Throttled => "throttled",
            Measure::CallsPerOperation => "calls_per_operation",
            Measure::AttemptsPerOperation => "attempts_per_operation",
            Measure::ChargePerOperation => "charge_per_operation",
            Measure::Metric => "metric",
        }
    }

    /// True if a measured value is compared with the published one by its ratio to another variant: machines differ, gains
    /// do not have to.
    pub fn is_compared_by_ratio(self) -> bool {
        matches!(self, Measure::Rate | Measure::Cpu | Measure::Memory | Measure::Metric) || self.is_duration()
    }

    /// True if it is a price of one operation or a share, which is compared as it is.
    pub fn is_compared_as_it_is(self) -> bool {
        matches!(
            self,
            Measure::CallsPerOperation
                | Measure::AttemptsPerOperation
                | Measure::ChargePerOperation
                | Measure::CpuShare
                | Measure::RequestShare
        )
    }

    /// Whether it is a length of time, in nanoseconds.
    pub fn is_duration(self) -> bool {
        matches!(self, Measure::Mean | Measure::P50 | Measure::P95 | Measure::P99)
    }
}

/// One published figure beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Measure.
    pub measure: Measure,
    /// The metric and its unit, of [`Measure::Metric`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The part that it is about; `None` for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// One per variant of the run, in order.
    pub cells: Vec<BesideCell>,
    /// See [`PublishedFigure::remark`].
    pub remark: String,
}

/// One variant's cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BesideCell {
    /// The variant.
    pub variant: String,
    /// The published value.
    pub published: Option<f64>,
    /// The measured value, the median of repetitions.
    pub measured: Option<f64>,
    /// The lowest and the highest of several repetitions; `None` with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The variant that its ratio is to; `None` where that is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to: Option<String>,
    /// Standing of the measured value as evidence.
    #[serde(default, skip_serializing_if = "Standing::is_free")]
    pub standing: Standing,
}

/// Standing of a measured value as evidence that a system behaves as the published one did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It could have come out otherwise.
    #[default]
    Free,
    /// It, or the value that its ratio is to, was made to come out as published by what is named here. It proves nothing.
    Fitted(String),
    /// It follows by arithmetic from what is named here, which was taken from the publication.
    Given(String),
    /// It is the named figure in another unit, and counts there.
    Restated(String),
}

impl Standing {
    /// True if the value could have come out otherwise.
    pub fn is_free(&self) -> bool {
        *self == Standing::Free
    }

    /// True if it was made to come out as published.
    pub fn is_fitted(&self) -> bool {
        matches!(self, Standing::Fitted(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_is_named_once() {
        let fitted = [("one", "delay"), ("two", "jitter, delay,"), ("three", "prices of the store")];
        let fitted = fitted.map(|(variant, by)| (variant.to_owned(), by.to_owned())).to_vec();
        let figure = |measure| PublishedFigure {
            measure,
            metric: None,
            part: None,
            values: Vec::new(),
            fitted: fitted.clone(),
            given: Vec::new(),
            restates: None,
            remark: String::new(),
        };
        let figures = vec![figure(Measure::Rate), figure(Measure::Mean)];
        let published = Published { figures, ..Published::default() };
        assert_eq!(published.chosen_for(|_| true), ["delay", "jitter", "prices of the store"]);
        assert_eq!(published.chosen_for(|variant| variant == "two"), ["jitter", "delay"]);
    }
}
