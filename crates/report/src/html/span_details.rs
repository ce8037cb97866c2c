//! Details of a row of the waterfall: the span's facts, then the attributes that add something else.

use maud::{Markup, html};
use narrows_model::trace::{Span, SpanFacts, SpanStatus, hex};
use narrows_model::units;
use serde_json::Value;

use super::cut;

/// Attributes shown besides the facts, at most.
const ATTRIBUTES_MAX: usize = 12;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 80;
/// Characters of a value at most.
const VALUE_CHARS_MAX: usize = 240;
/// Characters of a query at most.
const QUERY_CHARS_MAX: usize = 1200;

/// The span's details; `trace_start_ns` is when its trace began.
pub(super) fn details(span: &Span, trace_start_ns: i64) -> Markup {
    let after = span.start_ns.saturating_sub(trace_start_ns).max(0) as f64;
    let mut rows =
        vec![("starts after".to_owned(), units::duration(after)), ("kind".to_owned(), span.kind.as_str().to_owned())];
    if span.status != SpanStatus::Unset || !span.status_message.is_empty() {
        let message = if span.status_message.is_empty() { "" } else { ": " };
        rows.push(("status".to_owned(), format!("{}{message}{}", span.status.as_str(), span.status_message)));
    }
    let facts = facts(&span.facts);
    let others = others(span, &facts);
    rows.extend(facts);
    rows.extend(others);
    rows.push(("scope".to_owned(), span.scope.clone()));
    rows.push(("span id".to_owned(), hex(&span.span_id)));
    rows.retain(|(_, value)| !value.is_empty());
    html! {
        div.more {
            @if let Some(query) = &span.facts.db_query { pre { (cut(query, QUERY_CHARS_MAX)) } }
            dl { @for (name, value) in &rows { dt { (cut(name, NAME_CHARS_MAX)) } dd { (cut(value, VALUE_CHARS_MAX)) } } }
        }
    }
}

fn facts(facts: &SpanFacts) -> Vec<(String, String)> {
    let number = |n: Option<u16>| n.map(|n| n.to_string());
    let all = [
        ("http.request.method", facts.http_method.clone()),
        ("http.route", facts.http_route.clone()),
        ("http.response.status_code", number(facts.http_status)),
        ("url", facts.url.clone()),
        ("db.system.name", facts.db_system.clone()),
        ("db.namespace", facts.db_namespace.clone()),
        ("db.operation.name", facts.db_operation.clone()),
        ("db.response.status_code", facts.db_status.clone()),
        ("db.partition.id", facts.db_partition.clone()),
        ("request charge", facts.db_charge.map(|charge| format!("{} RU", crate::figures::number(charge)))),
        ("retry after", facts.retry_after_ns.map(|ns| units::duration(ns as f64))),
        ("server.address", facts.server_address.clone()),
        ("server.port", number(facts.server_port)),
        ("error.type", facts.error_type.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The attributes whose value no fact has shown yet.
fn others(span: &Span, facts: &[(String, String)]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let is_said =
        |value: &str| span.facts.db_query.as_deref() == Some(value) || facts.iter().any(|(_, fact)| fact == value);
    span.attributes
        .iter()
        .map(|(name, value)| (name.clone(), text(value)))
        .filter(|(_, value)| !is_said(value))
        .take(ATTRIBUTES_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn attributes_are_reported_once_and_escaped() {
        let mut span = fixture::n_plus_one_trace(2).spans[3].clone();
        span.attributes.insert("db.statement".to_owned(), span.facts.db_query.clone().into());
        span.attributes.insert("db.rows".to_owned(), 25.into());
        span.attributes.insert("<script>".to_owned(), "</script><img onerror=x>".into());
        let html = details(&span, span.start_ns - 2_000_000).into_string();
        assert!(html.contains("<dt>starts after</dt><dd>2.00 ms</dd>") && html.contains("<dt>db.rows</dt><dd>25</dd>"));
        assert!(!html.contains("db.statement") && !html.contains("<script") && !html.contains("<img"), "{html}");
    }
}
