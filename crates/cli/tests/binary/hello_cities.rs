//! The workloads of durable orchestrations by the real binary, and their experiment with few of them.

use crate::common::{Bench, ask, eventually, marked, text};
use serde_json::Value;

const EXPERIMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/hello-cities/experiment.yaml"));

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bench = Bench::new("");
    for (arguments, expected) in [
        (&["once", "hello"][..], "expected hello-cities, fan-out-fan-in, counter, periodic or waiting"),
        (&["once", "--n", "0"], "n is \"0\", expected 1 to 10000000"),
        (&["once", "--launch", "later"], "expected direct, entities or one-by-one"),
        (
            &["once", "--store", "tape"],
            "expected files, classic, memory, postgres, postgres-classic, nats, postgres://… or nats://…",
        ),
        (
            &["once", "--store", "nats"],
            "store is \"nats\", expected --nats with the server's connection text beside it",
        ),
        (
            &["once", "--node", "1"],
            "node is \"1\", expected 0: only a store on a server is shared by several processes",
        ),
        (&["once", "--sample", "2"], "sample is \"2\", expected 0 to 1"),
        (&["once", "--partitions", "65"], "option partitions is 65, expected 1 to 64"),
        (&["hub", "--activities", "none"], "expected ordinary or idempotent"),
        (&["hubs"], "unrecognized subcommand"),
    ] {
        let refused = bench.run(&[&["system", "hello-cities"], arguments].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn one_workload_is_a_table_or_json_and_leaves_nothing_behind() {
    let bench = Bench::new("");
    let table = bench.run(&["system", "hello-cities", "once", "--n", "60", "--launch", "entities"]);
    let said = text(&table.stdout);
    assert_eq!(table.status.code(), Some(0), "{}", text(&table.stderr));
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert_eq!((&lines[1][..3], lines[1][5]), (&["hello-cities", "entities", "files"][..], "60"), "{said}");
    let json = bench.run(&["system", "hello-cities", "once", "waiting", "--n", "20", "--store", "classic", "--json"]);
    let figures: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&figures["events"], &figures["store"]), (&Value::from(20), &Value::from("classic")), "{figures}");
    assert!(bench.scratch().is_empty(), "{:?}", bench.scratch());
}

#[test]
fn the_table_has_the_figures_that_the_service_measured_beside_the_published_ones() {
    let few = EXPERIMENT.replace("n: 10000,", "n: 100,").replace("n: 1000 ", "n: 60 ");
    let few = few.replace("runs: 300", "runs: 3").replace("runs: 30", "runs: 2");
    let few = few.replace("value: 8", "value: 2");
    let bench = Bench::new(&few);
    let output = bench.run(&["run", "--json", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = outcome["beside"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{outcome:#}");
    let cells = |row: usize, what: &str| -> Vec<Option<f64>> {
        rows[row]["cells"].as_array().unwrap().iter().map(|cell| cell[what].as_f64()).collect()
    };
    assert_eq!(rows[0]["metric"], "hello_cities.time (s)");
    assert_eq!(cells(0, "published"), [Some(22.5), Some(5.9), None, None]);
    assert_eq!(cells(1, "published"), [Some(445.0), Some(1708.0), None, None]);
    let [times, events, orchestrations] = [0, 1, 2].map(|row| cells(row, "measured"));
    for ((time, events), orchestrations) in times.iter().zip(&events).zip(&orchestrations) {
        assert!(time.is_some_and(|seconds| seconds > 0.0), "{outcome:#}");
        // Medians over runs of either, so they need not belong to one run.
        assert!((events.unwrap() / orchestrations.unwrap() / 10.0 - 1.0).abs() < 1e-6, "{outcome:#}");
    }
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select count(*) from spans where name = 'POST /workloads/{workload}'"), "9");
    let id = ask(&run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
}
