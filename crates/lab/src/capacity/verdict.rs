//! Result of a search for one variant, and its words.

use narrows_model::units;
use serde::Serialize;

use crate::capacity::interval::Interval;
use crate::capacity::probe::{Probe, Reason};
use crate::capacity::scalability::Fit;
use crate::capacity::search::Ceiling;

/// Result for one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// The variant.
    pub variant: String,
    /// Objectives.
    pub objectives: Vec<String>,
    /// Objectives that any low rate breaks, and that were therefore not judged.
    pub left_out: Vec<String>,
    /// Every probe in the order they were made.
    pub probes: Vec<Probe>,
    /// Result of the search.
    pub verdict: Verdict,
    /// First objective to give way above the capacity; `None` if none was seen to.
    pub gives_way: Option<Reason>,
    /// The lowest rate at which 95 % latency is more than twice that of the lowest rate; `None` if it never is.
    pub knee: Option<f64>,
    /// The universal scalability law through the probes; none with too few.
    pub law: Option<Fit>,
    /// Limits of its reading, in sentences.
    pub notes: Vec<String>,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// The capacity.
    Found(Interval),
    /// The objectives were kept at this rate, and what lies above could not be tried.
    AtLeast {
        /// Per second.
        rate: f64,
        /// Why not.
        ceiling: Ceiling,
    },
    /// The objectives were broken at every rate, down to this one, the lowest to be tried.
    Nowhere {
        /// Per second.
        rate: f64,
    },
}

impl Capacity {
    /// Result in one sentence.
    pub fn sentence(&self) -> String {
        let quoted: Vec<String> = self.objectives.iter().map(|text| format!("\"{text}\"")).collect();
        let what = quoted.join(" and ");
        let first = self.gives_way.as_ref();
        let gives_way = first.map_or_else(String::new, |reason| format!("; {} gives way first", reason.what));
        match &self.verdict {
            Verdict::Found(found) => {
                let (low, high) = (units::rate(found.low), units::rate(found.high));
                let sure = if found.is_repeated() { "95 %: " } else { "one search: " };
                format!("It keeps {what} up to {} ({sure}{low} to {high}){gives_way}.", units::rate(found.rate))
            }
            Verdict::AtLeast { rate, ceiling: Ceiling::Highest } => {
                format!("It keeps {what} at {}, the highest rate of the search.", units::rate(*rate))
            }
            Verdict::AtLeast { rate, ceiling: Ceiling::Generator } => format!(
                "It keeps {what} at {} at least; above that the generator was the limit, not the system.",
                units::rate(*rate)
            ),
            Verdict::Nowhere { rate } => {
                format!(
                    "It does not keep {what} even at {}, the lowest rate of the search{gives_way}.",
                    units::rate(*rate)
                )
            }
        }
    }

    /// Whether a rate that keeps the objectives was found.
    pub fn is_found(&self) -> bool {
        !matches!(self.verdict, Verdict::Nowhere { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(verdict: Verdict) -> Capacity {
        Capacity {
            variant: "v".into(),
            objectives: vec!["p95 < 100ms".into(), "error_rate < 1%".into()],
            left_out: Vec::new(),
            gives_way: Some(Reason { what: "p95".into(), text: "p95 < 100ms: 134 ms".into() }),
            probes: Vec::new(),
            verdict,
            knee: None,
            law: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn each_verdict_is_a_sentence() {
        let found = |edges| Verdict::Found(Interval { rate: 1180.0, low: 1150.0, high: 1210.0, edges });
        let at_least = |ceiling| Verdict::AtLeast { rate: 2000.0, ceiling };
        let kept = "It keeps \"p95 < 100ms\" and \"error_rate < 1%\"";
        let cases = [
            (found(4), format!("{kept} up to 1,180/s (95 %: 1,150/s to 1,210/s); p95 gives way first.")),
            (found(1), format!("{kept} up to 1,180/s (one search: 1,150/s to 1,210/s); p95 gives way first.")),
            (at_least(Ceiling::Highest), format!("{kept} at 2,000/s, the highest rate of the search.")),
            (
                at_least(Ceiling::Generator),
                format!("{kept} at 2,000/s at least; above that the generator was the limit, not the system."),
            ),
            (
                Verdict::Nowhere { rate: 10.0 },
                "It does not keep \"p95 < 100ms\" and \"error_rate < 1%\" even at 10.0/s, the lowest rate of the \
                 search; p95 gives way first."
                    .to_owned(),
            ),
        ];
        for (verdict, expected) in cases {
            let capacity = capacity(verdict);
            assert_eq!(capacity.sentence(), expected);
            assert_eq!(capacity.is_found(), expected.starts_with("It keeps"));
        }
    }
}
