//! From a partition key to a physical partition: the effective partition key, and the ranges that share its space.
//!
//! The effective key is the hash of the key's tagged bytes with its top two bits cleared, so the space is 0 up to 2^126;
//! N partitions cut it into N equal ranges. On the wire a bound is 32 hexadecimal digits, except the outermost two,
//! which are `""` and `"FF"` as clients expect; the digits compare as text exactly as the numbers do.

use crate::murmur::murmur3_x64_128;
use crate::scalar::Scalar;

/// One past the greatest effective partition key.
const SPACE: u128 = 1 << 126;

/// Where a partition key lies in the hash space, 0 up to 2^126.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EffectiveKey(u128);

impl EffectiveKey {
    pub(crate) fn from_scalar(key: &Scalar) -> Self {
        let mut bytes = Vec::new();
        key.encode(&mut bytes);
        let (h1, h2) = murmur3_x64_128(&bytes);
        Self(((u128::from(h2) << 64) | u128::from(h1)) & (SPACE - 1))
    }
}

/// The hash space cut into equal ranges, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyRanges {
    count: u32,
}

impl KeyRanges {
    /// `count` ranges; none at all still makes one, so that every key has a home.
    pub(crate) fn new(count: u32) -> Self {
        Self { count: count.max(1) }
    }

    pub(crate) fn count(self) -> u32 {
        self.count
    }

    /// The range that holds `key`.
    pub(crate) fn index_of(self, key: EffectiveKey) -> u32 {
        let index = u32::try_from(key.0 / self.width()).unwrap_or(u32::MAX);
        // The division that gives the width leaves a remainder of less than `count` keys: the last range has it.
        index.min(self.count - 1)
    }

    /// The least key of range `index` as clients read it.
    pub(crate) fn min_inclusive(self, index: u32) -> String {
        if index == 0 { String::new() } else { format!("{:032X}", self.width() * u128::from(index)) }
    }

    /// The key one past range `index` as clients read it.
    pub(crate) fn max_exclusive(self, index: u32) -> String {
        if index + 1 >= self.count { "FF".to_owned() } else { self.min_inclusive(index + 1) }
    }

    fn width(self) -> u128 {
        SPACE / u128::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_of(text: &str) -> EffectiveKey {
        EffectiveKey::from_scalar(&Scalar::Text(text.to_owned()))
    }

    #[test]
    fn keys_lie_where_the_client_libraries_put_them() {
        assert_eq!(format!("{:032X}", key_of("o0").0), "242959869BD724625B1318F7470F8A55");
        assert_eq!(format!("{:032X}", key_of("o0001").0), "0E34ED9183362EE9046B8191178052E2");
    }

    #[test]
    fn nine_ranges_have_the_known_bounds() {
        let ranges = KeyRanges::new(9);
        let starts: Vec<String> = (0..9).map(|index| ranges.min_inclusive(index).chars().take(4).collect()).collect();
        assert_eq!(starts, ["", "071C", "0E38", "1555", "1C71", "238E", "2AAA", "31C7", "38E3"]);
        assert_eq!(ranges.max_exclusive(8), "FF");
    }

    #[test]
    fn owners_spread_evenly() {
        let ranges = KeyRanges::new(9);
        let mut counts = [0_u32; 9];
        for owner in 0..20_000 {
            counts[ranges.index_of(key_of(&format!("o{owner:04}"))) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (2_000..2_450).contains(&count)), "{counts:?}");
    }

    proptest! {
        #[test]
        fn ranges_meet_without_gap_and_hold_every_key(count in 1_u32..=1_000, key in 0..SPACE) {
            let ranges = KeyRanges::new(count);
            prop_assert_eq!(ranges.min_inclusive(0), "");
            prop_assert_eq!(ranges.max_exclusive(count - 1), "FF");
            for index in 1..count {
                prop_assert_eq!(ranges.max_exclusive(index - 1), ranges.min_inclusive(index));
                prop_assert!(ranges.min_inclusive(index - 1) < ranges.min_inclusive(index));
            }
            let index = ranges.index_of(EffectiveKey(key));
            let digits = format!("{key:032X}");
            prop_assert!(ranges.min_inclusive(index) <= digits);
            prop_assert!(digits < ranges.max_exclusive(index));
        }
    }
}
