//! Whether counts over several places differ by more than chance, and how much keys alone would make them differ.
//!
//! A count that is too high can have three reasons: chance among few calls, which Pearson's chi-square tests; chance
//! among few keys that are hashed to places, which the binomial distribution gives; or a place that really is requested
//! more. Only the last is a property of the system.

/// Keys beyond which a hash spreads them evenly for all that matters here.
const KEYS_MAX: usize = 10_000;
/// The 99.9 % point of the normal distribution.
const Z_999: f64 = 3.090_232;

/// Counts over places, of at least two.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Skew {
    /// The place with most.
    pub(crate) hot: usize,
    /// Of all counts.
    pub(crate) share: f64,
    /// Count of that place as a multiple of the mean.
    pub(crate) ratio: f64,
    /// True if chance makes counts differ as much less than once in a thousand times.
    pub(crate) is_significant: bool,
}

impl Skew {
    /// None with fewer than two places or without any count.
    pub(crate) fn from_counts(counts: &[f64]) -> Option<Self> {
        let sum: f64 = counts.iter().sum();
        let mean = sum / counts.len().max(1) as f64;
        if counts.len() < 2 || !mean.is_finite() || mean <= 0.0 {
            return None;
        }
        let (hot, most) = counts.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let chi_square: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
        let is_significant = chi_square > chi_square_999(counts.len() as f64 - 1.0);
        Some(Self { hot, share: most / sum, ratio: most / mean, is_significant })
    }
}

/// The 99.9 % point of chi-square, by Wilson and Hilferty's cube root; within 3 % from two degrees of freedom on, and
/// within 8 % at one.
fn chi_square_999(degrees_of_freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees_of_freedom.max(1.0));
    degrees_of_freedom.max(1.0) * (1.0 - part + Z_999 * part.sqrt()).powi(3)
}

/// How likely it is that a hash puts at least this share of so many keys into one of so many places: Boole's bound over
/// the binomial distribution, 0 to 1.
pub(crate) fn chance(keys: usize, places: usize, share: f64) -> f64 {
    let keys = keys.min(KEYS_MAX);
    let least = (share * keys as f64 - 1e-9).ceil().max(0.0) as usize;
    (places as f64 * tail(keys, 1.0 / places.max(1) as f64, least)).min(1.0)
}

/// The multiple of the mean that the fullest place is about as likely to exceed as not, with so many keys.
pub(crate) fn expected_ratio(keys: usize, places: usize) -> f64 {
    let (keys, places) = (keys.clamp(1, KEYS_MAX), places.max(1));
    let mean = keys as f64 / places as f64;
    let first = mean.ceil() as usize;
    let most = (first..=keys).find(|most| chance(keys, places, (*most + 1) as f64 / keys as f64) < 0.5);
    most.unwrap_or(keys) as f64 / mean
}

/// The probability of at least `least` of `n`, each with probability `p`.
fn tail(n: usize, p: f64, least: usize) -> f64 {
    if least == 0 || p >= 1.0 {
        return 1.0;
    }
    let odds = (p / (1.0 - p)).ln();
    // The term for k successes, as a logarithm, from that for none.
    let mut term = n as f64 * (1.0 - p).ln();
    let mut sum = 0.0;
    for k in 0..=n {
        if k >= least {
            sum += term.exp();
        }
        term += ((n - k).max(1) as f64 / (k + 1) as f64).ln() + odds;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chi_square_agrees_with_the_tables() {
        for (df, expected) in [(1.0, 10.83), (2.0, 13.82), (8.0, 26.12), (30.0, 59.70)] {
            let got = chi_square_999(df);
            assert!((got / expected - 1.0).abs() < 0.08, "df {df}: {got}");
        }
    }

    #[test]
    fn skew_is_more_than_chance() {
        let skew = Skew::from_counts(&[60.0, 20.0, 20.0]).unwrap();
        assert_eq!((skew.hot, skew.share, skew.is_significant), (0, 0.6, true));
        assert!((skew.ratio - 1.8).abs() < 1e-9);
        assert!(!Skew::from_counts(&[6.0, 2.0, 2.0]).unwrap().is_significant);
        assert_eq!(Skew::from_counts(&[7.0]), None);
        assert_eq!(Skew::from_counts(&[0.0, 0.0]), None);
    }

    #[test]
    fn few_keys_fall_unevenly() {
        assert_eq!(chance(1, 9, 1.0), 1.0, "one key goes somewhere");
        assert!((chance(2, 3, 1.0) - 1.0 / 3.0).abs() < 1e-9, "both into the same of three");
        assert!(chance(6, 3, 0.5) > 0.5);
        assert!(chance(1000, 3, 0.5) < 1e-9);
        assert!(expected_ratio(5, 9) > 1.7 && expected_ratio(9000, 9) < 1.1);
    }

    proptest! {
        #[test]
        fn a_tail_is_a_probability_and_falls(n in 1_usize..200, places in 2_usize..20, least in 0_usize..200) {
            let p = 1.0 / places as f64;
            let (here, next) = (tail(n, p, least), tail(n, p, least + 1));
            prop_assert!((0.0..=1.0).contains(&here) && next <= here + 1e-12);
            prop_assert!((tail(n, p, 0) - 1.0).abs() < 1e-9);
        }
    }
}
