//! A one-shot load for other programs, as JSON.
//!
//! Field names carry their unit last. `format` names this layout; it changes when a field is renamed, removed or gets
//! another meaning, not when one is added.

use narrows_model::load::{ErrorCause, Spread};
use serde_json::{Value, json};

use crate::json::{quantiles, request};
use crate::text::{ArrivalsSummary, LoadSummary};

/// The layout of what [`load_json`] returns.
const FORMAT: &str = "narrows-load/2";

/// The summary as one JSON object. `requests` holds every request of the load, also where there is one only; `arrivals`
/// is `null` for closed models. Numbers that are not finite become `null`.
pub fn load_json(summary: &LoadSummary) -> Value {
    let responses: u64 = summary.statuses.values().sum();
    let seconds = summary.total.as_secs_f64();
    json!({
        "format": FORMAT,
        "url": summary.url,
        "seconds": seconds,
        "responses": responses,
        "responses_per_second": if seconds > 0.0 { responses as f64 / seconds } else { 0.0 },
        "latency": quantiles(&summary.latency),
        "body_bytes": summary.bytes,
        "phases": {
            "connect": spread(&summary.dialup),
            "tls": spread(&summary.tls),
            "write": spread(&summary.request_write),
            "wait": spread(&summary.response_wait),
            "read": spread(&summary.response_read),
        },
        "statuses": summary.statuses,
        "errors": summary.causes.iter().map(cause).collect::<Vec<_>>(),
        "arrivals": summary.arrivals.map(arrivals),
        "requests": summary.requests.iter().map(request).collect::<Vec<_>>(),
        "validity": summary.validity,
    })
}

fn spread(spread: &Spread) -> Value {
    json!({
        "count": spread.count,
        "mean_ns": spread.mean_ns(),
        "min_ns": spread.min_ns,
        "max_ns": spread.max_ns,
    })
}

fn cause(cause: &ErrorCause) -> Value {
    json!({ "kind": cause.kind, "text": cause.text, "count": cause.count })
}

fn arrivals(arrivals: ArrivalsSummary) -> Value {
    json!({
        "offered_per_second": arrivals.offered,
        "achieved_per_second": arrivals.achieved,
        "due": arrivals.due,
        "late": arrivals.late,
        "dropped": arrivals.dropped,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use narrows_model::counting::Phase;
    use narrows_model::evidence::RequestOfLoad;
    use narrows_model::load::ErrorKind;
    use narrows_model::run::{Validity, Verdict};

    use super::super::testing::rows;
    use super::*;

    #[test]
    fn the_layout_is_stable_and_reads_back() {
        let mut requests = Vec::new();
        rows().iter().for_each(|row| RequestOfLoad::add_to(&mut requests, row, Phase::Sending));
        let mut tls = Spread::default();
        tls.add(0, 900);
        let summary = LoadSummary {
            url: "https://localhost/".into(),
            total: Duration::from_secs(2),
            latency: rows()[0].latency.clone(),
            statuses: BTreeMap::from([(200, 30), (503, 10)]),
            causes: vec![ErrorCause { kind: ErrorKind::Check, text: "no \"ok\"".into(), count: 3 }],
            arrivals: Some(ArrivalsSummary { offered: 14.0, achieved: 13.0, due: 28, late: 4, dropped: 2 }),
            validity: Validity { verdict: Verdict::Doubtful, reasons: vec!["Late.".into()] },
            requests,
            tls,
            ..LoadSummary::default()
        };
        let value: Value = serde_json::from_str(&load_json(&summary).to_string()).unwrap();
        assert_eq!((&value["format"], &value["responses_per_second"]), (&json!("narrows-load/2"), &json!(20.0)));
        assert_eq!((&value["statuses"]["503"], &value["errors"][0]["kind"]), (&json!(10), &json!("check")));
        assert_eq!((&value["phases"]["tls"]["mean_ns"], &value["phases"]["read"]["count"]), (&json!(900.0), &json!(0)));
        assert_eq!((&value["arrivals"]["dropped"], &value["validity"]["verdict"]), (&json!(2), &json!("doubtful")));
        assert_eq!((&value["requests"][0]["request"], &value["requests"][0]["due"]), (&json!("list"), &json!(28)));
        assert_eq!(value["latency"]["max_ns"], 14_000_000);
        let empty = load_json(&LoadSummary::default());
        assert_eq!((&empty["arrivals"], &empty["responses_per_second"]), (&Value::Null, &json!(0.0)));
    }
}
