//! A mergeable latency histogram of constant memory.
//!
//! Buckets are log-linear: 64 equal buckets for each power of two, so a bucket is at most 1/64 (1.6 %) wide
//! relative to its lower bound, and a quantile, reported as its bucket's middle, is at most 0.8 % off.
//! Values below 64 ns have a bucket each. The largest value is 2^42 − 1 ns (73 minutes); larger ones count there.
//! Counts are kept from the lowest to the highest bucket used so far, exact minimum, maximum, sum and count beside them.
//!
//! Buckets add, so those of many short intervals may be kept together: a histogram can give its buckets to another one
//! ([`Histogram::give_buckets_to`]) and keep its exact figures. Merging such histograms gives the same total as before.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
const VALUE_MAX: u64 = (1 << 42) - 1;
/// Maximum of a bucket and a sum in a file, so that millions of them can be added up.
const STORED_COUNT_MAX: u64 = 1 << 40;
const STORED_SUM_MAX: u128 = 1 << 100;

/// Counts of values in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "StoredHistogram", into = "StoredHistogram")]
pub struct Histogram {
    /// The index of the first of `counts`.
    first: usize,
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// A histogram in a file: the lower bound and the count of each bucket that holds something, and the exact figures.
#[derive(Serialize, Deserialize)]
struct StoredHistogram {
    buckets: Vec<(u64, u64)>,
    /// The number of values, if it is not the sum of the buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl From<Histogram> for StoredHistogram {
    fn from(histogram: Histogram) -> Self {
        let buckets = histogram.buckets().map(|bucket| (bucket.lower_ns, bucket.count)).collect();
        let count = (!histogram.is_whole()).then_some(histogram.count);
        Self { buckets, count, sum: histogram.sum, min: histogram.min, max: histogram.max }
    }
}

impl TryFrom<StoredHistogram> for Histogram {
    type Error = String;

    fn try_from(stored: StoredHistogram) -> Result<Self, String> {
        let counts = stored.buckets.iter().map(|(_, count)| *count).chain(stored.count);
        match counts.clone().find(|count| *count > STORED_COUNT_MAX) {
            Some(count) => Err(format!("a bucket counts {count}, expected {STORED_COUNT_MAX} at most")),
            None if stored.sum > STORED_SUM_MAX => {
                Err(format!("a sum is {}, expected {STORED_SUM_MAX} at most", stored.sum))
            }
            None => {
                let histogram = Self::from_buckets(stored.buckets, stored.sum, stored.min, stored.max);
                Ok(match stored.count {
                    Some(count) => histogram.with_count(count),
                    None => histogram,
                })
            }
        }
    }
}

/// One non-empty bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value that counts here, in nanoseconds.
    pub lower_ns: u64,
    /// Smallest value above that does not.
    pub upper_ns: u64,
    /// How many values.
    pub count: u64,
}

/// The quantiles people read, in nanoseconds; zero when nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Exact smallest value.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90 % are at or below.
    pub p90_ns: u64,
    /// 95 % are at or below.
    pub p95_ns: u64,
    /// 99 % are at or below.
    pub p99_ns: u64,
    /// Exact largest value.
    pub max_ns: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one value.
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `n` times.
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.add_bucket(index_of(value_ns.min(VALUE_MAX)), n);
        self.sum += u128::from(value_ns) * u128::from(n);
        self.min = if self.count == n { value_ns } else { self.min.min(value_ns) };
        self.max = self.max.max(value_ns);
    }

    fn add_bucket(&mut self, index: usize, n: u64) {
        self.make_room(index, index + 1);
        self.counts[index - self.first] += n;
        self.count += n;
    }

    /// Makes room for the buckets from one index up to another.
    fn make_room(&mut self, from: usize, to: usize) {
        if self.counts.is_empty() {
            self.first = from;
        }
        if from < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - from));
            self.first = from;
        }
        if to > self.first + self.counts.len() {
            self.counts.resize(to - self.first, 0);
        }
    }

    fn add_buckets_of(&mut self, other: &Histogram) {
        if other.counts.is_empty() {
            return;
        }
        self.make_room(other.first, other.first + other.counts.len());
        let from = other.first - self.first;
        for (mine, theirs) in self.counts[from..].iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Adds all of another histogram's values.
    pub fn merge(&mut self, other: &Histogram) {
        self.add_buckets_of(other);
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Moves its buckets to another histogram and keeps its count, sum, minimum and maximum. Merging both gives the
    /// same as before; a quantile of either alone is no longer a quantile of its own values.
    pub fn give_buckets_to(&mut self, other: &mut Histogram) {
        other.add_buckets_of(self);
        (self.first, self.counts) = (0, Vec::new());
    }

    /// The same with another count of values, for a histogram whose buckets were moved away or that holds those of
    /// others.
    pub fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// The number of values in its buckets.
    pub fn bucketed(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether its buckets hold exactly its own values.
    pub fn is_whole(&self) -> bool {
        self.bucketed() == self.count
    }

    /// Memory of its counts, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.counts.as_slice())
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The exact smallest value; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        self.min
    }

    /// The exact largest value; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max
    }

    /// The exact mean; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The smallest recorded value such that a share `q` (0 to 1) of all values is at or below it, within 0.8 %; 0 if
    /// empty. For a histogram that holds others' buckets it is the quantile of all of them; for one that gave its
    /// buckets away, the mean.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let bucketed = self.bucketed();
        if bucketed == 0 {
            return self.mean_ns() as u64;
        }
        let rank = ((q.clamp(0.0, 1.0) * bucketed as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in (self.first..).zip(&self.counts) {
            seen += count;
            if seen >= rank {
                let (lower, upper) = bounds_of(index);
                let middle = lower + (upper - lower) / 2;
                return if bucketed == self.count { middle.clamp(self.min, self.max) } else { middle };
            }
        }
        self.max
    }

    /// The quantiles people read.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles {
            count: self.count,
            mean_ns: self.mean_ns(),
            min_ns: self.min,
            p50_ns: self.quantile_ns(0.50),
            p90_ns: self.quantile_ns(0.90),
            p95_ns: self.quantile_ns(0.95),
            p99_ns: self.quantile_ns(0.99),
            max_ns: self.max,
        }
    }

    /// The buckets that hold something, in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        (self.first..).zip(&self.counts).filter(|(_, count)| **count > 0).map(|(index, count)| {
            let (lower_ns, upper_ns) = bounds_of(index);
            Bucket { lower_ns, upper_ns, count: *count }
        })
    }

    /// Rebuilds a histogram from stored buckets and its exact figures.
    /// A bucket is recognised by its lower bound.
    pub fn from_buckets(buckets: impl IntoIterator<Item = (u64, u64)>, sum_ns: u128, min_ns: u64, max_ns: u64) -> Self {
        let mut histogram = Self::new();
        for (lower_ns, count) in buckets {
            histogram.add_bucket(index_of(lower_ns.min(VALUE_MAX)), count);
        }
        histogram.sum = sum_ns;
        histogram.min = min_ns;
        histogram.max = max_ns;
        histogram
    }
}

fn index_of(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros();
    let shift = octave - SUB_BITS;
    (((u64::from(shift) + 1) << SUB_BITS) + ((value >> shift) - SUB)) as usize
}

fn bounds_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < SUB {
        return (index, index + 1);
    }
    let shift = (index >> SUB_BITS) - 1;
    let lower = (SUB + (index & (SUB - 1))) << shift;
    (lower, lower + (1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(value in 0..=VALUE_MAX) {
            let (lower, upper) = bounds_of(index_of(value));
            prop_assert!(lower <= value && value < upper);
            prop_assert!(upper - lower <= (lower / SUB).max(1));
        }

        #[test]
        fn quantiles_are_within_one_per_cent(mut values in prop::collection::vec(1..10_000_000_000u64, 1..300), q in 0.0..1.0f64) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|v| histogram.record(*v));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let got = histogram.quantile_ns(q) as f64;
            prop_assert!((got - exact).abs() <= exact * 0.01 + 1.0, "exact {exact}, got {got}");
        }

        #[test]
        fn merging_equals_recording_together(a in prop::collection::vec(0..u64::MAX / 2, 0..50), b in prop::collection::vec(0..u64::MAX / 2, 0..50)) {
            let mut merged = recorded(&a);
            merged.merge(&recorded(&b));
            let together = recorded(&[a, b].concat());
            prop_assert_eq!(merged.quantiles(), together.quantiles());
            let stored: Vec<_> = together.buckets().map(|b| (b.lower_ns, b.count)).collect();
            let read = Histogram::from_buckets(stored, together.sum_ns(), together.min_ns(), together.max_ns());
            prop_assert_eq!(&read, &together);
            let json = serde_json::to_string(&together).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).expect("the same"), together);
        }
    }

    proptest! {
        #[test]
        fn buckets_given_away_are_exact_once_merged(
            parts in prop::collection::vec(prop::collection::vec(0..10_000_000_000u64, 0..40), 1..8),
            holder in 0..8usize,
        ) {
            let mut split: Vec<Histogram> = parts.iter().map(|values| recorded(values)).collect();
            let together = recorded(&parts.concat());
            let mut held = split.remove(holder % parts.len());
            split.iter_mut().for_each(|part| part.give_buckets_to(&mut held));
            prop_assert!(split.iter().all(|part| part.buckets().count() == 0));
            prop_assert_eq!(held.bucketed(), together.count());
            split.push(held);
            let json = serde_json::to_string(&split).expect("JSON");
            prop_assert_eq!(&serde_json::from_str::<Vec<Histogram>>(&json).expect("the same"), &split);
            let mut merged = Histogram::new();
            split.iter().for_each(|part| merged.merge(part));
            prop_assert!(merged.is_whole());
            prop_assert_eq!(merged.quantiles(), together.quantiles());
            prop_assert_eq!(merged.sum_ns(), together.sum_ns());
            prop_assert!(merged.buckets().eq(together.buckets()));
        }
    }

    fn recorded(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn only_the_buckets_between_the_extremes_take_room() {
        let mut histogram = recorded(&[40_000_000]);
        assert_eq!(histogram.bytes(), size_of::<u64>());
        histogram.record(20_000_000);
        assert_eq!(histogram.bytes(), 65 * size_of::<u64>(), "one octave");
        assert_eq!((histogram.count(), histogram.quantile_ns(1.0)), (2, 40_000_000));
    }

    #[test]
    fn a_histogram_without_its_buckets_knows_its_mean_only() {
        let (mut given, mut holder) = (recorded(&[10, 30]), recorded(&[1_000]));
        given.give_buckets_to(&mut holder);
        assert_eq!((given.count(), given.min_ns(), given.max_ns(), given.quantile_ns(0.99)), (2, 10, 30, 20));
        assert_eq!((holder.count(), holder.bucketed(), holder.quantile_ns(0.5)), (1, 3, 30));
    }

    #[test]
    fn a_stored_histogram_that_could_not_be_added_up_is_refused() {
        let read = |count: u64| {
            let json = format!(r#"{{"buckets": [[64, {count}]], "sum": 64, "min": 64, "max": 64}}"#);
            serde_json::from_str::<Histogram>(&json)
        };
        assert_eq!(read(1 << 40).unwrap().count(), 1 << 40);
        assert!(read(u64::MAX).unwrap_err().to_string().contains("a bucket counts 18446744073709551615"));
    }

    #[test]
    fn an_empty_histogram_reads_zero() {
        assert_eq!(Histogram::new().quantiles(), Quantiles::default());
    }
}
