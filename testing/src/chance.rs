//! Random numbers from a seed, for tests that try many schedules: SplitMix64 (Steele, Lea and Flood, 2014).

/// A source of random numbers; the same seed gives the same ones.
#[derive(Debug, Clone, Default)]
pub struct Chance(u64);

impl Chance {
    /// The numbers of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number, evenly from all of `u64`.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 on, below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these; there must be at least one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The place of a weight, drawn in proportion to it. Not all of them are 0.
    pub fn weighed(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        unreachable!("the number drawn is below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut chance = Chance::new(1_234_567);
        assert_eq!([(); 2].map(|()| chance.bits()), [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_place_without_weight_is_never_drawn() {
        let mut chance = Chance::new(7);
        let drawn: Vec<usize> = (0..200).map(|_| chance.weighed(&[0, 3, 0, 1, 0])).collect();
        assert!(drawn.iter().all(|at| [1, 3].contains(at)) && drawn.contains(&1) && drawn.contains(&3));
    }
}
