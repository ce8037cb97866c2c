//! Failures of customer-360, by the real binary: failures by kind, the time until all was as before, and
//! the finding that names the culprit.
//!
//! They need PostgreSQL (Debian package postgresql). `NARROWS_TEST_SKIP_POSTGRES=1` leaves them out; what is not
//! installed is skipped too.

use std::path::PathBuf;

use crate::common::{Bench, ask, eventually, marked, text};
use narrows_testing::postgres_programs;

const SYSTEM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/customer-360");
/// Causes that lie in the machine that a test runs on, or are about the load.
const OF_THE_MACHINE: &str = "'cpu-saturation', 'generator-limited', 'offered-load-limited', 'not-steady'";

/// A trial of one variant, in its run file.
struct Trial {
    _bench: Bench,
    run: PathBuf,
}

impl Trial {
    /// `None` if PostgreSQL is missing.
    fn of(variant: &str) -> Option<Self> {
        postgres_programs()?;
        let bench = Bench::new("");
        for file in ["failures.yaml", "schema.sql", "slow-statement.sql", "waiting-statement.sql"] {
            std::fs::copy(format!("{SYSTEM}/{file}"), bench.path(file)).unwrap();
        }
        let shorter = ["--time-scale", "0.7", "--out", "run.narrows"];
        let output = bench.run(&[&["run", "failures.yaml", "--variant", variant], &shorter[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let trial = Self { run: bench.path("run.narrows"), _bench: bench };
        assert_eq!(trial.ask("state", "trials"), "done");
        let id = trial.ask("id", "run");
        eventually("the end of every process of the run", || marked(&id).is_empty());
        Some(trial)
    }

    fn ask(&self, what: &str, of: &str) -> String {
        ask(&self.run, &format!("select {what} from {of}"))
    }

    fn number(&self, what: &str, of: &str) -> f64 {
        self.ask(&format!("cast(coalesce({what}, 0) as text)"), of).parse().unwrap()
    }

    /// The first finding that is about the system: its detector and what it is about.
    fn first(&self) -> String {
        self.ask(
            "coalesce(max(found), 'none')",
            &format!(
                "(select detector || ' at ' || resource as found from findings where detector not in ({OF_THE_MACHINE}) \
                 order by rank limit 1)"
            ),
        )
    }

    /// Everything found, effects included.
    fn all(&self) -> String {
        self.ask("coalesce(group_concat(body, char(10)), '')", "findings")
    }

    /// A figure of the finding of a detector.
    fn figure(&self, detector: &str, name: &str) -> f64 {
        let of = format!("findings, json_each(body, '$.numbers') where detector = '{detector}'");
        self.number(
            "max(json_extract(value, '$.value'))",
            &format!("{of} and json_extract(value, '$.name') = '{name}'"),
        )
    }

    fn spans_failed_by(&self, service: &str, reasons: &str) -> f64 {
        self.number("count(*)", &format!("spans where service = '{service}' and error_type in ({reasons})"))
    }

    /// That the load recovered from an outage, as the caveat and the finding report it.
    fn recovered(&self, replica: &str) {
        let caveats = self.ask("caveats", "trials");
        assert!(caveats.contains(&format!("{replica} was killed ")), "{caveats}");
        assert!(caveats.contains("succeeded again as before."), "{caveats}");
        let (down, until) = (self.figure("outage", "time down"), self.figure("outage", "time until all was as before"));
        assert!(down > 0.0 && until > 0.0 && until < 10e9, "down {down} ns, as before after {until} ns");
        assert_eq!(self.number("count(*)", "metrics where name = 'narrows.replica.up'"), 2.0);
    }
}

#[test]
fn a_database_that_is_killed_is_the_culprit_and_comes_back() {
    let Some(trial) = Trial::of("database-killed") else { return };
    assert!(trial.number("sum(errors_status)", "load_seconds") > 0.0);
    assert!(trial.spans_failed_by("name", "'database_unreachable', 'database_connection_lost'") > 0.0);
    assert_eq!(trial.first(), "outage at database", "{}", trial.all());
    trial.recovered("database");
    let title = trial.ask("title", "findings where detector = 'outage'");
    assert!(
        title.starts_with("database was down for ") && title.contains(" failed, all was as before after "),
        "{title}"
    );
    assert_eq!(trial.ask("confidence", "findings where detector = 'outage'"), "high");
}

#[test]
fn a_replica_that_is_killed_is_named_by_its_number() {
    let Some(trial) = Trial::of("replica-killed") else { return };
    assert!(trial.number("sum(errors_connect + errors_reset)", "load_seconds") > 0.0);
    assert_eq!(trial.first(), "outage at customer", "{}", trial.all());
    trial.recovered("customer[1]");
    let title = trial.ask("title", "findings where detector = 'outage'");
    assert!(title.starts_with("customer[1] was down for "), "{title}");
}

#[test]
fn a_full_pool_is_named_by_the_service_that_has_it() {
    let Some(trial) = Trial::of("pool-full") else { return };
    assert!(trial.number("sum(errors_status)", "load_seconds") > 0.0);
    assert!(trial.spans_failed_by("name", "'pool_full'") > 0.0);
    assert_eq!(trial.first(), "pool-wait at name", "{}", trial.all());
    let pending = "metrics where name = 'db.client.connection.pending_requests' and value > 0";
    assert!(trial.number("count(*)", pending) > 0.0);
    assert_eq!(trial.figure("pool-wait", "connections at most"), 1.0);
}

#[test]
fn a_slow_statement_is_shown() {
    let Some(trial) = Trial::of("slow-statement") else { return };
    let all = trial.all();
    // Where the whole machine is busy, that is the cause of it.
    assert!(all.contains("\"detector\":\"slow-query\"") && all.contains("SELECT personId"), "{all}");
    assert!(all.contains("a query of database takes "), "{all}");
}

#[test]
fn without_a_failure_nothing_fails() {
    let Some(trial) = Trial::of("calm") else { return };
    assert_eq!(trial.number("count(*)", "findings where detector in ('outage', 'pool-wait')"), 0.0, "{}", trial.all());
    assert_eq!(trial.number("count(*)", "metrics where name = 'narrows.replica.up'"), 0.0);
}
