//! Common state of the requests of one query, and how long each retries against a store that throttles.

use std::time::Duration;

use opentelemetry::Context;

/// Waiting after 429 of one request for a page, added up: the default of `MaxRetryWaitTimeOnRateLimitedRequests`
/// (learn.microsoft.com/dotnet/api/microsoft.azure.cosmos.cosmosclientoptions).
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);

/// One query on its way.
#[derive(Debug)]
pub(super) struct Operation {
    /// The span that the attempts are under.
    pub(super) parent: Context,
    /// The query without its values.
    pub(super) text: &'static str,
    /// The query with its values, as it is sent.
    pub(super) body: String,
}

/// Budget of one request for a page.
#[derive(Debug)]
pub(super) struct Timeout {
    retries_max: u32,
    retries: u32,
    waited: Duration,
}

impl Timeout {
    pub(super) fn new(retries_max: u32) -> Self {
        Self { retries_max, retries: 0, waited: Duration::ZERO }
    }

    /// Takes a retry after `wait` out of the request's budget, or returns how many it had.
    pub(super) fn take(&mut self, wait: Duration) -> Result<(), u32> {
        let waited = self.waited.saturating_add(wait);
        if self.retries == self.retries_max || waited > WAIT_MAX {
            return Err(self.retries);
        }
        self.retries += 1;
        self.waited = waited;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_end_with_the_last_allowed_or_the_thirtieth_second() {
        let taken = |retries_max, wait_ms| {
            let mut timeout = Timeout::new(retries_max);
            (0..20).find_map(|_| timeout.take(Duration::from_millis(wait_ms)).err()).unwrap()
        };
        assert_eq!((taken(0, 1), taken(2, 1)), (0, 2));
        for (wait_ms, retries) in [(0, 9), (3_333, 9), (3_334, 8), (10_000, 3), (30_000, 1), (30_001, 0), (u64::MAX, 0)]
        {
            assert_eq!(taken(9, wait_ms), retries, "{wait_ms} ms");
        }
    }
}
