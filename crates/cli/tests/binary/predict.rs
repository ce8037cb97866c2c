//! `narrows predict`: what a change would gain, from a recorded run, and what is refused.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Bench, text};

/// The recording of the demo drone-delivery.
fn recording() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/corpus/recorded/drone-delivery.json.gz");
    file.to_string_lossy().into_owned()
}

#[test]
fn the_changes_that_findings_suggest_are_predicted() {
    let bench = Bench::new("");
    let run = format!("{}:test-2", recording());
    let predicted = bench.run(&["predict", &run]);
    let said = text(&predicted.stdout);
    assert_eq!(predicted.status.code(), Some(0), "{said}{}", text(&predicted.stderr));
    assert!(said.starts_with("test-2\n") && said.contains("as it is"), "{said}");
    assert!(said.contains("parallelize=") && said.contains("assumes"), "{said}");
    let sentence = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains("In test-2, querying only the partition that is needed in dronescheduler GET"), "{said}");
}

#[test]
fn a_change_that_is_named_is_predicted_at_each_level() {
    let bench = Bench::new("");
    let run = format!("{}:test-2", recording());
    let change = "parallelize=GET /api/dronedeliveries/utilization";
    let predicted = bench.run(&["predict", &run, "--change", change, "--json"]);
    let json: Value = serde_json::from_slice(&predicted.stdout).unwrap();
    assert_eq!(json["format"], "narrows-predictions/1");
    let one = &json["trials"][0]["predictions"][0];
    assert_eq!(one["change"]["kind"], "parallelize");
    assert_eq!(one["because"], Value::Null);
    assert!(one["after"]["rate"]["value"].as_f64() > one["now"]["rate"].as_f64(), "{one:#}");
    assert!(one["levels"].as_array().is_some_and(|levels| levels.len() > 5), "{one:#}");
}

#[test]
fn a_prediction_is_compared_with_what_was_measured() {
    let bench = Bench::new("");
    let run = |variant: &str| format!("{}:{variant}", recording());
    let change = ["--change", "parallelize=GET /api/dronedeliveries/utilization"];
    let compared = |after: &str| bench.run(&[&["predict", &run("test-2")][..], &change, &["--of", after]].concat());
    let said = text(&compared(&run("test-3")).stdout);
    let row = said.lines().find(|line| line.starts_with("test-3")).unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains("then measured in") && row.contains("rate") && row.ends_with(['✓', '✗']), "{said}");
    let several = compared(&recording());
    assert_eq!(several.status.code(), Some(2));
    let why = text(&several.stderr);
    assert!(why.contains("has 4 trials, expected one to compare with") && why.contains("test-1, test-2"), "{why}");
    let alone = bench.run(&["predict", &run("test-2"), "--of", &run("test-3")]);
    assert_eq!(alone.status.code(), Some(2), "without a change there is nothing to compare");
}

#[test]
fn what_cannot_be_predicted_is_refused_with_one_clause() {
    let bench = Bench::new("");
    let span = json!({ "traceID": "1", "spanID": "a", "operationName": "GET /", "references": [], "processID": "p1",
        "startTime": 1_700_000_000_000_000_i64, "duration": 1000, "tags": [] });
    let processes = json!({ "p1": { "serviceName": "shop", "tags": [] } });
    let traces = json!({ "data": [{ "traceID": "1", "spans": [span], "processes": processes }] });
    std::fs::write(bench.path("traces.json"), traces.to_string()).unwrap();
    assert!(bench.run(&["import", "traces.json", "--out", "imported.narrows"]).status.success());
    let run = format!("{}:test-2", recording());
    for (arguments, said) in [
        (vec!["imported.narrows"], "error: cannot predict from imported: it has no load that Narrows sent\n"),
        (
            vec![run.as_str(), "--change", "paralelize=x"],
            "error: no change is called `paralelize`\nhint: there are add-cpu, ",
        ),
        (
            vec![run.as_str(), "--change", "add-cpu=shop,0"],
            "error: `add-cpu` has the amount `0`, expected a number above 0\n",
        ),
        (
            vec![run.as_str(), "--change", "add-cpu=shop"],
            "error: cannot predict from test-2: it has no `shop` for `add-cpu`\n",
        ),
        (vec!["missing.narrows"], "error: "),
    ] {
        let refused = bench.run(&[&["predict"][..], &arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).starts_with(said), "{arguments:?}: {}", text(&refused.stderr));
    }
}
