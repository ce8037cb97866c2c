//! The system's entry in `narrows demo`.

use narrows_system::{Demo, Length};

/// The tables and their rows, as SQL for MariaDB, which the experiment names as `schema.sql`.
pub const SCHEMA: &str = include_str!("../schema.sql");

/// The four variants of the case study, and with `--full` the two that it rejected.
pub const DEMO: Demo = Demo {
    name: "micron",
    about: "six instances over one node of MariaDB and then three, each test with one more change than the last",
    short: Length {
        takes: "about 3.5 minutes",
        time_scale: 0.1,
        repetitions: 1,
        variants: &["initial", "rewritten", "demultiplexer", "three-nodes"],
    },
    full: Length { takes: "about 37 minutes", time_scale: 1.0, repetitions: 1, variants: &[] },
    only_full: None,
    needs: Some(
        "MariaDB, Galera, rsync, HAProxy and NGINX (Debian's mariadb-server, galera-4, rsync, haproxy, nginx-light)",
    ),
    optional: &[],
    experiment: include_str!("../experiment.yaml"),
    files: &[("schema.sql", SCHEMA), ("retries.yaml", include_str!("../retries.yaml"))],
};
