//! The detectors: one file per cause, each with its rule, its words and its tests; and the list of them all.
//!
//! A detector's file is named as its id with underscores, and its page is `docs/reference/findings/<id>.md`. To add one:
//! the file, a `mod` line, a line in [`ALL`], the page. A test holds the four together.

pub mod cpu_saturation;
pub mod cross_partition_query;
pub mod generator_limited;
pub mod n_plus_one;
pub mod serial_fan_out;
pub mod throttling;

use crate::Detector;

/// Every detector.
pub const ALL: &[&dyn Detector] = &[
    &cpu_saturation::CpuSaturation,
    &cross_partition_query::CrossPartitionQuery,
    &generator_limited::GeneratorLimited,
    &n_plus_one::NPlusOne,
    &serial_fan_out::SerialFanOut,
    &throttling::Throttling,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_versions_begin_at_one() {
        let ids: BTreeSet<&str> = ALL.iter().map(|detector| detector.id()).collect();
        assert_eq!(ids.len(), ALL.len());
        assert!(ALL.iter().all(|detector| detector.version() >= 1));
    }
}
