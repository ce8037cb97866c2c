//! A quick hash for the maps that every span is looked up in.
//!
//! Multiplies sixteen bytes at a time and folds the product, with keys drawn anew for each map: what telemetry says cannot
//! be chosen so that it collides. The standard library's hash takes several times as long for keys of this length.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The keys of one map.
#[derive(Debug, Clone)]
pub(in crate::run_file) struct HashKeys([u64; 2]);

impl Default for HashKeys {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd, so that no product is 0 for its key alone.
        Self([0, 1].map(|number: u64| random.hash_one(number) | 1))
    }
}

impl BuildHasher for HashKeys {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        let [state, key] = self.0;
        KeyedHasher { state, key }
    }
}

/// A hash in the making.
#[derive(Debug)]
pub(in crate::run_file) struct KeyedHasher {
    state: u64,
    key: u64,
}

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            let pair = u128::from_le_bytes(*pair);
            self.fold(pair as u64, (pair >> 64) as u64);
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        let last = u128::from_le_bytes(last);
        self.fold(last as u64 ^ bytes.len() as u64, (last >> 64) as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.fold(number, 0);
    }

    fn finish(&self) -> u64 {
        folded(self.state, self.key)
    }
}

impl KeyedHasher {
    fn fold(&mut self, one: u64, other: u64) {
        self.state = folded(self.state ^ one, self.key ^ other).rotate_left(23).wrapping_add(self.key);
    }
}

/// Both halves of a product in one.
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_that_differ_little_differ_in_their_hash() {
        let keyed = HashKeys::default();
        let base = [7_u8; 40];
        let mut hashes = HashSet::from([keyed.hash_one(base)]);
        for at in 0..base.len() {
            for bit in 0..8 {
                let mut other = base;
                other[at] ^= 1 << bit;
                hashes.insert(keyed.hash_one(other));
            }
        }
        hashes.extend((0..base.len()).map(|length| keyed.hash_one(&base[..length])));
        assert_eq!(hashes.len(), 1 + 8 * base.len() + base.len());
    }

    #[test]
    fn numbers_that_count_up_spread_over_low_and_high_bits() {
        let keyed = HashKeys::default();
        for shift in [0, 57] {
            let mut filled = [0_u32; 128];
            (0..12_800_u128).for_each(|id| filled[(keyed.hash_one(id.to_be_bytes()) >> shift) as usize % 128] += 1);
            // 100 on average, so a spread by chance stays well within.
            assert!(filled.iter().all(|count| (30..300).contains(count)), "{filled:?}");
        }
    }

    #[test]
    fn each_map_has_keys_of_its_own() {
        assert_ne!(HashKeys::default().hash_one(1_u64), HashKeys::default().hash_one(1_u64));
    }
}
