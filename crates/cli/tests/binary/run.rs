//! `narrows run` on a program that every machine has.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Bench, TWO_FILE_SERVERS, ask, eventually, free_port, has_python, text};

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

#[test]
fn a_parameter_is_given_another_value_in_every_variant_and_the_page_lies_beside_the_run() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(TWO_FILE_SERVERS);
    let shortest = ["run", "--time-scale", "0.25", "--out", "run.narrows", "--set", "level=8", "--set", "level=9 b"];
    let run = bench.run(&[&shortest[..], &["--html"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let file = bench.path("run.narrows");
    let levels = "select group_concat(json_extract(parameters, '$.level')) from trials";
    assert_eq!(ask(&file, levels), "9 b,9 b");
    assert!(ask(&file, "select experiment_source from run").contains("parameters: { level: \"9 b\" }"));
    assert!(text(&run.stderr).ends_with("\nrun file: run.narrows\nreport:   run.html\n"), "{}", text(&run.stderr));
    let page = std::fs::read_to_string(bench.path("run.html")).unwrap();
    assert!(page.to_lowercase().starts_with("<!doctype html>") && page.contains("9 b"));

    std::fs::remove_file(bench.path("run.html")).unwrap();
    let report = bench.run(&["report", "run.narrows"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    assert_eq!(text(&report.stderr), "wrote run.html from run.narrows\n");
    assert_eq!(std::fs::read_to_string(bench.path("run.html")).unwrap(), page);
}

#[test]
fn what_is_set_must_be_a_parameter_of_the_experiment() {
    let bench = Bench::new(TWO_FILE_SERVERS);
    for (arguments, expected) in [
        (
            &["run", "--set", "levl=2"][..],
            "error: no parameter is named `levl`; the experiment has `level`\nhint: did you mean `level`?\n",
        ),
        (&["run", "--set", "pool=2"], "error: no parameter is named `pool`; the experiment has `level`\n"),
        (&["run", "--set", "level"], "expected a parameter and its value, such as pool=20"),
        (
            &["run", "--html", "experiment.yaml"],
            "error: expected the name of a page after `--html`, found `experiment.yaml`",
        ),
    ] {
        let said = bench.run(arguments);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}");
        assert!(text(&said.stderr).contains(expected), "{arguments:?}: {}", text(&said.stderr));
    }
    assert_eq!(std::fs::read_to_string(bench.path("experiment.yaml")).unwrap(), TWO_FILE_SERVERS);
}

#[test]
fn the_page_of_a_run_is_opened_in_a_browser_or_named() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(TWO_FILE_SERVERS);
    let browser = bench.path("browser");
    std::fs::write(&browser, "#!/bin/sh\necho \"$1\" > opened\n").unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let shortest = ["run", "--variant", "first", "--time-scale", "0.25", "--open", "--out"];
    let mut run = bench.narrows(&[&shortest[..], &["one.narrows"]].concat());
    assert!(run.env("BROWSER", &browser).output().unwrap().status.success());
    let opened = || std::fs::read_to_string(bench.path("opened")).is_ok_and(|page| page == "one.html\n");
    eventually("opening", opened);

    let none = bench.path("none");
    let report = bench.narrows(&["report", "one.narrows", "--open"]).env("PATH", &none).output().unwrap();
    let said = text(&report.stderr);
    assert!(report.status.success() && said.ends_with("; open one.html in a browser\n"), "{said}");
}

#[test]
fn a_service_that_listens_on_another_port_than_its_own_is_told_where() {
    if !has_python() {
        return;
    }
    let port = free_port();
    let fixed = TWO_FILE_SERVERS.replace("\"${port}\"", &format!("\"{port}\""));
    let bench = Bench::new(&fixed.replace("ready: \"GET /\"", "ready: { http: \"GET /\", timeout: 5s }"));
    let run = bench.run(&["run", "--variant", "first"]);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("error: files: was not ready after 5.00 s: connecting to 127.0.0.1:"), "{said}");
    let hint = format!(
        "hint: it listens on port {port}; give it its port in `run` as \"${{port}}\" or let it read the variable PORT, or fix \
         the port with `port:`\n"
    );
    assert!(said.ends_with(&hint), "{said}");
}
