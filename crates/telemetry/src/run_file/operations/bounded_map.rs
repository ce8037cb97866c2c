//! A map that keeps the entries with the smallest names, and no more than a limit.
//!
//! An entry that has to go can never be among the smallest again, so those that are left at the end have seen
//! everything that was meant for them, in whichever order it came. Keys are remembered also when their entries went:
//! each name is requested once, since it may be costly. So there is a key in memory for every different one that was
//! shown.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;

/// The entries with the smallest names.
#[derive(Debug)]
pub(super) struct Smallest<K, N, V> {
    values: HashMap<K, V>,
    order: BTreeSet<(N, K)>,
    left_out: HashSet<K>,
    max: usize,
}

impl<K: Copy + Ord + Hash, N: Ord, V: Default> Smallest<K, N, V> {
    /// Empty, for at most `max` entries.
    pub(super) fn new(max: usize) -> Self {
        Self { values: HashMap::new(), order: BTreeSet::new(), left_out: HashSet::new(), max }
    }

    /// The value of a key; `None` if there are `max` entries with smaller names. Errors when `name` does.
    pub(super) fn entry<E>(&mut self, key: K, name: impl FnOnce() -> Result<N, E>) -> Result<Option<&mut V>, E> {
        if !self.values.contains_key(&key) && !self.left_out.contains(&key) {
            self.order.insert((name()?, key));
            self.values.insert(key, V::default());
            if self.order.len() > self.max
                && let Some((_, last)) = self.order.pop_last()
            {
                self.values.remove(&last);
                self.left_out.insert(last);
            }
        }
        Ok(self.values.get_mut(&key))
    }

    /// Keys, names and values, in order of the names.
    pub(super) fn into_entries(mut self) -> impl Iterator<Item = (K, N, V)> {
        self.order.into_iter().filter_map(move |(name, key)| Some((key, name, self.values.remove(&key)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    proptest! {
        #[test]
        fn the_smallest_are_left_with_all_that_was_theirs(
            keys in prop::collection::vec(0..30u32, 0..200),
            max in 0..12usize,
        ) {
            let mut smallest: Smallest<u32, String, u32> = Smallest::new(max);
            let mut all: BTreeMap<String, u32> = BTreeMap::new();
            let mut asked = 0;
            for key in keys {
                let name = format!("{}", key * 7 % 30);
                let ask = || {
                    asked += 1;
                    Ok::<_, Infallible>(name.clone())
                };
                if let Some(count) = smallest.entry(key, ask).unwrap() {
                    *count += 1;
                }
                *all.entry(name).or_default() += 1;
                prop_assert!(smallest.values.len() <= max && smallest.order.len() <= max);
            }
            prop_assert_eq!(asked, all.len());
            let left: Vec<(String, u32)> = smallest.into_entries().map(|(_, name, count)| (name, count)).collect();
            prop_assert_eq!(left, all.into_iter().take(max).collect::<Vec<_>>());
        }
    }
}
