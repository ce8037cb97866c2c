//! Error reports of a reached limit of connections, by code, type or text.
//!
//! “Too many connections” alone is also said by mail servers, proxies and clients whose own pool is empty, so it counts in
//! errors of MySQL and MariaDB only.

use narrows_model::finding::evidence::connection_limit::LimitedTo;
use narrows_model::trace::Span;

use crate::read::calls::went_wrong;
use crate::read::errors::{bare_name, exceptions, own_words, says, texts};
use crate::read::requests::is_database;

use LimitedTo::{Database, Role, Server};

const POSTGRESQL: &[&str] = &["postgresql"];
const MYSQL: &[&str] = &["mysql", "mariadb"];
const REDIS: &[&str] = &["redis", "valkey"];
const ORACLE: &[&str] = &["oracle", "oracle.db"];
const SQL_SERVER: &[&str] = &["mssql", "microsoft.sql_server"];

/// One way to report the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    /// Code, type or words; texts in lower case.
    pub(super) name: &'static str,
    pub(super) limit: LimitedTo,
    /// Database systems that report it so, as `db.system.name` names them.
    pub(super) systems: &'static [&'static str],
}

const fn of(name: &'static str, limit: LimitedTo, systems: &'static [&'static str]) -> Report {
    Report { name, limit, systems }
}

/// Texts of errors. They count in every span.
const TEXTS: [Report; 12] = [
    of("too many connections for role", Role, POSTGRESQL),
    of("too many connections for database", Database, POSTGRESQL),
    of("too many clients already", Server, POSTGRESQL),
    of("remaining connection slots are reserved", Server, POSTGRESQL),
    of("no more connections allowed", Server, POSTGRESQL),
    of("er_con_count_error", Server, MYSQL),
    of("er_too_many_user_connections", Role, MYSQL),
    of("has more than '' active connections", Role, MYSQL),
    of("max number of clients reached", Server, REDIS),
    of("ora-00018", Server, ORACLE),
    of("ora-00020", Server, ORACLE),
    of("'' user connections has already been reached", Server, SQL_SERVER),
];
/// The text of MySQL's error 1040.
const TOO_MANY: Report = of("too many connections", Server, MYSQL);
/// Words of MySQL beside that text, or in its place once quoted parts are gone.
const OF_MYSQL: [&str; 4] = ["(1040, ''", "error 1040", "1040 (08004)", "data source rejected establishment"];
/// Words of an error about a value that exists already.
const DOUBLED: &str = "duplicate key";
/// Codes, in calls to these databases.
const CODES: [Report; 3] = [of("53300", Server, POSTGRESQL), of("1040", Server, MYSQL), of("1203", Role, MYSQL)];
/// Types of errors, without their packages.
const TYPES: [Report; 4] = [
    of("TooManyConnections", Server, POSTGRESQL),
    of("TooManyConnectionsError", Server, POSTGRESQL),
    of("ER_CON_COUNT_ERROR", Server, MYSQL),
    of("ER_TOO_MANY_USER_CONNECTIONS", Role, MYSQL),
];

/// The name of the report of a span, and the text of its error if it has one.
pub(super) fn reported(span: &Span) -> Option<(&'static str, Option<&str>)> {
    let report = report(span)?;
    Some((report.name, texts(span).next()))
}

/// The report of a failed span; `None` if it reports something else.
pub(super) fn report(span: &Span) -> Option<Report> {
    if !went_wrong(span) {
        return None;
    }
    texts(span).find_map(|text| by_text(span, &own_words(text))).or_else(|| by_name(span))
}

/// A report in the words of an error. What an error about a doubled key puts in brackets are values.
fn by_text(span: &Span, words: &str) -> Option<Report> {
    if words.contains(DOUBLED) {
        return None;
    }
    let is_of_mysql =
        || is_of(span, MYSQL) && says(words, TOO_MANY.name) || OF_MYSQL.iter().any(|sign| words.contains(sign));
    let known = TEXTS.iter().find(|report| says(words, report.name));
    known.copied().or_else(|| is_of_mysql().then_some(TOO_MANY))
}

fn by_name(span: &Span) -> Option<Report> {
    let facts = &span.facts;
    let kinds = exceptions(span).map(|one| one.kind);
    let names = || [&facts.db_status, &facts.error_type].into_iter().flatten().map(String::as_str);
    let code = names().find_map(|name| CODES.iter().find(|code| code.name == name && is_of(span, code.systems)));
    let by_type = |name: &str| TYPES.iter().find(|kind| kind.name == bare_name(name));
    code.or_else(|| names().chain(kinds).find_map(by_type)).copied()
}

fn is_of(span: &Span, systems: &[&str]) -> bool {
    is_database(span) && span.facts.db_system.as_deref().is_some_and(|system| systems.contains(&system))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, internal, query};

    use super::*;

    fn of_text(text: &str) -> Option<LimitedTo> {
        report(&internal("connect").failed_with(text).trace(1).spans[0]).map(|report| report.limit)
    }

    fn in_query(system: &str, span: SpanBuilder) -> Option<LimitedTo> {
        let span = span.facts(|facts| facts.db_system = Some(system.to_owned()));
        report(&span.trace(1).spans[0]).map(|report| report.limit)
    }

    #[test]
    fn a_limit_has_many_words() {
        for text in [
            "FATAL: sorry, too many clients already",
            "FATAL: remaining connection slots are reserved for non-replication superuser connections",
            "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "no more connections allowed (max_client_conn)",
            "(1040, 'Too many connections')",
            "(pymysql.err.OperationalError) (1040, 'Too many connections')",
            "ERROR 1040 (HY000): Too many connections",
            "ER_CON_COUNT_ERROR: Too many connections",
            "Data source rejected establishment of connection, message from server: \"Too many connections\"",
            "ERR max number of clients reached",
            "ORA-00020: maximum number of processes (300) exceeded",
            "Could not connect because the maximum number of '32767' user connections has already been reached.",
        ] {
            assert_eq!(of_text(text), Some(Server), "{text}");
        }
        assert_eq!(of_text("FATAL: too many connections for role \"app\""), Some(Role));
        assert_eq!(of_text("FATAL: too many connections for database \"shop\""), Some(Database));
        let of_user = "(1203, \"User app already has more than 'max_user_connections' active connections\")";
        assert_eq!(of_text(of_user), Some(Role));
    }

    #[test]
    fn other_words_mean_none() {
        for text in [
            "Too many connections",
            "421 4.7.0 Error: too many connections from 10.0.0.5",
            "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00",
            "HikariPool-1 - Connection is not available, request timed out after 30000ms",
            "too many open files",
            "connection refused",
            "order 1040 not found",
            "duplicate key value: Key (text)=(sorry, too many clients already) already exists.",
            "duplicate entry 'too many clients already' for key 'text'",
            "bad pattern [SQL: SELECT * FROM lines WHERE text ~ 'too many clients already(']",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
        let fine = internal("connect").attribute("exception.message", "too many clients already");
        assert_eq!(report(&fine.trace(1).spans[0]), None, "it did not fail");
    }

    #[test]
    fn codes_and_common_words_belong_to_their_systems() {
        let coded = |code: &str| query("SELECT 1").failed().facts(|facts| facts.db_status = Some(code.to_owned()));
        assert_eq!(in_query("postgresql", coded("53300")), Some(Server));
        assert_eq!(in_query("mariadb", coded("1040")), Some(Server));
        assert_eq!(in_query("mysql", coded("1203")), Some(Role));
        assert_eq!(in_query("postgresql", coded("1040")), None);
        assert_eq!(in_query("mysql", coded("1213")), None);
        let worded = || query("GET a").failed_with("Too many connections");
        assert_eq!(in_query("mysql", worded()), Some(Server));
        assert_eq!(in_query("redis", worded()), None, "redis-py says so of its own pool");
        let typed = internal("connect").failed().attribute("exception.type", "psycopg.errors.TooManyConnections");
        assert_eq!(report(&typed.trace(1).spans[0]).map(|report| report.name), Some("TooManyConnections"));
    }
}
