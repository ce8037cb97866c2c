//! `sidecar-cost`: what the proxies beside the services take of CPU and time, for each time that a request passes one.
//!
//! In one trial the sidecars' share of all CPU and CPU per traversal are known, and where the sidecars send spans the
//! time of one hop. What they add to the latency shows only beside the same system without them, and only at the same
//! rate: at another one the services themselves cost something else. So rates that differ are refused, and
//! `unequal-rates` says so in its place.

use narrows_model::comparison::{Comparison, SidecarSummary, TraversalCount, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::units;

use crate::Detector;
use crate::detectors::unequal_rates::apart;
use crate::reading::Reading;
use crate::sidecars::{counterpart, first_of_variants, hop_ns, of_trial, with_sidecars};
use crate::thresholds::Thresholds;

/// See the module.
#[derive(Debug)]
pub struct SidecarCost;

/// What the finding is about.
const SIDECARS: &str = "sidecars";

impl Detector for SidecarCost {
    fn kind(&self) -> FindingKind {
        FindingKind::SidecarCost
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds) = (reading.trial, reading.thresholds);
        let seen = of_trial(trial).filter(|seen| seen.cpu_share >= thresholds.sidecar_cpu_share);
        seen.map(|seen| of_one(self, trial, &seen)).into_iter().collect()
    }

    fn detect_run(&self, run: &RunEvidence, comparison: &Comparison, thresholds: &Thresholds) -> Vec<(usize, Finding)> {
        let of = |at: usize| {
            let other = counterpart(run, at).filter(|_| !with_sidecars(&run.trials[at]).is_empty())?;
            let pair = Pair::of(run, comparison, (other, at), thresholds)?;
            pair.is_worth_saying().then(|| (at, pair.finding(self)))
        };
        first_of_variants(run).into_iter().filter_map(of).collect()
    }
}

/// How a count of traversals came about.
fn counted(seen: &SidecarSummary) -> String {
    let number = units::number(seen.traversals_per_request);
    match seen.counted_from {
        TraversalCount::Hops => format!("A request passes {number} sidecars on average, by their own spans."),
        TraversalCount::Calls => {
            format!("A request passes {number} sidecars on average, by the calls of the services.")
        }
        TraversalCount::Services => {
            format!("A request is assumed to pass {number} sidecars, as in a chain of services: no span shows more.")
        }
    }
}

fn each(seen: &SidecarSummary) -> Option<String> {
    seen.cpu_seconds_per_traversal.map(|seconds| units::duration(seconds * 1e9))
}

/// What one trial says by itself.
fn of_one(detector: &SidecarCost, trial: &TrialEvidence, seen: &SidecarSummary) -> Finding {
    let share = units::percent(seen.cpu_share);
    let hop = hop_ns(trial);
    let mut reasons = vec![format!("They use {} on average.", units::cores(seen.cpu_mean)), counted(seen)];
    reasons
        .extend(hop.map(|ns| format!("One hop takes {} (median), excluding the time behind it.", units::duration(ns))));
    let mut numbers = numbers_of(seen);
    numbers.extend(hop.map(|ns| Figure::new("time of one hop, median", ns, "ns")));
    let each = each(seen).map_or_else(String::new, |each| format!(", {each} each time that a request passes one"));
    Finding {
        title: format!("the sidecars use {share} of all CPU{each}"),
        resource: SIDECARS.into(),
        cost_share: seen.cpu_share,
        cost_of: "of the CPU of all services".into(),
        confidence: Confidence::Medium,
        reasons,
        numbers,
        falsified_by: "Without sidecars, at the same rate, a request costs as much CPU.".into(),
        advice: advice(),
        caveats: vec![
            "To see their effect on latency, compare with the same system without them, at the same rate.".into(),
        ],
        ..detector.finding()
    }
}

fn advice() -> String {
    "Look which of it is needed: encryption between processes of one machine, an access log written for each request, a span \
     for each hop. Keep connections to the next hop open. Where a chain of services always goes together, one proxy before \
     all of them costs less than one beside each."
        .into()
}

fn numbers_of(seen: &SidecarSummary) -> Vec<Figure> {
    let mut numbers = vec![
        Figure::new("CPU of the sidecars", seen.cpu_mean, "{cores}"),
        Figure::new("their share of all CPU", seen.cpu_share * 100.0, "%"),
        Figure::new("sidecars passed by a request", seen.traversals_per_request, ""),
    ];
    let each = seen.cpu_seconds_per_traversal;
    numbers.extend(each.map(|seconds| Figure::new("CPU for each sidecar passed", seconds, "s")));
    numbers
}

/// A variant with sidecars beside the same without, at one rate.
struct Pair<'a> {
    without: &'a VariantSummary,
    with: &'a VariantSummary,
    seen: &'a SidecarSummary,
    hop_ns: Option<f64>,
    thresholds: &'a Thresholds,
}

impl<'a> Pair<'a> {
    /// None when they answered at different rates.
    fn of(
        run: &RunEvidence,
        comparison: &'a Comparison,
        (without, with): (usize, usize),
        thresholds: &'a Thresholds,
    ) -> Option<Self> {
        let summary = |at: usize| {
            let name = &run.trials[at].trial.variant;
            comparison.variants.iter().find(|variant| variant.variant == *name && variant.rate > 0.0)
        };
        let hop_ns = hop_ns(&run.trials[with]);
        let (without, with) = (summary(without)?, summary(with)?);
        let is_equal = apart(without.rate, with.rate) <= thresholds.unequal_rate_share;
        Some(Self { without, with, seen: with.sidecars.as_ref()?, hop_ns, thresholds }).filter(|_| is_equal)
    }

    /// How much longer a request takes, as a share: of its median, of its 95 %.
    fn added(&self) -> (f64, f64) {
        let share = |a: f64, b: f64| if a > 0.0 { b / a - 1.0 } else { 0.0 };
        (share(self.without.p50_ns, self.with.p50_ns), share(self.without.p95_ns, self.with.p95_ns))
    }

    fn is_worth_saying(&self) -> bool {
        let is_slower = self.added().0 >= self.thresholds.sidecar_latency_share;
        self.seen.cpu_share >= self.thresholds.sidecar_cpu_share || is_slower && self.seen.cpu_share > 0.01
    }

    /// CPU for each request without and with them, core-seconds.
    fn cpu(&self) -> Option<(f64, f64)> {
        self.without.cpu_seconds_per_request.zip(self.with.cpu_seconds_per_request)
    }

    fn finding(&self, detector: &SidecarCost) -> Finding {
        let (p50, p95) = (self.with.p50_ns - self.without.p50_ns, self.with.p95_ns - self.without.p95_ns);
        let each = each(self.seen).map_or_else(String::new, |each| format!("{each} of CPU for each one passed, "));
        let share = self.cpu().map_or(self.seen.cpu_share, |(a, b)| (1.0 - a / b).clamp(0.0, 1.0));
        Finding {
            title: format!("the sidecars cost {each}{} at the median and {} at p95", signed(p50), signed(p95)),
            resource: SIDECARS.into(),
            cost_share: share,
            cost_of: "of the CPU for each request".into(),
            confidence: if self.seen.counted_from == TraversalCount::Services {
                Confidence::Medium
            } else {
                Confidence::High
            },
            reasons: self.reasons(),
            numbers: self.numbers(),
            ruled_out: vec![format!(
                "Another load: {} and {} differ by no more than {} in throughput.",
                units::rate(self.without.rate),
                units::rate(self.with.rate),
                units::percent(self.thresholds.unequal_rate_share)
            )],
            falsified_by: format!(
                "{} without its sidecars, at the same rate, costs as much CPU for each request.",
                self.with.variant
            ),
            advice: advice(),
            caveats: vec![
                "On one machine, sidecars also take CPU from the services; on several machines they would not.".into(),
            ],
            ..detector.finding()
        }
    }

    fn reasons(&self) -> Vec<String> {
        let (without, with) = (&self.without.variant, &self.with.variant);
        let mut reasons = vec![counted(self.seen)];
        reasons.extend(self.cpu().map(|(a, b)| {
            let own = b * self.seen.cpu_share;
            let rest = units::duration((b - own) * 1e9);
            format!(
                "CPU for each request is {} in {without} and {} in {with}, of which the sidecars themselves use {} ({}) and \
                 the services {rest}.",
                units::duration(a * 1e9),
                units::duration(b * 1e9),
                units::duration(own * 1e9),
                units::percent(self.seen.cpu_share)
            )
        }));
        reasons.push(format!(
            "Latency goes from {} to {} at the median and from {} to {} at p95.",
            units::duration(self.without.p50_ns),
            units::duration(self.with.p50_ns),
            units::duration(self.without.p95_ns),
            units::duration(self.with.p95_ns)
        ));
        let hop = self.hop_ns.map(|ns| format!("One hop takes {} (median), by its own span.", units::duration(ns)));
        reasons.extend(hop);
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = numbers_of(self.seen);
        if let Some((a, b)) = self.cpu() {
            numbers.push(Figure::new("CPU for each request, without", a, "s"));
            numbers.push(Figure::new("CPU for each request, with", b, "s"));
        }
        numbers.push(Figure::new("added to the median", self.with.p50_ns - self.without.p50_ns, "ns"));
        numbers.push(Figure::new("added to p95", self.with.p95_ns - self.without.p95_ns, "ns"));
        numbers.extend(self.hop_ns.map(|ns| Figure::new("time of one hop, median", ns, "ns")));
        numbers
    }
}

/// `+3.20 ms`, `−0.10 ms`.
fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "−" } else { "+" }, units::duration(ns.abs()))
}
