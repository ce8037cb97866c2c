//! Comparisons: of numbers, instants and strings, with lists, and with what a value is in JSON.
//!
//! A NULL is unequal to everything (`!=` is true) and equal to nothing; SQL's own operators would leave such rows out.

use super::{Binding, Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Constant, Value, quoted};
use crate::syntax::{Binary, Expression, Match, Members, Shape};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn compared(
        &mut self,
        binary: Binary,
        left: &Expression,
        right: &Expression,
        scope: Scope<'_>,
    ) -> Result<Value, Fault> {
        let (a, b) = (self.value(left, scope)?, self.value(right, scope)?);
        let place = left.place.to(right.place);
        let (a, b) = comparable(binary, a, b, place)?;
        Ok(Value::new(Type::Bool, comparison(binary, &a, &b)))
    }

    pub(super) fn between(
        &mut self,
        parts: [&Expression; 3],
        is_negated: bool,
        scope: Scope<'_>,
    ) -> Result<Value, Fault> {
        let place = parts[0].place.to(parts[2].place);
        let [value, low, high] = parts;
        let (value, low) = (self.value(value, scope)?, self.value(low, scope)?);
        let mut high = self.value(high, scope)?;
        if (value.kind, high.kind) == (Type::Datetime, Type::Timespan) {
            high = Value::new(Type::Datetime, format!("({} + {})", low.sql, high.sql));
        }
        let (a, low) = comparable(Binary::GreaterOrEqual, value.clone(), low, place)?;
        let (_, high) = comparable(Binary::LessOrEqual, value, high, place)?;
        let word = if is_negated { "NOT BETWEEN" } else { "BETWEEN" };
        Ok(Value::new(Type::Bool, format!("({} {word} {} AND {})", a.sql, low.sql, high.sql)))
    }

    /// A string, also one within JSON.
    fn string(&mut self, expression: &Expression, scope: Scope<'_>) -> Result<Value, Fault> {
        let value = self.value(expression, scope)?;
        match value.kind {
            Type::Text => Ok(value),
            Type::Dynamic => Ok(Value::new(Type::Text, format!("CAST({} AS TEXT)", value.scalar()))),
            kind => {
                Err(Fault::new(expression.place, format!("this is a {}, where a string was expected", kind.word()))
                    .hint("`tostring(…)` makes a string of it"))
            }
        }
    }

    pub(super) fn matches(
        &mut self,
        operator: Match,
        left: &Expression,
        right: &Expression,
        is_negated: bool,
        scope: Scope<'_>,
    ) -> Result<Value, Fault> {
        let text = self.string(left, scope)?;
        let part = self.string(right, scope)?;
        let sql = match_sql(operator, &text, &part);
        Ok(Value::new(Type::Bool, if is_negated { format!("(NOT ifnull({sql}, 0))") } else { sql }))
    }

    pub(super) fn one_of(
        &mut self,
        members: Members,
        value: &Expression,
        list: &[Expression],
        is_negated: bool,
        scope: Scope<'_>,
    ) -> Result<Value, Fault> {
        let sql = match members {
            Members::In => {
                let value = self.value(value, scope)?;
                let (value, list) = self.members(value, list, scope)?;
                format!("({} IN ({list}))", value.sql)
            }
            Members::InAnyCase => {
                let value = self.string(value, scope)?;
                let texts = self.texts(list, scope)?.into_iter().map(|text| format!("kql_lower({})", text.sql));
                format!("(kql_lower({}) IN ({}))", value.sql, texts.collect::<Vec<_>>().join(", "))
            }
            Members::HasAny | Members::HasAll => {
                let value = self.string(value, scope)?;
                let texts = self.texts(list, scope)?;
                let terms = texts.iter().map(|text| match_sql(Match::Has, &value, text)).collect::<Vec<_>>();
                let word = if members == Members::HasAny { " OR " } else { " AND " };
                let empty = if members == Members::HasAny { "0" } else { "1" };
                format!("({})", if terms.is_empty() { empty.to_owned() } else { terms.join(word) })
            }
        };
        Ok(Value::new(Type::Bool, if is_negated { format!("(NOT ifnull({sql}, 0))") } else { sql }))
    }

    /// The members of an `in`: values, a table's first column, or the elements of a dynamic array.
    fn members(&mut self, value: Value, list: &[Expression], scope: Scope<'_>) -> Result<(Value, String), Fault> {
        if let [table] = list
            && self.is_list_table(table, scope)
        {
            let mut relation = self.table(table)?;
            relation.columns.truncate(1);
            let Some(column) = relation.columns.first() else { return Ok((value, String::new())) };
            let (value, _) = comparable(Binary::Equal, value, Value::new(column.value.kind, ""), table.place)?;
            let sql = relation.sql();
            return Ok((value, sql));
        }
        let mut texts = Vec::new();
        let mut left = value.clone();
        for member in list {
            let other = self.value(member, scope)?;
            if let Some(Constant::Json(serde_json::Value::Array(elements))) = &other.constant {
                texts.extend(elements.iter().map(element));
                left = Value::new(value.kind, value.scalar());
            } else if other.kind == Type::Dynamic && value.kind != Type::Dynamic {
                left = value.clone();
                let elements = format!("SELECT value FROM json_each({})", other.sql);
                match list.len() {
                    1 => return Ok((left, elements)),
                    _ => return Err(Fault::new(member.place, "a dynamic list stands alone in its parentheses")),
                }
            } else {
                let (a, b) = comparable(Binary::Equal, value.clone(), other, member.place)?;
                left = a;
                texts.push(b.sql);
            }
        }
        Ok((left, texts.join(", ")))
    }

    /// Whether the one thing in the parentheses of `in` is a table, which a column of its name hides.
    fn is_list_table(&self, expression: &Expression, scope: Scope<'_>) -> bool {
        let is_column = match (&expression.kind, scope.relation()) {
            (Shape::Name(name), Some(relation)) => {
                relation.column(name).is_some() && !matches!(self.binding(name), Some(Binding::Table(_)))
            }
            _ => false,
        };
        !is_column && self.is_table(expression)
    }

    /// Strings, also as the elements of a constant array.
    fn texts(&mut self, list: &[Expression], scope: Scope<'_>) -> Result<Vec<Value>, Fault> {
        let mut texts = Vec::new();
        for member in list {
            let value = self.value(member, scope)?;
            match (&value.constant, value.kind) {
                (Some(Constant::Json(serde_json::Value::Array(elements))), _) => {
                    texts.extend(elements.iter().map(|it| Value::text(it.as_str().unwrap_or(&it.to_string()))));
                }
                (_, Type::Text) => texts.push(value),
                (_, kind) => {
                    let message = format!("this is a {}, where a string was expected", kind.word());
                    return Err(Fault::new(member.place, message).hint("a list is strings, or `dynamic([\"…\"])`"));
                }
            }
        }
        Ok(texts)
    }
}

/// An element of a JSON array as SQL.
fn element(json: &serde_json::Value) -> String {
    match json {
        serde_json::Value::Null => "NULL".to_owned(),
        serde_json::Value::Bool(value) => i64::from(*value).to_string(),
        serde_json::Value::Number(number) => number.to_string(),
        serde_json::Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

/// Both sides, such that SQL's own comparison of them means what KQL's means.
pub(super) fn comparable(binary: Binary, a: Value, b: Value, place: TextRange) -> Result<(Value, Value), Fault> {
    let is_equality = matches!(binary, Binary::Equal | Binary::NotEqual);
    let (left, right) = (a.kind, b.kind);
    if left.common(right).is_some()
        && (left != Type::Bool || is_equality)
        && (left, right) != (Type::Dynamic, Type::Dynamic)
    {
        return Ok((a, b));
    }
    match (left, right) {
        (Type::Dynamic, Type::Dynamic) => Ok((Value::new(left, a.scalar()), Value::new(right, b.scalar()))),
        (Type::Dynamic, _) => Ok((taken_as(right, &a), b)),
        (_, Type::Dynamic) => {
            let b = taken_as(left, &b);
            Ok((a, b))
        }
        (Type::Text, other) | (other, Type::Text) if is_equality && (a.constant.is_some() || b.constant.is_some()) => {
            equated(a, b).ok_or_else(|| undefined(binary, Type::Text, other, place))
        }
        // KQL lets 0 and 1 stand for false and true.
        (Type::Bool, Type::Long) | (Type::Long, Type::Bool) if is_equality => Ok((a, b)),
        _ => Err(undefined(binary, left, right, place)),
    }
}

fn undefined(binary: Binary, left: Type, right: Type, place: TextRange) -> Fault {
    let message = format!("`{}` is not defined between {} and {}", binary.symbol(), left.word(), right.word());
    let fault = Fault::new(place, message);
    match (left, right) {
        (Type::Text, other) | (other, Type::Text) => {
            fault.hint(format!("convert the string with `to{}(…)`", other.word()))
        }
        _ => fault,
    }
}

/// A string and something else of which one is a constant: `resultCode == 429`, `success == "True"`.
fn equated(a: Value, b: Value) -> Option<(Value, Value)> {
    if let Some(text) = b.as_text() {
        let text = text.trim().to_lowercase();
        let constant = match a.kind {
            Type::Bool => Value::whole(Type::Bool, i64::from(truth(&text)?)),
            Type::Long => Value::whole(Type::Long, text.parse().ok()?),
            Type::Real => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::real)?,
            _ => return None,
        };
        return Some((a, constant));
    }
    if a.as_text().is_some() {
        return equated(b, a).map(|(b, a)| (a, b));
    }
    match (a.kind, a.as_whole(), b.as_whole()) {
        (Type::Text, _, Some(whole)) if b.kind == Type::Long => Some((a, Value::text(&whole.to_string()))),
        (_, Some(whole), _) if a.kind == Type::Long => Some((Value::text(&whole.to_string()), b)),
        _ => None,
    }
}

/// The truth value of a text.
fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Value in JSON, as the type that it is compared with.
fn taken_as(kind: Type, json: &Value) -> Value {
    let scalar = json.scalar();
    Value::new(
        kind,
        match kind {
            Type::Long | Type::Real => format!("kql_toreal({scalar})"),
            Type::Datetime => format!("kql_todatetime({scalar})"),
            Type::Timespan => format!("kql_totimespan({scalar})"),
            Type::Bool | Type::Text | Type::Dynamic => scalar,
        },
    )
}

fn comparison(binary: Binary, a: &Value, b: &Value) -> String {
    let is_empty = |value: &Value| value.as_text() == Some("");
    let (left, right) = (&a.sql, &b.sql);
    match binary {
        // A string that is absent is the empty one.
        Binary::Equal if is_empty(b) => format!("(ifnull({left}, '') = '')"),
        Binary::Equal if is_empty(a) => format!("(ifnull({right}, '') = '')"),
        Binary::NotEqual if is_empty(b) => format!("(ifnull({left}, '') <> '')"),
        Binary::NotEqual if is_empty(a) => format!("(ifnull({right}, '') <> '')"),
        Binary::Equal => format!("({left} = {right})"),
        Binary::NotEqual => format!("({left} IS NOT {right})"),
        other => format!("({left} {} {right})", other.symbol()),
    }
}

fn match_sql(operator: Match, text: &Value, part: &Value) -> String {
    let (text, sql) = (&text.sql, &part.sql);
    let length = part.as_text().map(|literal| literal.chars().count());
    match (operator, length) {
        (Match::EqualAnyCase, _) => format!("kql_equal_ci({text}, {sql})"),
        (Match::Contains, _) => format!("kql_contains({text}, {sql})"),
        (Match::ContainsCase, _) => format!("(instr({text}, {sql}) > 0)"),
        (Match::Has, _) => format!("kql_has({text}, {sql})"),
        (Match::HasCase, _) => format!("kql_has_cs({text}, {sql})"),
        (Match::HasPrefix, _) => format!("kql_has_prefix({text}, {sql})"),
        (Match::HasPrefixCase, _) => format!("kql_has_prefix_cs({text}, {sql})"),
        (Match::HasSuffix, _) => format!("kql_has_suffix({text}, {sql})"),
        (Match::HasSuffixCase, _) => format!("kql_has_suffix_cs({text}, {sql})"),
        (Match::StartsWith, _) => format!("kql_starts_with({text}, {sql})"),
        (Match::StartsWithCase, Some(length)) => format!("(substr({text}, 1, {length}) = {sql})"),
        (Match::StartsWithCase, None) => format!("(substr({text}, 1, length({sql})) = {sql})"),
        (Match::EndsWith, _) => format!("kql_ends_with({text}, {sql})"),
        (Match::EndsWithCase, Some(0)) => format!("({text} IS NOT NULL)"),
        (Match::EndsWithCase, Some(length)) => format!("(substr({text}, -{length}) = {sql})"),
        (Match::EndsWithCase, None) => format!("(length({sql}) = 0 OR substr({text}, -length({sql})) = {sql})"),
        (Match::Regex, _) => format!("kql_matches({text}, {sql})"),
    }
}
