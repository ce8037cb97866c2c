//! OTLP's numbers of span kinds and statuses.

use narrows_model::trace::{SpanKind, SpanStatus};

/// All span kinds.
pub(crate) const KINDS: [SpanKind; 5] =
    [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
/// All span statuses.
const STATUSES: [SpanStatus; 3] = [SpanStatus::Unset, SpanStatus::Ok, SpanStatus::Error];

/// Number of a span kind.
pub(crate) fn kind_number(kind: SpanKind) -> i64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

/// Span kind of a number; `None` if it is unspecified or unknown.
pub(crate) fn kind_of(number: i64) -> Option<SpanKind> {
    KINDS.into_iter().find(|kind| kind_number(*kind) == number)
}

/// Number of a span status.
pub(crate) fn status_number(status: SpanStatus) -> i64 {
    match status {
        SpanStatus::Unset => 0,
        SpanStatus::Ok => 1,
        SpanStatus::Error => 2,
    }
}

/// Span status of a number; `None` if it is unknown.
pub(crate) fn status_of(number: i64) -> Option<SpanStatus> {
    STATUSES.into_iter().find(|status| status_number(*status) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_what_was_written() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6].map(|number| kind_of(number).map(kind_number)),
            [None, Some(1), Some(2), Some(3), Some(4), Some(5), None]
        );
        let statuses = [-1, 0, 1, 2, 3].map(|number| status_of(number).map(status_number));
        assert_eq!(statuses, [None, Some(0), Some(1), Some(2), None]);
    }
}
