//! `missing-parents`: spans whose parent is not in their trace.
//!
//! A trace has one span without a parent, its root; the generator is above that one, so the root may name a parent that
//! nobody sends. A further span whose parent did not arrive is the top of a piece that lost its connection: its
//! caller's span was dropped, was not sampled, or its process ended before it sent. Siblings of the root under the
//! generator's own span are no such pieces, nor are spans that name no parent.

use std::collections::BTreeMap;

use narrows_model::caveat::{MissingParents as Missing, OwnParents, TrialCaveat};
use narrows_model::trace::{Forest, OWN_PARENT, Span, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, name_of};

/// Services named.
const SERVICES_MAX: usize = 3;

/// See the module.
pub(super) struct MissingParents;

impl Trap for MissingParents {
    fn id(&self) -> &'static str {
        "missing-parents"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let torn: Vec<(&Trace, Vec<&Span>)> =
            scene.forests.iter().map(|forest| (forest.trace(), pieces(forest))).collect();
        let torn: Vec<_> = torn.into_iter().filter(|(_, pieces)| !pieces.is_empty()).collect();
        let pieces: usize = torn.iter().map(|(_, pieces)| pieces.len()).sum();
        let spans = scene.spans().count();
        let is_many = torn.len() >= scene.thresholds.torn_traces
            && pieces as f64 >= scene.thresholds.torn_span_share * spans as f64;
        let torn = is_many.then(|| describe(&torn, pieces, spans, scene));
        torn.into_iter().chain(own_parents(scene)).collect()
    }
}

/// Spans that name themselves as their parents.
fn own_parents(scene: &Scene<'_>) -> Option<TrialCaveat> {
    let mut own = scene.spans().filter(|(_, span)| span.attributes.contains_key(OWN_PARENT));
    let (trace, first) = own.next()?;
    Some(TrialCaveat::OwnParents(OwnParents {
        own: 1 + own.count(),
        spans: scene.spans().count(),
        service: first.service.clone(),
        span: name_of(first),
        example: example(trace, &[first]),
    }))
}

/// Text of the caveat on spans that name themselves.
pub(crate) fn own_parents_text(found: &OwnParents) -> String {
    format!(
        "{} of {} spans name themselves as their parent and are taken for roots: look at how {} starts the span \"{}\". {}",
        units::count(found.own as u64),
        units::count(found.spans as u64),
        found.service,
        found.span,
        example_text(&found.example)
    )
}

/// The topmost spans of the pieces that hang under nothing.
fn pieces<'a>(forest: &Forest<'a>) -> Vec<&'a Span> {
    let Some(root) = forest.root() else { return Vec::new() };
    let above_root = forest.span(root).parent_id;
    let is_torn = |span: &&Span| span.parent_id.is_some_and(|id| Some(id) != above_root && forest.find(id).is_none());
    forest.spans().iter().skip(root + 1).filter(is_torn).collect()
}

fn describe(torn: &[(&Trace, Vec<&Span>)], pieces: usize, spans: usize, scene: &Scene<'_>) -> TrialCaveat {
    let mut services: BTreeMap<&str, usize> = BTreeMap::new();
    for span in torn.iter().flat_map(|(_, pieces)| pieces) {
        *services.entry(&span.service).or_default() += 1;
    }
    let mut services: Vec<(String, usize)> = services.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    services.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    services.truncate(SERVICES_MAX);
    let (trace, of_trace) = &torn[0];
    TrialCaveat::MissingParents(Missing {
        torn_spans: pieces,
        spans,
        torn_traces: torn.len(),
        traces: scene.forests.len(),
        services,
        were_refused: scene.trial.spans_refused > 0,
        example: example(trace, &of_trace[..1]),
    })
}

/// Text of the caveat on parents that did not arrive.
pub(crate) fn text(missing: &Missing) -> String {
    let services: Vec<String> = missing.services.iter().map(|(name, n)| format!("{name} ({n})")).collect();
    let refused = if missing.were_refused { " Spans were refused at a limit, which may be the cause." } else { "" };
    format!(
        "{} of {} spans ({}) name a parent that did not arrive, in {} of {} traces; most are of {}. Their callers \
         are missing, so calls and waits above them are not seen.{refused} Look in the callers of these services for \
         an exporter that drops spans or is not flushed at the end, a sampler of its own (use a parent-based one), \
         and a proxy in between that propagates the context but exports no spans. {}",
        units::count(missing.torn_spans as u64),
        units::count(missing.spans as u64),
        units::percent(missing.torn_spans as f64 / missing.spans as f64),
        units::count(missing.torn_traces as u64),
        units::count(missing.traces as u64),
        services.join(", "),
        example_text(&missing.example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    /// Calls of another service whose client span did not arrive in these traces.
    fn torn(lost: impl Fn(u8) -> bool) -> Vec<String> {
        let stock = server("stock", "GET /stock").at(2.0, 5.0);
        let mut traces = traces(&server("shop", "GET /").at(0.0, 20.0).child(client("GET").at(1.0, 8.0).child(stock)));
        for trace in traces.iter_mut().filter(|trace| lost(trace.id[15])) {
            trace.spans.remove(1);
        }
        caveats(&MissingParents, traces)
    }

    #[test]
    fn calls_without_their_caller_are_reported() {
        let said = torn(|number| number % 3 == 0);
        assert_one(&said, &["10 of 80 spans (12 %)", "in 10 of 30 traces", "stock (10)", "Example: trace 4e"]);
    }

    #[test]
    fn a_span_that_was_its_own_parent_is_reported() {
        let mut all = traces(&server("shop", "GET /").at(0.0, 20.0));
        all[3].spans[0].attributes.insert(OWN_PARENT.to_owned(), true.into());
        assert_one(&caveats(&MissingParents, all), &["1 of 30 spans name themselves", "how shop starts", "\"GET /\""]);
    }

    #[test]
    fn whole_traces_and_a_few_torn_ones_are_in_order() {
        assert_eq!(torn(|_| false), [""; 0]);
        assert_eq!(torn(|number| number < 3), [""; 0], "two traces");
    }

    #[test]
    fn the_generator_above_the_root_is_not_missing() {
        let mut whole = traces(&server("shop", "GET /").at(0.0, 20.0).child(client("GET").at(1.0, 8.0)));
        for trace in &mut whole {
            trace.spans[0].parent_id = Some([9; 8]);
            let mut again = trace.spans[0].clone();
            again.span_id = [8; 8];
            again.start_ns += 30_000_000;
            trace.spans.push(again);
        }
        assert_eq!(caveats(&MissingParents, whole), [""; 0], "a request that the generator sent again");
        let mut free = traces(&server("shop", "GET /"));
        for trace in &mut free {
            let mut beside = trace.spans[0].clone();
            beside.span_id = [8; 8];
            trace.spans.push(beside);
        }
        assert_eq!(caveats(&MissingParents, free), [""; 0], "two roots that name no parent");
    }
}
