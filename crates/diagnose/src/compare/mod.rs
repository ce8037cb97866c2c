//! The variants of a run beside its first, with intervals that know about noise.
//!
//! Within a trial the intervals are those of `blocks`. There nothing is seen of what differs from start to start. Repetitions show that: when both variants have
//! some, the interval is at least Welch's over the repetitions, and at least as wide as their spread. A change is called one when its interval leaves out zero
//! and it is larger than both 5 % and that spread.

pub(crate) mod beside;
pub mod diff;
mod metric;
mod summaries;

use narrows_model::comparison::{Comparison, Difference, NoiseFloor, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::load::ErrorCounts;
use narrows_model::run::TrialState;
use narrows_model::series::names;

use crate::compare::summaries::{operations, services};
use crate::stats::blocks::{Quantity, change, half_width, load_blocks, strata};
use crate::stats::{mean_and_variance, median, student_t_975};
use crate::thresholds::Thresholds;

/// The variants of a run in order of their first trial, each over its finished repetitions. A variant without one has
/// zeros and no difference.
pub fn compare(run: &RunEvidence, thresholds: &Thresholds) -> Comparison {
    let variants = variants(run);
    let noise = noise_floor(&variants);
    let mut summaries: Vec<VariantSummary> = variants.iter().map(|(name, trials)| summary(name, trials)).collect();
    for at in 1..summaries.len() {
        let against =
            difference((&variants[0].1, &summaries[0]), (&variants[at].1, &summaries[at]), (noise, thresholds));
        summaries[at].against_first = against;
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
    let loads: Vec<_> = trials.iter().map(|trial| trial.counted_load()).collect();
    let latencies: Vec<_> = loads.iter().map(|load| load.latency()).collect();
    let of_latency = |value: fn(&narrows_model::histogram::Quantiles) -> f64| {
        median(latencies.iter().map(value).collect()).unwrap_or(0.0)
    };
    let mut errors = ErrorCounts::default();
    loads.iter().for_each(|load| errors.add(load.errors));
    let ended = loads.iter().map(|load| load.succeeded).sum::<u64>() + errors.total();
    let cpu = trials.iter().zip(&loads).filter_map(|(trial, load)| cpu_seconds_per_request(trial, load.rate()));
    VariantSummary {
        variant: variant.to_owned(),
        repetitions: trials.len() as u32,
        rate: median(loads.iter().map(|load| load.rate()).collect()).unwrap_or(0.0),
        mean_ns: of_latency(|q| q.mean_ns),
        p50_ns: of_latency(|q| q.p50_ns as f64),
        p95_ns: of_latency(|q| q.p95_ns as f64),
        p99_ns: of_latency(|q| q.p99_ns as f64),
        requests: ended,
        errors: errors.total(),
        error_rate: if ended > 0 { errors.total() as f64 / ended as f64 } else { 0.0 },
        cpu_seconds_per_request: median(cpu.collect()),
        services: services(trials),
        sidecars: crate::read::sidecars::summary(trials),
        operations: operations(trials),
        against_first: None,
    }
}

/// CPU of all services ÷ successful requests; none when a service was not sampled or nothing succeeded.
fn cpu_seconds_per_request(trial: &TrialEvidence, rate: f64) -> Option<f64> {
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
        rate: spread(|trial| trial.counted_load().rate()),
        mean: spread(|trial| trial.counted_load().latency().mean_ns),
        p95: spread(|trial| trial.counted_load().latency().p95_ns as f64),
        p99: spread(|trial| trial.counted_load().latency().p99_ns as f64),
    })
}

/// (Largest − smallest) ÷ median; 0 when the median is.
fn relative_spread(values: Vec<f64>) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    median(values).filter(|median| *median > 0.0).map_or(0.0, |median| (largest - smallest) / median)
}

type Side<'a> = (&'a [&'a TrialEvidence], &'a VariantSummary);

fn difference(
    first: Side<'_>,
    other: Side<'_>,
    (noise, thresholds): (Option<NoiseFloor>, &Thresholds),
) -> Option<Difference> {
    let cut = |trials: &[&TrialEvidence]| strata(trials.iter().map(|trial| (*trial, load_blocks(trial))));
    let (old, new) = (cut(first.0), cut(other.0));
    let least = thresholds.change_min;
    let floor = |value: fn(&NoiseFloor) -> f64| noise.as_ref().map_or(0.0, value);
    let width = |quantity: Quantity, of: fn(&TrialEvidence) -> f64| {
        Some(half_width(&old, &new, quantity)?.max(between_starts(first.0, other.0, of)))
    };
    let rate_width = width(Quantity::Rate, |trial| trial.counted_load().rate())?;
    let mean_width = width(Quantity::Latency, |trial| trial.counted_load().latency().mean_ns)?;
    Some(Difference {
        rate: change(first.1.rate, other.1.rate, rate_width, (floor(|n| n.rate), least))?,
        mean: change(first.1.mean_ns, other.1.mean_ns, mean_width, (floor(|n| n.mean), least))?,
    })
}

/// The half-width of Welch's 95 % interval of the logarithm of new ÷ old over whole repetitions; 0 when a side has one
/// only.
pub(crate) fn between_starts(
    old: &[&TrialEvidence],
    new: &[&TrialEvidence],
    value: impl Fn(&TrialEvidence) -> f64,
) -> f64 {
    let (mut variance, mut squares) = (0.0_f64, 0.0_f64);
    for side in [old, new] {
        let logarithms: Vec<f64> = side.iter().map(|trial| value(trial).max(f64::MIN_POSITIVE).ln()).collect();
        let Some((_, spread)) = mean_and_variance(&logarithms).filter(|_| logarithms.len() > 1) else { return 0.0 };
        let part = spread / logarithms.len() as f64;
        variance += part;
        squares += part.powi(2) / (logarithms.len() - 1) as f64;
    }
    if squares > 0.0 { student_t_975(variance.powi(2) / squares) * variance.sqrt() } else { 0.0 }
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
            let run = [noisy("a", 2 * seed, 0.3, 200.0, 40.0), noisy("b", 2 * seed + 1, 0.3, 260.0, 30.0)];
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

    #[test]
    fn small_changes_are_the_same_even_without_noise() {
        let difference = second_of([steady("a", 1, 100.0, 40.0), steady("b", 1, 104.0, 41.0)]);
        assert_eq!((difference.rate.meaning, difference.mean.meaning), (Meaning::Same, Meaning::Same));
        let difference = second_of([steady("a", 1, 100.0, 40.0), steady("b", 1, 110.0, 30.0)]);
        assert_eq!((difference.rate.meaning, difference.mean.meaning), (Meaning::Higher, Meaning::Lower));
        assert!((difference.mean.ratio + 0.25).abs() < 0.01);
    }

    #[test]
    fn the_spread_of_repetitions_widens() {
        let b = |rate| steady("b", 1, rate, 40.0);
        let run = [steady("a", 1, 100.0, 40.0), steady("a", 2, 120.0, 40.0), b(125.0)];
        let comparison = compare(&run_of_trials(run), &Thresholds::default());
        assert_eq!((comparison.variants[0].repetitions, comparison.variants[0].rate), (2, 110.0));
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
        let rate = second_of([steps("a", 1.0), steps("b", 1.2)]).rate;
        assert_eq!(rate.meaning, Meaning::Higher);
        assert!(rate.high - rate.low < 0.05, "{rate:?}");
    }

    #[test]
    fn what_was_not_finished_is_not_compared() {
        let cut = TrialBuilder::new("b")
            .state(TrialState::Interrupted)
            .steady(30, Load { vus: 1, rate: 9.0, latency_ms: 9.0 });
        let comparison = compare(&run_of_trials([steady("a", 1, 100.0, 40.0), cut.build()]), &Thresholds::default());
        assert_eq!((comparison.variants[1].repetitions, comparison.variants[1].rate), (0, 0.0));
        assert_eq!((&comparison.variants[1].against_first, comparison.noise), (&None, None));
        assert_eq!(compare(&run_of_trials([]), &Thresholds::default()), Comparison::default());
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
