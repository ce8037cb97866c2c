//! Evidence of `unequal-rates`.

use serde::{Deserialize, Serialize};

use super::variant::VariantFigures;

/// Two variants that completed different rates.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UnequalRates {
    /// The one that a reader compares with.
    pub first: VariantFigures,
    /// The one that is compared.
    pub other: VariantFigures,
    /// Whether the other has sidecars where the first has none.
    pub adds_sidecars: bool,
    /// Services that only the other has.
    pub added_services: Vec<String>,
    /// Whether the load of one of them is open.
    pub is_open: bool,
}
