//! Numbers that look random and repeat: SplitMix64 (G. Steele, D. Lea, C. Flood, *Fast Splittable Pseudorandom Number
//! Generators*, 2014) from a seed, so that what depends on them is a pure function. Not for secrets.

/// The distance of two states.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator. Those of different seeds give unrelated numbers.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits, each of them as likely 0 as 1.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The number at a place of its sequence, from 0, without those before it.
    pub fn bits_at(seed: u64, place: u64) -> u64 {
        Self::new(seed.wrapping_add(place.wrapping_mul(STEP))).bits()
    }

    /// Evenly from 0 up to but not 1, in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        let mut random = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.bits()), expected);
        assert_eq!([0, 1, 2].map(|place| SplitMix64::bits_at(1_234_567, place)), expected);
    }

    #[test]
    fn units_are_even_and_below_one() {
        let mut random = SplitMix64::new(7);
        let units: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        assert!((units.iter().sum::<f64>() / 10_000.0 - 0.5).abs() < 0.01);
    }
}
