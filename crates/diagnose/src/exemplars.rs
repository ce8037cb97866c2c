//! Texts and traces that findings of several detectors show: clipped texts, and the traces to look at.

use narrows_model::finding::Exemplar;
use narrows_model::trace::{Span, Trace, hex};

/// Traces shown with a finding.
pub(crate) const EXEMPLARS_MAX: usize = 3;
/// Of a statement in the evidence.
pub(crate) const TEXT_CHARS_MAX: usize = 2000;
/// Spans named in each of them.
const EXEMPLAR_SPANS_MAX: usize = 5;

/// A trace and the first few of the spans that show the thing.
pub(crate) fn exemplar<'a>(trace: &Trace, spans: impl IntoIterator<Item = &'a Span>) -> Exemplar {
    let spans = spans.into_iter().take(EXEMPLAR_SPANS_MAX);
    Exemplar { trace_id: hex(&trace.id), span_ids: spans.map(|span| hex(&span.span_id)).collect() }
}

/// At most so many characters of a text, with a sign that there is more.
pub(crate) fn clipped(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
