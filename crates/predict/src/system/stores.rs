//! Stores that provide so many request units per second for each partition.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;

/// A store by its busiest partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Store {
    pub(crate) name: String,
    /// Request units of a request at the partition that is used up first.
    pub(crate) charge: f64,
    /// Throughput of that partition per second; `None` if nothing limits it.
    pub(crate) provisioned: Option<f64>,
    /// Share of that throughput which requests get while calls are refused, 0 to 1: the rest is spent on work that a refusal
    /// makes callers begin again, or left over in seconds in which all of them wait. 1 unless `baseline.rs` fits it.
    pub(crate) used_share: f64,
}

impl Store {
    /// Requests per second at which the partition is used up; infinite without a limit.
    pub(crate) fn rate_max(&self) -> f64 {
        match self.provisioned {
            Some(provisioned) if self.charge > 0.0 => self.used_share * provisioned / self.charge,
            _ => f64::INFINITY,
        }
    }
}

/// The stores of a trial that report both what they provide and what is used of it.
pub(super) fn stores(trial: &TrialEvidence) -> Vec<Store> {
    let rate = trial.counted_load().rate();
    let mut stores: BTreeMap<String, Store> = BTreeMap::new();
    for partition in trial.throughput() {
        let counted = partition.consumed.iter().filter(|point| trial.is_counted(point.time_ns));
        let (sum, count) = counted.fold((0.0, 0_u32), |(sum, count), point| (sum + point.value, count + 1));
        if count == 0 || rate <= 0.0 || partition.provisioned.is_none() {
            continue;
        }
        let found = Store {
            name: partition.service,
            charge: sum / f64::from(count) / rate,
            provisioned: partition.provisioned,
            used_share: 1.0,
        };
        let known = stores.entry(found.name.clone()).or_insert_with(|| found.clone());
        if found.rate_max() < known.rate_max() {
            *known = found;
        }
    }
    stores.into_values().collect()
}
