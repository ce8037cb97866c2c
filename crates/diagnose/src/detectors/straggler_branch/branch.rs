//! Keys and descriptions of a request's branches.

use std::collections::HashMap;

use narrows_model::finding::evidence::straggler_branch as evidence;
use narrows_model::trace::{Span, SpanId};

use crate::critical_path::TimedForest;
use crate::critical_path::category::{Names, is_work};
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::calls::{Call, Handled, endpoint};

/// A branch: its key, its work or call, and its text.
pub(super) struct Branch {
    pub(super) key: String,
    pub(super) does: evidence::Branch,
    pub(super) text: String,
}

impl Branch {
    pub(super) fn new(tree: &TimedForest<'_>, at: usize, kinds: &HashMap<SpanId, String>, names: &Names) -> Self {
        let span = tree.span(at);
        let does = if is_work(span) {
            evidence::Branch::Work { name: clipped(&span.name, TEXT_CHARS_MAX) }
        } else {
            let partition = span.facts.db_partition.clone();
            evidence::Branch::Call { callee: names.callee(tree, at), partition, request: None }
        };
        let key = key(tree, at, kinds, names);
        let text = span.facts.db_query.as_ref().unwrap_or(&key).clone();
        Self { key, does, text }
    }

    /// Adds the call's request, for calls that the callee alone does not distinguish.
    pub(super) fn add_request(&mut self, span: &Span) {
        let evidence::Branch::Call { request, .. } = &mut self.does else { return };
        let path = span.facts.url.as_deref().map(endpoint).filter(|path| !path.is_empty());
        let method = span.facts.http_method.as_deref().unwrap_or("");
        *request = path.map(|path| clipped(format!("{method} {path}").trim(), TEXT_CHARS_MAX));
    }
}

/// Kinds of a request's calls, with the partition, by span.
pub(super) fn kinds<'r>(handled: &'r Handled<'r>) -> HashMap<SpanId, String> {
    let calls = handled.calls.iter();
    let of_call = |call: &'r Call<'r>| {
        let partition = call.partition().map(|partition| format!(" partition {partition}"));
        let kind = format!("{}{}", call.kind.trim(), partition.unwrap_or_default());
        call.attempts.iter().map(move |span| (span.span_id, kind.clone()))
    };
    calls.flat_map(of_call).collect()
}

pub(super) fn key(tree: &TimedForest<'_>, at: usize, kinds: &HashMap<SpanId, String>, names: &Names) -> String {
    let span = tree.span(at);
    match kinds.get(&span.span_id) {
        Some(kind) => format!("{} {kind}", names.callee(tree, at)),
        None => span.name.clone(),
    }
}
