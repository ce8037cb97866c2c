//! What limits the reading of a finding.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::scalability::Misfit;

/// What a finding's data cannot show, or what its figures leave out. It reads as one whole sentence or a few.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caveat {
    /// A limit may be meant to protect a store or a budget.
    LimitMayBeIntended,
    /// A store tells neither what its partitions spend nor what they may.
    PartitionsNotMeasured {
        /// The store.
        store: String,
    },
    /// No reading shows a partition near its limit.
    NoPartitionSeenFull,
    /// The CPU of a database was not sampled.
    DatabaseCpuNotSampled {
        /// The database.
        database: String,
    },
    /// No span shows the conflicts that a store counts.
    ConflictsNotInSpans,
    /// Means over a window include an outage.
    MeansIncludeOutage,
    /// No level after the heaviest load has less of it.
    LoadOnlyGrew,
    /// The universal scalability law does not describe the levels.
    ScalabilityLawFitsPoorly {
        /// Why its fit should not be relied on.
        misfit: Misfit,
    },
    /// The universal scalability law needs more levels.
    FewLevelsForScalabilityLaw {
        /// The levels that there are.
        levels: usize,
    },
    /// What sidecars do to latency shows only beside the same system without them.
    SidecarLatencyNotCompared,
    /// On one machine, sidecars take CPU from the services.
    SidecarsShareMachine,
    /// TRANSITION: goes away.
    Said {
        /// The words.
        said: String,
    },
}

impl From<String> for Caveat {
    fn from(said: String) -> Self {
        Self::Said { said }
    }
}

impl From<&str> for Caveat {
    fn from(said: &str) -> Self {
        Self::Said { said: said.to_owned() }
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said { said } => f.write_str(said),
            Self::LimitMayBeIntended => f.write_str(
                "The traces do not show whether the limit is intentional, to protect the store or a budget.",
            ),
            Self::PartitionsNotMeasured { store } => write!(
                f,
                "{store} reports neither the consumption nor the provisioned throughput of its partitions, so it is \
                 not shown that they reached their limit."
            ),
            Self::NoPartitionSeenFull => f.write_str(
                "No reading shows a partition near its limit. Readings are taken at intervals and can miss a second \
                 at the limit.",
            ),
            Self::DatabaseCpuNotSampled { database } => {
                write!(f, "The CPU of {database} was not sampled: it may be busy with other queries.")
            }
            Self::ConflictsNotInSpans => f.write_str("No span shows which operation had them or how it ended."),
            Self::MeansIncludeOutage => {
                f.write_str("Means over the whole window include this time. Times are in whole seconds of the load.")
            }
            Self::LoadOnlyGrew => f.write_str(
                "The load only grew: a level with fewer users after the heaviest would show whether throughput \
                 recovers.",
            ),
            Self::ScalabilityLawFitsPoorly { misfit } => {
                write!(f, "The universal scalability law does not describe these levels: {misfit}.")
            }
            Self::FewLevelsForScalabilityLaw { levels } => {
                write!(f, "{levels} levels are too few for the universal scalability law.")
            }
            Self::SidecarLatencyNotCompared => f.write_str(
                "To see their effect on latency, compare with the same system without them, at the same rate.",
            ),
            Self::SidecarsShareMachine => f.write_str(
                "On one machine, sidecars also take CPU from the services; on several machines they would not.",
            ),
        }
    }
}

/// Writes each caveat with its text beside its data.
pub(super) fn with_text<S: Serializer>(caveats: &[Caveat], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithText<'a> {
        #[serde(flatten)]
        caveat: &'a Caveat,
        text: String,
    }
    serializer.collect_seq(caveats.iter().map(|caveat| WithText { caveat, text: caveat.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, FindingKind};

    #[test]
    fn files_hold_data_and_text() {
        let caveats = vec![Caveat::LimitMayBeIntended, Caveat::PartitionsNotMeasured { store: "store".into() }];
        let finding = Finding { caveats, ..Finding::new(FindingKind::Throttling, 1) };
        let value = serde_json::to_value(&finding).unwrap();
        assert_eq!(value["caveats"][1]["kind"], "partitions-not-measured");
        assert_eq!(value["caveats"][1]["store"], "store");
        assert!(value["caveats"][1]["text"].as_str().unwrap().starts_with("store reports neither"));
        assert_eq!(serde_json::from_value::<Finding>(value).unwrap(), finding);
    }
}
