//! `offered-load-limited`: a load that asks too little to say what the system can carry.
//!
//! A finding on the experiment, in two places. In a trial whose load rises in steps, as one does to find a limit: every
//! step is answered in full, takes as long as the first, and no service is near a limit. And between variants: where one
//! changes the latency, or the CPU for each request, and the throughput is the same because each answers all that is asked
//! for, somebody will read "no gain" from the throughput. A trial of one step that answers what it is asked is healthy, and
//! nothing is said of it; so is a closed load whose users do not think, for its throughput follows from the latency.
//!
//! A load leaves room when nearly all users of a closed one think at any time (Little's law), for then throughput hardly
//! grows even if requests take no time, or when nearly every arrival of an open one is answered, in all intervals.

use narrows_model::comparison::{Change, Comparison, Meaning, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::run::TrialState;
use narrows_model::units;

use crate::Detector;
use crate::cpu::Cpu;
use crate::intervals::{Interval, intervals};
use crate::reading::Reading;
use crate::thresholds::Thresholds;

/// See the module.
#[derive(Debug)]
pub struct OfferedLoadLimited;

/// What the finding is about.
const EXPERIMENT: &str = "experiment";

impl Detector for OfferedLoadLimited {
    fn kind(&self) -> FindingKind {
        FindingKind::OfferedLoadLimited
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        of_steps(self, reading).into_iter().collect()
    }

    fn detect_run(&self, run: &RunEvidence, comparison: &Comparison, thresholds: &Thresholds) -> Vec<(usize, Finding)> {
        let Some((first, later)) = comparison.variants.split_first() else { return Vec::new() };
        let finished = |variant: &VariantSummary| {
            let is_meant =
                |trial: &TrialEvidence| trial.trial.variant == variant.variant && trial.trial.state == TrialState::Done;
            run.trials.iter().position(is_meant)
        };
        let room_of = |at: usize| Some((at, Room::of(&run.trials[at], thresholds)?));
        let Some((first_at, room)) = finished(first).and_then(room_of) else { return Vec::new() };
        let of = |variant| {
            let (at, its) = finished(variant).and_then(room_of)?;
            let pair = Pair { first, variant, room: room.least(its)?, thresholds };
            Some((at, pair.finding(self)?, variant))
        };
        let found: Vec<(usize, Finding, &VariantSummary)> = later.iter().filter_map(of).collect();
        let hidden: Vec<&VariantSummary> = found.iter().map(|(_, _, variant)| *variant).collect();
        let of_first = (!hidden.is_empty()).then(|| (first_at, of_first(self, first, &hidden, room)));
        of_first.into_iter().chain(found.into_iter().map(|(at, finding, _)| (at, finding))).collect()
    }
}

/// Steps that found no limit.
fn of_steps(detector: &OfferedLoadLimited, reading: &Reading<'_>) -> Option<Finding> {
    let thresholds = reading.thresholds;
    let room = Room::of(reading.trial, thresholds)?;
    let steady = || reading.intervals.iter().filter(|interval| interval.is_steady);
    let heaviest = steady().max_by(|a, b| a.by_demand(b))?;
    let lightest = steady().min_by(|a, b| a.by_demand(b))?;
    let growth = heaviest.demand_over(lightest).filter(|growth| *growth >= thresholds.offered_growth)?;
    let is_flat = heaviest.service_ns <= thresholds.offered_latency_factor * lightest.service_ns;
    let follows = (heaviest.rate / lightest.rate / growth - 1.0).abs() <= thresholds.offered_follow_share;
    let cpu = Cpu::of(reading);
    let services = reading.trial.service_names().into_iter();
    let busiest = services
        .filter_map(|service| Some((service, cpu.busy_share(service, heaviest)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    if !(is_flat && follows && busiest.1 <= thresholds.offered_busy_share) {
        return None;
    }
    let (light, heavy) = (lightest.demand(), heaviest.demand());
    let (share, of) = room.share();
    Some(Finding {
        title: format!("the offered load ended at {heavy}, below any limit, so the capacity is unknown"),
        resource: EXPERIMENT.into(),
        cost_share: share,
        cost_of: of.into(),
        confidence: Confidence::High,
        reasons: vec![
            format!(
                "From {light} to {heavy} throughput went from {} to {}, as the load did, and requests took {} and {}.",
                units::rate(lightest.rate),
                units::rate(heaviest.rate),
                units::duration(lightest.service_ns),
                units::duration(heaviest.service_ns)
            ),
            room.told(),
            format!(
                "The busiest service, {}, used {} of the CPU available to it.",
                busiest.0,
                units::percent(busiest.1)
            ),
        ],
        numbers: vec![
            Figure::new("throughput under the heaviest load", heaviest.rate, "/s"),
            Figure::new("time of a request under the lightest load", lightest.service_ns, "ns"),
            Figure::new("time of a request under the heaviest load", heaviest.service_ns, "ns"),
            Figure::new("CPU of the busiest service", busiest.1 * 100.0, "%"),
        ],
        ruled_out: vec!["A limit that was reached: throughput follows the load and no request takes longer.".into()],
        falsified_by: format!("Under more load than {heavy}, throughput does not grow."),
        advice: "Offer more until throughput no longer follows (more users, less time to think, a higher rate, or a search for \
                 the capacity). Until then compare variants by latency, requests under way and CPU for each request."
            .into(),
        ..detector.finding()
    })
}

/// What the first variant says of those whose change its throughput hides.
fn of_first(detector: &OfferedLoadLimited, first: &VariantSummary, hidden: &[&VariantSummary], room: Room) -> Finding {
    let names: Vec<&str> = hidden.iter().map(|variant| variant.variant.as_str()).collect();
    let (names, name) = (names.join(", "), &first.variant);
    let (share, of) = room.share();
    Finding {
        title: format!("{name} completes the whole offered load, so throughput cannot show what others change"),
        resource: EXPERIMENT.into(),
        cost_share: share,
        cost_of: of.into(),
        confidence: Confidence::High,
        reasons: vec![
            format!(
                "Throughput is {} here and the same in {names}, because it is what the load asks for.",
                units::rate(first.rate)
            ),
            room.told(),
        ],
        numbers: numbers_of(first, "this variant"),
        ruled_out: vec![format!("No difference at all: in {names} it is more than noise.")],
        falsified_by: format!("Under more load, {name} and {names} still have the same throughput."),
        advice: format!(
            "Compare {names} with {name} by latency, by requests under way and by CPU for each request, not by throughput."
        ),
        ..detector.finding()
    }
}

/// How much less a load asks for than is there to be had.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Room {
    /// Share of the users of a closed load that think at any time, the least of all intervals.
    Thinking(f64),
    /// Share of an open load's arrivals that are answered, the least of all intervals.
    Answered(f64),
}

impl Room {
    /// None when some interval leaves none, or when the kind of load is not known.
    fn of(trial: &TrialEvidence, thresholds: &Thresholds) -> Option<Self> {
        let found: Vec<Room> = intervals(trial, thresholds)
            .iter()
            .map(|interval| Self::in_interval(interval).filter(|room| room.is_enough(thresholds)))
            .collect::<Option<_>>()?;
        let load = trial.counted_load();
        let is_sound = load.error_rate() <= thresholds.offered_error_share && load.dropped == 0;
        found.into_iter().map(Some).reduce(|a, b| a?.least(b?)).flatten().filter(|_| is_sound)
    }

    fn in_interval(interval: &Interval) -> Option<Self> {
        match interval.offered {
            Some(offered) if interval.vus == 0 && offered > 0.0 => Some(Room::Answered(interval.rate / offered)),
            None if interval.vus > 0 => Some(Room::Thinking(1.0 - interval.in_flight() / f64::from(interval.vus))),
            _ => None,
        }
    }

    fn is_enough(self, thresholds: &Thresholds) -> bool {
        match self {
            Room::Thinking(share) => share >= thresholds.offered_thinking_share,
            Room::Answered(share) => share >= 1.0 - thresholds.offered_rate_share,
        }
    }

    /// None for loads of two kinds.
    fn least(self, other: Room) -> Option<Room> {
        match (self, other) {
            (Room::Thinking(a), Room::Thinking(b)) => Some(Room::Thinking(a.min(b))),
            (Room::Answered(a), Room::Answered(b)) => Some(Room::Answered(a.min(b))),
            _ => None,
        }
    }

    /// The share, and what it is one of.
    fn share(self) -> (f64, &'static str) {
        match self {
            Room::Thinking(share) => (share.min(1.0), "of the users, who are thinking at any time"),
            Room::Answered(share) => (share.min(1.0), "of the offered load, which is completed"),
        }
    }

    fn told(self) -> String {
        match self {
            Room::Thinking(share) => format!(
                "At any time at least {} of the users think and send no request (Little's law: users less throughput × \
                 latency), so throughput would grow by no more than {} if requests took no time at all.",
                units::percent(share),
                units::percent(1.0 / share - 1.0)
            ),
            Room::Answered(share) => {
                format!("At least {} of the arrivals that the load offers are completed.", units::percent(share))
            }
        }
    }
}

/// A variant beside the first.
struct Pair<'a> {
    first: &'a VariantSummary,
    variant: &'a VariantSummary,
    room: Room,
    thresholds: &'a Thresholds,
}

impl Pair<'_> {
    fn finding(&self, detector: &OfferedLoadLimited) -> Option<Finding> {
        let against = self.variant.against_first.as_ref()?;
        let least = self.thresholds.offered_rate_share;
        let is_same = against.rate.low >= -least && against.rate.high <= least;
        let gains = self.gains(&against.mean);
        if !is_same || gains.is_empty() {
            return None;
        }
        let (share, of) = self.room.share();
        let mut reasons = vec![
            format!(
                "Throughput is the same in both, {} and {}, because it is what the load asks for.",
                units::rate(self.first.rate),
                units::rate(self.variant.rate)
            ),
            self.room.told(),
        ];
        reasons.extend(gains);
        let (first, variant) = (&self.first.variant, &self.variant.variant);
        Some(Finding {
            title: format!(
                "{first} completes the whole offered load, so throughput cannot show what {variant} changes"
            ),
            resource: EXPERIMENT.into(),
            cost_share: share,
            cost_of: of.into(),
            confidence: Confidence::High,
            reasons,
            numbers: self.numbers(),
            ruled_out: vec!["No difference at all: what the variant changes is more than noise.".into()],
            falsified_by: format!("Under more load, {first} and {variant} still have the same throughput."),
            advice: format!(
                "Compare {variant} with {first} by latency, by requests under way and by CPU for each request. To compare what \
                 they can carry, offer more until throughput no longer follows: more users, less time to think, or a search \
                 for the capacity."
            ),
            ..detector.finding()
        })
    }

    /// What differs all the same.
    fn gains(&self, mean: &Change) -> Vec<String> {
        let mut gains = Vec::new();
        if mean.meaning != Meaning::Same {
            gains.push(format!(
                "Mean latency goes from {} to {}, and with it the requests under way from {} to {}.",
                units::duration(self.first.mean_ns),
                units::duration(self.variant.mean_ns),
                units::number(under_way(self.first)),
                units::number(under_way(self.variant))
            ));
        }
        let cpu = self.first.cpu_seconds_per_request.zip(self.variant.cpu_seconds_per_request);
        let cpu = cpu.filter(|(before, now)| (now / before - 1.0).abs() >= self.thresholds.offered_cpu_share);
        gains.extend(cpu.map(|(before, now)| {
            format!(
                "CPU for each request goes from {} to {}.",
                units::duration(before * 1e9),
                units::duration(now * 1e9)
            )
        }));
        gains
    }

    fn numbers(&self) -> Vec<Figure> {
        [numbers_of(self.first, "first variant"), numbers_of(self.variant, "this variant")].concat()
    }
}

fn numbers_of(variant: &VariantSummary, side: &str) -> Vec<Figure> {
    let mut numbers = vec![
        Figure::new(format!("throughput, {side}"), variant.rate, "/s"),
        Figure::new(format!("mean latency, {side}"), variant.mean_ns, "ns"),
        Figure::new(format!("requests under way, {side}"), under_way(variant), ""),
    ];
    let cpu = variant.cpu_seconds_per_request;
    numbers.extend(cpu.map(|seconds| Figure::new(format!("CPU for each request, {side}"), seconds, "s")));
    numbers
}

/// Little's law: throughput × latency.
fn under_way(variant: &VariantSummary) -> f64 {
    variant.rate * variant.mean_ns / 1e9
}

#[cfg(test)]
mod tests;
