//! Bars of one row that overlap in time, laid into lanes below each other: what runs at once is then seen to.
//!
//! Each bar goes into the first lane that is free when it starts. Past a number of lanes the last one takes all.

/// Lanes of a row at most.
const LANES_MAX: usize = 16;
/// From one lane to the next, in pixels.
const PITCH_PX: usize = 4;
/// Height of a bar in a lane, in pixels.
const BAR_PX: usize = 3;
/// Above the first lane and below the last, in pixels.
const MARGIN_PX: usize = 6;

/// The lanes of some bars, in the order of their starts.
pub(super) struct Lanes {
    of: Vec<usize>,
    count: usize,
}

impl Lanes {
    /// `bars` are starts and ends, by start.
    pub(super) fn new(bars: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut free_from: Vec<i64> = Vec::new();
        let mut of = Vec::new();
        for (start, end) in bars {
            let free = free_from.iter().position(|from| *from <= start);
            let lane = free.unwrap_or(free_from.len()).min(LANES_MAX - 1);
            match free_from.get_mut(lane) {
                Some(from) => *from = end.max(*from),
                None => free_from.push(end),
            }
            of.push(lane);
        }
        Self { of, count: free_from.len() }
    }

    /// Style that places a bar in its lane; empty if all bars are in one lane.
    pub(super) fn style(&self, bar: usize) -> String {
        match self.of.get(bar) {
            Some(lane) if self.count > 1 => format!(";top:{}px;height:{BAR_PX}px", MARGIN_PX + lane * PITCH_PX),
            _ => String::new(),
        }
    }

    /// Style of the row that holds the lanes; `None` if there is one lane.
    pub(super) fn row_style(&self) -> Option<String> {
        (self.count > 1).then(|| format!("height:{}px", (self.count * PITCH_PX + 2 * MARGIN_PX).max(20)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts and ends, the lanes expected, how many there are.
    type Case<'a> = (&'a [(i64, i64)], &'a [usize], usize);

    #[test]
    fn bars_that_overlap_are_in_different_lanes() {
        let cases: [Case<'_>; 4] = [
            (&[], &[], 0),
            (&[(0, 5), (5, 9), (10, 11)], &[0, 0, 0], 1),
            (&[(0, 5), (1, 9), (2, 3), (5, 6)], &[0, 1, 2, 0], 3),
            (&[(0, 9); 20], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 15, 15, 15], 16),
        ];
        for (bars, expected, count) in cases {
            let lanes = Lanes::new(bars.iter().copied());
            assert_eq!((lanes.of.as_slice(), lanes.count), (expected, count));
        }
    }
}
