//! `narrows capacity`: the highest rate of arrivals at which a system keeps its objectives.
//!
//! The services of a variant are started once; then the experiment's scenarios are sent at one rate after the other, each
//! settled first and then counted. `search` says which rate comes next, `probe` what it came to, `interval` how sure the
//! edge is, `scalability` what shape the curve has. All probes of a variant are windows of one trial in an ordinary run
//! file, so that diagnosis and reports work on it; what was found is kept there too.

mod interval;
mod probe;
mod scalability;
mod search;
mod verdict;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_model::caveat::TrialCaveat;
use narrows_model::counting::{self, Phase};
use narrows_model::load::{LoadPlan, LoadSecond};
use narrows_model::run::{Trial, Window, WindowKind};
use narrows_model::units;
use narrows_telemetry::run_file::Recorder;

pub use interval::Interval;
pub use probe::{Probe, Reason};
pub use scalability::Fit;
pub use search::{Ceiling, Edge, Fate};
pub use verdict::{Capacity, Verdict};

use crate::Error;
use crate::agents::AgentsRequest;
use crate::experiment::{BoundCommand, Experiment, LoadMaker, Objective};
use crate::progress::{Event, Progress};
use crate::run::{Begin, Options, Order, RunEnd, run_with};
use crate::trial::{Bench, FinishedLoad, Onward, RunningReplica, Work};
use scalability::Level;
use search::{Bounds, Search, SearchResult};

/// The name under which a run file keeps what was found.
pub const CONCLUSION: &str = "capacity";
/// How long the closed look lasts that says where to begin.
const LOOK: Duration = Duration::from_secs(3);
/// Its users where the experiment names none, for each core.
const LOOK_USERS_PER_CORE: u32 = 4;
/// The part of its rate to begin at, and where to begin when it came to nothing.
const LOOK_PART: f64 = 0.25;
const FROM_DEFAULT: f64 = 10.0;
/// Below the rate that sends so many requests within the counted time of a probe, a probe says nothing.
const REQUESTS_LEAST: f64 = 10.0;
/// The uncounted beginning of a probe, as a part of it, and within these bounds.
const SETTLING_PART: u32 = 5;
const SETTLING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Subject and rules of a search.
#[derive(Debug)]
pub struct SearchRequest<'a> {
    /// The experiment; its objectives say what is to be kept.
    pub experiment: &'a Experiment,
    /// The variants to search; all when empty.
    pub variants: Vec<String>,
    /// The first rate, per second; `None` for a quarter of what a short closed look reaches.
    pub from: Option<f64>,
    /// The highest rate to try, per second.
    pub to: f64,
    /// The lowest rate to go down to, per second; `None` for the one that sends 10 requests within a probe. A first rate
    /// below it is tried all the same.
    pub floor: Option<f64>,
    /// How near the rates kept and broken must come, as a share of the rate; above 0.
    pub precision: f64,
    /// How long a probe is counted; whole seconds.
    pub probe: Duration,
    /// How often the edge is looked for again.
    pub repeats: u32,
    /// The run file to create.
    pub path: PathBuf,
    /// See [`Options::guard_command`].
    pub guard_command: Vec<String>,
    /// See [`Options::agents`].
    pub agents: Option<AgentsRequest>,
}

/// How a search ended.
#[derive(Debug)]
pub struct SearchEnd {
    /// How the run did.
    pub ended: RunEnd,
    /// Results of each variant that was searched to its end.
    pub capacities: Vec<Capacity>,
}

/// Searches. `stop` ends it early, in order.
///
/// # Errors
/// When it could not begin: [`Error::Capacity`] when the experiment has nothing to judge by, or another program makes its
/// load. What happens later is in [`SearchEnd`].
pub fn search(wanted: &SearchRequest<'_>, stop: &AtomicBool, progress: &mut dyn Progress) -> Result<SearchEnd, Error> {
    if wanted.experiment.load.maker == LoadMaker::Command {
        return Err(other_program());
    }
    let (objectives, left_out) = probe::judgeable(&wanted.experiment.objectives);
    if objectives.is_empty() {
        let why = "the experiment has no objective that a rate can break, such as `p95 < 300ms` or `error_rate < 1%`";
        return Err(Error::Capacity(why.to_owned()));
    }
    let options = Options {
        experiment: wanted.experiment,
        variants: wanted.variants.clone(),
        repetitions: 1,
        order: Order::InTurn,
        time_scale: 1.0,
        path: wanted.path.clone(),
        begin: Begin::Fresh,
        guard_command: wanted.guard_command.clone(),
        agents: wanted.agents.clone(),
    };
    let mut searching = SearchWork { wanted, objectives, left_out, capacities: Vec::new() };
    let ended = run_with(&options, &mut searching, stop, progress)?;
    Ok(SearchEnd { ended, capacities: searching.capacities })
}

/// The work of every trial of a search.
struct SearchWork<'a> {
    wanted: &'a SearchRequest<'a>,
    objectives: Vec<Objective>,
    left_out: Vec<Objective>,
    capacities: Vec<Capacity>,
}

impl Work for SearchWork<'_> {
    fn work(
        &mut self,
        bench: &mut Bench<'_>,
        load: LoadPlan,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let mut course = Course { bench, load, running, progress, windows: Vec::new(), sent: 0 };
        let from = match self.wanted.from {
            Some(from) => from,
            None => course.look(trial)?,
        };
        let from = from.min(self.wanted.to);
        let mut search = Search::new(Bounds {
            from,
            floor: floor(self.wanted.floor, self.wanted.probe, from),
            to: self.wanted.to,
            precision: self.wanted.precision,
            repeats: self.wanted.repeats,
        });
        let mut probes = Vec::new();
        while let Some(rate) = search.next() {
            let probe = course.probe(rate, self.wanted.probe, &self.objectives, trial)?;
            course.progress.tell(&Event::Probed(&line(&probe)));
            search.tell(probe.fate);
            probes.push(probe);
        }
        let capacity = self.concluded(trial, &search, probes)?;
        trial.caveats.push(caveat(&capacity));
        self.capacities.push(capacity);
        Ok(())
    }

    fn command(
        &mut self,
        _: &mut Bench<'_>,
        _: &BoundCommand,
        _: &mut Trial,
        _: &mut [RunningReplica],
        _: &mut dyn Progress,
    ) -> Result<(), Error> {
        Err(other_program())
    }

    fn conclude(&self, recorder: &Recorder) -> Result<(), Error> {
        recorder.put_conclusion(CONCLUSION, &serde_json::json!(self.capacities))?;
        Ok(())
    }
}

/// The lowest rate to go down to, for a search that begins at `from`.
fn floor(named: Option<f64>, probe: Duration, from: f64) -> f64 {
    named.unwrap_or((REQUESTS_LEAST / probe.as_secs_f64()).max(narrows_load::RATE_MIN)).min(from)
}

fn other_program() -> Error {
    let why = "its load comes from another program (`load.command`), whose rate cannot be set from here; describe the load \
               as `load.scenarios`";
    Error::Capacity(why.to_owned())
}

impl SearchWork<'_> {
    fn concluded(&self, trial: &Trial, search: &Search, probes: Vec<Probe>) -> Result<Capacity, Error> {
        let mut notes = Vec::new();
        let verdict = match search.found() {
            Some(SearchResult::Edges(edges)) => Interval::from_edges(edges).map(Verdict::Found),
            Some(SearchResult::AtLeast(rate, ceiling)) => Some(Verdict::AtLeast { rate: *rate, ceiling: *ceiling }),
            Some(SearchResult::Nowhere(rate)) => Some(Verdict::Nowhere { rate: *rate }),
            Some(SearchResult::GeneratorEverywhere(_)) | None => None,
        };
        let Some(verdict) = verdict else { return Err(generator_gave_out(&probes)) };
        if search.repetitions_lost() > 0 {
            notes.push(format!(
                "{} of {} repetitions found no edge near the first one: the capacity moved, or the generator reached \
                 its limit.",
                search.repetitions_lost(),
                self.wanted.repeats
            ));
        }
        let texts = |objectives: &[Objective]| objectives.iter().map(|objective| objective.text.clone()).collect();
        let levels = levels(&probes);
        Ok(Capacity {
            variant: trial.variant.clone(),
            objectives: texts(&self.objectives),
            left_out: texts(&self.left_out),
            gives_way: gives_way(&probes),
            knee: scalability::knee(&levels),
            law: scalability::fit(&levels),
            probes,
            verdict,
            notes,
        })
    }
}

fn generator_gave_out(probes: &[Probe]) -> Error {
    let reasons = probes.last().map(|probe| &probe.reasons).into_iter().flatten();
    let reasons: Vec<&str> = reasons.map(|reason| reason.text.as_str()).collect();
    Error::Capacity(format!("the generator reached its limit at every rate, down to the lowest: {}", reasons.join(" ")))
}

/// The probes that say something about the system.
fn levels(probes: &[Probe]) -> Vec<Level> {
    let tell = probes.iter().filter(|probe| probe.fate != Fate::GeneratorLimited && probe.achieved > 0.0);
    tell.map(|probe| Level {
        rate: probe.offered,
        responses: probe.achieved,
        mean_s: probe.mean_ns / 1e9,
        p95_ns: probe.p95_ns,
    })
    .collect()
}

/// The first reason of the lowest rate that was broken.
fn gives_way(probes: &[Probe]) -> Option<Reason> {
    let broken = probes.iter().filter(|probe| probe.fate == Fate::Broken);
    broken.min_by(|a, b| a.offered.total_cmp(&b.offered))?.reasons.first().cloned()
}

/// Message once a probe is over.
fn line(probe: &Probe) -> String {
    let fate = match probe.fate {
        Fate::Kept => "kept".to_owned(),
        Fate::Broken | Fate::GeneratorLimited => {
            let texts: Vec<&str> = probe.reasons.iter().map(|reason| reason.text.as_str()).collect();
            let word = if probe.fate == Fate::Broken { "broken" } else { "the generator was the limit" };
            format!("{word} ({})", texts.join("; "))
        }
    };
    format!("{} {fate}", units::rate(probe.offered))
}

/// Whoever reads the trial as one load would be misled.
fn caveat(capacity: &Capacity) -> TrialCaveat {
    let above = capacity.probes.iter().filter(|probe| probe.fate != Fate::Kept).count();
    TrialCaveat::CapacitySearch { probes: capacity.probes.len(), above }
}

/// The loads of one trial, one after the other.
struct Course<'a, 'b> {
    bench: &'a mut Bench<'b>,
    load: LoadPlan,
    running: &'a mut [RunningReplica],
    progress: &'a mut dyn Progress,
    windows: Vec<Window>,
    /// Loads sent so far.
    sent: u64,
}

impl Course<'_, '_> {
    /// A rate to begin at: a part of what a closed loop reaches in a few seconds.
    fn look(&mut self, trial: &mut Trial) -> Result<f64, Error> {
        let users = crate::environment::cores() * LOOK_USERS_PER_CORE;
        let plan = probe::closed_look(&self.load, users, LOOK);
        let (mut sent, rows) = self.send(plan, trial)?;
        for window in &mut sent.windows {
            window.kind = WindowKind::Warmup;
            window.label = "a look".to_owned();
        }
        self.keep(sent, trial)?;
        let rate = counting::totals(rows.iter().map(|(row, phase)| (row, *phase)), |_| true).rate() * LOOK_PART;
        Ok(if rate > 0.0 { rate.max(narrows_load::RATE_MIN) } else { FROM_DEFAULT })
    }

    fn probe(
        &mut self,
        rate: f64,
        time: Duration,
        objectives: &[Objective],
        trial: &mut Trial,
    ) -> Result<Probe, Error> {
        let settle = (time / SETTLING_PART).clamp(SETTLING.0, SETTLING.1);
        let settle = Duration::from_secs(settle.as_secs());
        let plan = probe::plan_at(&self.load, rate, settle, time, objectives).map_err(Error::Capacity)?;
        let (sent, rows) = self.send(plan, trial)?;
        let probe = probe::judged(rate, &rows, &sent.outcome, objectives);
        if probe.fate == Fate::Kept {
            worst(trial, &sent, rate);
        }
        self.keep(sent, trial)?;
        Ok(probe)
    }

    /// Sends a load and returns its counted rows.
    fn send(
        &mut self,
        mut plan: LoadPlan,
        trial: &mut Trial,
    ) -> Result<(FinishedLoad, Vec<(LoadSecond, Phase)>), Error> {
        plan.seed = plan.seed.wrapping_add(self.sent);
        self.sent += 1;
        let mut rows: Vec<LoadSecond> = Vec::new();
        let mut onlooker = |seconds: &[LoadSecond]| {
            rows.extend_from_slice(seconds);
            Onward::GoOn
        };
        let first_window = self.windows.len() as u32;
        let sent = self.bench.send(plan, first_window, trial, self.running, &mut onlooker, self.progress)?;
        let rows = counted(rows, &sent.windows);
        Ok((sent, rows))
    }

    /// Writes the windows down; errors when the load was cut short.
    fn keep(&mut self, sent: FinishedLoad, trial: &Trial) -> Result<(), Error> {
        self.windows.extend(sent.windows);
        self.bench.recorder.put_windows(trial.id, &self.windows)?;
        sent.fate.and_then(|()| self.bench.go_on())
    }
}

/// The worst verdict on the generator among the probes that were kept stands for the trial.
fn worst(trial: &mut Trial, sent: &FinishedLoad, rate: f64) {
    let validity = &sent.outcome.validity;
    if validity.verdict > trial.validity.verdict {
        trial.validity = validity.clone();
        let at = units::rate(rate);
        trial.validity.reasons.iter_mut().for_each(|reason| *reason = format!("At {at}: {reason}"));
    }
}

fn counted(rows: Vec<LoadSecond>, windows: &[Window]) -> Vec<(LoadSecond, Phase)> {
    rows.into_iter().filter_map(|row| counting::counts(windows, &row).map(|phase| (row, phase))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(offered: f64, fate: Fate, what: &str) -> Probe {
        let reasons = match what {
            "" => Vec::new(),
            what => vec![Reason { what: what.to_owned(), text: format!("{what}: much") }],
        };
        Probe {
            offered,
            achieved: offered,
            mean_ns: 1e6,
            p50_ns: 1_000_000,
            p95_ns: 2_000_000,
            p99_ns: 3_000_000,
            errors: 0,
            error_rate: 0.0,
            fate,
            reasons,
        }
    }

    #[test]
    fn what_gives_way_first_is_what_the_lowest_broken_rate_says() {
        let probes =
            [probe(100.0, Fate::Kept, ""), probe(400.0, Fate::Broken, "max"), probe(200.0, Fate::Broken, "p95")];
        assert_eq!(gives_way(&probes).unwrap().what, "p95");
    }

    #[test]
    fn the_floor_is_ten_requests_in_a_probe_unless_it_is_named() {
        let seconds = Duration::from_secs;
        assert_eq!(floor(None, seconds(10), 50.0), 1.0);
        assert_eq!(floor(None, seconds(2), 50.0), 5.0);
        assert_eq!(floor(Some(0.1), seconds(2), 50.0), 0.1);
        assert_eq!(floor(None, seconds(10), 0.5), 0.5);
    }

    #[test]
    fn probes_that_the_generator_spoilt_say_nothing_about_the_system() {
        let probes = [probe(100.0, Fate::Kept, ""), probe(50.0, Fate::GeneratorLimited, "the generator")];
        assert_eq!(levels(&probes).len(), 1);
        assert_eq!(gives_way(&probes), None);
        assert!(generator_gave_out(&probes).to_string().contains("the generator: much"));
        assert_eq!(line(&probes[1]), "50.0/s the generator was the limit (the generator: much)");
    }

    #[test]
    fn only_whole_seconds_of_counted_windows_are_counted() {
        let window = |kind, start_ns: i64, end_ns: i64| Window {
            index: 0,
            kind,
            label: String::new(),
            start_ns,
            end_ns,
            drained_ns: None,
            vus: 0,
            rate: None,
        };
        let second = 1_000_000_000;
        let windows = [window(WindowKind::Warmup, 0, second), window(WindowKind::Steady, second, 3 * second)];
        let row = |at: i64| LoadSecond { start_ns: at * second, succeeded: 10, ..LoadSecond::default() };
        let rows = counted(vec![row(0), row(1), row(2), row(2), row(3)], &windows);
        assert_eq!(rows.iter().map(|(row, _)| row.start_ns / second).collect::<Vec<_>>(), [1, 2, 2]);
    }
}
