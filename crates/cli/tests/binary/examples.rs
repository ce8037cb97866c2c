//! Programs that know nothing of Narrows, traced by their own languages' tools: what is wrong with each is named when it
//! is switched on, and nothing is when it is off.
//!
//! Each runs healthy and with one fault. All of its faults are in a recorded run (`examples/recorded/`),
//! whose findings a test of `narrows-diagnose` checks.
//!
//! They need Python with venv, Node with npm, Java with Maven, and the package indices of each. `NARROWS_TEST_SKIP_PYTHON=1`
//! and `NARROWS_TEST_SKIP_EXAMPLES=1` leave them out, and `./test` counts that; what is not installed is skipped too.

use std::path::{Path, PathBuf};

use crate::common::{Bench, ask, text};
use narrows_testing::{has_programs, is_disabled, measure, skip};

/// Expected findings by variant: the detector that must come first in it; `None` means that no finding may be about the
/// system.
type Expected = [(&'static str, Option<&'static str>)];

fn experiment(example: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{example}/experiment.yaml"))
}

/// Runs an example until each variant has what is expected, and gives the run to `check`.
fn measure_example(example: &str, time_scale: &str, expected: &Expected, check: impl Fn(&Bench)) {
    measure(|| {
        let (bench, said) = run_once(example, time_scale, expected);
        let odd = odd(&bench, expected);
        assert!(odd.is_empty(), "found {odd:?}, expected {expected:?}\n{said}");
        check(&bench);
    });
}

/// The variants in which something else was found than expected, and what.
fn odd(bench: &Bench, expected: &Expected) -> Vec<(&'static str, Vec<String>)> {
    let found = expected.iter().map(|(variant, detector)| (*variant, *detector, findings(bench, variant)));
    let is_odd = |detector: Option<&str>, found: &[String]| found.first().map(String::as_str) != detector;
    found.filter(|(_, detector, found)| is_odd(*detector, found)).map(|(variant, _, found)| (variant, found)).collect()
}

/// One complete run of the variants, and its output.
fn run_once(example: &str, time_scale: &str, expected: &Expected) -> (Bench, String) {
    let bench = Bench::new("");
    let file = experiment(example);
    let variants = expected.iter().flat_map(|(variant, _)| ["--variant", variant]);
    let options = ["--time-scale", time_scale, "--out", "run.narrows"].into_iter().chain(variants);
    let run = bench.run(&["run", file.to_str().unwrap()].into_iter().chain(options).collect::<Vec<_>>());
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

/// Whether the programs that build and run an example are installed and not disabled; the test is skipped otherwise.
fn can_run(skip_variable: &str, programs: &[&str]) -> bool {
    if is_disabled(skip_variable) {
        skip(&format!("{skip_variable} is set"));
        return false;
    }
    has_programs(programs)
}

#[test]
fn python() {
    if !can_run("NARROWS_TEST_SKIP_PYTHON", &["python3"]) {
        return;
    }
    let expected = [("as-is", Some("n-plus-one")), ("fixed", None)];
    measure_example("fastapi-orders", "0.5", &expected, |bench| {
        let run = bench.path("run.narrows");
        let spans =
            "select count(*) from spans where trace_id in (select trace_id from samples where trace_id is not null)";
        assert_ne!(ask(&run, spans), "0", "samples and spans meet by trace id");
        assert_eq!(ask(&run, "select count(distinct weight) from spans where weight > 1"), "1");
    });
}

#[test]
fn node() {
    if !can_run("NARROWS_TEST_SKIP_EXAMPLES", &["node", "npm"]) {
        return;
    }
    let expected = [("healthy", None), ("cpu", Some("cpu-saturation"))];
    measure_example("express-shop", "0.6", &expected, |_| ());
}

#[test]
fn java() {
    if !can_run("NARROWS_TEST_SKIP_EXAMPLES", &["java", "mvn"]) {
        return;
    }
    let expected = [("healthy", None), ("pool-wait", Some("pool-wait"))];
    measure_example("jdbc-library", "0.6", &expected, |_| ());
}
