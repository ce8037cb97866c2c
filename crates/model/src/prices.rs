//! Prices of the resources that a system needs, and what a variant costs by them.

use serde::{Deserialize, Serialize};

/// Price list of an experiment file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prices {
    /// Currency of all prices, such as `USD`.
    pub currency: String,
    /// Source of the prices.
    pub source: String,
    /// The resources, in the order of the file.
    pub resources: Vec<PricedResource>,
}

/// A resource that is paid for by the hour, whether it is used or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PricedResource {
    /// Its name.
    pub name: String,
    /// Number of units that a variant needs, as the file writes it: with `${…}` for parameters.
    pub amount: String,
    /// Price of a unit for an hour.
    pub per_hour: f64,
}

/// Cost of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantCost {
    /// The variant.
    pub variant: String,
    /// Cost of each resource for an hour, in the order of the price list.
    pub resources: Vec<f64>,
    /// Cost of a million successful requests at the variant's throughput; `None` without throughput.
    pub per_million: Option<f64>,
}

impl VariantCost {
    /// The cost of a variant with `rate` successful requests per second.
    pub fn new(variant: &str, resources: Vec<f64>, rate: Option<f64>) -> Self {
        const MILLIONS_PER_HOUR: f64 = 3600.0 / 1e6;
        let per_hour: f64 = resources.iter().sum();
        let per_million = rate.filter(|rate| *rate > 0.0).map(|rate| per_hour / (rate * MILLIONS_PER_HOUR));
        Self { variant: variant.to_owned(), resources, per_million }
    }

    /// Cost of all resources for an hour.
    pub fn per_hour(&self) -> f64 {
        self.resources.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_share_the_cost_of_an_hour() {
        let cost = VariantCost::new("a", vec![0.2, 0.16], Some(100.0));
        assert!((cost.per_hour() - 0.36).abs() < 1e-9, "{cost:?}");
        assert!(cost.per_million.is_some_and(|cost| (cost - 1.0).abs() < 1e-9), "{cost:?}");
        for rate in [None, Some(0.0)] {
            assert_eq!(VariantCost::new("a", vec![0.2], rate).per_million, None);
        }
    }
}
