//! The few statistics that judging needs: medians with weights, and Student's t for small numbers of blocks.
//!
//! Written here because they are twenty lines each and the crates that offer them bring hundreds of functions along.

pub(crate) mod blocks;
pub(crate) mod normal;
pub(crate) mod skew;
pub(crate) mod student;

/// The middle of these values, the mean of the two middle ones when their number is even; none without values.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) })
}

/// The smallest value at which half of the weight is reached; 0 without values. Each pair is a value and its weight.
pub(crate) fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut reached = 0.0;
    for (value, weight) in &values {
        reached += weight;
        if reached >= half {
            return *value;
        }
    }
    0.0
}

/// Mean and variance (divisor n − 1; 0 for a single value) of these values; none without values.
pub(crate) fn mean_and_variance(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, if values.len() > 1 { squares / (n - 1.0) } else { 0.0 }))
}

/// The nearest value that can be stored: the largest or smallest for infinities, 0 for NaN.
pub(crate) fn finite(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) }
}

/// The correlation of each value with the next, −1 to 1; 0 when there are fewer than three or all are equal.
pub(crate) fn autocorrelation(values: &[f64]) -> f64 {
    let Some((mean, _)) = mean_and_variance(values).filter(|_| values.len() > 2) else { return 0.0 };
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// The 97.5 % point of Student's t, so that ± this many standard errors hold 95 %.
/// Exact to two decimals at each whole number up to 10; above, the expansion of Abramowitz and Stegun 26.7.5 to its
/// second term, which is within 0.01.
pub(crate) fn student_t_975(degrees_of_freedom: f64) -> f64 {
    const TABLE: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    const Z: f64 = 1.959_964;
    let df = degrees_of_freedom.max(1.0);
    if df < 11.0 {
        return TABLE[(df as usize).clamp(1, 10) - 1];
    }
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    Z + first / df + second / (df * df)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_follow_the_weight() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
        assert_eq!(weighted_median(vec![(1.0, 1.0), (9.0, 5.0), (2.0, 1.0)]), 9.0);
        assert_eq!(weighted_median(vec![]), 0.0);
    }

    #[test]
    fn finite_values_stay_and_others_become_finite() {
        assert_eq!([1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(finite), [1.5, 0.0, f64::MAX, f64::MIN]);
    }

    #[test]
    fn student_t_agrees_with_the_tables() {
        for (df, expected) in [(1.0, 12.71), (9.0, 2.26), (12.0, 2.179), (20.0, 2.086), (60.0, 2.000), (1e6, 1.960)] {
            assert!((student_t_975(df) - expected).abs() < 0.01, "df {df}: {}", student_t_975(df));
        }
    }

    #[test]
    fn autocorrelation_tells_waves_from_zigzags() {
        assert!(autocorrelation(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) > 0.5);
        assert!(autocorrelation(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]) < -0.5);
        assert_eq!(autocorrelation(&[2.0, 2.0, 2.0]), 0.0);
    }
}
