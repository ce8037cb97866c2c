//! Throughput of the last seconds as a row of bars.

use std::collections::VecDeque;

/// The most seconds that are kept.
pub(crate) const SECONDS_MAX: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Spark {
    values: VecDeque<f64>,
}

impl Spark {
    pub(crate) fn add(&mut self, value: f64) {
        if self.values.len() == SECONDS_MAX {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// The last so many seconds, from 0 to the highest of them.
    pub(crate) fn draw(&self, width: usize) -> String {
        let shown = || self.values.iter().skip(self.values.len().saturating_sub(width));
        let max = shown().copied().fold(f64::MIN_POSITIVE, f64::max);
        shown().map(|value| BARS[((value / max * 7.0).round() as usize).min(7)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_seconds_are_shown() {
        let mut spark = Spark::default();
        assert_eq!(spark.draw(10), "");
        (0..100).for_each(|i| spark.add(f64::from(i)));
        assert_eq!(spark.draw(usize::MAX).chars().count(), SECONDS_MAX);
        assert_eq!(spark.draw(3), "███");
        spark.add(0.0);
        assert!(spark.draw(10).ends_with("█▁"));
    }
}
