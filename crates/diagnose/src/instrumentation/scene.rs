//! Input of all traps: the traces of a trial as trees, and the words that their caveats share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Exemplar, Finding};
use narrows_model::trace::{Forest, Span, SpanKind, Trace, hex};

use crate::exemplars::clipped;
use crate::read::Reading;
use crate::read::doubles;
use crate::read::requests::{Request, is_database, is_housekeeping};
use crate::read::sql_shape::SqlShape;
use crate::thresholds::Thresholds;

/// Of a span's name.
const NAME_CHARS_MAX: usize = 60;

/// A trial as its traps see it.
pub(super) struct Scene<'a> {
    pub(super) reading: &'a Reading<'a>,
    pub(super) trial: &'a TrialEvidence,
    pub(super) thresholds: &'a Thresholds,
    /// Findings of the trial.
    pub(super) findings: &'a [Finding],
    /// Traces of the trial.
    pub(super) forests: &'a [Forest<'a>],
    /// Its requests, each service's own.
    pub(super) requests: &'a [Request<'a>],
    shapes: RefCell<HashMap<&'a str, Rc<str>>>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(reading: &'a Reading<'a>, findings: &'a [Finding]) -> Self {
        Self {
            reading,
            trial: reading.trial,
            thresholds: reading.thresholds,
            findings,
            forests: reading.forests,
            requests: reading.requests,
            shapes: RefCell::default(),
        }
    }

    /// All spans of all traces.
    pub(super) fn spans(&self) -> impl Iterator<Item = (&'a Trace, &'a Span)> {
        self.trial.traces.iter().flat_map(|trace| trace.spans.iter().map(move |span| (trace, span)))
    }

    /// True if two calls request the same: statements of one shape, one address, or one remote method. A database span
    /// without a statement is taken to be of the other's when it has the name of its operation.
    pub(super) fn are_same_request(&self, a: &'a Span, b: &'a Span) -> bool {
        doubles::are_same_request(a, b, |one, other| self.shape(one) == self.shape(other))
    }

    fn shape(&self, text: &'a str) -> Rc<str> {
        let mut shapes = self.shapes.borrow_mut();
        Rc::clone(shapes.entry(text).or_insert_with(|| SqlShape::parse(text).text.as_str().into()))
    }
}

/// The calls to the outside among the children of each span of a trace, in order of start.
pub(super) fn sibling_calls<'f, 'a>(forest: &'f Forest<'a>) -> impl Iterator<Item = Vec<&'a Span>> + 'f {
    let calls =
        |parent: usize| forest.children(parent).map(|at| forest.span(at)).filter(|span| is_call(span)).collect();
    (0..forest.spans().len()).map(calls)
}

/// The earliest span without a parent in a trace.
pub(super) fn root<'a>(forest: &Forest<'a>) -> Option<&'a Span> {
    forest.root().map(|at| forest.span(at))
}

/// True if a span is a call to the outside that counts as one: no pool, no socket, no framework.
pub(super) fn is_call(span: &Span) -> bool {
    let goes_out = is_database(span) || matches!(span.kind, SpanKind::Client | SpanKind::Producer);
    goes_out && span.kind != SpanKind::Server && !is_housekeeping(span)
}

/// An example to look at.
pub(super) fn example(trace: &Trace, spans: &[&Span]) -> Exemplar {
    Exemplar { trace_id: hex(&trace.id), span_ids: spans.iter().map(|span| hex(&span.span_id)).collect() }
}

/// Text of an example: `Example: trace 4e…, span 00… and span 01….`
pub(super) fn example_text(example: &Exemplar) -> String {
    let spans: Vec<String> = example.span_ids.iter().map(|span| format!("span {span}")).collect();
    format!("Example: trace {}, {}.", example.trace_id, spans.join(" and "))
}

/// Name of a library that reports spans, or `it` if it is not named.
pub(super) fn library(scope: &str) -> &str {
    if scope.is_empty() { "it" } else { scope }
}

/// Instructions to disable an instrumentation library, by the name of its scope.
pub(super) fn how_to_disable(scope: &str) -> String {
    if let Some(name) = scope.strip_prefix("opentelemetry.instrumentation.") {
        return format!("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS={name}");
    }
    if let Some(name) = scope.strip_prefix("@opentelemetry/instrumentation-") {
        return format!("OTEL_NODE_DISABLED_INSTRUMENTATIONS={name}");
    }
    if let Some(name) = scope.strip_prefix("io.opentelemetry.") {
        let without_version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
        return format!("OTEL_INSTRUMENTATION_{}_ENABLED=false", without_version.replace('-', "_").to_uppercase());
    }
    format!("the instrumentation {scope}")
}

/// A span's name as a caveat shows it: some are whole statements.
pub(super) fn name_of(span: &Span) -> String {
    clipped(&span.name, NAME_CHARS_MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::SpanBuilder;
    use narrows_testkit::trial::TrialBuilder;

    use super::*;
    use crate::instrumentation::Trap;
    use crate::words::trial_caveat;

    /// Thirty traces of this root.
    pub(crate) fn traces(root: &SpanBuilder) -> Vec<Trace> {
        (1..=30).map(|number| root.clone().trace(number)).collect()
    }

    /// Texts of the caveats that a trap reports for these traces.
    pub(crate) fn caveats(trap: &dyn Trap, traces: Vec<Trace>) -> Vec<String> {
        caveats_of(trap, TrialBuilder::new("a").traces(traces))
    }

    /// Texts of the caveats that a trap reports for a trial.
    pub(crate) fn caveats_of(trap: &dyn Trap, trial: TrialBuilder) -> Vec<String> {
        caveats_of_built(trap, &trial.build())
    }

    /// Texts of the caveats that a trap reports for a trial that is already built.
    pub(crate) fn caveats_of_built(trap: &dyn Trap, trial: &TrialEvidence) -> Vec<String> {
        let caveats = Reading::with(trial, &Thresholds::default(), |reading| trap.caveats(&Scene::new(reading, &[])));
        caveats.iter().map(trial_caveat).collect()
    }

    /// Asserts that there is one caveat and that it has all of these words in it.
    #[track_caller]
    pub(crate) fn assert_one(caveats: &[String], words: &[&str]) {
        assert_eq!(caveats.len(), 1, "{caveats:#?}");
        for word in words {
            assert!(caveats[0].contains(word), "no {word:?} in {:?}", caveats[0]);
        }
    }

    #[test]
    fn instrumentation_is_switched_off_as_its_language_does() {
        let cases = [
            ("opentelemetry.instrumentation.psycopg2", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=psycopg2"),
            ("@opentelemetry/instrumentation-pg", "OTEL_NODE_DISABLED_INSTRUMENTATIONS=pg"),
            ("io.opentelemetry.hibernate-6.0", "OTEL_INSTRUMENTATION_HIBERNATE_ENABLED=false"),
            ("io.opentelemetry.spring-data-1.8", "OTEL_INSTRUMENTATION_SPRING_DATA_ENABLED=false"),
            ("io.opentelemetry.jdbc", "OTEL_INSTRUMENTATION_JDBC_ENABLED=false"),
            ("go.nhat.io/otelsql", "the instrumentation go.nhat.io/otelsql"),
        ];
        for (scope, expected) in cases {
            assert_eq!(how_to_disable(scope), expected);
        }
    }
}
