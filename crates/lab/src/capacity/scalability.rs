//! Two looks at the shape of the curve: where it bends, and what the universal scalability law makes of it.
//!
//! The law takes N from Little's law, rate × mean latency; see [`narrows_model::scalability`]. It is a check beside what
//! was measured, never the source of the capacity.

pub use narrows_model::scalability::Fit;

/// The knee is where 95 % latency exceeds this many times its value at the lowest rate.
const KNEE: f64 = 2.0;

/// Result of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    /// Offered, per second.
    pub(crate) rate: f64,
    /// Successful responses per second.
    pub(crate) responses: f64,
    /// Mean latency, seconds.
    pub(crate) mean_s: f64,
    /// 95 % latency, nanoseconds.
    pub(crate) p95_ns: u64,
}

/// The lowest rate at which 95 % latency is more than twice that of the lowest rate; `None` if it never is.
pub(crate) fn knee(levels: &[Level]) -> Option<f64> {
    let mut levels = levels.to_vec();
    levels.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let base = levels.first()?.p95_ns as f64;
    levels.iter().find(|level| level.p95_ns as f64 > KNEE * base).map(|level| level.rate)
}

/// Fits the law; none with too few levels that had responses.
pub(crate) fn fit(levels: &[Level]) -> Option<Fit> {
    let points: Vec<(f64, f64)> = levels.iter().map(|level| (level.responses * level.mean_s, level.mean_s)).collect();
    narrows_model::scalability::fit(&points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_reads_what_is_under_way_from_the_levels() {
        let level = |n: f64| {
            let mean_s = (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0)) / 1000.0;
            Level { rate: n / mean_s, responses: n / mean_s, mean_s, p95_ns: (mean_s * 2e9) as u64 }
        };
        let fit = fit(&[1.0, 2.0, 4.0, 8.0, 16.0].map(level)).unwrap();
        assert!((fit.lambda / 1000.0 - 1.0).abs() < 1e-6 && (fit.kappa - 0.001).abs() < 1e-6, "{fit:?}");
    }

    #[test]
    fn the_knee_is_the_first_rate_at_twice_the_latency() {
        let at = |rate, p95_ns| Level { rate, responses: rate, mean_s: 1.0, p95_ns };
        let levels = [at(400.0, 50), at(100.0, 10), at(200.0, 20), at(300.0, 21)];
        assert_eq!(knee(&levels), Some(300.0));
        assert_eq!(knee(&levels[1..3]), None);
        assert_eq!(knee(&[]), None);
    }
}
