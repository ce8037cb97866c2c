//! Why two variants cannot be compared.

use std::fmt;

use narrows_model::proof::Quantity;
use narrows_model::units;

/// Why not. It reads as a clause without a full stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Both sides are the same trials.
    Same {
        /// Which.
        label: String,
    },
    /// A side has no finished trial.
    NoTrial {
        /// Which.
        label: String,
    },
    /// Narrows recorded no load, as in imported runs.
    NoLoad {
        /// The side.
        label: String,
    },
    /// A side was measured once.
    OneTrial {
        /// The side.
        label: String,
    },
    /// No pair of trials is complete.
    OnePair,
    /// The generator's own figures are invalid.
    Invalid {
        /// The trial.
        trial: String,
        /// Why.
        reason: String,
    },
    /// No request succeeded, or the figure was not measured.
    NotMeasured {
        /// The figure.
        quantity: Quantity,
        /// The trial.
        trial: String,
    },
    /// Arrivals were scheduled at different rates.
    UnequalRates {
        /// The sides with the rates of their windows.
        sides: [(String, Vec<Option<f64>>); 2],
    },
}

impl Refusal {
    /// Advice.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Refusal::Same { .. } => Some("name two variants, as in `narrows compare :before :after`"),
            Refusal::NoTrial { .. } => Some("`narrows run --resume` continues an interrupted run"),
            Refusal::NoLoad { .. } => Some("`narrows diff` compares traces"),
            Refusal::OneTrial { .. } | Refusal::OnePair => {
                Some("`narrows run --compare BEFORE,AFTER --repeat 10` measures both until the difference is clear")
            }
            Refusal::Invalid { .. } => Some("`narrows diagnose` shows what held the load generator back"),
            Refusal::NotMeasured { quantity: Quantity::Cpu, .. } => Some("choose another figure with `--by`"),
            Refusal::NotMeasured { .. } => Some("`narrows diagnose` shows how its requests failed"),
            Refusal::UnequalRates { .. } => Some("give both variants the same rate, one that both can carry"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Same { label } => write!(f, "both sides are {label}"),
            Refusal::NoTrial { label } => write!(f, "{label} has no finished trial"),
            Refusal::NoLoad { label } => write!(f, "{label} has no load that Narrows sent"),
            Refusal::OneTrial { label } => write!(f, "{label} was measured once, expected at least 2 trials"),
            Refusal::OnePair => f.write_str("fewer than 2 pairs of trials are complete"),
            Refusal::Invalid { trial, reason } => {
                write!(f, "the figures of {trial} are invalid: {}", reason.trim_end_matches('.'))
            }
            Refusal::NotMeasured { quantity, trial } => write!(f, "{trial} has no {}", quantity.words()),
            Refusal::UnequalRates { sides: [before, after] } => {
                let shown = |(label, rates): &(String, Vec<Option<f64>>)| format!("{label} {}", rates_of(rates));
                write!(f, "the rates of arrivals differ: {}, {}", shown(before), shown(after))
            }
        }
    }
}

/// `100/s, 200/s`; as far as there is room.
fn rates_of(rates: &[Option<f64>]) -> String {
    const SHOWN_MAX: usize = 6;
    let shown = |rate: &Option<f64>| rate.map_or_else(|| "none".to_owned(), units::rate);
    let mut shown: Vec<String> = rates.iter().take(SHOWN_MAX).map(shown).collect();
    if rates.len() > SHOWN_MAX {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}
