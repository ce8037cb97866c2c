//! Which request of each variant is shown, so that like stands beside like: the same operation, at the same percentile of
//! its duration. Otherwise the slowest request of one variant would stand beside a usual one of another.

use narrows_model::trace::{Span, Trace, TraceId, hex};

use crate::recurring::VariantFindings;

/// A request within this distance of the percentile is as good as the one closest to it, if it shows a finding.
const TOLERANCE: f64 = 0.05;

/// The traces of a variant that may be shown.
pub(super) struct Candidates<'a> {
    traces: Vec<&'a Trace>,
    /// The ids of traces that show a finding.
    exemplars: Vec<&'a str>,
}

/// A request with its place among those of its operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peer<'a> {
    pub(super) trace: &'a Trace,
    /// The share of the requests of its operation that were faster, half of those as fast included; 0 to 1.
    pub(super) percentile: f64,
    /// Traces of its operation that were read.
    pub(super) of: usize,
}

/// One request for each variant, `None` for those without traces. All have the operation of the first one, and its
/// percentile; a variant without that operation shows the one that took most time in it.
pub(super) fn peers<'a>(variants: &[Candidates<'a>]) -> Vec<Option<Peer<'a>>> {
    let mut chosen: Option<(Operation<'a>, f64)> = None;
    let mut peers = Vec::with_capacity(variants.len());
    for candidates in variants {
        let peer = match chosen {
            None => candidates.first(),
            Some((operation, percentile)) => candidates.like(operation, percentile),
        };
        if let (None, Some(peer)) = (chosen, peer) {
            chosen = Operation::new(peer.trace).map(|operation| (operation, peer.percentile));
        }
        peers.push(peer);
    }
    peers
}

/// The operation that the root span of a trace represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operation<'a> {
    service: &'a str,
    name: &'a str,
}

impl<'a> Operation<'a> {
    fn new(trace: &'a Trace) -> Option<Self> {
        trace.root().map(|root| Self { service: &root.service, name: &root.name })
    }
}

fn duration_ns(trace: &Trace) -> u64 {
    trace.root().map_or(0, Span::duration_ns)
}

impl<'a> Candidates<'a> {
    /// `traces` are those of all repetitions of the variant.
    pub(super) fn new(variant: &VariantFindings<'a>, traces: impl Iterator<Item = &'a Trace>) -> Self {
        let exemplars = variant.findings.iter().flat_map(|recurring| &recurring.finding.exemplars);
        Self {
            traces: traces.filter(|trace| !trace.spans.is_empty()).collect(),
            exemplars: exemplars.map(|exemplar| exemplar.trace_id.as_str()).collect(),
        }
    }

    /// The request that shows a finding and is closest to the median of its operation; else the median request.
    fn first(&self) -> Option<Peer<'a>> {
        let shown = self.traces.iter().filter(|trace| self.shows_a_finding(trace.id));
        let peers = shown.filter_map(|trace| self.place(trace));
        closest(peers, 0.5).or_else(|| self.like(self.dearest()?, 0.5))
    }

    fn like(&self, operation: Operation<'a>, percentile: f64) -> Option<Peer<'a>> {
        let same = self.of(operation);
        let peers: Vec<Peer<'a>> = if same.is_empty() { self.of(self.dearest()?) } else { same };
        let is_near = |peer: &Peer<'_>| (peer.percentile - percentile).abs() <= TOLERANCE;
        let shown = peers.iter().copied().filter(|peer| is_near(peer) && self.shows_a_finding(peer.trace.id));
        closest(shown, percentile).or_else(|| closest(peers.iter().copied(), percentile))
    }

    fn shows_a_finding(&self, id: TraceId) -> bool {
        let id = hex(&id);
        self.exemplars.contains(&id.as_str())
    }

    /// The operation whose requests took most time together.
    fn dearest(&self) -> Option<Operation<'a>> {
        let mut times: Vec<(Operation<'a>, f64)> = Vec::new();
        for (operation, trace) in self.traces.iter().filter_map(|trace| Some((Operation::new(trace)?, trace))) {
            let time = trace.weight * duration_ns(trace) as f64;
            match times.iter_mut().find(|(known, _)| *known == operation) {
                Some((_, sum)) => *sum += time,
                None => times.push((operation, time)),
            }
        }
        times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(operation, _)| operation)
    }

    /// A trace among those of its operation.
    fn place(&self, trace: &'a Trace) -> Option<Peer<'a>> {
        self.of(Operation::new(trace)?).into_iter().find(|peer| peer.trace.id == trace.id)
    }

    /// The requests of an operation with their percentiles, the fastest first.
    fn of(&self, operation: Operation<'a>) -> Vec<Peer<'a>> {
        let is_meant = |trace: &&&'a Trace| Operation::new(trace) == Some(operation);
        let mut same: Vec<&'a Trace> = self.traces.iter().filter(is_meant).copied().collect();
        same.sort_by_key(|trace| duration_ns(trace));
        let all: f64 = same.iter().map(|trace| trace.weight).sum();
        let of = same.len();
        let mut faster = 0.0;
        let mut peers = Vec::with_capacity(of);
        for equal in same.chunk_by(|a, b| duration_ns(a) == duration_ns(b)) {
            let weight: f64 = equal.iter().map(|trace| trace.weight).sum();
            let percentile = if all > 0.0 { (faster + weight / 2.0) / all } else { 0.5 };
            peers.extend(equal.iter().map(|trace| Peer { trace, percentile, of }));
            faster += weight;
        }
        peers
    }
}

/// The one closest to a percentile, that with most spans of equals.
fn closest<'a>(peers: impl Iterator<Item = Peer<'a>>, percentile: f64) -> Option<Peer<'a>> {
    let distance = |peer: &Peer<'_>| (peer.percentile - percentile).abs();
    peers.min_by(|a, b| distance(a).total_cmp(&distance(b)).then_with(|| b.trace.spans.len().cmp(&a.trace.spans.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Traces of one operation that last so many milliseconds.
    fn lasting(lengths_ms: &[i64]) -> Vec<Trace> {
        let trace = |(number, ms): (usize, &i64)| {
            let mut trace = fixture::n_plus_one_trace(1);
            trace.id = [number as u8 + 1; 16];
            let root = trace.spans[0].span_id;
            let root = trace.spans.iter_mut().find(|span| span.span_id == root).unwrap();
            root.end_ns = root.start_ns + ms * 1_000_000;
            trace
        };
        lengths_ms.iter().enumerate().map(trace).collect()
    }

    fn candidates<'a>(traces: &'a [Trace], exemplars: &[&'a str]) -> Candidates<'a> {
        Candidates { traces: traces.iter().collect(), exemplars: exemplars.to_vec() }
    }

    fn shown_ms(variants: &[Candidates<'_>]) -> Vec<Option<(u64, f64)>> {
        let of = |peer: Option<Peer<'_>>| peer.map(|peer| (duration_ns(peer.trace) / 1_000_000, peer.percentile));
        peers(variants).into_iter().map(of).collect()
    }

    #[test]
    fn without_findings_each_variant_shows_its_median() {
        let (slow, fast) = (lasting(&[10, 20, 30, 400, 500]), lasting(&[1, 2, 3]));
        let shown = shown_ms(&[candidates(&slow, &[]), candidates(&fast, &[])]);
        assert_eq!(shown, [Some((30, 0.5)), Some((2, 0.5))]);
    }

    #[test]
    fn the_slowest_request_stands_beside_the_slowest() {
        let (slow, fast) = (lasting(&[10, 20, 30, 40, 900]), lasting(&[1, 2, 3, 4, 90]));
        let slowest = hex(&slow[4].id);
        let shown = shown_ms(&[candidates(&slow, &[&slowest]), candidates(&fast, &[])]);
        assert_eq!(shown, [Some((900, 0.9)), Some((90, 0.9))]);
    }

    #[test]
    fn of_several_exemplars_the_one_closest_to_the_median_is_shown() {
        let slow = lasting(&[10, 20, 30, 40, 900]);
        let ids = [hex(&slow[4].id), hex(&slow[1].id)];
        let shown = shown_ms(&[candidates(&slow, &[&ids[0], &ids[1]])]);
        assert_eq!(shown, [Some((20, 0.3))]);
    }

    #[test]
    fn another_operation_is_shown_only_where_the_first_is_missing() {
        let slow = lasting(&[10, 20, 30]);
        let mut others = lasting(&[7]);
        others[0].spans[0].name = "GET /other".to_owned();
        let none: Vec<Trace> = Vec::new();
        let shown = shown_ms(&[candidates(&slow, &[]), candidates(&none, &[]), candidates(&others, &[])]);
        assert_eq!(shown, [Some((20, 0.5)), None, Some((7, 0.5))]);
    }
}
