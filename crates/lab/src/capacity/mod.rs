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

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_model::load::{LoadPlan, LoadSecond};
use narrows_model::run::{Trial, Window, WindowKind};
use narrows_model::units;
use narrows_telemetry::run_file::Recorder;
use serde::Serialize;

pub use interval::Interval;
pub use probe::{Probe, Reason};
pub use scalability::Fit;
pub use search::{Ceiling, Edge, Fate};

use crate::experiment::{BoundCommand, Experiment, Objective};
use crate::progress::{Event, Progress};
use crate::run::{Begin, Ended, Options, run_with};
use crate::trial::{Bench, Onward, Running, Sent, Work};
use crate::{Error, judging};
use scalability::Level;
use search::{Bounds, Found, Search};

/// The name under which a run file keeps what was found.
pub const CONCLUSION: &str = "capacity";
/// How long the closed look lasts that says where to begin.
const LOOK: Duration = Duration::from_secs(3);
/// Its users where the experiment names none, for each core.
const LOOK_USERS_PER_CORE: u32 = 4;
/// The part of its rate to begin at, and where to begin when it came to nothing.
const LOOK_PART: f64 = 0.25;
const FROM_DEFAULT: f64 = 10.0;
/// The uncounted beginning of a probe, as a part of it, and within these bounds.
const SETTLING_PART: u32 = 5;
const SETTLING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// What to search, and how.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The experiment; its objectives say what is to be kept.
    pub experiment: &'a Experiment,
    /// The variants to search; all when empty.
    pub variants: Vec<String>,
    /// The first rate, per second; none for a quarter of what a short closed look reaches.
    pub from: Option<f64>,
    /// The highest rate to try, per second.
    pub to: f64,
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
}

/// What was found for one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// The variant.
    pub variant: String,
    /// What was to be kept.
    pub objectives: Vec<String>,
    /// Objectives that any low rate breaks, and that were therefore not judged.
    pub left_out: Vec<String>,
    /// Every probe in the order they were made.
    pub probes: Vec<Probe>,
    /// What the search came to.
    pub verdict: Verdict,
    /// What gives way first above the capacity; none when nothing was seen to.
    pub gives_way: Option<Reason>,
    /// The lowest rate at which 95 % latency is more than twice that of the lowest rate; none when it never is.
    pub knee: Option<f64>,
    /// The universal scalability law through the probes; none with too few.
    pub law: Option<Fit>,
    /// What limits the reading of it, in sentences.
    pub notes: Vec<String>,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// The capacity.
    Found(Interval),
    /// The objectives were kept at this rate, and what lies above could not be tried.
    AtLeast {
        /// Per second.
        rate: f64,
        /// Why not.
        ceiling: Ceiling,
    },
    /// The objectives were broken at the lowest rate.
    Nowhere {
        /// Per second.
        rate: f64,
    },
}

/// How a search ended.
#[derive(Debug)]
pub struct Searched {
    /// How the run did.
    pub ended: Ended,
    /// What was found, for each variant that was searched to its end.
    pub capacities: Vec<Capacity>,
}

/// Searches. `stop` ends it early, in order.
///
/// # Errors
/// When it could not begin: [`Error::Capacity`] when the experiment has nothing to judge by. What happens later is in
/// [`Searched`].
pub fn search(wanted: &Wanted<'_>, stop: &AtomicBool, progress: &mut dyn Progress) -> Result<Searched, Error> {
    let (objectives, left_out) = probe::judgeable(&wanted.experiment.objectives);
    if objectives.is_empty() {
        let why = "the experiment has no objective that a rate can break, such as `p95 < 300ms` or `error_rate < 1%`";
        return Err(Error::Capacity(why.to_owned()));
    }
    let options = Options {
        experiment: wanted.experiment,
        variants: wanted.variants.clone(),
        repetitions: 1,
        time_scale: 1.0,
        path: wanted.path.clone(),
        begin: Begin::Fresh,
        guard_command: wanted.guard_command.clone(),
    };
    let mut searching = Searching { wanted, objectives, left_out, capacities: Vec::new() };
    let ended = run_with(&options, &mut searching, stop, progress)?;
    Ok(Searched { ended, capacities: searching.capacities })
}

/// The work of every trial of a search.
struct Searching<'a> {
    wanted: &'a Wanted<'a>,
    objectives: Vec<Objective>,
    left_out: Vec<Objective>,
    capacities: Vec<Capacity>,
}

impl Work for Searching<'_> {
    fn work(
        &mut self,
        bench: &mut Bench<'_>,
        load: LoadPlan,
        trial: &mut Trial,
        running: &mut [Running],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let mut course = Course { bench, load, running, progress, windows: Vec::new(), sent: 0 };
        let from = match self.wanted.from {
            Some(from) => from,
            None => course.look(trial)?,
        };
        let bounds = Bounds {
            from: from.min(self.wanted.to),
            to: self.wanted.to,
            precision: self.wanted.precision,
            repeats: self.wanted.repeats,
        };
        let mut search = Search::new(bounds);
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
        _: &mut [Running],
        _: &mut dyn Progress,
    ) -> Result<(), Error> {
        let why = "its load comes from another program (`load.command`), whose rate cannot be set from here";
        Err(Error::Capacity(why.to_owned()))
    }

    fn conclude(&self, recorder: &Recorder) -> Result<(), Error> {
        recorder.put_conclusion(CONCLUSION, &serde_json::json!(self.capacities))?;
        Ok(())
    }
}

impl Searching<'_> {
    fn concluded(&self, trial: &Trial, search: &Search, probes: Vec<Probe>) -> Result<Capacity, Error> {
        let mut notes = Vec::new();
        let verdict = match search.found() {
            Some(Found::Edges(edges)) => Interval::of(edges).map(Verdict::Found),
            Some(Found::AtLeast(rate, ceiling)) => Some(Verdict::AtLeast { rate: *rate, ceiling: *ceiling }),
            Some(Found::Nowhere(rate)) => Some(Verdict::Nowhere { rate: *rate }),
            Some(Found::GeneratorAtOnce(_)) | None => None,
        };
        let Some(verdict) = verdict else { return Err(generator_gave_out(&probes)) };
        if search.repetitions_lost() > 0 {
            notes.push(format!(
                "{} of {} repetitions found no edge near the first one: the capacity moved, or the generator gave out.",
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
    Error::Capacity(format!("the generator gave out at the first rate: {}", reasons.join(" ")))
}

/// The probes that say something about the system.
fn levels(probes: &[Probe]) -> Vec<Level> {
    let tell = probes.iter().filter(|probe| probe.fate != Fate::GeneratorLimited && probe.achieved > 0.0);
    tell.map(|probe| Level {
        rate: probe.offered,
        answered: probe.achieved,
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

/// What a person is told once a probe is over.
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
fn caveat(capacity: &Capacity) -> String {
    let meant = capacity.probes.iter().filter(|probe| probe.fate != Fate::Kept).count();
    format!(
        "This trial searched for the capacity in {} probes, {meant} of them beyond it: read its windows one by one, for its \
         totals and objectives mix them.",
        capacity.probes.len()
    )
}

/// The loads of one trial, one after the other.
struct Course<'a, 'b> {
    bench: &'a mut Bench<'b>,
    load: LoadPlan,
    running: &'a mut [Running],
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
        let rate = judging::totals(&rows).rate() * LOOK_PART;
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

    /// Sends a load; its counted seconds.
    fn send(&mut self, mut plan: LoadPlan, trial: &mut Trial) -> Result<(Sent, Vec<LoadSecond>), Error> {
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
    fn keep(&mut self, sent: Sent, trial: &Trial) -> Result<(), Error> {
        self.windows.extend(sent.windows);
        self.bench.recorder.put_windows(trial.id, &self.windows)?;
        sent.fate.and_then(|()| self.bench.go_on())
    }
}

/// The worst verdict on the generator among the probes that were kept stands for the trial.
fn worst(trial: &mut Trial, sent: &Sent, rate: f64) {
    let validity = &sent.outcome.validity;
    if validity.verdict > trial.validity.verdict {
        trial.validity = validity.clone();
        let at = units::rate(rate);
        trial.validity.reasons.iter_mut().for_each(|reason| *reason = format!("At {at}: {reason}"));
    }
}

/// The seconds whose middle lies in a window that counts, as reports count them.
fn counted(mut rows: Vec<LoadSecond>, windows: &[Window]) -> Vec<LoadSecond> {
    rows.retain(|row| {
        let middle_ns = row.start_ns + judging::MIDDLE_NS;
        let mut counting = windows.iter().filter(|window| window.kind != WindowKind::Warmup);
        counting.any(|window| (window.start_ns..window.end_ns).contains(&middle_ns))
    });
    rows
}

impl Capacity {
    /// What was found, in one sentence.
    pub fn sentence(&self) -> String {
        let quoted: Vec<String> = self.objectives.iter().map(|text| format!("\"{text}\"")).collect();
        let what = quoted.join(" and ");
        let first = self.gives_way.as_ref();
        let gives_way = first.map_or_else(String::new, |reason| format!("; what gives way first is {}", reason.what));
        match &self.verdict {
            Verdict::Found(found) => {
                let (low, high) = (units::rate(found.low), units::rate(found.high));
                let sure = if found.is_repeated() { "95 %: " } else { "one search: " };
                format!("It keeps {what} up to {} ({sure}{low} to {high}){gives_way}.", units::rate(found.rate))
            }
            Verdict::AtLeast { rate, ceiling: Ceiling::Highest } => {
                format!("It keeps {what} at {}, the highest rate that was to be tried.", units::rate(*rate))
            }
            Verdict::AtLeast { rate, ceiling: Ceiling::Generator } => format!(
                "It keeps {what} at {} at least; above that the generator was the limit, not the system.",
                units::rate(*rate)
            ),
            Verdict::Nowhere { rate } => {
                format!("It does not keep {what} even at {}{gives_way}.", units::rate(*rate))
            }
        }
    }

    /// Whether a rate that keeps the objectives was found.
    pub fn is_found(&self) -> bool {
        !matches!(self.verdict, Verdict::Nowhere { .. })
    }
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

    fn capacity(verdict: Verdict) -> Capacity {
        let probes =
            vec![probe(100.0, Fate::Kept, ""), probe(400.0, Fate::Broken, "max"), probe(200.0, Fate::Broken, "p95")];
        Capacity {
            variant: "v".into(),
            objectives: vec!["p95 < 100ms".into(), "error_rate < 1%".into()],
            left_out: Vec::new(),
            gives_way: gives_way(&probes),
            probes,
            verdict,
            knee: None,
            law: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn each_verdict_is_a_sentence() {
        let found = |edges| Verdict::Found(Interval { rate: 1180.0, low: 1150.0, high: 1210.0, edges });
        let at_least = |ceiling| Verdict::AtLeast { rate: 2000.0, ceiling };
        let kept = "It keeps \"p95 < 100ms\" and \"error_rate < 1%\"";
        let cases = [
            (found(4), format!("{kept} up to 1,180/s (95 %: 1,150/s to 1,210/s); what gives way first is p95.")),
            (found(1), format!("{kept} up to 1,180/s (one search: 1,150/s to 1,210/s); what gives way first is p95.")),
            (at_least(Ceiling::Highest), format!("{kept} at 2,000/s, the highest rate that was to be tried.")),
            (
                at_least(Ceiling::Generator),
                format!("{kept} at 2,000/s at least; above that the generator was the limit, not the system."),
            ),
            (
                Verdict::Nowhere { rate: 10.0 },
                "It does not keep \"p95 < 100ms\" and \"error_rate < 1%\" even at 10.0/s; what gives way first is p95."
                    .to_owned(),
            ),
        ];
        for (verdict, expected) in cases {
            let capacity = capacity(verdict);
            assert_eq!(capacity.sentence(), expected);
            assert_eq!(capacity.is_found(), expected.starts_with("It keeps"));
        }
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
            vus: 0,
            rate: None,
        };
        let second = 1_000_000_000;
        let windows = [window(WindowKind::Warmup, 0, second), window(WindowKind::Steady, second, 3 * second)];
        let row = |at: i64| LoadSecond { start_ns: at * second, succeeded: 10, ..LoadSecond::default() };
        let rows = counted(vec![row(0), row(1), row(2), row(2), row(3)], &windows);
        assert_eq!(rows.iter().map(|row| row.start_ns / second).collect::<Vec<_>>(), [1, 2, 2]);
    }
}
