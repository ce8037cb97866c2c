//! Time of one call for all items, in place of one call for each.
//!
//! Most of a short call is paid once, however many items it is for: the way there and back, the client's library, parsing
//! and planning. So one call takes as long as one of the calls that it replaces, and each further item adds its own work.
//! Measurements bound this work in three ways, and the least bound holds:
//!
//! - a call's CPU in its callee, for work that was done for one item was done in a call for it;
//! - the time of the call that listed the items ÷ their number: it returned as many of them, from the same callee;
//! - the slope of a straight line through the times of queries against the rows that they returned, where rows are recorded.
//!
//! Calls that are the same to the last character ask for one result, so a further item adds nothing.

use super::Scene;
use super::fan_out::FanOut;
use crate::retime::{Group, SampledTrace, groups};

/// Queries that a line is fitted through at least.
const FIT_MIN: usize = 30;

/// The bounds that hold for all requests of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneCall {
    /// CPU of a call in its callee, nanoseconds; `None` if it was not sampled.
    cpu_ns: Option<f64>,
    /// Time for each row that a query returns, nanoseconds; none without recorded rows that differ.
    row_ns: Option<f64>,
}

impl OneCall {
    pub(super) fn of(calls: &FanOut, scene: &Scene<'_>) -> Self {
        let requests: f64 = scene.sample.traces.iter().map(|traced| traced.weight).sum();
        let made = scene.attempts(|group| group.callee == calls.callee, |_, _| 1.0) / requests;
        let program = scene.system.program(&calls.callee);
        let cpu_ns = program.map(|program| program.demand_s * 1e9 / made).filter(|ns| ns.is_finite() && *ns > 0.0);
        Self { cpu_ns, row_ns: row_ns(calls, scene) }
    }

    /// The most that a further item adds to the one call of a group, nanoseconds.
    pub(super) fn item_ns_max(
        &self,
        traced: &SampledTrace<'_>,
        group: &Group<'_>,
        lengths: &[f64],
        scene: &Scene<'_>,
    ) -> f64 {
        if is_one_result(traced, group) {
            return 0.0;
        }
        let calls = group.calls.len() as f64;
        let mean_ns = mean(&group.lengths_ns(&traced.tree, lengths));
        let listed_ns = list_ns(traced, group, lengths, scene).map(|ns| ns / calls);
        let by_rows_ns = self.row_ns.map(|ns| ns * rows(traced, group) / calls);
        [self.cpu_ns, listed_ns, by_rows_ns].into_iter().flatten().fold(mean_ns, f64::min)
    }

    /// The share of a call's CPU in its callee that a further item needs at most.
    pub(super) fn item_cpu_share(&self, item_ns: f64) -> f64 {
        self.cpu_ns.map_or(1.0, |cpu_ns| (item_ns / cpu_ns).min(1.0))
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Whether all calls of a group ask for one result: the same text, without a place for values.
fn is_one_result(traced: &SampledTrace<'_>, group: &Group<'_>) -> bool {
    let texts: Vec<Option<&str>> = group
        .attempts()
        .map(|at| {
            let facts = &traced.tree.span(at).facts;
            let query = facts.db_query.as_deref().filter(|query| !query.contains(['?', '$', '%', ':', '@']));
            query.or(facts.url.as_deref().filter(|_| facts.db_query.is_none()))
        })
        .collect();
    texts.first().is_some_and(|first| first.is_some() && texts.iter().all(|text| text == first))
}

/// Length of the last call to the same callee before the group; `None` without one.
fn list_ns(traced: &SampledTrace<'_>, group: &Group<'_>, lengths: &[f64], scene: &Scene<'_>) -> Option<f64> {
    let tree = &traced.tree;
    let start = tree.times(group.calls[0][0]).0;
    let others = groups(tree, tree.entry(group.calls[0][0])?, &scene.sample.names);
    let is_before = |other: &Group<'_>| {
        other.callee == group.callee && other.calls.len() == 1 && other.attempts().all(|at| tree.times(at).1 <= start)
    };
    let before = others.iter().filter(|other| is_before(other));
    let last = before.max_by_key(|other| other.attempts().map(|at| tree.times(at).1).max())?;
    Some(last.attempts().map(|at| lengths[at]).sum())
}

fn rows(traced: &SampledTrace<'_>, group: &Group<'_>) -> f64 {
    group.attempts().filter_map(|at| traced.tree.span(at).facts.db_rows).sum::<u64>() as f64
}

/// The slope of the line, by least squares.
fn row_ns(calls: &FanOut, scene: &Scene<'_>) -> Option<f64> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for traced in &scene.sample.traces {
        let groups = scene.calls(traced);
        let queries = groups.iter().filter(|group| group.callee == calls.callee).flat_map(Group::attempts);
        points.extend(queries.filter_map(|at| {
            let rows = traced.tree.span(at).facts.db_rows?;
            Some((rows as f64, traced.tree.length_ns(at)))
        }));
    }
    slope(&points)
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < FIT_MIN {
        return None;
    }
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x, y) = (mean(&xs), mean(&ys));
    let of_both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let of_x: f64 = xs.iter().map(|one| (one - x).powi(2)).sum();
    (of_x > 0.0).then(|| (of_both / of_x).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_cost_what_the_line_rises() {
        let line: Vec<(f64, f64)> = (0..40).map(|row| (f64::from(row), 2e6 + 5e3 * f64::from(row))).collect();
        assert!((slope(&line).expect("a line") - 5e3).abs() < 1e-6);
        assert_eq!(slope(&line[..FIT_MIN - 1]), None, "too few");
        assert_eq!(slope(&[(1.0, 2e6); 40]), None, "the rows do not differ");
        let falling: Vec<(f64, f64)> = line.iter().map(|(x, y)| (*x, -y)).collect();
        assert_eq!(slope(&falling), Some(0.0));
    }
}
