//! The highest rate that a system showed, where more load got no more of it.

use super::Level;

/// Rates of at least this share of the highest one are the same.
const SAME_SHARE: f64 = 0.9;
/// Users, as a multiple of those of the lightest such level, from which the same rate shows a limit.
const USERS_FACTOR: f64 = 1.3;
/// Arrivals are more than is completed where less than this share of them is.
const COMPLETED_SHARE: f64 = 0.95;
/// Latency alone × rate may be so much lower than the number of places that it shows: errors of both.
const PLACES_ERROR: f64 = 0.05;
/// With more failed requests the rate of successful ones is no capacity.
const FAILED_MAX: f64 = 0.05;

/// Highest rate of a system, and whether its load reached it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Capacity {
    /// Requests per second, above 0.
    pub(super) rate: f64,
    /// Mean latency under the lightest load, seconds.
    pub(super) alone_s: f64,
    /// Whether a heavier load got no more.
    pub(super) is_reached: bool,
}

impl Capacity {
    /// The highest rate under these levels, lightest first: that of all levels together that come near it or are heavier, so
    /// that more load got no more of them; `None` without a rate.
    pub(super) fn of(levels: &[Level]) -> Option<Self> {
        let top = (0..levels.len()).max_by(|a, b| levels[*a].rate().total_cmp(&levels[*b].rate()))?;
        let is_near = |at: usize| at >= top || levels[at].rate() >= SAME_SHARE * levels[top].rate();
        let near: Vec<&Level> = (0..levels.len()).filter(|at| is_near(*at)).map(|at| &levels[at]).collect();
        let (first, last) = (near.first()?, near.last()?);
        let is_flat = f64::from(last.load.users) >= USERS_FACTOR * f64::from(first.load.users);
        let is_behind = last.load.arrivals.is_some_and(|arrivals| last.rate() < COMPLETED_SHARE * arrivals);
        let is_sound = levels.iter().all(|level| level.error_rate <= FAILED_MAX);
        let requests: f64 = near.iter().map(|level| level.requests as f64).sum();
        let seconds: f64 = near.iter().map(|level| level.seconds).sum();
        let is_reached = is_sound && (first.load.arrivals.is_none() && is_flat || is_behind);
        (requests > 0.0).then(|| Self { rate: requests / seconds, alone_s: levels[0].mean_s(), is_reached })
    }

    /// Requests at a time that explain it, if each has its place for as much of its latency as can be: at least 1.
    pub(super) fn places(&self) -> u32 {
        (self.rate * self.alone_s * (1.0 + PLACES_ERROR)).floor().max(1.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_more_users_do_not_raise_is_a_capacity() {
        let levels = |points: &[(u32, f64, f64)]| -> Vec<Level> {
            points.iter().map(|point| Level::of_users(point.0, point.1, point.2)).collect()
        };
        let two = Capacity::of(&levels(&[(1, 39.0, 0.0256), (6, 77.0, 0.077), (16, 78.0, 0.2)])).expect("a rate");
        assert!(two.is_reached && two.places() == 2 && (two.rate - 77.5).abs() < 1e-9, "{two:?}");
        let one = Capacity::of(&levels(&[(1, 49.0, 0.0205), (16, 48.0, 0.33)])).expect("a rate");
        assert!(one.is_reached && one.places() == 1, "{one:?}");
        let more = Capacity::of(&levels(&[(1, 49.0, 0.0205), (16, 760.0, 0.0205)])).expect("a rate");
        assert!(!more.is_reached, "{more:?}");
        let steps = Capacity::of(&levels(&[(10, 95.0, 0.1), (11, 100.0, 0.1)])).expect("a rate");
        assert!(!steps.is_reached, "hardly more users: {steps:?}");
        let falling = Capacity::of(&levels(&[(1, 12.0, 0.006), (11, 90.0, 0.05), (16, 70.0, 0.12)])).expect("a rate");
        assert!(falling.is_reached && (falling.rate - 80.0).abs() < 1e-9, "{falling:?}");
        assert_eq!(Capacity::of(&[]), None);
    }
}
