//! Conflicts between transactions: how databases report them, and the time they cost a request.
//!
//! Databases report a conflict by a number or SQL state, drivers by the type of their exception, some only by its text.
//! A request loses the time from the start of its first try to the start of its last: the discarded work and the wait
//! before the retry. Without a retry, it loses the time up to the conflict, and the caller gets an error.
//!
//! An existing row or document (409) is a result, not a conflict.

use narrows_model::trace::{Span, SpanKind};

use crate::read::calls::{Handled, went_wrong};
use crate::read::errors::{bare_name, exceptions, searched};
use crate::read::requests::{is_database, query_text};

/// SQL states of PostgreSQL (and of databases that follow the standard), error numbers of MySQL, MariaDB and SQL
/// Server, statuses of Cosmos DB.
const CODES: [&str; 7] = ["40001", "40P01", "55P03", "1205", "1213", "412", "449"];
/// Exception types, without their packages.
const TYPES: [&str; 12] = [
    "ER_LOCK_DEADLOCK",
    "ER_LOCK_WAIT_TIMEOUT",
    "DeadlockDetected",
    "DeadlockDetectedError",
    "SerializationFailure",
    "SerializationError",
    "LockNotAvailable",
    "MySQLTransactionRollbackException",
    "DeadlockLoserDataAccessException",
    "CannotSerializeTransactionException",
    "TransactionConflictException",
    "TransactionCanceledException",
];
/// Error texts, lower case.
const TEXTS: [&str; 6] = [
    "deadlock found",
    "deadlock detected",
    "could not serialize access",
    "lock wait timeout exceeded",
    "was deadlocked on lock",
    "wsrep detected deadlock",
];

/// Whether a call lost a conflict between two transactions.
pub(crate) fn is_conflict(span: &Span) -> bool {
    let facts = &span.facts;
    let says_so = |text: &Option<String>| text.as_deref().is_some_and(is_name_of_conflict);
    is_database(span)
        && !is_nowait(span)
        && (says_so(&facts.db_status)
            || says_so(&facts.error_type)
            || went_wrong(span) && (is_text_of_conflict(&span.status_message) || has_exception(span)))
}

/// Whether a query takes only free rows (`NOWAIT`), as on a job queue: it returns no row if none is free.
fn is_nowait(span: &Span) -> bool {
    query_text(span).is_some_and(|text| text.to_uppercase().contains("NOWAIT"))
}

fn is_name_of_conflict(text: &str) -> bool {
    let name = bare_name(text);
    CODES.contains(&name) || TYPES.contains(&name)
}

fn is_text_of_conflict(text: &str) -> bool {
    let text = searched(text).to_lowercase();
    TEXTS.iter().any(|known| text.contains(known))
}

fn has_exception(span: &Span) -> bool {
    exceptions(span).any(|one| is_name_of_conflict(one.kind) || is_text_of_conflict(one.message))
}

/// Effect of conflicts on one request.
#[derive(Debug, Clone)]
pub(crate) struct Met<'a> {
    pub(crate) handled: &'a Handled<'a>,
    /// Calls that lost a conflict, in order of start, each once.
    pub(crate) conflicts: Vec<&'a Span>,
    /// Whether the request began its statements again after a conflict.
    pub(crate) began_again: bool,
    /// Whether the request itself failed.
    pub(crate) failed: bool,
    /// Time that the caller would not have waited without the conflicts, nanoseconds.
    pub(crate) lost_ns: u64,
}

/// The conflicts of a request; `None` if it met none.
pub(crate) fn met<'a>(handled: &'a Handled<'a>) -> Option<Met<'a>> {
    let calls = database_calls(handled);
    let mut conflicts: Vec<&Span> = Vec::new();
    for call in calls.iter().filter(|call| is_conflict(call)) {
        // Two libraries that report one call overlap.
        if conflicts.last().is_none_or(|last| call.start_ns >= last.end_ns) {
            conflicts.push(call);
        }
    }
    let (first, last) = (*conflicts.first()?, *conflicts.last()?);
    let next = calls.iter().find(|call| call.start_ns >= last.end_ns && !is_rollback(call) && !is_conflict(call));
    let start_ns = next.and_then(|next| {
        let same = |call: &&&Span| call.start_ns <= first.start_ns && statement(call) == statement(next);
        calls.iter().filter(same).map(|call| call.start_ns).min()
    });
    let began_ns = start_ns.unwrap_or(first.start_ns);
    let end_ns = next.filter(|_| start_ns.is_some()).map_or(last.end_ns, |next| next.start_ns);
    let failed = went_wrong(handled.request.entry);
    Some(Met {
        handled,
        began_again: conflicts.len() > 1 || start_ns.is_some(),
        failed,
        lost_ns: end_ns.saturating_sub(began_ns).max(0) as u64,
        conflicts,
    })
}

fn statement(span: &Span) -> &str {
    query_text(span).unwrap_or(&span.name)
}

fn is_rollback(span: &Span) -> bool {
    let said = span.facts.db_operation.as_deref().unwrap_or_else(|| statement(span)).trim_start();
    said.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("ROLLBACK"))
}

/// All database calls that the service made for this request, including transaction statements, in order of start.
fn database_calls<'a>(handled: &Handled<'a>) -> Vec<&'a Span> {
    let (entry, forest) = (handled.request.entry, handled.request.forest);
    if !forest.spans().iter().any(is_conflict) {
        return Vec::new();
    }
    let is_call = |span: &Span| span.service == entry.service && is_database(span) && span.span_id != entry.span_id;
    // The first span above it that is the entry, or belongs to another service or request.
    let limit = |span: &Span| span.span_id == entry.span_id || span.service != entry.service || is_entry(span);
    let is_below = |at: usize| {
        let mut above = forest.upwards(at).map(|above| forest.span(above));
        above.find(|above| limit(above)).is_some_and(|above| above.span_id == entry.span_id)
    };
    let calls = forest.spans().iter().enumerate().filter(|(at, span)| is_call(span) && is_below(*at));
    let mut calls: Vec<&Span> = calls.map(|(_, span)| span).collect();
    calls.sort_by_key(|span| (span.start_ns, span.end_ns));
    calls
}

fn is_entry(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Server | SpanKind::Consumer)
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Forest;
    use narrows_testkit::spans::{SpanBuilder, query, server};

    use super::*;
    use crate::read::calls::by_operation;
    use crate::read::requests::requests;
    use crate::thresholds::Thresholds;

    fn lost(text: &str) -> SpanBuilder {
        query(text).failed().facts(|facts| facts.db_status = Some("1213".into()))
    }

    /// (number of conflicts, began again, failed, milliseconds lost).
    fn seen(root: SpanBuilder) -> Option<(usize, bool, bool, f64)> {
        let traces = [root.trace(1)];
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &Thresholds::default());
        let operations = by_operation(&requests);
        let handled = operations.values().flatten().next()?;
        met(handled).map(|met| (met.conflicts.len(), met.began_again, met.failed, met.lost_ns as f64 / 1e6))
    }

    #[test]
    fn what_is_done_again_is_lost() {
        let root = server("bank", "POST /move").at(0.0, 100.0).children([
            query("BEGIN").at(10.0, 1.0),
            query("UPDATE a SET x = ? WHERE id = ?").at(12.0, 5.0),
            lost("COMMIT").at(20.0, 10.0),
            query("ROLLBACK").at(31.0, 1.0),
            query("BEGIN").at(50.0, 1.0),
            query("UPDATE a SET x = ? WHERE id = ?").at(52.0, 5.0),
            query("COMMIT").at(60.0, 10.0),
        ]);
        assert_eq!(seen(root), Some((1, true, false, 40.0)));
    }

    #[test]
    fn what_is_given_up_is_an_error() {
        let root = server("bank", "POST /move").at(0.0, 100.0).failed().children([
            query("BEGIN").at(10.0, 1.0),
            lost("UPDATE a SET x = ? WHERE id = ?").at(12.0, 5.0),
            query("ROLLBACK").at(20.0, 1.0),
        ]);
        assert_eq!(seen(root), Some((1, false, true, 5.0)));
    }

    #[test]
    fn a_double_counts_once_and_an_existing_row_is_no_conflict() {
        let stacked =
            server("bank", "POST /move").at(0.0, 50.0).children([lost("A").at(1.0, 5.0), lost("A").at(1.1, 4.8)]);
        assert_eq!(seen(stacked).map(|seen| seen.0), Some(1));
        let duplicate =
            query("INSERT INTO a VALUES (?)").failed().facts(|facts| facts.db_status = Some("23505".into()));
        assert_eq!(seen(server("bank", "POST /a").at(0.0, 50.0).child(duplicate.at(1.0, 5.0))), None);
    }

    #[test]
    fn drivers_say_it_in_many_ways() {
        let of = |set: &dyn Fn(&mut narrows_model::trace::SpanFacts)| {
            let span = query("COMMIT").failed().facts(|facts| set(facts));
            server("bank", "POST /move").at(0.0, 9.0).child(span.at(1.0, 5.0)).trace(1).spans.iter().any(is_conflict)
        };
        for name in ["40001", "psycopg.errors.DeadlockDetected", "1205", "ER_LOCK_DEADLOCK"] {
            assert!(of(&|facts| facts.error_type = Some(name.into())), "{name}");
        }
        for name in ["409", "23505", "TimeoutError", "57014"] {
            assert!(!of(&|facts| facts.error_type = Some(name.into())), "{name}");
        }
        assert!(is_text_of_conflict("(1213, 'Deadlock found when trying to get lock; try restarting transaction')"));
        assert!(!is_text_of_conflict("duplicate key value violates unique constraint"));
    }
}
