//! Bodies that are wrong, over every protocol: each is refused or cut with a clear reason, and the receiver goes on.

use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};

use super::over_grpc::{call, framed};
use super::*;
use crate::otlp::request::RECORD_BYTES_MAX;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The response that a sender gets.
#[derive(Debug, Clone, Copy)]
enum ExpectedResponse {
    /// The request is refused, by HTTP's and gRPC's code, with these words.
    Refused(u16, &'static str, &'static str),
    /// So many spans are rejected, with these words.
    InPart(i64, &'static str),
}
use ExpectedResponse::{InPart, Refused};

fn edited(edit: impl Fn(&mut otlp::Span)) -> Vec<u8> {
    let mut span = span();
    edit(&mut span);
    request_of(vec![span])
}

fn nested(levels: usize) -> AnyValue {
    let innermost = AnyValue { value: Some(any_value::Value::BoolValue(true)) };
    (0..levels).fold(innermost, |value, _| AnyValue {
        value: Some(any_value::Value::ArrayValue(ArrayValue { values: vec![value] })),
    })
}

const YEAR_1_NS: i128 = -62_135_596_800_000_000_000;
const YEAR_2300_NS: u64 = 10_413_792_000_000_000_000;

fn protobuf_cases() -> Vec<(&'static str, Vec<u8>, ExpectedResponse)> {
    let malformed = |words| Refused(400, "3", words);
    let whole = traces(3);
    let mut not_utf8 = whole.clone();
    let name = not_utf8.windows(5).position(|window| window == b"GET /").unwrap();
    not_utf8[name] = 0xff;
    let deep = KeyValue { key: "k".to_owned(), value: Some(nested(200)), ..Default::default() };
    let large = AnyValue { value: Some(any_value::Value::StringValue("x".repeat(RECORD_BYTES_MAX))) };
    let large = KeyValue { key: "k".to_owned(), value: Some(large), ..Default::default() };
    let too_large = vec![0; body::COMPRESSED_BYTES_MAX + 1];
    vec![
        ("cut short", whole[..whole.len() / 2].to_vec(), malformed("request: a field is cut short")),
        ("text", b"hello, world".to_vec(), malformed("request: ")),
        ("not UTF-8", not_utf8, malformed("resource_spans[0].scope_spans[0].spans[0]: ")),
        ("deep", edited(|span| span.attributes = vec![deep.clone()]), malformed("recursion limit reached")),
        ("many groups", [0x0a, 0].repeat(100_001), malformed("more than 100000 resources and scopes")),
        ("too large", too_large, Refused(413, "8", "body is larger than 167772")),
        (
            "many attributes",
            edited(|span| span.attributes = vec![KeyValue::default(); 1_000_000]),
            InPart(0, "span \"GET /\" of unknown_service: of its 1000000 attributes the first 1024 were kept"),
        ),
        ("large record", edited(|span| span.attributes = vec![large.clone()]), InPart(1, "more than 4194304")),
        ("short id", edited(|span| span.trace_id = vec![1; 8]), InPart(1, "its trace id is not sixteen bytes")),
        ("long id", edited(|span| span.span_id = vec![1; 16]), InPart(1, "its span id is not eight bytes")),
        (
            "year 1",
            edited(|span| span.start_time_unix_nano = YEAR_1_NS as u64),
            InPart(1, "its start is not between the years 1970"),
        ),
        (
            "year 2300",
            edited(|span| span.end_time_unix_nano = YEAR_2300_NS),
            InPart(1, "its end is after the year 2116"),
        ),
    ]
}

/// A request with one span, of these fields besides its ids and its start.
fn in_json(fields: &str) -> Vec<u8> {
    let ids = r#""traceId":"01010101010101010101010101010101","spanId":"0202020202020202","startTimeUnixNano":"1""#;
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids},{fields}}}]}}]}}]}}"#).into_bytes()
}

fn json_cases() -> Vec<(&'static str, Vec<u8>, ExpectedResponse)> {
    let malformed = |words| Refused(400, "3", words);
    let whole = in_json(r#""name":"x""#);
    let nested = |levels| format!("{}{}", r#"{"arrayValue":{"values":["#.repeat(levels), "]}}".repeat(levels));
    let attributes = |what: &str| in_json(&format!(r#""attributes":[{what}]"#));
    let objects = |count: usize| format!("{{}}{}", ",{}".repeat(count - 1));
    let long_number = format!(r#""kind":{}"#, "9".repeat(1_000_000));
    vec![
        ("cut short", whole[..whole.len() / 2].to_vec(), malformed("request: EOF while parsing")),
        ("text", b"hello, world".to_vec(), malformed("request: expected value at line 1 column 1")),
        (
            "a list",
            b"[]".to_vec(),
            malformed("request: invalid type: sequence, expected an object with \"resourceSpans\""),
        ),
        (
            "deep",
            attributes(&format!(r#"{{"key":"k","value":{}}}"#, nested(200))),
            malformed("recursion limit exceeded"),
        ),
        (
            "deep and unknown",
            in_json(&format!(r#""x":{}{}"#, "[".repeat(100_000), "]".repeat(100_000))),
            malformed("recursion limit exceeded"),
        ),
        (
            "many groups",
            format!(r#"{{"resourceSpans":[{{}}{}]}}"#, ",{}".repeat(100_000)).into_bytes(),
            malformed("resourceSpans[100000]: more than 100000 resources and scopes"),
        ),
        ("too large", vec![b' '; body::COMPRESSED_BYTES_MAX + 1], Refused(413, "8", "body is larger than 167772")),
        (
            "spans are no list",
            br#"{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}"#.to_vec(),
            malformed("resourceSpans[0].scopeSpans[0]: invalid type: map, expected a list"),
        ),
        (
            "base64 of no id",
            in_json(r#""parentSpanId":"AAAAAAE=""#),
            malformed("spans[0]: parentSpanId: expected hexadecimal digits"),
        ),
        ("huge number", in_json(r#""endTimeUnixNano":1e400"#), malformed("number out of range")),
        ("long number", in_json(&long_number), malformed("number out of range")),
        (
            "65 bits",
            in_json(r#""endTimeUnixNano":"18446744073709551616""#),
            malformed("endTimeUnixNano: expected a whole number of 64 bits"),
        ),
        (
            "wrong kind",
            attributes(r#"{"key":"a"},{"key":"b","value":{"intValue":"x"}}"#),
            malformed("attributes[1].value.intValue: expected a whole number of 64 bits, found \"x\""),
        ),
        (
            "year 1",
            in_json(&format!(r#""startTimeUnixNano":"{YEAR_1_NS}""#)),
            malformed("startTimeUnixNano: expected a whole number of 64 bits, 0 or more"),
        ),
        ("many objects", attributes(&objects(1_000_000)), InPart(1, "a record of more than 100000 objects")),
        (
            "many attributes",
            attributes(&objects(99_999)),
            InPart(0, "of its 99999 attributes the first 1024 were kept"),
        ),
        (
            "large record",
            in_json(&format!(r#""name":"{}""#, "x".repeat(RECORD_BYTES_MAX))),
            InPart(1, "more than 4194304"),
        ),
        ("short id", in_json(r#""traceId":"0101""#), InPart(1, "its trace id is not sixteen bytes")),
        (
            "long id",
            in_json(r#""spanId":"01010101010101010101010101010101""#),
            InPart(1, "its span id is not eight bytes"),
        ),
        (
            "year 2300",
            in_json(&format!(r#""endTimeUnixNano":"{YEAR_2300_NS}""#)),
            InPart(1, "its end is after the year 2116"),
        ),
    ]
}

fn over_http(receiver: &Receiver, headers: &str, body: &[u8], expected: ExpectedResponse, name: &str) {
    let response = post(receiver, headers, body);
    let text = String::from_utf8_lossy(&response.body).replace("\\\"", "\"");
    match expected {
        Refused(status, _, words) => {
            assert_eq!(response.status, status, "{name}: {text}");
            assert!(text.contains(words), "{name}: {text}");
        }
        InPart(rejected, words) => {
            assert_eq!(response.status, 200, "{name}: {text}");
            assert!(text.contains(words), "{name}: {text}");
            if headers == JSON {
                assert!(text.contains(&format!(r#""rejectedSpans":"{rejected}""#)), "{name}: {text}");
            } else {
                assert_eq!(response.partial().0, rejected, "{name}");
            }
        }
    }
}

fn goes_on(receiver: &Receiver, name: &str) {
    assert_eq!(post(receiver, PROTOBUF, &traces(1)).status, 200, "after {name}");
}

#[test]
fn protobuf_over_http() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    for (name, body, expected) in protobuf_cases() {
        over_http(&receiver, PROTOBUF, &body, expected, name);
        goes_on(&receiver, name);
    }
}

#[test]
fn json_over_http() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    for (name, body, expected) in json_cases() {
        over_http(&receiver, JSON, &body, expected, name);
        goes_on(&receiver, name);
    }
}

#[test]
fn protobuf_over_grpc() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    for (name, body, expected) in protobuf_cases() {
        let response = call(receiver.local_addr(), TRACES, &[], framed(0, &body));
        match expected {
            Refused(_, code, words) => {
                assert_eq!(response.code(), code, "{name}: {}", response.text());
                assert!(response.text().contains(words), "{name}: {}", response.text());
            }
            InPart(rejected, words) => {
                assert_eq!(response.code(), "0", "{name}: {}", response.text());
                let partial = response.decoded().partial_success.unwrap();
                assert_eq!(partial.rejected_spans, rejected, "{name}");
                assert!(partial.error_message.contains(words), "{name}: {}", partial.error_message);
            }
        }
        goes_on(&receiver, name);
    }
}

#[test]
fn bombs() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    let bomb = gzip(&vec![b' '; body::INFLATED_BYTES_MAX + 1]);
    let words = "body inflates to more than 67108864 bytes";
    let json = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    for headers in [GZIPPED, json] {
        over_http(&receiver, headers, &bomb, Refused(413, "8", words), "bomb");
    }
    let response = call(receiver.local_addr(), TRACES, &[("grpc-encoding", "gzip")], framed(1, &bomb));
    assert_eq!((response.code(), response.text()), ("8", words));
    let cut_short = &gzip(&traces(100))[..20];
    over_http(&receiver, GZIPPED, cut_short, Refused(400, "13", "body is not whole gzip"), "half a gzip");
    goes_on(&receiver, "bombs");
}

#[test]
fn what_is_no_http_at_all() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let noise: Vec<u8> = (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let half = b"POST /v1/traces HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let cases = [noise.clone(), [preface, &noise].concat(), preface[..20].to_vec(), half.to_vec(), Vec::new()];
    for (i, bytes) in cases.iter().enumerate() {
        let mut stream = TcpStream::connect(receiver.local_addr()).unwrap();
        // The receiver may close before all is written or read.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        goes_on(&receiver, &format!("noise {i}"));
    }
}
