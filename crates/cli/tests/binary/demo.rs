//! `narrows demo`: what it lists, what it refuses, and one run of the real thing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{Bench, ask, eventually, marked, text};
use narrows_testing::measure;
use serde_json::Value;

const VARIANTS: [&str; 5] = ["test-1", "test-2", "test-3", "test-4", "test-5"];

#[test]
fn the_list_is_a_table_on_standard_output() {
    let bench = Bench::new("");
    let list = bench.run(&["demo", "--list"]);
    assert!(list.status.success(), "{}", text(&list.stderr));
    let said = text(&list.stdout);
    let row = said.lines().find(|line| line.starts_with("drone-delivery ")).unwrap();
    assert!(row.contains("under 3 minutes") && row.contains("about 50 minutes"), "{said}");
}

#[test]
fn an_unknown_demo_is_an_error_with_those_there_are() {
    let bench = Bench::new("");
    let near = bench.run(&["demo", "drone-delivry"]);
    assert_eq!(near.status.code(), Some(2));
    assert_eq!(
        text(&near.stderr),
        "error: no demo is named `drone-delivry`; the demos are `customer-360`, `drone-delivery`, `hello-cities`, `hello-cities-nodes`, `micron`\nhint: did you mean `drone-delivery`?\n"
    );
    let far = bench.run(&["demo", "orders"]);
    assert_eq!(far.status.code(), Some(2));
    assert!(
        text(&far.stderr).contains(
            "the demos are `customer-360`, `drone-delivery`, `hello-cities`, `hello-cities-nodes`, `micron`\nhint: `narrows demo --list`"
        ),
        "{}",
        text(&far.stderr)
    );
}

#[test]
fn a_kept_file_takes_no_other_files_place() {
    let bench = Bench::new("");
    std::fs::write(bench.path("drone-delivery.yaml"), "mine").unwrap();
    let refused = bench.run(&["demo", "--keep"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: cannot write drone-delivery.yaml: ") && said.contains("\nhint: "), "{said}");
    assert_eq!(std::fs::read_to_string(bench.path("drone-delivery.yaml")).unwrap(), "mine");
    assert!(!bench.path("runs").exists(), "nothing was run");
}

#[test]
fn a_report_never_takes_the_run_files_place() {
    let bench = Bench::new("");
    let refused = bench.run(&["demo", "--out", "demo.html"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("hint: name it without `.html`"), "{}", text(&refused.stderr));
    let unknown = bench.run(&["demo", "--variant", "test-9"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no variant is named `test-9`"), "{}", text(&unknown.stderr));
}

/// The page of the documentation is what the recorded runs give: no figure on it is written by hand.
#[test]
fn the_page_of_results_is_made_from_recorded_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bench = Bench::new("");
    let made = bench.path("results");
    let from = ["demo", "--all", "--from", "crates/diagnose/corpus/recorded", "--out"];
    let demo = bench.narrows(&from).arg(&made).current_dir(&root).output().unwrap();
    assert!(demo.status.success(), "{}", text(&demo.stderr));
    let page = std::fs::read_to_string(made.with_extension("md")).unwrap();
    let kept = std::fs::read_to_string(root.join("docs/results.md")).unwrap();
    assert!(page == kept, "make docs/results.md again: narrows {} docs/results", from.join(" "));
    assert!(std::fs::read_to_string(made.with_extension("html")).unwrap().contains("fitted: store_delay_ms"));
}

#[test]
fn a_run_that_is_of_no_demo_is_refused_for_the_page() {
    let bench = Bench::new("");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recorded");
    let demo = bench.narrows(&["demo", "--all", "--from"]).arg(recorded).output().unwrap();
    assert_eq!(demo.status.code(), Some(2));
    let said = text(&demo.stderr);
    assert!(said.contains(", expected one of the demos `customer-360`, `drone-delivery`"), "{said}");
}

#[test]
fn the_report_is_opened_with_the_desktops_program() {
    let bench = Bench::new("");
    let opener = bench.path("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\necho \"$1\" > opened\nexit \"${FATE:-0}\"\n").unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bench.path("").display(), std::env::var("PATH").unwrap());
    let shortest = ["demo", "--open", "--variant", "test-4", "--time-scale", "0.005", "--out"];
    let demo = |out: &str, fate: &str| {
        let mut command = bench.narrows(&shortest);
        let said = command.arg(out).env("PATH", &path).env("FATE", fate).output().unwrap();
        assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
        text(&said.stderr)
    };
    assert!(!demo("one.narrows", "0").contains("xdg-open"));
    eventually("opening", || std::fs::read_to_string(bench.path("opened")).is_ok_and(|page| page == "one.html\n"));
    let told = demo("two.narrows", "4");
    assert!(told.ends_with("xdg-open could not open it (exit status: 4); open two.html in a browser\n"), "{told}");
}

#[test]
fn the_tests_of_drone_delivery_tell_their_story() {
    measure(drone_delivery_tells_its_story);
}

fn drone_delivery_tells_its_story() {
    let bench = Bench::new("");
    let demo = bench.run(&["demo", "--keep", "--out", "demo.narrows"]);
    let (said, told) = (text(&demo.stdout), text(&demo.stderr));
    assert_eq!(demo.status.code(), Some(0), "missed objectives are no failure here:\n{said}{told}");
    assert!(told.starts_with("wrote drone-delivery.yaml; ") && told.contains("drone-delivery: 5 tests of "), "{told}");
    assert!(told.contains("run file: demo.narrows\nreport:   demo.html\n"), "{told}");
    assert!(bench.run(&["check", "drone-delivery.yaml"]).status.success(), "the kept file can be run");
    let page = std::fs::read_to_string(bench.path("demo.html")).unwrap();
    assert!(page.to_lowercase().starts_with("<!doctype html>") && VARIANTS.iter().all(|name| page.contains(name)));

    let run = bench.path("demo.narrows");
    assert_eq!(
        ask(&run, "select group_concat(variant || ' ' || state, ', ') from trials"),
        "test-1 done, test-2 done, test-3 done, test-4 done, test-5 done"
    );
    let first_findings = "select group_concat(first, ', ') from (select coalesce(detector, 'none') as first from trials \
                          left join findings on trial = trials.id and rank = 1 where variant <> 'test-5' order by trials.id)";
    let story = "throttling, serial-fan-out, cross-partition-query, cpu-saturation";
    assert_eq!(ask(&run, first_findings), story, "{said}");
    for (detector, variants) in [
        ("throttling", "test-1"),
        ("serial-fan-out", "test-1,test-2"),
        ("cross-partition-query", "test-1,test-2,test-3"),
    ] {
        let found = format!(
            "select coalesce(group_concat(variant), '') from (select variant from trials join findings \
             on trial = trials.id where detector = '{detector}' order by trials.id)"
        );
        assert_eq!(ask(&run, &found), variants, "{detector}:\n{said}");
    }
    figures_hold(&run, &said);
    let id = ask(&run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
}

fn figures_hold(run: &Path, said: &str) {
    let comparison: Value =
        serde_json::from_str(&ask(run, "select value from conclusions where key = 'comparison'")).unwrap();
    let variants: Vec<VariantFigures> =
        comparison["variants"].as_array().unwrap().iter().map(VariantFigures::of).collect();
    assert_eq!(variants.iter().map(|variant| variant.name.as_str()).collect::<Vec<_>>(), VARIANTS);
    for (variant, (charge, calls)) in
        variants.iter().zip([(29.0, 9.0), (29.0, 9.0), (29.0, 9.0), (3.4, 1.0), (3.4, 1.0)])
    {
        assert!(is_near(variant.charge, charge), "{variant:?}, expected {charge} request units per operation\n{said}");
        assert!(is_near(variant.calls, calls), "{variant:?}, expected {calls} successful calls per operation\n{said}");
    }
    for variant in &variants[1..] {
        assert!(variant.throttled < 0.005 * variant.completed, "{variant:?}\n{said}");
    }
    let rises = variants[..4].is_sorted_by(|a, b| a.rate < b.rate);
    assert!(rises, "throughput rises: {variants:?}\n{said}");
    // Two schedulers gain what the machine's cores leave them.
    assert!(variants[4].rate > 0.9 * variants[3].rate, "{variants:?}\n{said}");
}

/// Within 3 %.
fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() <= 0.03
}

/// One variant: its load, and the operation of the scheduler that queries the store.
#[derive(Debug)]
struct VariantFigures {
    name: String,
    rate: f64,
    completed: f64,
    throttled: f64,
    calls: f64,
    charge: f64,
}

impl VariantFigures {
    fn of(variant: &Value) -> Self {
        let operations = variant["operations"].as_array().unwrap().iter();
        let of_scheduler = operations.filter(|operation| operation["service"] == "dronescheduler");
        let operation =
            of_scheduler.max_by(|a, b| number(&a["completed"]).total_cmp(&number(&b["completed"]))).unwrap();
        let calls: Vec<&Value> =
            operation["calls"].as_array().unwrap().iter().filter(|call| call["is_database"] == true).collect();
        let sum = |key: &str| calls.iter().map(|call| number(&call[key])).sum();
        Self {
            name: variant["variant"].as_str().unwrap().to_owned(),
            rate: number(&variant["rate"]),
            completed: number(&operation["completed"]),
            throttled: sum("throttled"),
            calls: sum("succeeded_per_operation"),
            charge: sum("charge_per_operation"),
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("expected a number, found {value}"))
}
