//! Errors of queries.

use std::time::Duration;

/// A query without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    #[error("the store responded with {status}: {message}")]
    Unavailable { status: u16, message: String },
    #[error("the store is throttling, {retries} retries were not enough")]
    Throttled { retries: u32, retry_after: Duration },
    /// 410: the partitions are others by now.
    #[error("the store's partitions have changed")]
    RangesGone,
    #[error("the store refused the request with {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("the store's response cannot be read: {0}")]
    Malformed(String),
    #[error("a partition gave more pages than a query may have")]
    TooManyPages,
    #[error("a partition's pages ended before their end")]
    Interrupted,
}
