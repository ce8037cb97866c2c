//! Objectives with `abort: true`: a load that cannot keep them any more is ended, and the report shows it.

use crate::common::{Bench, ask, text};
use serde_json::Value;

/// A store that refuses nearly all calls, under a load that is to last for ten minutes.
fn doomed(objective: &str) -> String {
    format!(
        r#"
experiment: doomed
system:
  services:
    store:
      run: [narrows, engine, docstore, --no-auth, --port, "${{port}}", --partitions, "1", --throughput, "1", --documents, "110"]
load:
  target: store
  scenarios:
    read:
      model: constant-arrival-rate
      rate: 100
      duration: 10m
      request:
        method: GET
        path: /dbs/dronedelivery/colls/utilization/docs/d0007
        headers: {{ x-ms-documentdb-partitionkey: '["o0000"]' }}
objectives: ["p95 < 10s", {objective}]
"#
    )
}

#[test]
fn a_broken_objective_ends_the_run_early_with_exit_code_1_and_the_report_says_so() {
    let bench = Bench::new(&doomed("{ objective: error_rate < 1%, abort: true }"));
    let run = bench.run(&["run", "--out", "run.narrows", "--json"]);
    let (told, said) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(1), "{told}{said}");
    let expected = "because an objective was broken: \"error_rate < 1%\", which stood at ";
    assert!(said.contains("The load was ended early, ") && said.contains(expected), "{said}");

    let told: Value = serde_json::from_str(&told).unwrap();
    let trial = &told["trials"][0];
    assert_eq!(trial["objectives"][1]["kept"], "no", "{trial:#}");
    assert_eq!(trial["objectives"][0]["kept"], "yes", "{trial:#}");
    let caveats = trial["trial"]["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|caveat| caveat["text"].as_str().unwrap().contains(expected)), "{caveats:#?}");

    let file = bench.path("run.narrows");
    assert_eq!(ask(&file, "select state from run"), "complete");
    let lasted_s: u64 = ask(&file, "select (max(end_ns) - min(start_ns)) / 1000000000 from windows").parse().unwrap();
    assert!((1..600).contains(&lasted_s), "{lasted_s} s of ten minutes");

    assert!(bench.run(&["report", "run.narrows", "--html", "out.html"]).status.success());
    let page = std::fs::read_to_string(bench.path("out.html")).unwrap();
    assert!(page.contains("The load was ended early, "), "the page does not say that the load was ended early");
    let again = bench.run(&["diagnose", "run.narrows"]);
    assert!(text(&again.stdout).contains("The load was ended early, "), "{}", text(&again.stdout));
}
