//! Balance: the node that should have each partition.
//!
//! Every node computes it for itself, and from the same members and owners comes to the same result. Shares differ by
//! one at most, and no partition moves that need not.

use std::collections::BTreeMap;

/// For each partition, the place in `members` of the node that should have it; `None` if there are no members. `owners`
/// says who has it now; names that are not in `members`, which are sorted, have left or are lost.
pub(super) fn goal(members: &[&str], owners: &[Option<&str>]) -> Vec<Option<usize>> {
    if members.is_empty() {
        return vec![None; owners.len()];
    }
    let places: BTreeMap<&str, usize> = members.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let mut has = vec![0; members.len()];
    for place in owners.iter().flatten().filter_map(|name| places.get(name)) {
        has[*place] += 1;
    }
    let mut left = shares(&has, owners.len());
    let mut goal: Vec<Option<usize>> = owners
        .iter()
        .map(|owner| {
            let place = *places.get((*owner)?)?;
            left[place] = left[place].checked_sub(1)?;
            Some(place)
        })
        .collect();
    let mut below = (0..members.len()).flat_map(|place| std::iter::repeat_n(place, left[place]));
    goal.iter_mut().filter(|place| place.is_none()).for_each(|place| *place = below.next());
    goal
}

/// How many partitions each is to have: the larger shares go to those that have most.
fn shares(has: &[usize], partitions: usize) -> Vec<usize> {
    let (each, more) = (partitions / has.len(), partitions % has.len());
    let mut order: Vec<usize> = (0..has.len()).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(has[*place]), *place));
    let mut shares = vec![each; has.len()];
    order.into_iter().take(more).for_each(|place| shares[place] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    #[test]
    fn partitions_stay_where_they_are_if_that_is_even() {
        let owners = [Some("b"), Some("a"), Some("b"), Some("a"), Some("b")];
        assert_eq!(goal(&["a", "b"], &owners), [1, 0, 1, 0, 1].map(Some));
        assert_eq!(goal(&["a", "b", "c"], &owners), [1, 0, 1, 0, 2].map(Some), "c takes one");
        assert_eq!(goal(&["a"], &owners), [0; 5].map(Some), "b is lost");
        assert_eq!(goal(&[], &owners), [None; 5]);
    }

    proptest! {
        #[test]
        fn shares_differ_by_one_and_as_few_move_as_possible(
            members in 1_usize..6,
            owned in proptest::collection::vec(0_usize..7, 1..65),
        ) {
            let members = &NAMES[..members];
            let owners: Vec<Option<&str>> = owned.iter().map(|place| NAMES.get(*place).copied()).collect();
            let goal = goal(members, &owners);
            let count = |place| goal.iter().filter(|found| **found == Some(place)).count();
            let counts: Vec<usize> = (0..members.len()).map(count).collect();
            prop_assert_eq!(counts.iter().sum::<usize>(), owners.len());
            prop_assert!(counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0) <= 1, "{:?}", counts);
            let kept = |place: usize| owners.iter().filter(|owner| **owner == Some(members[place])).count();
            for place in 0..members.len() {
                let stays = goal.iter().zip(&owners).filter(|(to, owner)| {
                    **to == Some(place) && **owner == Some(members[place])
                });
                prop_assert_eq!(stays.count(), kept(place).min(counts[place]), "one moves that need not");
            }
        }
    }
}
