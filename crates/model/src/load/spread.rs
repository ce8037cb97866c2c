//! Lengths of time of which no distribution is kept.

use serde::{Deserialize, Serialize};

/// Count, sum and ends of some lengths of time, in nanoseconds: what is kept of a length whose distribution is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// All together.
    pub sum_ns: u64,
    /// The shortest; 0 when there is none.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Spread {
    /// The mean; 0 when there is none.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Counts the time between two instants; 0 when the clock ran backwards.
    pub fn add(&mut self, from_ns: i64, to_ns: i64) {
        let length_ns = to_ns.saturating_sub(from_ns).max(0) as u64;
        self.merge(&Spread { count: 1, sum_ns: length_ns, min_ns: length_ns, max_ns: length_ns });
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_keep_their_ends_and_merge_with_nothing() {
        let mut spread = Spread::default();
        assert_eq!(spread.mean_ns(), 0.0);
        for (from, to) in [(10, 40), (0, 10), (5, 3)] {
            spread.add(from, to);
        }
        spread.merge(&Spread::default());
        assert_eq!(spread, Spread { count: 3, sum_ns: 40, min_ns: 0, max_ns: 30 });
    }
}
