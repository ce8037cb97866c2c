//! The intervals of a load in which numbers may be averaged, known before it begins.
//!
//! Time is cut wherever the load of any scenario begins, changes its course or ends, and each piece is judged by all of
//! them together: a level is one only while nobody's users or rates change. What a scenario limited by its iterations
//! alone will take is not known beforehand, so it counts with its users to the end.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use narrows_model::counting::{self, Phase};
use narrows_model::load::{LoadPlan, LoadSecond, Scenario, StageShape};
use narrows_model::run::{Window, WindowKind};
use narrows_model::units;

use crate::arrivals::RateCurve;
use crate::models;

/// A piece that is no scenario's whole window counts from this length on.
const FRAGMENT_MIN: Duration = Duration::from_secs(1);

/// Steps shorter than this are taken whole: there is no time to lose in them.
const SETTLED_STEP_MIN: Duration = Duration::from_secs(5);
/// Time left out at the beginning of a longer step: this part of it, and at most so long.
const SETTLING_PART: u32 = 5;
const SETTLING_MAX: Duration = Duration::from_secs(5);

/// A window, before the load begins.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedWindow {
    /// Use of the numbers in it.
    pub kind: WindowKind,
    /// For people: `warm-up`, `8 users`, `1 → 40 users`, `100 → 500/s`, `8 users + 50/s`.
    pub label: String,
    /// Its first instant, since the load's start.
    pub start: Duration,
    /// Its first instant after, since the load's start. [`Duration::MAX`] when only requests limit the load, so cut
    /// it off at the load's end.
    pub end: Duration,
    /// Virtual users of closed models at its end.
    pub vus: u32,
    /// Arrivals per second of open models at its end; `None` where no such model is at work.
    pub rate: Option<f64>,
}

impl PlannedWindow {
    /// A window of a closed model.
    pub(crate) fn of_users(kind: WindowKind, label: String, time: Range<Duration>, vus: u32) -> Self {
        Self { kind, label, start: time.start, end: time.end, vus, rate: None }
    }

    /// A window of an open model.
    pub(crate) fn of_rate(kind: WindowKind, label: String, time: Range<Duration>, rate: f64) -> Self {
        Self { kind, label, start: time.start, end: time.end, vus: 0, rate: Some(rate) }
    }
}

/// The planned windows of a load that began at `started_ns`, numbered from `first` and cut at the end of the load.
/// `ended_ns` is `None` while the load runs: later seconds may still belong to the last window.
pub fn placed(planned: &[PlannedWindow], first: u32, started_ns: i64, ended_ns: Option<i64>) -> Vec<Window> {
    let at = |offset: Duration| started_ns.saturating_add(i64::try_from(offset.as_nanos()).unwrap_or(i64::MAX));
    let ended_ns = ended_ns.unwrap_or(i64::MAX);
    let last = planned.len().saturating_sub(1);
    let begun = planned.iter().enumerate().filter(|(_, window)| at(window.start) < ended_ns);
    let windows = begun.zip(first..).map(|((position, window), index)| Window {
        index,
        kind: window.kind,
        label: window.label.clone(),
        start_ns: at(window.start),
        end_ns: at(window.end).min(ended_ns),
        drained_ns: (position == last || at(window.end) >= ended_ns).then_some(ended_ns),
        vus: window.vus,
        rate: window.rate,
    });
    windows.collect()
}

/// The windows of a running load. Their times are fixed by its first row.
#[derive(Debug, Clone, Default)]
pub struct WindowsUnderWay {
    planned: Vec<PlannedWindow>,
    placed: Option<Vec<Window>>,
}

impl WindowsUnderWay {
    /// The windows of a load that is about to begin.
    pub fn of(plan: &LoadPlan) -> Self {
        Self { planned: planned_windows(plan), placed: None }
    }

    /// The phase in which the load's next row counts; `None` if it does not count.
    pub fn counts(&mut self, row: &LoadSecond) -> Option<Phase> {
        let placed = self.placed.get_or_insert_with(|| placed(&self.planned, 0, row.start_ns, None));
        counting::counts(&*placed, row)
    }
}

/// The instants at which the windows of a plan begin and end, in order, for a load that begins at `started_ns`.
pub(crate) fn bounds_ns(plan: &LoadPlan, started_ns: i64) -> Vec<i64> {
    let windows = placed(&planned_windows(plan), 0, started_ns, None);
    let bounds: BTreeSet<i64> = windows.iter().flat_map(|window| [window.start_ns, window.end_ns]).collect();
    bounds.into_iter().collect()
}

/// The windows of a plan, in order, not overlapping: the warm-up if there is one, until the last scenario has warmed
/// up, then one for each interval between two changes of any scenario's course. A window is a ramp if the users or the
/// rate of a scenario change in it, else a load level; a scenario that has ended counts as 0 users.
///
/// A step of 5 s or more counts only after its first fifth, at most 5 s, because the queue of the previous level has to
/// drain first. Intervals under a second that exist only because scenarios overlap are too short to be a level and are
/// also left out. So there may be a gap between two windows.
pub fn planned_windows(plan: &LoadPlan) -> Vec<PlannedWindow> {
    let courses: Vec<Course> = plan.scenarios.iter().map(Course::new).collect();
    let warm = courses.iter().map(|course| course.warmup).max().unwrap_or_default();
    let mut windows = Vec::new();
    if !warm.is_zero() {
        windows.push(PlannedWindow {
            kind: WindowKind::Warmup,
            label: "warm-up".into(),
            start: Duration::ZERO,
            end: warm,
            vus: sum(&courses, |course| course.users_until(warm)),
            rate: rate_sum(&courses, |course| course.rate_until(warm)),
        });
    }
    let changes = courses.iter().flat_map(|course| &course.windows).flat_map(|window| [window.start, window.end]);
    let cuts: BTreeSet<Duration> = changes.filter(|cut| *cut > warm).chain([warm]).collect();
    let pieces = cuts.iter().zip(cuts.iter().skip(1));
    windows.extend(pieces.filter_map(|(start, end)| piece(&courses, *start, *end)));
    windows
}

/// The window between two neighbouring cuts; `None` if a scenario settles or too little of anything is left.
fn piece(courses: &[Course], start: Duration, end: Duration) -> Option<PlannedWindow> {
    let mut parts = Vec::with_capacity(courses.len());
    for course in courses.iter().filter(|course| start < course.end()) {
        let window = course.windows.iter().find(|window| window.start <= start && end <= window.end)?;
        parts.push((course, window));
    }
    let is_whole = parts.iter().any(|(_, window)| (window.start, window.end) == (start, end));
    if !is_whole && end - start < FRAGMENT_MIN {
        return None;
    }
    let (open, closed): (Vec<_>, Vec<_>) = parts.iter().copied().partition(|(course, _)| course.curve.is_some());
    let is_ramp = |parts: &[(&Course, &PlannedWindow)]| parts.iter().any(|(_, w)| w.kind == WindowKind::Ramp);
    let vus = sum(courses, |course| course.users_until(end));
    let rate_end = rate_sum(courses, |course| course.rate_until(end)).filter(|_| !open.is_empty());
    let mut labels = Vec::with_capacity(2);
    if !closed.is_empty() {
        let before = sum(courses, |course| course.users_from(start));
        labels.push(if is_ramp(&closed) { format!("{before} → {}", users(vus)) } else { users(vus) });
    }
    if let Some(rate_end) = rate_end {
        let before = rate_sum(courses, |course| course.rate_from(start)).unwrap_or(0.0);
        let ramp = is_ramp(&open);
        labels.push(if ramp { format!("{} → {}", per_second(before), rate(rate_end)) } else { rate(rate_end) });
    }
    let kind = if is_ramp(&parts) { WindowKind::Ramp } else { WindowKind::Steady };
    Some(PlannedWindow { kind, label: labels.join(" + "), start, end, vus, rate: rate_end })
}

fn sum(courses: &[Course], users: impl Fn(&Course) -> u32) -> u32 {
    courses.iter().map(users).fold(0, u32::saturating_add)
}

/// The sum over those courses that have a rate; `None` if none has.
fn rate_sum(courses: &[Course], rate: impl Fn(&Course) -> Option<f64>) -> Option<f64> {
    courses.iter().filter_map(rate).reduce(|sum, rate| sum + rate)
}

/// A scenario over the time of the load.
struct Course {
    model: Box<dyn models::Model>,
    /// The rate of an open model, on the model's time.
    curve: Option<RateCurve>,
    warmup: Duration,
    /// Its model's windows, on the load's time.
    windows: Vec<PlannedWindow>,
}

impl Course {
    fn new(scenario: &Scenario) -> Self {
        let model = models::build(&scenario.model);
        let mut windows = model.windows();
        for window in &mut windows {
            window.start = window.start.saturating_add(scenario.warmup);
            window.end = window.end.saturating_add(scenario.warmup);
        }
        let curve = model.open().map(|open| open.curve);
        Self { model, curve, warmup: scenario.warmup, windows }
    }

    fn end(&self) -> Duration {
        self.windows.last().map_or(self.warmup, |window| window.end)
    }

    /// Users of a closed model from a moment on, which is not within the warm-up.
    fn users_from(&self, t: Duration) -> u32 {
        if t < self.end() && self.curve.is_none() { self.model.vus_at(t.saturating_sub(self.warmup)) } else { 0 }
    }

    /// Users of a closed model just before a moment.
    fn users_until(&self, t: Duration) -> u32 {
        if self.curve.is_some() {
            return 0;
        }
        if t <= self.warmup {
            return warmup_vus(&*self.model);
        }
        let ends_here = self.windows.iter().find(|window| window.end == t);
        ends_here.map_or_else(|| self.users_from(t), |window| window.vus)
    }

    /// Arrivals per second from a moment on, which is not within the warm-up.
    fn rate_from(&self, t: Duration) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        Some(if t < self.end() { curve.rate_at(t.saturating_sub(self.warmup)) } else { 0.0 })
    }

    /// Arrivals per second just before a moment.
    fn rate_until(&self, t: Duration) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        if t <= self.warmup {
            return Some(warmup_rate(curve));
        }
        let ends_here = self.windows.iter().find(|window| window.end == t);
        ends_here.map_or_else(|| self.rate_from(t), |window| window.rate)
    }
}

/// Users of the warm-up: the first load level, and at least one where there is anybody at all.
pub(crate) fn warmup_vus(model: &dyn models::Model) -> u32 {
    model.vus_at(Duration::ZERO).max(1).min(model.vus_max())
}

/// The rate of the warm-up: the first level, and at least one arrival a second where the load has ever as many.
pub(crate) fn warmup_rate(curve: &RateCurve) -> f64 {
    curve.rate_at(Duration::ZERO).max(1.0).min(curve.rate_max())
}

/// How long the beginning of a stage does not count.
pub(crate) fn settling(shape: StageShape, duration: Duration) -> Duration {
    match shape {
        StageShape::Step if duration >= SETTLED_STEP_MIN => (duration / SETTLING_PART).min(SETTLING_MAX),
        _ => Duration::ZERO,
    }
}

/// `2,000/s`, `12.5/s`.
pub(crate) fn rate(per_s: f64) -> String {
    format!("{}/s", per_second(per_s))
}

/// `2,000`, `12.5`: a rate without its unit.
pub(crate) fn per_second(per_s: f64) -> String {
    if per_s.fract() == 0.0 || per_s >= 1_000.0 { units::count(per_s.round() as u64) } else { shortest(per_s) }
}

/// Three significant digits without zeros at the end.
fn shortest(per_s: f64) -> String {
    let digits = (2 - per_s.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{per_s:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `1 user`, `8 users`.
pub(crate) fn users(vus: u32) -> String {
    if vus == 1 { "1 user".into() } else { format!("{vus} users") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::nanos;
    use crate::part::LoadPart;
    use crate::schedule::Schedule;
    use crate::testing::plan;
    use narrows_model::load::{Arrivals, Iterations, LoadModel, RateStage, Stage, StageShape};
    use proptest::prelude::*;

    fn table(warmup: u64, model: LoadModel) -> Vec<String> {
        table_of(&[(warmup, model)])
    }

    /// The windows of scenarios, each given by the seconds of its warm-up and its model.
    fn table_of(scenarios: &[(u64, LoadModel)]) -> Vec<String> {
        planned_windows(&plan_of(scenarios))
            .iter()
            .map(|w| format!("{:?} {} {:?}..{:?} {}", w.kind, w.label, w.start, w.end, w.vus))
            .collect()
    }

    fn plan_of(scenarios: &[(u64, LoadModel)]) -> LoadPlan {
        let mut plan = plan(scenarios[0].1.clone());
        let first = plan.scenarios.remove(0);
        plan.scenarios.extend(scenarios.iter().map(|(warmup, model)| Scenario {
            warmup: Duration::from_secs(*warmup),
            model: model.clone(),
            ..first.clone()
        }));
        plan
    }

    fn stage(ms: u64, target: u32, shape: StageShape) -> Stage {
        Stage { duration: Duration::from_millis(ms), target, shape }
    }

    #[test]
    fn a_constant_load_has_one_window_after_its_warm_up() {
        let model = LoadModel::ConstantVus { vus: 8, duration: Duration::from_secs(30) };
        assert_eq!(table(0, model.clone()), ["Steady 8 users 0ns..30s 8"]);
        assert_eq!(table(5, model), ["Warmup warm-up 0ns..5s 8", "Steady 8 users 5s..35s 8"]);
    }

    #[test]
    fn steps_settle_and_ramps_are_named_by_both_ends() {
        let stages = vec![
            stage(45_000, 1, StageShape::Step),
            stage(10_000, 5, StageShape::Step),
            stage(4_000, 9, StageShape::Step),
            stage(0, 7, StageShape::Linear),
            stage(20_000, 40, StageShape::Linear),
            stage(5_000, 40, StageShape::Linear),
        ];
        let rows = table(2, LoadModel::RampingVus { start_vus: 0, stages });
        assert_eq!(
            rows,
            [
                "Warmup warm-up 0ns..2s 1",
                "Steady 1 user 7s..47s 1",
                "Steady 5 users 49s..57s 5",
                "Steady 9 users 57s..61s 9",
                "Ramp 7 → 40 users 61s..81s 40",
                "Steady 40 users 81s..86s 40",
            ]
        );
    }

    fn constant(vus: u32, ms: u64) -> LoadModel {
        LoadModel::ConstantVus { vus, duration: Duration::from_millis(ms) }
    }

    fn ramping(start_vus: u32, stages: &[Stage]) -> LoadModel {
        LoadModel::RampingVus { start_vus, stages: stages.to_vec() }
    }

    #[test]
    fn a_level_is_one_only_while_no_scenario_changes() {
        let ramp = ramping(2, &[stage(10_000, 12, StageShape::Linear), stage(10_000, 12, StageShape::Linear)]);
        assert_eq!(
            table_of(&[(0, constant(3, 30_000)), (0, ramp.clone())]),
            ["Ramp 5 → 15 users 0ns..10s 15", "Steady 15 users 10s..20s 15", "Steady 3 users 20s..30s 3"]
        );
        assert_eq!(
            table_of(&[(0, ramp), (0, constant(1, 5_000))]),
            ["Ramp 3 → 8 users 0ns..5s 8", "Ramp 7 → 12 users 5s..10s 12", "Steady 12 users 10s..20s 12"]
        );
    }

    #[test]
    fn opposite_ramps_are_no_level() {
        let line = |from, to| (0, ramping(from, &[stage(10_000, to, StageShape::Linear)]));
        assert_eq!(table_of(&[line(0, 10), line(10, 0)]), ["Ramp 10 → 10 users 0ns..10s 10"]);
    }

    #[test]
    fn it_is_warm_up_until_the_last_scenario_has_warmed_up() {
        assert_eq!(
            table_of(&[(2, constant(3, 3_000)), (8, constant(4, 10_000)), (0, constant(5, 12_000))]),
            ["Warmup warm-up 0ns..8s 9", "Steady 9 users 8s..12s 9", "Steady 4 users 12s..18s 4"]
        );
        let cut = ramping(0, &[stage(10_000, 10, StageShape::Linear)]);
        assert_eq!(
            table_of(&[(0, cut), (4, constant(1, 1_000))]),
            ["Warmup warm-up 0ns..4s 5", "Ramp 5 → 6 users 4s..5s 6", "Ramp 5 → 10 users 5s..10s 10"]
        );
    }

    #[test]
    fn requests_without_a_limit_of_time_are_the_last_window_not_the_only_one() {
        let shared = LoadModel::Iterations { vus: 4, iterations: Iterations::Shared(1), max_duration: None };
        let open = format!("{:?}", Duration::MAX);
        let ramp = ramping(0, &[stage(10_000, 6, StageShape::Linear)]);
        assert_eq!(
            table_of(&[(1, shared.clone()), (0, ramp)]),
            [
                "Warmup warm-up 0ns..1s 5".to_owned(),
                "Ramp 5 → 10 users 1s..10s 10".to_owned(),
                format!("Steady 4 users 10s..{open} 4"),
            ]
        );
        assert_eq!(table_of(&[(0, shared.clone())]), [format!("Steady 4 users 0ns..{open} 4")]);
        assert_eq!(table_of(&[(0, shared.clone()), (0, shared)]), [format!("Steady 8 users 0ns..{open} 8")]);
    }

    #[test]
    fn while_one_scenario_settles_nothing_counts() {
        let steps = ramping(0, &[stage(10_000, 1, StageShape::Step), stage(10_000, 5, StageShape::Step)]);
        assert_eq!(
            table_of(&[(0, steps), (0, constant(2, 15_000))]),
            ["Steady 3 users 2s..10s 3", "Steady 7 users 12s..15s 7", "Steady 5 users 15s..20s 5"]
        );
    }

    #[test]
    fn fragments_under_a_second_do_not_count_but_whole_windows_do() {
        assert_eq!(table_of(&[(0, constant(1, 10_000)), (0, constant(2, 10_999))]), ["Steady 3 users 0ns..10s 3"]);
        assert_eq!(table_of(&[(0, constant(1, 10_000)), (0, constant(2, 11_000))]).len(), 2);
        assert_eq!(
            table_of(&[(0, constant(1, 300)), (0, constant(2, 5_000))]),
            ["Steady 3 users 0ns..300ms 3", "Steady 2 users 300ms..5s 2"]
        );
    }

    fn arriving(rate: f64, seconds: u64) -> LoadModel {
        let duration = Duration::from_secs(seconds);
        LoadModel::ConstantArrivalRate { rate, duration, vus_max: 9, arrivals: Arrivals::Uniform }
    }

    fn ramping_rate(start_rate: f64, seconds: u64, target: f64) -> LoadModel {
        let stages = vec![RateStage { duration: Duration::from_secs(seconds), target, shape: StageShape::Linear }];
        LoadModel::RampingArrivalRate { start_rate, stages, vus_max: 9, arrivals: Arrivals::Poisson }
    }

    #[test]
    fn open_models_are_named_by_their_rate() {
        assert_eq!(
            table_of(&[(5, arriving(2_000.0, 30)), (0, arriving(12.5, 20))]),
            ["Warmup warm-up 0ns..5s 0", "Steady 2,013/s 5s..20s 0", "Steady 2,000/s 20s..35s 0"]
        );
        assert_eq!(
            table_of(&[(0, constant(8, 10_000)), (0, arriving(50.0, 20))]),
            ["Steady 8 users + 50/s 0ns..10s 8", "Steady 50/s 10s..20s 0"]
        );
        assert_eq!(
            table_of(&[(0, ramping_rate(100.0, 10, 500.0)), (0, constant(8, 20_000))]),
            ["Ramp 8 users + 100 → 500/s 0ns..10s 8", "Steady 8 users 10s..20s 8"]
        );
        let rates: Vec<Option<f64>> = planned_windows(&plan_of(&[
            (2, ramping_rate(100.0, 10, 500.0)),
            (0, arriving(0.5, 12)),
            (0, constant(8, 20_000)),
        ]))
        .iter()
        .map(|window| window.rate)
        .collect();
        assert_eq!(rates, [Some(100.5), Some(500.5), None]);
    }

    #[test]
    fn rates_are_short() {
        let cases = [(50.0, "50/s"), (2_000.0, "2,000/s"), (12.5, "12.5/s"), (0.25, "0.25/s"), (0.001, "0.001/s")];
        for (per_s, expected) in cases {
            assert_eq!(rate(per_s), expected);
        }
        assert_eq!([rate(1_234.5), rate(0.0), rate(123.456)], ["1,235/s", "0/s", "123/s"]);
    }

    #[test]
    fn the_window_that_the_load_ended_with_takes_the_last_responses() {
        let planned = planned_windows(&plan_of(&[(1, constant(2, 2_000)), (0, constant(1, 5_000))]));
        let windows = |ended_s: f64| {
            let placed = placed(&planned, 7, 100, Some(100 + (ended_s * 1e9) as i64));
            let ms = |ns: i64| (ns - 100) / 1_000_000;
            let bounds =
                |window: &Window| (window.index, ms(window.start_ns), ms(window.end_ns), window.drained_ns.map(ms));
            placed.iter().map(bounds).collect::<Vec<_>>()
        };
        let (warmup, first) = ((7, 0, 1_000, None), (8, 1_000, 3_000, None));
        assert_eq!(windows(5.3), [warmup, first, (9, 3_000, 5_000, Some(5_300))]);
        assert_eq!(windows(4.2), [warmup, first, (9, 3_000, 4_200, Some(4_200))]);
        assert_eq!(windows(2.0), [warmup, (8, 1_000, 2_000, Some(2_000))]);
        let settling = ramping(0, &[stage(10_000, 1, StageShape::Step), stage(10_000, 5, StageShape::Step)]);
        let stopped = placed(&planned_windows(&plan_of(&[(0, settling)])), 0, 0, Some(11_000_000_000));
        assert_eq!(stopped.last().unwrap().drained_ns, None, "the load ended while the next level settled");
    }

    #[test]
    fn rows_count_while_the_load_lasts_as_they_do_afterwards() {
        let mut windows = WindowsUnderWay::of(&plan_of(&[(1, constant(2, 1_500))]));
        let row = |start_ms: i64, length_ms: i64| LoadSecond {
            start_ns: 7 + start_ms * 1_000_000,
            length_ns: length_ms * 1_000_000,
            ..LoadSecond::default()
        };
        let rows = [row(0, 1_000), row(1_000, 1_000), row(2_000, 500), row(2_500, 500), row(9_000, 1_000)];
        let counted = rows.map(|row| windows.counts(&row));
        let (sending, draining) = (Some(Phase::Sending), Some(Phase::Draining));
        assert_eq!(counted, [None, sending, sending, draining, draining]);
    }

    #[test]
    fn a_plan_without_scenarios_has_no_windows() {
        let mut plan = plan(constant(1, 1_000));
        plan.scenarios.clear();
        assert_eq!(planned_windows(&plan), []);
    }

    fn any_scenario() -> impl Strategy<Value = (u64, LoadModel)> {
        let any_stage = (0u64..9_000, 0u32..50, any::<bool>()).prop_map(|(ms, target, linear)| {
            stage(ms, target, if linear { StageShape::Linear } else { StageShape::Step })
        });
        let stages = proptest::collection::vec(any_stage, 1..5);
        (0u64..4, 0u32..50, stages).prop_map(|(warmup, start_vus, stages)| (warmup, ramping(start_vus, &stages)))
    }

    proptest! {
        #[test]
        fn windows_are_in_order_and_a_level_is_what_the_schedules_say(
            scenarios in proptest::collection::vec(any_scenario(), 1..4),
            at in 0.0..1.0f64,
        ) {
            let plan = plan_of(&scenarios);
            let schedules: Vec<Schedule> = plan.scenarios.iter().map(|scenario| Schedule::new(scenario, &LoadPart::whole(1, 0))).collect();
            let users_at = |t: Duration| schedules.iter().map(|schedule| schedule.vus_at(nanos(t))).sum::<u32>();
            let windows = planned_windows(&plan);
            prop_assert!(windows.iter().all(|window| window.start < window.end));
            prop_assert!(windows.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for window in windows {
                let last = window.end - Duration::from_nanos(1);
                match window.kind {
                    WindowKind::Steady => {
                        let within = window.start + (last - window.start).mul_f64(at);
                        prop_assert_eq!((users_at(within), users_at(last)), (window.vus, window.vus));
                    }
                    _ => prop_assert!(users_at(last).abs_diff(window.vus) <= scenarios.len() as u32),
                }
            }
        }
    }
}
