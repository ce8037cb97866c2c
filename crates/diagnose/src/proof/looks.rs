//! How large Student's t must be for a claim at each look, so that all looks together claim falsely as seldom as stated.
//!
//! Pairs of trials are looked at as they come, from the third on. Each look may claim falsely, so that looking with the
//! usual bound would do so far more often than once in twenty. The error is therefore spent evenly over the pairs that
//! are planned: after n of N, n ÷ N of it (the spending function α t of Lan and DeMets, *Biometrika* 70, 1983, and of Kim
//! and DeMets, *Biometrika* 74, 1987). The bounds that spend it are found by simulation. That is exact for normal
//! differences, however few: without a difference, t does not depend on their variance, so one simulation holds for all
//! systems. The intervals with these bounds are repeated confidence intervals (Jennison and Turnbull, *Group Sequential
//! Methods*, 2000, chapter 9): all of them together hold the true value as often as stated, so that it may also be ended
//! for another reason than the bound, such as that no difference larger than the margin is left.

use crate::stats::normal::Normal;
use crate::stats::student::two_sided;

/// Pairs before the first look.
const FIRST_LOOK: u32 = 3;
/// Looks at most. Of more pairs than this, several come between two looks.
const LOOKS_MAX: u32 = 50;
/// Simulated comparisons without a difference.
const PATHS: usize = 20_000;
/// The seed of the simulation.
const SEED: u64 = 0x6e61_7272_6f77_7332;
/// Part of the allowed error that is spent; the rest is for the error of the simulation, of 3 standard errors at 5 %.
const SPENT: f64 = 0.91;

/// The bounds of all looks at a comparison of so many planned pairs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Looks {
    /// Pairs that each look has seen, and the bound of t there.
    bounds: Vec<(u32, f64)>,
}

impl Looks {
    pub(super) fn new(planned: u32, error_rate: f64) -> Self {
        let pairs = places(planned);
        let bounds = match pairs[..] {
            [] => Vec::new(),
            [only] => vec![(only, two_sided(f64::from(only) - 1.0, error_rate))],
            _ => simulated(&pairs, SPENT * error_rate),
        };
        Self { bounds }
    }

    /// The last look at so many pairs: how many it saw, and its bound; none before the first.
    pub(super) fn last(&self, pairs: u32) -> Option<(u32, f64)> {
        self.bounds.iter().rev().find(|(seen, _)| *seen <= pairs).copied()
    }

    /// True if there is a look right after so many pairs.
    pub(super) fn is_look(&self, pairs: u32) -> bool {
        self.bounds.iter().any(|(seen, _)| *seen == pairs)
    }
}

/// The numbers of pairs after which there is a look.
fn places(planned: u32) -> Vec<u32> {
    let step = planned.div_ceil(LOOKS_MAX).max(1);
    let mut places: Vec<u32> = (1..=planned / step).map(|look| look * step).filter(|at| *at >= FIRST_LOOK).collect();
    if planned >= 2 && places.last() != Some(&planned) {
        places.push(planned);
    }
    places
}

/// One comparison: pairs, their mean, and the sum of squares around it.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    pairs: f64,
    mean: f64,
    squares: f64,
    is_over: bool,
}

impl Path {
    /// By Welford's method.
    fn add(&mut self, difference: f64) {
        self.pairs += 1.0;
        let from_mean = difference - self.mean;
        self.mean += from_mean / self.pairs;
        self.squares += from_mean * (difference - self.mean);
    }

    fn t(&self) -> f64 {
        let variance = self.squares / (self.pairs - 1.0);
        (self.mean / (variance / self.pairs).sqrt()).abs()
    }
}

fn simulated(places: &[u32], error_rate: f64) -> Vec<(u32, f64)> {
    let planned = places.last().copied().unwrap_or(1);
    let mut normal = Normal::new(SEED);
    let mut paths = vec![Path::default(); PATHS];
    let (mut claims, mut seen) = (0, 0);
    let mut bounds = Vec::new();
    for at in places {
        let allowed = (error_rate * f64::from(*at) / f64::from(planned) * PATHS as f64) as usize;
        for path in paths.iter_mut().filter(|path| !path.is_over) {
            (seen..*at).for_each(|_| path.add(normal.draw()));
        }
        let mut largest: Vec<f64> = paths.iter().filter(|path| !path.is_over).map(Path::t).collect();
        largest.sort_by(|a, b| b.total_cmp(a));
        let bound = bound(&largest, allowed - claims);
        for path in paths.iter_mut().filter(|path| !path.is_over && path.t() > bound) {
            path.is_over = true;
            claims += 1;
        }
        seen = *at;
        bounds.push((*at, bound));
    }
    bounds
}

/// Halfway between the last value that may be beyond it and the next; infinite when none may be.
fn bound(descending: &[f64], beyond: usize) -> f64 {
    match beyond {
        0 => f64::INFINITY,
        _ => f64::midpoint(descending[beyond - 1], descending[beyond]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_begin_with_the_third_pair_and_end_with_the_last() {
        assert_eq!(places(1), [0; 0]);
        assert_eq!(places(2), [2]);
        assert_eq!(places(5), [3, 4, 5]);
        assert_eq!(places(50).len(), 48);
        let many = places(1000);
        assert_eq!((many[0], many[1], many.len(), many.last()), (20, 40, 50, Some(&1000)));
        assert_eq!(places(103).last(), Some(&103));
    }

    #[test]
    fn a_single_look_has_the_bound_of_a_t_test() {
        let looks = Looks::new(3, 0.05);
        assert!((looks.last(3).unwrap().1 - 4.303).abs() < 0.01);
        assert_eq!((looks.last(2), looks.is_look(3)), (None, true));
    }

    #[test]
    fn bounds_fall_and_stay_above_those_of_a_single_look() {
        for planned in [5, 10, 30] {
            let looks = Looks::new(planned, 0.05);
            let (_, last) = looks.last(planned).unwrap();
            let alone = two_sided(f64::from(planned) - 1.0, 0.05);
            assert!(last > alone && last < 1.5 * alone, "{planned}: {last}, alone {alone}");
            assert!(looks.last(3).unwrap().1 > last);
        }
    }

    /// Without a difference, claims are as rare as stated, whatever the noise; seeds are not those of the bounds.
    #[test]
    fn all_looks_together_claim_falsely_as_seldom_as_stated() {
        const RUNS: usize = 20_000;
        for planned in [4, 10, 25] {
            let looks = Looks::new(planned, 0.05);
            let is_claimed = |seed: u64| {
                let mut normal = Normal::new(0x5eed_0000_u64.wrapping_add(seed.wrapping_mul(0x1000_0000_01b3)));
                let mut path = Path::default();
                (1..=planned).any(|pairs| {
                    path.add(0.17 * normal.draw());
                    looks.is_look(pairs) && looks.last(pairs).is_some_and(|(_, bound)| path.t() > bound)
                })
            };
            let claims = (0..RUNS as u64).filter(|seed| is_claimed(*seed)).count();
            let share = claims as f64 / RUNS as f64;
            assert!((0.035..=0.05).contains(&share), "{planned} pairs: {share}");
        }
    }
}
