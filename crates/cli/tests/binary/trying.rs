//! `narrows predict --try`: a change that is made in the experiment and measured, one that is kept for the next run, and
//! what is refused.

use serde_json::Value;

use crate::common::{Bench, ask, has_python, text};
use crate::compare::waiting;
use narrows_testing::measure;

const CLOSED: &str = "constant-vus, vus: 2";

/// A second of the waiting service.
fn run(bench: &Bench, out: &str) -> String {
    let ended = bench.run(&["run", "--variant", "main", "--time-scale", "0.5", "--out", out]);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    text(&ended.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_change_is_made_in_the_experiment_and_measured_beside_the_system_as_it_is() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = waiting(CLOSED);
        run(&bench, "runs/first.narrows");
        let replicas =
            ["predict", "first:main", "--try", "add-replicas=web", "--repeat", "2", "--out", "tried.narrows"];
        let tried = bench.run(&[&replicas[..], &["--json"]].concat());
        let said = text(&tried.stderr);
        assert!(said.contains("add-replicas=web,2: replicas of web 1 → 2 (main-add-replicas beside main)"), "{said}");
        let json: Value = serde_json::from_slice(&tried.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(tried.status.code(), Some(if json["is_held"] == true { 0 } else { 1 }), "{said}");
        assert_eq!((&json["format"], &json["before"]["trial"]), (&"narrows-try/1".into(), &"main".into()));
        let measured = &json["prediction"]["measured"];
        assert_eq!(measured["trial"], "main-add-replicas");
        assert_eq!(measured["levels"].as_array().map(Vec::len), Some(1), "{measured:#}");
        let variants = ask(&bench.path("tried.narrows"), "select group_concat(distinct variant) from trials");
        assert!(variants.contains("main-add-replicas"), "{variants}");
        let replicas = "select count(*) from services where service = 'web' group by trial order by 1 desc limit 1";
        assert_eq!(ask(&bench.path("tried.narrows"), replicas), "2");
    });
}

#[test]
fn the_prediction_of_a_change_elsewhere_waits_for_the_next_run() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = waiting(CLOSED);
        run(&bench, "runs/first.narrows");
        let kept = bench.run(&["predict", "first:main", "--try", "add-cpu=machine"]);
        let said = text(&kept.stderr);
        assert_eq!(kept.status.code(), Some(0), "{said}");
        assert!(said.contains("no value of the experiment stands for add-cpu=machine"), "{said}");
        let next = run(&bench, "runs/second.narrows");
        assert!(next.contains("Predicted from first:main for 2 times the CPU for machine: "), "{next}");
        assert!(next.contains("first:main → main"), "{next}");
        let settled = "select count(*) from conclusions where key = 'scored_predictions'";
        assert_eq!(ask(&bench.path("runs/second.narrows"), settled), "1");
    });
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_starts() {
    if !has_python() {
        return;
    }
    let bench = waiting(CLOSED);
    run(&bench, "runs/first.narrows");
    let refused = |arguments: &[&str]| {
        let refused = bench.run(&[&["predict", "first:main", "--try"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused.stdout));
        text(&refused.stderr).to_owned()
    };
    let unknown = refused(&["add-replicas=web", "--parameter", "pool=2"]);
    assert!(unknown.starts_with("error: no value that web is started with is named `pool`\nhint: "), "{unknown}");
    let load = refused(&["more-load=40"]);
    assert!(load.starts_with("error: `more-load` is a change of the load, which `--try` does not make\n"), "{load}");
    std::fs::rename(bench.path("experiment.yaml"), bench.path("moved.yaml")).unwrap();
    let gone = refused(&["add-replicas=web"]);
    assert!(gone.contains("experiment.yaml, is gone\nhint: put it back where it was, or name it with"), "{gone}");
}
