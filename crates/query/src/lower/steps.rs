//! The operators that take a table row by row, and those that order and cut it.

use super::columns::{away, kept, renamed, reordered};
use super::names::{implied_name, numbered};
use super::{FENCE_BYTES, Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Column, Key, Relation, Value};
use crate::syntax::{Expression, Item, Name, Operator, Shape, SortKey, Step};
use crate::types::Type;

/// Name of the column with the value of a condition that looks at other rows. Queries cannot contain this name.
const WINDOW: &str = "\u{1}condition";

impl Lowering<'_> {
    pub(super) fn step(&mut self, relation: Relation, operator: &Operator) -> Result<Relation, Fault> {
        let place = operator.place;
        match &operator.kind {
            Step::Where(condition) => self.filtered(relation, condition, place),
            Step::Extend(items) => self.extended(relation, items, place),
            Step::Serialize(items) => {
                let relation = Relation { is_serialized: true, ..relation };
                self.extended(relation, items, place)
            }
            Step::Project(items) => self.projected(relation, items, place),
            Step::ProjectAway(patterns) => away(relation, patterns),
            Step::ProjectKeep(patterns) => kept(relation, patterns),
            Step::ProjectReorder(patterns) => reordered(relation, patterns),
            Step::ProjectRename(names) => renamed(relation, names),
            Step::Summarize(values, by) => self.summarized(relation, values, by, place),
            Step::Distinct(values) => self.distinct(relation, values, place),
            Step::Join(join) => self.joined(relation, join, place),
            Step::GetSchema => Ok(self.schema(&relation)),
            Step::Invoke(name, arguments) => self.invoked(relation, name, arguments),
            Step::MakeSeries(series) => self.make_series(relation, series, place),
            Step::MvExpand(expand) => self.mv_expanded(relation, expand, place),
            Step::Parse(parse) => self.parsed(relation, parse, place),
            Step::TopNested(levels) => self.top_nested(relation, levels, place),
            Step::Union(union) => self.union(union, Some(relation), place),
            Step::Sort(keys) => self.sorted(relation, keys, place),
            Step::Take(count) => self.taken(relation, count),
            Step::Top(count, keys) => {
                let sorted = self.sorted(relation, keys, place)?;
                self.taken(sorted, count)
            }
            Step::Count => {
                let relation = self.without_limit(relation, place)?;
                let count = Value::new(Type::Long, "count(*)");
                let counted = Relation {
                    order: Vec::new(),
                    columns: vec![Column { name: "Count".into(), value: count }],
                    ..relation
                };
                self.seal(Relation { is_costly: true, name: None, is_serialized: false, ..counted }, place)
            }
            Step::Render(_) => Err(Fault::new(place, "`render` stands at the end of the whole query only")),
        }
    }

    /// A table to which conditions can be added.
    pub(super) fn without_limit(&mut self, relation: Relation, place: TextRange) -> Result<Relation, Fault> {
        match relation.limit {
            Some(_) => self.seal(relation, place),
            None => Ok(relation),
        }
    }

    /// Rejects window functions here: they would count rows before these are grouped or filtered.
    pub(super) fn no_window(&mut self, place: TextRange) -> Result<(), Fault> {
        self.inner.clear();
        match std::mem::take(&mut self.has_window) {
            false => Ok(()),
            true => Err(Fault::new(
                place,
                "a function of other rows stands only in `extend`, `serialize`, `project` and `where`",
            )
            .hint("name its value with `extend` first")),
        }
    }

    fn invoked(&mut self, relation: Relation, name: &Name, arguments: &[Expression]) -> Result<Relation, Fault> {
        self.call_of_table(name, arguments, Some(relation))
    }

    fn filtered(&mut self, relation: Relation, condition: &Expression, place: TextRange) -> Result<Relation, Fault> {
        let mut relation = self.without_limit(relation, place)?;
        let (width, mut value) = (relation.columns.len(), self.condition(condition, Scope::Rows(&relation))?);
        while self.add_inner_columns(&mut relation, place)? {
            value = self.condition(condition, Scope::Rows(&relation))?;
        }
        if std::mem::take(&mut self.has_window) {
            // Window functions must also see the rows that the condition filters out.
            relation.columns.push(Column { name: WINDOW.to_owned(), value });
            relation = self.seal(relation, place)?;
            value = relation.columns.pop().map_or_else(|| Value::whole(Type::Bool, 1), |column| column.value);
        }
        relation.columns.truncate(width);
        relation.filters.push(value.sql);
        Ok(relation)
    }

    /// A table whose expressions are columns, where that is cheaper than to repeat them.
    pub(super) fn fenced(&mut self, relation: Relation, place: TextRange) -> Result<Relation, Fault> {
        let has_window = std::mem::take(&mut self.has_window);
        let longest = relation.columns.iter().map(|column| column.value.sql.len()).max().unwrap_or(0);
        if longest > FENCE_BYTES {
            return self.share(relation, place);
        }
        if has_window { self.seal(relation, place) } else { Ok(relation) }
    }

    fn extended(&mut self, mut relation: Relation, items: &[Item], place: TextRange) -> Result<Relation, Fault> {
        let width = relation.columns.len();
        loop {
            let mut extended = Relation { columns: relation.columns[..width].to_vec(), ..relation.clone() };
            let mut unnamed = 0;
            for item in items {
                // Every value sees the table as it was before this step.
                let value = self.value(&item.value, Scope::Rows(&relation))?;
                let name = match one_name(item)? {
                    Some(name) => name.text.clone(),
                    None => implied_name(&item.value).unwrap_or_else(|| numbered(&extended, &mut unnamed)),
                };
                extended.set(Column { name, value });
            }
            if !self.add_inner_columns(&mut relation, place)? {
                return self.fenced(extended, place);
            }
        }
    }

    fn projected(&mut self, mut relation: Relation, items: &[Item], place: TextRange) -> Result<Relation, Fault> {
        loop {
            let mut projected = Relation { columns: Vec::new(), ..relation.clone() };
            let mut unnamed = 0;
            for item in items {
                let value = self.value(&item.value, Scope::Rows(&relation))?;
                let name = match one_name(item)? {
                    Some(name) if projected.column(&name.text).is_some() => {
                        return Err(Fault::new(name.place, format!("there are two columns `{}`", name.text)));
                    }
                    Some(name) => name.text.clone(),
                    None => match implied_name(&item.value) {
                        Some(name) => projected.free_name(&name),
                        None => numbered(&projected, &mut unnamed),
                    },
                };
                projected.columns.push(Column { name, value });
            }
            if !self.add_inner_columns(&mut relation, place)? {
                return self.fenced(projected, place);
            }
        }
    }

    pub(super) fn sorted(&mut self, relation: Relation, keys: &[SortKey], place: TextRange) -> Result<Relation, Fault> {
        let mut relation = self.without_limit(relation, place)?;
        let mut order = Vec::new();
        for key in keys {
            let value = self.value(&key.value, Scope::Rows(&relation))?;
            self.no_window(key.value.place)?;
            not_dynamic(&value, key.value.place)?;
            // A constant whole number would name a column by its position.
            let sql = if value.constant.is_some() { format!("({} + 0)", value.sql) } else { value.sql };
            order.push(Key { sql, direction: direction(key) });
        }
        relation.order = order;
        relation.is_serialized = true;
        Ok(relation)
    }

    fn taken(&mut self, mut relation: Relation, count: &Expression) -> Result<Relation, Fault> {
        let rows = self.row_count(count)?;
        relation.limit = Some(relation.limit.map_or(rows, |before| before.min(rows)));
        relation.is_costly = true;
        Ok(relation)
    }

    /// A number of rows, which must be a constant.
    pub(super) fn row_count(&mut self, expression: &Expression) -> Result<i64, Fault> {
        let value = self.value(expression, Scope::Nothing)?;
        match value.as_whole() {
            Some(rows) if rows >= 0 && value.kind == Type::Long => Ok(rows),
            _ => Err(Fault::new(expression.place, "the number of rows is a constant whole number of at least 0")),
        }
    }

    fn distinct(&mut self, relation: Relation, values: &[Expression], place: TextRange) -> Result<Relation, Fault> {
        let relation = self.without_limit(relation, place)?;
        let mut columns = Vec::new();
        if let [Expression { kind: Shape::Star, place, .. }] = values {
            for column in &relation.columns {
                if column.value.kind == Type::Dynamic {
                    let message = format!("the column `{}` is dynamic, which `distinct` cannot compare", column.name);
                    return Err(
                        Fault::new(*place, message).hint(format!("leave it out with `project-away {}`", column.name))
                    );
                }
            }
            columns.clone_from(&relation.columns);
        } else {
            let mut unnamed = 0;
            let mut named = Relation::default();
            for expression in values {
                let value = self.value(expression, Scope::Rows(&relation))?;
                self.no_window(expression.place)?;
                not_dynamic(&value, expression.place)?;
                let name = match implied_name(expression) {
                    Some(name) => named.free_name(&name),
                    None => numbered(&named, &mut unnamed),
                };
                named.columns.push(Column { name, value });
            }
            columns = named.columns;
        }
        let positions: Vec<_> = (1..=columns.len()).map(|position| position.to_string()).collect();
        let grouped =
            Relation { columns, order: Vec::new(), is_costly: true, is_serialized: false, name: None, ..relation };
        self.grouped(&grouped, &format!(" GROUP BY {}", positions.join(", ")), place)
    }
}

/// The name that an item gives itself; several are for aggregates.
pub(super) fn one_name(item: &Item) -> Result<Option<&Name>, Fault> {
    match item.names.as_slice() {
        [] => Ok(None),
        [name] => Ok(Some(name)),
        [_, second, ..] => Err(Fault::new(second.place, "one value gets one name here")),
    }
}

pub(super) fn not_dynamic(value: &Value, place: TextRange) -> Result<(), Fault> {
    match value.kind {
        Type::Dynamic => Err(Fault::new(place, "a dynamic value cannot be compared here")
            .hint("convert it first, such as by `tostring(…)`")),
        _ => Ok(()),
    }
}

/// NULLs come last when falling and first when rising, in KQL and in SQLite alike.
fn direction(key: &SortKey) -> &'static str {
    match (key.is_ascending, key.nulls_first) {
        (true, None | Some(true)) => "",
        (true, Some(false)) => " NULLS LAST",
        (false, None | Some(false)) => " DESC",
        (false, Some(true)) => " DESC NULLS FIRST",
    }
}
