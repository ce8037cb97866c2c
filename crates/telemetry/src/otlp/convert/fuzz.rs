//! Valid requests, broken in many ways: every one gets a response, and what is kept is within the limits.
//!
//! The seed is fixed, so that every run breaks them in the same ways.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use super::tests::{convert_all, valid_requests};
use crate::otlp::Format;

const CASES: u32 = 4000;
const SEED: u64 = 20_260_101;

/// Pieces that parsers of JSON stumble over.
const PIECES: [&str; 16] = [
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    ",",
    ":",
    "}",
    "]",
    "[[[[[[[[",
    "\u{feff}",
    "\"NaN\"",
];

fn valid_json() -> Vec<String> {
    let value = r#"{"arrayValue":{"values":[{"intValue":"1"},{"kvlistValue":{"values":[{"key":"a","value":{"bytesValue":"AP8="}}]}}]}}"#;
    let attributes = format!(
        r#""attributes":[{{"key":"exception.type","value":{{"stringValue":"é\n"}}}},{{"key":"k","value":{value}}}]"#
    );
    let resource = format!(r#""resource":{{{attributes}}}"#);
    let id = r#""traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174""#;
    let event = format!(r#"{{"timeUnixNano":"5","name":"exception",{attributes}}}"#);
    let times = r#""startTimeUnixNano":"1700000000000000000","endTimeUnixNano":1700000000000000005"#;
    let span = format!(r#"{{{id},{times},"name":"n","kind":2,{attributes},"events":[{event}],"status":{{"code":2}}}}"#);
    let point = format!(r#"{{{attributes},"timeUnixNano":"7","count":"4","sum":2.5,"min":-1,"max":1e3}}"#);
    let summary = r#"{"count":"4","sum":2,"quantileValues":[{"quantile":0.5,"value":"Infinity"}]}"#;
    let log = format!(r#"{{{id},"timeUnixNano":"7","severityNumber":17,"body":{value},{attributes}}}"#);
    let metric = |kind: &str, point: &str| format!(r#"{{"name":"m","unit":"s","{kind}":{{"dataPoints":[{point}]}}}}"#);
    let metrics =
        [metric("histogram", &point), metric("summary", summary), metric("gauge", r#"{"asInt":"-9"}"#)].join(",");
    vec![
        format!(
            r#"{{"resourceSpans":[{{{resource},"scopeSpans":[{{"spans":[{span},{span}],"scope":{{"name":"s"}}}}]}}]}}"#
        ),
        format!(r#"{{"resourceMetrics":[{{{resource},"scopeMetrics":[{{"metrics":[{metrics}]}}]}}]}}"#),
        format!(r#"{{"resourceLogs":[{{{resource},"scopeLogs":[{{"logRecords":[{log}]}}]}}]}}"#),
    ]
}

/// One way to break bytes.
#[derive(Debug, Clone)]
enum Break {
    Put(Index, u8),
    Flip(Index, u8),
    Insert(Index, usize),
    Repeat(Index, usize),
    Drop(Index, usize),
    End(Index),
}

fn breaks() -> impl Strategy<Value = Vec<Break>> {
    let one = prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Break::Put(at, byte)),
        4 => (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Break::Flip(at, bit)),
        4 => (any::<Index>(), 0..PIECES.len()).prop_map(|(at, piece)| Break::Insert(at, piece)),
        2 => (any::<Index>(), 1..64_usize).prop_map(|(at, length)| Break::Repeat(at, length)),
        2 => (any::<Index>(), 1..64_usize).prop_map(|(at, length)| Break::Drop(at, length)),
        1 => any::<Index>().prop_map(Break::End),
    ];
    prop::collection::vec(one, 1..6)
}

fn broken(mut bytes: Vec<u8>, breaks: &[Break]) -> Vec<u8> {
    for way in breaks {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        match way {
            Break::Put(at, byte) => bytes[at.index(length)] = *byte,
            Break::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Break::Insert(at, piece) => {
                let at = at.index(length);
                bytes.splice(at..at, PIECES[*piece].bytes());
            }
            Break::Repeat(at, count) => {
                let at = at.index(length);
                bytes.extend_from_within(at..(at + count).min(length));
            }
            Break::Drop(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + count).min(length));
            }
            Break::End(at) => bytes.truncate(at.index(length)),
        }
    }
    bytes
}

#[test]
fn the_requests_that_are_broken_are_whole() {
    for request in valid_json() {
        assert!(convert_all(Format::Json, request.as_bytes()) > 0, "{request}");
    }
    for request in valid_requests() {
        assert!(convert_all(Format::Protobuf, &request) > 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, rng_seed: RngSeed::Fixed(SEED), ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        convert_all(Format::Protobuf, &bytes);
        convert_all(Format::Json, &bytes);
    }

    #[test]
    fn broken_protobuf(which in 0..3_usize, breaks in breaks()) {
        convert_all(Format::Protobuf, &broken(valid_requests().remove(which), &breaks));
    }

    #[test]
    fn broken_json(which in 0..3_usize, breaks in breaks()) {
        convert_all(Format::Json, &broken(valid_json().remove(which).into_bytes(), &breaks));
    }
}
