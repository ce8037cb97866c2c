//! Objectives of a load: `p95 < 300ms`, `error_rate == 0`, `shop/login: rate >= 100/s`.
//!
//! An objective is judged on the load of all counted windows of a trial together, or on that of one scenario or request. Latency is from the intended send,
//! successes only. Where nothing was measured, the result is "unknown", never "kept".

use narrows_model::comparison::{Kept, ObjectiveResult, Subject};
use narrows_model::evidence::LoadTotals;
use narrows_model::load::{LatencyFigures, LoadSecond, ReportedLoad};
use narrows_model::units;
use serde_json::json;

use super::document::at::At;
use super::error::{Problem, Report, shortened};
use super::grammar::key::{Key, Value, literal, optional};
use super::grammar::kind::{self, AS_TEXT, Simple, finite, no_hint};
use super::grammar::shape::{Field, Map, Shape};
use super::grammar::values::MANY;
use super::load::command::COMMAND;
use super::load::flow;
use super::load::{LOAD, SCENARIOS};
use super::quantity;

/// `metric < bound`, perhaps with `scenario/request:` before it.
static OBJECTIVE_TEXT: Simple<Objective> = Simple {
    expected: "an objective such as `p95 < 300ms`",
    name: "objective",
    written: AS_TEXT,
    read: |text| parse(text).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": pattern() }),
};

/// `metric < bound`.
static LIMIT_TEXT: Simple<Objective> = Simple {
    expected: "an objective such as `p95 < 300ms`",
    name: "metric, operator and bound",
    written: AS_TEXT,
    read: |text| limit(text).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": limit_pattern() }),
};

const WITH_SCOPE: Value<Objective> = literal(&OBJECTIVE_TEXT);

const LIMIT: Key<Objective> =
    Key::required("objective", literal(&LIMIT_TEXT), "A metric, an operator and a bound, such as `p95 < 300ms`.");

const SCENARIO: Key<String> =
    Key::optional("scenario", literal(&kind::NAME), "The scenario whose requests it is about. Without it, all.");

const REQUEST: Key<String> = Key::beside(
    "request",
    literal(&kind::REQUEST_NAME),
    &[SCENARIO.name()],
    "The request of that scenario it is about, as results call it: `STEP`, or `FLOW/STEP` in a mix. Without it, all.",
);

const ABORT: Key<bool> = Key::default(
    "abort",
    literal(&kind::BOOLEAN),
    "false",
    "Whether a trial ends early once this can no longer be met.",
);

/// An objective, as a text or as a map.
static OBJECTIVE: Shape = Shape::Either(&[
    WITH_SCOPE.shape(),
    Shape::Map(Map::new(&[LIMIT.field, SCENARIO.field, REQUEST.field, ABORT.field])),
]);

pub(super) const OBJECTIVES: Field = optional(
    "objectives",
    Shape::List { item: &OBJECTIVE, least: 0, most: MANY },
    "The objectives of the system under this load, such as `p95 < 300ms`, `error_rate == 0`, `rate >= 100/s`.",
);

/// A bound on something that is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// As the experiment file has it, with what it is about before it: `shop/login: p95 < 300ms`.
    pub text: String,
    /// The scenario it is about; `None` for all together.
    pub scenario: Option<String>,
    /// The request of that scenario it is about, as results call it; `None` for all together.
    pub request: Option<String>,
    /// Measured quantity.
    pub metric: Metric,
    /// How it is compared.
    pub op: Op,
    /// With what: nanoseconds for latencies, a share of 1 for shares, requests per second for the rate.
    pub bound: f64,
    /// Whether a trial ends early with it.
    pub abort: Abort,
}

/// Whether a trial ends early once an objective can no longer be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort {
    /// It goes on to its end.
    Never,
    /// It ends, see [`crate::outlook`].
    WhenLost,
}

/// Subject of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// 90 % latency.
    P90,
    /// 95 % latency.
    P95,
    /// 99 % latency.
    P99,
    /// 99.9 % latency.
    P999,
    /// Largest latency.
    Max,
    /// Failed ÷ ended requests.
    ErrorRate,
    /// Iterations of open models that were given up before they began ÷ those that were due.
    DroppedRate,
    /// Successful responses per second.
    Rate,
}

/// How a measured value is compared with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
}

const METRICS: [(&str, Metric); 10] = [
    ("mean", Metric::Mean),
    ("p50", Metric::P50),
    ("p90", Metric::P90),
    ("p95", Metric::P95),
    ("p99", Metric::P99),
    ("p99.9", Metric::P999),
    ("max", Metric::Max),
    ("error_rate", Metric::ErrorRate),
    ("dropped_rate", Metric::DroppedRate),
    ("rate", Metric::Rate),
];

/// Two-character operators first: each begins with another.
const OPS: [(&str, Op); 5] =
    [("<=", Op::LessOrEqual), (">=", Op::GreaterOrEqual), ("==", Op::Equal), ("<", Op::Less), (">", Op::Greater)];

/// Regular expression of the texts that [`limit`] accepts.
pub(super) fn limit_pattern() -> String {
    format!("^{}$", bare_pattern())
}

/// Regular expression of the texts that [`parse`] accepts.
pub(super) fn pattern() -> String {
    let name = "[A-Za-z0-9_][A-Za-z0-9_-]*";
    format!("^( *{name}(/{name}){{0,2}} *:)?{}$", bare_pattern())
}

fn bare_pattern() -> String {
    let time = quantity::DURATION_PATTERN.trim_start_matches('^').trim_end_matches('$');
    let number = r"[0-9]+(\.[0-9]+)?";
    let op = "(<=|>=|==|<|>)";
    format!(
        r" *((mean|p50|p90|p95|p99|p99\.9|max) *{op} *{time}|(error|dropped)_rate *{op} *{number} *%?|rate *{op} *{number}(/s)?) *"
    )
}

/// Reads an objective without its scope.
pub(super) fn limit(text: &str) -> Result<Objective, Problem> {
    let expected = || {
        let ops = "`<`, `<=`, `>`, `>=` or `==`";
        Problem::new(format!("expected an objective such as `p95 < 300ms`, found \"{}\"", shortened(text)))
            .hint(format!("a metric, {ops}, and a bound"))
    };
    let at = text.find(['<', '>', '=']).ok_or_else(expected)?;
    let (name, rest) = (text[..at].trim(), &text[at..]);
    let (sign, op) = OPS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(expected)?;
    let (_, metric) = METRICS.into_iter().find(|(known, _)| *known == name).ok_or_else(|| unknown_metric(name))?;
    let bound = metric.bound(rest[sign.len()..].trim())?;
    let text = text.trim().to_owned();
    Ok(Objective { text, scenario: None, request: None, metric, op, bound, abort: Abort::Never })
}

/// Reads an objective, perhaps with its scope before it: `shop: p95 < 1s`, `shop/login: p95 < 1s`.
pub(super) fn parse(text: &str) -> Result<Objective, Problem> {
    let Some((scope, rest)) = text.split_once(':') else { return limit(text) };
    let scope = scope.trim();
    let (scenario, request) = match scope.split_once('/') {
        Some((scenario, request)) => (scenario, Some(request)),
        None => (scope, None),
    };
    if !kind::is_name(scenario) || !request.is_none_or(kind::is_request_name) {
        let problem =
            format!("expected `scenario` or `scenario/request` before the colon, found \"{}\"", shortened(scope));
        return Err(Problem::new(problem));
    }
    Ok(limit(rest)?.about(Some(scenario), request))
}

/// Reads an objective of the file, a text or a map; `None` if it is neither.
pub(super) fn read(at: At<'_>) -> Option<Objective> {
    if at.text().is_some() {
        return at.value(WITH_SCOPE);
    }
    let abort = if at.read(&ABORT) == Some(true) { Abort::WhenLost } else { Abort::Never };
    let (scenario, request) = (at.read(&SCENARIO), at.read(&REQUEST));
    Some(Objective { abort, ..at.read(&LIMIT)?.about(scenario.as_deref(), request.as_deref()) })
}

/// Judges what objectives say about the rest of the file.
pub(super) fn check(root: At<'_>, report: &mut Report) {
    let Some(list) = root.get(&OBJECTIVES) else { return };
    for at in list.items() {
        if let Some(objective) = read(at) {
            check_scope(at, &objective, root, report);
            check_abort(at, &objective, report);
        }
    }
}

fn check_scope(at: At<'_>, objective: &Objective, root: At<'_>, report: &mut Report) {
    let Some(load) = root.get(&LOAD) else { return };
    // Another program has names of its own.
    let Some(scenarios) = load.get(&SCENARIOS).filter(|_| !load.has(&COMMAND)) else { return };
    let mut add = |key: &Field, problem| match at.get(key) {
        Some(value) => report.add(value.place(), value.path(), problem),
        None => report.add(at.place(), at.path(), problem),
    };
    let Some(name) = &objective.scenario else { return };
    let Some(scenario) = scenarios.named(name) else {
        return add(&SCENARIO, Problem::unknown("scenario", name, scenarios.entries().map(|(name, _)| name)));
    };
    let Some(request) = &objective.request else { return };
    if objective.metric == Metric::DroppedRate {
        let problem = Problem::new("`dropped_rate` is about a scenario, not about one of its requests");
        return add(&REQUEST, problem.hint("an iteration is dropped before its first request"));
    }
    let Some(known) = flow::request_names(scenario) else { return };
    if !known.contains(request) {
        let named = known.iter().map(String::as_str).filter(|name| !name.is_empty());
        let problem = Problem::unknown(&format!("request of `{name}`:"), request, named);
        let is_single = known.len() == 1;
        add(
            &REQUEST,
            if is_single { problem.hint("it has only one request; name only the scenario") } else { problem },
        );
    }
}

fn check_abort(at: At<'_>, objective: &Objective, report: &mut Report) {
    if objective.abort == Abort::WhenLost && !objective.is_upper_limit() {
        let Some(abort) = at.get(&ABORT) else { return };
        let problem = Problem::new(format!("`{}` cannot end a trial early", objective.text));
        report.add(abort.place(), abort.path(), problem.hint("upper limits of latencies and shares can"));
    }
}

fn unknown_metric(name: &str) -> Problem {
    Problem::unknown("metric", name, METRICS.iter().map(|(name, _)| *name))
}

impl Metric {
    fn subject(self) -> Subject {
        match self {
            Metric::ErrorRate => Subject::Errors,
            Metric::DroppedRate | Metric::Rate => Subject::Throughput,
            _ => Subject::Latency,
        }
    }

    fn bound(self, text: &str) -> Result<f64, Problem> {
        let (found, expected) = match self {
            Metric::ErrorRate | Metric::DroppedRate => (share(text), "a share such as `0.01` or `1%`"),
            Metric::Rate => {
                (plain_number(text.strip_suffix("/s").unwrap_or(text)), "requests per second such as `100/s`")
            }
            _ => (quantity::duration(text).map(|d| d.as_nanos() as f64), "a length of time such as `300ms`"),
        };
        found.ok_or_else(|| {
            let problem = Problem::new(format!("expected {expected} as the bound, found \"{}\"", shortened(text)));
            let is_time = !matches!(self, Metric::ErrorRate | Metric::DroppedRate | Metric::Rate);
            Problem { hint: quantity::advice(text).filter(|_| is_time), ..problem }
        })
    }

    /// Its value in a load; `None` if nothing was measured.
    pub(crate) fn measured(self, load: &LoadTotals) -> Option<f64> {
        match self {
            Metric::ErrorRate => (load.ended() > 0).then(|| load.error_rate()),
            Metric::DroppedRate => (load.due > 0).then(|| load.dropped as f64 / load.due as f64),
            Metric::Rate => load.known_rate(),
            _ => self.of_latency(&(&load.latency).into()),
        }
    }

    /// Its value in a load as another program reports it; `None` if that program does not report it.
    fn reported(self, load: &ReportedLoad) -> Option<f64> {
        match self {
            Metric::ErrorRate => load.error_rate(),
            Metric::DroppedRate => (load.due > 0).then(|| load.dropped as f64 / load.due as f64),
            Metric::Rate => load.known_rate(),
            _ => self.of_latency(&load.latency),
        }
    }

    /// Its value among latency figures; `None` if it is not about latency.
    fn of_latency(self, latency: &LatencyFigures) -> Option<f64> {
        match self {
            Metric::ErrorRate | Metric::DroppedRate | Metric::Rate => None,
            Metric::Mean => latency.mean_ns,
            Metric::P50 => latency.p50_ns,
            Metric::P90 => latency.p90_ns,
            Metric::P95 => latency.p95_ns,
            Metric::P99 => latency.p99_ns,
            Metric::P999 => latency.p999_ns,
            Metric::Max => latency.max_ns,
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            // A few failures in a million are not "0.0 %".
            Metric::ErrorRate | Metric::DroppedRate if value > 0.0 && value < 0.001 => {
                format!("{:.1} per million", value * 1e6)
            }
            Metric::ErrorRate | Metric::DroppedRate => units::percent(value),
            Metric::Rate => units::rate(value),
            _ => units::duration(value),
        }
    }
}

fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => plain_number(percent.trim())? / 100.0,
        None => plain_number(text)?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

fn plain_number(text: &str) -> Option<f64> {
    let is_plain =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_plain && !text.ends_with('.') { finite(text) } else { None }
}

impl Objective {
    fn about(self, scenario: Option<&str>, request: Option<&str>) -> Self {
        let text = match (scenario, request) {
            (Some(scenario), Some(request)) => format!("{scenario}/{request}: {}", self.text),
            (Some(scenario), None) => format!("{scenario}: {}", self.text),
            (None, _) => self.text,
        };
        Self { text, scenario: scenario.map(str::to_owned), request: request.map(str::to_owned), ..self }
    }

    /// Whether a second of a request belongs to what it is about.
    pub fn covers(&self, second: &LoadSecond) -> bool {
        self.scenario.as_ref().is_none_or(|scenario| *scenario == second.scenario)
            && self.request.as_ref().is_none_or(|request| *request == second.request)
    }

    /// Whether it bounds latencies or shares from above.
    fn is_upper_limit(&self) -> bool {
        self.metric != Metric::Rate && matches!(self.op, Op::Less | Op::LessOrEqual | Op::Equal)
    }

    /// Judges a load: what it [covers](Self::covers) of the counted windows of a trial.
    pub fn evaluate(&self, load: &LoadTotals) -> ObjectiveResult {
        self.judge(self.metric.measured(load), "nothing measured")
    }

    /// Judges a load by the report of the program that sent it, which has no figures of single scenarios or requests.
    pub(crate) fn evaluate_reported(&self, load: &ReportedLoad) -> ObjectiveResult {
        let value = if self.scenario.is_none() { self.metric.reported(load) } else { None };
        self.judge(value, "not reported by the load's program")
    }

    fn judge(&self, value: Option<f64>, otherwise: &str) -> ObjectiveResult {
        let (measured, kept) = match value {
            None => (otherwise.to_owned(), Kept::Unknown),
            Some(value) => {
                (self.metric.shown(value), if self.op.holds(value, self.bound) { Kept::Yes } else { Kept::No })
            }
        };
        ObjectiveResult { text: self.text.clone(), subject: self.metric.subject(), measured, kept }
    }
}

impl Op {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Op::Less => value < bound,
            Op::LessOrEqual => value <= bound,
            Op::Greater => value > bound,
            Op::GreaterOrEqual => value >= bound,
            Op::Equal => value == bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::load::ErrorCounts;

    fn load() -> LoadTotals {
        let mut load = LoadTotals { seconds: 10.0, succeeded: 999, ..LoadTotals::default() };
        load.errors = ErrorCounts { status: 1, ..ErrorCounts::default() };
        load.latency.record_n(10_000_000, 950);
        load.latency.record_n(400_000_000, 49);
        load
    }

    #[test]
    fn objectives_are_judged() {
        let cases = [
            ("p50 < 20ms", Kept::Yes, "10.0 ms"),
            ("p95<300ms", Kept::Yes, "10.0 ms"),
            ("p99 <= 0.3s", Kept::No, "400 ms"),
            ("max < 1m", Kept::Yes, "400 ms"),
            ("mean > 1ms", Kept::Yes, "29.1 ms"),
            ("error_rate == 0", Kept::No, "0.1 %"),
            ("error_rate <= 0.1%", Kept::Yes, "0.1 %"),
            ("error_rate < 0.5", Kept::Yes, "0.1 %"),
            ("rate >= 100/s", Kept::No, "99.9/s"),
            ("rate >= 99.5", Kept::Yes, "99.9/s"),
        ];
        for (text, kept, measured) in cases {
            let result = parse(text).unwrap().evaluate(&load());
            assert_eq!((result.kept, result.measured.as_str(), result.text.as_str()), (kept, measured, text));
        }
    }

    #[test]
    fn a_scope_stands_before_the_colon() {
        let scope = |text: &str| parse(text).map(|found| (found.text, found.scenario, found.request));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(scope("shop: p95 < 1s"), Ok(("shop: p95 < 1s".into(), some("shop"), None)));
        assert_eq!(scope(" shop/login :p95<1s"), Ok(("shop/login: p95<1s".into(), some("shop"), some("login"))));
        assert_eq!(scope("a/b/c: rate > 1").unwrap().2, some("b/c"));
        for text in [": p95 < 1s", "a b: p95 < 1s", "a/: p95 < 1s", "a/b/c/d: p95 < 1s"] {
            let message = scope(text).unwrap_err().message;
            assert!(message.starts_with("expected `scenario` or `scenario/request` before the colon"), "{message}");
        }
        let covered = |text: &str| {
            let all = [("shop", "login"), ("shop", "list"), ("other", "login")];
            all.map(|(scenario, request)| {
                let second = LoadSecond { scenario: scenario.into(), request: request.into(), ..LoadSecond::default() };
                parse(text).unwrap().covers(&second)
            })
        };
        assert_eq!(covered("p95 < 1s"), [true, true, true]);
        assert_eq!(covered("shop: p95 < 1s"), [true, true, false]);
        assert_eq!(covered("shop/login: p95 < 1s"), [true, false, false]);
    }

    #[test]
    fn open_models_have_drops_and_every_load_a_tail() {
        let load = LoadTotals { due: 2000, dropped: 10, ..load() };
        assert_eq!(parse("dropped_rate < 1%").unwrap().evaluate(&load).kept, Kept::Yes);
        assert_eq!(parse("dropped_rate == 0").unwrap().evaluate(&load).measured, "0.5 %");
        assert_eq!(parse("p99.9 < 300ms").unwrap().evaluate(&load).measured, "400 ms");
        assert_eq!(parse("dropped_rate == 0").unwrap().evaluate(&LoadTotals::default()).kept, Kept::Unknown);
    }

    #[test]
    fn without_measurements_nothing_is_kept() {
        for text in ["p95 < 300ms", "error_rate == 0", "rate >= 0/s"] {
            assert_eq!(parse(text).unwrap().evaluate(&LoadTotals::default()).kept, Kept::Unknown, "{text}");
        }
    }

    #[test]
    fn rare_failures_are_not_shown_as_none() {
        let rare = LoadTotals {
            succeeded: 999_998,
            errors: ErrorCounts { reset: 2, ..ErrorCounts::default() },
            ..LoadTotals::default()
        };
        assert_eq!(parse("error_rate == 0").unwrap().evaluate(&rare).measured, "2.0 per million");
    }

    #[test]
    fn what_is_no_objective_is_reported() {
        let cases = [
            ("fast", "expected an objective such as `p95 < 300ms`, found \"fast\""),
            ("p95 = 300ms", "expected an objective such as `p95 < 300ms`, found \"p95 = 300ms\""),
            ("p96 < 300ms", "unknown metric `p96`"),
            ("p95 < 300", "expected a length of time such as `300ms` as the bound, found \"300\""),
            ("error_rate < 2", "expected a share such as `0.01` or `1%` as the bound, found \"2\""),
            ("rate > 100/min", "expected requests per second such as `100/s` as the bound, found \"100/min\""),
            ("p95 <", "expected a length of time such as `300ms` as the bound, found \"\""),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err().message, message);
        }
        assert_eq!(parse("max < 800h").unwrap_err().hint.unwrap(), "the longest is 30 days, `720h`");
        assert_eq!(parse("rate > 1d").unwrap_err().hint, None);
        assert_eq!(parse("eror_rate < 1%").unwrap_err().hint.unwrap(), "did you mean `error_rate`?");
    }
}
