//! Findings of detectors.

mod caveat;
pub mod evidence;
mod kind;
mod relation;
mod wording;

use serde::{Deserialize, Serialize};

pub use caveat::Caveat;
pub use evidence::{Evidence, FindingKind};
pub use kind::UnknownKind;
pub use relation::{Mechanism, Precedence, Relation};
pub use wording::{Figure, Wording};

use crate::prediction::Gain;

/// One named cause, as data. Its [`Wording`] is what people read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Evidence. Its kind is the cause or limit that the finding names, in files the id of its detector.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The detector's version; it rises when the rule changes.
    pub version: u32,
    /// Its number within its trial, by which relations refer to it.
    #[serde(default)]
    pub number: u32,
    /// The service or resource it is about.
    pub resource: String,
    /// The operation it is about, if it is about one.
    pub operation: Option<String>,
    /// Cost, as a share of the operation's latency or of the resource's capacity, 0 to 1.
    pub cost_share: f64,
    /// How sure.
    pub confidence: Confidence,
    /// Traces and spans that show it.
    pub exemplars: Vec<Exemplar>,
    /// Limits of the reading.
    pub caveats: Vec<Caveat>,
    /// The part of the trial that it was seen in; `None` if it holds for all of it.
    #[serde(default)]
    pub period: Option<Period>,
    /// Relations to others of its trial. Detectors leave it alone.
    #[serde(default)]
    pub relations: Vec<Relation>,
    /// Effects: findings that go away with it. Causes absorb their symptoms, one level deep.
    #[serde(default)]
    pub effects: Vec<Finding>,
    /// Role in its trial. Detectors leave it alone; it is known once all findings are ranked.
    #[serde(default)]
    pub role: Role,
    /// Gain of the change that it suggests; `None` if it suggests none, or nothing was predicted yet.
    /// Detectors leave it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
}

impl Finding {
    /// The cause or limit it names.
    pub fn kind(&self) -> FindingKind {
        self.evidence.kind()
    }

    /// A finding without a place or a cost yet, from this version of its detector's rule.
    pub fn new(evidence: impl Into<Evidence>, version: u32) -> Self {
        Self {
            evidence: evidence.into(),
            version,
            number: 0,
            resource: String::new(),
            operation: None,
            cost_share: 0.0,
            confidence: Confidence::default(),
            exemplars: Vec::new(),
            caveats: Vec::new(),
            period: None,
            relations: Vec::new(),
            effects: Vec::new(),
            role: Role::default(),
            gain: None,
        }
    }
}

/// Role of a finding in its trial, in the order in which findings are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// About the experiment: its figures are not the system's.
    Invalidates,
    /// The narrow place: what to deal with first. At most one finding of a trial is it.
    NarrowPlace,
    /// In the way: a limit that is hit, or a structure that makes requests wait.
    #[default]
    InTheWay,
    /// Costs more than needed, and is not the bottleneck yet.
    CostsMore,
    /// About the experiment: what its figures or traces cannot show.
    LimitsReading,
}

impl Role {
    /// Whether the finding is about the experiment rather than the system.
    pub fn is_about_experiment(self) -> bool {
        matches!(self, Role::Invalidates | Role::LimitsReading)
    }
}

/// The narrow place among the ranked findings of a trial; `None` if nothing is narrow or nothing could be seen.
pub fn narrow_place(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.role == Role::NarrowPlace)
}

/// A part of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Period {
    /// For people, such as `“40 users”`.
    pub label: String,
    /// First instant, nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// First instant after it.
    pub end_ns: i64,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The signs are there, an important check was not possible.
    #[default]
    Low,
    /// The signs are there and no check speaks against them.
    Medium,
    /// The signs are there and independent data agree.
    High,
}

impl Confidence {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// A trace to look at, and the spans in it that show the thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exemplar {
    /// Lower-case hexadecimal.
    pub trace_id: String,
    /// Lower-case hexadecimal; the first few where there are many.
    pub span_ids: Vec<String>,
}
