//! Chance that repeats: numbers of the normal distribution from a seed.
//!
//! Box and Muller's method. A simulation from a fixed seed gives the same
//! numbers each time, so that what depends on it is a pure function.

use narrows_model::random::SplitMix64;

/// Independent numbers of mean 0 and standard deviation 1.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    random: SplitMix64,
    spare: Option<f64>,
}

impl Normal {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed), spare: None }
    }

    pub(crate) fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * (-self.random.unit()).ln_1p()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.random.unit()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::mean_and_variance;

    #[test]
    fn draws_are_normal_and_repeat() {
        let draws = |seed| {
            let mut normal = Normal::new(seed);
            (0..100_000).map(|_| normal.draw()).collect::<Vec<f64>>()
        };
        let values = draws(7);
        let (mean, variance) = mean_and_variance(&values).unwrap();
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        let beyond = values.iter().filter(|value| value.abs() > 1.96).count();
        assert!((4_700..5_300).contains(&beyond), "{beyond}");
        assert!(values == draws(7) && values != draws(8));
    }
}
