//! Which of the stored traces go, so that those that stay say as much as they can and sums of weights stay what they were.
//!
//! Traces are judged in portions, each an interval of time; in a portion, the traces of one operation (service and name of
//! the root) are a stratum. Of a stratum stay: the failed ones, those with an error somewhere below, and the slowest few,
//! each as far as its places go; of all others 1 of so many, chosen by the id.
//!
//! It is the estimator of Horvitz and Thompson: a trace that stays weighs 1 ÷ the probability that it stayed. What has a
//! place stays with probability 1 and keeps its weight. For others the id decides: its hash must end in as many zeros as
//! the weight has then. Whatever was decided before went by fewer of them, so the rest is as good as drawn anew, and an
//! expectation stays what it was however often there is thinning. When there are more failed traces than places, they are
//! thinned out too, by no more than they must. Nothing here reads or writes.

use std::collections::BTreeMap;

/// Strata of one portion that are told apart; operations beyond them share one.
const STRATA_MAX: usize = 64;
/// The places of failed traces: 1 for so many traces of a stratum.
const TRACES_PER_FAILED: usize = 10;
/// Those of traces with an error below the root.
const TRACES_PER_TROUBLED: usize = 20;
/// Those of slow traces.
const TRACES_PER_SLOW: usize = 20;
/// The fewest places of each, so that what is rare is not missing.
const PLACES_MIN: usize = 2;

/// How a trace went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Course {
    Fine,
    /// The root is fine, but not all below it.
    Troubled,
    Failed,
}

/// Facts about a stored trace when it is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StoredTrace {
    /// Its number in the file.
    pub(super) id: i64,
    /// Of its id.
    pub(super) hash: u64,
    /// How many traces it stands for: a power of four.
    pub(super) weight: f64,
    /// Service and name of its root.
    pub(super) operation: (i64, i64),
    /// Of its root.
    pub(super) length_ns: i64,
    pub(super) course: Course,
}

/// Fate of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    Stays,
    /// And stands for so many from now on.
    StaysFor(u32),
    Goes,
}

/// Judges a portion: what has no place stays with a chance of 1 in `one_in` (a power of four), in their order.
pub(super) fn judge(portion: &[StoredTrace], one_in: u32) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Stays; portion.len()];
    let mut strata: BTreeMap<Option<(i64, i64)>, Vec<usize>> = BTreeMap::new();
    for (at, trace) in portion.iter().enumerate() {
        let own = Some(trace.operation);
        let stratum = if strata.len() < STRATA_MAX || strata.contains_key(&own) { own } else { None };
        strata.entry(stratum).or_default().push(at);
    }
    for stratum in strata.values() {
        let places = |traces_per_place: usize| (stratum.len() / traces_per_place).max(PLACES_MIN);
        let of = |course| stratum.iter().copied().filter(move |at| portion[*at].course == course);
        for (course, places) in
            [(Course::Failed, places(TRACES_PER_FAILED)), (Course::Troubled, places(TRACES_PER_TROUBLED))]
        {
            let chance = chance_for(of(course).map(|at| portion[at].weight), places, one_in);
            of(course).for_each(|at| verdicts[at] = by_hash(&portion[at], chance));
        }
        let mut fine: Vec<usize> = of(Course::Fine).collect();
        // Never by the hash, which decides over the others.
        fine.sort_unstable_by_key(|at| (std::cmp::Reverse(portion[*at].length_ns), portion[*at].id));
        fine.iter().skip(places(TRACES_PER_SLOW)).for_each(|at| verdicts[*at] = by_hash(&portion[*at], one_in));
    }
    verdicts
}

/// The best chance, 1 in so many, with which no more are expected to stay than there are places; `one_in` at worst.
fn chance_for(weights: impl Iterator<Item = f64> + Clone, places: usize, one_in: u32) -> u32 {
    let stay = |chance: u32| weights.clone().map(|weight| (weight / f64::from(chance)).min(1.0)).sum::<f64>();
    let mut chance = 1;
    while chance < one_in && stay(chance) > places as f64 {
        chance *= 4;
    }
    chance
}

fn by_hash(trace: &StoredTrace, one_in: u32) -> Verdict {
    if trace.weight >= f64::from(one_in) {
        Verdict::Stays
    } else if trace.hash & u64::from(one_in - 1) == 0 {
        Verdict::StaysFor(one_in)
    } else {
        Verdict::Goes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_file::trace_choice::hash;

    const PORTION: usize = 4_000;

    /// Traces of two operations: every 50th of one fails at its root, every 40th has an error below; every length is
    /// another, a few are very long.
    fn traces(count: u128) -> Vec<StoredTrace> {
        let trace = |number: u128| {
            let mixed = hash(&(number + 1_000_000).to_be_bytes());
            let length_ns = 1_000 + (mixed % 1_000) as i64 * if mixed % 100 < 2 { 100 } else { 1 };
            let course = match number % 200 {
                0 | 50 | 100 | 150 => Course::Failed,
                20 | 60 | 140 | 180 => Course::Troubled,
                _ => Course::Fine,
            };
            let operation = (1, (number % 2) as i64);
            StoredTrace {
                id: number as i64,
                hash: hash(&number.to_be_bytes()),
                weight: 1.0,
                operation,
                length_ns,
                course,
            }
        };
        (0..count).map(trace).collect()
    }

    fn thinned(traces: &[StoredTrace], one_in: u32) -> Vec<StoredTrace> {
        let of_portion = |portion: &[StoredTrace]| -> Vec<StoredTrace> {
            let judged = portion.iter().zip(judge(portion, one_in));
            judged
                .filter_map(|(trace, verdict)| match verdict {
                    Verdict::Stays => Some(*trace),
                    Verdict::StaysFor(weight) => Some(StoredTrace { weight: weight.into(), ..*trace }),
                    Verdict::Goes => None,
                })
                .collect()
        };
        traces.chunks(PORTION).flat_map(of_portion).collect()
    }

    fn sums(traces: &[StoredTrace]) -> [f64; 3] {
        let sum =
            |value: &dyn Fn(&StoredTrace) -> f64| traces.iter().map(|trace| trace.weight * value(trace)).sum::<f64>();
        let is = |course| move |trace: &StoredTrace| f64::from(u8::from(trace.course == course));
        [sum(&|_| 1.0), sum(&|trace| trace.length_ns as f64), sum(&is(Course::Failed))]
    }

    #[test]
    fn counts_means_and_rates_of_errors_stay_what_they_were_however_often_there_is_thinning() {
        let all = traces(100_000);
        let [count, length, failed] = sums(&all);
        let mut left = all.clone();
        // The fewer are left, the less sure are sums over values of which a few are a hundred times as large.
        for (one_in, most, mean_by) in [(4, 0.35, 0.02), (16, 0.13, 0.05), (64, 0.05, 0.15)] {
            left = thinned(&left, one_in);
            assert!((left.len() as f64) < most * count, "{} of {count}", left.len());
            let [now_count, now_length, now_failed] = sums(&left);
            assert!((now_count / count - 1.0).abs() < 0.03, "1 in {one_in}: {now_count}");
            let mean = now_length / now_count / (length / count);
            assert!((mean - 1.0).abs() < mean_by, "1 in {one_in}: {mean}");
            let rate = now_failed / now_count / (failed / count);
            assert!((rate - 1.0).abs() < 0.15, "1 in {one_in}: {rate}");
        }
    }

    #[test]
    fn what_failed_and_what_was_slow_stays_as_long_as_there_are_places() {
        let all = traces(20_000);
        let left = thinned(&all, 4);
        let count =
            |traces: &[StoredTrace], is: &dyn Fn(&StoredTrace) -> bool| traces.iter().filter(|trace| is(trace)).count();
        let is_slow = |trace: &StoredTrace| trace.length_ns > 50_000;
        for is in [&is_slow as &dyn Fn(&StoredTrace) -> bool, &|trace| trace.course != Course::Fine] {
            assert!(count(&all, is) > 100);
            assert_eq!(count(&left, is), count(&all, is));
            assert!(left.iter().filter(|trace| is(trace)).all(|trace| trace.weight == 1.0));
        }
        let all_failed: Vec<StoredTrace> =
            all.iter().map(|trace| StoredTrace { course: Course::Failed, ..*trace }).collect();
        let left = thinned(&all_failed, 16);
        assert!(left.iter().all(|trace| trace.weight == 16.0), "more than places, so by the id");
        assert!((1_000..1_500).contains(&left.len()), "{}", left.len());
    }

    #[test]
    fn what_is_rare_is_not_missing_and_operations_without_end_are_bounded() {
        let mut portion = traces(4_000);
        portion[7].operation = (9, 9);
        assert!(thinned(&portion, 1 << 20).iter().any(|trace| trace.operation == (9, 9) && trace.weight == 1.0));
        portion.iter_mut().for_each(|trace| trace.operation = (1, trace.id));
        let left = thinned(&portion, 1 << 20).len();
        assert!(left < 700, "the few that are told apart, and the places of the rest: {left}");
    }
}
