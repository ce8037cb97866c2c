//! What k6 says of its own run: the JSON of `--summary-export`, or of `handleSummary(data)`.
//!
//! Both hold totals only. They are told beside the trial's figures and never turned into seconds or distributions, which
//! they are not. The two forms differ in where a metric's values stand: beside its thresholds, or in `values`.

use narrows_model::units;
use serde_json::Value;

const MS_NS: f64 = 1e6;

/// Larger files are no summary, in bytes.
pub(super) const BYTES_MAX: u64 = 16 << 20;

/// k6's totals in one sentence.
///
/// # Errors
/// In words, when it is not a k6 summary.
pub(super) fn sentence(json: &str) -> Result<String, String> {
    let root: Value = serde_json::from_str(json).map_err(|error| format!("it is not JSON: {error}"))?;
    let metrics = root.get("metrics").ok_or("it has no `metrics`")?;
    let of = |metric: &str, value: &str| number(metrics, metric, value);
    let requests = of("http_reqs", "count").ok_or("it has no count of `http_reqs`")?;
    let mut parts = vec![format!("{} requests", units::count(requests.max(0.0) as u64))];
    parts.extend(of("http_reqs", "rate").map(units::rate));
    let failed = of("http_req_failed", "rate").or_else(|| of("http_req_failed", "value"));
    parts.extend(failed.map(|share| format!("{} failed", units::percent(share))));
    let latencies =
        [("mean", "avg"), ("p50", "med"), ("p90", "p(90)"), ("p95", "p(95)"), ("p99", "p(99)"), ("max", "max")];
    for (name, key) in latencies {
        parts.extend(of("http_req_duration", key).map(|ms| format!("{name} {}", units::duration(ms * MS_NS))));
    }
    Ok(parts.join(", "))
}

fn number(metrics: &Value, metric: &str, value: &str) -> Option<f64> {
    let metric = metrics.get(metric)?;
    let values = metric.get("values").unwrap_or(metric);
    values.get(value)?.as_f64().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn both_forms_say_the_same() {
        let exported = r#"{"metrics": {
            "http_reqs": {"count": 12345, "rate": 411.5},
            "http_req_failed": {"passes": 1, "fails": 12344, "value": 0.25, "thresholds": {"rate<0.1": true}},
            "http_req_duration": {"avg": 1.5, "min": 0.1, "med": 1.2, "max": 90.25, "p(90)": 2, "p(95)": 3}}}"#;
        let handled = r#"{"metrics": {
            "http_reqs": {"type": "counter", "contains": "default", "values": {"count": 12345, "rate": 411.5}},
            "http_req_failed": {"type": "rate", "values": {"rate": 0.25, "passes": 1, "fails": 12344}},
            "http_req_duration": {"type": "trend", "values":
                {"avg": 1.5, "min": 0.1, "med": 1.2, "max": 90.25, "p(90)": 2, "p(95)": 3}}}}"#;
        let expected =
            "12,345 requests, 412/s, 25 % failed, mean 1.50 ms, p50 1.20 ms, p90 2.00 ms, p95 3.00 ms, max 90.2 ms";
        assert_eq!(sentence(exported).unwrap(), expected);
        assert_eq!(sentence(handled).unwrap(), expected);
    }

    #[test]
    fn what_is_no_summary_is_reported() {
        let cases = [
            ("", "it is not JSON"),
            ("[]", "it has no `metrics`"),
            (r#"{"metrics": 3}"#, "it has no count of `http_reqs`"),
            (r#"{"metrics": {"http_reqs": {"count": "many"}}}"#, "it has no count of `http_reqs`"),
        ];
        for (json, reason) in cases {
            assert!(sentence(json).unwrap_err().starts_with(reason), "{json}");
        }
        assert_eq!(sentence(r#"{"metrics": {"http_reqs": {"count": -5}}}"#).unwrap(), "0 requests");
    }
}
