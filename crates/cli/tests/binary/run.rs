//! `narrows run` on a program that every machine has.

use crate::common::{Bench, TWO_FILE_SERVERS, ask, has_python, text};

#[test]
fn a_run_ends_with_a_table_and_a_sentence_and_one_plain_file() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(TWO_FILE_SERVERS);
    let run = bench.run(&["run", "--out", "run.narrows", "--time-scale", "0.5"]);
    let said = text(&run.stdout);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(said.contains("first") && said.contains("second"), "{said}");
    let file = bench.path("run.narrows");
    assert_eq!(ask(&file, "select state from run"), "complete");
    assert_eq!(ask(&file, "select count(*) from spans"), "0");
    let counted = ask(&file, "select sum(succeeded) from load_seconds");
    assert_eq!(ask(&file, "select cast(round(sum(weight)) as integer) from samples"), counted);
    assert_eq!(ask(&file, "select sum(count) from load_latency where measure = 'latency'"), counted);
    assert_ne!(ask(&file, "select count(*) from metrics where service = 'files' and name = 'process.memory.rss'"), "0");
    assert_ne!(ask(&file, "select count(*) from logs where service = 'files'"), "0");
    assert!(!bench.path("run.narrows-wal").exists());
}

#[test]
fn one_variant_can_be_chosen_and_an_unknown_one_is_an_error() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(TWO_FILE_SERVERS);
    let run = bench.run(&["run", "--variant", "second", "--time-scale", "0.5", "--out", "run.narrows"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(ask(&bench.path("run.narrows"), "select group_concat(variant) from trials"), "second");

    let wrong = bench.run(&["run", "--variant", "third"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("no variant is named `third`; the experiment has `first`, `second`"));
}

#[test]
fn a_missed_objective_is_exit_code_1() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(&format!("{TWO_FILE_SERVERS}objectives: [\"rate >= 1000000/s\"]\n"));
    let run = bench.run(&["run", "--variant", "first", "--time-scale", "0.5"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    assert!(text(&run.stdout).contains("rate >= 1000000/s"));
}

#[test]
fn a_report_is_one_page_without_outside_resources() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(TWO_FILE_SERVERS);
    assert!(bench.run(&["run", "--variant", "first", "--time-scale", "0.5", "--out", "run.narrows"]).status.success());
    let report = bench.run(&["report", "run.narrows", "--html", "out.html"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let page = std::fs::read_to_string(bench.path("out.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("<svg") && page.contains("file-server"));
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn run_files_that_are_none_get_an_error() {
    let bench = Bench::new(TWO_FILE_SERVERS);
    for arguments in [&["diagnose", "experiment.yaml"][..], &["diagnose", "absent.narrows"], &["diagnose"]] {
        let said = bench.run(arguments);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}");
        assert!(text(&said.stderr).starts_with("error: "), "{}", text(&said.stderr));
    }
}

#[test]
fn a_target_whose_name_has_no_address_fails_the_run_and_is_named() {
    let scenario = "{ model: constant-vus, vus: 1, duration: 1s, request: GET / }";
    let source = format!("experiment: nowhere\nload:\n  target: http://a..b:80\n  scenarios: {{ main: {scenario} }}\n");
    let bench = Bench::new(&source);
    let run = bench.run(&["run", "--out", "run.narrows"]);
    assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
    let said = text(&run.stderr);
    assert!(said.contains("error: the load's target `http://a..b:80` does not resolve to an address"), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select state from run"), "failed");
}
