//! Jaeger's own cases: `CriticalPath/testCases/test*.js` of a checkout of its user interface.

use std::path::PathBuf;

use narrows_model::trace::SpanKind;
use serde_json::Value;

use super::literal::constants;
use super::told::{Interval, Told};

const FOLDER: &str = "packages/jaeger-ui/src/components/TracePage/CriticalPath/testCases";
/// Cases that the checkout had when this was written; fewer mean that something else was named.
const CASES_MIN: usize = 9;

#[test]
fn its_cases() {
    let Some(checkout) = std::env::var_os("NARROWS_JAEGER_UI").map(PathBuf::from) else {
        return narrows_testing::skip("NARROWS_JAEGER_UI names no checkout of jaegertracing/jaeger-ui");
    };
    let folder = checkout.join(FOLDER);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("NARROWS_JAEGER_UI names a checkout")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "js"))
        .collect();
    files.sort();
    assert!(files.len() >= CASES_MIN, "{} cases", files.len());
    for file in &files {
        let constants = constants(&std::fs::read_to_string(file).unwrap(), &folder);
        let trace = constants.values().find(|value| value.get("spans").is_some()).expect("a case has a trace");
        let expected: Vec<Interval> =
            constants["criticalPathSections"].as_array().unwrap().iter().map(section).collect();
        assert_eq!(sections(trace), expected, "{}", file.display());
    }
    println!("{} of {} cases as in Jaeger's user interface", files.len(), files.len());
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn section(value: &Value) -> Interval {
    (text(value, "spanID").to_owned(), value["sectionStart"].as_i64().unwrap(), value["sectionEnd"].as_i64().unwrap())
}

fn sections(trace: &Value) -> Vec<Interval> {
    let lines: Vec<_> = trace["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| {
            let start = span["startTime"].as_i64().unwrap();
            let end = start + span["duration"].as_i64().unwrap();
            let parent = span["references"].get(0).map_or("", |reference| text(reference, "spanID"));
            ((text(span, "spanID"), start, end, parent), kind(span))
        })
        .collect();
    Told::of_kinds(&lines).sections()
}

fn kind(span: &Value) -> SpanKind {
    let tags = span["tags"].as_array().into_iter().flatten();
    match tags.filter(|tag| tag["key"] == "span.kind").map(|tag| text(tag, "value")).next() {
        Some("producer") => SpanKind::Producer,
        Some("consumer") => SpanKind::Consumer,
        Some("client") => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}
