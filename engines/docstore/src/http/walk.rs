//! A reading of all ranges, one after another, a page of one range for each request.
//!
//! Its continuation holds a place in the hash space rather than the number of a range, so that it goes on after a split
//! where it was.

use axum::http::HeaderMap;

use super::headers;
use super::response::Failure;
use crate::container::Container;
use crate::effective_key::is_place;
use crate::partition::{Partition, Refusal};
use crate::ranges::{Range, Ranges};
use crate::sql::Progress;

/// Prefix of the continuation of a walk, which tells it from that of a query on one range.
const VERSION: &str = "2";

/// A place in a walk. Ranges below `min` are done.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Walk {
    min: u128,
    /// Ascending by their ends: the first for the range that was read last, the others for the ranges it was split from.
    marks: Vec<Mark>,
}

/// Up to `end`, and from the end of the mark before, documents before `progress` are done.
#[derive(Debug, Clone, PartialEq)]
struct Mark {
    end: u128,
    progress: Progress,
}

impl Mark {
    /// Reads the three parts of a mark in a continuation.
    fn parse(parts: &[&str]) -> Option<Self> {
        let [end, number, row] = parts else { return None };
        let progress = Progress { number: number.parse().ok()?, row: row.parse().ok()?, ..Progress::default() };
        Some(Self { end: place(end)?, progress })
    }
}

fn place(digits: &str) -> Option<u128> {
    u128::from_str_radix(digits, 16).ok()
}

impl Walk {
    /// Where the client's last page ended, or the beginning.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, Failure> {
        let Some(token) = headers::continuation_text(headers)? else { return Ok(Self::default()) };
        Self::parse(token).ok_or_else(|| headers::unusable_continuation(token))
    }

    fn parse(token: &str) -> Option<Self> {
        let parts: Vec<&str> = token.split('.').collect();
        let [VERSION, min, marks @ ..] = parts.as_slice() else { return None };
        let walk = Self { min: place(min)?, marks: marks.chunks(3).map(Mark::parse).collect::<Option<_>>()? };
        is_place(walk.min).then_some(walk)
    }

    /// The continuation for [`Walk::from_headers`] to read.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{VERSION}.{:x}", self.min);
        for Mark { end, progress: Progress { number, row, .. } } in &self.marks {
            text.push_str(&format!(".{end:x}.{number}.{row}"));
        }
        text
    }

    /// Runs `request` on the first range from here on that `is_wanted`, wherever a split has put it.
    pub(super) fn step<T>(
        &self,
        container: &Container,
        is_wanted: impl Fn(&Range) -> bool,
        request: impl Fn(&Partition, Progress) -> Result<T, Refusal>,
    ) -> Result<(Range, T), Refusal> {
        let choose = |ranges: &Ranges| {
            let mut ahead = ranges.iter().filter(|range| range.span.end() > self.min);
            ahead.find(|range| is_wanted(range)).unwrap_or_else(|| ranges.holding(self.min)).clone()
        };
        container.on_range(choose, |range| request(&range.partition, self.progress_in(range.span.min())))
    }

    /// Where to begin in a range that starts at `min`.
    fn progress_in(&self, min: u128) -> Progress {
        self.marks.iter().find(|mark| min < mark.end).map(|mark| mark.progress.clone()).unwrap_or_default()
    }

    /// Where to go on after a page of the range from `min` to `end`.
    pub(super) fn after(self, min: u128, end: u128, next: Option<Progress>) -> Option<Self> {
        // The range that a mark was made for has been split since: its other parts are read from that mark.
        let others = self.marks.into_iter().filter(|mark| mark.end > end);
        match next {
            Some(progress) => Some(Self { min, marks: [Mark { end, progress }].into_iter().chain(others).collect() }),
            None => is_place(end).then(|| Self { min: end, marks: others.collect() }),
        }
    }

    /// Whether a range from here on `is_wanted`.
    pub(super) fn has_more(&self, container: &Container, is_wanted: impl Fn(&Range) -> bool) -> bool {
        container.ranges().iter().any(|range| range.span.end() > self.min && is_wanted(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(number: u64) -> Progress {
        Progress { number, row: 2, ..Progress::default() }
    }

    fn after(walk: &Walk, range: (u128, u128), next: Option<u64>) -> Walk {
        let walk = walk.clone().after(range.0, range.1, next.map(progress)).unwrap();
        assert_eq!(Walk::parse(&walk.text()).as_ref(), Some(&walk));
        walk
    }

    #[test]
    fn a_walk_goes_on_behind_the_range_that_is_done() {
        let within = after(&Walk::default(), (0, 8), Some(5));
        assert_eq!(within.progress_in(0), progress(5));
        assert_eq!(within.progress_in(8), Progress::default());
        let behind = after(&within, (0, 8), None);
        assert_eq!((behind.min, behind.progress_in(8)), (8, Progress::default()));
        assert_eq!(behind.after(8, 1 << 126, None), None);
    }

    #[test]
    fn every_part_of_a_split_range_is_read_from_where_the_range_was() {
        let whole = after(&Walk::default(), (0, 8), Some(5));
        let first_half = after(&whole, (0, 4), Some(7));
        assert_eq!((first_half.progress_in(0), first_half.progress_in(4)), (progress(7), progress(5)));
        let first_quarter = after(&first_half, (0, 2), Some(9));
        let places = [0, 2, 4, 8].map(|min| first_quarter.progress_in(min));
        assert_eq!(places, [progress(9), progress(7), progress(5), Progress::default()]);
        let behind = after(&after(&first_quarter, (0, 2), None), (2, 4), None);
        assert_eq!((behind.min, behind.progress_in(4), behind.progress_in(8)), (4, progress(5), Progress::default()));
    }

    #[test]
    fn a_foreign_continuation_is_not_read() {
        let beyond = "2.ffffffffffffffffffffffffffffffff";
        for token in ["1", "2", "1.2.3.4", "2.1.2.3", "2.1.2.x.0", "2.1.2.3.4.5", beyond] {
            assert_eq!(Walk::parse(token), None, "{token}");
        }
    }
}
