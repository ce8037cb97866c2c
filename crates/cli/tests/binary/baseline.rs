//! `narrows baseline save` and `check`: a run kept in a small file, and later runs beside it.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Bench, end, has_python, text};
use crate::compare::waiting;
use narrows_testing::{has_programs, measure};

const CLOSED: &str = "constant-vus, vus: 2";

fn run(bench: &Bench, variant: &str, out: &str) {
    let ended = bench.run(&["run", "--variant", variant, "--repeat", "3", "--time-scale", "0.5", "--out", out]);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

/// The baseline with another name of its only variant, so that another variant can be checked against it.
fn rename_variant(bench: &Bench, to: &str) {
    let path = bench.path("narrows-baseline.json");
    let mut baseline: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    baseline["variants"][0]["variant"] = json!(to);
    std::fs::write(path, baseline.to_string()).unwrap();
}

#[test]
fn a_worse_run_fails_and_says_so_in_every_form() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = waiting(CLOSED);
        run(&bench, "main", "main.narrows");
        run(&bench, "slow", "slow.narrows");
        let saved = bench.run(&["baseline", "save", "main.narrows"]);
        assert_eq!(saved.status.code(), Some(0), "{}", text(&saved.stderr));
        let same = bench.run(&["baseline", "check", "main.narrows"]);
        assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
        assert!(
            text(&same.stdout).contains("No figure of waiting is worse than its baseline"),
            "{}",
            text(&same.stdout)
        );

        rename_variant(&bench, "slow");
        let files = ["--junit", "junit.xml", "--markdown", "check.md", "--github"];
        let worse = bench.run(&[&["baseline", "check", "slow.narrows"][..], &files].concat());
        let said = text(&worse.stdout);
        assert_eq!(worse.status.code(), Some(1), "{said}{}", text(&worse.stderr));
        assert!(said.contains("waiting is worse than its baseline: ") && said.contains("worse ✗"), "{said}");
        assert!(said.contains("::error title=waiting%3A slow is worse::mean latency: "), "{said}");
        let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
        assert!(read("junit.xml").contains("<failure message=\"mean latency: "), "{}", read("junit.xml"));
        assert!(read("check.md").starts_with("### ❌ waiting\n"), "{}", read("check.md"));
        let json = bench.run(&["baseline", "check", "slow.narrows", "--json"]);
        let json: Value = serde_json::from_slice(&json.stdout).unwrap();
        assert_eq!((&json["format"], &json["is_worse"]), (&json!("narrows-check/1"), &json!(true)));
    });
}

#[test]
fn what_cannot_be_checked_is_refused_with_one_sentence() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = waiting(CLOSED);
        run(&bench, "main", "main.narrows");
        let saved = bench.run(&["baseline", "save", "main.narrows"]);
        assert!(saved.status.success(), "{}", text(&saved.stderr));
        let path = bench.path("narrows-baseline.json");
        let good = std::fs::read_to_string(&path).unwrap();
        let refused = |arguments: &[&str], said: &str, hint: &str| {
            let refused = bench.run(&[&["baseline"][..], arguments].concat());
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
            let stderr = text(&refused.stderr);
            assert!(stderr.starts_with(&format!("error: {said}")) && stderr.contains(hint), "{arguments:?}: {stderr}");
        };
        let with = |old: &str, new: &str| {
            assert!(good.contains(old), "{good}");
            std::fs::write(&path, good.replacen(old, new, 1)).unwrap();
        };
        let check = ["check", "main.narrows"];
        refused(&["check", "main.narrows", "--baseline", "no.json"], "cannot read the baseline no.json: ", "save");
        refused(
            &["save", "main.narrows", "--out", "server.py"],
            "server.py is no baseline: ",
            "hint: it is not overwritten",
        );
        for (old, new, said, hint) in [
            (
                "\"variants\"",
                "\"variant",
                "narrows-baseline.json is no baseline: ",
                "hint: `narrows baseline save` writes one",
            ),
            (
                "\"narrows-baseline/1\"",
                "\"other/1\"",
                "narrows-baseline.json is no baseline: its format is `other/1`",
                "save",
            ),
            (
                "\"cores\": ",
                "\"cores\": 9",
                "cannot check main: the baseline was measured on another machine: ",
                "--accept-machine",
            ),
            (
                "\"waiting\"",
                "\"shop\"",
                "cannot check main: the baseline is of the experiment `shop`",
                "--accept-experiment",
            ),
            (
                "\"main\"",
                "\"other\"",
                "cannot check main: the run has no finished trial of the baseline's variant `other`; it has main",
                "",
            ),
        ] {
            with(old, new);
            refused(&check, said, hint);
        }
        with("\"waiting\"", "\"shop\"");
        let accepted = bench.run(&["baseline", "check", "main.narrows", "--accept-experiment"]);
        assert_eq!(accepted.status.code(), Some(0), "{}", text(&accepted.stderr));
        assert!(text(&accepted.stdout).contains("of another experiment"), "{}", text(&accepted.stdout));
    });
}

/// The steps of the workflow in `docs/guide/in-ci.md` that begin with `narrows`, one after another, as a runner makes them.
#[test]
fn the_workflow_of_the_guide_runs() {
    if !has_python() || !has_programs(&["bash"]) {
        return;
    }
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/in-ci.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, workflow) = page.split_once("<!-- workflow -->").expect("the page has a workflow");
    let workflow = workflow.split("```").nth(1).unwrap();
    let steps: Vec<&str> =
        workflow.lines().filter_map(|line| line.split_once("run: narrows ")).map(|(_, step)| step).collect();
    assert!(steps.len() >= 3, "{workflow}");
    assert!(steps.iter().any(|step| step.starts_with("baseline check")), "{steps:?}");
    let bench = waiting(CLOSED);
    // As on the pull request that adds it.
    let saved =
        bench.run(&["run", "--repeat", "5", "--time-scale", "0.5", "--variant", "main", "--out", "saved.narrows"]);
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    assert!(bench.run(&["baseline", "save", "saved.narrows", "--out", "narrows-baseline.json"]).status.success());
    let summary = bench.path("summary.md");
    for step in steps {
        // The guide's experiment has one variant and takes minutes.
        let step = match step.starts_with("run ") {
            true => format!("{step} --variant main --time-scale 0.5"),
            false => step.to_owned(),
        };
        let mut shell = Command::new("bash");
        let script = format!("set -e; \"$NARROWS\" {step}");
        shell.args(["-c", &script]).current_dir(bench.path("")).env("NARROWS", env!("CARGO_BIN_EXE_narrows"));
        shell.env("GITHUB_STEP_SUMMARY", &summary).env_remove("NARROWS_RUNS").env("TMPDIR", bench.path("tmp"));
        let output = end(shell);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(matches!(output.status.code(), Some(0 | 1)), "narrows {step}: {said}");
        assert!(output.status.success() || step.starts_with("baseline check"), "narrows {step}: {said}");
    }
    assert!(std::fs::read_to_string(summary).unwrap().starts_with("### "));
}
