//! The query plan: the query that a client sends to each partition, and how it merges the results.
//!
//! Partitions sort, skip and aggregate only their own results, so a rewritten query requests the parts for merging:
//! the values to sort by next to the result, the parts of an average, groups with their keys, and no OFFSET.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Parameters;
use super::ast::{Aggregate, AggregateCall, Bound, Expression, Item, Projection, Query};
use super::value::Value;

/// Placeholder in which clients put their condition of a continued ORDER BY.
const FILTER_PLACE: &str = "{documentdb-formattableorderbyquery-filter}";

/// Features that a client says it can merge.
#[derive(Debug)]
pub(crate) struct Features(Option<BTreeSet<String>>);

impl Features {
    /// Reads the header's list; without the header, everything is supported.
    pub(crate) fn from_header(list: Option<&str>) -> Self {
        Self(list.map(|list| list.split(',').map(|feature| feature.trim().to_owned()).collect()))
    }

    fn is_missing(&self, feature: &str) -> bool {
        self.0.as_ref().is_some_and(|known| !known.contains(feature))
    }
}

/// How a query is merged over partitions.
#[derive(Debug)]
pub(crate) struct Plan {
    /// `queryInfo` of the response.
    pub(crate) info: Json,
}

impl Plan {
    /// Plans `query`; the error says why no client could merge it.
    pub(crate) fn new(query: &Query, parameters: &Parameters, features: &Features) -> Result<Self, String> {
        let missing: Vec<&str> = needed(query).into_iter().filter(|feature| features.is_missing(feature)).collect();
        if !missing.is_empty() {
            return Err(format!(
                "query contains 1 or more unsupported features, upgrade your SDK to a version that supports: {}",
                missing.join(", ")
            ));
        }
        let (offset, limit) = match &query.offset_limit {
            Some((offset, limit)) => (number(offset, parameters), number(limit, parameters)),
            None => (None, None),
        };
        let columns = columns(query)?;
        let is_value = matches!(query.projection, Projection::Value(_));
        let aggregates: Vec<&str> = columns.iter().filter(|_| is_value).filter_map(|(_, kind)| *kind).collect();
        let kinds: serde_json::Map<String, Json> = match is_value || !query.is_grouped {
            true => serde_json::Map::new(),
            false => columns.iter().map(|(name, kind)| (name.clone(), json!(kind))).collect(),
        };
        let names: Vec<&String> =
            columns.iter().filter(|_| !is_value && query.is_grouped).map(|(name, _)| name).collect();
        let orders = query.order_by.iter().map(|key| if key.descending { "Descending" } else { "Ascending" });
        let keys = query.order_by.iter().map(|key| key.expression.to_string());
        let groups = query.group_by.iter().map(ToString::to_string);
        let info = json!({
            "distinctType": distinct_type(query),
            "top": query.top.as_ref().and_then(|top| number(top, parameters)),
            "offset": offset,
            "limit": limit,
            "orderBy": orders.collect::<Vec<_>>(),
            "orderByExpressions": keys.collect::<Vec<_>>(),
            "groupByExpressions": groups.collect::<Vec<_>>(),
            "groupByAliases": names,
            "aggregates": aggregates,
            "groupByAliasToAggregateType": kinds,
            "rewrittenQuery": rewritten(query, offset.zip(limit)).map_or_else(String::new, |query| query.to_string()),
            "hasSelectValue": is_value,
            "hasNonStreamingOrderBy": false,
        });
        Ok(Self { info })
    }
}

fn number(bound: &Bound, parameters: &Parameters) -> Option<u64> {
    match bound {
        Bound::Number(number) => Some(*number),
        Bound::Parameter(name) => match parameters.get(name) {
            Some(Value::Number(number)) => Some(*number as u64),
            _ => None,
        },
    }
}

/// Whether results of several partitions have to be merged rather than put one after another.
pub(crate) fn is_merged(query: &Query) -> bool {
    !needed(query).is_empty()
}

fn needed(query: &Query) -> Vec<&'static str> {
    let (calls, is_value) = (query.aggregates(), matches!(query.projection, Projection::Value(_)));
    let is_grouped = !query.group_by.is_empty();
    let uses = [
        (query.distinct, "Distinct"),
        (query.top.is_some(), "Top"),
        (query.offset_limit.is_some(), "OffsetAndLimit"),
        (!query.order_by.is_empty(), "OrderBy"),
        (query.order_by.len() > 1, "MultipleOrderBy"),
        (is_grouped, "GroupBy"),
        (!calls.is_empty(), "Aggregate"),
        (!calls.is_empty() && !is_value && !is_grouped, "NonValueAggregate"),
        (calls.len() > 1, "MultipleAggregates"),
        (calls.iter().any(|call| call.function == Aggregate::CountIf), "CountIf"),
    ];
    uses.into_iter().filter(|(used, _)| *used).map(|(_, feature)| feature).collect()
}

/// The columns of a grouped query with the aggregate each is, if any.
fn columns(query: &Query) -> Result<Vec<(String, Option<&'static str>)>, String> {
    match &query.projection {
        Projection::Star => Ok(Vec::new()),
        Projection::Value(expression) => Ok(vec![(String::new(), aggregate_of(expression)?)]),
        Projection::Items(items) => {
            items.iter().map(|item| Ok((item.name.clone(), aggregate_of(&item.expression)?))).collect()
        }
    }
}

/// The aggregate that a column is, if it is one.
fn aggregate_of(expression: &Expression) -> Result<Option<&'static str>, String> {
    match expression {
        Expression::Aggregate(call) => Ok(Some(call.function.name_in_plans())),
        _ if expression.has_aggregate() => Err(format!(
            "{expression} computes with an aggregate, which no client can merge over partitions: select the aggregate alone"
        )),
        _ => Ok(None),
    }
}

/// Results that arrive sorted by themselves have equal ones side by side.
fn distinct_type(query: &Query) -> &'static str {
    match (&query.projection, query.order_by.as_slice()) {
        _ if !query.distinct => "None",
        (Projection::Value(value), [key]) if value.to_string() == key.expression.to_string() => "Ordered",
        _ => "Unordered",
    }
}

/// The query for each partition; `None` if that is the query as it is.
fn rewritten(query: &Query, window: Option<(u64, u64)>) -> Option<Query> {
    if query.is_grouped {
        return Some(grouped(query));
    }
    let within = window.map(|(offset, limit)| (Bound::Number(0), Bound::Number(offset.saturating_add(limit))));
    if !query.order_by.is_empty() {
        return Some(Query { offset_limit: within, ..ordered(query) });
    }
    within.map(|within| Query { offset_limit: Some(within), ..query.clone() })
}

/// `SELECT c._rid, [{"item": key}, …] AS orderByItems, result AS payload`.
fn ordered(query: &Query) -> Query {
    let keys = query.order_by.iter().map(|key| property("item", key.expression.clone())).collect();
    let mut items = Vec::new();
    if let Some(source) = query.sources.first() {
        let document = Expression::Name(source.alias.clone(), 0);
        items.push(item("_rid", Expression::Member(Box::new(document), "_rid".to_owned())));
    }
    items.push(item("orderByItems", Expression::Array(keys)));
    items.push(item("payload", result(query)));
    let place = Expression::Name(FILTER_PLACE.to_owned(), 0);
    let filter = match &query.filter {
        Some(filter) => Expression::And(vec![filter.clone(), place]),
        None => place,
    };
    // Results that differ in their keys alone are the client's to tell apart.
    let top = if query.distinct { None } else { query.top.clone() };
    Query { distinct: false, top, projection: Projection::Items(items), filter: Some(filter), ..query.clone() }
}

/// Selection of the query, as one expression.
fn result(query: &Query) -> Expression {
    match &query.projection {
        Projection::Star => {
            let alias = query.sources.first().map_or_else(String::new, |source| source.alias.clone());
            Expression::Name(alias, 0)
        }
        Projection::Value(expression) => expression.clone(),
        Projection::Items(items) => {
            Expression::Object(items.iter().map(|item| (item.name.clone(), item.expression.clone())).collect())
        }
    }
}

/// Groups with their keys and the parts of their aggregates; without GROUP BY, the parts alone.
fn grouped(query: &Query) -> Query {
    let payload = match &query.projection {
        Projection::Value(expression @ Expression::Aggregate(_)) => Expression::Array(vec![partial(expression)]),
        Projection::Items(items) => {
            Expression::Object(items.iter().map(|item| (item.name.clone(), partial(&item.expression))).collect())
        }
        Projection::Value(_) | Projection::Star => result(query),
    };
    let projection = match (query.group_by.is_empty(), &query.projection) {
        (true, Projection::Value(_)) => Projection::Value(payload),
        (true, _) => Projection::Items(vec![item("payload", payload)]),
        (false, _) => {
            let keys = query.group_by.iter().map(|key| property("item", key.clone())).collect();
            Projection::Items(vec![item("groupByItems", Expression::Array(keys)), item("payload", payload)])
        }
    };
    Query { distinct: false, top: None, offset_limit: None, projection, ..query.clone() }
}

/// An aggregate as `{"item": …}`, with what merging it needs; other expressions as they are.
fn partial(expression: &Expression) -> Expression {
    let Expression::Aggregate(call) = expression else { return expression.clone() };
    let with = |function| Expression::Aggregate(Box::new(AggregateCall { function, ..(**call).clone() }));
    let count = || ("count".to_owned(), with(Aggregate::Count));
    match call.function {
        Aggregate::Count | Aggregate::CountIf | Aggregate::Sum => property("item", expression.clone()),
        Aggregate::Average => {
            property("item", Expression::Object(vec![("sum".to_owned(), with(Aggregate::Sum)), count()]))
        }
        Aggregate::Min | Aggregate::Max => {
            let name = if call.function == Aggregate::Min { "min" } else { "max" };
            let both = Expression::Object(vec![(name.to_owned(), expression.clone()), count()]);
            Expression::Object(vec![("item".to_owned(), expression.clone()), ("item2".to_owned(), both)])
        }
    }
}

fn property(name: &str, value: Expression) -> Expression {
    Expression::Object(vec![(name.to_owned(), value)])
}

fn item(name: &str, expression: Expression) -> Item {
    Item { expression, name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn plan(sql: &str) -> Json {
        Plan::new(&parse(sql).unwrap(), &Parameters::new(), &Features::from_header(None)).unwrap().info
    }

    #[test]
    fn rewritten_queries() {
        let cases = [
            ("SELECT * FROM c WHERE c.a = 1", ""),
            ("SELECT DISTINCT VALUE c.a FROM c", ""),
            ("SELECT * FROM c OFFSET 2 LIMIT 3", "SELECT * FROM c AS c OFFSET 0 LIMIT 5"),
            (
                "SELECT * FROM c ORDER BY c.a DESC",
                "SELECT c[\"_rid\"] AS _rid, [{\"item\": c[\"a\"]}] AS orderByItems, c AS payload FROM c AS c WHERE {documentdb-formattableorderbyquery-filter} ORDER BY c[\"a\"] DESC",
            ),
            ("SELECT VALUE COUNT(1) FROM c", "SELECT VALUE [{\"item\": COUNT(1)}] FROM c AS c"),
            (
                "SELECT VALUE AVG(c.a) FROM c",
                "SELECT VALUE [{\"item\": {\"sum\": SUM(c[\"a\"]), \"count\": COUNT(c[\"a\"])}}] FROM c AS c",
            ),
            (
                "SELECT c.k, MAX(c.a) AS m FROM c GROUP BY c.k",
                "SELECT [{\"item\": c[\"k\"]}] AS groupByItems, {\"k\": c[\"k\"], \"m\": {\"item\": MAX(c[\"a\"]), \"item2\": {\"max\": MAX(c[\"a\"]), \"count\": COUNT(c[\"a\"])}}} AS payload FROM c AS c GROUP BY c[\"k\"]",
            ),
        ];
        for (sql, expected) in cases {
            assert_eq!(plan(sql)["rewrittenQuery"], expected, "{sql}");
            assert!(expected.is_empty() || parse(&expected.replace(FILTER_PLACE, "true")).is_ok());
        }
    }

    #[test]
    fn what_clients_merge_by() {
        let sorted = plan("SELECT TOP 3 * FROM c ORDER BY c.a DESC, c.b");
        assert_eq!((&sorted["top"], &sorted["orderBy"]), (&json!(3), &json!(["Descending", "Ascending"])));
        let grouped = plan("SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k");
        assert_eq!(grouped["groupByAliasToAggregateType"], json!({ "k": null, "n": "Count" }));
        assert_eq!((&grouped["aggregates"], &grouped["hasSelectValue"]), (&json!([]), &json!(false)));
        let counted = plan("SELECT VALUE COUNT(1) FROM c");
        assert_eq!((&counted["aggregates"], &counted["hasSelectValue"]), (&json!(["Count"]), &json!(true)));
        assert_eq!(plan("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a")["distinctType"], "Ordered");
        assert_eq!(plan("SELECT DISTINCT c.a FROM c")["distinctType"], "Unordered");
    }

    #[test]
    fn what_a_client_cannot_merge_is_refused() {
        let refused = |sql: &str, features| {
            Plan::new(&parse(sql).unwrap(), &Parameters::new(), &Features::from_header(features)).unwrap_err()
        };
        assert!(refused("SELECT c.k FROM c GROUP BY c.k", Some("Top, OrderBy")).contains("GroupBy"));
        assert!(refused("SELECT VALUE COUNT(1) + 1 FROM c", None).contains("computes with an aggregate"));
    }
}
