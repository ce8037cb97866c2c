//! `cross-partition-query`: a query that every partition of a store is asked, and that most have no rows for.
//!
//! It is told by what happens: the partitions that answered one query of one request, counted each once, are nearly all
//! that the store has, the same number whatever is asked, and most return nothing. Attempts that were refused do not
//! count, nor does a partition that is asked for its next page. A query that finds rows everywhere needs all partitions
//! and is left alone. Where each partition says as many rows as the others, rows tell nothing (an aggregate gives one
//! each); then only a query for what equals a value counts.
//!
//! It spends more than needed. Whether it is also in the way now is what other detectors say; the ranking knows that.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Exemplar, Figure, Finding, FindingKind};
use narrows_model::trace::Span;
use narrows_model::units;

use crate::Detector;
use crate::calls::{Call, Handled, median_of};
use crate::reading::Reading;
use crate::stores::Store;
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct CrossPartitionQuery;

impl Detector for CrossPartitionQuery {
    fn kind(&self) -> FindingKind {
        FindingKind::CrossPartitionQuery
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds) = (reading.trial, reading.thresholds);
        let seen_partitions = partitions_seen(trial);
        let mut findings = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<&str, Vec<Sighting<'_>>> = BTreeMap::new();
            for sighting in all.iter().flat_map(sightings) {
                kinds.entry(&sighting.answers[0].0.kind).or_default().push(sighting);
            }
            for seen in kinds.into_values() {
                let case = Case::new(trial, (service, operation), seen, (all, &seen_partitions));
                findings.extend(
                    case.filter(|case| case.is_worth_saying(thresholds)).map(|case| case.finding(self, thresholds)),
                );
            }
        }
        findings
    }
}

/// The partitions of each database that any call of the trial went to, by what the spans call it.
fn partitions_seen(trial: &TrialEvidence) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for span in trial.traces.iter().flat_map(|trace| &trace.spans) {
        if let (Some(system), Some(partition)) = (&span.facts.db_system, &span.facts.db_partition) {
            seen.entry(system).or_default().insert(partition);
        }
    }
    seen
}

/// One query of one request: what each partition came to that answered it.
struct Sighting<'a> {
    handled: &'a Handled<'a>,
    /// In order of the first answer.
    answers: Vec<(&'a Call<'a>, Answer)>,
}

/// What one partition answered to one query, pages together.
#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    rows: Option<u64>,
    charge: Option<f64>,
}

/// The call and the answer of each partition.
type Answers<'a> = BTreeMap<&'a str, (&'a Call<'a>, Answer)>;

impl Answer {
    fn add(&mut self, span: &Span) {
        self.rows = span.facts.db_rows.map_or(self.rows, |rows| Some(self.rows.unwrap_or(0).saturating_add(rows)));
        self.charge = span.facts.db_charge.map_or(self.charge, |charge| Some(self.charge.unwrap_or(0.0) + charge));
    }
}

impl Sighting<'_> {
    fn partitions(&self) -> f64 {
        self.answers.len() as f64
    }

    /// The rows of each partition; none when a partition does not say.
    fn rows(&self) -> Option<Vec<u64>> {
        self.answers.iter().map(|(_, answer)| answer.rows).collect()
    }

    /// Whether all partitions say the same number of rows, as they do for an aggregate, or where a client library repeats
    /// the whole answer's: it tells nothing about where the rows lie.
    fn is_alike(&self) -> bool {
        self.rows().is_some_and(|rows| rows.iter().all(|count| *count > 0 && *count == rows[0]))
    }

    /// Partitions without any row; none when that is not known.
    fn empty(&self) -> Option<f64> {
        let rows = self.rows().filter(|_| !self.is_alike())?;
        Some(rows.iter().filter(|rows| **rows == 0).count() as f64)
    }

    /// Charged in all; none when no partition says a charge.
    fn charge(&self) -> Option<f64> {
        self.answers.iter().filter_map(|(_, answer)| answer.charge).reduce(|a, b| a + b)
    }

    /// Charged by partitions that had rows.
    fn useful_charge(&self) -> Option<f64> {
        self.empty()?;
        let with_rows = self.answers.iter().filter(|(_, answer)| answer.rows.is_some_and(|rows| rows > 0));
        self.charge().map(|_| with_rows.filter_map(|(_, answer)| answer.charge).sum())
    }
}

/// For each query of a request, values included, the partitions that answered it. Of several of one statement the one
/// that touched most.
fn sightings<'a>(handled: &'a Handled<'a>) -> Vec<Sighting<'a>> {
    let mut found: BTreeMap<(&str, &str), Answers<'a>> = BTreeMap::new();
    let answered = handled.calls.iter().filter(|call| call.query.is_some() && call.succeeded());
    for (call, partition) in answered.filter_map(|call| Some((call, call.partition()?))) {
        let partitions = found.entry((&call.kind, &call.asked)).or_default();
        partitions.entry(partition).or_insert_with(|| (call, Answer::default())).1.add(call.last());
    }
    let mut best: BTreeMap<&str, Sighting<'_>> = BTreeMap::new();
    for ((kind, _), partitions) in found {
        let sighting = Sighting { handled, answers: partitions.into_values().collect() };
        if best.get(kind).is_none_or(|known| known.answers.len() < sighting.answers.len()) {
            best.insert(kind, sighting);
        }
    }
    best.into_values().collect()
}

/// One query of one operation, over all traces.
struct Case<'a> {
    service: &'a str,
    operation: &'a str,
    seen: Vec<Sighting<'a>>,
    trace_share: f64,
    /// Partitions of the store.
    partitions: usize,
    store: Store,
    peak_share: Option<f64>,
}

impl<'a> Case<'a> {
    fn new(
        trial: &TrialEvidence,
        (service, operation): (&'a str, &'a str),
        seen: Vec<Sighting<'a>>,
        (all, seen_partitions): (&[Handled<'_>], &BTreeMap<&str, BTreeSet<&str>>),
    ) -> Option<Self> {
        let span = seen.first()?.answers.first()?.0.last();
        let store = Store::of(trial, span);
        let system = span.facts.db_system.as_deref().unwrap_or("");
        let touched = seen_partitions.get(system).map_or(0, BTreeSet::len);
        let partitions = if store.partitions.is_empty() { touched } else { store.partitions_now() };
        let whole: f64 = all.iter().map(Handled::weight).sum();
        let trace_share = seen.iter().map(|sighting| sighting.handled.weight()).sum::<f64>() / whole;
        let peak = store.peak(|_, to_ns| trial.is_counted(to_ns));
        let peak_share =
            peak.zip(store.provisioned().filter(|p| *p > 0.0)).map(|(peak, provisioned)| peak / provisioned);
        Some(Self { service, operation, seen, trace_share, partitions, store, peak_share })
    }

    fn median(&self, value: impl Fn(&Sighting<'a>) -> Option<f64>) -> Option<f64> {
        let known: Vec<(f64, f64)> =
            self.seen.iter().filter_map(|sighting| Some((value(sighting)?, sighting.handled.weight()))).collect();
        (!known.is_empty()).then(|| median_of(&known, |pair| *pair))
    }

    /// The mean over requests, each as often as it stands for.
    fn mean(&self, value: impl Fn(&Sighting<'a>) -> Option<f64>) -> Option<f64> {
        let known = self.seen.iter().filter_map(|sighting| Some((value(sighting)?, sighting.handled.weight())));
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
        (weight > 0.0).then(|| sum / weight)
    }

    fn touched(&self) -> f64 {
        self.median(|sighting| Some(sighting.partitions())).unwrap_or(0.0)
    }

    fn empty_share(&self) -> Option<f64> {
        self.median(|sighting| Some(sighting.empty()? / sighting.partitions()))
    }

    /// Share of the requests that touch exactly as many partitions as most do.
    fn same_count_share(&self) -> f64 {
        let touched = self.touched();
        self.mean(|sighting| Some(if sighting.partitions() == touched { 1.0 } else { 0.0 })).unwrap_or(0.0)
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_regular =
            self.seen.len() >= thresholds.regular_traces && self.trace_share >= thresholds.regular_trace_share;
        let is_everywhere = self.partitions >= thresholds.cross_partition_partitions
            && self.touched() >= thresholds.cross_partition_share * self.partitions as f64;
        let is_mostly_empty = self.empty_share().is_none_or(|share| share > thresholds.cross_partition_empty_share);
        let is_meant = self.empty_share().is_some() || !self.is_alike() || self.is_look_up();
        is_regular
            && is_everywhere
            && is_mostly_empty
            && is_meant
            && self.same_count_share() >= thresholds.same_count_share
    }

    /// Whether some requests got as many rows from each partition.
    fn is_alike(&self) -> bool {
        self.seen.iter().any(Sighting::is_alike)
    }

    /// Whether the statement asks for what equals a value: its rows lie together under a suitable key.
    fn is_look_up(&self) -> bool {
        self.example().query.is_some_and(|query| {
            let text = query.shape.text.to_ascii_uppercase();
            text.split_once(" WHERE ").is_some_and(|(_, condition)| condition.contains("= ?"))
        })
    }

    fn charges(&self) -> Option<(f64, f64)> {
        Some((self.mean(Sighting::charge)?, self.mean(Sighting::useful_charge)?))
    }

    /// What part is spent for nothing, and of what.
    fn cost(&self) -> (f64, String) {
        match (self.charges(), self.empty_share()) {
            (Some((all, useful)), _) if all > 0.0 => {
                (((all - useful) / all).clamp(0.0, 1.0), format!("of the request units of {}", self.operation))
            }
            (_, Some(share)) => (share, format!("of the partitions that {} asks", self.operation)),
            _ => (
                1.0 - 1.0 / self.touched().max(1.0),
                format!("of the partitions that {} asks, at most", self.operation),
            ),
        }
    }

    fn finding(&self, detector: &CrossPartitionQuery, thresholds: &Thresholds) -> Finding {
        let operation = self.operation;
        let (cost_share, cost_of) = self.cost();
        let is_shown = self.empty_share().is_some() && self.charges().is_some();
        Finding {
            title: self.title(),
            resource: self.service.into(),
            operation: Some(operation.into()),
            cost_share,
            cost_of,
            confidence: if is_shown { Confidence::High } else { Confidence::Medium },
            reasons: self.reasons(),
            numbers: self.numbers(),
            evidence_text: self.example().query.map(|query| clipped(query.text, TEXT_CHARS_MAX)),
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            ruled_out: self.ruled_out(thresholds),
            falsified_by: format!(
                "With the partition key in the query, {operation} costs as many request units as before."
            ),
            advice: self.advice(),
            caveats: self.caveats().into_iter().map(Into::into).collect(),
            ..detector.finding()
        }
    }

    fn example(&self) -> &'a Call<'a> {
        self.seen[0].answers[0].0
    }

    fn title(&self) -> String {
        let (operation, touched) = (self.operation, self.touched());
        match self.median(Sighting::empty) {
            Some(empty) => {
                format!("{operation} queries {touched:.0} partitions, and {empty:.0} of them have no rows")
            }
            None => format!("{operation} queries {touched:.0} of {} partitions for each result", self.partitions),
        }
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = vec![format!(
            "One query of {} reaches {:.0} of the {} partitions of {}, in {} of its traces ({} traces).",
            self.operation,
            self.touched(),
            self.partitions,
            self.store.name,
            units::percent(self.trace_share),
            self.seen.len()
        )];
        reasons.push(format!(
            "The number is the same in {} of them, whatever the query's values.",
            units::percent(self.same_count_share())
        ));
        if let Some(empty) = self.median(Sighting::empty) {
            reasons.push(format!("{empty:.0} of these partitions returned no rows."));
        }
        if let Some((all, useful)) = self.charges() {
            reasons.push(format!(
                "Each operation costs {} request units, {} of them in partitions that had rows.",
                units::number(all),
                units::number(useful)
            ));
        }
        reasons.extend(self.peak_share.map(|share| {
            format!(
                "A partition of {} used up to {} of its provisioned throughput: queries that return no rows waste part \
                 of it.",
                self.store.name,
                units::percent(share)
            )
        }));
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("partitions touched by one query, median", self.touched(), ""),
            Figure::new("partitions of the store", self.partitions as f64, ""),
        ];
        numbers.extend(
            self.median(Sighting::empty).map(|empty| Figure::new("partitions without rows, median", empty, "")),
        );
        if let Some(all) = self.mean(Sighting::charge) {
            numbers.push(Figure::new("request units per operation", all, "{RU}"));
        }
        if let Some((_, useful)) = self.charges() {
            numbers.push(Figure::new("request units of partitions with rows", useful, "{RU}"));
        }
        numbers.extend(self.peak_share.map(|share| {
            Figure::new("highest share of provisioned throughput used by a partition", share * 100.0, "%")
        }));
        numbers
    }

    fn ruled_out(&self, thresholds: &Thresholds) -> Vec<String> {
        let mut ruled_out = vec![
            "Attempts after a rejection: only partitions that responded count, each once.".to_owned(),
            "Pages: a partition that is called again for the same query counts once.".into(),
        ];
        if self.empty_share().is_some() {
            ruled_out.push(format!(
                "A query that needs all partitions: more than {} of them return nothing.",
                units::percent(thresholds.cross_partition_empty_share)
            ));
        }
        ruled_out
    }

    fn advice(&self) -> String {
        format!(
            "Put the partition key into the query behind {} of {}, so that {} queries only the partition that has the rows. \
             If the query cannot know the key, choose a partition key that it does know, or keep a second copy of the data \
             under such a key.",
            self.operation, self.service, self.store.name
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.store.partitions.is_empty() {
            caveats.push(format!(
                "{} does not report its partitions; their number is taken from the traces.",
                self.store.name
            ));
        }
        if self.empty_share().is_none() {
            caveats.push(if self.is_alike() {
                "Each partition reports as many rows as the others, as for an aggregate. It is not shown that most have \
                 nothing to add, only that the query filters by equality."
                    .into()
            } else {
                "The traces do not record how many rows were returned, so it is not shown that most partitions have none.".into()
            });
        }
        if self.mean(Sighting::charge).is_none() {
            caveats.push("The traces record no charge, so partitions are counted instead of request units.".into());
        }
        caveats
    }
}

fn shown(sighting: &Sighting<'_>) -> Exemplar {
    exemplar(sighting.handled.request.trace, sighting.answers.iter().map(|(call, _)| call.last()))
}

#[cfg(test)]
mod tests;
