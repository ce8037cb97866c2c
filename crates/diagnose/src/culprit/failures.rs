//! Whether more requests fail because of a service than before.
//!
//! The square root of twice the logarithm of the likelihood ratio of two binomial counts, in place of a difference over
//! its standard error: it stays right where nothing failed before (G. Casella, R. Berger, *Statistical Inference*,
//! section 10.3). Errors where there were none need less certainty than a few more where there are always some: it is
//! those that vary from hour to hour.
//!
//! Few calls of a service before say little about how many fail usually. So three failures of a rare service also count
//! where the calls of all services together hardly failed before: they are held against the Poisson count that their share
//! lets expect.

/// Standard errors from which failures are more than before.
const ERRORS_MIN: f64 = 4.0;
/// Standard errors from which they are new, where less than one request failed before.
const ERRORS_MIN_NEW: f64 = 3.0;
/// Additional requests that must have failed.
const FAILED_MIN: f64 = 5.0;
/// The same of a service that few requests reach, if a tenth of these fail because of it: certainty, requests, share.
const ERRORS_MIN_REACHED: f64 = 2.5;
const FAILED_MIN_REACHED: f64 = 4.0;
const SHARE_MIN_REACHED: f64 = 0.1;
/// The same where the calls of all services hardly fail: some services may fail more often than all together, but hardly
/// one in four of their calls without having failed before.
const ERRORS_MIN_UNUSUAL: f64 = 4.0;
const FAILED_MIN_UNUSUAL: f64 = 3.0;
const SHARE_MIN_UNUSUAL: f64 = 0.25;

/// Failed requests by which a share × a number may fall short of a whole number.
const ROUNDING: f64 = 1e-6;

/// Share of requests that fail because of a service, and how many requests there are, on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Failures {
    pub(super) before: (f64, f64),
    pub(super) after: (f64, f64),
}

impl Failures {
    /// The shares.
    pub(super) fn shares(self) -> (f64, f64) {
        (self.before.0, self.after.0)
    }

    /// The same over the requests that reach the service: these shares of all.
    pub(super) fn of_those_reached(self, reached: (f64, f64)) -> Self {
        let of = |(share, requests): (f64, f64), reached: f64| {
            if reached > 0.0 { ((share / reached).min(1.0), requests * reached) } else { (0.0, 0.0) }
        };
        Self { before: of(self.before, reached.0), after: of(self.after, reached.1) }
    }

    /// By how much the share grew.
    pub(super) fn change(self) -> f64 {
        self.after.0 - self.before.0
    }

    /// True if there are more, by this share of the requests at least.
    pub(super) fn are_more(self, least: f64) -> bool {
        let errors_min = if self.before.0 * self.before.1 < 1.0 { ERRORS_MIN_NEW } else { ERRORS_MIN };
        self.change() >= least && self.change() * self.after.1 >= FAILED_MIN && self.errors() >= errors_min
    }

    /// True if there are more among the requests that reach a service. `usual` is the share of calls of all services that
    /// failed before, above 0.
    pub(super) fn are_more_of_those_reached(self, usual: f64) -> bool {
        self.are_more_than_before() || self.are_more_than(usual)
    }

    fn are_more_than_before(self) -> bool {
        let errors_min = if self.before.0 * self.before.1 < 1.0 { ERRORS_MIN_REACHED } else { ERRORS_MIN };
        self.change() >= SHARE_MIN_REACHED
            && self.change() * self.after.1 >= FAILED_MIN_REACHED
            && self.errors() >= errors_min
    }

    /// True if many fail where none did before, and hardly any call of another service.
    fn are_more_than(self, usual: f64) -> bool {
        let (share, requests) = self.after;
        let (failed, expected) = (share * requests, usual * requests);
        let surplus = failed * (failed / expected).ln() - (failed - expected);
        self.before.0 == 0.0
            && share >= SHARE_MIN_UNUSUAL
            && failed >= FAILED_MIN_UNUSUAL - ROUNDING
            && failed > expected
            && (2.0 * surplus).sqrt() >= ERRORS_MIN_UNUSUAL
    }

    /// The change in standard errors, signed.
    pub(super) fn errors(self) -> f64 {
        let ((old, before), (new, after)) = (self.before, self.after);
        let both = (old * before + new * after) / (before + after);
        let ratio = |share: f64, of: f64| if share > 0.0 { share * (share / of).ln() } else { 0.0 };
        let surplus = |share: f64, requests: f64| requests * (ratio(share, both) + ratio(1.0 - share, 1.0 - both));
        let root = (2.0 * (surplus(old, before) + surplus(new, after))).max(0.0).sqrt();
        if root.is_finite() { root.copysign(new - old) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_eighty(before: f64, after: f64) -> Failures {
        Failures { before: (before / 80.0, 80.0), after: (after / 80.0, 80.0) }
    }

    #[test]
    fn few_new_failures_are_certain_and_few_more_are_not() {
        let are_more = |before, after| of_eighty(before, after).are_more(0.01);
        assert!(are_more(0.0, 8.0) && !are_more(0.0, 4.0));
        assert!(!are_more(4.0, 12.0) && are_more(4.0, 26.0));
        assert!(!are_more(8.0, 0.0) && !are_more(0.0, 0.0) && !are_more(80.0, 80.0));
    }

    #[test]
    fn three_failures_of_few_calls_count_where_hardly_any_call_fails() {
        let of_twelve = |failed: f64, usual| {
            let failures = Failures { before: (0.0, 12.0), after: (failed / 12.0, 12.0) };
            failures.are_more_of_those_reached(usual)
        };
        assert!(of_twelve(3.0, 0.001) && !of_twelve(2.0, 0.001) && !of_twelve(3.0, 0.02));
        assert!(of_twelve(4.0, 0.1), "more than before");
        let of_many = Failures { before: (0.0, 80.0), after: (3.0 / 80.0, 80.0) };
        assert!(!of_many.are_more_of_those_reached(0.001));
    }

    #[test]
    fn the_certainty_is_that_of_the_likelihood_ratio() {
        // 2 × (8 ln 2 + 72 ln(72/76) + 80 ln(80/76)) = 11.5.
        assert!((of_eighty(0.0, 8.0).errors() - 11.51_f64.sqrt()).abs() < 0.01);
        assert!((of_eighty(8.0, 0.0).errors() + 11.51_f64.sqrt()).abs() < 0.01);
        assert_eq!(Failures::default().errors(), 0.0);
    }
}
