//! CPU and memory that each variant used: services, then their sidecars apart, then sums; and replicas one by one.
//!
//! One row for each service, its replicas together. A sum has the mean of its parts added up; the most of each part was
//! not reached at one time, so a sum has no maximum.

use std::collections::BTreeSet;

use narrows_model::comparison::{
    Outcome, ReplicaSummary, ServiceSummary, SidecarSummary, TraversalCount, VariantSummary,
};
use narrows_model::run::sidecar_of;
use narrows_model::units;

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One service, or the sidecars of one.
    Service,
    /// Several of them.
    Sum,
}

/// Resource use of one variant.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ServiceUse {
    /// CPU, mean, cores.
    pub(crate) cores: f64,
    /// The most of it at any sample; none of a sum.
    pub(crate) cores_max: Option<f64>,
    /// CPU for each successful request, core-seconds.
    pub(crate) per_request: Option<f64>,
    /// Memory, mean, bytes: pages that processes share count once where that was sampled.
    pub(crate) memory: f64,
    /// The most of it at any sample; none of a sum.
    pub(crate) memory_max: Option<f64>,
}

/// One row over the variants.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// In the order of the variants; `None` if the service did not run.
    pub(crate) variants: Vec<Option<ServiceUse>>,
}

/// All rows: services, their sum and that of the sidecars where there are any, the sum of all; empty when nothing was
/// sampled. Only the `services_max` services and sidecars that use most have a row of their own; the others share one.
pub(crate) fn rows(outcome: &Outcome, services_max: usize) -> Vec<Row> {
    let variants = &outcome.comparison.variants;
    let mut names: Vec<&str> = Vec::new();
    for service in variants.iter().flat_map(|variant| &variant.services) {
        if !names.contains(&service.service.as_str()) {
            names.push(&service.service);
        }
    }
    let (sidecars, services): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| sidecar_of(name).is_some());
    let mut rows: Vec<Row> = services.iter().map(|name| row(variants, name)).collect();
    if !sidecars.is_empty() {
        rows.push(sum(variants, "services together", |name| sidecar_of(name).is_none()));
        rows.extend(sidecars.iter().map(|name| row(variants, name)));
        rows.push(sum(variants, "sidecars together", |name| sidecar_of(name).is_some()));
    }
    let others = least_used(&rows, services_max);
    rows.retain(|row| !others.contains(&row.name));
    if !others.is_empty() {
        let name = format!("{} others", others.len());
        rows.push(sum(variants, &name, |name| others.contains(name)));
    }
    if rows.len() > 1 {
        rows.push(sum(variants, "all together", |_| true));
    }
    rows
}

/// Names of the services and sidecars beyond `services_max`, by CPU and then memory, each in the variant where it uses most.
fn least_used(rows: &[Row], services_max: usize) -> BTreeSet<String> {
    let most = |row: &Row, of: fn(&ServiceUse) -> f64| row.variants.iter().flatten().map(of).fold(0.0, f64::max);
    let cores = |row: &Row| most(row, |used| used.cores);
    let memory = |row: &Row| most(row, |used| used.memory);
    let mut services: Vec<&Row> = rows.iter().filter(|row| row.kind == Kind::Service).collect();
    services.sort_by(|a, b| cores(b).total_cmp(&cores(a)).then(memory(b).total_cmp(&memory(a))));
    services.into_iter().skip(services_max).map(|row| row.name.clone()).collect()
}

fn row(variants: &[VariantSummary], name: &str) -> Row {
    let of = |variant: &VariantSummary| variant.services.iter().find(|service| service.service == name).map(used);
    Row { name: name.to_owned(), kind: Kind::Service, variants: variants.iter().map(of).collect() }
}

fn used(service: &ServiceSummary) -> ServiceUse {
    ServiceUse {
        cores: service.cpu_mean,
        cores_max: Some(service.cpu_max),
        per_request: service.cpu_seconds_per_request,
        memory: service.memory_pss_mean.unwrap_or(service.memory_mean),
        memory_max: Some(service.memory_pss_max.unwrap_or(service.memory_max)),
    }
}

fn sum(variants: &[VariantSummary], name: &str, is_meant: impl Fn(&str) -> bool) -> Row {
    let of = |variant: &VariantSummary| {
        let parts: Vec<ServiceUse> = variant.services.iter().filter(|one| is_meant(&one.service)).map(used).collect();
        let add = |of: fn(&ServiceUse) -> f64| parts.iter().map(of).sum::<f64>();
        let each: Option<Vec<f64>> = parts.iter().map(|part| part.per_request).collect();
        (!parts.is_empty()).then(|| ServiceUse {
            cores: add(|part| part.cores),
            cores_max: None,
            per_request: each.map(|each| each.iter().sum()),
            memory: add(|part| part.memory),
            memory_max: None,
        })
    };
    Row { name: name.to_owned(), kind: Kind::Sum, variants: variants.iter().map(of).collect() }
}

/// The sidecars of each variant; empty where no variant has any.
pub(crate) fn sidecars(outcome: &Outcome) -> Vec<Option<&SidecarSummary>> {
    let all: Vec<_> = outcome.comparison.variants.iter().map(|variant| variant.sidecars.as_ref()).collect();
    if all.iter().any(Option::is_some) { all } else { Vec::new() }
}

/// CPU for each sidecar that a request passes, and how many it passes: `20.1 µs × 7`.
pub(crate) fn traversal(sidecars: &SidecarSummary) -> String {
    let each = sidecars.cpu_seconds_per_traversal.map_or("–".to_owned(), |seconds| units::duration(seconds * 1e9));
    let about = if sidecars.counted_from == TraversalCount::Services { "about " } else { "" };
    format!("{each} × {about}{}", units::number(sidecars.traversals_per_request))
}

/// A service that has several replicas in some variant, in one of the variants.
#[derive(Debug)]
pub(crate) struct ReplicaGroup<'a> {
    pub(crate) service: &'a str,
    pub(crate) variant: &'a str,
    pub(crate) replicas: &'a [ReplicaSummary],
}

/// All services that have several replicas in some variant, service by service: a variant in which one of them has a
/// single replica stands beside the others.
pub(crate) fn replicated(outcome: &Outcome) -> Vec<ReplicaGroup<'_>> {
    let variants = &outcome.comparison.variants;
    let mut all: Vec<ReplicaGroup<'_>> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for service in variants.iter().flat_map(|variant| &variant.services).filter(|one| one.replicas.len() > 1) {
        if !names.contains(&service.service.as_str()) {
            names.push(&service.service);
        }
    }
    for name in names {
        for variant in variants {
            let service = variant.services.iter().find(|one| one.service == name && !one.replicas.is_empty());
            all.extend(service.map(|one| ReplicaGroup {
                service: name,
                variant: &variant.variant,
                replicas: &one.replicas,
            }));
        }
    }
    all
}

impl ReplicaGroup<'_> {
    /// Requests per second of each replica; `None` if no span records which replica responded.
    pub(crate) fn rates(&self) -> Option<Readings> {
        let values: Option<Vec<f64>> = self.replicas.iter().map(|one| one.rate).collect();
        Some(Readings { values: values?, text: units::rate })
    }

    /// CPU of each replica: of its cap, or in cores where not all are capped.
    pub(crate) fn cpu(&self) -> Readings {
        let of_cap = |one: &ReplicaSummary| {
            one.cpu_limit_cores.filter(|cap| *cap > 0.0).map(|cap| (one.cpu_mean / cap).min(1.0))
        };
        let shares: Option<Vec<f64>> = self.replicas.iter().map(of_cap).collect();
        match shares {
            Some(values) => Readings { values, text: units::percent },
            None => Readings {
                values: self.replicas.iter().map(|one| one.cpu_mean).collect(),
                text: |cores| format!("{cores:.2}"),
            },
        }
    }

    /// Memory of each replica.
    pub(crate) fn memory(&self) -> Readings {
        Readings { values: self.replicas.iter().map(|one| one.memory_mean).collect(), text: units::bytes }
    }
}

/// A figure of each replica.
#[derive(Debug, Clone)]
pub(crate) struct Readings {
    pub(crate) values: Vec<f64>,
    pub(crate) text: fn(f64) -> String,
}

impl Readings {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.values.iter().copied().map(self.text).collect()
    }

    /// Smallest and largest figure; `None` without replicas.
    pub(crate) fn range(&self) -> Option<(String, String)> {
        let least = self.values.iter().copied().min_by(f64::total_cmp)?;
        let most = self.values.iter().copied().max_by(f64::total_cmp)?;
        Some(((self.text)(least), (self.text)(most)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn no_replica_uses_more_than_all_of_its_cap() {
        let replica = |cpu_mean| ReplicaSummary { cpu_mean, cpu_limit_cores: Some(0.5), ..ReplicaSummary::default() };
        let replicas = [replica(0.63), replica(0.25)];
        let both = ReplicaGroup { service: "shop", variant: "a", replicas: &replicas };
        assert_eq!(both.cpu().texts(), ["100 %", "50 %"]);
    }

    /// The drones' run, whose last variant has sidecars and three gateways.
    pub(crate) fn outcome() -> Outcome {
        let mut outcome = drones::outcome();
        let variant = outcome.comparison.variants.last_mut().unwrap();
        let replica = |replica, rate| ReplicaSummary {
            replica,
            cpu_mean: 0.07,
            cpu_limit_cores: (replica < 3).then_some(0.1),
            memory_mean: 12.0 * 1_048_576.0,
            rate,
        };
        variant.services[0].replicas =
            [20.0, 20.5, 19.0].into_iter().zip(0..).map(|(r, n)| replica(n, Some(r))).collect();
        let rate = variant.rate.unwrap();
        let of = |name: &str, cores: f64| ServiceSummary {
            service: narrows_model::run::sidecar_name(name),
            cpu_mean: cores,
            cpu_max: 2.0 * cores,
            memory_mean: 6.0 * 1_048_576.0,
            memory_max: 7.0 * 1_048_576.0,
            cpu_seconds_per_request: Some(cores / rate),
            memory_pss_mean: Some(5.0 * 1_048_576.0),
            memory_pss_max: Some(6.0 * 1_048_576.0),
            replicas: Vec::new(),
        };
        let added = [of("gateway", 0.1), of("delivery", 0.05)];
        variant.services.extend(added);
        variant.sidecars = Some(SidecarSummary {
            cpu_mean: 0.15,
            cpu_share: 0.14,
            traversals_per_request: 3.0,
            counted_from: TraversalCount::Hops,
            cpu_seconds_per_traversal: Some(0.15 / rate / 3.0),
        });
        outcome
    }

    #[test]
    fn sidecars_stand_apart_and_sums_add_up() {
        let outcome = outcome();
        let rows = rows(&outcome, 60);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            names[4..],
            [
                "drone-scheduler",
                "services together",
                "gateway.sidecar",
                "delivery.sidecar",
                "sidecars together",
                "all together"
            ]
        );
        let cores = |at: usize| rows[at].variants.last().unwrap().as_ref().unwrap().cores;
        assert!((cores(9) - cores(5) - cores(8)).abs() < 1e-9 && (cores(8) - 0.15).abs() < 1e-9);
        assert_eq!(rows[6].variants[0], None, "the first variant has none");
        assert_eq!(rows[8].variants[3].as_ref().unwrap().memory, 10.0 * 1_048_576.0);
        let plain = super::rows(&drones::outcome(), 60);
        assert_eq!(plain.last().map(|row| row.name.as_str()), Some("all together"));
        assert!(sidecars(&drones::outcome()).is_empty() && super::rows(&crate::fixture::outcome(), 60).is_empty());
    }

    #[test]
    fn of_many_services_those_that_use_least_share_a_row() {
        let mut outcome = drones::outcome();
        outcome.comparison.variants.truncate(1);
        let services = &mut outcome.comparison.variants[0].services;
        let one = services[0].clone();
        let service = |at: u32| ServiceSummary {
            service: format!("service-{at}"),
            cpu_mean: f64::from(at) / 100.0,
            memory_mean: 1e6,
            ..one.clone()
        };
        *services = (0..46).map(service).collect();
        let rows = super::rows(&outcome, 24);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!((names.len(), names[0], names[23]), (26, "service-22", "service-45"));
        assert_eq!(names[24..], ["22 others", "all together"]);
        let cores = |at: usize| rows[at].variants[0].as_ref().unwrap().cores;
        assert!((cores(24) - 2.31).abs() < 1e-9 && (cores(25) - 10.35).abs() < 1e-9);
    }

    #[test]
    fn a_single_replica_stands_beside_the_several_of_another_variant() {
        let mut outcome = outcome();
        let told = |outcome: &Outcome| -> Vec<String> {
            replicated(outcome).iter().map(|one| format!("{} {}", one.variant, one.cpu().texts().join(" "))).collect()
        };
        assert_eq!(told(&outcome), ["partition-key 70 % 70 % 70 %"]);
        let several = outcome.comparison.variants.last().unwrap().services[0].replicas.clone();
        outcome.comparison.variants[0].services[0].replicas = vec![several[0].clone()];
        assert_eq!(told(&outcome), ["baseline 70 %", "partition-key 70 % 70 % 70 %"]);
        outcome.comparison.variants.pop();
        assert!(replicated(&outcome).is_empty(), "one by one only where there are several");
    }

    #[test]
    fn replicas_are_reported_by_their_cap_where_all_have_one() {
        let mut outcome = outcome();
        let told = |outcome: &Outcome| {
            let all = replicated(outcome);
            (all.len(), all[0].rates().map(|rates| rates.texts().join(" ")), all[0].cpu().texts().join(" "))
        };
        assert_eq!(told(&outcome), (1, Some("20.0/s 20.5/s 19.0/s".to_owned()), "70 % 70 % 70 %".to_owned()));
        let replicas = &mut outcome.comparison.variants.last_mut().unwrap().services[0].replicas;
        (replicas[0].cpu_limit_cores, replicas[1].rate) = (None, None);
        assert_eq!(told(&outcome), (1, None, "0.07 0.07 0.07".to_owned()));
    }
}
