//! Why a run cannot become a baseline, or be checked against one.

use std::fmt;

use narrows_model::baseline::Machine;

use crate::proof;

/// Why not. It reads as a clause without a full stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Its trials cannot be used.
    Trials(proof::Refusal),
    /// The baseline is of another experiment, or of another version of it.
    OtherExperiment {
        /// The experiment of the baseline.
        before: String,
        /// That of the run.
        after: String,
    },
    /// The baseline was measured on another machine.
    OtherMachine {
        /// That of the baseline.
        before: Machine,
        /// That of the run.
        after: Machine,
    },
    /// The run does not have a variant of the baseline.
    NoVariant {
        /// Which.
        variant: String,
        /// Those that it has.
        known: Vec<String>,
    },
}

impl Refusal {
    /// Advice on how to resolve the refusal.
    pub fn hint(&self) -> Option<String> {
        match self {
            Refusal::Trials(refusal) => refusal.hint().map(str::to_owned),
            Refusal::OtherExperiment { .. } => {
                Some("`narrows baseline save` renews the baseline; `--accept-experiment` compares all the same".to_owned())
            }
            Refusal::OtherMachine { .. } => Some(
                "times of two machines cannot be compared: save a baseline on this one; `--accept-machine` compares all the same"
                    .to_owned(),
            ),
            Refusal::NoVariant { .. } => {
                Some("run all variants, or save a baseline of those that you run".to_owned())
            }
        }
    }
}

impl From<proof::Refusal> for Refusal {
    fn from(refusal: proof::Refusal) -> Self {
        Refusal::Trials(refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Trials(refusal) => refusal.fmt(f),
            Refusal::OtherExperiment { before, after } if before == after => {
                write!(
                    f,
                    "the experiment `{after}` is not the one that the baseline was measured with: its text has changed"
                )
            }
            Refusal::OtherExperiment { before, after } => {
                write!(f, "the baseline is of the experiment `{before}`, the run of `{after}`")
            }
            Refusal::OtherMachine { before, after } => {
                write!(f, "the baseline was measured on another machine: {}, now {}", shown(before), shown(after))
            }
            Refusal::NoVariant { variant, known } => {
                write!(
                    f,
                    "the run has no finished trial of the baseline's variant `{variant}`; it has {}",
                    known.join(", ")
                )
            }
        }
    }
}

/// `AMD EPYC, 2 cores, 8 GiB`.
pub(crate) fn shown(machine: &Machine) -> String {
    let cpu = if machine.cpu_model.is_empty() { "unknown processor" } else { &machine.cpu_model };
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!("{cpu}, {} {cores}, {} GiB", machine.cores, machine.memory_gib)
}
