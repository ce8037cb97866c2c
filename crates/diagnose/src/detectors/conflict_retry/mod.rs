//! `conflict-retry`: transactions meet in a database, one has to give way, and its caller gets an error or does it again.
//!
//! What a conflict costs depends on what follows it. Without another try it is an error to somebody; with one it is the
//! time of all tries but the last. Both are told, of each operation by itself, because the same deadlock may be retried
//! in one place and forgotten in another. `retry-storm` looks at attempts that multiply while something fails; this looks
//! at a rate of conflicts, which may be the same all the time.
//!
//! A few conflicts that are retried cost nothing worth saying. Where no span says why a transaction failed, the store's
//! own counters (`wsrep_local_bf_aborts`, `wsrep_local_cert_failures`, deadlocks) may still tell.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::series::Series;
use narrows_model::trace::TraceId;
use narrows_model::units;

use crate::Detector;
use crate::calls::{Handled, median_of, went_wrong};
use crate::conflicts::{Met, is_conflict, met};
use crate::reading::Reading;
use crate::requests::query_text;
use crate::stores::Store;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct ConflictRetry;

/// What databases count of their conflicts, in the names of their own, with `_` between words.
const COUNTERS: [&str; 5] =
    ["wsrep_local_bf_aborts", "wsrep_local_cert_failures", "innodb_deadlocks", "deadlocks", "postgresql_deadlocks"];

impl Detector for ConflictRetry {
    fn kind(&self) -> FindingKind {
        FindingKind::ConflictRetry
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let of_operations = reading.operations.iter();
        let cases: Vec<Case<'_>> = of_operations
            .filter_map(|((service, operation), all)| Case::of(reading, (service, operation), all))
            .collect();
        let mut findings: Vec<Finding> =
            cases.iter().filter(|case| case.is_worth_saying()).map(|case| case.finding(self)).collect();
        if reading.trial.traces.iter().flat_map(|trace| &trace.spans).all(|span| !is_conflict(span)) {
            findings.extend(of_counters(self, reading));
        }
        findings
    }
}

/// The requests of one operation that met a conflict, those that lost most first.
struct Case<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    operation: &'a str,
    met: Vec<Met<'a>>,
    /// All requests, those that failed, and the time of them all, as often as their traces stand for.
    requests: f64,
    failed: f64,
    time_ns: f64,
}

impl<'a> Case<'a> {
    fn of(reading: &'a Reading<'a>, (service, operation): (&'a str, &'a str), all: &'a [Handled<'a>]) -> Option<Self> {
        let mut met: Vec<Met<'a>> = all.iter().filter_map(met).collect();
        met.sort_by_key(|met| std::cmp::Reverse((met.failed, met.lost_ns)));
        let sum =
            |of: &dyn Fn(&Handled<'a>) -> f64| all.iter().map(|handled| handled.weight() * of(handled)).sum::<f64>();
        let is_failed = |handled: &Handled<'a>| f64::from(u8::from(went_wrong(handled.request.entry)));
        let (requests, failed, time_ns) = (sum(&|_| 1.0), sum(&is_failed), sum(&Handled::latency_ns));
        (!met.is_empty()).then_some(Self { reading, service, operation, met, requests, failed, time_ns })
    }

    /// Requests that met a conflict and are so, as often as their traces stand for.
    fn count(&self, is_so: impl Fn(&Met<'_>) -> bool) -> f64 {
        // From 0, as the sum of none is -0.
        self.met.iter().filter(|met| is_so(met)).fold(0.0, |sum, met| sum + met.handled.weight())
    }

    /// Of all requests of the operation.
    fn share(&self, is_so: impl Fn(&Met<'_>) -> bool) -> f64 {
        self.count(is_so) / self.requests.max(f64::MIN_POSITIVE)
    }

    /// Share of the operation's time that tries took which came to nothing.
    fn lost_share(&self) -> f64 {
        let lost: f64 = self.met.iter().map(|met| met.handled.weight() * met.lost_ns as f64).sum();
        (lost / self.time_ns.max(1.0)).min(1.0)
    }

    fn traces(&self, is_so: impl Fn(&Met<'_>) -> bool) -> usize {
        let ids = self.met.iter().filter(|met| is_so(met)).map(|met| met.handled.request.trace.id);
        ids.collect::<BTreeSet<TraceId>>().len()
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = self.reading.thresholds;
        let is_frequent = self.share(|_| true) >= thresholds.conflict_share;
        let is_dear = self.lost_share() >= thresholds.conflict_time_share;
        let is_error = |met: &Met<'_>| met.failed;
        let failed = self.count(is_error);
        let explains = failed > 0.0 && failed >= thresholds.conflict_error_share * self.failed;
        self.traces(|_| true) >= thresholds.conflict_traces && (is_frequent || is_dear)
            || explains && self.traces(is_error) >= thresholds.conflict_error_traces
    }

    fn store(&self) -> String {
        let span = self.met.first().and_then(|met| met.conflicts.first());
        span.map_or_else(String::new, |span| Store::of(self.reading.trial, span).name)
    }

    /// How the store said it, the most frequent first.
    fn codes(&self) -> Vec<&str> {
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        for span in self.met.iter().flat_map(|met| &met.conflicts) {
            let said = [&span.facts.db_status, &span.facts.error_type].into_iter().flatten().next();
            *codes.entry(said.map_or("", String::as_str)).or_default() += 1;
        }
        codes.remove("");
        let mut codes: Vec<(&str, usize)> = codes.into_iter().collect();
        codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        codes.into_iter().map(|(code, _)| code).take(3).collect()
    }

    fn finding(&self, detector: &ConflictRetry) -> Finding {
        let (store, operation) = (self.store(), self.operation);
        let (lost, failed) = (self.lost_share(), self.share(|met| met.failed));
        let (cost_share, cost_of) = if failed >= lost {
            (failed, format!("of the requests of {operation}, which fail because of it"))
        } else {
            (lost, format!("of the time of {operation}, in failed attempts"))
        };
        Finding {
            title: self.title(&store),
            resource: store.clone(),
            operation: Some(operation.into()),
            cost_share,
            cost_of,
            confidence: if self.is_counted() { Confidence::High } else { Confidence::Medium },
            reasons: self.reasons(&store),
            numbers: self.numbers(),
            evidence_text: self.statement(),
            exemplars: self.exemplars(),
            ruled_out: vec![
                "Duplicate keys and other errors of the store: only conflicts between two transactions count.".into(),
                "A store that is too slow: the calls that count report a conflict with another transaction.".into(),
            ],
            falsified_by: format!(
                "With one request of {operation} at a time, {store} still rejects as large a share of its transactions."
            ),
            advice: self.advice(&store),
            caveats: Vec::new(),
            ..detector.finding()
        }
    }

    fn title(&self, store: &str) -> String {
        let share = units::percent(self.share(|_| true));
        let again = self.count(|met| met.began_again && !met.failed);
        let then = match (self.count(|met| met.failed), again) {
            (failed, 0.0) if failed > 0.0 => "and fail without a retry".to_owned(),
            (0.0, _) => "and repeat their work".to_owned(),
            (failed, again) => format!("of which {} fail", units::percent(failed / (failed + again))),
        };
        format!("{share} of the requests of {} conflict with another transaction in {store}, {then}", self.operation)
    }

    /// Whether the counts over all spans show calls of this operation that failed.
    fn is_counted(&self) -> bool {
        let is_its = |operation: &&narrows_model::operation::OperationEvidence| {
            operation.service == self.service
                && operation.calls.iter().any(|call| call.is_database && call.failed > 0.0)
        };
        self.reading.trial.operations.iter().any(|operation| is_its(&operation))
    }

    fn reasons(&self, store: &str) -> Vec<String> {
        let conflicts: usize = self.met.iter().map(|met| met.conflicts.len()).sum();
        let codes = self.codes();
        let said = if codes.is_empty() { "an error's text".to_owned() } else { codes.join(", ") };
        let mut reasons = vec![format!(
            "{store} reports it ({said}) in {} of the sampled requests, {} each on average.",
            units::count(self.met.len() as u64),
            units::times(conflicts as f64 / self.met.len().max(1) as f64)
        )];
        let failed = self.share(|met| met.failed);
        if failed > 0.0 {
            let all = self.count(|met| met.failed) / self.failed.max(f64::MIN_POSITIVE);
            reasons.push(format!(
                "{} of the requests fail after it: {} of all that fail in this operation.",
                units::percent(failed),
                units::percent(all.min(1.0))
            ));
        }
        let again: Vec<&Met<'_>> = self.met.iter().filter(|met| met.began_again).collect();
        if !again.is_empty() {
            let lost_ns = median_of(&again, |met| (met.lost_ns as f64, met.handled.weight()));
            reasons.push(format!(
                "Those that are retried lose {} (median) between their first attempt and their last, {} of the \
                 operation's time.",
                units::duration(lost_ns),
                units::percent(self.lost_share())
            ));
        }
        reasons.extend(
            counted_by_stores(self.reading.trial).into_iter().filter(|counted| counted.service == store).map(
                |counted| {
                    format!(
                        "{store} itself counts {} of them ({}).",
                        units::count(counted.sum.round() as u64),
                        counted.name
                    )
                },
            ),
        );
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        vec![
            Figure::new("requests that met a conflict", self.share(|_| true) * 100.0, "%"),
            Figure::new("requests that failed after a conflict", self.share(|met| met.failed) * 100.0, "%"),
            Figure::new("requests that were retried", self.share(|met| met.began_again) * 100.0, "%"),
            Figure::new("time in failed attempts", self.lost_share() * 100.0, "%"),
            Figure::new("requests in the traces", self.met.len() as f64, ""),
        ]
    }

    fn statement(&self) -> Option<String> {
        let texts = self.met.iter().flat_map(|met| &met.conflicts).filter_map(|span| query_text(span));
        texts.into_iter().next().map(|text| clipped(text, TEXT_CHARS_MAX))
    }

    fn exemplars(&self) -> Vec<narrows_model::finding::Exemplar> {
        let spans = |met: &Met<'a>| met.conflicts.to_vec();
        self.met.iter().take(EXEMPLARS_MAX).map(|met| exemplar(met.handled.request.trace, spans(met))).collect()
    }

    fn advice(&self, store: &str) -> String {
        let retry = if self.count(|met| met.failed) > 0.0 {
            format!(
                "Retry the whole transaction of {} when {store} reports a conflict, not one statement of it: after a \
                 random time, a few times at most. ",
                self.operation
            )
        } else {
            "Keep the retries, with a random wait and a limit. ".to_owned()
        };
        format!(
            "{retry}Then avoid conflicts: lock rows in one order everywhere (sorted by their key), keep transactions \
             short with nothing slow between their statements, and lock less (an update that adds instead of writing \
             back a value that was read, a finer key, a lower isolation level). In a cluster, send writes of one row \
             to one node."
        )
    }
}

/// What a store says of its own conflicts over the counted time.
struct CountedByStore<'a> {
    service: &'a str,
    name: &'a str,
    sum: f64,
}

/// The counters of conflicts that grew, each over its replicas.
fn counted_by_stores(trial: &TrialEvidence) -> Vec<CountedByStore<'_>> {
    let mut counted: Vec<CountedByStore<'_>> = Vec::new();
    for series in trial.series.iter().filter(|series| is_counter(&series.key.name)) {
        let (service, name, sum) = (series.key.service.as_str(), series.key.name.as_str(), grown(trial, series));
        match counted.iter_mut().find(|one| (one.service, one.name) == (service, name)) {
            Some(one) => one.sum += sum,
            None => counted.push(CountedByStore { service, name, sum }),
        }
    }
    counted.retain(|one| one.sum > 0.0);
    counted
}

fn is_counter(name: &str) -> bool {
    let name = name.to_lowercase().replace(['.', '-'], "_");
    COUNTERS.iter().any(|known| name == *known || name.ends_with(&format!("_{known}")))
}

/// How much a series grew in counted time; one whose unit is per second is a rate already.
fn grown(trial: &TrialEvidence, series: &Series) -> f64 {
    let counted = |points: &[narrows_model::series::Point]| {
        let pairs = points.windows(2).filter(|pair| trial.is_counted(pair[1].time_ns));
        pairs.map(|pair| (pair[1].time_ns - pair[0].time_ns) as f64 / 1e9 * pair[1].value.max(0.0)).sum::<f64>()
    };
    if series.key.unit.ends_with("/s") {
        return counted(&series.points);
    }
    let first = series.points.first().map(|point| narrows_model::series::Point { value: 0.0, ..*point });
    counted(&first.into_iter().chain(series.rates()).collect::<Vec<_>>())
}

/// What the stores' own counters say, where no span does.
fn of_counters(detector: &ConflictRetry, reading: &Reading<'_>) -> Vec<Finding> {
    let load = reading.trial.counted_load();
    let requests = (load.succeeded + load.errors.total()) as f64;
    let mut stores: BTreeMap<&str, Vec<CountedByStore<'_>>> = BTreeMap::new();
    for counted in counted_by_stores(reading.trial) {
        stores.entry(counted.service).or_default().push(counted);
    }
    let told = |(store, counted): (&str, Vec<CountedByStore<'_>>)| {
        let sum: f64 = counted.iter().map(|one| one.sum).sum();
        let share = sum / requests.max(1.0);
        (share >= reading.thresholds.conflict_share).then(|| Finding {
            title: format!("{store} ended {} conflicting transactions", units::count(sum.round() as u64)),
            resource: store.into(),
            cost_share: share.min(1.0),
            cost_of: "of the load's requests, if each meets one at most".into(),
            confidence: Confidence::Low,
            reasons: counted
                .iter()
                .map(|one| format!("{} grew by {}.", one.name, units::count(one.sum.round() as u64)))
                .collect(),
            numbers: counted.iter().map(|one| Figure::new(one.name, one.sum, "")).collect(),
            falsified_by: format!("{store} counts as many conflicts with one client."),
            advice: "Record in spans why a transaction failed (`db.response.status_code`, `error.type`), to see which \
                     operation it was and whether it was retried. Lock rows in one order, and retry the whole \
                     transaction when it fails."
                .into(),
            caveats: vec!["No span shows which operation had them or how it ended.".into()],
            ..detector.finding()
        })
    };
    stores.into_iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests;
