//! The variants of a run beside its first, with intervals that know about noise.
//!
//! Within a trial the intervals are those of `blocks`. There nothing is seen of what differs from start to start, see
//! `between`. When both variants have repetitions, the interval is at least Welch's over them, and at least as wide as
//! their spread. When one of the two was measured once, the spread that is assumed between trials widens it, and the
//! difference says so. A change is called one when its interval leaves out zero and it is larger than both 5 % and the
//! spread of the repetitions.
//!
//! One or two requests that each take seconds make no blocks whose variance could be estimated. Each is as long as a short
//! trial, so it is taken to vary as trials do.

pub(crate) mod beside;
pub(crate) mod between;
mod comparable;
pub mod diff;
mod metric;
pub(crate) mod summaries;

use narrows_model::comparison::{Basis, Change, Comparison, Difference, Interval, NoiseFloor, VariantSummary};
use narrows_model::evidence::{LoadFigures, RunEvidence, TrialEvidence};
use narrows_model::load::LatencyFigures;
use narrows_model::run::TrialState;
use narrows_model::series::names;

use crate::compare::between::{Spread, Trials, assumed, between_repetitions};
use crate::compare::summaries::{operations, services};
use crate::stats::blocks::{Quantity, change, half_width, load_blocks, strata};
use crate::stats::median;
use crate::thresholds::Thresholds;

/// The variance of one or two values is no more than a guess.
const FEW_REQUESTS: u64 = 2;
/// A request that takes this long spans more than one of the seconds in which a load is recorded.
const LONG_REQUEST_NS: f64 = 1e9;

/// The variants of a run in order of their first trial, each over its finished repetitions. A variant without one has
/// zeros and no difference.
pub fn compare(run: &RunEvidence, thresholds: &Thresholds) -> Comparison {
    let variants = variants(run);
    let noise = noise_floor(&variants);
    let mut summaries: Vec<VariantSummary> = variants.iter().map(|(name, trials)| summary(name, trials)).collect();
    let noises = Noises::of(&variants, noise, thresholds);
    for at in 1..summaries.len() {
        summaries[at].against_first =
            difference((&variants[0].1, &summaries[0]), (&variants[at].1, &summaries[at]), &noises);
    }
    Comparison { variants: summaries, noise }
}

type Variant<'a> = (&'a str, Vec<&'a TrialEvidence>);

fn variants(run: &RunEvidence) -> Vec<Variant<'_>> {
    let mut variants: Vec<Variant<'_>> = Vec::new();
    for evidence in &run.trials {
        let name = evidence.trial.variant.as_str();
        let at = variants.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            variants.push((name, Vec::new()));
            variants.len() - 1
        });
        if evidence.trial.state == TrialState::Done {
            variants[at].1.push(evidence);
        }
    }
    variants
}

fn summary(variant: &str, trials: &[&TrialEvidence]) -> VariantSummary {
    let loads: Vec<LoadFigures> = trials.iter().map(|trial| trial.load_figures()).collect();
    let of_latency = |value: fn(&LatencyFigures) -> Option<f64>| {
        median(loads.iter().filter_map(|load| value(&load.latency)).collect())
    };
    let ended: u64 = loads.iter().map(|load| load.requests).sum();
    let failed: u64 = loads.iter().map(|load| load.failed).sum();
    let cpu = trials.iter().zip(&loads).filter_map(|(trial, load)| cpu_seconds_per_request(trial, load.rate?));
    VariantSummary {
        variant: variant.to_owned(),
        repetitions: trials.len() as u32,
        rate: median(loads.iter().filter_map(|load| load.rate).collect()),
        mean_ns: of_latency(|latency| latency.mean_ns),
        p50_ns: of_latency(|latency| latency.p50_ns),
        p95_ns: of_latency(|latency| latency.p95_ns),
        p99_ns: of_latency(|latency| latency.p99_ns),
        requests: ended,
        errors: failed,
        error_rate: if ended > 0 { failed as f64 / ended as f64 } else { 0.0 },
        cpu_seconds_per_request: median(cpu.collect()),
        services: services(trials),
        sidecars: crate::read::sidecars::summary(trials),
        operations: operations(trials),
        against_first: None,
    }
}

/// CPU of all services ÷ successful requests; `None` if a service was not sampled or nothing succeeded.
pub(crate) fn cpu_seconds_per_request(trial: &TrialEvidence, rate: f64) -> Option<f64> {
    let services = trial.service_names().into_iter().filter(|name| *name != names::GENERATOR);
    let usages: Vec<_> = services.map(|service| trial.counted_usage(names::CPU_CORES, service)).collect();
    let is_known = !usages.is_empty() && usages.iter().all(|usage| usage.points > 0) && rate > 0.0;
    is_known.then(|| usages.iter().map(|usage| usage.mean).sum::<f64>() / rate)
}

fn noise_floor(variants: &[Variant<'_>]) -> Option<NoiseFloor> {
    let spread = |value: fn(&TrialEvidence) -> f64| {
        variants
            .iter()
            .filter(|(_, trials)| trials.len() > 1)
            .map(|(_, trials)| relative_spread(trials.iter().map(|trial| value(trial)).collect()))
            .fold(0.0, f64::max)
    };
    variants.iter().any(|(_, trials)| trials.len() > 1).then(|| NoiseFloor {
        rate: spread(rate),
        mean: spread(mean_ns),
        p95: spread(|trial| trial.load_figures().latency.p95_ns.unwrap_or(0.0)),
        p99: spread(|trial| trial.load_figures().latency.p99_ns.unwrap_or(0.0)),
    })
}

/// (Largest − smallest) ÷ median; 0 when the median is.
fn relative_spread(values: Vec<f64>) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    median(values).filter(|median| *median > 0.0).map_or(0.0, |median| (largest - smallest) / median)
}

type Side<'a> = (&'a Trials<'a>, &'a VariantSummary);

fn rate(trial: &TrialEvidence) -> f64 {
    trial.load_figures().rate.unwrap_or(0.0)
}

fn mean_ns(trial: &TrialEvidence) -> f64 {
    trial.load_figures().latency.mean_ns.unwrap_or(0.0)
}

/// Noise of a run.
struct Noises {
    floor: NoiseFloor,
    rate: Spread,
    mean: Spread,
    change_min: f64,
}

impl Noises {
    fn of(variants: &[Variant<'_>], floor: Option<NoiseFloor>, thresholds: &Thresholds) -> Self {
        let all = || variants.iter().map(|(_, trials)| trials.as_slice());
        let assumed = assumed(all(), thresholds);
        let spread = |value: fn(&TrialEvidence) -> f64| Spread::new(assumed, all(), value);
        Self {
            floor: floor.unwrap_or(NoiseFloor { rate: 0.0, mean: 0.0, p95: 0.0, p99: 0.0 }),
            rate: spread(rate),
            mean: spread(mean_ns),
            change_min: thresholds.change_min,
        }
    }
}

fn difference(first: Side<'_>, other: Side<'_>, noises: &Noises) -> Option<Difference> {
    let cut = |trials: &Trials<'_>| strata(trials.iter().map(|trial| (*trial, load_blocks(trial))));
    let blocks = (cut(first.0), cut(other.0));
    let trials = (first.0, other.0);
    let few = few_long_requests(trials.0, trials.1);
    let within = |quantity: Quantity, spread: Spread| match few {
        Some((old, new)) => Some(spread.half_width(old, new)),
        None => half_width(&blocks.0, &blocks.1, quantity),
    };
    let rates = widths(within(Quantity::Rate, noises.rate)?, trials.0, trials.1, noises.rate, rate);
    let means = widths(within(Quantity::Latency, noises.mean)?, trials.0, trials.1, noises.mean, mean_ns);
    let (old_rate, new_rate) = first.1.rate.zip(other.1.rate)?;
    let (old_ns, new_ns) = first.1.mean_ns.zip(other.1.mean_ns)?;
    let rate = |width: f64| change(old_rate, new_rate, width, noises.floor.rate, noises.change_min);
    let mean = |width: f64| change(old_ns, new_ns, width, noises.floor.mean, noises.change_min);
    let interval = |change: Change| Interval { low: change.low, high: change.high };
    Some(Difference {
        rate: rate(rates.whole)?,
        mean: mean(means.whole)?,
        basis: basis(trials.0.len(), trials.1.len()),
        rate_within: interval(rate(rates.within)?),
    })
}

/// Basis of a difference between this many trials.
pub(crate) fn basis(old: usize, new: usize) -> Basis {
    if old.min(new) > 1 { Basis::Repeated } else { Basis::MeasuredOnce }
}

/// Half-widths of the 95 % interval of the logarithm of new ÷ old.
pub(crate) struct Widths {
    /// With what differs between trials, whether seen or assumed.
    pub(crate) whole: f64,
    /// Only with what the trials show.
    pub(crate) within: f64,
}

/// With `within`, the half-width of what the seconds or the requests of the trials show.
pub(crate) fn widths(
    within: f64,
    old: &Trials<'_>,
    new: &Trials<'_>,
    spread: Spread,
    value: impl Fn(&TrialEvidence) -> f64,
) -> Widths {
    match between_repetitions(old, new, value) {
        Some(seen) => Widths { whole: within.max(seen), within: within.max(seen) },
        None => Widths { whole: within.hypot(spread.half_width(old.len(), new.len())), within },
    }
}

/// Numbers of successful requests on both sides, where few long requests each count as a trial; `None` otherwise.
fn few_long_requests(old: &Trials<'_>, new: &Trials<'_>) -> Option<(usize, usize)> {
    let loads = |trials: &Trials<'_>| trials.iter().map(|trial| trial.load_figures()).collect::<Vec<_>>();
    let (old, new) = (loads(old), loads(new));
    let succeeded = |load: &LoadFigures| load.requests.saturating_sub(load.failed);
    let is_long = |load: &LoadFigures| load.latency.mean_ns.is_some_and(|mean_ns| mean_ns >= LONG_REQUEST_NS);
    let both = || old.iter().chain(&new);
    let is_meant = both().any(|load| succeeded(load) <= FEW_REQUESTS) && both().all(is_long);
    let count = |loads: &[LoadFigures]| loads.iter().map(succeeded).sum::<u64>() as usize;
    is_meant.then(|| (count(&old), count(&new)))
}

#[cfg(test)]
mod tests {
    use narrows_model::comparison::Meaning;
    use narrows_model::run::WindowKind;
    use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

    use super::*;

    /// Normal noise with a memory of one second, from a seed (SplitMix64).
    struct Noise {
        state: u64,
        memory: f64,
        last: f64,
    }

    impl Noise {
        /// Seeds next to one another would give one stream, shifted: the first draw sets them apart.
        fn new(seed: u64, memory: f64) -> Self {
            let mut noise = Self { state: seed, memory, last: 0.0 };
            noise.state = noise.uniform().to_bits();
            noise
        }

        fn uniform(&mut self) -> f64 {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Standard deviation 1, whatever the memory.
        fn next(&mut self) -> f64 {
            let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
            self.last = self.memory * self.last + (1.0 - self.memory.powi(2)).sqrt() * normal;
            self.last
        }
    }

    fn noisy(variant: &str, seed: u64, memory: f64, rate: f64, latency_ms: f64) -> TrialEvidence {
        let mut noise = Noise::new(seed, memory);
        let seconds: Vec<(f64, f64)> =
            (0..60).map(|_| noise.next()).map(|n| (rate * (1.0 - 0.05 * n), latency_ms * (0.2 * n).exp())).collect();
        TrialBuilder::new(variant).window(WindowKind::Steady, 8, seconds).build()
    }

    fn steady(variant: &str, repetition: u32, rate: f64, latency_ms: f64) -> TrialEvidence {
        TrialBuilder::new(variant).repetition(repetition).steady(30, Load { vus: 8, rate, latency_ms }).build()
    }

    fn second_of(trials: impl IntoIterator<Item = TrialEvidence>) -> Difference {
        compare(&run_of_trials(trials), &Thresholds::default()).variants[1].against_first.clone().expect("a difference")
    }

    #[test]
    fn equal_variants_are_called_the_same() {
        for memory in [0.5, 0.8] {
            let differs = |seed: u64| {
                let run = [noisy("a", 2 * seed, memory, 200.0, 40.0), noisy("b", 2 * seed + 1, memory, 200.0, 40.0)];
                let difference = second_of(run);
                difference.rate.meaning.is_change() || difference.mean.meaning.is_change()
            };
            let wrong = (0..300).filter(|seed| differs(*seed)).count();
            assert!(wrong < 15, "{wrong} of 300 with memory {memory}");
        }
    }

    #[test]
    fn what_differs_from_start_to_start_is_not_a_change() {
        let differs = |seed: u64| {
            let mut starts = Noise::new(seed, 0.0);
            let mut start =
                |variant, repetition| steady(variant, repetition, 100.0, 40.0 * (0.1 * starts.next()).exp());
            let run = [start("a", 1), start("b", 1), start("a", 2), start("b", 2)];
            second_of(run).mean.meaning.is_change()
        };
        let wrong = (0..100).filter(|seed| differs(*seed)).count();
        assert!(wrong < 10, "{wrong} of 100");
    }

    #[test]
    fn different_variants_are_distinguished() {
        let is_seen = |seed: u64| {
            let run = [noisy("a", 2 * seed, 0.3, 200.0, 40.0), noisy("b", 2 * seed + 1, 0.3, 400.0, 20.0)];
            let difference = second_of(run);
            difference.rate.meaning == Meaning::Higher && difference.mean.meaning == Meaning::Lower
        };
        let seen = (0..100).filter(|seed| is_seen(*seed)).count();
        assert!(seen >= 95, "{seen} of 100");
    }

    #[test]
    fn the_interval_holds_the_true_change() {
        let holds = |seed: u64| {
            let run = [noisy("a", 2 * seed, 0.3, 200.0, 40.0), noisy("b", 2 * seed + 1, 0.3, 200.0, 30.0)];
            let mean = second_of(run).mean;
            mean.low <= -0.25 && -0.25 <= mean.high
        };
        let held = (0..300).filter(|seed| holds(*seed)).count();
        assert!(held >= 270, "{held} of 300");
    }

    /// Two trials of each of two variants, with a rate and a latency.
    fn twice(a: (f64, f64), b: (f64, f64)) -> Difference {
        let trials = [1, 2].map(|at| [steady("a", at, a.0, a.1), steady("b", at, b.0, b.1)]);
        second_of(trials.into_iter().flatten())
    }

    #[test]
    fn small_changes_are_the_same_even_without_noise() {
        let difference = twice((100.0, 40.0), (104.0, 41.0));
        assert_eq!((difference.rate.meaning, difference.mean.meaning), (Meaning::Same, Meaning::Same));
        let difference = twice((100.0, 40.0), (110.0, 30.0));
        assert_eq!((difference.rate.meaning, difference.mean.meaning), (Meaning::Higher, Meaning::Lower));
        assert!((difference.mean.ratio + 0.25).abs() < 0.01);
    }

    #[test]
    fn a_difference_of_variants_measured_once_needs_more_than_the_noise_between_trials() {
        let once = |rate| second_of([steady("a", 1, 100.0, 40.0), steady("b", 1, rate, 40.0)]);
        for (rate, meaning) in [(100.0, Meaning::Unclear), (130.0, Meaning::Unclear), (160.0, Meaning::Higher)] {
            let difference = once(rate);
            assert_eq!((difference.rate.meaning, difference.basis), (meaning, Basis::MeasuredOnce), "{rate}");
        }
        let within = once(110.0).rate_within;
        assert!(within.low > 0.09 && within.high < 0.11, "the trials themselves hold no noise: {within:?}");
        let repeated = twice((100.0, 40.0), (130.0, 40.0));
        assert_eq!((repeated.rate.meaning, repeated.basis), (Meaning::Higher, Basis::Repeated));
        assert_eq!((repeated.rate_within.low, repeated.rate_within.high), (repeated.rate.low, repeated.rate.high));
    }

    /// A closed load of eight users, of which the whole trial is slower or faster by so much.
    fn started(variant: &str, seed: u64, start: f64) -> TrialEvidence {
        let factor = start.exp();
        noisy(variant, seed, 0.5, 200.0 / factor, 40.0 * factor)
    }

    #[test]
    fn of_forty_pairs_of_equal_variants_measured_once_at_most_two_differ() {
        let spread = Thresholds::default().trial_spread;
        let mut starts = Noise::new(7, 0.0);
        let (mut claims, mut within) = (0, 0);
        for seed in 0..40 {
            let mut start = || spread * starts.next();
            let pair = second_of([started("a", 2 * seed, start()), started("b", 2 * seed + 1, start())]);
            claims += usize::from(pair.rate.meaning.is_change() || pair.mean.meaning.is_change());
            within += usize::from(pair.rate_within.low > 0.0 || pair.rate_within.high < 0.0);
        }
        assert!(claims <= 2, "{claims} of 40");
        assert!(within >= 20, "the seconds alone would call only {within} of 40 different");
    }

    #[test]
    fn the_spread_of_repetitions_widens() {
        let b = |rate| steady("b", 1, rate, 40.0);
        let run = [steady("a", 1, 100.0, 40.0), steady("a", 2, 120.0, 40.0), b(125.0)];
        let comparison = compare(&run_of_trials(run), &Thresholds::default());
        assert_eq!((comparison.variants[0].repetitions, comparison.variants[0].rate), (2, Some(110.0)));
        assert!((comparison.noise.unwrap().rate - 20.0 / 110.0).abs() < 1e-9);
        let rate = comparison.variants[1].against_first.as_ref().unwrap().rate;
        assert_eq!(rate.meaning, Meaning::Unclear, "{rate:?}");
        assert!(rate.low < 0.0 && rate.high > 0.3, "{rate:?}");
    }

    #[test]
    fn steps_of_load_are_not_noise() {
        let steps = |variant: &str, factor: f64| {
            let load = |vus: u32| Load { vus, rate: 50.0 * f64::from(vus) * factor, latency_ms: 10.0 };
            TrialBuilder::new(variant).steady(10, load(1)).steady(10, load(2)).steady(10, load(4)).build()
        };
        let within = second_of([steps("a", 1.0), steps("b", 1.2)]).rate_within;
        assert!(within.high - within.low < 0.05, "{within:?}");
    }

    #[test]
    fn what_was_not_finished_is_not_compared() {
        let cut = TrialBuilder::new("b")
            .state(TrialState::Interrupted)
            .steady(30, Load { vus: 1, rate: 9.0, latency_ms: 9.0 });
        let comparison = compare(&run_of_trials([steady("a", 1, 100.0, 40.0), cut.build()]), &Thresholds::default());
        assert_eq!((comparison.variants[1].repetitions, comparison.variants[1].rate), (0, None));
        assert_eq!((&comparison.variants[1].against_first, comparison.noise), (&None, None));
        assert_eq!(compare(&run_of_trials([]), &Thresholds::default()), Comparison::default());
    }

    #[test]
    fn one_or_two_long_requests_of_each_variant_are_compared() {
        let few = |variant: &str, seconds: u32, latency_ms: f64| {
            let responses = (1..=seconds).map(|at| (if at == seconds { 1.0 } else { 0.0 }, latency_ms));
            TrialBuilder::new(variant).window(WindowKind::Steady, 1, responses).build()
        };
        let difference = second_of([few("a", 24, 24_000.0), few("b", 4, 4_000.0)]);
        assert_eq!((difference.rate.meaning, difference.mean.meaning), (Meaning::Higher, Meaning::Lower));
        assert!(difference.rate.low > 2.0 && difference.rate.high > 7.0, "{difference:?}");
        let alike = second_of([few("a", 24, 24_000.0), few("b", 20, 20_000.0)]);
        assert_eq!((alike.rate.meaning, alike.mean.meaning), (Meaning::Unclear, Meaning::Unclear));
        let short = compare(&run_of_trials([few("a", 1, 50.0), few("b", 1, 5.0)]), &Thresholds::default());
        assert_eq!(short.variants[1].against_first, None, "one short request says nothing");
    }

    #[test]
    fn cpu_is_known_for_each_request_only_when_all_services_were_sampled() {
        let trial = || {
            TrialBuilder::new("a")
                .service("shop", None)
                .service("stock", None)
                .steady(10, Load { vus: 1, rate: 100.0, latency_ms: 9.0 })
                .cpu("shop", 0, |_| 0.5)
        };
        let cpu = |trial: TrialBuilder| {
            compare(&run_of_trials([trial.build()]), &Thresholds::default()).variants[0].cpu_seconds_per_request
        };
        assert_eq!(cpu(trial()), None);
        assert_eq!(cpu(trial().cpu("stock", 0, |_| 0.25)), Some(0.0075));
    }
}
