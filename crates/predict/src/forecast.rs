//! From a change to figures: retimed requests give a new delay, the change gives new demands, the network gives waits.
//!
//! The figures are those that were measured, times the ratio of the model with the change to the model without it, so that
//! a model that is 5 % off at a level stays 5 % off in both and says the gain. Throughput follows from latency by Little's
//! law with the measured users and think time, within the limits of the changed system.
//!
//! `intervals.rs` says how far the truth may be off.

use std::collections::HashMap;
use std::ops::Range;

use narrows_model::finding::FindingKind;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::prediction::{
    Assumption, BaselineLevel, Change, Doubt, Figures, Forecast, LevelForecast, Prediction,
};
use narrows_model::units;

use crate::baseline::{ModelFit, compared, doubts, extras_s, fitted, measured, miss_share, modelled, with_delay_of};
use crate::changes::more_load::TESTED_MAX;
use crate::changes::{Case, Effect, Scene, method};
use crate::intervals::{ModelError, Noise, Waiting, each_figure, joined, spread, widened};
use crate::queueing::Burst;
use crate::queueing::mva::USERS_MAX;
use crate::random::Random;
use crate::refusals::refusals_s;
use crate::retime::{RetimedTrace, Sample};
use crate::system::{Level, LoadGrowth, LoadedCpu, QuietTime, System, other_load};
use crate::tail::{OldNew, Tail};
use crate::{Cannot, DiagnosedTrial};

/// How often traces and weights of levels are drawn.
const DRAWS: usize = 100;
/// Traces of each draw at most.
const DRAWN_TRACES_MAX: usize = 400;
/// With more failed requests the figures are doubted.
const FAILED_MAX: f64 = 0.01;
/// Traces that show less of the latency than this are not what requests wait for.
const TRACED_SHARE_MIN: f64 = 0.5;
/// A change leaves at least this share of a request's time.
const UNLOADED_SHARE_MIN: f64 = 0.02;
/// Share of the highest rate of a system from which an error of its limit is one of the rate.
const NEAR_LIMIT: f64 = 0.9;
/// How far the model may be put right at a level.
const RIGHTING_MAX: f64 = 2.0;

/// Basis of all predictions of a trial.
pub(crate) struct Ground<'a> {
    diagnosed: DiagnosedTrial<'a>,
    system: System,
    sample: Sample<'a>,
    /// Time that a request takes longer at each level because calls are refused.
    refusals_s: Vec<f64>,
    model: Vec<ModelFit>,
    /// How long traces are ÷ what a request takes without waiting in a queue; none without traces.
    traced_share: Option<f64>,
    /// The same system from other draws of its levels, each with traces.
    draws: Vec<Draw>,
    pub(crate) baseline: Vec<BaselineLevel>,
}

/// One draw.
struct Draw {
    system: System,
    model: Vec<ModelFit>,
    /// Places of traces; each may be there several times.
    traces: Vec<usize>,
}

/// One level with a change.
#[derive(Debug, Clone, Copy)]
struct After {
    rate: f64,
    mean_s: f64,
    p95_s: f64,
}

impl After {
    fn figures(&self) -> Figures {
        Figures { rate: self.rate, mean_ns: self.mean_s * 1e9, p95_ns: self.p95_s * 1e9 }
    }

    /// Share of the time in which users wait for a response, 0 to 1; 1 for arrivals.
    fn waiting_share(&self, load: LoadLevel) -> f64 {
        match load.arrivals {
            None => (self.rate * self.mean_s / f64::from(load.users)).min(1.0),
            Some(_) => 1.0,
        }
    }
}

/// Each level with a change, and all of them together.
type AfterAll = (Vec<After>, After);

/// Forecast of one case of a change.
struct CaseForecast {
    expected: AfterAll,
    /// The same with other CPU under the load that it leads to; empty where levels tell it.
    loaded: Vec<AfterAll>,
    drawn: Vec<AfterAll>,
    /// Time that a request takes shorter or longer without any wait, seconds.
    removed_s: f64,
    /// The highest rate that the changed system allows.
    rate_max: f64,
    /// See [`Case::is_bound`].
    is_bound: bool,
}

impl CaseForecast {
    /// How much users wait at these levels.
    fn waiting(&self, levels: &[Level], places: Range<usize>) -> Waiting {
        let (mut waiting, mut limited, mut requests) = (0.0, 0.0, 0.0);
        for (level, after) in levels[places.clone()].iter().zip(&self.expected.0[places]) {
            let of_level = after.rate * level.seconds;
            waiting += of_level * after.waiting_share(level.load);
            limited += if after.rate > NEAR_LIMIT * self.rate_max { of_level } else { 0.0 };
            requests += of_level;
        }
        if requests > 0.0 {
            Waiting { share: waiting / requests, limited_share: limited / requests }
        } else {
            Waiting { share: 1.0, limited_share: 0.0 }
        }
    }
}

impl<'a> Ground<'a> {
    pub(crate) fn new(diagnosed: &DiagnosedTrial<'a>) -> Result<Self, Cannot> {
        let trial = diagnosed.trial;
        let system = System::read(diagnosed)?;
        let users = system.levels.iter().map(|level| level.load.users).max().unwrap_or(0);
        if users > USERS_MAX {
            return Err(Cannot::TooManyUsers { users: f64::from(users) });
        }
        let mut sample = Sample::new(trial, &system.levels);
        let refusals_s = refusals_s(trial, &Scene { diagnosed, system: &system, sample: &sample });
        // Waits of requests that arrive together are known without that of one that waits for nothing.
        let is_alone = system.levels.len() == 1 && !system.is_one_user() && system.burst == Burst::ONE;
        let quiet = sample
            .quiet(&system.levels[0])
            .filter(|_| is_alone)
            .map(|quiet| quiet.shorter(lighter_quiet(diagnosed, &system)));
        let system = fitted(&System { quiet, ..system }, &refusals_s);
        let alone_ns = system.network().unloaded_s() * 1e9;
        let traced_share = sample.mean_ns().filter(|_| alone_ns > 0.0).map(|mean_ns| mean_ns / alone_ns);
        let loads = loads(&system.levels);
        let model = modelled(&system, &loads, &extras_s(&system, &refusals_s));
        let waits: Vec<HashMap<String, f64>> = model.iter().map(|one| waits_of(&system, one)).collect();
        sample.take_out(&waits);
        let baseline = compared(&system.levels, &model);
        let draws = draws(&system, &refusals_s, sample.traces.len());
        Ok(Self { diagnosed: *diagnosed, system, sample, refusals_s, model, traced_share, draws, baseline })
    }

    /// The trial as changes find it.
    pub(crate) fn scene(&self) -> Scene<'_> {
        Scene { diagnosed: &self.diagnosed, system: &self.system, sample: &self.sample }
    }

    /// Gain of a change.
    pub(crate) fn prediction(&self, change: &Change, because: Option<FindingKind>) -> Result<Prediction, Cannot> {
        self.together(change, &[], because)
    }

    /// Gain of a change, with others made at the same time.
    pub(crate) fn together(
        &self,
        change: &Change,
        with: &[Change],
        because: Option<FindingKind>,
    ) -> Result<Prediction, Cannot> {
        let scene = self.scene();
        let mut effect = method(change.kind).effect(change, &scene)?;
        for other in with {
            effect = effect.and(method(other.kind).effect(other, &scene)?, &self.sample);
        }
        let miss = miss_share(&self.baseline);
        let (now, after, levels) = match &effect.loads {
            None => self.same_load(&effect, miss),
            Some(loads) => self.other_load(&effect, loads, miss),
        };
        let changed = self.changed(&effect);
        let top_now = self.baseline.iter().map(|level| level.measured.rate).fold(0.0, f64::max);
        let top_after = levels.iter().map(|level| level.after.rate.value).fold(0.0, f64::max);
        let doubts = self.doubts(&effect, top_after / top_now, &levels);
        Ok(Prediction {
            measured: None,
            change: change.clone(),
            with: with.to_vec(),
            because,
            now,
            after,
            limit_now: self.system.limit(top_now),
            limit_after: changed.limit(top_after),
            levels,
            assumptions: self.assumptions(&effect),
            doubts,
        })
    }

    /// The system with the change, of several cases the first.
    fn changed(&self, effect: &Effect<'_>) -> System {
        let mut system = self.system.clone();
        effect.cases.iter().take(1).for_each(|case| (case.adjust)(&mut system));
        system
    }

    /// All levels as they were measured, with the change.
    fn same_load(&self, effect: &Effect<'_>, miss: f64) -> (Figures, Forecast, Vec<LevelForecast>) {
        let all = (0..self.sample.traces.len()).collect::<Vec<_>>();
        let per_case = |case: &Case<'_>| {
            let after = |cpu: Option<LoadedCpu>| self.after(case, &self.system, &self.model, &all, cpu);
            let likely = LoadedCpu::likely(&self.system).filter(|_| !case.is_cpu_given);
            let expected = after(likely);
            let drawn = self.draws.iter().map(|draw| self.after(case, &draw.system, &draw.model, &draw.traces, likely));
            let changed = with_change(&self.system, case, &case.retimed);
            let removed_s = (self.system.network().unloaded_s() - changed.network().unloaded_s()).abs();
            CaseForecast {
                expected,
                loaded: LoadedCpu::ends(&self.system).iter().map(|cpu| after(Some(*cpu))).collect(),
                drawn: drawn.collect(),
                removed_s,
                rate_max: changed.rate_max(),
                is_bound: case.is_bound,
            }
        };
        let cases: Vec<CaseForecast> = effect.cases.iter().map(per_case).collect();
        let levels = &self.system.levels;
        let forecast = |places: Range<usize>, which: &dyn Fn(&AfterAll) -> After| {
            let noise = Noise::new(&levels[places.clone()]);
            let error_of = |case: &CaseForecast| {
                let removed_share = case.removed_s / which(&case.expected).mean_s;
                ModelError::new(miss, noise, removed_share, case.waiting(levels, places.clone()))
            };
            let Some(error) = cases.first().map(error_of) else { return Forecast::default() };
            each_figure(error, |of, error| {
                let of_all = |all: &AfterAll| of(&which(all).figures());
                let each = |case: &CaseForecast| {
                    let loaded = case.loaded.iter().map(|one| spread(of_all(one), Vec::new(), error));
                    let own = spread(of_all(&case.expected), case.drawn.iter().map(of_all).collect(), error);
                    loaded.fold(own, |own, other| widened(own, &other))
                };
                let (bounds, cases): (Vec<&CaseForecast>, Vec<&CaseForecast>) =
                    cases.iter().partition(|case| case.is_bound);
                let value = joined(cases.into_iter().map(each).collect());
                bounds.into_iter().map(each).fold(value, |value, bound| widened(value, &bound))
            })
        };
        let level = |(at, level): (usize, &Level)| {
            let after = forecast(at..at + 1, &|(levels, _)| levels[at]);
            LevelForecast { label: level.label.clone(), load: level.load, now: Some(measured(level)), after }
        };
        let of_all = forecast(0..levels.len(), &|(_, all)| *all);
        (overall(levels), of_all, levels.iter().enumerate().map(level).collect())
    }

    /// Each level with a change, and all of them together; `cpu` is how CPU depends on the load that it leads to.
    fn after(
        &self,
        case: &Case<'_>,
        system: &System,
        model: &[ModelFit],
        traces: &[usize],
        cpu: Option<LoadedCpu>,
    ) -> AfterAll {
        let levels = &self.system.levels;
        let requests: Vec<RetimedTrace> =
            if case.retimed.is_empty() { Vec::new() } else { traces.iter().map(|at| case.retimed[*at]).collect() };
        let old_unloaded_s = system.network().unloaded_s();
        let mut changed = with_change(system, case, &requests);
        let left = refusals_left(case, &requests);
        let refusals_s: Vec<f64> = self.refusals_s.iter().map(|refused_s| refused_s * left).collect();
        let old_extras_s = extras_s(system, &self.refusals_s);
        let new_extras_s = extras_s(&changed, &refusals_s);
        let mut new_model = modelled(&changed, &loads(levels), &new_extras_s);
        if let Some(cpu) = cpu {
            let growth = LoadGrowth {
                rate: new_model[0].rate / model[0].rate,
                under_way: under_way(&changed, &new_model[0], system) / under_way(system, &model[0], &changed),
            };
            cpu.apply(growth, system, &mut changed);
            new_model = modelled(&changed, &loads(levels), &new_extras_s);
        }
        let new_unloaded_s = changed.network().unloaded_s();
        let mut each = Vec::with_capacity(levels.len());
        let mut tail = Tail::default();
        for (at, level) in levels.iter().enumerate() {
            let (rate, mean_s) = righted(level, &model[at], &new_model[at], &changed);
            let waits_s = OldNew {
                old: (model[at].mean_s - old_unloaded_s - old_extras_s[at]).max(0.0),
                new: (new_model[at].mean_s - new_unloaded_s - new_extras_s[at]).max(0.0),
            };
            let of_level = Tail::of_level(case, &requests, at, waits_s);
            let ratio = of_level.ratio().unwrap_or(mean_s / level.mean_s());
            each.push(After { rate, mean_s, p95_s: level.quantile_s(0.95) * ratio });
            tail.take(
                of_level,
                OldNew { old: level.requests as f64, new: rate * level.seconds },
                OldNew { old: level.mean_s() / model[at].mean_s, new: mean_s / new_model[at].mean_s },
            );
        }
        let all = together(levels, &each, &tail);
        (each, all)
    }

    /// The same system under loads that were not measured.
    fn other_load(
        &self,
        effect: &Effect<'_>,
        loads: &[LoadLevel],
        miss: f64,
    ) -> (Figures, Forecast, Vec<LevelForecast>) {
        let heaviest = self.system.levels.len() - 1;
        let top = &self.system.levels[heaviest];
        let extra_s = extras_s(&self.system, &self.refusals_s)[heaviest];
        let extras_s = vec![extra_s; loads.len()];
        let at_loads = |system: &System, model: &[ModelFit]| -> Vec<After> {
            let mut system = system.clone();
            effect.cases.iter().for_each(|case| (case.adjust)(&mut system));
            let righting = (top.mean_s() / model[heaviest].mean_s).clamp(1.0 / RIGHTING_MAX, RIGHTING_MAX);
            let tail = top.quantile_s(0.95) / top.mean_s();
            let after = |one: ModelFit| {
                let mean_s = one.mean_s * righting;
                After { rate: one.rate, mean_s, p95_s: mean_s * tail }
            };
            modelled(&system, loads, &extras_s).into_iter().map(after).collect()
        };
        let expected = at_loads(&self.system, &self.model);
        let drawn: Vec<Vec<After>> = self.draws.iter().map(|draw| at_loads(&draw.system, &draw.model)).collect();
        let now = measured(top);
        let forecast = |at: usize| {
            let waiting = Waiting { share: expected[at].waiting_share(loads[at]), limited_share: 0.0 };
            let error = ModelError::new(miss, Noise::new(std::slice::from_ref(top)), 0.0, waiting);
            each_figure(error, |of, error| {
                let drawn = drawn.iter().map(|draw| of(&draw[at].figures())).collect();
                spread(of(&expected[at].figures()), drawn, error)
            })
        };
        let level = |(at, load): (usize, &LoadLevel)| LevelForecast {
            label: match load.arrivals {
                Some(arrivals) => units::rate(arrivals),
                None => format!("{} users", load.users),
            },
            load: *load,
            now: None,
            after: forecast(at),
        };
        (now, forecast(loads.len() - 1), loads.iter().enumerate().map(level).collect())
    }

    fn assumptions(&self, effect: &Effect<'_>) -> Vec<Assumption> {
        let mut all = effect.assumptions.clone();
        let is_closed = self.system.levels.iter().all(|level| level.load.arrivals.is_none());
        if is_closed {
            all.push(Assumption::SameUsers { think_ns: self.system.think_s * 1e9 });
        }
        if self.refusals_s.iter().any(|refused_s| *refused_s > 0.0)
            && effect.cases.iter().any(|case| case.refusals_left.is_none())
        {
            all.push(Assumption::RefusalsStay);
        }
        if !all.contains(&Assumption::CpuPerRequest) {
            all.push(Assumption::CpuPerRequest);
        }
        if self.system.levels_left_out > 0 {
            all.push(Assumption::WarmLevels { left_out: self.system.levels_left_out });
        }
        all.push(Assumption::OneMachine { cores: self.system.cores.round() as u32 });
        let lightest_s = self.baseline.first().map_or(0.0, |level| level.measured.mean_ns / 1e9);
        let share = if lightest_s > 0.0 { (self.system.delay_s / lightest_s).min(1.0) } else { 0.0 };
        all.push(Assumption::RestIsDelay { delay_ns: self.system.delay_s * 1e9, share });
        all.dedup();
        all
    }

    fn doubts(&self, effect: &Effect<'_>, growth: f64, levels: &[LevelForecast]) -> Vec<Doubt> {
        let mut all = doubts(&self.baseline);
        all.extend(effect.doubts.iter().cloned());
        if effect.loads.is_none() && growth > TESTED_MAX {
            all.push(Doubt::BeyondTested { factor: growth });
        }
        let is_of_traces = effect.cases.iter().any(|case| !case.retimed.is_empty());
        let shown = self.traced_share.filter(|share| is_of_traces && *share < TRACED_SHARE_MIN);
        all.extend(shown.map(|share| Doubt::OutsideTraces { share }));
        let failed = self.system.levels.iter().map(|level| level.error_rate).fold(0.0, f64::max);
        if failed > FAILED_MAX {
            all.push(Doubt::Failures { share: failed });
        }
        let is_overloaded = |level: &LevelForecast| {
            level.load.arrivals.is_some_and(|arrivals| level.after.rate.value < 0.95 * arrivals)
        };
        if levels.iter().any(is_overloaded) {
            all.push(Doubt::Overloaded);
        }
        all
    }
}

/// Time of a request that waits for nothing by a lighter load on the same programs; `None` without one, or without its traces.
fn lighter_quiet(diagnosed: &DiagnosedTrial<'_>, system: &System) -> Option<QuietTime> {
    let other = other_load(diagnosed.trial, diagnosed.run, &system.levels)?;
    let is_lighter = other.level.rate() < system.levels[0].rate();
    is_lighter.then(|| Sample::new(other.trial, std::slice::from_ref(&other.level)).quiet(&other.level))?
}

fn loads(levels: &[Level]) -> Vec<LoadLevel> {
    levels.iter().map(|level| level.load).collect()
}

/// Draws of traces, and of weights of the levels: exponential ones, as by D. B. Rubin, *The Bayesian Bootstrap*, Annals of
/// Statistics 1981. No level is left out, for the lightest ones alone tell what a request takes without waiting.
fn draws(system: &System, refusals_s: &[f64], traces: usize) -> Vec<Draw> {
    let mut random = Random::new();
    let loads = loads(&system.levels);
    let extras_s = extras_s(system, refusals_s);
    let mut draw = || {
        let weighted = |level: &Level| level.weighted(random.exponential());
        let drawn: Vec<Level> = system.levels.iter().map(weighted).collect();
        let traces = random.picks(traces.min(DRAWN_TRACES_MAX), traces);
        let other = with_delay_of(&system.with_demands_of(&drawn)?, &drawn, &extras_s);
        let model = modelled(&other, &loads, &extras_s);
        Some(Draw { system: other, model, traces })
    };
    (0..DRAWS).filter_map(|_| draw()).collect()
}

/// The wait of a request at each service: for its own CPU, and its part of the wait for the machine's.
fn waits_of(system: &System, model: &ModelFit) -> HashMap<String, f64> {
    let machine_s = model.waits_s.get(system.programs.len()).copied().unwrap_or(0.0);
    let wait = |(program, own_s): (&crate::system::Program, &f64)| {
        let share = if system.machine_s > 0.0 { program.demand_s / system.machine_s } else { 0.0 };
        (program.service.clone(), own_s + machine_s * share)
    };
    system.programs.iter().zip(&model.waits_s).map(wait).collect()
}

/// Requests under way in the programs that both systems have, in CPU and in the queue for it.
fn under_way(system: &System, model: &ModelFit, other: &System) -> f64 {
    let waits_s = waits_of(system, model);
    let is_used = |system: &System, service: &str| system.program(service).is_some_and(|one| one.demand_s > 0.0);
    let both = system.programs.iter().filter(|one| is_used(system, &one.service) && is_used(other, &one.service));
    if system.is_at_limit {
        // Nearly all wait for CPU, for that of each program in proportion to its part of a request.
        let users = f64::from(system.levels[0].load.users);
        return users * both.map(|one| one.demand_s).sum::<f64>() / system.machine_s;
    }
    let time_s: f64 = both.map(|one| system.own_s(one) + waits_s.get(&one.service).copied().unwrap_or(0.0)).sum();
    model.rate * time_s
}

/// A system with a change: its demands, and the delay that is left of these requests; without any, what is left when as much
/// of the unexplained time as may belong to it goes with what the change removes.
fn with_change(system: &System, case: &Case<'_>, requests: &[RetimedTrace]) -> System {
    let mut changed = system.clone();
    (case.adjust)(&mut changed);
    let unloaded_s = system.network().unloaded_s();
    let weight: f64 = requests.iter().map(|one| one.weight).sum();
    if weight <= 0.0 && system.is_batch {
        changed.delay_s += system.batch_rest_s(&changed) - system.delay_s;
    } else if weight <= 0.0 {
        changed.delay_s -= system.unexplained_with(unloaded_s - changed.network().unloaded_s());
    } else {
        let saved_s = requests.iter().map(|one| (one.old_ns - one.new_ns) * one.weight).sum::<f64>() / weight / 1e9;
        let left_s = (unloaded_s - saved_s).max(UNLOADED_SHARE_MIN * unloaded_s);
        let queued_s = changed.network().unloaded_s() - changed.delay_s;
        changed.delay_s = left_s - queued_s;
    }
    changed.delay_s = changed.delay_s.max(system.generator_s.min(system.delay_s));
    changed
}

/// The share of the time that refusals take which is left with a change.
fn refusals_left(case: &Case<'_>, requests: &[RetimedTrace]) -> f64 {
    let sum = |of: fn(&RetimedTrace) -> f64| requests.iter().map(|one| of(one) * one.weight).sum::<f64>();
    let (old_ns, new_ns) = (sum(|one| one.old_refused_ns), sum(|one| one.new_refused_ns));
    match case.refusals_left {
        Some(left) => left,
        None if old_ns > 0.0 => (new_ns / old_ns).clamp(0.0, 1.0),
        None => 1.0,
    }
}

/// Throughput and mean latency of a level: what was measured, times what the model gains.
fn righted(level: &Level, old: &ModelFit, new: &ModelFit, changed: &System) -> (f64, f64) {
    let righting = (level.mean_s() / old.mean_s).clamp(1.0 / RIGHTING_MAX, RIGHTING_MAX);
    let mean_s = new.mean_s * righting;
    let (Some(seen_s), Some(beyond_s)) = (level.think_s(), level.beyond_think_s()) else {
        let arrivals = level.load.arrivals.unwrap_or(0.0);
        return (if new.is_overloaded { new.rate } else { level.rate().max(new.rate.min(arrivals)) }, mean_s);
    };
    let users = f64::from(level.load.users);
    // Requests at the ends of a level add the more to the think time the longer a cycle is.
    let shorter = ((mean_s + changed.think_s) / (level.mean_s() + seen_s)).min(1.0);
    let think_s = changed.think_s + beyond_s * shorter;
    let rate_max = changed.rate_max();
    let rate = (users / (mean_s + think_s)).min(rate_max);
    (rate, users / rate - think_s)
}

/// Measurement over all levels.
fn overall(levels: &[Level]) -> Figures {
    let (seconds, requests) = sums(levels, |level| level.requests as f64);
    let mut latency = narrows_model::histogram::Histogram::new();
    levels.iter().for_each(|level| latency.merge(&level.latency));
    Figures { rate: requests / seconds, mean_ns: latency.mean_ns(), p95_ns: latency.quantile_ns(0.95) as f64 }
}

fn sums(levels: &[Level], of: impl Fn(&Level) -> f64) -> (f64, f64) {
    (levels.iter().map(|level| level.seconds).sum(), levels.iter().map(of).sum())
}

/// All levels together, each as long as it was.
fn together(levels: &[Level], each: &[After], tail: &Tail) -> After {
    let with_seconds = || levels.iter().map(|level| level.seconds).zip(each);
    let seconds: f64 = with_seconds().map(|(seconds, _)| seconds).sum();
    let requests: f64 = with_seconds().map(|(seconds, after)| seconds * after.rate).sum();
    let mean_s = with_seconds().map(|(seconds, after)| seconds * after.rate * after.mean_s).sum::<f64>() / requests;
    let now = overall(levels);
    let ratio = tail.ratio().unwrap_or(mean_s * 1e9 / now.mean_ns);
    After { rate: requests / seconds, mean_s, p95_s: now.p95_ns / 1e9 * ratio }
}
