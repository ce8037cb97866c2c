//! Random numbers for load: fast, small, repeatable from a seed.
//!
//! SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"). It is not for secrets.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream number `stream` of a seed. Streams of one seed are unrelated.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next_u64() ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03);
        random.state = random.next_u64();
        random
    }

    /// 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Evenly from `0..bound`, by multiplication; the bias is below `bound` ÷ 2⁶⁴. A bound of 0 gives 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Evenly from 0 up to but not including 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly from `from..=to`, over the whole range of `i64` if need be.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        let span = to.wrapping_sub(from) as u64;
        let offset = if span == u64::MAX { self.next_u64() } else { self.below(span + 1) };
        from.wrapping_add(offset as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn draws_stay_within_their_bounds(seed: u64, a: i64, b: i64, bound in 1u64..) {
            let (from, to) = (a.min(b), a.max(b));
            let mut random = Random::new(seed, 0);
            prop_assert!((from..=to).contains(&random.between(from, to)));
            prop_assert!(random.below(bound) < bound);
            prop_assert!((0.0..1.0).contains(&random.unit()));
        }
    }

    #[test]
    fn a_seed_repeats_and_its_streams_differ() {
        let draw = |seed, stream| Random::new(seed, stream).next_u64();
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }

    #[test]
    fn every_number_of_a_small_range_is_drawn_about_as_often() {
        let mut random = Random::new(1, 0);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[(random.between(-3, 6) + 3) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
    }
}
