//! The universal scalability law, fitted to loads with one number of requests under way each.
//!
//! The law is N. J. Gunther's (Guerrilla Capacity Planning, 2007): X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)), with N from
//! Little's law, rate × mean latency. As N ÷ X is the latency, the fit is a least-squares line through the latencies in
//! 1, N − 1 and N(N − 1), relative to each latency; coefficients below 0 mean nothing and are left out. The law is a
//! check beside what was measured, never the source of the capacity.

use serde::{Deserialize, Serialize};

/// Fewer levels are no curve.
const LEVELS_MIN: usize = 4;
/// A fit whose latencies are off by more than this in the middle is poor.
const ERROR_MAX: f64 = 0.15;
/// N must have spread by this factor to separate its terms.
const SPREAD_MIN: f64 = 2.0;
/// Below so many requests under way nothing is shared, and the law's terms mean nothing.
const UNDER_WAY_MIN: f64 = 1.0;
/// Standard errors on both sides that hold 95 % of the values left out by turns; see [`kappa_interval`].
const JACKKNIFE_ERRORS: f64 = 2.0;

/// The law's coefficients, and how well they fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// λ: responses per second of one request at a time.
    pub lambda: f64,
    /// σ: contention, the part that waits for others.
    pub sigma: f64,
    /// κ: coherency, what each costs each other.
    pub kappa: f64,
    /// The highest rate that the law predicts: its peak, or what it nears without one; `None` if it is a straight line.
    pub peak: Option<f64>,
    /// Median of |predicted ÷ measured − 1| over the latencies.
    pub error: f64,
    /// Why the fit should not be relied on, if it should not.
    pub poor: Option<Misfit>,
}

/// Why a fit should not be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misfit {
    /// Half of its latencies are off by this share of the measured ones or more.
    Off {
        /// From 0.
        share: f64,
    },
    /// There was never more than one request under way.
    NothingShared,
    /// The number of requests under way hardly changed.
    NoSpread,
}

/// Fits the law to pairs of requests under way and mean latency in seconds; none with fewer than four that are above 0.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let points: Vec<(f64, f64)> = points.iter().copied().filter(|(n, latency)| *n > 0.0 && *latency > 0.0).collect();
    if points.len() < LEVELS_MIN {
        return None;
    }
    let choices = [[true, true], [true, false], [false, true], [false, false]];
    let fits = choices.into_iter().filter_map(|terms| least_squares(&points, terms));
    let possible = fits.filter(|[a, b, c]| *a > 0.0 && *b >= 0.0 && *c >= 0.0);
    let [a, b, c] = possible.min_by(|x, y| squares(&points, *x).total_cmp(&squares(&points, *y)))?;
    let mut errors: Vec<f64> =
        points.iter().map(|(n, latency)| (predicted([a, b, c], *n) / latency - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let error = errors[errors.len() / 2];
    let (lambda, sigma, kappa) = (1.0 / a, b / a, c / a);
    Some(Fit { lambda, sigma, kappa, peak: peak(lambda, sigma, kappa), error, poor: poor(&points, error) })
}

/// κ with about 95 % of confidence, lowest and highest, by the jackknife (Efron, *The Jackknife, the Bootstrap and Other
/// Resampling Plans*, 1982): the fit is made again without each point in turn. None with fewer than five points, and
/// where a fit without one of them is none.
pub fn kappa_interval(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let all = fit(points)?.kappa;
    let n = points.len() as f64;
    let without = |left_out: usize| {
        let rest: Vec<(f64, f64)> =
            points.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, point)| *point).collect();
        fit(&rest).map(|fit| fit.kappa)
    };
    let kappas: Vec<f64> = (0..points.len()).map(without).collect::<Option<_>>()?;
    let mean = kappas.iter().sum::<f64>() / n;
    let squares: f64 = kappas.iter().map(|kappa| (kappa - mean).powi(2)).sum();
    let width = JACKKNIFE_ERRORS * (squares * (n - 1.0) / n).sqrt();
    Some((all - width, all + width))
}

fn poor(points: &[(f64, f64)], error: f64) -> Option<Misfit> {
    let least = points.iter().map(|(n, _)| *n).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|(n, _)| *n).fold(0.0, f64::max);
    if error > ERROR_MAX {
        return Some(Misfit::Off { share: error });
    }
    if most < UNDER_WAY_MIN {
        return Some(Misfit::NothingShared);
    }
    (most < SPREAD_MIN * least).then_some(Misfit::NoSpread)
}

fn peak(lambda: f64, sigma: f64, kappa: f64) -> Option<f64> {
    if kappa > 0.0 && sigma < 1.0 {
        let n = ((1.0 - sigma) / kappa).sqrt();
        return Some(lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)));
    }
    (sigma > 0.0).then(|| lambda / sigma)
}

fn terms_of(n: f64) -> [f64; 3] {
    [1.0, n - 1.0, n * (n - 1.0)]
}

fn predicted(coefficients: [f64; 3], n: f64) -> f64 {
    coefficients.iter().zip(terms_of(n)).map(|(coefficient, term)| coefficient * term).sum()
}

fn squares(points: &[(f64, f64)], coefficients: [f64; 3]) -> f64 {
    points.iter().map(|(n, latency)| (predicted(coefficients, *n) / latency - 1.0).powi(2)).sum()
}

/// The coefficients with the least relative squares, those of left-out terms 0; `None` if they are not determined.
fn least_squares(points: &[(f64, f64)], [with_sigma, with_kappa]: [bool; 2]) -> Option<[f64; 3]> {
    let used: Vec<usize> =
        [(0, true), (1, with_sigma), (2, with_kappa)].iter().filter(|(_, is)| *is).map(|(i, _)| *i).collect();
    let size = used.len();
    let mut matrix = [[0.0; 4]; 3];
    for (n, latency) in points {
        let row = terms_of(*n).map(|term| term / latency);
        for (i, from) in used.iter().enumerate() {
            for (j, to) in used.iter().enumerate() {
                matrix[i][j] += row[*from] * row[*to];
            }
            matrix[i][3] += row[*from];
        }
    }
    let solved = solve(&mut matrix, size)?;
    let mut coefficients = [0.0; 3];
    used.iter().zip(solved).for_each(|(at, value)| coefficients[*at] = value);
    Some(coefficients)
}

/// Gauss' elimination with pivots of the first `size` unknowns; the last column is the right-hand side.
fn solve(matrix: &mut [[f64; 4]; 3], size: usize) -> Option<Vec<f64>> {
    for column in 0..size {
        let pivot = (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        let head = matrix[column];
        if head[column].abs() < 1e-12 * head.iter().map(|value| value.abs()).fold(f64::MIN_POSITIVE, f64::max) {
            return None;
        }
        for (_, line) in matrix.iter_mut().enumerate().take(size).filter(|(row, _)| *row != column) {
            let factor = line[column] / head[column];
            line.iter_mut().zip(head).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let solved: Vec<f64> = (0..size).map(|i| matrix[i][3] / matrix[i][i]).collect();
    solved.iter().all(|value| value.is_finite()).then_some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests under way and latency that the law with these coefficients has at N.
    fn point(lambda: f64, sigma: f64, kappa: f64, n: f64) -> (f64, f64) {
        (n, (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)) / lambda)
    }

    #[test]
    fn the_law_gives_its_own_coefficients_back() {
        let cases = [(1000.0, 0.05, 0.001), (40.0, 0.3, 0.0), (500.0, 0.0, 0.01), (10.0, 0.0, 0.0)];
        for (lambda, sigma, kappa) in cases {
            let points = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0].map(|n| point(lambda, sigma, kappa, n));
            let fit = fit(&points).unwrap();
            assert!((fit.lambda / lambda - 1.0).abs() < 1e-6, "{fit:?}");
            assert!((fit.sigma - sigma).abs() < 1e-6 && (fit.kappa - kappa).abs() < 1e-6, "{fit:?}");
            assert!(fit.error < 1e-6 && fit.poor.is_none(), "{fit:?}");
            let (low, high) = kappa_interval(&points).unwrap();
            assert!((low - kappa).abs() < 1e-6 && (high - kappa).abs() < 1e-6, "{low} to {high}");
        }
    }

    #[test]
    fn noise_widens_the_interval_of_kappa() {
        let noisy = |noise: f64| {
            let n = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
            let points: Vec<(f64, f64)> = n
                .iter()
                .enumerate()
                .map(|(at, n)| {
                    let (n, latency) = point(100.0, 0.05, 0.004, *n);
                    (n, latency * (1.0 + if at % 2 == 0 { noise } else { -noise }))
                })
                .collect();
            kappa_interval(&points).unwrap()
        };
        let (low, high) = noisy(0.02);
        assert!(low > 0.0 && low < 0.004 && high > 0.004, "{low} to {high}");
        let (wide_low, wide_high) = noisy(0.1);
        assert!(wide_high - wide_low > high - low);
        assert_eq!(kappa_interval(&[(1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (4.0, 0.4)]), None);
    }

    #[test]
    fn peaks_are_where_gunther_has_them() {
        let n = (0.95f64 / 0.001).sqrt();
        let top = n / point(1000.0, 0.05, 0.001, n).1;
        assert!((peak(1000.0, 0.05, 0.001).unwrap() - top).abs() < 1e-9);
        assert_eq!(peak(1000.0, 0.5, 0.0), Some(2000.0));
        assert_eq!(peak(1000.0, 0.0, 0.0), None);
    }

    #[test]
    fn what_the_law_cannot_say_is_called_poor_or_left_out() {
        let flat = |rate: f64, latency_s: f64| (rate * latency_s, latency_s);
        let wild = [(10.0, 0.1), (20.0, 0.01), (30.0, 0.3), (40.0, 0.02), (50.0, 0.5)].map(|(r, l)| flat(r, l));
        assert!(matches!(fit(&wild).unwrap().poor, Some(Misfit::Off { .. })));
        let idle = [10.0, 20.0, 30.0, 40.0].map(|rate| flat(rate, 0.01));
        assert_eq!(fit(&idle).unwrap().poor, Some(Misfit::NothingShared));
        let narrow = [100.0, 101.0, 102.0, 103.0].map(|rate| flat(rate, 0.02));
        assert_eq!(fit(&narrow).unwrap().poor, Some(Misfit::NoSpread));
        assert_eq!(fit(&narrow[..3]), None);
        assert_eq!(fit(&[flat(0.0, 0.0); 9]), None);
    }
}
