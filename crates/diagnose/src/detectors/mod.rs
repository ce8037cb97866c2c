//! The detectors and the list of all of them. Each cause has a folder with its rule, its words and its tests.
//!
//! A detector's folder has the name of its id, with underscores; its page is `docs/reference/findings/<id>.md`. Tests
//! keep folder, id and page consistent. `CONTRIBUTING.md` lists the parts of a new detector.

pub mod accept_queue;
pub mod blocking_command;
pub mod chatty_http;
pub mod conflict_retry;
pub mod connection_churn;
pub mod connection_limit;
pub mod cpu_saturation;
pub mod cross_partition_query;
pub mod database_saturation;
pub mod descriptor_exhaustion;
pub mod disk_bound;
pub mod disk_full;
pub mod dns;
pub mod duplicate_query;
pub mod event_loop_lag;
pub mod few_clients;
pub mod garbage_collection;
pub mod generator_limited;
pub mod hot_partition;
pub mod instrumentation_gap;
pub mod interpreter_lock;
pub mod lock_wait;
pub mod memory_growth;
pub mod n_plus_one;
pub mod not_steady;
pub mod offered_load_limited;
pub mod outage;
pub mod pool_wait;
pub mod port_exhaustion;
pub mod provisioned_rate;
pub mod retrograde_throughput;
pub mod retry_storm;
pub mod sequential_calls;
pub mod serial_fan_out;
pub mod serialised_section;
pub mod sidecar_cost;
pub mod slow_dependency;
pub mod slow_query;
pub mod stall;
pub mod straggler_branch;
pub mod thread_pool;
pub mod throttling;
pub mod time_outside_spans;
pub mod unequal_rates;
pub mod uneven_assignment;
pub(crate) mod words;

use narrows_model::finding::{Evidence, FindingKind};

use crate::Detector;

/// Hands the list of detectors to a macro, after the tokens given for it. An entry is the folder, the type in it, which has
/// the name of its kind of finding, and the id of its page.
macro_rules! each_detector {
    ($then:ident $($more:tt)*) => {
        $then! {
            $($more)*
            accept_queue::AcceptQueue, "accept-queue";
            blocking_command::BlockingCommand, "blocking-command";
            chatty_http::ChattyHttp, "chatty-http";
            conflict_retry::ConflictRetry, "conflict-retry";
            connection_churn::ConnectionChurn, "connection-churn";
            connection_limit::ConnectionLimit, "connection-limit";
            cpu_saturation::CpuSaturation, "cpu-saturation";
            cross_partition_query::CrossPartitionQuery, "cross-partition-query";
            database_saturation::DatabaseSaturation, "database-saturation";
            descriptor_exhaustion::DescriptorExhaustion, "descriptor-exhaustion";
            disk_bound::DiskBound, "disk-bound";
            disk_full::DiskFull, "disk-full";
            dns::Dns, "dns";
            duplicate_query::DuplicateQuery, "duplicate-query";
            event_loop_lag::EventLoopLag, "event-loop-lag";
            few_clients::FewClients, "few-clients";
            garbage_collection::GarbageCollection, "garbage-collection";
            generator_limited::GeneratorLimited, "generator-limited";
            hot_partition::HotPartition, "hot-partition";
            instrumentation_gap::InstrumentationGap, "instrumentation-gap";
            interpreter_lock::InterpreterLock, "interpreter-lock";
            lock_wait::LockWait, "lock-wait";
            memory_growth::MemoryGrowth, "memory-growth";
            n_plus_one::NPlusOne, "n-plus-one";
            not_steady::NotSteady, "not-steady";
            offered_load_limited::OfferedLoadLimited, "offered-load-limited";
            outage::Outage, "outage";
            pool_wait::PoolWait, "pool-wait";
            port_exhaustion::PortExhaustion, "port-exhaustion";
            provisioned_rate::ProvisionedRate, "provisioned-rate";
            retrograde_throughput::RetrogradeThroughput, "retrograde-throughput";
            retry_storm::RetryStorm, "retry-storm";
            sequential_calls::SequentialCalls, "sequential-calls";
            serial_fan_out::SerialFanOut, "serial-fan-out";
            serialised_section::SerialisedSection, "serialised-section";
            sidecar_cost::SidecarCost, "sidecar-cost";
            slow_dependency::SlowDependency, "slow-dependency";
            slow_query::SlowQuery, "slow-query";
            stall::Stall, "stall";
            straggler_branch::StragglerBranch, "straggler-branch";
            thread_pool::ThreadPool, "thread-pool";
            throttling::Throttling, "throttling";
            time_outside_spans::TimeOutsideSpans, "time-outside-spans";
            unequal_rates::UnequalRates, "unequal-rates";
            uneven_assignment::UnevenAssignment, "uneven-assignment";
        }
    };
}

pub(crate) use each_detector;

macro_rules! registry {
    ($($folder:ident::$detector:ident, $id:literal;)*) => {
        /// Every detector, in the order of their ids.
        pub const ALL: &[&dyn Detector] = &[$(&$folder::$detector),*];

        /// Reference pages of the detectors, by id.
        pub(crate) const PAGES: &[(&str, &str)] =
            &[$(($id, include_str!(concat!("../../../../docs/reference/findings/", $id, ".md")))),*];

        /// Words of a finding's evidence.
        pub(crate) fn words_of(evidence: &Evidence) -> &dyn words::Words {
            match evidence {
                $(Evidence::$detector(evidence) => evidence,)*
            }
        }
    };
}

each_detector! { registry }

/// Detector of a kind of finding.
pub(crate) fn detector_of(kind: FindingKind) -> &'static dyn Detector {
    ALL[kind as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_detector_and_versions_begin_at_one() {
        let kinds: Vec<FindingKind> = ALL.iter().map(|detector| detector.kind()).collect();
        assert_eq!(kinds, FindingKind::ALL, "`detector_of` relies on the order");
        assert!(ALL.iter().all(|detector| detector.version() >= 1));
    }
}
