//! `spread-database=SERVICE[,NODES]`: a database runs on so many nodes; on three without a number.
//!
//! Reads are spread over the nodes. Writes are made on each of them, as in a cluster that replicates synchronously. What a
//! node pays for a write that another one computed is not known: from nothing to as much as the other. Both are computed, and
//! the interval spans them. What writes is read from the statements, weighted by how often each runs and by its median time,
//! because waits for locks, which lengthen few of them by much, are no work. The time that nodes need to agree on a write is
//! not known and not added.

use std::collections::BTreeMap;

use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::trace::Span;
use narrows_model::units;

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::retime::{self, SampledTrace};
use crate::system::System;

/// Nodes without a number: the fewest that outvote one.
const NODES: u32 = 3;
/// How statements, and operations of stores, begin that write.
const WRITES: [&str; 10] =
    ["insert", "update", "delete", "replace", "merge", "upsert", "create", "patch", "commit", "put"];

pub(crate) struct SpreadDatabase;

impl Method for SpreadDatabase {
    fn kind(&self) -> ChangeKind {
        ChangeKind::SpreadDatabase
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,NODES]"
    }

    fn description(&self, change: &Change) -> String {
        format!("{} on {} nodes", change.target, units::number(change.amount.unwrap_or(f64::from(NODES))))
    }

    fn made_in_services(&self, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Vec<Change> {
        let more = more_replicas(before, after).filter(|(service, _)| is_database(service, before.scene));
        more.map(|(service, nodes)| Change { amount: Some(nodes), ..Change::new(self.kind(), service) }).collect()
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let Some(program) = scene.system.program(&change.target) else {
            return Err(scene.unknown(change, scene.system.programs.iter().map(|one| one.service.clone()).collect()));
        };
        let nodes = change.amount.map_or(NODES, |amount| amount.round().max(1.0) as u32);
        let growth = f64::from(nodes) / f64::from(program.replicas);
        let writes = writes_share(&program.service, scene).ok_or(Cannot::NoTraces { change: change.kind })?;
        // All nodes pay as much for a write together as one does now, or each does.
        let case = |times: f64| {
            let service = program.service.clone();
            Case::new(move |system: &mut System| {
                system.scale_cpu(&service, 1.0 - writes + writes * times);
                let meant = system.programs.iter_mut().filter(|program| program.service == service);
                meant.for_each(|program| program.replicas = nodes);
            })
        };
        Ok(Effect {
            cases: vec![case(1.0), case(growth.max(1.0))],
            assumptions: vec![Assumption::WritesOnEachNode { writes }],
            ..Effect::default()
        })
    }
}

/// Services with more replicas in the second trial, and how many these are.
pub(super) fn more_replicas<'s>(
    before: &'s ReadTrial<'_>,
    after: &'s ReadTrial<'_>,
) -> impl Iterator<Item = (&'s str, f64)> {
    before.services.replicas.iter().filter_map(|(service, old)| {
        let new = after.services.replicas.get(service).filter(|new| *new > old)?;
        Some((service.as_str(), f64::from(*new)))
    })
}

/// True if traces show calls to a service as to a database.
pub(super) fn is_database(service: &str, scene: &Scene<'_>) -> bool {
    let counts =
        |traced: &SampledTrace<'_>, at: usize| if retime::is_database(traced.tree.span(at)) { 1.0 } else { 0.0 };
    scene.attempts(|group| group.callee == service, counts) > 0.0
}

/// The share of a database's work that is writes, 0 to 1; `None` if no trace shows a call.
fn writes_share(service: &str, scene: &Scene<'_>) -> Option<f64> {
    let mut lengths: BTreeMap<&str, Vec<Weighted>> = BTreeMap::new();
    for traced in &scene.sample.traces {
        for group in scene.calls(traced).iter().filter(|group| group.callee == service) {
            for at in group.attempts() {
                let one = Weighted { length_ns: traced.tree.length_ns(at), weight: traced.weight };
                lengths.entry(statement(traced.tree.span(at))).or_default().push(one);
            }
        }
    }
    let (mut all, mut of_writes) = (0.0, 0.0);
    for (text, mut lengths) in lengths {
        let work_ns = lengths.iter().map(|one| one.weight).sum::<f64>() * median_ns(&mut lengths);
        all += work_ns;
        of_writes += if writes(text) { work_ns } else { 0.0 };
    }
    (all > 0.0).then_some(of_writes / all)
}

/// A call, which stands for so many.
struct Weighted {
    length_ns: f64,
    weight: f64,
}

/// The length that half of the weight does not exceed; 0 without calls.
fn median_ns(calls: &mut [Weighted]) -> f64 {
    calls.sort_by(|a, b| a.length_ns.total_cmp(&b.length_ns));
    let half = calls.iter().map(|one| one.weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let reaches_half = |one: &&Weighted| {
        below += one.weight;
        below >= half
    };
    calls.iter().find(reaches_half).map_or(0.0, |one| one.length_ns)
}

/// Statement of a call, or the operation of a store.
fn statement(span: &Span) -> &str {
    let facts = &span.facts;
    facts.db_query.as_ref().or(facts.db_operation.as_ref()).unwrap_or(&span.name)
}

/// Whether a statement changes something.
fn writes(statement: &str) -> bool {
    let word = statement.split_whitespace().next().unwrap_or_default().to_lowercase();
    WRITES.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{query, server};

    use super::*;

    #[test]
    fn statements_that_change_something_are_writes() {
        for (text, is_write) in [
            ("SELECT 1", false),
            ("  with t as (select 1) select", false),
            ("UPDATE t", true),
            ("COMMIT", true),
            ("BEGIN", false),
        ] {
            let trace = server("shop", "GET /").at(0.0, 9.0).child(query(text).at(1.0, 2.0)).trace(1);
            let span = trace.spans.iter().find(|span| span.facts.db_query.is_some()).expect("the query");
            assert_eq!(writes(statement(span)), is_write, "{text}");
        }
    }

    #[test]
    fn the_median_is_that_of_the_weight() {
        let call = |(length_ns, weight)| Weighted { length_ns, weight };
        for (calls, median) in [
            (&[][..], 0.0),
            (&[(7.0, 1.0)], 7.0),
            (&[(900.0, 1.0), (2.0, 1.0), (1.0, 1.0)], 2.0),
            (&[(1.0, 1.0), (2.0, 1.0), (9.0, 5.0)], 9.0),
        ] {
            assert_eq!(median_ns(&mut calls.iter().copied().map(call).collect::<Vec<_>>()), median, "{calls:?}");
        }
    }
}
