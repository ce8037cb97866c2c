//! Functions that look at other rows: `prev`, `next`, `row_number`, `row_cumsum`.
//!
//! Each is an SQL window function over the order of the table. SQL does not allow one window function inside another,
//! so an inner one becomes a column first. One that restarts at a condition counts within numbered parts. An operator
//! is read again, over a table with these columns, until it needs no more of them.

use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Column, Relation, Value, whole};
use crate::syntax::{Expression, Name};
use crate::types::Type;

/// Calls that become window functions.
const WINDOWS: [&str; 4] = ["prev", "next", "row_number", "row_cumsum"];
pub(super) fn is_window(name: &str) -> bool {
    WINDOWS.contains(&name)
}

impl Lowering<'_> {
    pub(super) fn window(&mut self, name: &Name, arguments: &[Expression], scope: Scope<'_>) -> Result<Value, Fault> {
        let Scope::Rows(relation) = scope else {
            return Err(Fault::new(name.place, format!("`{}` needs the rows of a table", name.text)));
        };
        if !relation.is_serialized {
            return Err(Fault::new(name.place, format!("`{}` needs rows in an order", name.text))
                .hint("put `sort by …` or `serialize` before it"));
        }
        let value = match name.text.as_str() {
            "prev" => self.neighbour(name, arguments, relation, "lag"),
            "next" => self.neighbour(name, arguments, relation, "lead"),
            "row_number" => self.row_number(name, arguments, relation),
            _ => self.row_cumsum(name, arguments, relation),
        };
        self.has_window = true;
        value
    }

    /// `prev(value, offset, default)`.
    fn neighbour(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        relation: &Relation,
        function: &str,
    ) -> Result<Value, Fault> {
        let [subject, rest @ ..] = arguments else { return Err(takes(name, "1 to 3 values")) };
        let value = self.windowed(subject, relation)?;
        let offset = match rest.first() {
            Some(offset) => self.constant_whole(offset, 0, "an offset")?,
            None => 1,
        };
        let default = match rest {
            [] | [_] => "NULL".to_owned(),
            [_, default] => {
                let default_value = self.value(default, Scope::Nothing)?;
                if !default_value.is_null() && value.kind.common(default_value.kind) != Some(value.kind) {
                    let (wanted, found) = (value.kind.word(), default_value.kind.word());
                    return Err(Fault::new(default.place, format!("the default is a {found}, expected a {wanted}")));
                }
                default_value.sql
            }
            _ => return Err(takes(name, "1 to 3 values")),
        };
        let over = over(relation, None);
        Ok(Value::new(value.kind, format!("{function}({}, {offset}, {default}) OVER ({over})", value.sql)))
    }

    /// `row_number(first, restart)`.
    fn row_number(&mut self, name: &Name, arguments: &[Expression], relation: &Relation) -> Result<Value, Fault> {
        if arguments.len() > 2 {
            return Err(takes(name, "at most 2 values"));
        }
        let first = match arguments.first() {
            Some(first) => self.constant_whole(first, i64::MIN, "the first number")?,
            None => 1,
        };
        let part = self.part(arguments.get(1), relation)?;
        let before = whole(first.saturating_sub(1));
        Ok(Value::new(Type::Long, format!("(row_number() OVER ({}) + {before})", over(relation, part))))
    }

    /// `row_cumsum(term, restart)`.
    fn row_cumsum(&mut self, name: &Name, arguments: &[Expression], relation: &Relation) -> Result<Value, Fault> {
        let (term, restart) = match arguments {
            [term] => (term, None),
            [term, restart] => (term, Some(restart)),
            _ => return Err(takes(name, "1 or 2 values")),
        };
        let value = self.windowed(term, relation)?;
        if !(value.kind.is_number() || value.kind == Type::Timespan) {
            return Err(Fault::new(term.place, format!("`row_cumsum` is not defined for a {}", value.kind.word())));
        }
        let part = self.part(restart, relation)?;
        let sum = if value.kind == Type::Real { "total" } else { "sum" };
        let (over, sql) = (over(relation, part), value.sql);
        Ok(Value::new(value.kind, format!("{sum}({sql}) OVER ({over} ROWS UNBOUNDED PRECEDING)")))
    }

    /// Number of the part that a row is in; a new part begins at each row that meets the condition. `None` until that
    /// number is a column.
    fn part(&mut self, restart: Option<&Expression>, relation: &Relation) -> Result<Option<String>, Fault> {
        let Some(restart) = restart else { return Ok(None) };
        let name = inner_name("part", restart.place);
        if let Some(column) = relation.column(&name) {
            return Ok(Some(column.value.sql.clone()));
        }
        let before = self.inner.len();
        let begins = self.windowed(restart, relation)?;
        if begins.kind != Type::Bool {
            let message = format!("this is a {}, where a condition was expected", begins.kind.word());
            return Err(Fault::new(restart.place, message));
        }
        if self.inner.len() == before {
            let (begins, over) = (begins.sql, over(relation, None));
            let sql = format!("sum(CASE WHEN {begins} THEN 1 ELSE 0 END) OVER ({over} ROWS UNBOUNDED PRECEDING)");
            self.inner.push(Column { name, value: Value::new(Type::Long, sql) });
        }
        Ok(None)
    }

    /// A value inside a window function. If it is itself a window function, it is noted as a column to add first.
    fn windowed(&mut self, expression: &Expression, relation: &Relation) -> Result<Value, Fault> {
        let name = inner_name("value", expression.place);
        if let Some(column) = relation.column(&name) {
            return Ok(column.value.clone());
        }
        let (had_window, before) = (std::mem::take(&mut self.has_window), self.inner.len());
        let value = self.value(expression, Scope::Rows(relation))?;
        if self.has_window && self.inner.len() == before {
            self.inner.push(Column { name, value: value.clone() });
        }
        self.has_window |= had_window;
        Ok(value)
    }

    /// Adds the inner window functions as columns; returns false if there are none.
    pub(super) fn add_inner_columns(&mut self, relation: &mut Relation, place: TextRange) -> Result<bool, Fault> {
        if self.inner.is_empty() {
            return Ok(false);
        }
        let mut widened = relation.clone();
        widened.columns.append(&mut self.inner);
        self.has_window = false;
        *relation = self.seal(widened, place)?;
        Ok(true)
    }

    /// A constant integer of at least `least`.
    fn constant_whole(&mut self, expression: &Expression, least: i64, what: &str) -> Result<i64, Fault> {
        match self.value(expression, Scope::Nothing)?.as_whole() {
            Some(number) if number >= least => Ok(number),
            _ => Err(Fault::new(expression.place, format!("{what} is a constant whole number"))),
        }
    }
}

/// Prefix of the names of inner columns. Names in a query cannot contain a control character.
const INNER: char = '\u{1}';

fn inner_name(what: &str, place: TextRange) -> String {
    format!("{INNER}{what} {} {}", place.start, place.end)
}

fn over(relation: &Relation, part: Option<String>) -> String {
    let part = part.map(|part| format!("PARTITION BY {part}"));
    let order = (!relation.order.is_empty()).then(|| format!("ORDER BY {}", relation.keys()));
    part.into_iter().chain(order).collect::<Vec<_>>().join(" ")
}

fn takes(name: &Name, what: &str) -> Fault {
    Fault::new(name.place, format!("`{}` takes {what}", name.text))
}
