//! What a load must keep to: `p95 < 300ms`, `error_rate == 0`, `rate >= 100/s`.
//!
//! An objective is judged on the load of all counted windows of a trial together. Latency is from the intended send,
//! successes only. Where nothing was measured, the answer is "unknown", never "kept".

use narrows_model::comparison::{Kept, ObjectiveResult};
use narrows_model::evidence::LoadTotals;
use narrows_model::units;

use super::kind::number;
use super::mistake::{Wrong, shortened};
use super::quantity;

/// A bound on something that is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// As the experiment file has it.
    pub text: String,
    /// What is measured.
    pub metric: Metric,
    /// How it is compared.
    pub op: Op,
    /// With what: nanoseconds for latencies, a share of 1 for the error rate, requests per second for the rate.
    pub bound: f64,
}

/// What an objective can be about.
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
    /// Largest latency.
    Max,
    /// Failed ÷ ended requests.
    ErrorRate,
    /// Successful answers per second.
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

const METRICS: [(&str, Metric); 8] = [
    ("mean", Metric::Mean),
    ("p50", Metric::P50),
    ("p90", Metric::P90),
    ("p95", Metric::P95),
    ("p99", Metric::P99),
    ("max", Metric::Max),
    ("error_rate", Metric::ErrorRate),
    ("rate", Metric::Rate),
];

/// Two-character operators first: each begins with another.
const OPS: [(&str, Op); 5] =
    [("<=", Op::LessOrEqual), (">=", Op::GreaterOrEqual), ("==", Op::Equal), ("<", Op::Less), (">", Op::Greater)];

/// What [`parse`] accepts, as a regular expression.
pub(super) fn pattern() -> String {
    let time = quantity::DURATION_PATTERN.trim_start_matches('^').trim_end_matches('$');
    let number = r"[0-9]+(\.[0-9]+)?";
    format!(
        r"^ *((mean|p50|p90|p95|p99|max) *(<=|>=|==|<|>) *{time}|error_rate *(<=|>=|==|<|>) *{number} *%?|rate *(<=|>=|==|<|>) *{number}(/s)?) *$"
    )
}

/// Reads an objective.
pub(super) fn parse(text: &str) -> Result<Objective, Wrong> {
    let expected = || {
        let ops = "`<`, `<=`, `>`, `>=` or `==`";
        Wrong::new(format!("expected an objective such as `p95 < 300ms`, found \"{}\"", shortened(text)))
            .hint(format!("a metric, {ops}, and a bound"))
    };
    let at = text.find(['<', '>', '=']).ok_or_else(expected)?;
    let (name, rest) = (text[..at].trim(), &text[at..]);
    let (sign, op) = OPS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(expected)?;
    let (_, metric) = METRICS.into_iter().find(|(known, _)| *known == name).ok_or_else(|| unknown_metric(name))?;
    let bound = metric.bound(rest[sign.len()..].trim())?;
    Ok(Objective { text: text.trim().to_owned(), metric, op, bound })
}

fn unknown_metric(name: &str) -> Wrong {
    Wrong::unknown("metric", name, METRICS.iter().map(|(name, _)| *name))
}

impl Metric {
    fn bound(self, text: &str) -> Result<f64, Wrong> {
        let (found, expected) = match self {
            Metric::ErrorRate => (share(text), "a share such as `0.01` or `1%`"),
            Metric::Rate => {
                (plain_number(text.strip_suffix("/s").unwrap_or(text)), "requests per second such as `100/s`")
            }
            _ => (quantity::duration(text).map(|d| d.as_nanos() as f64), "a length of time such as `300ms`"),
        };
        found.ok_or_else(|| {
            let wrong = Wrong::new(format!("expected {expected} as the bound, found \"{}\"", shortened(text)));
            let is_time = !matches!(self, Metric::ErrorRate | Metric::Rate);
            Wrong { hint: quantity::advice(text).filter(|_| is_time), ..wrong }
        })
    }

    fn measured(self, load: &LoadTotals) -> Option<f64> {
        let latency = load.latency();
        match self {
            Metric::ErrorRate => (load.succeeded + load.errors.total() > 0).then(|| load.error_rate()),
            Metric::Rate => (load.seconds > 0.0).then(|| load.rate()),
            _ if latency.count == 0 => None,
            Metric::Mean => Some(latency.mean_ns),
            Metric::P50 => Some(latency.p50_ns as f64),
            Metric::P90 => Some(latency.p90_ns as f64),
            Metric::P95 => Some(latency.p95_ns as f64),
            Metric::P99 => Some(latency.p99_ns as f64),
            Metric::Max => Some(latency.max_ns as f64),
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            // A few failures in a million are not "0.0 %".
            Metric::ErrorRate if value > 0.0 && value < 0.001 => format!("{:.1} per million", value * 1e6),
            Metric::ErrorRate => units::percent(value),
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
    if is_plain && !text.ends_with('.') { number(text) } else { None }
}

impl Objective {
    /// Judges a load.
    pub fn evaluate(&self, load: &LoadTotals) -> ObjectiveResult {
        let value = self.metric.measured(load);
        let (measured, kept) = match value {
            None => ("nothing measured".to_owned(), Kept::Unknown),
            Some(value) => {
                (self.metric.shown(value), if self.op.holds(value, self.bound) { Kept::Yes } else { Kept::No })
            }
        };
        ObjectiveResult { text: self.text.clone(), measured, kept }
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
    fn what_is_no_objective_is_told() {
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
