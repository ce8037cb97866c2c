//! How calls are distinguished, and how their responses are written.

use super::*;

#[test]
fn only_grpc_with_protobuf_is_meant() {
    let with = |value: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
    for value in ["application/grpc", "application/grpc+proto", "Application/gRPC; charset=utf-8"] {
        assert!(is_meant(&with(value)), "{value}");
    }
    for value in ["application/grpc-web", "application/grpc+json", "application/x-protobuf", ""] {
        assert!(!is_meant(&with(value)), "{value}");
    }
    assert!(!is_meant(&HeaderMap::new()));
}

#[test]
fn messages_are_encoded_as_grpc_has_it() {
    assert_eq!(percent_encoded("a ~%\né"), "a ~%25%0A%C3%A9");
}

#[test]
fn the_three_methods_are_known() {
    let path = |signal: &str, service: &str| format!("/opentelemetry.proto.collector.{signal}.v1.{service}/Export");
    assert_eq!(signal(&path("trace", "TraceService")), Ok(Signal::Traces));
    assert_eq!(signal(&path("metrics", "MetricsService")), Ok(Signal::Metrics));
    assert_eq!(signal(&path("logs", "LogsService")), Ok(Signal::Logs));
    assert_eq!(signal(&path("profiles", "ProfilesService")).unwrap_err().why, Why::Unsupported);
}
