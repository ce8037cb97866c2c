//! Error reports of a full disk: codes, error types and texts.
//!
//! Texts are read only in failed spans, and only the error's own words: quoted parts (statements, values, table names)
//! and URLs are left out. An SQL state of another class outweighs a text.
//!
//! Linux also reports `ENOSPC` if no file watcher is left, and PostgreSQL reports `53100` if shared memory is too
//! small. Neither is a full disk.

use narrows_model::finding::evidence::disk_full::DiskCause;
use narrows_model::trace::Span;

use crate::read::calls::went_wrong;
use crate::read::errors::{bare_name, exceptions, own_words, says, texts};
use crate::read::requests::is_database;

use DiskCause::{NoSpace, QuotaExceeded, StorageFailed, TableFull};

/// Error codes with the database systems that use them; an empty list means any database.
const CODES: [(&str, &[&str], DiskCause); 6] = [
    ("53100", &[], NoSpace),
    ("1021", MYSQL, NoSpace),
    ("3675", MYSQL, NoSpace),
    ("1114", MYSQL, TableFull),
    ("14031", &["mongodb"], NoSpace),
    ("13", &["sqlite"], NoSpace),
];
const MYSQL: &[&str] = &["mysql", "mariadb"];
/// Error types, without their packages.
const TYPES: [(&str, DiskCause); 11] = [
    ("ENOSPC", NoSpace),
    ("EDQUOT", QuotaExceeded),
    ("StorageFull", NoSpace),
    ("DiskFull", NoSpace),
    ("DiskFullError", NoSpace),
    ("OutOfDiskSpace", NoSpace),
    ("SQLITE_FULL", NoSpace),
    ("ER_DISK_FULL", NoSpace),
    ("ER_RECORD_FILE_FULL", TableFull),
    ("KafkaStorageException", StorageFailed),
    ("KAFKA_STORAGE_ERROR", StorageFailed),
];
/// Error texts, lower case, with the name under which they are reported.
const TEXTS: [(&str, &str, DiskCause); 16] = [
    ("no space left on device", "no space left on device", NoSpace),
    ("enospc", "ENOSPC", NoSpace),
    ("errno 28", "errno 28", NoSpace),
    ("errno: 28", "errno 28", NoSpace),
    ("errcode: 28", "errno 28", NoSpace),
    ("os error 28", "errno 28", NoSpace),
    ("oserror(28", "errno 28", NoSpace),
    ("not enough space on the disk", "not enough space on the disk", NoSpace),
    ("could not extend file", "could not extend file", NoSpace),
    ("waiting for someone to free some space", "disk full", NoSpace),
    ("database or disk is full", "database or disk is full", NoSpace),
    ("outofdiskspace", "OutOfDiskSpace", NoSpace),
    ("disk quota exceeded", "disk quota exceeded", QuotaExceeded),
    ("edquot", "EDQUOT", QuotaExceeded),
    ("os error 122", "errno 122", QuotaExceeded),
    ("kafkastorageexception", "KafkaStorageException", StorageFailed),
];
/// MySQL's text for error 1114. Other kinds of tables are full too, so the code or the system must agree.
const TABLE_FULL: &str = "the table '' is full";
/// Texts with the same codes but another meaning, lower case.
const OTHERS: [&str; 4] = ["inotify", "file watchers", ", watch", "shared memory"];
/// SQL state classes that a full disk can have: insufficient resources, system errors, internal and general errors.
const CLASSES: [&str; 4] = ["53", "58", "XX", "HY"];
/// Length of an SQL state in bytes.
const SQL_STATE_BYTES: usize = 5;

/// A report of a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskReport<'a> {
    /// The reported code, type or words.
    pub(super) name: &'static str,
    pub(super) cause: DiskCause,
    /// Text of the error, if any.
    pub(super) text: Option<&'a str>,
}

/// The full disk that a span reports; `None` if it reports nothing or something else.
pub(super) fn reported(span: &Span) -> Option<DiskReport<'_>> {
    let facts = &span.facts;
    let failed = went_wrong(span).then_some(span);
    let kinds = failed.into_iter().flat_map(exceptions).map(|one| one.kind);
    let names = [&facts.db_status, &facts.error_type].into_iter().flatten().map(String::as_str).chain(kinds);
    let texts: Vec<&str> = failed.into_iter().flat_map(texts).collect();
    let own_words: Vec<String> = texts.iter().map(|text| own_words(text)).collect();
    if own_words.iter().any(|words| OTHERS.iter().any(|other| words.contains(other))) {
        return None;
    }
    let text = texts.first().copied();
    let by_name = names.into_iter().find_map(|name| by_name(span, name));
    by_name.map(|(name, cause)| DiskReport { name, cause, text }).or_else(|| {
        let mut pairs = texts.iter().zip(&own_words).filter(|_| !has_other_state(span));
        pairs.find_map(|(text, words)| {
            by_text(span, words).map(|(name, cause)| DiskReport { name, cause, text: Some(text) })
        })
    })
}

fn by_name(span: &Span, text: &str) -> Option<(&'static str, DiskCause)> {
    let name = bare_name(text);
    let system = span.facts.db_system.as_deref().unwrap_or("");
    let is_meant = |systems: &[&str]| is_database(span) && (systems.is_empty() || systems.contains(&system));
    let code = CODES.iter().find(|(code, systems, _)| *code == name && is_meant(systems));
    let kind = || TYPES.iter().find(|(kind, _)| *kind == name).copied();
    code.map(|(code, _, cause)| (*code, *cause)).or_else(kind)
}

fn by_text(span: &Span, words: &str) -> Option<(&'static str, DiskCause)> {
    let is_mysql = || span.facts.db_system.as_deref().is_some_and(|system| MYSQL.contains(&system));
    let known = TEXTS.iter().find(|(text, _, _)| says(words, text)).map(|(_, name, cause)| (*name, *cause));
    let is_table = || says(words, TABLE_FULL) && (is_mysql() || says(words, "1114"));
    known.or_else(|| is_table().then_some(("the table is full", TableFull)))
}

/// Whether an SQL state reports something else, such as a value that a type or a key does not allow.
fn has_other_state(span: &Span) -> bool {
    let state = span.facts.db_status.as_deref().filter(|state| state.len() == SQL_STATE_BYTES && state.is_ascii());
    state.is_some_and(|state| !CLASSES.contains(&&state[..2]))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, internal, query};

    use super::*;

    fn found(span: SpanBuilder) -> Option<(&'static str, DiskCause)> {
        reported(&span.trace(1).spans[0]).map(|one| (one.name, one.cause))
    }

    fn of_text(text: &str) -> Option<DiskCause> {
        found(internal("write").failed_with(text)).map(|(_, cause)| cause)
    }

    fn of_code(system: &str, code: &str) -> Option<DiskCause> {
        let set = |facts: &mut narrows_model::trace::SpanFacts| {
            facts.db_system = Some(system.into());
            facts.db_status = Some(code.into());
        };
        found(query("INSERT INTO t VALUES (?)").failed().facts(set)).map(|(_, cause)| cause)
    }

    #[test]
    fn a_full_disk_has_many_words() {
        for text in [
            "write /data/7: no space left on device",
            "[Errno 28] No space left on device: '/srv/7'",
            "ENOSPC: no space left on device, write",
            "('Connection aborted.', OSError(28, 'No space left on device'))",
            "No space left on device (os error 28)",
            "Error writing file '/tmp/MYfd=10' (Errcode: 28 \"No space left on device\")",
            "Disk full (/tmp/#sql_1_0); waiting for someone to free some space...",
            "There is not enough space on the disk. : 'C:\\data\\7'",
            "could not extend file \"base/5/16402\": wrote only 4096 of 8192 bytes at block 7",
            "database or disk is full",
            "OutOfDiskSpace: available disk space of 12 bytes is less than required minimum",
            "can't flush, don't retry: No space left on device",
            "{\"code\":\"ENOSPC\"}",
        ] {
            assert_eq!(of_text(text), Some(NoSpace), "{text}");
        }
        assert_eq!(of_text("write /home/a: disk quota exceeded"), Some(QuotaExceeded));
        assert_eq!(of_text("Disk quota exceeded (os error 122)"), Some(QuotaExceeded));
        assert_eq!(of_text("(1114, \"The table 'orders' is full\")"), Some(TableFull));
        assert_eq!(of_text("org.apache.kafka.common.errors.KafkaStorageException: Disk error"), Some(StorageFailed));
    }

    #[test]
    fn other_words_mean_no_full_disk() {
        for text in [
            "the queue is full, no space left in queue",
            "planner: table full scan",
            "The table '12' is full",
            "[Errno 280] something else",
            "duplicate entry 'No space left on device' for key 'text'",
            "(UniqueViolation) duplicate key [SQL: INSERT INTO t VALUES (\"No space left on device\")]",
            "404 for http://docs/errors?q=ENOSPC",
            "GET /errors/ENOSPC failed",
            "ENOSPC: System limit for number of file watchers reached, watch '/src'",
            "ENOSPC: no space left on device, watch '/src'",
            "inotify_add_watch: No space left on device",
            "could not resize shared memory segment \"/x\" to 8 bytes: No space left on device",
            "xenospc",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }

    #[test]
    fn codes_belong_to_their_systems() {
        assert_eq!(of_code("postgresql", "53100"), Some(NoSpace));
        assert_eq!(of_code("mysql", "1021"), Some(NoSpace));
        assert_eq!(of_code("mariadb", "1114"), Some(TableFull));
        assert_eq!(of_code("mongodb", "14031"), Some(NoSpace));
        for (system, code) in [("postgresql", "1114"), ("mysql", "1213"), ("postgresql", "53200"), ("mongodb", "13")] {
            assert_eq!(of_code(system, code), None, "{system} {code}");
        }
    }

    #[test]
    fn types_are_known_without_their_packages() {
        let typed = |kind: &str| found(internal("write").failed().attribute("exception.type", kind));
        assert_eq!(typed("psycopg.errors.DiskFull"), Some(("DiskFull", NoSpace)));
        assert_eq!(
            typed("org.apache.kafka.common.errors.KafkaStorageException"),
            Some(("KafkaStorageException", StorageFailed))
        );
        assert_eq!(typed("java.io.IOException"), None);
    }

    #[test]
    fn only_failures_count_and_an_sql_state_says_more_than_a_text() {
        let text = "No space left on device";
        assert_eq!(found(internal("write").attribute("exception.message", text)), None, "it did not fail");
        assert_eq!(found(query(&format!("SELECT '{text}', 'ENOSPC'")).failed()), None, "only its statement");
        let state = |state: &'static str| {
            found(query("INSERT").failed_with(text).facts(|facts| facts.db_status = Some(state.into()))).is_some()
        };
        assert!(state("58030") && state("HY000") && !state("22P02") && !state("23505"));
    }
}
