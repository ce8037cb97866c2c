//! A map that keeps the entries with the smallest names, and no more than a limit.
//!
//! An entry that has to go can never be among the smallest again, so those that are left at the end have seen
//! everything that was meant for them, in whichever order it came. Keys are remembered also when their entries went:
//! each name is requested once, since it may be costly. So there is a key in memory for every different one that was
//! shown.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::super::spans::key_hash::HashKeys;

/// The entries with the smallest names.
#[derive(Debug)]
pub(super) struct Smallest<K, N, V> {
    /// The place of each key's value; `None` if its entry went.
    places: HashMap<K, Option<usize>, HashKeys>,
    values: Vec<V>,
    order: BTreeSet<(N, K)>,
    max: usize,
}

impl<K: Copy + Ord + Hash, N: Ord, V: Default> Smallest<K, N, V> {
    /// Empty, for at most `max` entries.
    pub(super) fn new(max: usize) -> Self {
        Self { places: HashMap::default(), values: Vec::new(), order: BTreeSet::new(), max }
    }

    /// The value of a key; `None` if there are `max` entries with smaller names. Errors when `name` does.
    pub(super) fn entry<E>(&mut self, key: K, name: impl FnOnce() -> Result<N, E>) -> Result<Option<&mut V>, E> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => self.add(key, name()?),
        };
        Ok(place.map(|place| &mut self.values[place]))
    }

    /// The place of a new key's value, which may be that of an entry that goes.
    fn add(&mut self, key: K, name: N) -> Option<usize> {
        self.order.insert((name, key));
        let place = match self.order.len() > self.max {
            true => {
                let (_, last) = self.order.pop_last()?;
                let place = self.places.insert(last, None).flatten();
                place.into_iter().for_each(|place| self.values[place] = V::default());
                place
            }
            false => {
                self.values.push(V::default());
                Some(self.values.len() - 1)
            }
        };
        self.places.insert(key, place);
        place
    }

    /// Keys, names and values, in order of the names.
    pub(super) fn into_entries(mut self) -> impl Iterator<Item = (K, N, V)> {
        self.order.into_iter().filter_map(move |(name, key)| {
            let place = self.places.get(&key).copied().flatten()?;
            Some((key, name, std::mem::take(&mut self.values[place])))
        })
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
