//! Events of one trial second by second, ready to be drawn: scenarios laid on top of each other, replicas
//! summed, times counted from the start of the load.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::histogram::Histogram;
use narrows_model::load::LoadSecond;
use narrows_model::run::{ServiceInstance, WindowKind};
use narrows_model::series::{SeriesKey, names};

use super::palette::Palette;
use super::thin::Xy;

/// Partial seconds shorter than this, at window boundaries or at the end of the load, are not drawn.
const DRAWN_FROM_NS: i64 = 500_000_000;

/// One trial over time.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// From the start of the load to its end.
    pub(super) length_s: f64,
    /// Warm-up windows, first and last instant.
    pub(super) warmups: Vec<Xy>,
    pub(super) users: Vec<Xy>,
    /// Successful responses in each second.
    pub(super) rate: Vec<Xy>,
    pub(super) errors: Vec<Xy>,
    /// Iterations of open models: due and begun in each second; empty without such a model. Iterations given up
    /// at the end of the load would dwarf both.
    pub(super) arrivals: [Vec<Xy>; 2],
    /// Nanoseconds: p50, p95 and p99 of each second, or of each minute of a long load; a gap if nothing succeeded.
    pub(super) latency: [Vec<Xy>; 3],
    pub(super) cpu: Vec<ServiceLine>,
    pub(super) memory: Vec<ServiceLine>,
}

/// A resource of one service over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServiceLine {
    pub(super) service: String,
    pub(super) points: Vec<Xy>,
    /// The cap of all its replicas together.
    pub(super) limit: Option<f64>,
}

/// Times of one trial, counted from the start of its load.
pub(super) struct Clock {
    start_ns: i64,
    end_ns: i64,
    /// The end of the last window. A second that lies beyond the load, even in part, would look like a fall.
    pub(super) full_end_ns: i64,
}

impl Clock {
    /// `None` if nothing was measured.
    pub(super) fn new(evidence: &TrialEvidence) -> Option<Self> {
        let (start_ns, end_ns) = extent(evidence)?;
        let full_end_ns = evidence.windows.iter().map(|window| window.end_ns).max().unwrap_or(end_ns);
        Some(Self { start_ns, end_ns, full_end_ns })
    }

    /// Seconds since the load began.
    pub(super) fn at(&self, time_ns: i64) -> f64 {
        time_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// True if an instant lies in the load.
    pub(super) fn is_drawn(&self, time_ns: i64) -> bool {
        (self.start_ns..=self.full_end_ns).contains(&time_ns)
    }
}

/// Gathers a trial's lines. Services past the palette are summed as one.
pub(super) fn gather(evidence: &TrialEvidence, palette: &Palette) -> Timeline {
    let Some(clock) = Clock::new(evidence) else { return Timeline::default() };
    let warmups = evidence.windows.iter().filter(|window| window.kind == WindowKind::Warmup);
    let mut timeline = Timeline {
        length_s: clock.at(clock.end_ns),
        warmups: warmups.map(|window| (clock.at(window.start_ns), clock.at(window.end_ns))).collect(),
        cpu: lines(evidence, palette, |key| key.name == names::CPU_CORES, &clock, |s| s.cpu_limit_cores),
        memory: memory(evidence, palette, &clock),
        ..Timeline::default()
    };
    let is_open = evidence.seconds.iter().any(|row| row.due > 0);
    let of_one_request = of_one_request(evidence);
    let mut before_end_ns: Option<i64> = None;
    for (start_ns, rows) in rows_by_time(evidence) {
        let end_ns = rows.iter().map(|row| row.end_ns()).max().unwrap_or(start_ns);
        let length_ns = end_ns - start_ns;
        if let Some(before_ns) = before_end_ns.filter(|before_ns| start_ns > *before_ns) {
            timeline.add_gap(clock.at(before_ns));
        }
        before_end_ns = Some(end_ns);
        if length_ns < DRAWN_FROM_NS || end_ns > clock.full_end_ns {
            continue;
        }
        let (x, seconds) = (clock.at(start_ns + length_ns / 2), length_ns as f64 / 1e9);
        if is_open {
            timeline.add_arrivals(x, seconds, &rows, &of_one_request);
        }
        timeline.add_second(x, seconds, &rows);
    }
    timeline
}

/// The rows of the load by start time.
fn rows_by_time(evidence: &TrialEvidence) -> BTreeMap<i64, Vec<&LoadSecond>> {
    let mut seconds: BTreeMap<i64, Vec<&LoadSecond>> = BTreeMap::new();
    evidence.seconds.iter().for_each(|row| seconds.entry(row.start_ns).or_default().push(row));
    seconds
}

impl Timeline {
    /// Lifts the pen: between two loads nothing was measured.
    fn add_gap(&mut self, x: f64) {
        let lines = [&mut self.users, &mut self.rate, &mut self.errors];
        let lines = lines.into_iter().chain(&mut self.latency).chain(&mut self.arrivals);
        lines.filter(|line| !line.is_empty()).for_each(|line| line.push((x, f64::NAN)));
    }

    fn add_arrivals(&mut self, x: f64, seconds: f64, rows: &[&LoadSecond], of_one_request: &BTreeSet<&str>) {
        let sum = |value: fn(&LoadSecond) -> u64| rows.iter().map(|row| value(row)).sum::<u64>();
        let begun = rows.iter().map(|row| begun(row, of_one_request)).sum();
        let values = [sum(|row| row.due), begun];
        self.arrivals.iter_mut().zip(values).for_each(|(line, value)| line.push((x, value as f64 / seconds)));
    }

    fn add_second(&mut self, x: f64, seconds: f64, rows: &[&LoadSecond]) {
        let sum = |value: fn(&LoadSecond) -> u64| rows.iter().map(|row| value(row)).sum::<u64>() as f64;
        self.users.push((x, sum(|row| u64::from(row.vus))));
        self.rate.push((x, sum(|row| row.succeeded) / seconds));
        self.errors.push((x, sum(|row| row.errors.total()) / seconds));
        let mut latency = Histogram::new();
        rows.iter().for_each(|row| latency.merge(&row.latency));
        // The middle second of a folded minute holds the distribution of the others.
        if latency.count() > 0 && latency.bucketed() == 0 {
            return;
        }
        for (line, share) in self.latency.iter_mut().zip([0.50, 0.95, 0.99]) {
            let value = if latency.count() > 0 { latency.quantile_ns(share) as f64 } else { f64::NAN };
            line.push((x, value));
        }
    }
}

/// The open scenarios whose iterations are one request each.
fn of_one_request(evidence: &TrialEvidence) -> BTreeSet<&str> {
    let mut requests: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut open = BTreeSet::new();
    for row in &evidence.seconds {
        requests.entry(&row.scenario).or_default().insert(&row.request);
        if row.due > 0 {
            open.insert(row.scenario.as_str());
        }
    }
    open.retain(|scenario| requests.get(scenario).is_some_and(|requests| requests.len() == 1));
    open
}

/// Iterations that began in a second. With one request each, it is the requests that were sent or could not be; which
/// of several steps come first is not recorded, so there it is what was due and not given up.
fn begun(row: &LoadSecond, of_one_request: &BTreeSet<&str>) -> u64 {
    if of_one_request.contains(row.scenario.as_str()) {
        row.sent + row.errors.connect
    } else {
        row.due.saturating_sub(row.dropped)
    }
}

/// First and last instant of the load.
fn extent(evidence: &TrialEvidence) -> Option<(i64, i64)> {
    let windows = evidence.windows.iter().map(|window| (window.start_ns, window.end_ns));
    let seconds = evidence.seconds.iter().map(|row| (row.start_ns, row.end_ns()));
    windows.chain(seconds).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).filter(|(start, end)| start < end)
}

/// As in the tables: the proportional set size of each service, the resident one where that was not sampled.
fn memory(evidence: &TrialEvidence, palette: &Palette, clock: &Clock) -> Vec<ServiceLine> {
    let with_pss: BTreeSet<&str> = evidence
        .series
        .iter()
        .filter(|series| series.key.name == names::MEMORY_PSS_BYTES && !series.points.is_empty())
        .map(|series| series.key.service.as_str())
        .collect();
    let is_meant = |key: &SeriesKey| match with_pss.contains(key.service.as_str()) {
        true => key.name == names::MEMORY_PSS_BYTES,
        false => key.name == names::MEMORY_BYTES,
    };
    lines(evidence, palette, is_meant, clock, |s| s.memory_limit_bytes.map(|b| b as f64))
}

fn lines(
    evidence: &TrialEvidence,
    palette: &Palette,
    is_meant: impl Fn(&SeriesKey) -> bool,
    clock: &Clock,
    cap: fn(&ServiceInstance) -> Option<f64>,
) -> Vec<ServiceLine> {
    let mut sums: BTreeMap<&str, BTreeMap<i64, f64>> = BTreeMap::new();
    for series in evidence.series.iter().filter(|s| is_meant(&s.key) && !s.key.service.is_empty()) {
        let sum = sums.entry(palette.shown_as(&series.key.service)).or_default();
        for point in series.points.iter().filter(|p| p.value.is_finite() && clock.is_drawn(p.time_ns)) {
            *sum.entry(point.time_ns).or_default() += point.value;
        }
    }
    let line = |(service, sum): (&str, BTreeMap<i64, f64>)| ServiceLine {
        service: service.to_owned(),
        points: sum.into_iter().map(|(time_ns, value)| (clock.at(time_ns), value)).collect(),
        limit: limit(evidence, service, cap),
    };
    let mut lines: Vec<ServiceLine> = sums.into_iter().map(line).collect();
    lines.sort_by_key(|line| palette.index(&line.service));
    lines
}

/// All caps of a service's replicas together; `None` if one of them is not capped.
fn limit(evidence: &TrialEvidence, service: &str, cap: fn(&ServiceInstance) -> Option<f64>) -> Option<f64> {
    let caps: Option<Vec<f64>> = evidence.services.iter().filter(|s| s.service == service).map(cap).collect();
    caps.filter(|caps| !caps.is_empty()).map(|caps| caps.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn memory_is_drawn_as_the_tables_count_it() {
        let outcome = fixture::outcome();
        let mut trial = outcome.evidence.trials[0].clone();
        let palette = Palette::new(&outcome.evidence);
        let first = |trial: &TrialEvidence| gather(trial, &palette).memory[0].points[0].1;
        let resident = first(&trial);
        let shared =
            trial.series.iter().filter(|series| series.key.name == names::MEMORY_BYTES).cloned().map(|mut one| {
                one.key.name = names::MEMORY_PSS_BYTES.to_owned();
                one.points.iter_mut().for_each(|point| point.value /= 2.0);
                one
            });
        let shared: Vec<_> = shared.collect();
        trial.series.extend(shared);
        assert_eq!(first(&trial), resident / 2.0);
    }

    #[test]
    fn lines_have_a_gap_between_two_loads_and_do_not_fall_at_their_ends() {
        let mut outcome = fixture::open_outcome();
        let palette = Palette::new(&outcome.evidence);
        let trial = &mut outcome.evidence.trials[0];
        let start_ns = trial.windows[0].start_ns;
        let at = |seconds: f64| start_ns + (seconds * 1e9) as i64;
        let mut second = trial.windows[1].clone();
        (trial.windows[1].end_ns, second.start_ns) = (at(29.5), at(40.0));
        trial.windows.push(second);
        trial.seconds.retain(|row| row.start_ns < at(30.0) || row.start_ns >= at(40.0));
        trial.seconds.iter_mut().filter(|row| row.start_ns == at(29.0)).for_each(|row| row.length_ns = 400_000_000);
        let timeline = gather(trial, &palette);
        let [due, begun] = &timeline.arrivals;
        let [p50, p95, p99] = &timeline.latency;
        for line in [&timeline.users, &timeline.rate, &timeline.errors, due, begun, p50, p95, p99] {
            let around: Vec<(f64, bool)> = line[28..31].iter().map(|(x, value)| (*x, value.is_nan())).collect();
            assert_eq!(around, [(28.5, false), (29.4, true), (40.5, false)]);
        }
    }

    #[test]
    fn a_folded_minute_is_drawn_by_its_middle_without_a_gap() {
        let mut outcome = fixture::outcome();
        let palette = Palette::new(&outcome.evidence);
        let trial = &mut outcome.evidence.trials[0];
        let whole = gather(trial, &palette);
        let mut rows = trial.seconds[10..20].to_vec();
        let mut holder = rows.remove(5);
        rows.iter_mut().for_each(|row| row.latency.give_buckets_to(&mut holder.latency));
        let p95 = holder.latency.quantile_ns(0.95) as f64;
        rows.insert(5, holder);
        trial.seconds.splice(10..20, rows);
        let folded = gather(trial, &palette);
        assert_eq!((&folded.rate, &folded.users), (&whole.rate, &whole.users));
        let drawn: Vec<_> = folded.latency[1][9..12].to_vec();
        assert_eq!(drawn, [whole.latency[1][9], (15.5, p95), whole.latency[1][20]]);
    }

    #[test]
    fn arrivals_are_drawn_for_open_models_only() {
        let palette = |outcome: &narrows_model::comparison::Outcome| Palette::new(&outcome.evidence);
        let (closed, open) = (fixture::outcome(), fixture::open_outcome());
        assert!(gather(&closed.evidence.trials[0], &palette(&closed)).arrivals.iter().all(Vec::is_empty));
        let timeline = gather(&open.evidence.trials[0], &palette(&open));
        let [due, begun] = timeline.arrivals.map(|line| line[30].1);
        let dropped = open.evidence.trials[0].seconds[60].dropped;
        assert_eq!((due, begun), (1100.0, 1100.0 - dropped as f64));
        assert_eq!(timeline.users[30].1, 8.0, "only the first step says the users");
    }

    #[test]
    fn an_iteration_that_waits_is_achieved_when_it_begins() {
        let mut outcome = fixture::open_outcome();
        let evidence = &mut outcome.evidence.trials[0];
        let request = evidence.seconds.iter().find(|row| row.due > 0).unwrap().request.clone();
        evidence.seconds.retain(|row| row.request == request);
        for row in &mut evidence.seconds {
            (row.due, row.dropped, row.sent, row.errors.connect) = (1000, 0, 97, 3);
        }
        let timeline = gather(&outcome.evidence.trials[0], &Palette::new(&outcome.evidence));
        assert_eq!(timeline.arrivals.map(|line| line[30].1), [1000.0, 100.0]);
    }

    #[test]
    fn replicas_and_scenarios_are_laid_on_top_of_each_other() {
        let mut outcome = fixture::outcome();
        let evidence = &mut outcome.evidence.trials[0];
        let mut second = evidence.services[0].clone();
        second.replica = 1;
        evidence.services.push(second);
        let mut sister = evidence.series[0].clone();
        sister.key.replica = 1;
        evidence.series.push(sister);
        let mut row = evidence.seconds[20].clone();
        row.scenario = "other".to_owned();
        evidence.seconds.push(row);
        let before = gather(&fixture::outcome().evidence.trials[0], &Palette::new(&outcome.evidence));
        let after = gather(&outcome.evidence.trials[0], &Palette::new(&outcome.evidence));
        assert_eq!(after.cpu[0].points[7].1, 2.0 * before.cpu[0].points[7].1);
        assert_eq!((before.cpu[0].limit, after.cpu[0].limit), (Some(0.5), Some(1.0)));
        assert_eq!(after.rate[20].1, 2.0 * before.rate[20].1);
        assert_eq!(after.rate.len(), before.rate.len());
        assert_eq!((after.length_s, &after.warmups[..]), (70.0, &[(0.0, 10.0)][..]));
    }
}
