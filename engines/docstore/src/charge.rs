//! Cost of a request, in request units (RU). Hundredths are counted as integers, so sums are exact.
//!
//! The query prices are fitted to the drone delivery case study of Azure's architecture centre (29 RU for a query that
//! finds one document on nine partitions, 3.4 RU on one). Point reads follow the two published figures, 1 RU for 1 KB
//! and 10 RU for 100 KB, on the line through them; writes follow the model of Cosmos DB's own in-memory emulator. No source
//! gives the price of a scan: 0.05 RU for each document that is read and not returned is a choice.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

/// An amount of request units, kept as hundredths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Charge(u64);

/// One page of a query on one partition, empty or not.
const QUERY_PAGE: Charge = Charge(320);
/// Each result of a page.
const QUERY_DOCUMENT: Charge = Charge(19);
/// Each document that was read and is no result: rejected by a scan, or counted, grouped and sorted.
const QUERY_EXAMINED: Charge = Charge(5);

impl Charge {
    pub(crate) const ZERO: Self = Self(0);
    /// A request that was refused because the partition's units are used up.
    pub(crate) const REFUSAL: Self = Self(38);
    /// Reading a description (account, database, container, ranges); paid from no partition's budget.
    pub(crate) const DESCRIPTION: Self = Self(100);

    pub(crate) const fn from_hundredths(hundredths: u64) -> Self {
        Self(hundredths)
    }

    /// Number of times that `part` fits in whole; 0 if `part` is zero.
    pub(crate) fn times(self, part: Self) -> u64 {
        self.0.checked_div(part.0).unwrap_or_default()
    }

    /// Rest after `times` payments of `payment`.
    pub(crate) fn less(self, payment: Self, times: u64) -> Self {
        Self(self.0.saturating_sub(payment.0.saturating_mul(times)))
    }

    /// The same amount as a number, for metrics.
    pub(crate) fn request_units(self) -> f64 {
        self.0 as f64 / 100.0
    }

    /// A page of a query that returns `results`: 3.20 + 0.19 for each + 0.05 for each document `examined` besides.
    pub(crate) fn query_page(results: usize, examined: usize) -> Self {
        Self(QUERY_PAGE.0 + QUERY_DOCUMENT.0 * results as u64 + QUERY_EXAMINED.0 * examined as u64)
    }

    /// A point read of a document of `bytes`: 1 + 9·(KB − 1)/99, at least 1, rounded up to a hundredth.
    pub(crate) fn point_read(bytes: usize) -> Self {
        let beyond_first_kb = (bytes as u64).saturating_sub(1024);
        Self(100 + (beyond_first_kb * 900).div_ceil(99 * 1024))
    }

    /// Creating a document of `bytes` with `properties` at its top: 5.8·2^⌈log2 KB⌉ + 0.3 for each property.
    pub(crate) fn create(bytes: usize, properties: usize) -> Self {
        Self(write_base(bytes) + 30 * properties as u64)
    }

    /// Replacing a document costs half as much again as its creation, properties aside.
    pub(crate) fn replace(bytes: usize, properties: usize) -> Self {
        Self(write_base(bytes) * 3 / 2 + 30 * properties as u64)
    }

    /// Deleting a document costs what creating it does, properties aside.
    pub(crate) fn delete(bytes: usize) -> Self {
        Self(write_base(bytes))
    }
}

fn write_base(bytes: usize) -> u64 {
    580 * (bytes as u64).div_ceil(1024).max(1).next_power_of_two()
}

impl Add for Charge {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Charge {
    fn sum<I: Iterator<Item = Self>>(charges: I) -> Self {
        charges.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Charge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(out, "{whole}"),
            (whole, rest) => write!(out, "{whole}.{rest:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_study_adds_up() {
        let fan_out: Charge = (0..9).map(|partition| Charge::query_page(usize::from(partition == 4), 0)).sum();
        assert_eq!(fan_out.to_string(), "28.99");
        assert_eq!(Charge::query_page(1, 0).to_string(), "3.39");
        assert_eq!(Charge::query_page(1, 100).to_string(), "8.39", "a scan of a hundred others");
    }

    #[test]
    fn point_reads_meet_the_published_figures() {
        assert_eq!(Charge::point_read(0).to_string(), "1");
        assert_eq!(Charge::point_read(1024).to_string(), "1");
        assert_eq!(Charge::point_read(100 * 1024).to_string(), "10");
    }

    #[test]
    fn writes_double_with_the_size() {
        assert_eq!(Charge::create(785, 10).to_string(), "8.80");
        assert_eq!(Charge::create(1025, 10).to_string(), "14.60");
        assert_eq!(Charge::replace(785, 10).to_string(), "11.70");
    }
}
