//! Chance that repeats: a small generator of numbers from a seed.
//!
//! Distributions for test data. Nothing here reads the machine's own randomness.

use narrows_model::random::SplitMix64;

/// Numbers that look random and are the same for the same seed.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The sequence of a text, such as a case's name.
    pub fn of_name(name: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(SplitMix64::new(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix)))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Evenly from 0 up to but not 1.
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Evenly from `from` up to but not `to`.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// A whole number from 0 up to but not `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.unit() * end as f64) as u64
    }

    /// Evenly around a value, at most `spread` of it to either side.
    pub fn around(&mut self, value: f64, spread: f64) -> f64 {
        value * self.between(1.0 - spread, 1.0 + spread)
    }

    /// From an exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_a_mean_is_a_mean() {
        let draw = |seed| (0..1000).map(|_| seed).scan(Random::new(seed), |r, _| Some(r.unit())).collect::<Vec<_>>();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_ne!(Random::of_name("a").bits(), Random::of_name("b").bits());
        let mut random = Random::new(1);
        let mean = (0..20_000).map(|_| random.exponential(5.0)).sum::<f64>() / 20_000.0;
        assert!((4.8..5.2).contains(&mean), "{mean}");
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
