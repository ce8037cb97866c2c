//! Distinction of slow requests from usual ones: by what their spans say, how long they take, and what was used meanwhile.
//!
//! Pure: two groups of traces in, ranked differences out. A share is compared by the two-proportion z test with a pooled
//! variance (Fleiss, "Statistical Methods for Rates and Proportions", 1981), at a level that allows for many comparisons.

use std::collections::{BTreeMap, BTreeSet};

/// Differences that are reported.
const MOST: usize = 25;
/// Score from which a difference in shares counts: one in about 15,000 by chance, of the hundreds that are compared.
const Z_MIN: f64 = 4.0;
/// Least difference of shares.
const SHARE_MIN: f64 = 0.1;

/// A trace, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Observation {
    /// Statements of its spans: service, name of the attribute, value.
    pub(crate) facts: BTreeSet<(String, String, String)>,
    /// Time in spans, nanoseconds, by service and name.
    pub(crate) times: BTreeMap<(String, String), f64>,
}

/// A fact that more traces of one group have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactDifference {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) value: String,
    /// Share of each group that has it: slow, usual.
    pub(crate) shares: (f64, f64),
    score: f64,
}

/// Spans that take longer in one group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeDifference {
    pub(crate) service: String,
    pub(crate) name: String,
    /// Mean time of a trace in them, nanoseconds: slow, usual.
    pub(crate) means_ns: (f64, f64),
}

/// Facts that distinguish the groups, the clearest first.
pub(crate) fn facts(slow: &[Observation], usual: &[Observation]) -> Vec<FactDifference> {
    let mut counts: BTreeMap<&(String, String, String), (f64, f64)> = BTreeMap::new();
    for one in slow {
        one.facts.iter().for_each(|fact| counts.entry(fact).or_default().0 += 1.0);
    }
    for one in usual {
        one.facts.iter().for_each(|fact| counts.entry(fact).or_default().1 += 1.0);
    }
    let (all_slow, all_usual) = (slow.len() as f64, usual.len() as f64);
    let mut found: Vec<FactDifference> = counts
        .into_iter()
        .filter_map(|((service, name, value), (in_slow, in_usual))| {
            let shares = (in_slow / all_slow, in_usual / all_usual);
            let pooled = (in_slow + in_usual) / (all_slow + all_usual);
            let deviation = (pooled * (1.0 - pooled) * (1.0 / all_slow + 1.0 / all_usual)).sqrt();
            let score = (shares.0 - shares.1).abs() / deviation;
            let is_clear = score >= Z_MIN && (shares.0 - shares.1).abs() >= SHARE_MIN;
            is_clear.then(|| FactDifference {
                service: service.clone(),
                name: name.clone(),
                value: value.clone(),
                shares,
                score,
            })
        })
        .collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.truncate(MOST);
    found
}

/// Spans in which the slow traces spend more, those with most more first.
pub(crate) fn times(slow: &[Observation], usual: &[Observation]) -> Vec<TimeDifference> {
    let mut sums: BTreeMap<&(String, String), (f64, f64)> = BTreeMap::new();
    for one in slow {
        one.times.iter().for_each(|(span, ns)| sums.entry(span).or_default().0 += ns / slow.len() as f64);
    }
    for one in usual {
        one.times.iter().for_each(|(span, ns)| sums.entry(span).or_default().1 += ns / usual.len() as f64);
    }
    let difference = |(span, means_ns): (&(String, String), (f64, f64))| TimeDifference {
        service: span.0.clone(),
        name: span.1.clone(),
        means_ns,
    };
    let mut found: Vec<TimeDifference> = sums.into_iter().map(difference).collect();
    let more = |one: &TimeDifference| one.means_ns.0 - one.means_ns.1;
    found.retain(|one| more(one) > 0.0);
    found.sort_by(|a, b| more(b).total_cmp(&more(a)));
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(count: usize, facts: impl Fn(usize) -> Vec<&'static str>, ns: f64) -> Vec<Observation> {
        let one = |at| Observation {
            facts: facts(at).into_iter().map(|value| ("shop".into(), "k".into(), value.into())).collect(),
            times: [(("shop".into(), "GET /".into()), ns)].into(),
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn what_most_slow_ones_have_comes_first_and_chance_is_left_out() {
        let slow = observations(100, |at| if at < 80 { vec!["big", "all"] } else { vec!["all"] }, 9.0);
        let usual = observations(100, |at| if at < 10 { vec!["big", "all"] } else { vec!["all"] }, 2.0);
        let found = facts(&slow, &usual);
        assert_eq!((found.len(), found[0].value.as_str(), found[0].shares), (1, "big", (0.8, 0.1)));
        assert_eq!(times(&slow, &usual)[0].means_ns.0.round(), 9.0);
        let few = facts(&slow[..4], &usual[..4]);
        assert_eq!(few, [], "four of four could be chance");
        assert_eq!((facts(&[], &[]), times(&[], &usual)), (vec![], vec![]));
    }
}
