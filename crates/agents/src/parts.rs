//! The parts of a load and what became of them: pure, told by the reports of a trial in the order of its stream.
//!
//! Whoever reads the same reports comes to the same state, so a coordinator that begins anew knows all that the former one
//! knew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use narrows_load::{LoadOutcome, MergedSeconds, PartReport, WindowsUnderWay};
use narrows_model::load::{ClockOffset, DataValues, LoadBatch, LoadPlan, LostShare, PartSummary, Pick};
use narrows_model::run::Verdict;
use narrows_model::units;
use narrows_telemetry::Records;

use crate::Error;
use crate::messages::{Begun, Given, Report};

/// Threads of agents that may have so many each, of a load that has `total`: one after the other gets one more, and each has
/// a range. Those for which nothing is left have an empty one.
pub(crate) fn divide(allowed: &[usize], total: usize) -> Vec<Range<usize>> {
    let mut sizes = vec![0; allowed.len()];
    let mut left = total.min(allowed.iter().sum());
    while left > 0 {
        for (size, _) in sizes.iter_mut().zip(allowed).filter(|(size, allowed)| **size < **allowed) {
            if left > 0 {
                *size += 1;
                left -= 1;
            }
        }
    }
    let mut first = 0;
    let range = |size| {
        first += size;
        first - size..first
    };
    sizes.into_iter().map(range).collect()
}

/// An error if a row that is picked once would be missing for some agent.
pub(crate) fn check_rows(plan: &LoadPlan, agents: usize) -> Result<(), Error> {
    for source in &plan.data {
        if let DataValues::Rows { rows, pick: Pick::Once, .. } = &source.values
            && rows.len() < agents
        {
            return Err(Error::TooFewRows { data: source.name.clone(), rows: rows.len(), agents });
        }
    }
    Ok(())
}

/// A load that agents sent together.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedLoad {
    /// Its outcome, as if one process had sent it. It is doubtful where an agent was lost, and no better than the worst of
    /// its parts.
    pub outcome: LoadOutcome,
    /// Its parts, in the order in which they were given to agents.
    pub parts: Vec<PartSummary>,
    /// Records of services that found no room on their way, by the agent that looked.
    pub dropped: Vec<(String, u64)>,
}

impl MergedLoad {
    /// A load that one process sent.
    pub fn whole(outcome: LoadOutcome) -> Self {
        Self { outcome, parts: Vec::new(), dropped: Vec::new() }
    }
}

/// State of a part.
#[derive(Debug)]
enum State {
    Running,
    Ended(Box<PartReport>),
    Failed(String),
    Lost { reason: String, from_second: u64 },
}

#[derive(Debug)]
struct Part {
    given: Given,
    state: State,
    /// Its own seconds, by which it is judged alone.
    own: MergedSeconds,
    /// When its last second ended.
    last_ns: i64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Parts {
    begun: Option<Begun>,
    merged: MergedSeconds,
    windows: WindowsUnderWay,
    all: Vec<Part>,
    /// Agents that look at services.
    eyes: BTreeMap<String, Eye>,
    /// Records that they saw since these were last taken.
    seen: Records,
    /// Parts that agents have left since these were last taken, with their reasons.
    left: Vec<(Given, String)>,
}

/// An agent that looks at services.
#[derive(Debug)]
struct Eye {
    clock: ClockOffset,
    receives: bool,
    /// Records that found no room there; known when it has ended.
    dropped: Option<u64>,
}

impl Parts {
    pub(crate) fn of(plan: &LoadPlan) -> Self {
        let windows = WindowsUnderWay::of(plan);
        Self {
            begun: None,
            merged: MergedSeconds::new(0, windows.clone()),
            windows,
            all: Vec::new(),
            eyes: BTreeMap::new(),
            seen: Records::default(),
            left: Vec::new(),
        }
    }

    /// Takes the next report of the stream.
    pub(crate) fn take(&mut self, report: Report) {
        let own = self.begun.map(|begun| begun.load);
        let of = match &report {
            Report::Second { load, .. }
            | Report::Seen { load, .. }
            | Report::Left { load, .. }
            | Report::Ended { load, .. } => Some(*load),
            Report::Blind(blind) => Some(blind.load),
            Report::Begun(_) | Report::Given(_) | Report::Lost(_) | Report::Sees(_) => own,
        };
        if of != own {
            return;
        }
        match report {
            Report::Begun(begun) => self.begun = Some(begun),
            Report::Given(given) => {
                self.merged.join(given.part.from_second);
                let mut own = MergedSeconds::new(0, self.windows.clone());
                own.join(given.part.from_second);
                self.all.push(Part { given, state: State::Running, own, last_ns: 0 });
            }
            Report::Lost(lost) => self.lose(lost.part, lost.reason),
            Report::Left { part, reason, .. } => {
                if let Some(of) = self.all.get(part).filter(|of| matches!(of.state, State::Running)) {
                    self.left.push((of.given.clone(), reason.clone()));
                }
                self.lose(part, reason);
            }
            Report::Second { part, number, batch, .. } => self.second(part, number, batch),
            Report::Sees(sees) => {
                self.eyes.insert(sees.agent, Eye { clock: sees.clock, receives: sees.receives, dropped: None });
            }
            Report::Seen { agent, mut records, .. } => {
                if let Some(eye) = self.eyes.get(&agent).filter(|eye| eye.dropped.is_none()) {
                    records.shift_back(eye.clock.offset_ns);
                    self.seen.append(records);
                }
            }
            Report::Blind(blind) => {
                if let Some(eye) = self.eyes.get_mut(&blind.agent) {
                    eye.dropped = Some(blind.dropped);
                }
            }
            Report::Ended { part, end, .. } => {
                let clock = self.all.get(part).map(|part| part.given.clock).unwrap_or_default();
                let state = match end {
                    Ok(mut report) => {
                        report.shift_back(clock.offset_ns);
                        State::Ended(report)
                    }
                    Err(reason) => State::Failed(reason),
                };
                self.end(part, state);
            }
        }
    }

    fn second(&mut self, number: usize, second: u64, mut batch: LoadBatch) {
        let Some(part) = self.all.get_mut(number).filter(|part| matches!(part.state, State::Running)) else { return };
        shift_back(&mut batch, part.given.clock.offset_ns);
        batch.samples.iter_mut().for_each(|sample| sample.agent = Some(part.given.agent.clone()));
        part.last_ns = batch.seconds.iter().map(|row| row.end_ns()).fold(part.last_ns, i64::max);
        let own = LoadBatch { seconds: batch.seconds.clone(), samples: Vec::new() };
        part.own.add(0, second, own);
        while part.own.take_next().is_some() {}
        self.merged.add(number, second, batch);
    }

    fn lose(&mut self, part: usize, reason: String) {
        let from_second = self.merged.next_of(part);
        self.end(part, State::Lost { reason, from_second });
    }

    fn end(&mut self, number: usize, state: State) {
        let Some(part) = self.all.get_mut(number).filter(|part| matches!(part.state, State::Running)) else { return };
        part.state = state;
        part.own.end(0);
        while part.own.take_next().is_some() {}
        self.merged.end(number);
    }

    /// The next second that is whole.
    pub(crate) fn take_next(&mut self) -> Option<LoadBatch> {
        self.merged.take_next()
    }

    /// Records that agents saw since this was last called, by this machine's clock.
    pub(crate) fn take_seen(&mut self) -> Option<Records> {
        (!self.seen.is_empty()).then(|| std::mem::take(&mut self.seen))
    }

    /// Parts that agents have left since this was last called, with their reasons.
    pub(crate) fn take_left(&mut self) -> Vec<(Given, String)> {
        std::mem::take(&mut self.left)
    }

    /// Agents that still look.
    pub(crate) fn eyes(&self) -> impl Iterator<Item = &str> {
        self.eyes.iter().filter(|(_, eye)| eye.dropped.is_none()).map(|(agent, _)| agent.as_str())
    }

    /// Whether one of them receives telemetry.
    pub(crate) fn receive(&self) -> bool {
        self.eyes.values().any(|eye| eye.receives && eye.dropped.is_none())
    }

    pub(crate) fn begun(&self) -> Option<Begun> {
        self.begun
    }

    /// Parts that are under way, each with its number.
    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &Given)> {
        let running = self.all.iter().enumerate().filter(|(_, part)| matches!(part.state, State::Running));
        running.map(|(number, part)| (number, &part.given))
    }

    /// How many parts there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// An agent that could not send its part, and its words.
    pub(crate) fn failed(&self) -> Option<(&str, &str)> {
        self.all.iter().find_map(|part| match &part.state {
            State::Failed(reason) => Some((part.given.agent.as_str(), reason.as_str())),
            _ => None,
        })
    }

    /// Whether no part is under way any more, of those that were given.
    pub(crate) fn are_over(&self) -> bool {
        !self.all.is_empty() && self.running().next().is_none()
    }

    /// Reason of the last loss, if every part was lost.
    pub(crate) fn all_lost(&self) -> Option<&str> {
        let reasons = self.all.iter().map(|part| match &part.state {
            State::Lost { reason, .. } => Some(reason.as_str()),
            _ => None,
        });
        reasons.collect::<Option<Vec<_>>>()?.pop()
    }

    /// The load as a whole.
    pub(crate) fn conclude(self, second_at: impl Fn(u64) -> Duration) -> MergedLoad {
        let start_ns = self.begun.map_or(0, |begun| begun.start_ns);
        let taken_over: Vec<(Range<usize>, u64)> =
            self.all.iter().map(|part| (threads(&part.given), part.given.part.from_second)).collect();
        let mut whole = PartReport::default();
        let mut parts = Vec::with_capacity(self.all.len());
        let mut worst = (Verdict::Valid, Vec::new());
        let mut losses = Vec::new();
        for (number, Part { given, state, own, last_ns }) in self.all.into_iter().enumerate() {
            let mut lost = None;
            let report = match state {
                State::Ended(report) => *report,
                State::Lost { reason, from_second } => {
                    let later = taken_over.iter().skip(number + 1).find(|(range, _)| range.contains(&given.part.first));
                    let share = given.part.threads as f64 / given.part.of.max(1) as f64;
                    let until_s = later.map(|(_, second)| second_at(*second).as_secs_f64());
                    let share = LostShare { share, from_s: second_at(from_second).as_secs_f64(), until_s, reason };
                    losses.push(sentence(&given.agent, &share));
                    lost = Some(share);
                    PartReport { ended_ns: last_ns, ..PartReport::default() }
                }
                State::Running | State::Failed(_) => PartReport { ended_ns: last_ns, ..PartReport::default() },
            };
            let alone = report.clone().conclude(start_ns, own.into_totals());
            if lost.is_none() && alone.validity.verdict > worst.0 {
                let reasons = alone.validity.reasons.iter();
                worst = (
                    alone.validity.verdict,
                    reasons.map(|reason| format!("Agent {}: {reason}", given.agent)).collect(),
                );
            }
            parts.push(PartSummary {
                agent: given.agent,
                labels: given.labels.iter().map(|(key, value)| format!("{key}={value}")).collect(),
                cores: given.cores,
                first: given.part.first,
                threads: given.part.threads,
                of: given.part.of,
                clock: given.clock,
                sent: alone.totals.sent,
                cpu: mean(alone.threads.iter().map(|thread| thread.share())),
                verdict: alone.validity.verdict,
                lost,
            });
            whole.merge(report);
        }
        let mut outcome = whole.conclude(start_ns, self.merged.into_totals());
        let validity = &mut outcome.validity;
        if worst.0 > validity.verdict {
            validity.verdict = worst.0;
            validity.reasons.extend(worst.1);
        }
        if !losses.is_empty() {
            validity.verdict = validity.verdict.max(Verdict::Doubtful);
            validity.reasons.extend(losses);
        }
        let dropped =
            self.eyes.into_iter().filter_map(|(agent, eye)| Some((agent, eye.dropped.filter(|count| *count > 0)?)));
        MergedLoad { outcome, parts, dropped: dropped.collect() }
    }
}

fn threads(given: &Given) -> Range<usize> {
    given.part.first..given.part.first + given.part.threads
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

fn sentence(agent: &str, lost: &LostShare) -> String {
    let share = units::percent(lost.share);
    let until = match lost.until_s {
        Some(until_s) => format!("until {until_s:.0} s, when another agent took over"),
        None => "to its end".to_owned(),
    };
    format!("Agent {agent} {}: {share} of the load was missing from {:.0} s {until}.", lost.reason, lost.from_s)
}

/// Moves the times of a second to a clock that shows so many nanoseconds less.
fn shift_back(batch: &mut LoadBatch, offset_ns: i64) {
    for row in &mut batch.seconds {
        row.start_ns = row.start_ns.saturating_sub(offset_ns);
    }
    for sample in &mut batch.samples {
        for at_ns in [&mut sample.intended_ns, &mut sample.sent_ns, &mut sample.done_ns] {
            *at_ns = at_ns.saturating_sub(offset_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_load::LoadPart;
    use narrows_model::histogram::Histogram;
    use narrows_model::load::{LoadModel, LoadSecond};
    use proptest::prelude::*;

    use super::*;
    use crate::messages::Lost;

    const S: i64 = 1_000_000_000;

    proptest! {
        #[test]
        fn threads_are_divided_evenly_and_completely(allowed in proptest::collection::vec(1usize..9, 1..9), total in 1usize..80) {
            let ranges = divide(&allowed, total);
            let sum: usize = ranges.iter().map(Range::len).sum();
            prop_assert_eq!(sum, total.min(allowed.iter().sum()));
            prop_assert!(ranges.iter().zip(&allowed).all(|(range, allowed)| range.len() <= *allowed));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let most = ranges.iter().map(Range::len).max().unwrap();
            prop_assert!(ranges.iter().zip(&allowed).all(|(range, allowed)| range.len() + 1 >= most.min(*allowed)));
        }
    }

    fn plan() -> LoadPlan {
        crate::coordinator::tests::plan(LoadModel::ConstantVus { vus: 4, duration: Duration::from_secs(10) })
    }

    fn given(agent: &str, first: usize, from_second: u64, offset_ns: i64) -> Report {
        let part = LoadPart { first, threads: 1, of: 2, start_ns: 100 * S + offset_ns, from_second };
        let clock = ClockOffset { offset_ns, uncertainty_ns: 1_000 };
        Report::Given(Given { agent: agent.to_owned(), labels: BTreeMap::new(), cores: 1, part, clock })
    }

    fn second(part: usize, number: u64, sent: u64, offset_ns: i64) -> Report {
        let start_ns = (100 + number as i64) * S + offset_ns;
        let row = LoadSecond { scenario: "a".into(), sent, succeeded: sent, start_ns, ..LoadSecond::default() };
        Report::Second { load: 1, part, number, batch: LoadBatch { seconds: vec![row], samples: Vec::new() } }
    }

    fn begun() -> Report {
        Report::Begun(Begun { load: 1, start_ns: 100 * S, threads: 2 })
    }

    fn seconds(parts: &mut Parts) -> Vec<(i64, u64)> {
        let rows = std::iter::from_fn(|| parts.take_next()).flat_map(|batch| batch.seconds);
        rows.map(|row| (row.start_ns / S, row.sent)).collect()
    }

    #[test]
    fn seconds_of_two_clocks_add_up_on_one() {
        let mut parts = Parts::of(&plan());
        for report in [begun(), given("a", 0, 0, 0), given("b", 1, 0, 3_600 * S)] {
            parts.take(report);
        }
        parts.take(second(0, 0, 5, 0));
        assert_eq!(seconds(&mut parts), []);
        parts.take(second(1, 0, 7, 3_600 * S));
        parts.take(second(1, 0, 7, 3_600 * S));
        let earlier =
            LoadBatch { seconds: vec![LoadSecond { sent: 99, ..LoadSecond::default() }], samples: Vec::new() };
        parts.take(Report::Second { load: 0, part: 1, number: 1, batch: earlier });
        assert_eq!(seconds(&mut parts), [(100, 12)]);
        for part in [0, 1] {
            let report = PartReport { ended_ns: 110 * S + part as i64 * 3_600 * S, ..PartReport::default() };
            parts.take(Report::Ended { load: 1, part, end: Ok(Box::new(report)) });
        }
        assert!(parts.are_over() && parts.all_lost().is_none());
        let load = parts.conclude(Duration::from_secs);
        assert_eq!((load.outcome.totals.sent, load.outcome.ended_ns), (12, 110 * S));
        assert_eq!(load.parts.iter().map(|part| part.sent).collect::<Vec<_>>(), [5, 7]);
    }

    #[test]
    fn nothing_of_a_lost_part_counts_from_its_loss_on_and_the_gap_is_told() {
        let mut parts = Parts::of(&plan());
        for report in [begun(), given("a", 0, 0, 0), given("b", 1, 0, 0), second(1, 0, 7, 0)] {
            parts.take(report);
        }
        parts.take(Report::Lost(Lost { part: 1, reason: "was silent for 2 s".into() }));
        parts.take(second(1, 1, 1_000, 0));
        parts.take(given("a", 1, 3, 0));
        for number in 0..4 {
            parts.take(second(0, number, 1, 0));
        }
        parts.take(second(2, 3, 20, 0));
        assert_eq!(seconds(&mut parts), [(100, 8), (101, 1), (102, 1), (103, 21)]);
        let load = parts.conclude(Duration::from_secs);
        let lost = load.parts[1].lost.clone().unwrap();
        assert_eq!((lost.share, lost.from_s, lost.until_s), (0.5, 1.0, Some(3.0)));
        assert_eq!(load.outcome.totals.sent, 31);
        assert_eq!(load.outcome.validity.verdict, Verdict::Doubtful);
        let told = "Agent b was silent for 2 s: 50 % of the load was missing from 1 s until 3 s, when another agent took over.";
        assert_eq!(load.outcome.validity.reasons.last().map(String::as_str), Some(told));
    }

    proptest! {
        #[test]
        fn percentiles_of_the_merged_load_are_those_of_one_recording(
            latencies in proptest::collection::vec((0usize..3, 0u64..2, 1u64..10_000_000_000), 1..200),
        ) {
            let mut parts = Parts::of(&plan());
            let mut pooled = Histogram::new();
            parts.take(begun());
            (0..3).for_each(|part| parts.take(given(&format!("agent-{part}"), 0, 0, part * 1_000)));
            for part in 0..3 {
                for number in 0..2 {
                    let mut row = LoadSecond { scenario: "a".into(), ..LoadSecond::default() };
                    row.start_ns = (100 + number as i64) * S + part as i64 * 1_000;
                    for (_, _, latency_ns) in latencies.iter().filter(|(of, at, _)| (*of, *at) == (part, number)) {
                        row.sent += 1;
                        row.succeeded += 1;
                        row.latency.record(*latency_ns);
                        pooled.record(*latency_ns);
                    }
                    let batch = LoadBatch { seconds: vec![row], samples: Vec::new() };
                    parts.take(Report::Second { load: 1, part, number, batch });
                }
                parts.take(Report::Ended { load: 1, part, end: Ok(Box::default()) });
            }
            prop_assert_eq!(seconds(&mut parts).iter().map(|(_, sent)| sent).sum::<u64>(), latencies.len() as u64);
            prop_assert_eq!(parts.conclude(Duration::from_secs).outcome.totals.latency, pooled);
        }
    }

    #[test]
    fn reports_that_name_no_part_change_nothing() {
        let mut parts = Parts::of(&plan());
        parts.take(begun());
        parts.take(second(3, 0, 1, 0));
        parts.take(Report::Ended { load: 1, part: 7, end: Err("x".into()) });
        parts.take(Report::Lost(Lost { part: 7, reason: String::new() }));
        assert!(seconds(&mut parts).is_empty() && !parts.are_over() && parts.failed().is_none());
        parts.take(given("a", 0, 0, 0));
        parts.take(Report::Ended { load: 1, part: 0, end: Err("no open files".into()) });
        assert_eq!(parts.failed(), Some(("a", "no open files")));
    }
}
