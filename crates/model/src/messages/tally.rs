//! Counts lines of logs by service, kind and the call that wrote them.
//!
//! A line belongs to the call of its service in its trace during which it was written; of several, to the one that began
//! last. Both times are of one clock. A line outside of all calls belongs to the operation of the nearest one if the
//! trace has no other operation of the service.
//!
//! Services and operations are numbers until the end, so that a name is looked up once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::{LoggingPair, MessageCount, MessageEvidence, PARTS};
use crate::evidence::TrialEvidence;

/// Maximum number of kinds of messages of one service and level; the most frequent are kept.
const KINDS_MAX: usize = 64;
/// Maximum number of kinds of all services while lines are read; the first are kept.
const KINDS_READ_MAX: usize = 65_536;
/// Maximum number of services; the first are kept.
const SERVICES_MAX: usize = 500;
/// Services of one trace, and pairs of services, whose order is looked at.
const SERVICES_OF_TRACE_MAX: usize = 32;
const PAIRS_MAX: usize = 8_192;
/// Time within which errors of two services without a trace may come from one request.
const ERRORS_APART_NS: i64 = 100_000_000;
/// Operations that one kind of message is counted for, the first ones; lines of further ones count without an operation.
const OPERATIONS_MAX: usize = 64;

/// A line as it is read.
#[derive(Debug, Clone)]
pub struct LoggedLine {
    /// When it was written.
    pub time_ns: i64,
    /// Number of its service.
    pub service: u32,
    /// Its kind.
    pub template: String,
    /// Whether it reports an error.
    pub is_error: bool,
    /// Id of its trace; `None` if it names none.
    pub trace: Option<u128>,
}

/// A call of a trace: the server span of a service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracedCall {
    /// Number of the service.
    pub service: u32,
    /// Number of the operation.
    pub operation: u32,
    /// First instant.
    pub start_ns: i64,
    /// Last instant.
    pub end_ns: i64,
    /// Number of calls that it stands for.
    pub weight: f64,
}

/// Counts of the lines that were read so far.
#[derive(Debug)]
pub struct MessageTally {
    time: CountedTime,
    services: BTreeSet<u32>,
    kinds: Vec<Kind>,
    kind_at: HashMap<(u32, bool, String), usize>,
    /// Lines that name a trace; in order of traces once all are read.
    traced: Vec<TracedLine>,
    is_sorted: bool,
    counts: HashMap<(usize, Option<u32>), Counts>,
    operations: HashMap<usize, usize>,
    pairs: BTreeMap<(u32, u32), PairCounts>,
    /// The latest errors that name no trace: service and time.
    errors: VecDeque<(u32, i64)>,
}

#[derive(Debug)]
struct Kind {
    service: u32,
    is_error: bool,
    template: String,
    lines: u64,
}

#[derive(Debug, Clone, Copy)]
struct TracedLine {
    trace: u128,
    time_ns: i64,
    kind: usize,
    is_counted: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    lines: u64,
    calls: u64,
    stands_for: f64,
    by_part: [u32; PARTS],
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.lines = self.lines.saturating_add(other.lines);
        self.calls = self.calls.saturating_add(other.calls);
        self.stands_for += other.stands_for;
        for (sum, part) in self.by_part.iter_mut().zip(other.by_part) {
            *sum = sum.saturating_add(part);
        }
    }

    fn add_part(&mut self, part: usize) {
        self.by_part[part] = self.by_part[part].saturating_add(1);
    }
}

/// The counted windows of a trial one after another.
#[derive(Debug)]
struct CountedTime {
    windows: Vec<(i64, i64)>,
    length_ns: i64,
}

impl CountedTime {
    fn of(trial: &TrialEvidence) -> Self {
        let windows: Vec<(i64, i64)> = trial.counted_windows().map(|window| (window.start_ns, window.end_ns)).collect();
        let length = |length: i64, window: &(i64, i64)| length.saturating_add(window.1.saturating_sub(window.0).max(0));
        Self { length_ns: windows.iter().fold(0, length), windows }
    }

    /// The part of the counted time that an instant lies in; `None` outside of it.
    fn part(&self, time_ns: i64) -> Option<usize> {
        let mut before_ns = 0_i64;
        for (start_ns, end_ns) in &self.windows {
            if (*start_ns..*end_ns).contains(&time_ns) {
                let at_ns = before_ns.saturating_add(time_ns.saturating_sub(*start_ns));
                let part = i128::from(at_ns) * PARTS as i128 / i128::from(self.length_ns.max(1));
                return Some(usize::try_from(part).unwrap_or(0).min(PARTS - 1));
            }
            before_ns = before_ns.saturating_add(end_ns.saturating_sub(*start_ns).max(0));
        }
        None
    }
}

impl MessageTally {
    /// Nothing yet of the counted windows of a trial.
    pub fn new(trial: &TrialEvidence) -> Self {
        Self {
            time: CountedTime::of(trial),
            services: BTreeSet::new(),
            kinds: Vec::new(),
            kind_at: HashMap::new(),
            traced: Vec::new(),
            is_sorted: true,
            counts: HashMap::new(),
            operations: HashMap::new(),
            pairs: BTreeMap::new(),
            errors: VecDeque::new(),
        }
    }

    /// Counts a line. Lines come in order of time, and before the calls of their traces. Returns how many bytes the line holds in memory,
    /// 0 outside of the counted windows.
    pub fn add(&mut self, line: LoggedLine) -> usize {
        let Some(part) = self.time.part(line.time_ns) else { return 0 };
        if self.services.len() >= SERVICES_MAX && !self.services.contains(&line.service) {
            return 0;
        }
        self.services.insert(line.service);
        let mut held = 0;
        let kind = self.kind_of(line.service, line.is_error, line.template, &mut held);
        self.kinds[kind].lines += 1;
        match line.trace {
            Some(trace) => {
                self.traced.push(TracedLine { trace, time_ns: line.time_ns, kind, is_counted: false });
                self.is_sorted = false;
                held += size_of::<TracedLine>();
            }
            None => {
                let counts = self.counts.entry((kind, None)).or_default();
                counts.lines += 1;
                counts.add_part(part);
                if line.is_error {
                    self.count_error(line.service, line.time_ns);
                }
            }
        }
        held
    }

    /// Counts which services logged an error shortly before.
    fn count_error(&mut self, service: u32, time_ns: i64) {
        self.errors.retain(|(known, at_ns)| *known != service && time_ns.saturating_sub(*at_ns) <= ERRORS_APART_NS);
        for (earlier, _) in &self.errors {
            let key = (service.min(*earlier), service.max(*earlier));
            if let Some(pair) = pair_of(&mut self.pairs, key) {
                pair.failed += 1;
                pair.failed_earlier += u64::from(key.0 == *earlier);
            }
        }
        self.errors.push_back((service, time_ns));
        if self.errors.len() > SERVICES_OF_TRACE_MAX {
            self.errors.pop_front();
        }
    }

    fn kind_of(&mut self, service: u32, is_error: bool, template: String, held: &mut usize) -> usize {
        let is_full = self.kinds.len() >= KINDS_READ_MAX;
        let key = (service, is_error, template);
        if let Some(at) = self.kind_at.get(&key) {
            return *at;
        }
        let key = if is_full { (service, is_error, MessageCount::OTHERS.to_owned()) } else { key };
        *self.kind_at.entry(key.clone()).or_insert_with(|| {
            *held += 2 * (key.2.len() + size_of::<Kind>());
            self.kinds.push(Kind { service, is_error, template: key.2, lines: 0 });
            self.kinds.len() - 1
        })
    }

    fn sort(&mut self) {
        if !self.is_sorted {
            self.traced.sort_by_key(|line| (line.trace, line.time_ns, line.kind));
            self.is_sorted = true;
        }
    }

    /// Counts the lines of a trace for the calls that wrote them. `calls` gives the calls, and is not asked for those of a
    /// trace without lines.
    pub fn add_calls(&mut self, trace: u128, calls: impl FnOnce() -> Vec<TracedCall>) {
        self.sort();
        let start = self.traced.partition_point(|line| line.trace < trace);
        let end = start + self.traced[start..].partition_point(|line| line.trace == trace);
        if start == end {
            return;
        }
        let calls = &calls()[..];
        let mut counted: HashSet<(usize, usize)> = HashSet::new();
        for at in start..end {
            let line = self.traced[at];
            let service = self.kinds[line.kind].service;
            let (Some(call), Some(part)) = (call_of(calls, service, line.time_ns), self.time.part(line.time_ns)) else {
                continue;
            };
            let TracedCall { operation, weight, .. } = calls[call];
            let Some(counts) = self.counts_of(line.kind, operation) else { continue };
            counts.lines += 1;
            if counted.insert((line.kind, call)) {
                counts.calls += 1;
                counts.stands_for += weight;
                counts.add_part(part);
            }
            self.traced[at].is_counted = true;
        }
    }

    fn counts_of(&mut self, kind: usize, operation: u32) -> Option<&mut Counts> {
        if !self.counts.contains_key(&(kind, Some(operation))) {
            let operations = self.operations.entry(kind).or_default();
            if *operations >= OPERATIONS_MAX {
                return None;
            }
            *operations += 1;
        }
        Some(self.counts.entry((kind, Some(operation))).or_default())
    }

    /// All counts. `name` gives the name of a number.
    ///
    /// # Errors
    /// The first error of `name`.
    pub fn into_evidence<E>(mut self, mut name: impl FnMut(u32) -> Result<String, E>) -> Result<MessageEvidence, E> {
        self.sort();
        let mut traces: BTreeMap<u32, u64> = BTreeMap::new();
        let mut pairs = std::mem::take(&mut self.pairs);
        for lines in self.traced.chunk_by(|one, other| one.trace == other.trace) {
            let mut counted: HashSet<usize> = HashSet::new();
            for line in lines.iter().filter(|line| !line.is_counted) {
                let counts = self.counts.entry((line.kind, None)).or_default();
                counts.lines += 1;
                if counted.insert(line.kind) {
                    counts.calls += 1;
                    counts.stands_for += 1.0;
                    counts.add_part(self.time.part(line.time_ns).unwrap_or(0));
                }
            }
            let mut extents: BTreeMap<u32, Extent> = BTreeMap::new();
            for line in lines {
                let (Kind { service, is_error, .. }, time_ns) = (&self.kinds[line.kind], line.time_ns);
                let none = Extent { first_ns: time_ns, last_ns: time_ns, error_ns: None };
                let extent = extents.entry(*service).or_insert(none);
                extent.last_ns = time_ns;
                extent.error_ns = extent.error_ns.or(is_error.then_some(time_ns));
            }
            extents.keys().for_each(|service| *traces.entry(*service).or_default() += 1);
            count_pairs(&mut pairs, &extents);
        }
        let mut evidence = MessageEvidence::default();
        for (service, count) in traces {
            evidence.traces.push((name(service)?, count));
        }
        for ((one, other), counts) in pairs {
            evidence.pairs.push(counts.named(name(one)?, name(other)?));
        }
        for ((kind, operation), counts) in self.into_bounded() {
            evidence.counts.push(MessageCount {
                service: name(kind.0)?,
                operation: operation.map(&mut name).transpose()?,
                is_error: kind.1,
                template: kind.2,
                lines: counts.lines,
                calls: counts.calls,
                stands_for: counts.stands_for,
                by_part: counts.by_part,
            });
        }
        evidence.traces.sort();
        evidence.pairs.sort_by(|a, b| (&a.one, &a.other).cmp(&(&b.one, &b.other)));
        let key =
            |one: &MessageCount| (one.service.clone(), !one.is_error, one.template.clone(), one.operation.clone());
        evidence.counts.sort_by_cached_key(key);
        Ok(evidence)
    }

    /// Counts of the most frequent kinds of each service and level, the rest as [`MessageCount::OTHERS`].
    #[expect(clippy::type_complexity, reason = "service, level and template, and the operation")]
    fn into_bounded(self) -> BTreeMap<((u32, bool, String), Option<u32>), Counts> {
        let mut kinds: Vec<usize> = (0..self.kinds.len()).collect();
        let key = |at: &usize| (std::cmp::Reverse(self.kinds[*at].lines), &self.kinds[*at].template);
        kinds.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut kept: HashSet<usize> = HashSet::new();
        let mut of_service: HashMap<(u32, bool), usize> = HashMap::new();
        for at in kinds {
            let count = of_service.entry((self.kinds[at].service, self.kinds[at].is_error)).or_default();
            *count += 1;
            if *count <= KINDS_MAX {
                kept.insert(at);
            }
        }
        let mut bounded: BTreeMap<_, Counts> = BTreeMap::new();
        for ((at, operation), counts) in &self.counts {
            let kind = &self.kinds[*at];
            let key = match kept.contains(at) {
                true => ((kind.service, kind.is_error, kind.template.clone()), *operation),
                // Calls of several kinds are not known to differ.
                false => ((kind.service, kind.is_error, MessageCount::OTHERS.to_owned()), None),
            };
            bounded.entry(key).or_default().add(counts);
        }
        bounded
    }
}

/// The place among the calls of a trace of the one that wrote a line.
fn call_of(calls: &[TracedCall], service: u32, time_ns: i64) -> Option<usize> {
    let of_service = || calls.iter().enumerate().filter(|(_, call)| call.service == service);
    let within = of_service().filter(|(_, call)| (call.start_ns..=call.end_ns).contains(&time_ns));
    if let Some((at, _)) = within.max_by_key(|(_, call)| call.start_ns) {
        return Some(at);
    }
    let (_, first) = of_service().next()?;
    let is_one_operation = of_service().all(|(_, call)| call.operation == first.operation);
    let distance = |call: &TracedCall| time_ns.abs_diff(call.start_ns).min(time_ns.abs_diff(call.end_ns));
    is_one_operation.then(|| of_service().min_by_key(|(_, call)| distance(call)).map(|(at, _)| at))?
}

/// Times of the lines of a service within a trace.
#[derive(Debug, Clone, Copy)]
struct Extent {
    first_ns: i64,
    last_ns: i64,
    /// Of the first error.
    error_ns: Option<i64>,
}

impl Extent {
    /// True if all lines of another service lie between the first and the last.
    fn is_around(&self, other: &Self) -> bool {
        self.first_ns < other.first_ns && other.last_ns < self.last_ns
    }
}

/// See [`LoggingPair`].
#[derive(Debug, Clone, Copy, Default)]
struct PairCounts {
    traces: u64,
    around: u64,
    within: u64,
    earlier: u64,
    failed: u64,
    failed_earlier: u64,
}

impl PairCounts {
    fn add(&mut self, one: &Extent, other: &Extent) {
        self.traces += 1;
        self.around += u64::from(one.is_around(other));
        self.within += u64::from(other.is_around(one));
        self.earlier += u64::from(one.first_ns < other.first_ns);
        if let (Some(one_ns), Some(other_ns)) = (one.error_ns, other.error_ns) {
            self.failed += 1;
            self.failed_earlier += u64::from(one_ns < other_ns);
        }
    }

    fn named(self, one: String, other: String) -> LoggingPair {
        let Self { traces, around, within, earlier, failed, failed_earlier } = self;
        LoggingPair { one, other, traces, around, within, earlier, failed, failed_earlier }
    }
}

/// The counts of a pair; `None` if it is new and there are too many.
fn pair_of(pairs: &mut BTreeMap<(u32, u32), PairCounts>, key: (u32, u32)) -> Option<&mut PairCounts> {
    (pairs.len() < PAIRS_MAX || pairs.contains_key(&key)).then(|| pairs.entry(key).or_default())
}

/// Counts the order of each two services of a trace.
fn count_pairs(pairs: &mut BTreeMap<(u32, u32), PairCounts>, extents: &BTreeMap<u32, Extent>) {
    for (at, (one, extent)) in extents.iter().enumerate().take(SERVICES_OF_TRACE_MAX) {
        for (other, other_extent) in extents.iter().take(SERVICES_OF_TRACE_MAX).skip(at + 1) {
            if let Some(pair) = pair_of(pairs, (*one, *other)) {
                pair.add(extent, other_extent);
            }
        }
    }
}
