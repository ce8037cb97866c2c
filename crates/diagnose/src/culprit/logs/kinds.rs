//! Which kinds of messages differ between two sides.
//!
//! A kind is counted for the calls of the operation that wrote it, where spans say which; else for traces, for the calls of
//! the service, for requests of the load or for time, the first that both sides have. Operations that are called on one side only say nothing.
//!
//! As with failures, the square root of twice the logarithm of the likelihood ratio says how certain a difference is.
//! Messages come in bursts: the logarithm is divided by the variance over the mean of the counts in equal parts of the
//! time (P. McCullagh, J. Nelder, *Generalized Linear Models*, section 4.5), but for kinds that most calls of an operation
//! write.
//!
//! A service that is called less often writes less without being changed: a message is gone only if its calls
//! go on, or the service's other messages.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::diff::{Fate, LogDiff};
use narrows_model::evidence::TrialEvidence;
use narrows_model::messages::MessageCount;

use crate::thresholds::Thresholds;

/// Lines from which a kind of message appeared.
const NEW_MIN: u64 = 5;
/// Standard errors from which a kind differs, and from which one is new that this share of all calls write.
const ERRORS_MIN: f64 = 4.0;
const ERRORS_MIN_COMMON: f64 = 3.0;
const COMMON_SHARE: f64 = 0.5;
/// Times as many from which messages other than errors became more frequent.
const GROWTH_MIN_OTHER: f64 = 3.0;
/// Share of calls that write a kind which "every" call writes.
const EVERY_SHARE: f64 = 0.8;
/// Rate of a message that is gone ÷ its rate before, at most; of one that many calls no longer write.
const GONE_RATIO: f64 = 0.05;
const LESS_RATIO: f64 = 0.5;

/// A kind of message that differs.
#[derive(Debug, Clone)]
pub(super) struct JudgedKind {
    pub(super) diff: LogDiff,
    /// Certainty, in standard errors.
    pub(super) errors: f64,
}

impl JudgedKind {
    /// True if there are fewer than before.
    pub(super) fn is_loss(&self) -> bool {
        self.diff.growth.is_some_and(|growth| growth < 1.0)
    }
}

/// Service, whether it is an error, and template.
type Key<'a> = (&'a str, bool, &'a str);

/// The messages of one side.
#[derive(Debug, Default)]
pub(super) struct Side<'a> {
    /// Counts of each kind by operation.
    kinds: BTreeMap<Key<'a>, BTreeMap<Option<&'a str>, Counts>>,
    /// Calls by service and operation.
    operations: BTreeMap<(&'a str, &'a str), f64>,
    calls: BTreeMap<&'a str, f64>,
    /// Traces in which the service logs that does so in most.
    traces: f64,
    /// Lines of the most frequent kind of a service.
    most: BTreeMap<&'a str, f64>,
    /// Lines of the least frequent kind of a service and level that is counted separately; absent if every kind is.
    least: BTreeMap<(&'a str, bool), f64>,
    requests: f64,
    seconds: f64,
    is_whole: bool,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    lines: u64,
    calls: f64,
    stands_for: f64,
    by_part: Vec<u32>,
}

impl<'a> Side<'a> {
    pub(super) fn of(trials: &[&'a TrialEvidence]) -> Self {
        let mut side = Self { is_whole: true, ..Self::default() };
        for trial in trials {
            side.add(trial);
        }
        let mut least: BTreeMap<(&str, bool), f64> = BTreeMap::new();
        for ((service, is_error, template), counts) in &side.kinds {
            let lines = counts.values().map(|counts| counts.lines as f64).sum::<f64>();
            if *template == MessageCount::OTHERS {
                continue;
            }
            let most = side.most.entry(service).or_default();
            *most = most.max(lines);
            let of_level = least.entry((service, *is_error)).or_insert(lines);
            *of_level = of_level.min(lines);
        }
        least.retain(|(service, is_error), _| side.kinds.contains_key(&(*service, *is_error, MessageCount::OTHERS)));
        side.least = least;
        side
    }

    fn add(&mut self, trial: &'a TrialEvidence) {
        for MessageCount { service, operation, template, is_error, lines, calls, stands_for, by_part } in
            &trial.messages.counts
        {
            let of_kind = self.kinds.entry((service, *is_error, template)).or_default();
            let counts = of_kind.entry(operation.as_deref()).or_default();
            counts.lines = counts.lines.saturating_add(*lines);
            counts.calls += *calls as f64;
            counts.stands_for += stands_for;
            counts.by_part.extend(by_part);
        }
        for operation in &trial.operations {
            let calls = operation.completed + operation.failed;
            *self.operations.entry((&operation.service, &operation.name)).or_default() += calls;
            *self.calls.entry(&operation.service).or_default() += calls;
        }
        self.traces += trial.messages.traces.iter().map(|(_, traces)| *traces).max().unwrap_or(0) as f64;
        let seconds = trial.counted_windows().map(|window| window.end_ns.saturating_sub(window.start_ns) as f64 / 1e9);
        self.seconds += seconds.sum::<f64>();
        self.requests += trial.counted_load().sent as f64;
        self.is_whole &= trial.messages.lines_refused == 0;
    }

    /// Counts of a kind for calls of an operation, or for none.
    fn counts(&self, key: Key<'a>, operation: Option<&str>) -> Counts {
        self.kinds.get(&key).and_then(|counts| counts.get(&operation)).cloned().unwrap_or_default()
    }

    /// Lines of a kind, whoever wrote them.
    fn lines(&self, key: Key<'a>) -> u64 {
        let counts = self.kinds.get(&key).into_iter().flat_map(BTreeMap::values);
        counts.fold(0, |lines: u64, counts| lines.saturating_add(counts.lines))
    }
}

/// Denominator of a count.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Basis<'a> {
    Operation(&'a str),
    Traces,
    Calls,
    Requests,
    Seconds,
}

impl Basis<'_> {
    /// True for calls of the service, each of which is counted at most once.
    fn is_of_calls(self) -> bool {
        matches!(self, Self::Operation(_) | Self::Calls)
    }

    fn of(self, side: &Side<'_>, service: &str) -> f64 {
        let of_service = |counts: &BTreeMap<&str, f64>| counts.get(service).copied().unwrap_or(0.0);
        match self {
            Self::Operation(name) => side.operations.get(&(service, name)).copied().unwrap_or(0.0),
            Self::Traces => side.traces,
            Self::Calls => of_service(&side.calls),
            Self::Requests => side.requests,
            Self::Seconds => side.seconds,
        }
    }
}

/// The kinds of messages that differ, by service, the most certain first.
pub(super) fn differing(old: &Side<'_>, new: &Side<'_>, thresholds: &Thresholds) -> BTreeMap<String, Vec<JudgedKind>> {
    let mut found: BTreeMap<String, Vec<JudgedKind>> = BTreeMap::new();
    // A side without logs says nothing, unless all that is logged are errors.
    if new.kinds.is_empty() || old.kinds.is_empty() && new.kinds.keys().any(|(_, is_error, _)| !is_error) {
        return found;
    }
    let keys: BTreeSet<Key<'_>> = old.kinds.keys().chain(new.kinds.keys()).copied().collect();
    for key in keys.into_iter().filter(|(.., template)| *template != MessageCount::OTHERS) {
        let judged = bases(key, old, new).into_iter().filter_map(|basis| judged(key, basis, [old, new], thresholds));
        if let Some(kind) = judged.max_by(|a, b| a.errors.total_cmp(&b.errors)) {
            found.entry(key.0.to_owned()).or_default().push(kind);
        }
    }
    for kinds in found.values_mut() {
        kinds.sort_by(|a, b| b.errors.total_cmp(&a.errors).then_with(|| a.diff.template.cmp(&b.diff.template)));
    }
    found
}

/// Denominators of a kind: each operation that wrote it, or one for all lines.
fn bases<'a>(key: Key<'a>, old: &Side<'a>, new: &Side<'a>) -> Vec<Basis<'a>> {
    let counts = || [old, new].into_iter().filter_map(|side| side.kinds.get(&key)).flatten();
    let operations: BTreeSet<&str> = counts().filter_map(|(operation, _)| *operation).collect();
    let is_counted = |basis: &Basis<'a>| basis.of(old, key.0) > 0.0 && basis.of(new, key.0) > 0.0;
    if !operations.is_empty() {
        return operations.into_iter().map(Basis::Operation).filter(is_counted).collect();
    }
    let names_traces = counts().any(|(_, counts)| counts.calls > 0.0);
    let all = [Basis::Traces, Basis::Calls, Basis::Requests, Basis::Seconds];
    let fitting = all.into_iter().filter(|basis| names_traces || *basis != Basis::Traces);
    fitting.filter(is_counted).take(1).collect()
}

/// A kind on one side: how many of how many, and in each part of the time.
#[derive(Debug, Clone)]
struct Rate {
    count: f64,
    of: f64,
    /// Counted in the file ÷ the number that they stand for.
    kept: f64,
    by_part: Vec<u32>,
}

impl Rate {
    fn new(key: Key<'_>, basis: Basis<'_>, side: &Side<'_>) -> Self {
        let operation = if let Basis::Operation(name) = basis { Some(name) } else { None };
        let counts = side.counts(key, operation);
        let of = basis.of(side, key.0);
        let count = match basis {
            Basis::Operation(_) | Basis::Traces => counts.stands_for,
            _ => counts.lines as f64,
        };
        // Lines of kinds that were too many to count separately may be of this kind.
        let unknown = side.least.get(&(key.0, key.1)).copied().filter(|_| counts.lines == 0);
        let count = unknown.unwrap_or(count);
        let count = if basis.is_of_calls() { count.min(of) } else { count };
        let kept = if counts.stands_for > 0.0 { (counts.calls / counts.stands_for).min(1.0) } else { 1.0 };
        Self { count, of, kept, by_part: counts.by_part }
    }

    fn share(&self) -> f64 {
        self.count / self.of
    }

    /// Variance of the counts of equal parts of the time ÷ their mean; 1 if they are as independent as calls.
    fn dispersion(&self) -> f64 {
        let count = self.by_part.len() as f64;
        let mean = self.by_part.iter().map(|part| f64::from(*part)).sum::<f64>() / count;
        let squares = self.by_part.iter().map(|part| (f64::from(*part) - mean).powi(2)).sum::<f64>();
        let dispersion = squares / (count - 1.0) / mean;
        if dispersion.is_finite() { dispersion.max(1.0) } else { 1.0 }
    }
}

fn judged(key: Key<'_>, basis: Basis<'_>, sides: [&Side<'_>; 2], thresholds: &Thresholds) -> Option<JudgedKind> {
    let [old, new] = sides;
    let (before, after) = (Rate::new(key, basis, old), Rate::new(key, basis, new));
    let errors = certainty(&before, &after, basis)?;
    let lines = (old.lines(key), new.lines(key));
    let fate = fate(key, basis, sides, [&before, &after], errors, thresholds)?;
    let (_, is_error, template) = key;
    let diff = LogDiff {
        template: template.to_owned(),
        is_error,
        fate,
        before: lines.0,
        after: lines.1,
        growth: (before.count > 0.0).then(|| after.share() / before.share()),
        calls: basis.is_of_calls().then(|| (before.share(), after.share())),
        operation: if let Basis::Operation(name) = basis { Some(name.to_owned()) } else { None },
    };
    Some(JudgedKind { diff, errors: errors.abs() })
}

/// Whether a kind appeared, vanished or changed; `None` if it is not shown to differ. Sides and rates: before, after.
fn fate(
    key: Key<'_>,
    basis: Basis<'_>,
    sides: [&Side<'_>; 2],
    rates: [&Rate; 2],
    errors: f64,
    thresholds: &Thresholds,
) -> Option<Fate> {
    let (service, is_error, _) = key;
    let [before, after] = rates;
    let is_of_operation = matches!(basis, Basis::Operation(_));
    // Lines with lines: a service that is called several times in a trace writes more of them than there are traces.
    let of_most =
        |at: usize| sides[at].lines(key) as f64 / sides[at].most.get(service).copied().unwrap_or(0.0).max(1.0);
    let share = |at: usize| if basis.is_of_calls() { rates[at].share() } else { of_most(at) };
    let growth = after.share() / before.share();
    let errors_min = if is_of_operation && share(1) >= COMMON_SHARE { ERRORS_MIN_COMMON } else { ERRORS_MIN };
    let is_new = before.count == 0.0 && sides[1].lines(key) >= NEW_MIN && errors >= errors_min;
    let is_notable = share(1) >= thresholds.culprit_message_share && sides[0].most.contains_key(service);
    let is_certain = errors.abs() >= ERRORS_MIN;
    let is_more = is_certain && errors > 0.0;
    let was_everywhere = if is_of_operation {
        share(0) >= EVERY_SHARE
    } else {
        !is_error && of_most(0) >= thresholds.culprit_message_share
    };
    let is_less =
        is_certain && errors < 0.0 && was_everywhere && sides[1].is_whole && goes_on(key, basis, sides, thresholds);
    match () {
        () if is_new => (is_error || is_notable).then_some(Fate::Appeared),
        () if before.count == 0.0 => None,
        () if is_more && is_error && growth >= thresholds.culprit_message_growth => Some(Fate::Changed),
        () if is_more && is_notable && is_of_operation && growth >= GROWTH_MIN_OTHER => Some(Fate::Changed),
        () if is_less && growth <= GONE_RATIO => Some(Fate::Vanished),
        () if is_less && is_of_operation && growth <= LESS_RATIO => Some(Fate::Changed),
        () => None,
    }
}

/// True if the service writes other messages as before, where the calls of its operations are unknown.
fn goes_on(key: Key<'_>, basis: Basis<'_>, sides: [&Side<'_>; 2], thresholds: &Thresholds) -> bool {
    if matches!(basis, Basis::Operation(_)) {
        return true;
    }
    let [old, new] = sides;
    let most = old.most.get(key.0).copied().unwrap_or(0.0);
    let others = old.kinds.keys().filter(|other| other.0 == key.0 && **other != key);
    let mut frequent = others.filter(|other| old.lines(**other) as f64 >= thresholds.culprit_message_share * most);
    frequent.any(|other| {
        let (before, after) = (Rate::new(*other, basis, old), Rate::new(*other, basis, new));
        after.share() >= LESS_RATIO * before.share()
    })
}

/// Change of the rate, in standard errors, signed; `None` if nothing could be counted.
fn certainty(before: &Rate, after: &Rate, basis: Basis<'_>) -> Option<f64> {
    let is_countable = before.of > 0.0 && after.of > 0.0 && before.count + after.count > 0.0;
    let both = is_countable.then(|| (before.count + after.count) / (before.of + after.of))?;
    let ratio = |count: f64, expected: f64| if count > 0.0 { count * (count / expected).ln() } else { 0.0 };
    let surplus = |rate: &Rate| {
        let of_others = if basis.is_of_calls() { ratio(rate.of - rate.count, rate.of * (1.0 - both)) } else { 0.0 };
        ratio(rate.count, rate.of * both) + of_others
    };
    let is_common = matches!(basis, Basis::Operation(_)) && before.share().max(after.share()) >= COMMON_SHARE;
    let dispersion = if is_common { 1.0 } else { before.dispersion().max(after.dispersion()) };
    let kept = before.kept.min(after.kept);
    let root = (2.0 * (surplus(before) + surplus(after)) * kept / dispersion).max(0.0).sqrt();
    root.is_finite().then(|| root.copysign(after.share() - before.share()))
}

#[cfg(test)]
mod tests {
    use narrows_model::messages::PARTS;
    use narrows_model::operation::OperationEvidence;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    /// A trial with this many requests each second for ten seconds, and as many calls of `POST /pay`.
    fn trial(rate: f64, messages: Vec<MessageCount>) -> TrialEvidence {
        let mut trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate, latency_ms: 5.0 }).build();
        let (service, name) = ("pay".to_owned(), "POST /pay".to_owned());
        let completed = 10.0 * rate;
        trial.operations.push(OperationEvidence { service, name, completed, ..OperationEvidence::default() });
        trial.messages.counts = messages;
        trial
    }

    /// Lines of a service of which no calls are known, spread evenly.
    fn lines(template: &str, lines: u64) -> MessageCount {
        let at = |part: usize| ((part as u64 + 1) * lines / PARTS as u64 - part as u64 * lines / PARTS as u64) as u32;
        MessageCount {
            service: "stock".into(),
            operation: None,
            template: template.into(),
            is_error: true,
            lines,
            calls: 0,
            stands_for: 0.0,
            by_part: std::array::from_fn(at),
        }
    }

    /// Calls of `POST /pay` that write a line which is no error.
    fn calls(template: &str, calls: u64) -> MessageCount {
        let (service, operation) = ("pay".to_owned(), Some("POST /pay".to_owned()));
        let stands_for = calls as f64;
        MessageCount { service, operation, is_error: false, calls, stands_for, ..lines(template, calls) }
    }

    fn error(count: MessageCount) -> MessageCount {
        MessageCount { is_error: true, ..count }
    }

    /// Kinds of messages that differ and their fates.
    fn found(before: &TrialEvidence, after: &TrialEvidence) -> Vec<(String, Fate)> {
        let found =
            differing(&Side::of(&[before]), &Side::of(&[after]), &Thresholds::default()).into_values().flatten();
        let mut found: Vec<_> = found.map(|kind| (kind.diff.template, kind.diff.fate)).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    #[test]
    fn new_and_growing_errors_are_found_and_few_more_are_not() {
        let before = trial(50.0, vec![lines("declined", 10), lines("slow *", 3), lines("no stock", 40)]);
        let after = [("declined", 60), ("slow *", 9), ("full", 14), ("now and then", 5), ("no stock", 55)];
        let after = trial(50.0, after.map(|(template, count)| lines(template, count)).to_vec());
        assert_eq!(
            found(&before, &after),
            [("declined".to_owned(), Fate::Changed), ("full".to_owned(), Fate::Appeared)]
        );
        assert_eq!(found(&after, &before), []);
    }

    #[test]
    fn counts_are_of_as_many_requests() {
        let (few, many) = (trial(50.0, vec![lines("declined", 20)]), trial(500.0, vec![lines("declined", 200)]));
        assert_eq!(found(&few, &many), [], "ten times the requests, ten times the errors");
        let more = trial(50.0, vec![lines("declined", 200)]);
        assert_eq!(found(&few, &more), [("declined".to_owned(), Fate::Changed)]);
    }

    #[test]
    fn a_burst_is_no_change() {
        let mut burst = lines("no connection", 60);
        burst.by_part = std::array::from_fn(|part| if part == 3 { 60 } else { 0 });
        assert_eq!(found(&trial(50.0, vec![lines("slow", 5)]), &trial(50.0, vec![lines("slow", 5), burst])), []);
    }

    #[test]
    fn an_error_of_most_calls_is_certain_where_there_are_few() {
        let (before, after) =
            (trial(0.6, vec![calls("paid", 6)]), trial(0.6, vec![error(calls("declined", 5)), calls("paid", 1)]));
        assert_eq!(found(&before, &after), [("declined".to_owned(), Fate::Appeared)]);
        assert_eq!(found(&before, &trial(0.6, vec![error(calls("declined", 2)), calls("paid", 4)])), []);
    }

    #[test]
    fn a_line_of_every_call_that_is_gone_or_new_is_found_and_one_of_some_calls_is_not() {
        let before = trial(50.0, vec![calls("begin", 500), calls("paid *", 500), calls("now and then", 30)]);
        let after = trial(50.0, vec![calls("begin", 500), calls("skipped", 495)]);
        let expected = [("paid *".to_owned(), Fate::Vanished), ("skipped".to_owned(), Fate::Appeared)];
        assert_eq!(found(&before, &after), expected);
        let mut cut = after.clone();
        cut.messages.lines_refused = 1;
        assert_eq!(found(&before, &cut), expected[1..], "the missing lines may be those that were refused");
        let silent = trial(50.0, Vec::new());
        assert_eq!((found(&before, &silent), found(&silent, &after)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn without_calls_a_message_is_gone_if_others_of_its_service_are_not() {
        let info = |template: &str, count: u64| MessageCount { is_error: false, ..lines(template, count) };
        let before = trial(50.0, vec![info("begin", 500), info("reserved", 500), lines("e", 1)]);
        let after = |begins: u64| trial(50.0, vec![info("begin", begins), lines("e", 1)]);
        assert_eq!(found(&before, &after(480)), [("reserved".to_owned(), Fate::Vanished)]);
        assert_eq!(found(&before, &after(20)), [], "it is called less often");
    }

    #[test]
    fn a_kind_among_too_many_is_not_new() {
        let mut many: Vec<MessageCount> = (0..3).map(|kind| lines(&format!("kind {kind}"), 20)).collect();
        many.push(lines(MessageCount::OTHERS, 400));
        let after = trial(50.0, vec![lines("declined", 20)]);
        assert_eq!(found(&trial(50.0, many), &after), []);
    }
}
