//! k6's summary of its own run: the JSON of `--summary-export`, or of `handleSummary(data)`.
//!
//! Both hold only totals, which are never turned into seconds or distributions. They differ in two ways: a metric's
//! values are beside its thresholds or in `values`, and a threshold says whether it was crossed or whether it is `ok`.

use narrows_model::load::{LatencyFigures, ReportedLoad, Threshold};
use serde_json::{Map, Value};

const MS_NS: f64 = 1e6;
/// Counts above this are not counts of requests.
const COUNT_MAX: f64 = 1e15;
/// Maximum number of thresholds that are kept, and of characters of each.
const THRESHOLDS_MAX: usize = 100;
const THRESHOLD_CHARS_MAX: usize = 200;

/// Larger files are no summary, in bytes.
pub(super) const BYTES_MAX: u64 = 16 << 20;

/// The contents of a summary.
#[derive(Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) load: ReportedLoad,
    pub(super) thresholds: Vec<Threshold>,
    /// The metric from which the latency is taken.
    pub(super) latency_of: &'static str,
}

/// Latency of successful requests, and that of all requests if k6 does not have the former.
const DURATIONS: [&str; 2] = ["http_req_duration{expected_response:true}", "http_req_duration"];

/// Reads the summary of a run of `seconds` seconds. The summary's own rate is preferred, because it is more precise.
///
/// # Errors
/// A description of the problem if this is not a k6 summary.
pub(super) fn read(json: &str, seconds: f64) -> Result<Summary, String> {
    let root: Value = serde_json::from_str(json).map_err(|error| format!("it is not JSON: {error}"))?;
    let metrics = root.get("metrics").and_then(Value::as_object).ok_or("it has no `metrics`")?;
    let number = |metric: &str, value: &str| number(metrics, metric, value);
    let count = |metric: &str, value: &str| number(metric, value).map(|n| n.clamp(0.0, COUNT_MAX) as u64);
    let requests = count("http_reqs", "count").ok_or("it has no count of `http_reqs`")?;
    let rate = number("http_reqs", "rate").filter(|rate| *rate > 0.0);
    let failed_share = number("http_req_failed", "rate").or_else(|| number("http_req_failed", "value"));
    let failed = count("http_req_failed", "passes")
        .or_else(|| failed_share.map(|share| (share.clamp(0.0, 1.0) * requests as f64).round() as u64));
    let dropped = count("dropped_iterations", "count").unwrap_or(0);
    let latency_of = DURATIONS.into_iter().find(|metric| metrics.contains_key(*metric)).unwrap_or(DURATIONS[1]);
    let latency = |value: &str| number(latency_of, value).map(|ms| ms.max(0.0) * MS_NS);
    let load = ReportedLoad {
        seconds: rate.map(|rate| requests as f64 / rate).filter(|own| own.is_finite() && *own > 0.0).unwrap_or(seconds),
        requests,
        failed: failed.unwrap_or(0).min(requests),
        due: if dropped > 0 { dropped.saturating_add(count("iterations", "count").unwrap_or(0)) } else { 0 },
        dropped,
        latency: LatencyFigures {
            mean_ns: latency("avg"),
            min_ns: latency("min"),
            p50_ns: latency("med").or_else(|| latency("p(50)")),
            p90_ns: latency("p(90)"),
            p95_ns: latency("p(95)"),
            p99_ns: latency("p(99)"),
            p999_ns: latency("p(99.9)"),
            max_ns: latency("max"),
        },
    };
    Ok(Summary { load, thresholds: thresholds(metrics), latency_of })
}

fn number(metrics: &Map<String, Value>, metric: &str, value: &str) -> Option<f64> {
    let metric = metrics.get(metric)?;
    let values = metric.get("values").unwrap_or(metric);
    values.get(value)?.as_f64().filter(|number| number.is_finite())
}

fn thresholds(metrics: &Map<String, Value>) -> Vec<Threshold> {
    metrics.iter().flat_map(|(metric, value)| thresholds_of(metric, value)).take(THRESHOLDS_MAX).collect()
}

fn thresholds_of(metric: &str, value: &Value) -> Vec<Threshold> {
    let thresholds = value.get("thresholds").and_then(Value::as_object);
    let thresholds = thresholds.into_iter().flatten().filter_map(|(expression, state)| {
        let is_crossed = state.as_bool().or_else(|| Some(!state.get("ok")?.as_bool()?))?;
        let text = format!("{metric}: {expression}").chars().take(THRESHOLD_CHARS_MAX).collect();
        Some(Threshold { text, is_crossed })
    });
    thresholds.collect()
}

#[cfg(test)]
mod tests {
    use narrows_diagnose::words::trial_caveat;
    use narrows_model::caveat::TrialCaveat;

    use super::*;

    const EXPORTED: &str = r#"{"metrics": {
        "http_reqs": {"count": 12345, "rate": 411.5},
        "http_req_failed": {"passes": 3086, "fails": 9259, "value": 0.25, "thresholds": {"rate<0.1": true}},
        "iterations": {"count": 900}, "dropped_iterations": {"count": 100},
        "http_req_duration": {"avg": 9.5, "med": 9.2, "thresholds": {"p(95)<10": false}},
        "http_req_duration{expected_response:true}":
            {"avg": 1.5, "min": 0.1, "med": 1.2, "max": 90.25, "p(90)": 2, "p(95)": 3}}}"#;
    const HANDLED: &str = r#"{"metrics": {
        "http_reqs": {"type": "counter", "contains": "default", "values": {"count": 12345, "rate": 411.5}},
        "http_req_failed": {"type": "rate", "values": {"rate": 0.25, "passes": 3086, "fails": 9259},
            "thresholds": {"rate<0.1": {"ok": false}}},
        "iterations": {"values": {"count": 900}}, "dropped_iterations": {"values": {"count": 100}},
        "http_req_duration": {"values": {"avg": 9.5, "med": 9.2}, "thresholds": {"p(95)<10": {"ok": true}}},
        "http_req_duration{expected_response:true}": {"type": "trend", "values":
            {"avg": 1.5, "min": 0.1, "med": 1.2, "max": 90.25, "p(90)": 2, "p(95)": 3}}}}"#;

    #[test]
    fn both_forms_hold_the_same() {
        let (exported, handled) = (read(EXPORTED, 9.0).unwrap(), read(HANDLED, 9.0).unwrap());
        assert_eq!(exported, handled);
        let load = exported.load;
        assert_eq!(
            (load.requests, load.failed, load.succeeded(), load.due, load.dropped),
            (12_345, 3_086, 9_259, 1_000, 100)
        );
        assert!((load.seconds - 30.0).abs() < 1e-9, "{}", load.seconds);
        assert_eq!((load.latency.p95_ns, load.latency.p99_ns), (Some(3e6), None));
        assert_eq!(exported.latency_of, "http_req_duration{expected_response:true}");
        let thresholds: Vec<_> = exported.thresholds.iter().map(|t| (t.text.as_str(), t.is_crossed)).collect();
        assert_eq!(thresholds, [("http_req_duration: p(95)<10", false), ("http_req_failed: rate<0.1", true)]);
        let text = trial_caveat(&TrialCaveat::K6Totals { load, latency_of: exported.latency_of.to_owned() });
        let totals =
            "12,345 requests, 412/s, 25 % failed, mean 1.50 ms, p50 1.20 ms, p90 2.00 ms, p95 3.00 ms, max 90.2 ms.";
        assert!(text.starts_with(&format!("k6 itself counts {totals}")), "{text}");
    }

    #[test]
    fn figures_that_a_summary_does_not_have_are_unknown() {
        let read = |json: &str| read(json, 9.0).unwrap();
        let bare = read(r#"{"metrics": {"http_reqs": {"count": 10}}}"#).load;
        assert_eq!((bare.seconds, bare.requests, bare.failed, bare.latency), (9.0, 10, 0, LatencyFigures::default()));
        let share = read(r#"{"metrics": {"http_reqs": {"count": 10}, "http_req_failed": {"value": 0.26}}}"#).load;
        assert_eq!(share.failed, 3);
        let all = read(r#"{"metrics": {"http_reqs": {"count": 1}, "http_req_duration": {"avg": 2}}}"#);
        assert_eq!((all.load.latency.mean_ns, all.latency_of), (Some(2e6), "http_req_duration"));
    }

    #[test]
    fn what_is_no_summary_is_reported() {
        let cases = [
            ("", "it is not JSON"),
            ("[]", "it has no `metrics`"),
            (r#"{"metrics": 3}"#, "it has no `metrics`"),
            (r#"{"metrics": {"http_reqs": {"count": "many"}}}"#, "it has no count of `http_reqs`"),
        ];
        for (json, reason) in cases {
            assert!(read(json, 1.0).unwrap_err().starts_with(reason), "{json}");
        }
        let odd = r#"{"metrics": {"http_reqs": {"count": -5, "rate": -1}, "http_req_failed": {"passes": 7}}}"#;
        let load = read(odd, 2.0).unwrap().load;
        assert_eq!((load.requests, load.failed, load.seconds, load.known_rate()), (0, 0, 2.0, Some(0.0)));
    }
}
