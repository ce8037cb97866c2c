//! The variants of a run beside its first, with intervals that know about noise.
//!
//! Seconds of one trial are not independent: queues and caches carry over. So the counted seconds are cut into about
//! ten blocks and the blocks' means are compared (the method of batch means, Law, *Simulation Modeling and
//! Analysis*), on a logarithmic scale, with Welch's interval; what correlation r is left between neighbouring blocks
//! widens it: n blocks then tell as much as n (1 − r) ÷ (1 + r) independent ones. Blocks are compared within a window
//! with the same window of the other variant, so that a load that rises in steps does not count as noise. A ramp
//! counts as four windows.
//!
//! Within one trial nothing is seen of what differs from start to start. Repetitions show that: when both variants have
//! some, the interval is at least Welch's over the repetitions, and at least as wide as their spread. A change is called one when its interval leaves out zero
//! and it is larger than both 5 % and that spread.

use narrows_model::comparison::{Change, Comparison, Difference, Meaning, NoiseFloor, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::load::{ErrorCounts, LoadSecond};
use narrows_model::run::TrialState;
use narrows_model::series::names;

use crate::stats::{autocorrelation, mean_and_variance, median, student_t_975};
use crate::stretches::bounds_of;
use crate::summaries::{operations, services};
use crate::thresholds::Thresholds;

const BLOCKS: usize = 10;
/// Blocks of a window at least, so that each has a variance.
const BLOCKS_PER_STRATUM_MIN: usize = 2;
/// Correlation beyond this is not believed from ten blocks.
const CORRELATION_MAX: f64 = 0.6;

/// The variants of a run in order of their first trial, each over its finished repetitions. A variant without one has
/// zeros and no difference.
pub fn compare(run: &RunEvidence) -> Comparison {
    let variants = variants(run);
    let noise = noise_floor(&variants);
    let mut summaries: Vec<VariantSummary> = variants.iter().map(|(name, trials)| summary(name, trials)).collect();
    for at in 1..summaries.len() {
        let against = difference((&variants[0].1, &summaries[0]), (&variants[at].1, &summaries[at]), noise);
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
        errors: errors.total(),
        error_rate: if ended > 0 { errors.total() as f64 / ended as f64 } else { 0.0 },
        cpu_seconds_per_request: median(cpu.collect()),
        services: services(trials),
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

fn difference(first: Side<'_>, other: Side<'_>, noise: Option<NoiseFloor>) -> Option<Difference> {
    let (old, new) = (strata(first.0), strata(other.0));
    let floor = |value: fn(&NoiseFloor) -> f64| noise.as_ref().map_or(0.0, value);
    let width = |quantity: Quantity, of: fn(&TrialEvidence) -> f64| {
        Some(half_width(&old, &new, quantity)?.max(between_starts(first.0, other.0, of)))
    };
    let rate_width = width(Quantity::Rate, |trial| trial.counted_load().rate())?;
    let mean_width = width(Quantity::Latency, |trial| trial.counted_load().latency().mean_ns)?;
    Some(Difference {
        rate: change(first.1.rate, other.1.rate, rate_width, floor(|n| n.rate))?,
        mean: change(first.1.mean_ns, other.1.mean_ns, mean_width, floor(|n| n.mean))?,
    })
}

/// The half-width of Welch's 95 % interval of the logarithm of new ÷ old over whole repetitions; 0 when a side has one
/// only.
fn between_starts(old: &[&TrialEvidence], new: &[&TrialEvidence], value: fn(&TrialEvidence) -> f64) -> f64 {
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

/// `half_width` is that of the 95 % interval of the logarithm of new ÷ old.
fn change(old: f64, new: f64, half_width: f64, floor: f64) -> Option<Change> {
    if old <= 0.0 || new <= 0.0 {
        return None;
    }
    let logarithm = (new / old).ln();
    let half_width = half_width.max(floor.ln_1p());
    let (low, high) = ((logarithm - half_width).exp_m1(), (logarithm + half_width).exp_m1());
    let ratio = logarithm.exp_m1();
    let is_large = ratio.abs() > Thresholds::default().change_min.max(floor);
    let meaning = match (low, high) {
        (low, _) if is_large && low > 0.0 => Meaning::Higher,
        (_, high) if is_large && high < 0.0 => Meaning::Lower,
        _ => Meaning::Same,
    };
    Some(Change { ratio, low, high, meaning })
}

/// What some seconds came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Block {
    seconds: f64,
    succeeded: f64,
    latency_sum_ns: f64,
}

impl Block {
    fn add(&mut self, other: Block) {
        self.seconds += other.seconds;
        self.succeeded += other.succeeded;
        self.latency_sum_ns += other.latency_sum_ns;
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Rate,
    Latency,
}

impl Quantity {
    /// The logarithm of a block's mean; none for a latency of nothing.
    fn log_of(self, block: &Block) -> Option<f64> {
        match self {
            // A block without an answer counts as half an answer: its logarithm must be some number.
            Quantity::Rate => Some((block.succeeded.max(0.5) / block.seconds).ln()),
            Quantity::Latency if block.succeeded > 0.0 => Some((block.latency_sum_ns / block.succeeded).max(1.0).ln()),
            Quantity::Latency => None,
        }
    }

    /// What a stratum's change counts for in the change of the whole: its share of what is averaged.
    fn amount_of(self, block: &Block) -> f64 {
        match self {
            Quantity::Rate => block.succeeded.max(0.5),
            Quantity::Latency => block.latency_sum_ns,
        }
    }
}

/// The blocks of one stretch of load, one row per repetition.
type Stratum = Vec<Vec<Block>>;

/// The strata of a variant; one stratum for all when its repetitions do not have the same windows.
fn strata(trials: &[&TrialEvidence]) -> Vec<Stratum> {
    let cut: Vec<Vec<Vec<Block>>> = trials.iter().map(|trial| cut_by_window(trial)).collect();
    let count = cut.first().map_or(0, Vec::len);
    if cut.iter().any(|strata| strata.len() != count) {
        return whole(&cut);
    }
    (0..count).map(|at| cut.iter().map(|strata| strata[at].clone()).collect()).collect()
}

/// All strata of each repetition joined.
fn whole(cut: &[Vec<Vec<Block>>]) -> Vec<Stratum> {
    vec![cut.iter().map(|strata| strata.concat()).collect()]
}

fn cut_by_window(trial: &TrialEvidence) -> Vec<Vec<Block>> {
    let stretches: Vec<(i64, i64)> = trial.counted_windows().flat_map(bounds_of).collect();
    let blocks = (BLOCKS / stretches.len().max(1)).max(BLOCKS_PER_STRATUM_MIN);
    stretches
        .into_iter()
        .map(|(start_ns, end_ns)| blocks_of(&seconds_between(&trial.seconds, start_ns, end_ns), blocks))
        .filter(|blocks| !blocks.is_empty())
        .collect()
}

/// One block per second, scenarios together, in order of time. A second counts where its middle is.
fn seconds_between(rows: &[LoadSecond], start_ns: i64, end_ns: i64) -> Vec<Block> {
    let mut seconds: std::collections::BTreeMap<i64, Block> = std::collections::BTreeMap::new();
    for row in rows.iter().filter(|row| (start_ns..end_ns).contains(&(row.start_ns + 500_000_000))) {
        let second = seconds.entry(row.start_ns).or_insert(Block { seconds: 1.0, ..Block::default() });
        second.succeeded += row.succeeded as f64;
        second.latency_sum_ns += row.latency.sum_ns() as f64;
    }
    seconds.into_values().collect()
}

/// `count` blocks as equal as they can be, fewer when there are fewer seconds.
fn blocks_of(seconds: &[Block], count: usize) -> Vec<Block> {
    let count = count.min(seconds.len());
    let at = |i: usize| seconds.len() * i / count;
    let joined = |seconds: &[Block]| {
        seconds.iter().fold(Block::default(), |mut sum, second| {
            sum.add(*second);
            sum
        })
    };
    (0..count).map(|i| joined(&seconds[at(i)..at(i + 1)])).collect()
}

/// The half-width of the 95 % interval of the logarithm of new ÷ old; none when there are too few blocks for one.
fn half_width(old: &[Stratum], new: &[Stratum], quantity: Quantity) -> Option<f64> {
    let joined = |strata: &[Stratum]| vec![strata.iter().flatten().cloned().collect::<Stratum>()];
    if old.len() == new.len() {
        stratified(old, new, quantity)
    } else {
        stratified(&joined(old), &joined(new), quantity)
    }
}

/// Welch's interval of a sum of weighted strata, degrees of freedom after Satterthwaite.
fn stratified(old: &[Stratum], new: &[Stratum], quantity: Quantity) -> Option<f64> {
    let amount = |stratum: &Stratum| stratum.iter().flatten().map(|block| quantity.amount_of(block)).sum::<f64>();
    let share = |strata: &[Stratum], at: usize| amount(&strata[at]) / strata.iter().map(amount).sum::<f64>();
    let (mut variance, mut squares) = (0.0, 0.0);
    for at in 0..old.len() {
        for strata in [old, new] {
            let (error, degrees) = squared_error(&strata[at], quantity)?;
            let part = share(strata, at).powi(2) * error;
            variance += part;
            squares += part.powi(2) / degrees;
        }
    }
    let degrees = if squares > 0.0 { variance.powi(2) / squares } else { f64::MAX };
    (!old.is_empty() && variance.is_finite()).then(|| student_t_975(degrees) * variance.sqrt())
}

/// The squared standard error of a stratum's mean logarithm and its degrees of freedom; none with fewer than two
/// blocks. Correlation leaves fewer independent blocks: n (1 − r) ÷ (1 + r) of n.
fn squared_error(stratum: &Stratum, quantity: Quantity) -> Option<(f64, f64)> {
    let rows = stratum.iter().map(|row| row.iter().filter_map(|block| quantity.log_of(block)).collect::<Vec<f64>>());
    let rows: Vec<Vec<f64>> = rows.collect();
    let all = rows.concat();
    let (_, variance) = mean_and_variance(&all).filter(|_| all.len() > 1)?;
    let correlations: Vec<f64> = rows.iter().map(|row| correlation(row)).collect();
    let correlation = mean_and_variance(&correlations)?.0.clamp(0.0, CORRELATION_MAX);
    let independent = all.len() as f64 * (1.0 - correlation) / (1.0 + correlation);
    Some((variance / independent, all.len() as f64 - 1.0))
}

/// The correlation of neighbouring blocks. Few values make it look smaller by (1 + 4r) ÷ n (Kendall 1954, Marriott and
/// Pope 1954), which is put back; from four or fewer it cannot be told and counts as none.
fn correlation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() > 4 { (n * autocorrelation(values) + 1.0) / (n - 4.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
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
        compare(&run_of_trials(trials)).variants[1].against_first.clone().expect("a difference")
    }

    #[test]
    fn equal_variants_are_called_the_same() {
        for memory in [0.5, 0.8] {
            let differs = |seed: u64| {
                let run = [noisy("a", 2 * seed, memory, 200.0, 40.0), noisy("b", 2 * seed + 1, memory, 200.0, 40.0)];
                let difference = second_of(run);
                difference.rate.meaning != Meaning::Same || difference.mean.meaning != Meaning::Same
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
            second_of(run).mean.meaning != Meaning::Same
        };
        let wrong = (0..100).filter(|seed| differs(*seed)).count();
        assert!(wrong < 10, "{wrong} of 100");
    }

    #[test]
    fn different_variants_are_told_apart() {
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
        let comparison = compare(&run_of_trials(run));
        assert_eq!((comparison.variants[0].repetitions, comparison.variants[0].rate), (2, 110.0));
        assert!((comparison.noise.unwrap().rate - 20.0 / 110.0).abs() < 1e-9);
        let rate = comparison.variants[1].against_first.as_ref().unwrap().rate;
        assert_eq!(rate.meaning, Meaning::Same);
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
        let comparison = compare(&run_of_trials([steady("a", 1, 100.0, 40.0), cut.build()]));
        assert_eq!((comparison.variants[1].repetitions, comparison.variants[1].rate), (0, 0.0));
        assert_eq!((&comparison.variants[1].against_first, comparison.noise), (&None, None));
        assert_eq!(compare(&run_of_trials([])), Comparison::default());
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
        let cpu = |trial: TrialBuilder| compare(&run_of_trials([trial.build()])).variants[0].cpu_seconds_per_request;
        assert_eq!(cpu(trial()), None);
        assert_eq!(cpu(trial().cpu("stock", 0, |_| 0.25)), Some(0.0075));
    }
}
