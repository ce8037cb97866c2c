//! The experiments of micron by the real binary: what its four variants show, what is lost with a node of the database,
//! and what few clients do to a hash.
//!
//! They need MariaDB, Galera, rsync, HAProxy and NGINX (Debian packages mariadb-server, galera-4, rsync, haproxy,
//! nginx-light).
//! `NARROWS_TEST_SKIP_MICRON=1` leaves them out; what is not installed is skipped too.

use std::path::Path;

use crate::common::{Bench, ask, eventually, marked, text};
use narrows_testing::{has_galera, has_programs, is_disabled, skip};

const SYSTEM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/micron");
const SKIP: &str = "NARROWS_TEST_SKIP_MICRON";

fn can_run() -> bool {
    if is_disabled(SKIP) {
        skip(&format!("{SKIP} is set"));
        return false;
    }
    has_galera() && has_programs(&["mariadbd", "rsync", "haproxy", "nginx"])
}

/// An experiment of the system, with these texts replaced, in a folder of its own.
fn bench(file: &str, changes: &[(&str, &str)]) -> Bench {
    let read = |name: &str| std::fs::read_to_string(format!("{SYSTEM}/{name}")).unwrap();
    let mut experiment = read(file);
    for (from, to) in changes {
        assert!(experiment.contains(from), "{file} has no `{from}`");
        experiment = experiment.replace(from, to);
    }
    let bench = Bench::new(&experiment);
    std::fs::write(bench.path("schema.sql"), read("schema.sql")).unwrap();
    bench
}

/// Runs it and returns what it printed.
fn run(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.run(&[&["run", "--out", "run.narrows"], arguments].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select state from run"), "complete", "{said}");
    said
}

fn nothing_is_left(run: &Path) {
    let id = ask(run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
}

/// Successes and failures of a scenario in a variant, warm-up included.
fn responses(run: &Path, variant: &str, scenario: &str) -> (u64, u64) {
    let sum = |what: &str| {
        let sql = format!(
            "select coalesce(sum({what}), 0) from load_seconds s join trials t on t.id = s.trial \
             where t.variant = '{variant}' and s.scenario = '{scenario}'"
        );
        ask(run, &sql).parse::<u64>().unwrap()
    };
    let failed = "errors_connect + errors_reset + errors_timeout + errors_status + errors_check + errors_protocol";
    (sum("succeeded"), sum(failed))
}

#[test]
fn every_file_is_an_experiment() {
    let bench = Bench::new("");
    for file in ["experiment", "retries", "few-clients", "node-loss", "endurance"] {
        let check = bench.run(&["check", &format!("{SYSTEM}/{file}.yaml")]);
        assert!(check.status.success(), "{file}: {}", text(&check.stdout));
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bench = Bench::new("");
    for (arguments, expected) in [
        (&["--database", "postgres://a@b/c"][..], "expected mysql://USER[:PASSWORD]@HOST:PORT/DATABASE"),
        (&["--database", "mysql://a@b:1/c", "--moved-sessions", "kept"], "expected served or refused"),
        (&["--database", "mysql://a@b:1/c", "--retries", "101"], "expected 0 to 100"),
    ] {
        let refused = bench.run(&[&["system", "micron", "instance"], arguments].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// That it is the same at every speed: who fails and why, what a page calls, where sessions stay, that nothing is lost.
#[test]
fn the_first_and_the_last_variant_differ_as_they_should() {
    if !can_run() {
        return;
    }
    // Few users and few items: transfers still meet, and no machine is too slow for them.
    let bench = bench("experiment.yaml", &[("value: 950", "value: 95"), ("times: 1.1", "times: 6.0")]);
    let said = run(&bench, &["--time-scale", "0.05", "--variant", "initial", "--variant", "three-nodes"]);
    let run = bench.path("run.narrows");
    for variant in ["initial", "three-nodes"] {
        for scenario in ["reads", "ledger"] {
            let (succeeded, failed) = responses(&run, variant, scenario);
            assert!(succeeded > 0 && failed == 0, "{scenario} in {variant}: {succeeded} and {failed}\n{said}");
        }
    }
    let (succeeded, failed) = responses(&run, "three-nodes", "writes");
    assert!(succeeded > 0 && failed == 0, "{succeeded} and {failed}\n{said}");
    // Limits come from a variant that ran first.
    let limits = "select group_concat(distinct json_extract(parameters, '$.database_cpus')) from trials \
                  where instr(caveats, 'parameter-by-used-cpu') > 0 and instr(caveats, '\"cores\":null') = 0 \
                  and started_ns > \
                  (select ended_ns from trials where variant = 'without-limit')";
    let limit: f64 = ask(&run, limits).parse().unwrap_or_else(|_| panic!("one limit\n{said}"));
    assert!(limit > 0.05, "{limit} cores\n{said}");
    let found = |variant: &str, detector: &str| {
        let sql = format!(
            "select count(*) from findings f join trials t on t.id = f.trial \
             where t.variant = '{variant}' and f.detector = '{detector}'"
        );
        ask(&run, &sql) != "0"
    };
    assert!(found("initial", "n-plus-one") && !found("three-nodes", "n-plus-one"), "{said}");
    let states = "select group_concat(state, ' ') from (select distinct json_extract(attributes, '$.\"micron.session.state\"') \
                  as state from spans join trials t on t.id = trial where t.variant = 'three-nodes' \
                  and kind = 'server' and service = 'micron' order by state)";
    assert_eq!(ask(&run, states), "kept new", "{said}");
    nothing_is_left(&run);
}

#[test]
fn nothing_acknowledged_is_lost_with_a_node() {
    if !can_run() {
        return;
    }
    let bench = bench("node-loss.yaml", &[]);
    let said = run(&bench, &[]);
    let run = bench.path("run.narrows");
    let (succeeded, failed) = responses(&run, "baseline", "writes");
    assert!(succeeded > 0 && failed > 0, "a node was away: {succeeded} and {failed}\n{said}");
    assert_eq!(ask(&run, "select caveats like '%database[1] was killed 1%' from trials"), "1", "{said}");
    let (matched, failed) = responses(&run, "baseline", "ledger");
    assert!(matched > 0 && failed == 0, "{matched} and {failed} responses of the ledger\n{said}");
    let asked = "select count(distinct json_extract(attributes, '$.\"narrows.replica\"')) from spans \
                 where name = 'GET /ledger' and kind = 'server'";
    assert_eq!(ask(&run, asked), "6", "every instance was asked: {said}");
    nothing_is_left(&run);
}

#[test]
fn the_endurance_test_can_be_short() {
    if !can_run() {
        return;
    }
    // A few users who think less, so that a quarter of a minute has requests of each kind.
    let changes = [("value: 3620", "value: 38"), ("value: 190", "value: 2"), ("value: 4s to 12s", "value: 500ms")];
    let bench = bench("endurance.yaml", &[&changes[..], &[("think_time: 5m", "think_time: 1s")]].concat());
    let said = run(&bench, &["--time-scale", "0.0005", "--variant", "three-nodes"]);
    let run = bench.path("run.narrows");
    for scenario in ["reads", "writes", "ledger"] {
        let (succeeded, failed) = responses(&run, "three-nodes", scenario);
        assert!(succeeded > 0 && failed == 0, "{scenario}: {succeeded} and {failed}\n{said}");
    }
    nothing_is_left(&run);
}

#[test]
fn a_hash_of_few_addresses_is_named_as_the_tests_own_doing() {
    if !can_run() {
        return;
    }
    let bench = bench("few-clients.yaml", &[]);
    let said = run(&bench, &["--time-scale", "0.3"]);
    let found = "select group_concat(t.variant || ' ' || f.detector, ', ') from findings f join trials t on t.id = f.trial \
                 where f.detector in ('few-clients', 'hot-partition')";
    assert_eq!(ask(&bench.path("run.narrows"), found), "test-engines few-clients", "{said}");
    nothing_is_left(&bench.path("run.narrows"));
}
