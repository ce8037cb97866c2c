//! The examples of the opentelemetry-proto repository, as they stand there.
//!
//! `NARROWS_OTLP_EXAMPLES` names the folder `examples` of a checkout; without it the test is skipped.

use std::path::PathBuf;

use narrows_model::trace::SpanKind;
use narrows_telemetry::otlp::{Format, Weights, convert};

fn example(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("NARROWS_OTLP_EXAMPLES") else {
        narrows_testing::skip("NARROWS_OTLP_EXAMPLES names no checkout's examples");
        return None;
    };
    Some(std::fs::read(PathBuf::from(folder).join(name)).unwrap())
}

#[test]
fn the_trace() {
    let Some(request) = example("trace.json") else { return };
    let converted = convert::spans(&request, Format::Json, &Weights::new()).unwrap();
    let [span] = converted.records.as_slice() else { panic!("{converted:?}") };
    assert_eq!((span.service.as_str(), span.scope.as_str(), span.kind), ("my.service", "my.library", SpanKind::Server));
    assert_eq!(span.trace_id[..2], [0x5b, 0x8e]);
    assert_eq!(span.duration_ns(), 1_000_000_000);
    assert_eq!(span.attributes["my.span.attr"], "some value");
}

#[test]
fn the_metrics() {
    let Some(request) = example("metrics.json") else { return };
    let converted = convert::points(&request, Format::Json, 7).unwrap();
    let got: Vec<_> = converted.records.iter().map(|(key, point)| (key.name.as_str(), point.value)).collect();
    let expected = [
        ("my.counter", 5.0),
        ("my.gauge", 10.0),
        ("my.histogram.sum", 2.0),
        ("my.histogram.min", 0.0),
        ("my.histogram.max", 2.0),
        ("my.histogram.count", 2.0),
        ("my.exponential.histogram.sum", 10.0),
        ("my.exponential.histogram.min", 0.0),
        ("my.exponential.histogram.max", 5.0),
        ("my.exponential.histogram.count", 3.0),
    ];
    assert_eq!(got, expected);
    assert!(
        converted
            .records
            .iter()
            .all(|(key, point)| key.labels.len() == 1 && point.time_ns == 1_544_712_660_300_000_000)
    );
}

#[test]
fn the_logs_and_the_events() {
    let Some(request) = example("logs.json") else { return };
    let line = convert::logs(&request, Format::Json, 7).unwrap().records.remove(0);
    assert_eq!((line.severity.as_str(), line.text.as_str()), ("Information", "Example log record"));
    assert_eq!(line.trace_id.map(|id| id[0]), Some(0x5b));
    let Some(request) = example("events.json") else { return };
    let converted = convert::logs(&request, Format::Json, 7).unwrap();
    assert_eq!((converted.malformed, converted.records.is_empty()), (0, false));
}
