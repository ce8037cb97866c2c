//! `narrows capacity` on a store whose capacity is known by construction: 400 request units a second on one partition,
//! and one for each read, so that from 400 reads a second on the rest is refused with 429.

use crate::common::{Bench, ask, text};
use narrows_testing::measure;
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
      run: [narrows, engine, docstore, --no-auth, --port, "${{port}}", --partitions, "1", --throughput, "{throughput}", --documents, "110"]
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

const QUICK: [&str; 5] = ["capacity", "--probe", "2s", "--out", "run.narrows"];

struct SearchOutput {
    code: Option<i32>,
    /// Standard output.
    told: String,
    /// Standard error.
    said: String,
}

fn search(bench: &Bench, more: &[&str]) -> SearchOutput {
    let run = bench.run(&[&QUICK[..], more].concat());
    SearchOutput { code: run.status.code(), told: text(&run.stdout), said: text(&run.stderr) }
}

fn json(told: &str) -> Value {
    serde_json::from_str(told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

#[test]
fn the_capacity_lies_between_a_rate_that_was_kept_and_one_that_was_refused() {
    measure(|| {
        let bench = Bench::new(&store(ADMITTED as u32, "error_rate < 5%"));
        let search_it = ["--precision", "25%", "--json", "--from", "100", "--to", "3200", "--repeat", "1"];
        let SearchOutput { code, told, said } = search(&bench, &search_it);
        assert_eq!(code, Some(0), "{said}");
        let capacity = &json(&told)["capacities"][0];
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
    });
}

#[test]
fn a_first_rate_that_is_too_high_is_halved_until_the_objectives_are_kept() {
    measure(|| {
        let bench = Bench::new(&store(ADMITTED as u32, "error_rate < 5%"));
        let search_it = ["--precision", "25%", "--json", "--from", "1600", "--repeat", "0"];
        let SearchOutput { code, told, said } = search(&bench, &search_it);
        assert_eq!(code, Some(0), "{said}");
        let capacity = &json(&told)["capacities"][0];
        let offered: Vec<f64> =
            capacity["probes"].as_array().unwrap().iter().map(|probe| probe["offered"].as_f64().unwrap()).collect();
        assert_eq!(offered[..2], [1600.0, 800.0], "{capacity:#}");
        assert_eq!(capacity["verdict"]["kind"], "found", "{capacity:#}");
        let rate = capacity["verdict"]["rate"].as_f64().unwrap();
        assert!((100.0..=ADMITTED / 0.95).contains(&rate), "{capacity:#}");
    });
}

#[test]
fn a_system_that_breaks_at_every_rate_is_exit_code_1() {
    measure(|| {
        let bench = Bench::new(&store(1, "error_rate < 5%"));
        let search_it = ["--precision", "25%", "--json", "--from", "20", "--floor", "10"];
        let SearchOutput { code, told, said } = search(&bench, &search_it);
        assert_eq!(code, Some(1), "{said}");
        let capacity = &json(&told)["capacities"][0];
        assert_eq!((&capacity["verdict"]["kind"], &capacity["verdict"]["rate"]), (&"nowhere".into(), &10.0.into()));
        assert_eq!(capacity["probes"].as_array().unwrap().len(), 2, "{capacity:#}");
        let sentence = capacity["sentence"].as_str().unwrap();
        assert!(sentence.contains("even at 10.0/s, the lowest rate of the search"), "{sentence}");
    });
}

#[test]
fn each_variant_has_a_search_of_its_own_and_a_row_in_a_table() {
    measure(|| {
        let source = store(ADMITTED as u32, "error_rate < 5%")
            .replace("--throughput, \"400\"", "--throughput, \"${admitted}\"")
            + "parameters: { admitted: 400 }\nvariants: [{ name: as-is }, { name: half, admitted: 200 }]\n";
        let bench = Bench::new(&source);
        let quick = ["--precision", "50%", "--repeat", "0", "--from", "100", "--to", "3200"];
        let SearchOutput { code, told, said } = search(&bench, &quick);
        assert_eq!(code, Some(0), "{told}{said}");
        each_variant_has_its_row(&told);
        assert_eq!(ask(&bench.path("run.narrows"), "select group_concat(variant, ' ') from trials"), "as-is half");

        let one = [&QUICK[..3], &quick, &["--out", "one.narrows", "--variant", "half"]].concat();
        let one = bench.run(&one);
        assert_eq!(ask(&bench.path("one.narrows"), "select group_concat(variant, ' ') from trials"), "half");
        assert!(!text(&one.stdout).contains("× the first"), "one variant needs no table: {}", text(&one.stdout));
    });
}

#[test]
fn the_smallest_size_that_keeps_the_objectives_is_found_and_larger_ones_are_not_tried() {
    measure(|| {
        let source = store(ADMITTED as u32, "error_rate < 5%")
            .replace("--throughput, \"400\"", "--throughput, \"${admitted}\"")
            + "parameters: { admitted: 400 }\n";
        let bench = Bench::new(&source);
        let sizes = |values: &str, out: &str| {
            let arguments = ["capacity", "--probe", "2s", "--repeat", "0", "--precision", "50%", "--to", "300"];
            bench.run(&[&arguments[..], &["--size", &format!("admitted={values}"), "--out", out]].concat())
        };
        let found = sizes("800,100,400", "found");
        let told = text(&found.stdout);
        assert_eq!(found.status.code(), Some(0), "{told}{}", text(&found.stderr));
        assert!(
            told.ends_with("The smallest size that keeps \"error_rate < 5%\" at 300/s is admitted 400.\n"),
            "{told}"
        );
        assert!(bench.path("found/02.narrows").exists() && !bench.path("found/03.narrows").exists());

        let none = sizes("50,100", "none");
        let told = text(&none.stdout);
        assert_eq!(none.status.code(), Some(1), "{told}{}", text(&none.stderr));
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("No size keeps \"error_rate < 5%\" at 300/s. Best is admitted 100. It keeps "),
            "{told}"
        );
        assert!(bench.path("none/best.narrows").exists());

        let alone = bench.run(&["capacity", "--size", "admitted=100"]);
        assert!(text(&alone.stderr).contains("--to"), "{}", text(&alone.stderr));
    });
}

fn each_variant_has_its_row(told: &str) {
    let row = |variant: &str| {
        let mut lines = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.rfind(|cells| cells.len() > 4 && cells[0] == variant).unwrap_or_else(|| panic!("{variant}: {told}"))
    };
    let rate = |variant| {
        let shown = row(variant)[1].trim_end_matches("/s").replace(',', "");
        shown.parse::<f64>().unwrap_or_else(|_| panic!("{variant} has no rate: {told}"))
    };
    assert!(rate("as-is") > rate("half"), "{told}");
    assert!(row("as-is").ends_with(&["1.00", "error_rate"]) && row("half").ends_with(&["error_rate"]), "{told}");
}

#[test]
fn the_load_of_another_program_cannot_be_searched() {
    let source = store(400, "error_rate < 5%");
    let (system, _) = source.split_once("load:").unwrap();
    let bench = Bench::new(&format!("{system}load: {{ command: [k6, run] }}\nobjectives: [\"p95 < 1s\"]\n"));
    let SearchOutput { code, said, .. } = search(&bench, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`load.command`") && said.contains("`load.scenarios`"), "{said}");
    assert!(!bench.path("run.narrows").exists());
}

#[test]
fn what_cannot_be_searched_is_exit_code_2() {
    let bench = Bench::new(&store(400, "rate >= 100/s"));
    let SearchOutput { code, said, .. } = search(&bench, &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no objective that a rate can break"), "{said}");
    let SearchOutput { code, said, .. } = search(&bench, &["--from", "20", "--to", "10"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--from is above --to"), "{said}");
    let SearchOutput { code, said, .. } = search(&bench, &["--from", "20", "--floor", "30"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--floor is above --from"), "{said}");
    assert!(!bench.path("run.narrows").exists());
}
