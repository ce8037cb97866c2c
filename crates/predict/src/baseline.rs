//! The system as it is: the model has to reproduce what was measured before it may say anything else.
//!
//! Fitted are the time of a request that no queue explains, which is one delay, the same at every level of the load, and,
//! where there are levels enough, by how much times vary less than exponential ones, by how much the demand of the limit is
//! off, and how much of the CPU that a request needs at single levels alone, as while a service warms up, makes it
//! wait. With several levels these few numbers cannot hide a model that does not hold: a queue that is missing shows as a
//! mean that grows and a model that does not. Then the smallest limit that explains the rest is added, as far as it does.
//! One level cannot tell delay from waiting. There the delay is as long as traces show of requests that wait for nothing. The
//! rest is a drift of the machine's speed, which lengthens waits near a limit only; where users have reached the limit, this is
//! the measured rate and the rest is how much times vary. Requests that arrive together wait
//! for each other by arithmetic, and the delay is fitted.

use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::prediction::{BaselineLevel, Doubt, Figures, Measure};

use crate::queueing::{self, Network, bounds, mva};
use crate::system::{Level, QuietTime, System};

/// How far the model may be off: a share of what was measured (Menascé, Almeida and Dowdy, *Performance by Design*,
/// call 10 % for throughput good).
const MISS_MAX: f64 = 0.10;
/// Standard errors that are noise. Latencies are taken to spread as much as their mean.
const ERRORS_MAX: f64 = 2.0;
/// Steps of the search for the delay, each of which leaves 62 % of the interval in which it lies.
const FIT_STEPS: usize = 20;
/// Levels from which more than the delay is fitted.
const LEVELS_MIN: usize = 3;
/// Variabilities that are tried: exponential times, constant ones in service, constant ones everywhere, and bursts.
const VARIABILITIES: [f64; 8] = [1.0, 0.75, 0.5, 0.25, 0.1, 0.0, 1.5, 2.0];
/// Share of the highest rate from which requests wait notably for each other, however much times vary.
const WAITING_USED_MIN: f64 = 0.5;
/// Variabilities that are tried where one level shows waits: each a quarter more than the one before.
const WAIT_STEPS: i32 = 18;
/// The largest drift that is tried.
const DRIFT_MAX: f64 = 0.35;
/// Factors of the limit's demand that are tried: a rate at a limit, and CPU samples, are off by some per cent.
const CORRECTIONS: [f64; 11] = [1.0, 0.98, 1.02, 0.96, 1.04, 0.94, 1.06, 0.92, 1.08, 0.90, 1.10];
/// The largest factor.
const CORRECTION_MAX: f64 = 1.10;
/// The limit is corrected if a level came this close to it, a share.
const NEAR_LIMIT: f64 = 0.8;
/// Shares of CPU that is needed at single levels alone in which requests wait for it, that are tried.
const WARMING_SHARES: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Shares of a store's throughput that requests get while calls are refused, that are tried.
const USED_SHARES: [f64; 15] =
    [0.98, 0.96, 0.94, 0.92, 0.90, 0.88, 0.86, 0.84, 0.82, 0.80, 0.78, 0.76, 0.74, 0.72, 0.70];
/// The least delay is taken where it misses less, in squares of what a level may be off: 1 % of the latency of one level.
const MISS_MIN: f64 = 0.01;
/// Gain from which a parameter is fitted, in squares of what a level may be off.
const GAIN_MIN: f64 = 0.05;
/// Users whose arrivals exceed what is completed see at least the latency at this share of the highest rate.
const OVERLOAD_SHARE: f64 = 0.95;

/// The model under one load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelFit {
    pub(crate) rate: f64,
    pub(crate) mean_s: f64,
    /// Wait of a request at each station.
    pub(crate) waits_s: Vec<f64>,
    /// Whether more arrives than is completed.
    pub(crate) is_overloaded: bool,
}

/// The model under these loads; `extras_s` is the time that requests take longer under each, as while calls are refused.
pub(crate) fn modelled(system: &System, loads: &[LoadLevel], extras_s: &[f64]) -> Vec<ModelFit> {
    modelled_by(&system.network(), system.stores_rate_max(), loads, extras_s)
}

fn modelled_by(network: &Network, stores: f64, loads: &[LoadLevel], extras_s: &[f64]) -> Vec<ModelFit> {
    let is_closed = |load: &LoadLevel| load.arrivals.is_none();
    if loads.iter().all(is_closed) && extras_s.iter().all(|extra_s| *extra_s == 0.0) {
        let users: Vec<u32> = loads.iter().map(|load| load.users).collect();
        let solutions = mva::closed(network, &users);
        return solutions.into_iter().zip(&users).map(|(one, users)| closed(one, *users, network, stores)).collect();
    }
    let one = |(load, extra_s): (&LoadLevel, &f64)| {
        let longer = Network { delay_s: network.delay_s + extra_s, ..network.clone() };
        match load.arrivals {
            Some(rate) => open(&longer, rate, stores),
            None => {
                let solution = with_refusals(network, &longer, load.users, stores);
                closed(solution, load.users, network, stores)
            }
        }
    };
    loads.iter().zip(extras_s).map(one).collect()
}

/// A store that refuses single calls slows requests down by what that costs. One that is asked for more than it provides
/// completes what it provides, whatever a refusal costs.
fn with_refusals(network: &Network, refused: &Network, users: u32, rate_max: f64) -> queueing::Solution {
    let alone = mva::closed(network, &[users]).swap_remove(0);
    if alone.rate > rate_max { alone } else { mva::closed(refused, &[users]).swap_remove(0) }
}

/// A store lets requests through at its rate and makes the others wait.
fn closed(solution: queueing::Solution, users: u32, network: &Network, rate_max: f64) -> ModelFit {
    let rate = solution.rate.min(rate_max);
    let mean_s = if rate < solution.rate { f64::from(users) / rate - network.think_s } else { solution.response_s };
    ModelFit { rate, mean_s, waits_s: solution.waits_s, is_overloaded: false }
}

fn open(network: &Network, rate: f64, rate_max: f64) -> ModelFit {
    let is_within = rate < rate_max;
    match queueing::open(network, rate).filter(|_| is_within) {
        Some(one) => ModelFit { rate, mean_s: one.response_s, waits_s: one.waits_s, is_overloaded: false },
        None => {
            let limit = bounds::rate_max(network).min(rate_max);
            let near = queueing::open(network, OVERLOAD_SHARE * limit).unwrap_or_default();
            ModelFit { rate: limit, mean_s: near.response_s, waits_s: near.waits_s, is_overloaded: true }
        }
    }
}

/// The system with the parameters that fit its levels best. `refusals_s` is the time that requests take longer at each.
pub(crate) fn fitted(system: &System, refusals_s: &[f64]) -> System {
    let known = searched(system, refusals_s);
    if known.excess <= 0.0 {
        return known.system;
    }
    if system.quiet.is_some() {
        return fitted(&System { quiet: None, ..system.clone() }, refusals_s);
    }
    if let Some(refusing) = refusing(system, refusals_s).filter(|found| found.excess <= 0.0) {
        return refusing.system;
    }
    let unexplained = system.with_unexplained_limit().map(|system| searched(&system, refusals_s));
    unexplained.filter(|found| found.excess <= 0.0).map_or(known.system, |found| found.system)
}

/// The system whose store completes less than it provides while it refuses calls; `None` where no store does.
fn refusing(system: &System, refusals_s: &[f64]) -> Option<Fit> {
    let is_refused = refusals_s.iter().any(|refused_s| *refused_s > 0.0);
    if !is_refused || system.stores_rate_max().is_infinite() {
        return None;
    }
    let with = |used_share: &f64| Fit::new(system.with_used_share(*used_share), refusals_s);
    let best = USED_SHARES.iter().map(with).min_by(|a, b| a.miss.total_cmp(&b.miss))?;
    Some(searched(&best.system, refusals_s))
}

/// The system with the delay that fits other levels best. `extras_s` is the time that requests take longer at each.
pub(crate) fn with_delay_of(system: &System, levels: &[Level], extras_s: &[f64]) -> System {
    System { delay_s: delay(system, levels, extras_s).delay_s, ..system.clone() }
}

/// Time that requests take longer at each level of the system.
pub(crate) fn extras_s(system: &System, refusals_s: &[f64]) -> Vec<f64> {
    system.warming_s.iter().zip(refusals_s).map(|(warming_s, refused_s)| warming_s + refused_s).collect()
}

/// A system with what is fitted, and how far it is off.
struct Fit {
    system: System,
    /// Sum of the squares of the misses of mean latency, each in units of what a level may be off.
    miss: f64,
    /// By how much the worst level is off beyond what it may be, as a share; at most 0 for a model that reproduces all.
    excess: f64,
}

impl Fit {
    fn new(mut system: System, refusals_s: &[f64]) -> Self {
        let extras_s = extras_s(&system, refusals_s);
        let found = delay(&system, &system.levels, &extras_s);
        system.delay_s = found.delay_s;
        let loads: Vec<LoadLevel> = system.levels.iter().map(|level| level.load).collect();
        let baseline = compared(&system.levels, &modelled(&system, &loads, &extras_s));
        let excess = baseline.iter().flat_map(misses).map(|(excess, _)| excess).fold(f64::NEG_INFINITY, f64::max);
        Self { system, miss: found.miss, excess }
    }

    /// Another system, if it is notably closer.
    fn improve(&mut self, system: System, refusals_s: &[f64]) {
        let other = Self::new(system, refusals_s);
        if other.miss < self.miss - GAIN_MIN {
            *self = other;
        }
    }
}

/// Of the values that are tried for each parameter, those that fit best; the plainest where others gain little.
fn searched(system: &System, refusals_s: &[f64]) -> Fit {
    let mut best = Fit::new(system.clone(), refusals_s);
    if system.quiet.is_some() {
        let at_limit = at_limit(system).map(|system| Fit::new(system, refusals_s));
        best = at_limit.filter(|other| other.miss < best.miss + GAIN_MIN).unwrap_or(best);
        fit_waits(&mut best, refusals_s);
    }
    if system.levels.len() < LEVELS_MIN {
        return best;
    }
    let is_near_limit = system.rate_top() > NEAR_LIMIT * bounds::rate_max(&system.network());
    let corrections = if is_near_limit { &CORRECTIONS[..] } else { &[1.0] };
    for (variability, factor) in VARIABILITIES.iter().flat_map(|one| corrections.iter().map(move |other| (one, other)))
    {
        let mut other = System { variability: *variability, ..system.clone() };
        other.correct_limit(*factor);
        best.improve(other, refusals_s);
    }
    let warming_cpu_s = best.system.warming_cpu_s();
    for share in WARMING_SHARES {
        let warming_s = warming_cpu_s.iter().map(|cpu_s| share * cpu_s).collect();
        best.improve(System { warming_s, ..best.system.clone() }, refusals_s);
    }
    for variability in VARIABILITIES {
        best.improve(System { variability, ..best.system.clone() }, refusals_s);
    }
    best
}

/// The system with its limit at the measured rate, if the users of its only level would exceed the limit without waits. Otherwise a
/// small error of the limit would pass for a delay as long as nearly all of their wait. `None` below the limit.
fn at_limit(system: &System) -> Option<System> {
    let (level, rate_max, least_s) = (&system.levels[0], bounds::rate_max(&system.network()), system.quiet?.least_s);
    let without_waits = f64::from(level.load.users) / (system.think_s + least_s);
    let used = level.rate() / rate_max;
    let is_reached = level.load.arrivals.is_none() && without_waits > rate_max && used > NEAR_LIMIT;
    let mut system = system.clone();
    system.correct_limit((1.0 / used).clamp(1.0, CORRECTION_MAX));
    system.delay_least_s = least_s - (system.network().unloaded_s() - system.delay_s);
    system.is_at_limit = true;
    is_reached.then_some(system)
}

/// Fits the latency that a delay without any waiting leaves: by how much the speed of the machine drifts, and where that is
/// not enough, by how much times vary.
fn fit_waits(best: &mut Fit, refusals_s: &[f64]) {
    let system = best.system.clone();
    if system.levels[0].rate() < WAITING_USED_MIN * bounds::rate_max(&system.network()) {
        return;
    }
    if let Some(quiet) = system.quiet.filter(|_| !system.is_at_limit) {
        // A longer delay fits as well as more drift, so it is taken from between its bounds.
        let between_s = (quiet.least_s * quiet.most_s).sqrt();
        let quiet = Some(QuietTime { least_s: between_s, most_s: between_s });
        let fit = |drift: f64| Fit::new(System { drift, quiet, ..system.clone() }, refusals_s);
        let drifting = fit(lowest(0.0, DRIFT_MAX, |drift| fit(drift).miss));
        if drifting.miss < best.miss + GAIN_MIN {
            *best = drifting;
        }
    }
    let system = best.system.clone();
    for step in 1..=WAIT_STEPS {
        best.improve(System { variability: 1.25_f64.powi(step), ..system.clone() }, refusals_s);
    }
}

/// A delay, and the sum of the squares of the misses with it.
struct Delay {
    delay_s: f64,
    miss: f64,
}

/// The delay with which the system reproduces the mean latencies of these levels best.
fn delay(system: &System, levels: &[Level], extras_s: &[f64]) -> Delay {
    let loads: Vec<LoadLevel> = levels.iter().map(|level| level.load).collect();
    let (network, stores) = (system.network(), system.stores_rate_max());
    let miss = |delay_s: f64| {
        let modelled = modelled_by(&Network { delay_s, ..network.clone() }, stores, &loads, extras_s);
        let of = |(level, model): (&Level, &ModelFit)| {
            level.weight * ((model.mean_s / level.mean_s() - 1.0) / allowed(level.requests)).powi(2)
        };
        levels.iter().zip(&modelled).map(of).sum::<f64>()
    };
    let longest_s = levels.iter().map(Level::mean_s).fold(0.0, f64::max);
    let own_s = network.unloaded_s() - network.delay_s;
    let longest_s = system.quiet.map_or(longest_s, |quiet| longest_s.min(quiet.most_s - own_s).max(0.0));
    let shortest_s = system.delay_min_s().min(longest_s);
    // Near a limit many delays give nearly the same latency. One user's requests come near none.
    let is_enough = miss(shortest_s) < MISS_MIN && !system.is_one_user();
    let delay_s = if is_enough { shortest_s } else { lowest(shortest_s, longest_s, miss) };
    Delay { delay_s, miss: miss(delay_s) }
}

/// How far a level with so many requests may be off, a share.
fn allowed(requests: u64) -> f64 {
    MISS_MAX.max(ERRORS_MAX / (requests as f64).sqrt())
}

/// Where a function with one valley is lowest: golden-section search.
fn lowest(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_895;
    let inner = |low: f64, high: f64| (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (of(a), of(b));
    for _ in 0..FIT_STEPS {
        if at_a <= at_b {
            (high, b, at_b) = (b, a, at_a);
            a = inner(low, high).0;
            at_a = of(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = inner(low, high).1;
            at_b = of(b);
        }
    }
    (low + high) / 2.0
}

/// Measurement of a level.
pub(crate) fn measured(level: &Level) -> Figures {
    Figures { rate: level.rate(), mean_ns: level.mean_s() * 1e9, p95_ns: level.quantile_s(0.95) * 1e9 }
}

/// Measured and modelled beside each other. The rate of users follows from the latency by Little's law, with the time that
/// they were seen to think at this level.
pub(crate) fn compared(levels: &[Level], model: &[ModelFit]) -> Vec<BaselineLevel> {
    let rate = |level: &Level, model: &ModelFit| match level.think_s() {
        Some(think_s) => f64::from(level.load.users) / (model.mean_s + think_s),
        None => model.rate,
    };
    let one = |(level, model): (&Level, &ModelFit)| BaselineLevel {
        label: level.label.clone(),
        load: level.load,
        requests: level.requests,
        measured: measured(level),
        model_rate: rate(level, model),
        model_mean_ns: model.mean_s * 1e9,
    };
    levels.iter().zip(model).map(one).collect()
}

/// Doubts about a model that has this baseline.
pub(crate) fn doubts(baseline: &[BaselineLevel]) -> Vec<Doubt> {
    let missed =
        baseline.iter().flat_map(misses).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(excess, _)| *excess > 0.0);
    let one_level = (baseline.len() < 2).then_some(Doubt::OneLevel);
    missed.map(|(_, doubt)| doubt).into_iter().chain(one_level).collect()
}

/// By how much each figure of a level is missed beyond what is allowed, with the doubt that it gives.
fn misses(level: &BaselineLevel) -> [(f64, Doubt); 2] {
    let allowed = allowed(level.requests);
    [
        (Measure::Rate, level.measured.rate, level.model_rate),
        (Measure::Mean, level.measured.mean_ns, level.model_mean_ns),
    ]
    .map(|(measure, measured, model)| {
        let doubt = Doubt::BaselineMissed { label: level.label.clone(), measure, measured, model };
        ((model / measured - 1.0).abs() - allowed, doubt)
    })
}

/// How far the model is off on average: the root of the mean square of its misses of mean latency, as shares.
pub(crate) fn miss_share(baseline: &[BaselineLevel]) -> f64 {
    let weight: f64 = baseline.iter().map(|level| level.requests as f64).sum();
    let of =
        |level: &BaselineLevel| level.requests as f64 * (level.model_mean_ns / level.measured.mean_ns - 1.0).powi(2);
    (baseline.iter().map(of).sum::<f64>() / weight).sqrt()
}

#[cfg(test)]
mod tests {
    use narrows_testkit::simulator;

    use super::*;
    use crate::DiagnosedTrial;

    #[test]
    fn the_lowest_point_of_a_valley_is_found() {
        assert!((lowest(0.0, 10.0, |x| (x - 3.2).powi(2)) - 3.2).abs() < 1e-3);
        assert!(lowest(0.0, 10.0, |x| x) < 1e-3);
    }

    #[test]
    fn an_error_of_the_limit_is_no_delay() {
        let steps = vec![(30, 20)];
        let trial = simulator::System { steps, web_cores: 1, web_ms: 8.0, ..simulator::System::default() }.run("a");
        let mut system = System::read(&DiagnosedTrial::new(&trial, &[])).expect("a system");
        system.correct_limit(0.94);
        let as_delay = fitted(&system, &[0.0]);
        system.quiet = Some(QuietTime { least_s: 0.03, most_s: 0.3 });
        let at_limit = fitted(&system, &[0.0]);
        assert!(as_delay.delay_s > 0.1, "{}", as_delay.delay_s);
        assert!((at_limit.network().unloaded_s() - 0.03).abs() < 0.001, "{at_limit:?}");
    }

    #[test]
    fn a_miss_beyond_ten_per_cent_and_beyond_noise_is_a_serious_doubt() {
        let level = |requests, model_mean_ns| BaselineLevel {
            label: "4 users".into(),
            load: LoadLevel { users: 4, arrivals: None },
            requests,
            measured: Figures { rate: 10.0, mean_ns: 100.0, p95_ns: 200.0 },
            model_rate: 10.0,
            model_mean_ns,
        };
        let serious = |levels: &[BaselineLevel]| doubts(levels).iter().any(Doubt::is_serious);
        assert!(!serious(&[level(10_000, 108.0), level(10_000, 95.0)]));
        assert!(serious(&[level(10_000, 108.0), level(10_000, 115.0)]));
        assert!(!serious(&[level(10_000, 108.0), level(100, 115.0)]), "within noise");
        assert_eq!(doubts(&[level(10_000, 100.0)]), [Doubt::OneLevel]);
    }
}
