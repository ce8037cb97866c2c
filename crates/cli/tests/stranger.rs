//! A program that knows nothing of Narrows, traced by its own SDK: the N+1 is named where it is, and only there.
//!
//! Needs Python with venv and its package index; `NARROWS_TEST_SKIP_PYTHON=1` leaves it out, and `./test` counts that.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod common;

use std::path::{Path, PathBuf};

use common::{Bench, ask, text};

fn experiment() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fastapi-orders/experiment.yaml")
}

#[test]
fn the_n_plus_one_is_named_in_the_first_variant_only() {
    if std::env::var_os("NARROWS_TEST_SKIP_PYTHON").is_some_and(|value| value == "1") {
        return;
    }
    let bench = Bench::new("");
    let file = experiment();
    let run = bench.run(&["run", file.to_str().unwrap(), "--time-scale", "0.5", "--out", "run.narrows"]);
    let said = text(&run.stdout);
    assert!(run.status.code() == Some(0) || run.status.code() == Some(1), "{said}{}", text(&run.stderr));

    let found = |variant: &str| {
        let sql = format!(
            "select coalesce(group_concat(detector), '') from findings f join trials t on t.id = f.trial where t.variant = '{variant}'"
        );
        ask(&bench.path("run.narrows"), &sql)
    };
    assert!(found("as-is").split(',').any(|detector| detector == "n-plus-one"), "as-is: {}\n{said}", found("as-is"));
    assert!(!found("fixed").contains("n-plus-one"), "fixed: {}\n{said}", found("fixed"));
    assert!(said.to_lowercase().contains("select"), "the query is printed:\n{said}");

    let spans =
        "select count(*) from spans where trace_id in (select trace_id from samples where trace_id is not null)";
    assert_ne!(ask(&bench.path("run.narrows"), spans), "0", "samples and spans meet by trace id");
    assert_eq!(ask(&bench.path("run.narrows"), "select count(distinct weight) from spans where weight > 1"), "1");
}
