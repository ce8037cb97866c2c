//! Attempts that count as retries of a failed one.

use narrows_model::trace::Span;

use crate::read::calls::{Call, is_throttled, went_wrong};
use crate::read::refusals::Gap;
use crate::read::requests::is_database;
use crate::thresholds::Thresholds;

/// Database codes for a conflict of two transactions, one of which must begin again: SQL states of PostgreSQL, numbers
/// of MySQL and SQL Server, statuses of Cosmos DB, types of DynamoDB.
const CONFLICTS: [&str; 10] = [
    "40001",
    "40P01",
    "55P03",
    "1205",
    "1213",
    "409",
    "412",
    "449",
    "TransactionConflictException",
    "TransactionCanceledException",
];

/// Number of times that a call was retried because it failed.
pub(super) fn retries(call: &Call<'_>, thresholds: &Thresholds) -> usize {
    let again = |pair: &&[&Span]| is_retryable(pair[0]) && !is_patient(pair[0], pair[1], thresholds);
    call.tries().windows(2).filter(again).count()
}

/// Whether an attempt failed for a reason that may have passed at the next attempt.
pub(super) fn is_retryable(span: &Span) -> bool {
    let is_callers_fault =
        span.facts.http_status.is_some_and(|status| (400..500).contains(&status) && status != 408 && status != 429);
    went_wrong(span) && (!is_callers_fault || is_conflict(span))
}

/// Whether a database call lost a conflict between two transactions.
pub(super) fn is_conflict(span: &Span) -> bool {
    let says_so = |text: &Option<String>| text.as_deref().is_some_and(|text| CONFLICTS.contains(&text));
    is_database(span) && (says_so(&span.facts.db_status) || says_so(&span.facts.error_type))
}

/// Whether an attempt was refused and the next one backed off.
fn is_patient(refused: &Span, next: &Span, thresholds: &Thresholds) -> bool {
    let gap = Gap::between(refused, next);
    let is_backed_off = match gap.requested_ns {
        Some(requested_ns) => gap.length_ns() >= thresholds.throttling.retry_after_share_min * requested_ns,
        None => gap.length_ns() >= refused.duration_ns() as f64,
    };
    is_throttled(refused) && is_backed_off
}
