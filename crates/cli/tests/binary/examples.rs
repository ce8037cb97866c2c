//! Programs that know nothing of Narrows, traced by their own languages' tools: what is wrong with each is named when it
//! is switched on, and nothing is when it is off.
//!
//! They need Python with venv, Node with npm, Java with Maven, and the package indices of each. `NARROWS_TEST_SKIP_PYTHON=1`
//! and `NARROWS_TEST_SKIP_EXAMPLES=1` leave them out, and `./test` counts that; what is not installed is skipped too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::common::{Bench, ask, is_crowded, text};

/// What an experiment's variants must come to: the variant, and the detector that must speak first in it; none means
/// that no finding may be about the system.
type Expected = [(&'static str, Option<&'static str>)];

/// One example at a time has the machine: beside another one, none would be healthy.
static MACHINE: Mutex<()> = Mutex::new(());

fn experiment(example: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{example}/experiment.yaml"))
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

fn is_there(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// Runs of an example at most, while one finds something else than expected: other programs of the machine can be why.
const RUNS_MAX: usize = 3;

fn run(example: &str, time_scale: &str, expected: &Expected) -> Bench {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 1..RUNS_MAX {
        let (bench, said) = run_once(example, time_scale);
        match odd(&bench, expected).first() {
            None => return bench,
            Some((variant, found)) => {
                writeln!(std::io::stderr().lock(), "once more, as {variant} has {found:?}:\n{said}").unwrap()
            }
        }
    }
    let (bench, said) = run_once(example, time_scale);
    for (variant, found) in odd(&bench, expected) {
        let is_crowded = is_crowded(&bench.path("run.narrows"), variant);
        assert!(is_crowded, "{variant} has {found:?}, expected {expected:?}\n{said}");
    }
    bench
}

/// The variants in which something else was found than expected, and what.
fn odd(bench: &Bench, expected: &Expected) -> Vec<(&'static str, Vec<String>)> {
    let found = expected.iter().map(|(variant, detector)| (*variant, *detector, findings(bench, variant)));
    let is_odd = |detector: Option<&str>, found: &[String]| found.first().map(String::as_str) != detector;
    found.filter(|(_, detector, found)| is_odd(*detector, found)).map(|(variant, _, found)| (variant, found)).collect()
}

/// One run, which is complete, and what it says.
fn run_once(example: &str, time_scale: &str) -> (Bench, String) {
    let bench = Bench::new("");
    let file = experiment(example);
    let run = bench.run(&["run", file.to_str().unwrap(), "--time-scale", time_scale, "--out", "run.narrows"]);
    let said = text(&run.stdout);
    assert!(run.status.code() == Some(0) || run.status.code() == Some(1), "{said}{}", text(&run.stderr));
    assert_eq!(ask(&bench.path("run.narrows"), "select state from run"), "complete");
    (bench, said)
}

/// The detectors that found something in a variant, in order, but for those that speak of the experiment.
fn findings(bench: &Bench, variant: &str) -> Vec<String> {
    let sql = format!(
        "select coalesce(group_concat(detector, ' '), '') from (select detector from findings f join trials t on \
         t.id = f.trial where t.variant = '{variant}' and detector not in ('generator-limited', 'not-steady', \
         'offered-load-limited', 'unequal-rates', 'few-clients') order by rank)"
    );
    let found = ask(&bench.path("run.narrows"), &sql);
    found.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn python() {
    if is_set("NARROWS_TEST_SKIP_PYTHON") {
        return;
    }
    let expected = [("as-is", Some("n-plus-one")), ("fixed", None), ("cpu", Some("cpu-saturation"))];
    let bench = run("fastapi-orders", "0.5", &expected);
    let spans =
        "select count(*) from spans where trace_id in (select trace_id from samples where trace_id is not null)";
    assert_ne!(ask(&bench.path("run.narrows"), spans), "0", "samples and spans meet by trace id");
    assert_eq!(ask(&bench.path("run.narrows"), "select count(distinct weight) from spans where weight > 1"), "1");
}

#[test]
fn node() {
    if is_set("NARROWS_TEST_SKIP_EXAMPLES") || !is_there("npm") {
        println!("skipped: npm is missing, or NARROWS_TEST_SKIP_EXAMPLES is set");
        return;
    }
    let expected = [
        ("healthy", None),
        ("chatty-http", Some("chatty-http")),
        ("serial", Some("serial-fan-out")),
        ("straggler", Some("straggler-branch")),
        ("cpu", Some("cpu-saturation")),
    ];
    run("express-shop", "0.6", &expected);
}

#[test]
fn java() {
    if is_set("NARROWS_TEST_SKIP_EXAMPLES") || !is_there("mvn") {
        println!("skipped: mvn is missing, or NARROWS_TEST_SKIP_EXAMPLES is set");
        return;
    }
    let expected = [
        ("healthy", None),
        ("n-plus-one", Some("n-plus-one")),
        ("pool-wait", Some("pool-wait")),
        ("retry-storm", Some("retry-storm")),
    ];
    run("jdbc-library", "0.6", &expected);
}
