//! Effective partition keys: places of partition keys in the hash space, and the spans that share the space.
//!
//! The effective key of a single path is the hash of the key's tagged bytes with its top two bits cleared, so the space is
//! 0 up to 2^126; a hierarchy has one such number for each level, of which the first decides the partition. On the wire
//! each number is 32 hexadecimal digits, and the outermost bounds are `""` and `"FF"` as clients expect; the digits
//! compare as text exactly as the numbers do.

use crate::murmur::murmur3_x64_128;
use crate::partition_key::PartitionKey;
use crate::scalar::Scalar;

/// One past the greatest effective partition key.
const SPACE: u128 = 1 << 126;

/// Where a partition key lies in the hash space: a number for each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EffectiveKey(Vec<u128>);

impl EffectiveKey {
    /// The hash of the whole key, or of each level of a hierarchy.
    pub(crate) fn new(key: &PartitionKey, is_hierarchical: bool) -> Self {
        if is_hierarchical {
            return Self(key.0.iter().map(|value| hash(std::slice::from_ref(value))).collect());
        }
        Self(vec![hash(&key.0)])
    }

    /// The number that decides the partition, below 2^126.
    pub(crate) fn place(&self) -> u128 {
        self.0.first().copied().unwrap_or_default()
    }

    /// The numbers as bytes, most significant first.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|level| level.to_be_bytes()).collect()
    }

    /// Reads [`EffectiveKey::to_bytes`]; `None` if that cannot have written it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (levels, rest) = bytes.as_chunks();
        let levels: Vec<u128> = levels.iter().copied().map(u128::from_be_bytes).collect();
        (rest.is_empty() && !levels.is_empty() && levels.iter().all(|&level| is_place(level))).then_some(Self(levels))
    }

    /// The digits as clients write them.
    pub(crate) fn digits(&self) -> String {
        self.0.iter().map(|level| format!("{level:032X}")).collect()
    }
}

/// Whether a number lies in the space.
pub(crate) fn is_place(number: u128) -> bool {
    number < SPACE
}

fn hash(values: &[Scalar]) -> u128 {
    let mut bytes = Vec::new();
    for value in values {
        value.encode(&mut bytes);
    }
    let (h1, h2) = murmur3_x64_128(&bytes);
    ((u128::from(h2) << 64) | u128::from(h1)) & (SPACE - 1)
}

/// A part of the hash space without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeySpan {
    min: u128,
    /// The place one past the span.
    end: u128,
}

impl KeySpan {
    /// `count` equal spans that fill the space, at least one; the last also has the remainder.
    pub(crate) fn equal(count: u32) -> Vec<Self> {
        let count = count.max(1);
        let width = SPACE / u128::from(count);
        let start = |index: u32| width * u128::from(index);
        let end = |index| if index + 1 == count { SPACE } else { start(index + 1) };
        (0..count).map(|index| Self { min: start(index), end: end(index) }).collect()
    }

    /// The span from `min` to before `end`; `None` if there is no such part of the space.
    pub(crate) fn between(min: u128, end: u128) -> Option<Self> {
        (min < end && end <= SPACE).then_some(Self { min, end })
    }

    /// Whether the space ends with the span.
    pub(crate) fn is_last(self) -> bool {
        self.end == SPACE
    }

    pub(crate) fn contains(self, place: u128) -> bool {
        (self.min..self.end).contains(&place)
    }

    pub(crate) fn min(self) -> u128 {
        self.min
    }

    /// One past the span.
    pub(crate) fn end(self) -> u128 {
        self.end
    }

    pub(crate) fn width(self) -> u128 {
        self.end - self.min
    }

    /// The parts below `at` and from `at` on; `None` if one of them would be empty.
    pub(crate) fn split(self, at: u128) -> Option<[Self; 2]> {
        let is_inside = self.min < at && at < self.end;
        is_inside.then_some([Self { end: at, ..self }, Self { min: at, ..self }])
    }

    /// The middle, which [`KeySpan::split`] accepts for every span wider than one place.
    pub(crate) fn middle(self) -> u128 {
        self.min + self.width() / 2
    }

    /// The least key of the span as clients read it.
    pub(crate) fn min_inclusive(self) -> String {
        if self.min == 0 { String::new() } else { format!("{:032X}", self.min) }
    }

    /// The key one past the span as clients read it.
    pub(crate) fn max_exclusive(self) -> String {
        if self.end == SPACE { "FF".to_owned() } else { format!("{:032X}", self.end) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_of(text: &str) -> EffectiveKey {
        EffectiveKey::new(&PartitionKey(vec![Scalar::Text(text.to_owned())]), false)
    }

    #[test]
    fn keys_lie_where_the_client_libraries_put_them() {
        assert_eq!(key_of("o0").digits(), "242959869BD724625B1318F7470F8A55");
        assert_eq!(key_of("o0001").digits(), "0E34ED9183362EE9046B8191178052E2");
    }

    #[test]
    fn a_hierarchy_lies_where_its_first_level_does() {
        let levels = ["o0", "o0001"].map(|text| Scalar::Text(text.to_owned()));
        let key = EffectiveKey::new(&PartitionKey(levels.to_vec()), true);
        assert_eq!(key.digits(), "242959869BD724625B1318F7470F8A550E34ED9183362EE9046B8191178052E2");
        assert_eq!(key.place(), key_of("o0").place());
    }

    #[test]
    fn nine_spans_have_the_known_bounds() {
        let spans = KeySpan::equal(9);
        let starts: Vec<String> = spans.iter().map(|span| span.min_inclusive().chars().take(4).collect()).collect();
        assert_eq!(starts, ["", "071C", "0E38", "1555", "1C71", "238E", "2AAA", "31C7", "38E3"]);
        assert_eq!(spans[8].max_exclusive(), "FF");
    }

    #[test]
    fn owners_spread_evenly() {
        let spans = KeySpan::equal(9);
        let mut counts = [0_u32; 9];
        for owner in 0..20_000 {
            let place = key_of(&format!("o{owner:04}")).place();
            counts[spans.iter().position(|span| span.contains(place)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&count| (2_000..2_450).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_span_is_split_only_inside() {
        let span = KeySpan::equal(2)[1];
        let [lower, upper] = span.split(span.middle()).unwrap();
        assert_eq!((lower.min(), lower.end(), upper.min(), upper.end()), (span.min(), upper.min(), lower.end(), SPACE));
        assert_eq!(span.split(span.min()), None);
        assert_eq!(span.split(SPACE), None);
    }

    proptest! {
        #[test]
        fn spans_meet_without_gap_and_hold_every_key(count in 1_u32..=1_000, place in 0..SPACE) {
            let spans = KeySpan::equal(count);
            prop_assert_eq!(spans[0].min_inclusive(), "");
            prop_assert_eq!(spans[spans.len() - 1].max_exclusive(), "FF");
            for pair in spans.windows(2) {
                prop_assert_eq!(pair[0].max_exclusive(), pair[1].min_inclusive());
                prop_assert!(pair[0].min_inclusive() < pair[1].min_inclusive());
            }
            let holders: Vec<_> = spans.iter().filter(|span| span.contains(place)).collect();
            prop_assert_eq!(holders.len(), 1);
            let digits = format!("{place:032X}");
            prop_assert!(holders[0].min_inclusive() <= digits);
            prop_assert!(digits < holders[0].max_exclusive());
        }
    }
}
