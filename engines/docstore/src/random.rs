//! The one generator of random numbers: SplitMix64 (Steele, Lea and Flood, 2014), always from a given seed.
//!
//! Its numbers can be had in turn or by their place, because the state only counts; by place, many threads share one
//! sequence without a lock. Not for secrets.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A sequence read in turn.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Number `place` of the sequence of `seed`, counted from 0, as one of 2⁵³ evenly spaced values in [0, 1).
pub(crate) fn unit(seed: u64, place: u64) -> f64 {
    let word = mixed(seed.wrapping_add(GOLDEN.wrapping_mul(place.wrapping_add(1))));
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_of_seed_1234567_comes_out() {
        let mut random = Random::new(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_number_is_the_same_by_place_and_in_turn() {
        let mut random = Random::new(u64::MAX);
        for place in 0..1_000 {
            assert_eq!(unit(u64::MAX, place), (random.next() >> 11) as f64 / (1_u64 << 53) as f64);
        }
    }
}
