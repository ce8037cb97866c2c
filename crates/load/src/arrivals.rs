//! When the iterations of an open model are due: pure arithmetic over a rate that changes in straight lines.
//!
//! The k-th arrival is computed from k alone, by the inverse of the rate's integral, so nothing adds up to a drift.
//! Evenly spaced arrivals are due where the integral passes k + ½. Those of a Poisson process are unit exponentials
//! mapped through the same inverse: the time change of an inhomogeneous process (Lewis and Shedler 1979, "Simulation of
//! nonhomogeneous Poisson processes by thinning", section 1).
//!
//! All threads follow one schedule without speaking to each other. Even arrival k belongs to thread k modulo their
//! number. Bursts are even arrivals that do not wait for their own moment but are due at that of the first of their burst, or at
//! the last tick of a clock; a burst is divided over the threads. A Poisson process is split into independent ones of an equal part of the rate each, which is exact: the
//! superposition of independent Poisson processes is a Poisson process of the sum of their rates.

use std::time::Duration;

use narrows_model::load::Arrivals;

use crate::clock::nanos;
use crate::random::Random;

/// Where between two whole numbers of the integral an even arrival is due. In the middle, the number of arrivals so far
/// is the integral rounded.
const PHASE: f64 = 0.5;

/// Arrivals per second over time, from 0 on, in pieces that are straight lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RateCurve {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    start_ns: i64,
    length_ns: i64,
    length_s: f64,
    /// Arrivals per second at its beginning and at its end.
    from: f64,
    to: f64,
    /// Arrivals before it.
    before: f64,
}

impl Piece {
    /// Arrivals from its beginning until `t` seconds later.
    fn arrivals(&self, t: f64) -> f64 {
        self.from * t + (self.to - self.from) * t * t / (2.0 * self.length_s)
    }

    fn end(&self) -> f64 {
        self.before + self.arrivals(self.length_s)
    }

    /// Seconds after its beginning at which so many have arrived: the root of the integral's quadratic, in the form
    /// that loses no digits (Numerical Recipes, section 5.6).
    fn seconds_to(&self, arrivals: f64) -> f64 {
        let slope = (self.to - self.from) / self.length_s;
        let root = (self.from * self.from + 2.0 * slope * arrivals).max(0.0).sqrt();
        let divisor = self.from + root;
        let seconds = if divisor > 0.0 { 2.0 * arrivals / divisor } else { 0.0 };
        seconds.clamp(0.0, self.length_s)
    }
}

impl RateCurve {
    /// A rate that does not change.
    pub(crate) fn constant(rate: f64, duration: Duration) -> Self {
        Self::default().then(rate, rate, duration)
    }

    /// The curve with a line from one rate to another after it. A line without duration changes nothing.
    pub(crate) fn then(mut self, from: f64, to: f64, duration: Duration) -> Self {
        if !duration.is_zero() {
            let (start_ns, before) = (self.end_ns(), self.total());
            let length_ns = nanos(duration);
            self.pieces.push(Piece { start_ns, length_ns, length_s: length_ns as f64 / 1e9, from, to, before });
        }
        self
    }

    fn end_ns(&self) -> i64 {
        self.pieces.last().map_or(0, |last| last.start_ns + last.length_ns)
    }

    /// All arrivals, not rounded.
    pub(crate) fn total(&self) -> f64 {
        self.pieces.last().map_or(0.0, Piece::end)
    }

    /// Arrivals per second at a moment; past the end, those at the end.
    pub(crate) fn rate_at(&self, t: Duration) -> f64 {
        let t_ns = nanos(t);
        let Some(piece) = self.pieces.iter().rev().find(|piece| piece.start_ns <= t_ns) else { return 0.0 };
        let share = ((t_ns - piece.start_ns) as f64 / 1e9 / piece.length_s).min(1.0);
        piece.from + (piece.to - piece.from) * share
    }

    /// The highest rate at any time.
    pub(crate) fn rate_max(&self) -> f64 {
        self.pieces.iter().fold(0.0, |most, piece| most.max(piece.from).max(piece.to))
    }
}

/// Which of a schedule's arrivals one thread begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// From 0.
    pub(crate) number: usize,
    /// How many parts there are, at least 1.
    pub(crate) of: usize,
}

/// The times at which one part of the arrivals is due, in nanoseconds, in order.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    curve: RateCurve,
    /// When the curve begins.
    start_ns: i64,
    /// The piece that the last arrival was in.
    piece: usize,
    step: f64,
    spacing: Spacing,
}

#[derive(Debug, Clone)]
enum Spacing {
    /// The number of the next arrival, how many are due at the same moment, and the length of the ticks at whose beginning
    /// they are due, nanoseconds.
    Even { next: u64, burst: u64, tick_ns: i64 },
    /// The sum of the exponentials so far.
    Random { sum: f64, random: Random },
}

impl Due {
    /// `random` is drawn from by a Poisson process only, and has to differ between parts.
    pub(crate) fn new(curve: RateCurve, start_ns: i64, arrivals: Arrivals, part: Part, random: Random) -> Self {
        let spacing = match arrivals {
            Arrivals::Uniform => Spacing::Even { next: part.number as u64, burst: 1, tick_ns: 1 },
            Arrivals::Bursts(size) => {
                Spacing::Even { next: part.number as u64, burst: u64::from(size.max(1)), tick_ns: 1 }
            }
            Arrivals::BurstsEvery(tick_ns) => {
                let tick_ns = i64::try_from(tick_ns).unwrap_or(i64::MAX).max(1);
                Spacing::Even { next: part.number as u64, burst: 1, tick_ns }
            }
            Arrivals::Poisson => Spacing::Random { sum: 0.0, random },
        };
        Self { curve, start_ns, piece: 0, step: part.of as f64, spacing }
    }
}

impl Iterator for Due {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let mut tick = 1;
        let arrivals = match &mut self.spacing {
            Spacing::Even { next, burst, tick_ns } => {
                tick = *tick_ns;
                if *next as f64 + PHASE >= self.curve.total() {
                    return None;
                }
                let first_of_burst = *next - *next % *burst;
                *next += self.step as u64;
                first_of_burst as f64 + PHASE
            }
            Spacing::Random { sum, random } => {
                *sum -= (1.0 - random.unit()).ln();
                *sum * self.step
            }
        };
        while arrivals >= self.curve.pieces.get(self.piece)?.end() {
            self.piece += 1;
        }
        let piece = &self.curve.pieces[self.piece];
        let within_ns = (piece.seconds_to(arrivals - piece.before) * 1e9).round() as i64;
        // An arrival within a piece is due before the piece's end, whatever is rounded.
        let due_ns = piece.start_ns + within_ns.min(piece.length_ns - 1);
        Some(self.start_ns + due_ns - due_ns % tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: Part = Part { number: 0, of: 1 };

    fn even(curve: &RateCurve, part: Part) -> Vec<i64> {
        Due::new(curve.clone(), 0, Arrivals::Uniform, part, Random::new(0, 0)).collect()
    }

    fn poisson(curve: &RateCurve, part: Part, seed: u64) -> Vec<i64> {
        let random = Random::new(seed, part.number as u64);
        Due::new(curve.clone(), 0, Arrivals::Poisson, part, random).collect()
    }

    /// The integral of the rate, in a way of its own: trapezoids over so short a time that lines are lines.
    fn integral(curve: &RateCurve, until_ns: i64) -> f64 {
        let pieces = curve.pieces.iter().filter(|piece| piece.start_ns < until_ns);
        pieces
            .map(|piece| {
                let t = ((until_ns - piece.start_ns) as f64 / 1e9).min(piece.length_s);
                let rate = piece.from + (piece.to - piece.from) * t / piece.length_s;
                (piece.from + rate) / 2.0 * t
            })
            .sum()
    }

    #[test]
    fn an_even_rate_is_exact_at_any_distance() {
        let hour = Duration::from_secs(3_600);
        let due = even(&RateCurve::constant(3.0, hour), WHOLE);
        assert_eq!(due.len(), 10_800);
        for k in [0, 1, 2, 10_799] {
            assert!((due[k] - (k as i64 * 2 + 1) * 1_000_000_000 / 6).abs() <= 1, "{k}: {}", due[k]);
        }
    }

    #[test]
    fn a_ramp_from_nothing_begins_with_the_root_of_its_area() {
        let curve = RateCurve::default().then(0.0, 10.0, Duration::from_secs(10));
        let due = even(&curve, WHOLE);
        assert_eq!((due.len(), due[0]), (50, 1_000_000_000));
        assert_eq!(due[12], 5_000_000_000, "12.5 arrivals after 5 s");
        let falling = RateCurve::default().then(10.0, 0.0, Duration::from_secs(10));
        assert_eq!(even(&falling, WHOLE).len(), 50);
        assert!(even(&RateCurve::constant(0.0, Duration::from_secs(9)), WHOLE).is_empty());
        assert!(even(&RateCurve::default(), WHOLE).is_empty());
    }

    #[test]
    fn bursts_are_due_together_and_change_no_count() {
        let curve = RateCurve::constant(100.0, Duration::from_secs(1));
        let bursts =
            |part| Due::new(curve.clone(), 0, Arrivals::Bursts(30), part, Random::new(0, 0)).collect::<Vec<i64>>();
        let due = bursts(WHOLE);
        let sizes: Vec<usize> = due.chunk_by(|a, b| a == b).map(<[i64]>::len).collect();
        assert_eq!((due.len(), sizes), (100, vec![30, 30, 30, 10]));
        assert_eq!([due[0], due[30], due[99]], [5_000_000, 305_000_000, 905_000_000]);
        let mut parts: Vec<i64> = (0..3).flat_map(|number| bursts(Part { number, of: 3 })).collect();
        parts.sort_unstable();
        assert_eq!(parts, due);
        let single = Due::new(curve.clone(), 0, Arrivals::Bursts(1), WHOLE, Random::new(0, 0));
        assert_eq!(single.collect::<Vec<_>>(), even(&curve, WHOLE));
    }

    #[test]
    fn clients_whose_timers_tick_together_are_more_at_a_higher_rate() {
        let curve = RateCurve::constant(100.0, Duration::from_secs(1)).then(300.0, 300.0, Duration::from_secs(1));
        let every = |tick_ms: u64, part| {
            let arrivals = Arrivals::BurstsEvery(tick_ms * 1_000_000);
            Due::new(curve.clone(), 0, arrivals, part, Random::new(0, 0)).collect::<Vec<i64>>()
        };
        let due = every(100, WHOLE);
        let bursts: Vec<(i64, usize)> =
            due.chunk_by(|a, b| a == b).map(|all| (all[0] / 1_000_000, all.len())).collect();
        assert_eq!((bursts.len(), bursts[0], bursts[9]), (20, (0, 10), (900, 10)));
        assert_eq!((bursts[10], bursts[19]), ((1_000, 30), (1_900, 30)));
        let mut parts: Vec<i64> = (0..3).flat_map(|number| every(100, Part { number, of: 3 })).collect();
        parts.sort_unstable();
        assert_eq!(parts, due);
    }

    #[test]
    fn a_poisson_process_has_its_mean_and_variance_however_it_is_split() {
        let curve =
            RateCurve::default().then(0.0, 200.0, Duration::from_secs(10)).then(300.0, 300.0, Duration::from_secs(10));
        for of in [1, 4] {
            let counts: Vec<f64> = (0..200)
                .map(|seed| {
                    (0..of).map(|number| poisson(&curve, Part { number, of }, seed).len()).sum::<usize>() as f64
                })
                .collect();
            let mean = counts.iter().sum::<f64>() / 200.0;
            let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 199.0;
            // 4,000 arrivals: the mean's standard error is 4.5, the variance's a tenth of it.
            assert!((3_980.0..4_020.0).contains(&mean), "{of}: mean {mean}");
            assert!((2_600.0..5_400.0).contains(&variance), "{of}: variance {variance}");
        }
        assert_eq!(poisson(&curve, WHOLE, 7), poisson(&curve, WHOLE, 7));
        assert_ne!(poisson(&curve, WHOLE, 7), poisson(&curve, WHOLE, 8));
    }

    #[test]
    fn poisson_intervals_are_exponential() {
        let due = poisson(&RateCurve::constant(1_000.0, Duration::from_secs(20)), WHOLE, 1);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        for (at_ms, share) in [(0.1, 0.0952), (1.0, 0.6321), (3.0, 0.9502)] {
            let below = gaps.iter().filter(|gap| **gap < at_ms).count() as f64 / gaps.len() as f64;
            assert!((below - share).abs() < 0.02, "{below} of the gaps are below {at_ms} ms");
        }
    }

    fn any_curve() -> impl Strategy<Value = RateCurve> {
        proptest::collection::vec((0u64..3_000, 0.0..2_000.0f64, 0.0..2_000.0f64), 1..6).prop_map(|lines| {
            lines
                .into_iter()
                .fold(RateCurve::default(), |curve, (ms, from, to)| curve.then(from, to, Duration::from_millis(ms)))
        })
    }

    proptest! {
        #[test]
        fn the_count_never_strays_from_the_integral(curve in any_curve(), share in 0.0..1.0f64) {
            let due = even(&curve, WHOLE);
            prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
            let at_ns = (curve.end_ns() as f64 * share) as i64;
            let count = due.iter().filter(|due_ns| **due_ns < at_ns).count() as f64;
            prop_assert!((count - integral(&curve, at_ns)).abs() <= 0.501);
            prop_assert!((due.len() as f64 - integral(&curve, curve.end_ns())).abs() <= 0.501);
            prop_assert!(due.iter().all(|due_ns| (0..curve.end_ns()).contains(due_ns)));
        }

        #[test]
        fn the_parts_are_the_whole(curve in any_curve(), of in 1usize..7) {
            let mut parts: Vec<i64> = (0..of).flat_map(|number| even(&curve, Part { number, of })).collect();
            parts.sort_unstable();
            prop_assert_eq!(parts, even(&curve, WHOLE));
        }

        #[test]
        fn random_arrivals_are_in_order_and_within_the_load(curve in any_curve(), seed: u64) {
            let due = poisson(&curve, WHOLE, seed);
            prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(due.iter().all(|due_ns| (0..curve.end_ns()).contains(due_ns)));
        }

        #[test]
        fn rates_lie_on_their_lines(from in 0.0..1e4f64, to in 0.0..1e4f64, share in 0.0..1.0f64) {
            let curve = RateCurve::default().then(from, to, Duration::from_secs(10));
            let rate = curve.rate_at(Duration::from_secs(10).mul_f64(share));
            prop_assert!((rate - (from + (to - from) * share)).abs() < 1e-3);
            prop_assert_eq!(curve.rate_max(), from.max(to));
        }
    }
}
