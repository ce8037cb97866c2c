//! `arg_max(by, value)` and `arg_min(by, value)`: a value of the row in which another is largest or smallest.
//!
//! Rows where that other one is NULL are passed over; of equals the first row wins.

use std::cmp::Ordering;
use std::sync::Arc;

use rusqlite::functions::{Aggregate, Context};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::super::budget::{Allocation, Budget};
use super::FLAGS;
use super::arguments::Number;

pub(super) fn register(connection: &Connection, budget: &Arc<Budget>) -> Result<()> {
    let extreme = |wins| Extreme { wins, budget: Arc::clone(budget) };
    connection.create_aggregate_function("arg_max", 2, FLAGS, extreme(Ordering::Greater))?;
    connection.create_aggregate_function("arg_min", 2, FLAGS, extreme(Ordering::Less))
}

struct Extreme {
    /// How a row compares with the best before it when it is better.
    wins: Ordering,
    budget: Arc<Budget>,
}

struct Best {
    row: Option<(Value, Value)>,
    budget: Arc<Budget>,
    held: Allocation,
}

impl Aggregate<Best, Value> for Extreme {
    fn init(&self, _: &mut Context<'_>) -> Result<Best> {
        Ok(Best { row: None, budget: Arc::clone(&self.budget), held: Allocation::new(&self.budget) })
    }

    fn step(&self, context: &mut Context<'_>, best: &mut Best) -> Result<()> {
        let by = context.get_raw(0);
        if by == ValueRef::Null {
            return Ok(());
        }
        if best.row.as_ref().is_none_or(|(before, _)| order(by, before.into()) == self.wins) {
            let row = (context.get::<Value>(0)?, context.get::<Value>(1)?);
            let mut held = Allocation::new(&best.budget);
            held.take(bytes(&row.0) + bytes(&row.1))?;
            best.held = held;
            best.row = Some(row);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, best: Option<Best>) -> Result<Value> {
        Ok(best.and_then(|best| best.row).map_or(Value::Null, |(_, value)| value))
    }
}

fn bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Blob(blob) => blob.len(),
            Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        }
}

/// SQLite's own order: numbers, then text, then bytes.
fn order(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    let number = |value: ValueRef<'_>| match value {
        ValueRef::Integer(number) => Some(Number::Integer(number)),
        ValueRef::Real(number) => Some(Number::Real(number)),
        _ => None,
    };
    match (a, b) {
        (ValueRef::Text(a), ValueRef::Text(b)) | (ValueRef::Blob(a), ValueRef::Blob(b)) => a.cmp(b),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.order(&b),
            (a_number, b_number) => (b_number.is_some().cmp(&a_number.is_some()))
                .then_with(|| matches!(a, ValueRef::Blob(_)).cmp(&matches!(b, ValueRef::Blob(_)))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cell, connection};

    #[test]
    fn the_row_with_the_extreme_is_returned() {
        let connection = connection();
        let of = |call: &str, rows: &str| {
            cell(&connection, &format!("WITH t (by, x) AS (VALUES {rows}) SELECT {call} FROM t"))
        };
        let rows = "(3, 'c'), (9, 'i'), (NULL, 'n'), (1.5, 'a'), (9, 'second')";
        assert_eq!(of("arg_max(by, x)", rows), "i");
        assert_eq!(of("arg_min(by, x)", rows), "a");
        assert_eq!(of("arg_max(by, x)", "('b', 1), ('a', 2)"), "1");
        assert_eq!(of("arg_max(by, x)", "(7, 1), ('a', 2)"), "2", "text is above numbers");
        assert_eq!(of("arg_min(by, x)", "(x'00', 1), ('a', 2)"), "2", "bytes are above text");
        assert_eq!(of("arg_max(by, x)", "(NULL, 1)"), "NULL");
        assert_eq!(of("arg_max(by, x)", "(1, NULL)"), "NULL");
        assert_eq!(cell(&connection, "SELECT arg_max(1, 2) WHERE 0"), "NULL");
    }
}
