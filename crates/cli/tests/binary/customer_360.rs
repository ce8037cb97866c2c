//! The services of customer-360 by the real binary, and its experiment without sidecars.
//!
//! They need PostgreSQL (Debian package postgresql). `NARROWS_TEST_SKIP_POSTGRES=1` leaves them out; what is not
//! installed is skipped too. Those of the services in Spring Boot also need a JDK with Maven, which `NARROWS_TEST_SKIP_JAVA=1`
//! leaves out, and Maven Central, unless Maven has its packages already.

use crate::common::{Bench, ask, eventually, marked, text};
use narrows_testing::{has_programs, is_disabled, postgres_programs, skip};

const SYSTEM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/customer-360");

fn bench() -> Bench {
    let file = |name: &str| std::fs::read_to_string(format!("{SYSTEM}/{name}")).unwrap();
    let bench = Bench::new(&file("experiment.yaml"));
    std::fs::write(bench.path("schema.sql"), file("schema.sql")).unwrap();
    bench
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bench = Bench::new("");
    for (arguments, expected) in [
        (&["customer", "--person", "nowhere"][..], "expected http://HOST:PORT"),
        (&["person"], "--name"),
        (&["name", "--database", "postgres://a:secret@b:c/d"], "expected postgres://USER@HOST:PORT/DATABASE"),
        (
            &["name", "--database", "postgres://a@b/c", "--connections", "0"],
            "--connections is \"0\", expected 1 to 256",
        ),
        (&["name", "--database", "postgres://a@b/c", "--wait-ms=-1"], "expected a number from 0"),
        (&["names"], "unrecognized subcommand"),
    ] {
        let refused = bench.run(&[&["system", "customer-360"], arguments].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected) && !said.contains("secret"), "{arguments:?}: {said}");
    }
}

/// The order of the variants is what the rate depends on, so both ways are looked at: measured before, and not.
#[test]
fn the_chain_is_loaded_and_its_rate_is_one_that_was_reached() {
    if postgres_programs().is_none() {
        return;
    }
    let bench = bench();
    let variants = ["--variant", "plain-unthrottled", "--variant", "plain-equal-rate"];
    // A rate that no machine reaches.
    let unreachable = std::fs::read_to_string(bench.path("experiment.yaml")).unwrap().replace("10660", "9000000");
    std::fs::write(bench.path("experiment.yaml"), unreachable).unwrap();
    let output = bench.run(&[&["run", "--time-scale", "0.03", "--out", "run.narrows"], &variants[..]].concat());
    let said = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let run = bench.path("run.narrows");
    let of = |variant: &str, what: &str| ask(&run, &format!("select {what} from trials where variant = '{variant}'"));
    assert_eq!(of("plain-unthrottled", "state"), "done");
    let why = of("plain-equal-rate", "caveats");
    assert!(why.contains("40 % of the ") && why.contains("that plain-unthrottled reached"), "{why}");
    assert!(why.contains("whether sidecar-unthrottled and envoy-unthrottled could hold it is not known"), "{why}");
    let rate: f64 = of("plain-equal-rate", "json_extract(parameters, '$.rate')").parse().unwrap();
    assert!(rate > 1.0 && rate < 9_000_000.0, "{rate}");
    assert_eq!(of("plain-unthrottled", "json_extract(parameters, '$.rate')"), "9000000");
    for (service, name) in [
        ("customer", "GET /api/customer"),
        ("person", "GET /api/person"),
        ("name", "GET /api/name"),
        ("name", "SELECT name"),
    ] {
        let spans = format!("select count(*) > 0 from spans where service = '{service}' and name = '{name}'");
        assert_eq!(ask(&run, &spans), "1", "{service} {name}");
    }
    let id = ask(&run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
}

#[test]
fn the_services_in_spring_boot_are_built_once_and_loaded() {
    if is_disabled("NARROWS_TEST_SKIP_JAVA") {
        return skip("NARROWS_TEST_SKIP_JAVA is set");
    }
    if postgres_programs().is_none() || !has_programs(&["mvn", "java", "javac"]) {
        return;
    }
    let bench = bench();
    std::fs::copy(format!("{SYSTEM}/spring.yaml"), bench.path("spring.yaml")).unwrap();
    let run = |file: &str| {
        let arguments =
            ["run", "spring.yaml", "--variant", "spring-unthrottled", "--time-scale", "0.02", "--out", file];
        let output = bench.narrows(&arguments).env("XDG_CACHE_HOME", bench.path("cache")).output().unwrap();
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
        let of_load = |what: &str| ask(&bench.path(file), &format!("select {what} from load_seconds"));
        assert_eq!(of_load("sum(succeeded) > 0"), "1");
        assert_eq!(of_load("sum(errors_status + errors_connect + errors_reset)"), "0");
        let files = std::fs::read_dir(bench.path("cache/narrows")).unwrap().map(|entry| entry.unwrap());
        files.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect::<Vec<_>>()
    };
    let built = run("first.narrows");
    assert!(built.len() == 1 && built[0].0.to_string_lossy().ends_with(".jar"), "{built:?}");
    assert_eq!(run("second.narrows"), built, "the jar is kept");
}
