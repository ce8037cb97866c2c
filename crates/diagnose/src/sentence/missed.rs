//! Explanation of a missed objective that no finding explains: the common traits of the slow requests, or the kinds of
//! errors.
//!
//! The slowest twentieth of the requests is compared with all of them: by request of the load, by level, by time. Where
//! all are about as slow, the division of their time says more. Where they have nothing in common, that is said: an
//! objective that is missed without a word would read as one that is kept.

use std::collections::BTreeMap;

use narrows_model::breakdown::{Breakdown, TimeCategory};
use narrows_model::comparison::{Kept, ObjectiveResult, Subject};
use narrows_model::evidence::TrialEvidence;
use narrows_model::histogram::Histogram;
use narrows_model::load::LoadSecond;
use narrows_model::units;

use crate::words::time_category;

/// Quantile of the latency from which requests are the slowest.
const SLOWEST_FROM: f64 = 0.95;
/// Share of the slowest requests that something must have to be what they have in common.
const COMMON_SHARE: f64 = 0.8;
/// Largest share of all requests that it may have then.
const SPECIAL_SHARE_MAX: f64 = 0.6;
/// Largest share of the seconds of a load in which the slowest requests are few enough to be named by their time.
const TIME_SHARE_MAX: f64 = 0.25;
/// All requests are about as slow if the slowest take at most this many times the median.
const ALIKE_FACTOR: f64 = 3.0;
/// Least share of the time for a part of it to be named.
const PART_SHARE_MIN: f64 = 0.5;

/// A clause on the objectives that a trial missed, with what explains them; `None` if it missed none of its latencies or
/// errors.
pub(super) fn missed(trial: &TrialEvidence, results: &[ObjectiveResult], breakdowns: &[Breakdown]) -> Option<String> {
    let of =
        |subject: Subject| results.iter().filter(move |result| result.kept == Kept::No && result.subject == subject);
    let label = trial.trial.label();
    let told = |results: Vec<&ObjectiveResult>| {
        let told = results.iter().map(|result| format!("{} ({})", result.text, result.measured));
        told.collect::<Vec<_>>().join(" and ")
    };
    let errors: Vec<&ObjectiveResult> = of(Subject::Errors).collect();
    let latencies: Vec<&ObjectiveResult> = of(Subject::Latency).collect();
    let failed = (!errors.is_empty()).then(|| {
        let errors_by_kind = trial.counted_load().errors.by_kind();
        format!("{label} misses {}: {errors_by_kind}", told(errors))
    });
    let slow =
        (!latencies.is_empty()).then(|| format!("{label} misses {}: {}", told(latencies), common(trial, breakdowns)));
    let clauses: Vec<String> = failed.into_iter().chain(slow).collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Common trait of the slowest requests of a trial, in words.
fn common(trial: &TrialEvidence, breakdowns: &[Breakdown]) -> String {
    let rows: Vec<&LoadSecond> = trial.counted_rows().map(|(row, _)| row).collect();
    let all = trial.counted_load().latency;
    let from_ns = all.quantile_ns(SLOWEST_FROM);
    let of_request = Groups::of(&rows, from_ns, |row| (row.scenario.clone(), row.request.clone()));
    if let Some(((scenario, request), share)) = of_request.special() {
        let name = if request.is_empty() { scenario } else { request };
        return format!("{} of its slowest requests are “{name}”", units::percent(share));
    }
    let level = |row: &LoadSecond| {
        let window = trial.windows.iter().find(|window| (window.start_ns..window.end_ns).contains(&row.middle_ns()));
        window.map(|window| window.label.clone())
    };
    if let Some((Some(level), share)) = Groups::of(&rows, from_ns, level).special() {
        return format!("{} of its slowest requests are of the level “{level}”", units::percent(share));
    }
    if let Some(time) = few_seconds(trial, &rows, from_ns) {
        return time;
    }
    if all.quantile_ns(SLOWEST_FROM) as f64 <= ALIKE_FACTOR * all.quantile_ns(0.5) as f64 {
        let of_time = breakdowns.first().and_then(main_part).map(|part| format!(", and {part}")).unwrap_or_default();
        return format!("nearly all its requests are that slow{of_time}");
    }
    "what its slowest requests have in common is not known, so this is not explained".to_owned()
}

/// The largest part of the time of an operation's requests, in words.
fn main_part(breakdown: &Breakdown) -> Option<String> {
    let part = breakdown.parts.first().filter(|part| part.share >= PART_SHARE_MIN)?;
    let is_known = part.category != TimeCategory::Unknown;
    is_known.then(|| {
        let what = time_category(&part.category);
        format!("{} of the time of {} is {what}", units::percent(part.share), breakdown.operation)
    })
}

/// The seconds that have most of the slowest requests, in words; `None` if these are not few.
fn few_seconds(trial: &TrialEvidence, rows: &[&LoadSecond], from_ns: u64) -> Option<String> {
    let begun_ns = trial.windows.first()?.start_ns;
    let groups = Groups::of(rows, from_ns, |row| row.start_ns);
    let mut seconds: Vec<(i64, u64)> = groups.each.iter().map(|(at, group)| (*at, group.slowest)).collect();
    seconds.sort_by_key(|(_, slowest)| std::cmp::Reverse(*slowest));
    let (mut named, mut slowest) = (Vec::new(), 0);
    for (at, count) in &seconds {
        if slowest as f64 >= COMMON_SHARE * groups.slowest as f64 {
            break;
        }
        slowest += count;
        named.push(*at);
    }
    if slowest == 0 || named.len() as f64 > TIME_SHARE_MAX * seconds.len() as f64 {
        return None;
    }
    let since = |at: i64| units::duration((at - begun_ns).max(0) as f64);
    let (first, last) = (*named.iter().min()?, *named.iter().max()?);
    let when = match named.len() {
        1 => format!("one second, {} into the load", since(first)),
        count => format!("{count} seconds, from {} to {} into the load", since(first), since(last)),
    };
    Some(format!("{} of its slowest requests lie in {when}", units::percent(slowest as f64 / groups.slowest as f64)))
}

/// Requests of a load, divided by something.
struct Groups<K> {
    each: BTreeMap<K, Group>,
    requests: u64,
    slowest: u64,
}

/// Requests that have something in common.
#[derive(Default)]
struct Group {
    requests: u64,
    slowest: u64,
}

impl<K: Ord + Clone> Groups<K> {
    fn of(rows: &[&LoadSecond], from_ns: u64, key: impl Fn(&LoadSecond) -> K) -> Self {
        let mut groups = Self { each: BTreeMap::new(), requests: 0, slowest: 0 };
        for row in rows {
            let (requests, slowest) = (row.latency.count(), slowest(&row.latency, from_ns));
            let group = groups.each.entry(key(row)).or_default();
            group.requests += requests;
            group.slowest += slowest;
            groups.requests += requests;
            groups.slowest += slowest;
        }
        groups
    }

    /// The group that has most of the slowest requests, though not most of all, and its share of them.
    fn special(&self) -> Option<(K, f64)> {
        let (key, group) = self.each.iter().max_by_key(|(_, group)| group.slowest)?;
        let share = group.slowest as f64 / self.slowest.max(1) as f64;
        let of_all = group.requests as f64 / self.requests.max(1) as f64;
        (share >= COMMON_SHARE && of_all <= SPECIAL_SHARE_MAX).then(|| (key.clone(), share))
    }
}

/// Requests of a histogram in the buckets from this latency on.
fn slowest(latency: &Histogram, from_ns: u64) -> u64 {
    latency.buckets().filter(|bucket| bucket.upper_ns > from_ns).map(|bucket| bucket.count).sum()
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    fn result(text: &str, subject: Subject) -> ObjectiveResult {
        ObjectiveResult { text: text.into(), subject, measured: "98.0 ms".into(), kept: Kept::No }
    }

    /// Forty seconds of quick requests on two levels, and slow ones as these rows say.
    fn explained(change: impl Fn(usize, &mut LoadSecond)) -> String {
        let load = |vus| Load { vus, rate: 100.0, latency_ms: 1.0 };
        let mut trial = TrialBuilder::new("a").steady(20, load(4)).steady(20, load(8)).build();
        for (at, row) in trial.seconds.iter_mut().enumerate() {
            change(at, row);
        }
        missed(&trial, &[result("p95 < 50ms", Subject::Latency)], &[]).unwrap()
    }

    #[test]
    fn what_the_slowest_requests_have_in_common_is_named() {
        let slow = |row: &mut LoadSecond, count| row.latency.record_n(98_000_000, count);
        let level = explained(|at, row| slow(row, if at >= 20 { 20 } else { 0 }));
        assert_eq!(level, "a misses p95 < 50ms (98.0 ms): 100 % of its slowest requests are of the level “8 users”");
        let time = explained(|at, row| slow(row, if (16..22).contains(&at) { 90 } else { 0 }));
        assert!(time.ends_with("lie in 5 seconds, from 16.0 s to 20.0 s into the load"), "{time}");
        let nothing = explained(|_, row| slow(row, 8));
        assert!(nothing.ends_with("so this is not explained"), "{nothing}");
        let all = explained(|_, row| slow(row, 1000));
        assert!(all.ends_with("nearly all its requests are that slow"), "{all}");
        let step = explained(|at, row| {
            if at % 2 == 0 {
                (row.request, row.latency) = ("search".into(), Histogram::new());
                slow(row, 50);
            }
        });
        assert!(step.ends_with("100 % of its slowest requests are “search”"), "{step}");
    }

    #[test]
    fn kept_objectives_and_throughput_need_no_words() {
        let trial = TrialBuilder::new("a").steady(20, Load { vus: 4, rate: 100.0, latency_ms: 1.0 }).build();
        let kept = ObjectiveResult { kept: Kept::Yes, ..result("p95 < 1s", Subject::Latency) };
        assert_eq!(missed(&trial, &[kept, result("rate > 200/s", Subject::Throughput)], &[]), None);
    }

    #[test]
    fn failures_are_named_by_their_kinds() {
        let mut trial = TrialBuilder::new("a").steady(20, Load { vus: 4, rate: 100.0, latency_ms: 1.0 }).build();
        trial.seconds[3].errors.timeout = 12;
        let said = missed(&trial, &[result("error_rate == 0", Subject::Errors)], &[]).unwrap();
        assert_eq!(said, "a misses error_rate == 0 (98.0 ms): timeout 12");
    }
}
