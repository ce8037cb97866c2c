//! `narrows capacity` on a store whose capacity is known by construction: 400 request units a second on one partition,
//! and one for each read, so that from 400 reads a second on the rest is refused with 429.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![cfg(feature = "reference-systems")]

mod common;

use common::{Bench, ask, text};
use serde_json::Value;

/// Reads that one second of the store admits.
const ADMITTED: f64 = 400.0;

fn store(throughput: u32, objective: &str) -> String {
    format!(
        r#"
experiment: reads
system:
  services:
    store:
      run: [narrows, engine, docstore, --port, "${{port}}", --partitions, "1", --throughput, "{throughput}", --documents, "110"]
load:
  target: store
  scenarios:
    read:
      model: constant-vus
      vus: 4
      duration: 5s
      request:
        method: GET
        path: /dbs/dronedelivery/colls/utilization/docs/d0007
        headers:
          x-ms-documentdb-partitionkey: '["o0000"]'
objectives: ["{objective}"]
"#
    )
}

const QUICK: [&str; 8] = ["capacity", "--probe", "2s", "--precision", "25%", "--out", "run.narrows", "--json"];

fn search(bench: &Bench, more: &[&str]) -> (Option<i32>, Value, String) {
    let run = bench.run(&[&QUICK[..], more].concat());
    let said = text(&run.stderr);
    (run.status.code(), serde_json::from_slice(&run.stdout).unwrap_or(Value::Null), said)
}

#[test]
fn the_capacity_lies_between_a_rate_that_was_kept_and_one_that_was_refused() {
    let bench = Bench::new(&store(ADMITTED as u32, "error_rate < 5%"));
    let (code, told, said) = search(&bench, &["--from", "100", "--to", "3200", "--repeat", "1"]);
    assert_eq!(code, Some(0), "{said}");
    let capacity = &told["capacities"][0];
    assert_eq!(capacity["verdict"]["kind"], "found", "{capacity:#}");
    let number = |key: &str| capacity["verdict"][key].as_f64().unwrap();
    // Five in a hundred may be refused, so it keeps up to 421/s.
    assert!(number("low") <= ADMITTED / 0.95 && number("high") >= ADMITTED, "{capacity:#}");
    assert!((100.0..=ADMITTED / 0.95).contains(&number("rate")), "{capacity:#}");
    assert_eq!(capacity["gives_way"]["what"], "error_rate", "{capacity:#}");
    let sentence = capacity["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("It keeps \"error_rate < 5%\" up to "), "{sentence}");

    let file = bench.path("run.narrows");
    assert_eq!(ask(&file, "select state from run"), "complete");
    assert_eq!(ask(&file, "select count(*) from trials"), "1");
    let probes = capacity["probes"].as_array().unwrap().len().to_string();
    assert_eq!(ask(&file, "select count(*) from windows where kind = 'steady'"), probes);
    assert_eq!(ask(&file, "select count(*) from windows where label = '100/s'"), "1");
    assert!(bench.run(&["diagnose", "run.narrows"]).status.code().is_some_and(|code| code < 2));
}

#[test]
fn a_system_that_breaks_at_once_is_exit_code_1() {
    let bench = Bench::new(&store(1, "error_rate < 5%"));
    let (code, told, said) = search(&bench, &["--from", "200"]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(told["capacities"][0]["verdict"]["kind"], "nowhere", "{told:#}");
    assert_eq!(told["capacities"][0]["probes"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_searched_is_exit_code_2() {
    let bench = Bench::new(&store(400, "rate >= 100/s"));
    let (code, _, said) = search(&bench, &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no objective that a rate can break"), "{said}");
    let (code, _, said) = search(&bench, &["--from", "20", "--to", "10"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--from is above --to"), "{said}");
    assert!(!bench.path("run.narrows").exists());
}
