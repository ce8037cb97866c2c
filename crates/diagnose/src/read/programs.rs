//! What a service is, by the program that it runs.
//!
//! Programs are known by name and not as components, because experiments start them by `run` too, and run files hold
//! systems that others started. A test of the lab checks that every component's program is known here.

use narrows_model::evidence::TrialEvidence;

/// Programs that are databases, by the name of what is executed.
const DATABASES: [&str; 12] = [
    "postgres",
    "mysqld",
    "mariadbd",
    "mongod",
    "cockroach",
    "clickhouse-server",
    "sqlservr",
    "oracle",
    "redis-server",
    "valkey-server",
    "memcached",
    "cassandra",
];

/// Proxies that have no tracing of their own unless it is built in, by the name of what is executed.
const PROXIES: [&str; 2] = ["haproxy", "nginx"];

/// Whether a service of the trial runs the program of a database.
pub(crate) fn is_database_program(trial: &TrialEvidence, service: &str) -> bool {
    runs_one_of(&DATABASES, trial, service)
}

/// Whether a service of the trial runs the program of a proxy that only passes on what its callers trace.
pub(crate) fn is_proxy_program(trial: &TrialEvidence, service: &str) -> bool {
    runs_one_of(&PROXIES, trial, service)
}

/// Whether the diagnosis knows what a program is, by the name of what is executed.
pub fn knows_program(name: &str) -> bool {
    DATABASES.iter().chain(&PROXIES).any(|known| *known == name)
}

fn runs_one_of(programs: &[&str], trial: &TrialEvidence, service: &str) -> bool {
    let is_one = |command: &[String]| {
        let program = command.first().map_or("", |first| first.rsplit('/').next().unwrap_or(first));
        programs.contains(&program)
    };
    trial.services.iter().any(|instance| instance.service == service && is_one(&instance.command))
}
