//! `make-series`: groups rows by steps of an axis and returns each aggregate as an array over all steps.
//!
//! Rows are summarized by their group and the number of their step. A second table has every step of every group, and
//! looks up the values in the first.

use super::names::implied_name;
use super::steps::one_name;
use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::functions::{bin_shift, text};
use crate::sql::{Column, Relation, Value, quoted};
use crate::syntax::{Expression, Item, MakeSeries, Shape};
use crate::types::Type;

/// KQL's own limit on the length of an array.
const STEPS_MAX: i64 = 1_048_576;
/// Name of the column with the number of the step. Queries cannot contain this name.
const STEP: &str = "\u{1}step";

/// The steps of an axis.
struct Steps {
    /// Start of step 0, and the length of a step.
    origin: Value,
    length: Value,
    /// Numbers of the first and the last step, if they do not follow from the rows.
    first: Option<String>,
    last: Option<String>,
}

impl Lowering<'_> {
    pub(super) fn make_series(
        &mut self,
        relation: Relation,
        series: &MakeSeries,
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let mut relation = self.without_limit(relation, place)?;
        let axis = self.value(&series.axis.value, Scope::Rows(&relation))?;
        self.no_window(series.axis.value.place)?;
        if !is_axis(axis.kind) {
            let message = format!("an axis of {} has no steps", axis.kind.word());
            return Err(Fault::new(series.axis.value.place, message));
        }
        let steps = self.steps(series, &axis)?;
        relation.filters.extend(steps.bounds(&axis));
        relation.filters.push(format!("{} IS NOT NULL", axis.sql));
        relation.columns.push(Column { name: STEP.to_owned(), value: Value::new(Type::Long, steps.number(&axis.sql)) });

        let step = Expression { kind: Shape::Name(STEP.to_owned()), place, height: 1 };
        let by: Vec<Item> = series.by.iter().cloned().chain([Item { names: Vec::new(), value: step }]).collect();
        let values: Vec<Item> = series.values.iter().map(|(item, _)| item.clone()).collect();
        let binned = self.summarized(relation, &values, &by, place)?;
        let binned = self.share(binned, place)?;
        self.series_of(series, &axis, &steps, &binned, place)
    }

    fn steps(&mut self, series: &MakeSeries, axis: &Value) -> Result<Steps, Fault> {
        let length = self.value(&series.step, Scope::Nothing)?;
        let wanted = if axis.kind == Type::Datetime { Type::Timespan } else { axis.kind };
        let is_fit = length.kind == wanted || (length.kind.is_number() && wanted.is_number());
        if !is_fit || length.as_whole().is_some_and(|length| length <= 0) {
            return Err(Fault::new(series.step.place, format!("a step is a {} above 0", wanted.word())));
        }
        let from = self.bound(series.from.as_ref(), axis)?;
        let to = self.bound(series.to.as_ref(), axis)?;
        // Without a start, and in a range, steps begin where those of `bin` do.
        let shift = bin_shift(axis.kind, length.as_whole());
        let origin = match (&from, shift) {
            (Some(from), _) if !series.is_range => from.clone(),
            (_, Some(shift)) => Value::whole(axis.kind, -shift),
            (_, None) if axis.kind.is_number() => Value::whole(Type::Long, 0),
            _ => {
                let fault = Fault::new(series.step.place, "without `from`, the step is a constant");
                return Err(fault.hint("write `from … to … step …`"));
            }
        };
        let mut steps = Steps { origin, length, first: None, last: None };
        steps.first = from.as_ref().map(|from| if series.is_range { steps.number(&from.sql) } else { "0".to_owned() });
        steps.last = to.as_ref().map(|to| if series.is_range { steps.number(&to.sql) } else { steps.last_before(to) });
        if let (Some(from), Some(to)) = (&from, &to)
            && let (Some(first), Some(last), Some(length)) = (from.as_whole(), to.as_whole(), steps.length.as_whole())
            && last.saturating_sub(first) / length > STEPS_MAX
        {
            let count = last.saturating_sub(first) / length;
            return Err(Fault::new(
                series.step.place,
                format!("this makes {count} steps, expected at most {STEPS_MAX}"),
            ));
        }
        Ok(steps)
    }

    fn bound(&mut self, bound: Option<&Expression>, axis: &Value) -> Result<Option<Value>, Fault> {
        let Some(expression) = bound else { return Ok(None) };
        let value = self.value(expression, Scope::Nothing)?;
        match value.kind == axis.kind || (value.kind.is_number() && axis.kind.is_number()) {
            true => Ok(Some(value)),
            false => {
                let (wanted, found) = (axis.kind.word(), value.kind.word());
                Err(Fault::new(expression.place, format!("the axis is a {wanted}, and this a {found}")))
            }
        }
    }

    /// The arrays, from the table of groups and steps.
    fn series_of(
        &mut self,
        series: &MakeSeries,
        axis: &Value,
        steps: &Steps,
        binned: &Relation,
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let (groups, rest) = binned.columns.split_at(series.by.len());
        let Some((step, values)) = rest.split_first() else {
            return Err(Fault::new(place, "there is nothing to aggregate"));
        };
        let all = self.every_step(series, steps, binned, place);
        let every = self.alias();
        let mut result = Relation { is_costly: true, ..Relation::default() };
        let mut conditions = vec![format!("{} = {every}.step", step.value.sql)];
        for (at, column) in groups.iter().enumerate() {
            let key = Value::new(column.value.kind, format!("{every}.k{at}"));
            conditions.push(format!("{} IS {}", column.value.sql, key.sql));
            result.columns.push(Column { name: column.name.clone(), value: key });
        }
        let array = |sql: &str| Value::new(Type::Dynamic, format!("json_group_array({sql} ORDER BY {every}.step)"));
        for ((item, default), column) in series.values.iter().zip(values) {
            if !(column.value.kind.is_number() || column.value.kind == Type::Timespan) {
                let message = format!("a series is of numbers, and this is a {}", column.value.kind.word());
                return Err(Fault::new(item.value.place, message));
            }
            let (there, absent) = (as_element(&column.value), self.default(default.as_ref(), column.value.kind)?);
            let sql = format!("CASE WHEN {} IS NULL THEN {absent} ELSE {there} END", step.value.sql);
            result.columns.push(Column { name: column.name.clone(), value: array(&sql) });
        }
        let at = Value::new(axis.kind, format!("({} + {every}.step * {})", steps.origin.sql, steps.length.sql));
        let name = match one_name(&series.axis)? {
            Some(name) => name.text.clone(),
            None => implied_name(&series.axis.value).unwrap_or_else(|| "Column1".to_owned()),
        };
        result.columns.push(Column { name: result.free_name(&name), value: array(&as_element(&at)) });
        let binned = binned.from.as_deref().unwrap_or_default();
        result.from = Some(format!("{all} AS {every} LEFT JOIN {binned} ON {}", conditions.join(" AND ")));
        let grouping = if groups.is_empty() { " HAVING count(*) > 0".to_owned() } else { by_first(groups.len()) };
        self.grouped(&result, &grouping, place)
    }

    /// Name of a table with every step of each group; the groups are the columns `k0`, `k1` …
    fn every_step(&mut self, series: &MakeSeries, steps: &Steps, binned: &Relation, place: TextRange) -> String {
        let (groups, rest) = binned.columns.split_at(series.by.len());
        let step = rest.first().map_or_else(String::new, |column| column.value.sql.clone());
        let keys: String = (0..groups.len()).map(|at| format!("k{at}, ")).collect();
        let selected: String =
            groups.iter().enumerate().map(|(at, column)| format!("{} AS k{at}, ", column.value.sql)).collect();
        let first = steps.first.clone().unwrap_or_else(|| format!("min({step})"));
        let last = steps.last.clone().unwrap_or_else(|| format!("max({step})"));
        let bins_min = if series.is_nonempty && groups.is_empty() { 0 } else { 1 };
        let grouping = if groups.is_empty() { String::new() } else { by_first(groups.len()) };
        let binned = binned.from.as_deref().unwrap_or_default();
        let what = quoted(&format!("{}the steps of `make-series`", self.line(place)));
        let all = format!("c{}", self.shared.len() + 1);
        self.shared.push(format!(
            "{all}({keys}step, last) AS (\
             SELECT {keys}first, first + kql_at_most(last - first + 1, {STEPS_MAX}, {what}) - 1 FROM \
             (SELECT {selected}{first} AS first, {last} AS last, count(*) AS bins FROM {binned}{grouping}) \
             WHERE bins >= {bins_min} AND first <= last \
             UNION ALL SELECT {keys}step + 1, last FROM {all} WHERE step < last)"
        ));
        all
    }

    /// The element for a step without rows.
    fn default(&mut self, default: Option<&Expression>, kind: Type) -> Result<String, Fault> {
        let Some(expression) = default else { return Ok("0".to_owned()) };
        let value = self.value(expression, Scope::Nothing)?;
        if value.is_null() || value.kind == kind || (value.kind.is_number() && kind.is_number()) {
            return Ok(as_element(&value));
        }
        let (wanted, found) = (kind.word(), value.kind.word());
        Err(Fault::new(expression.place, format!("the default is a {found}, expected a {wanted}")))
    }
}

impl Steps {
    fn is_whole(&self, kind: Type) -> bool {
        kind.is_whole() && self.origin.kind.is_whole() && self.length.kind.is_whole()
    }

    /// Number of the step that contains a value.
    fn number(&self, value: &str) -> String {
        let (origin, length) = (&self.origin.sql, &self.length.sql);
        if !self.is_whole(Type::Long) {
            return format!("CAST(kql_bin(({value} - {origin}) / CAST({length} AS REAL), 1.0) AS INTEGER)");
        }
        let apart = format!("({value} - {origin})");
        format!("CAST(kql_bin({apart}, {length}) / {length} AS INTEGER)")
    }

    /// Number of the last step that begins before a value.
    fn last_before(&self, value: &Value) -> String {
        match self.is_whole(value.kind) {
            true => self.number(&format!("({} - 1)", value.sql)),
            false => format!(
                "(CAST(kql_ceiling(({} - {}) / CAST({} AS REAL)) AS INTEGER) - 1)",
                value.sql, self.origin.sql, self.length.sql
            ),
        }
    }

    /// Conditions that limit rows to those between the first and the last step.
    fn bounds(&self, axis: &Value) -> Vec<String> {
        let number = self.number(&axis.sql);
        let first = self.first.iter().map(|first| format!("{number} >= {first}"));
        let last = self.last.iter().map(|last| format!("{number} <= {last}"));
        first.chain(last).collect()
    }
}

/// `GROUP BY` over the first columns.
fn by_first(count: usize) -> String {
    let positions: Vec<_> = (1..=count).map(|at| at.to_string()).collect();
    format!(" GROUP BY {}", positions.join(", "))
}

fn is_axis(kind: Type) -> bool {
    kind.is_number() || matches!(kind, Type::Datetime | Type::Timespan)
}

/// A value as an element of a JSON array.
fn as_element(value: &Value) -> String {
    match value.kind {
        Type::Datetime | Type::Timespan => text(value),
        _ => value.sql.clone(),
    }
}
