//! Requests of services over time, from whichever metrics tell of them.
//!
//! Comparisons without traces read requests, errors and mean latency under the names of `series/services.rs`. Here they
//! are made of counters (`sources.rs`): rates of one service are added up over its replicas, methods and routes. Of
//! several metrics that tell of the same requests, the one that says how long they took counts, of two the one with more
//! requests. A series that has such a name already stays as it is.
//!
//! Deltas are not read: only cumulative counters are, as Prometheus has them.

mod sources;

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::series::{Point, Series, SeriesKey, names, services};

use self::sources::POD;
pub(crate) use self::sources::{Part, Role, SERVICE, STATUS, Source, known};
use super::grid::Grid;

/// Services, and pairs of caller and callee, that are told apart; further ones are left out.
const SUBJECTS_MAX: usize = 5_000;
/// The longest name of a service that is made of labels, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Adds what counters say of the requests of each service.
pub(crate) fn add_requests(trial: &mut TrialEvidence) {
    let mut requests = Requests::new(known());
    for series in trial.series.iter().filter(|series| !series.key.unit.ends_with("/s")) {
        requests.add(&series.key, &|| series.rates(), &|| series.points.clone());
    }
    // Counters that a mapping has named so are no rates.
    let is_rate = |key: &SeriesKey| {
        key.unit.ends_with("/s") || ![services::REQUESTS, services::ERRORS].contains(&key.name.as_str())
    };
    let subject = |key: &SeriesKey| (key.name.clone(), key.service.clone(), key.labels.get(services::PEER).cloned());
    let known: BTreeSet<_> =
        trial.series.iter().filter(|series| is_rate(&series.key)).map(|series| subject(&series.key)).collect();
    let is_known = |added: &Series| known.contains(&subject(&added.key));
    let added: Vec<Series> = requests.series().into_iter().filter(|added| !is_known(added)).collect();
    trial.series.extend(added);
}

/// A service, and its callee where it is about calls.
type Subject = (String, Option<String>);

/// Rates by subject and source.
pub(crate) struct Requests {
    sources: Vec<Source>,
    /// By subject and the source's position in the list.
    of: BTreeMap<Subject, BTreeMap<usize, Parts>>,
}

/// Rates of one source.
#[derive(Default)]
struct Parts {
    counts: Vec<Vec<Point>>,
    sums: Vec<Vec<Point>>,
    failed: Vec<Vec<Point>>,
    /// Whether it says how requests ended.
    tells_errors: bool,
}

impl Requests {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        Self { sources, of: BTreeMap::new() }
    }

    /// Adds a series if it is of a source. `rates` is its increase per second, `values` what a gauge shows.
    pub(crate) fn add(&mut self, key: &SeriesKey, rates: &dyn Fn() -> Vec<Point>, values: &dyn Fn() -> Vec<Point>) {
        for (at, source) in self.sources.iter().enumerate() {
            let Some(part) = source.part(&key.name).filter(|_| is_of(source, key)) else { continue };
            let Some(subject) = subject(source, key) else { continue };
            if self.of.len() >= SUBJECTS_MAX && !self.of.contains_key(&subject) {
                continue;
            }
            let parts = self.of.entry(subject).or_default().entry(at).or_default();
            let points = if source.role == Role::Memory { values() } else { rates() };
            let scale = if part == Part::Sum || source.role != Role::Durations { source.factor } else { 1.0 };
            let points: Vec<Point> =
                points.into_iter().map(|point| Point { value: point.value * scale, ..point }).collect();
            let failed: Vec<bool> =
                key.labels.iter().filter_map(|(label, value)| sources::has_failed(label, value)).collect();
            match (part, source.role) {
                (Part::Sum, _) => parts.sums.push(points),
                (Part::Count, Role::Errors) => parts.failed.push(points),
                (Part::Count, _) => {
                    if failed.contains(&true) {
                        parts.failed.push(points.clone());
                    }
                    parts.counts.push(points);
                }
            }
            parts.tells_errors |= !failed.is_empty() || source.role == Role::Errors;
        }
    }

    /// The series of all subjects.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut series = Vec::new();
        for (subject, parts) in &self.of {
            self.put_requests(subject, parts, &mut series);
            for (role, name, unit) in
                [(Role::Cpu, names::CPU_CORES, "{cpu}"), (Role::Memory, names::MEMORY_BYTES, "By")]
            {
                let first = parts.iter().find(|(at, _)| self.sources[**at].role == role);
                series.extend(first.map(|(_, parts)| of_subject(subject, name, unit, sum(&parts.counts))));
            }
        }
        series
    }

    fn put_requests(&self, subject: &Subject, parts: &BTreeMap<usize, Parts>, series: &mut Vec<Series>) {
        let all =
            |role: Role| parts.iter().filter(move |(at, _)| self.sources[**at].role == role).map(|(_, parts)| parts);
        let most = |role: Role| all(role).max_by(|one, other| total(&one.counts).total_cmp(&total(&other.counts)));
        let timed = most(Role::Durations).filter(|parts| !parts.sums.is_empty());
        let Some(counted) = timed.or_else(|| most(Role::Requests)) else { return };
        let requests = sum(&counted.counts);
        let telling = std::iter::once(counted).chain(all(Role::Requests)).chain(all(Role::Errors));
        if let Some(telling) = telling.into_iter().find(|parts| parts.tells_errors) {
            let errors = zero_where_missing(sum(&telling.failed), &requests);
            series.push(of_subject(subject, services::ERRORS, "{request}/s", errors));
        }
        if let Some(timed) = timed {
            let rates: BTreeMap<i64, f64> = requests.iter().map(|point| (point.time_ns, point.value)).collect();
            let mean = |point: Point| {
                let value = point.value / rates.get(&point.time_ns)?;
                value.is_finite().then_some(Point { value, ..point })
            };
            let latency = sum_on(&timed.sums, &timed.counts).into_iter().filter_map(mean).collect();
            series.push(of_subject(subject, services::LATENCY, "s", latency));
        }
        series.push(of_subject(subject, services::REQUESTS, "{request}/s", requests));
    }
}

fn of_subject(subject: &Subject, name: &str, unit: &str, points: Vec<Point>) -> Series {
    let (service, peer) = subject.clone();
    let labels = peer.into_iter().map(|peer| (services::PEER.to_owned(), peer)).collect();
    Series { key: SeriesKey { name: name.to_owned(), unit: unit.to_owned(), service, replica: 0, labels }, points }
}

fn total(series: &[Vec<Point>]) -> f64 {
    series.iter().flatten().map(|point| point.value).sum()
}

fn sum(series: &[Vec<Point>]) -> Vec<Point> {
    sum_on(series, series)
}

/// The sum at the instants that other series have.
fn sum_on(series: &[Vec<Point>], grid_of: &[Vec<Point>]) -> Vec<Point> {
    Grid::of(grid_of.iter()).sum(series)
}

/// A counter of failures appears with the first one.
fn zero_where_missing(errors: Vec<Point>, requests: &[Point]) -> Vec<Point> {
    let known: BTreeMap<i64, f64> = errors.into_iter().map(|point| (point.time_ns, point.value)).collect();
    requests.iter().map(|point| Point { value: known.get(&point.time_ns).copied().unwrap_or(0.0), ..*point }).collect()
}

/// Whether a series has the label that a source needs. Sums over the containers of a pod or of a machine are no source.
fn is_of(source: &Source, key: &SeriesKey) -> bool {
    source.only.is_none_or(|(label, value)| key.labels.get(label).is_some_and(|has| has == value))
        && !is_sum(key)
        && !is_pause(key)
}

/// Whether a series of cAdvisor is a sum over the containers of a pod.
pub(crate) fn is_sum(key: &SeriesKey) -> bool {
    is_of_pod(key, "")
}

/// Whether a series of cAdvisor is of the container that holds a pod's network, and does nothing.
fn is_pause(key: &SeriesKey) -> bool {
    is_of_pod(key, "POD")
}

fn is_of_pod(key: &SeriesKey, container: &str) -> bool {
    let name = key.labels.get("container").map_or("", String::as_str);
    key.name.starts_with("container_") && key.labels.contains_key("pod") && name == container
}

/// The service and the replica of a container, a pod or a sum over its containers on a page of cAdvisor or the kubelet; `None`
/// for other control groups.
pub(crate) fn container_of(key: &SeriesKey) -> Option<(String, String)> {
    let service = label_of(key, POD.iter().copied()).filter(|_| !is_pause(key))?;
    let replica = ["pod", "name", "id"].iter().find_map(|label| key.labels.get(*label).filter(|id| !id.is_empty()));
    Some((service, replica.cloned().unwrap_or_default()))
}

/// Whom a series of a source is about; `None` where no label says it.
fn subject(source: &Source, key: &SeriesKey) -> Option<Subject> {
    let of_source = || label_of(key, source.service.iter().map(String::as_str));
    let service = of_source()
        .or_else(|| Some(key.service.clone()).filter(|name| !name.is_empty()))
        .or_else(|| service_of(key))?;
    let peer = match source.name.as_str() {
        // A mapping has put it there.
        name if name.starts_with("service.") => key.labels.get(services::PEER).cloned(),
        _ if source.peer.is_empty() => None,
        _ => Some(label_of(key, source.peer.iter().map(String::as_str))?),
    };
    Some((service, peer))
}

/// The service that the labels of any metric name.
pub(crate) fn service_of(key: &SeriesKey) -> Option<String> {
    label_of(key, SERVICE.iter().copied())
}

fn label_of<'l>(key: &SeriesKey, mut labels: impl Iterator<Item = &'l str>) -> Option<String> {
    labels.find_map(|label| {
        let value = key.labels.get(label).filter(|value| !value.is_empty() && *value != "unknown")?;
        let name = if label == "pod" { workload(value) } else { host(value) };
        Some(name.chars().take(NAME_BYTES_MAX / 4).collect()).filter(|name: &String| !name.is_empty())
    })
}

/// `shop/cart` of OpenTelemetry's `job`, and `cart.shop.svc.cluster.local:8080`, are `cart`.
fn host(value: &str) -> &str {
    let name = value.rsplit('/').next().unwrap_or(value);
    let name = name.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(name, |(host, _)| host);
    match name.find(".svc").and_then(|_| name.split('.').next()) {
        Some(service) => service,
        None => name,
    }
}

/// A pod without the random end of its name: `cart-6d4cf56db6-x7k2p` and `cart-0` are `cart`.
fn workload(pod: &str) -> &str {
    let is_random = |part: &str| {
        let is_text = part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        is_text && (part.parse::<u32>().is_ok() || part.len() == 5)
    };
    let is_hash = |part: &str| (8..=10).contains(&part.len()) && part.chars().any(|c| c.is_ascii_digit());
    let Some((name, _)) = pod.rsplit_once('-').filter(|(_, end)| is_random(end)) else { return pod };
    name.rsplit_once('-').filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests;
