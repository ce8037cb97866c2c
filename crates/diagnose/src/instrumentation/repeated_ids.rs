//! `repeated-ids`: several spans of a trace have one id.
//!
//! A program that makes ids from a badly seeded generator, copies a context, or sends a span again with another content does
//! this. Children name their parent by its id, so they are all taken for those of the first span with it. The two sides of a
//! call may share an id on purpose, as Zipkin's do; they differ in their kind.

use narrows_model::caveat::{RepeatedIds as Repeated, TrialCaveat};
use narrows_model::trace::{Forest, Span, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, library, name_of};

/// See the module.
pub(super) struct RepeatedIds;

impl Trap for RepeatedIds {
    fn id(&self) -> &'static str {
        "repeated-ids"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let mut repeated = scene.forests.iter().flat_map(repeated);
        let Some((trace, first)) = repeated.next() else { return Vec::new() };
        vec![TrialCaveat::RepeatedIds(Repeated {
            repeated: 1 + repeated.count(),
            spans: scene.spans().count(),
            service: first.service.clone(),
            scope: first.scope.clone(),
            span: name_of(first),
            example: example(trace, &[first]),
        })]
    }
}

/// The spans of a trace with the id and the kind of an earlier one.
fn repeated<'f, 'a>(forest: &'f Forest<'a>) -> impl Iterator<Item = (&'a Trace, &'a Span)> + 'f {
    let is_repeated = |at: usize| {
        let span = forest.span(at);
        forest.find(span.span_id).is_some_and(|first| first != at && forest.span(first).kind == span.kind)
    };
    (0..forest.spans().len()).filter(move |at| is_repeated(*at)).map(|at| (forest.trace(), forest.span(at)))
}

/// Text of the caveat.
pub(crate) fn text(found: &Repeated) -> String {
    format!(
        "{} of {} spans have the id of an earlier span of their trace, so the spans below them are taken for children of that \
         one: look at how {} of {} makes the id of the span {:?}. {}",
        units::count(found.repeated as u64),
        units::count(found.spans as u64),
        library(&found.scope),
        found.service,
        found.span,
        example_text(&found.example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::SpanKind;
    use narrows_testkit::spans::{client, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    /// Traces whose last span has the id of the one before it, changed by `change`.
    fn repeating(change: impl Fn(&mut Span)) -> Vec<Trace> {
        let root = server("shop", "GET /").at(0.0, 20.0);
        let mut traces = traces(&root.child(client("GET /a").at(1.0, 5.0)).child(client("GET /b").at(7.0, 5.0)));
        for trace in &mut traces {
            let [.., before, last] = trace.spans.as_mut_slice() else { panic!("three spans") };
            last.span_id = before.span_id;
            change(last);
        }
        traces
    }

    #[test]
    fn spans_with_one_id_are_counted_and_named() {
        let words = ["30 of 90 spans have the id of an earlier span", "of shop", "\"GET /b\"", "Example: trace "];
        assert_one(&caveats(&RepeatedIds, repeating(|_| ())), &words);
    }

    #[test]
    fn both_sides_of_a_call_may_share_an_id() {
        assert_eq!(caveats(&RepeatedIds, repeating(|span| span.kind = SpanKind::Server)), [""; 0]);
    }
}
