//! The shape of a request to Elasticsearch or OpenSearch: its operation, its index, and its body without values.
//!
//! The body is all that the text of the statement holds, by OpenTelemetry's conventions, so operation and index come from
//! the span. Bodies of several lines, as of `_msearch` and `_bulk`, are a batch.

use super::json::{Body, is_zero};
use super::{Effect, Language, Portion, Shape, Statement};

pub(super) const LANGUAGE: Language = Language { systems: &["elasticsearch", "opensearch"], shape };

const READS: &[&str] =
    &["async_search", "count", "exists", "explain", "get", "mget", "msearch", "scroll", "search", "search_template"];
const WRITES: &[&str] =
    &["bulk", "create", "delete", "delete_by_query", "index", "reindex", "update", "update_by_query"];
const STEERS: &[&str] = &["cluster.health", "info", "ping"];
const BATCHES: &[&str] = &["bulk", "mget", "msearch"];
/// Keys whose lists hold ids, besides `terms`.
const LISTS: &[&str] = &["docs", "ids", "values"];

fn shape(statement: &Statement<'_>) -> Shape {
    let body = Body::read(statement.text, |_| false);
    let operation = statement.operation.map(|name| name.trim_start_matches('_').to_ascii_lowercase());
    let operation = operation.as_deref().unwrap_or("");
    let lists = body.lists.iter().filter(|list| list.parent == "terms" || LISTS.contains(&list.key.as_str()));
    let listed = lists.map(|list| list.length).max().unwrap_or(0);
    let is_of_several = BATCHES.contains(&operation) || body.documents > 1;
    let values_max = if is_of_several { listed.max(body.documents) } else { listed };
    let goes_on = ["scroll_id", "search_after"].iter().any(|key| body.has(key));
    let skips = body.has("from") && !is_zero(statement.text, "from");
    let portion = match () {
        () if goes_on || skips || operation == "scroll" => Portion::Page,
        () if is_of_several || listed > 1 => Portion::Batch,
        () => Portion::Selected,
    };
    let effect = effect_of(operation, &body);
    let text = [statement.target(), body.text].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    Shape {
        text: text.join(" "),
        literals: body.literals,
        placeholders: body.placeholders,
        values_max,
        effect,
        portion,
        sql_words: None,
    }
}

fn effect_of(operation: &str, body: &Body) -> Effect {
    match () {
        () if READS.contains(&operation) => Effect::Read,
        () if WRITES.contains(&operation) => Effect::Write,
        () if STEERS.contains(&operation) => Effect::Steer,
        () if operation.is_empty() && body.has("query") => Effect::Read,
        () => Effect::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: &str, text: &str) -> Shape {
        let (operation, collection) = (Some(operation), Some("orders"));
        Shape::of(&Statement { text, system: Some("elasticsearch"), operation, collection })
    }

    #[test]
    fn bodies_have_one_shape_whatever_their_values() {
        let shape = of("search", r#"{"query": {"term": {"user.id": "kimchy"}}, "size": 1}"#);
        assert_eq!(shape.text, r#"search orders {"query":{"term":{"user.id":?}},"size":?}"#);
        assert_eq!((shape.literals, shape.placeholders, shape.effect), (2, 0, Effect::Read));
        let masked = of("search", r#"{"query":{"term":{"user.id":"?"}},"size":"?"}"#);
        assert_eq!((masked.text, masked.placeholders), (shape.text, 2));
    }

    #[test]
    fn batches_pages_and_writes_are_distinguished() {
        let cases = [
            ("search", r#"{"query":{"terms":{"sku":["a","b"]}}}"#, Effect::Read, Portion::Batch),
            ("search", r#"{"query":{"terms":{"sku":["a"]}}}"#, Effect::Read, Portion::Selected),
            ("search", r#"{"_source":["a","b"],"query":{"term":{"sku":1}}}"#, Effect::Read, Portion::Selected),
            ("search", r#"{"from":20,"size":10,"query":{"match_all":{}}}"#, Effect::Read, Portion::Page),
            ("search", r#"{"from":0,"size":10,"query":{"term":{"sku":1}}}"#, Effect::Read, Portion::Selected),
            ("search", r#"{"search_after":[7],"sort":["a"]}"#, Effect::Read, Portion::Page),
            ("msearch", "{}\n{\"query\":{\"term\":{\"sku\":1}}}\n", Effect::Read, Portion::Batch),
            ("bulk", "{\"index\":{\"_id\":1}}\n{\"a\":1}\n", Effect::Write, Portion::Batch),
            ("update", r#"{"doc":{"a":1}}"#, Effect::Write, Portion::Selected),
            ("ping", "", Effect::Steer, Portion::Selected),
        ];
        for (operation, text, effect, portion) in cases {
            let shape = of(operation, text);
            assert_eq!((shape.effect, shape.portion), (effect, portion), "of {operation} {text}");
        }
    }
}
