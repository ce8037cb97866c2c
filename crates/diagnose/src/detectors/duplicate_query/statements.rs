//! Statements that return the same rows each time, until another statement writes.
//!
//! The text alone decides, conservatively: a statement that may lock, increment, draw a random number, or call a
//! function for its effect is not a read here, nor is one about the database itself, which libraries send when they
//! connect. For stores with their own language, the reading commands are known.

use narrows_model::finding::evidence::duplicate_query::Sameness;
use narrows_model::trace::Span;

use crate::read::repetition::bound_values;
use crate::read::requests::Query;
use crate::read::shapes::{Effect, Shape};

/// Systems whose drivers send a text once, whatever the number of rows. Others send it again for each page.
const SYSTEMS: [&str; 19] = [
    "postgresql",
    "mysql",
    "mariadb",
    "microsoft.sql_server",
    "oracle.db",
    "sqlite",
    "cockroachdb",
    "ibm.db2",
    "ibm.informix",
    "h2database",
    "hsqldb",
    "derby",
    "sap.hana",
    "aws.redshift",
    "clickhouse",
    "firebirdsql",
    "teradata",
    "trino",
    "other_sql",
];
/// Words of statements that do more than read stored rows, or that read the database's own state.
const NO_READ: [&str; 22] = [
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "INTO",
    "SHARE",
    "LOCK",
    "GET_LOCK",
    "RELEASE_LOCK",
    "UPDLOCK",
    "XLOCK",
    "NEXTVAL",
    "NEXT_VAL",
    "CURRVAL",
    "RANDOM",
    "RAND",
    "NEWID",
    "SLEEP",
    "CALL",
    "INFORMATION_SCHEMA",
    "SQLITE_MASTER",
    "SYS",
];
/// Prefixes of such words: PostgreSQL functions and catalogs, id generators.
const NO_READ_STARTS: [&str; 4] = ["PG_", "UUID", "GEN_RANDOM", "LAST_INSERT"];
/// Lengths, in characters, at which instrumentation and collectors commonly truncate texts.
const CUT_AT: [usize; 16] = [128, 255, 256, 500, 512, 1000, 1023, 1024, 2000, 2048, 4000, 4095, 4096, 8000, 8191, 8192];
/// Texts that replace values.
const MASKS: [&str; 6] = ["REDACTED", "'?'", "\"?\"", "'***'", "'%s'", "'xxxxx'"];

/// Whether a query only reads rows of tables, and its text is complete.
pub(super) fn is_read(query: &Query<'_>) -> bool {
    let facts = &query.span.facts;
    let is_relational = || facts.db_system.as_deref().is_some_and(|system| SYSTEMS.contains(&system));
    let is_whole = if query.shape.is_sql() { is_relational() } else { !query.shape.is_page() };
    let is_known = facts.db_query.is_some() && is_whole && !is_cut(query.text);
    is_known && reads_only(&query.shape) && facts.batch_size.is_none_or(|size| size <= 1)
}

fn reads_only(shape: &Shape) -> bool {
    if shape.is_sql() { sql_reads_only(shape) } else { shape.effect == Effect::Read }
}

fn sql_reads_only(shape: &Shape) -> bool {
    let is_other = NO_READ.iter().any(|word| shape.has_word(word))
        || NO_READ_STARTS.iter().any(|start| shape.has_word_from(start));
    matches!(shape.first_word().as_str(), "SELECT" | "WITH")
        && shape.has_word("FROM")
        && !is_other
        && !reads_a_function(&shape.text)
}

/// Whether a `FROM` or `JOIN` reads from a function call.
fn reads_a_function(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("join") {
            let rest = words.clone().next().unwrap_or("").trim_start_matches(is_name);
            let has_name = words.clone().next().is_some_and(|next| next.starts_with(is_name));
            if has_name && rest.starts_with('(') {
                return true;
            }
        }
    }
    false
}

fn is_cut(text: &str) -> bool {
    let count = |sign: char| text.chars().filter(|c| *c == sign).count();
    let is_open = count('(') != count(')') || count('{') != count('}');
    text.ends_with("...") || text.ends_with('…') || is_open || CUT_AT.contains(&text.chars().count())
}

/// Evidence that queries with this text and these recorded values are the same; `Rows` if only the returned rows may
/// show it.
pub(super) fn sameness_of(query: &Query<'_>) -> Sameness {
    let shape = &query.shape;
    let is_masked = |text: &str| MASKS.iter().any(|mask| text.contains(mask));
    if is_masked(query.text) || bound_values(query.span).any(|(_, value)| is_masked(&value)) {
        return Sameness::Rows;
    }
    match (shape.literals, shape.placeholders) {
        (0, 0) => Sameness::NoValues,
        (_, 0) => Sameness::Values,
        (_, bound) if are_recorded(query.span, bound) => Sameness::Values,
        _ => Sameness::Rows,
    }
}

/// Whether every placeholder of a text has a recorded value.
fn are_recorded(span: &Span, places: usize) -> bool {
    bound_values(span).count() >= places || bound_values(span).any(|(key, _)| key == "db.statement.parameters")
}

/// Whether a query between two reads leaves the read's rows unchanged: it is another read, or it writes to a table that
/// the read does not mention. A relational database does not write to a store with another language.
pub(super) fn leaves_alone(between: &Query<'_>, read: &Shape) -> bool {
    let writes_elsewhere = match (between.shape.is_sql(), read.is_sql()) {
        (true, true) => written_table(&between.shape).is_some_and(|table| !mentions(&read.text, table)),
        (true, false) => true,
        (false, _) => false,
    };
    writes_elsewhere || reads_only(&between.shape)
}

/// The table that a statement writes, without schema and quotes; `None` if the text does not show it.
fn written_table(shape: &Shape) -> Option<&str> {
    let mut words = shape.text.split(' ');
    let first = words.next()?;
    let name = match first.to_ascii_uppercase().as_str() {
        "INSERT" | "REPLACE" | "MERGE" => words.find(|word| word.eq_ignore_ascii_case("into")).and(words.next()),
        "DELETE" => words.find(|word| word.eq_ignore_ascii_case("from")).and(words.next()),
        "UPDATE" => words.next(),
        _ => None,
    }?;
    let name = name.split('(').next().unwrap_or("");
    let last = name.rsplit('.').next().unwrap_or("").trim_matches(['"', '`', '[', ']', ';']);
    (!last.is_empty()).then_some(last)
}

fn mentions(text: &str, table: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).any(|word| word.eq_ignore_ascii_case(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_that_read_tables_are_reads() {
        let reads = [
            "SELECT * FROM users WHERE id = 7",
            "select o.id from owners o left join pets p on p.owner_id=o.id where o.id=?",
            "WITH a AS (SELECT 1 FROM b) SELECT * FROM a",
            "SELECT count(*) FROM (SELECT id FROM t) AS x",
        ];
        let others = [
            "SELECT nextval('s')",
            "SELECT * FROM nextval('s')",
            "SELECT * FROM take_job(7)",
            "SELECT id FROM t FOR UPDATE",
            "SELECT id FROM t LOCK IN SHARE MODE",
            "SELECT id FROM t ORDER BY random()",
            "SELECT now()",
            "SELECT oid FROM pg_type",
            "WITH gone AS (DELETE FROM t RETURNING id) SELECT id FROM gone",
            "INSERT INTO t SELECT * FROM u",
            "CALL f()",
        ];
        for text in reads {
            assert!(reads_only(&Shape::of_sql(text)), "{text}");
        }
        for text in others {
            assert!(!reads_only(&Shape::of_sql(text)), "{text}");
        }
    }

    #[test]
    fn a_text_that_was_cut_off_is_not_known() {
        for text in ["SELECT a FROM t WHERE b IN (1, 2", "SELECT a FROM t ...", &"x".repeat(1024)] {
            assert!(is_cut(text), "{text}");
        }
        assert!(!is_cut("SELECT a FROM t WHERE b IN (1, 2)"));
    }

    #[test]
    fn the_written_table_is_read_off_a_statement() {
        let table = |text: &str| written_table(&Shape::of_sql(text)).map(str::to_owned);
        assert_eq!(table("INSERT INTO \"public\".\"parts\"(a) VALUES (1)").as_deref(), Some("parts"));
        assert_eq!(table("update parts set a = 1").as_deref(), Some("parts"));
        assert_eq!(table("DELETE FROM shop.parts WHERE a = 1").as_deref(), Some("parts"));
        assert_eq!(table("CALL refresh()"), None);
        assert!(mentions("SELECT * FROM \"Parts\" p", "parts") && !mentions("SELECT * FROM spare_parts", "parts"));
    }
}
