//! The detectors: one folder per cause, each with its rule, its words and its tests; and the list of them all.
//!
//! A detector's folder is named as its id with underscores, and its page is `docs/reference/findings/<id>.md`. To add
//! one: the folder, its `mod` line and its entry here, its kind and its evidence in `narrows_model::finding`, the page. Tests hold them
//! together.

pub mod chatty_http;
pub mod conflict_retry;
pub mod cpu_saturation;
pub mod cross_partition_query;
pub mod database_saturation;
pub mod few_clients;
pub mod generator_limited;
pub mod hot_partition;
pub mod instrumentation_gap;
pub mod n_plus_one;
pub mod not_steady;
pub mod offered_load_limited;
pub mod outage;
pub mod pool_wait;
pub mod provisioned_rate;
pub mod retrograde_throughput;
pub mod retry_storm;
pub mod serial_fan_out;
pub mod sidecar_cost;
pub mod slow_query;
pub mod straggler_branch;
pub mod throttling;
pub mod unequal_rates;
pub(crate) mod words;

use narrows_model::finding::Evidence;

use crate::Detector;

/// Lists the detectors: each is a folder, and there a type that the kind of its findings is named after.
macro_rules! detectors {
    ($($folder:ident::$detector:ident,)*) => {
        /// Every detector.
        pub const ALL: &[&dyn Detector] = &[$(&$folder::$detector),*];

        /// How evidence reads.
        pub(crate) fn words_of(evidence: &Evidence) -> &dyn words::Words {
            match evidence {
                $(Evidence::$detector(evidence) => evidence,)*
            }
        }
    };
}

detectors! {
    chatty_http::ChattyHttp,
    conflict_retry::ConflictRetry,
    cpu_saturation::CpuSaturation,
    cross_partition_query::CrossPartitionQuery,
    database_saturation::DatabaseSaturation,
    few_clients::FewClients,
    generator_limited::GeneratorLimited,
    hot_partition::HotPartition,
    instrumentation_gap::InstrumentationGap,
    n_plus_one::NPlusOne,
    not_steady::NotSteady,
    offered_load_limited::OfferedLoadLimited,
    outage::Outage,
    pool_wait::PoolWait,
    provisioned_rate::ProvisionedRate,
    retrograde_throughput::RetrogradeThroughput,
    retry_storm::RetryStorm,
    serial_fan_out::SerialFanOut,
    sidecar_cost::SidecarCost,
    slow_query::SlowQuery,
    straggler_branch::StragglerBranch,
    throttling::Throttling,
    unequal_rates::UnequalRates,
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::FindingKind;

    use super::*;

    #[test]
    fn each_kind_has_one_detector_and_versions_begin_at_one() {
        let kinds: Vec<FindingKind> = ALL.iter().map(|detector| detector.kind()).collect();
        assert_eq!(kinds, FindingKind::ALL);
        assert!(ALL.iter().all(|detector| detector.version() >= 1));
    }
}
