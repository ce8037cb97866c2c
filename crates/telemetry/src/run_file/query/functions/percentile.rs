//! `percentile` and `percentilew`: the nearest rank, over all values of a group.
//!
//! The P-th percentile is the smallest value with at least P per cent of the values at or below it; the 0th is the
//! smallest of all. It is always one of the values: KQL's page on percentiles has this definition, and estimates it.

use std::sync::Arc;

use rusqlite::functions::{Aggregate, Context};
use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use super::super::budget::{Allocation, Budget};
use super::arguments::{Number, number};
use super::{FLAGS, wrong};

pub(super) fn register(connection: &Connection, budget: &Arc<Budget>) -> Result<()> {
    connection.create_aggregate_function("percentile", 2, FLAGS, Percentile { budget: Arc::clone(budget) })?;
    connection.create_aggregate_function("percentilew", 3, FLAGS, WeightedPercentile { budget: Arc::clone(budget) })
}

/// The argument that says which percentile: 0 to 100.
fn share_of(context: &Context<'_>, at: usize) -> Result<f64> {
    let percent = number(context, at).map(Number::as_f64);
    percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0).ok_or_else(|| {
        let found = percent.map_or_else(|| "something that is no number".to_owned(), |percent| percent.to_string());
        wrong(format!("a percentile of {found}, expected 0 to 100"))
    })
}

struct Percentile {
    budget: Arc<Budget>,
}

struct Values {
    values: Vec<Number>,
    share: f64,
    held: Allocation,
}

impl Aggregate<Values, Value> for Percentile {
    fn init(&self, context: &mut Context<'_>) -> Result<Values> {
        Ok(Values { values: Vec::new(), share: share_of(context, 1)?, held: Allocation::new(&self.budget) })
    }

    fn step(&self, context: &mut Context<'_>, group: &mut Values) -> Result<()> {
        if let Some(value) = number(context, 0) {
            group.held.take(size_of::<Number>())?;
            group.values.push(value);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, group: Option<Values>) -> Result<Value> {
        let Some(mut group) = group.filter(|group| !group.values.is_empty()) else { return Ok(Value::Null) };
        let rank = rank(group.share, group.values.len());
        let (_, value, _) = group.values.select_nth_unstable_by(rank, Number::order);
        Ok((*value).into())
    }
}

/// The place of the nearest rank among `count` sorted values, from 0.
fn rank(share: f64, count: usize) -> usize {
    // The share of a percentile such as 99.9 is not exact in binary: a rank must not move up for that.
    let exact = share * count as f64;
    ((exact - 1e-9 * count as f64).ceil().max(1.0) as usize).min(count) - 1
}

struct WeightedPercentile {
    budget: Arc<Budget>,
}

struct WeightedValues {
    values: Vec<(Number, f64)>,
    share: f64,
    held: Allocation,
}

impl Aggregate<WeightedValues, Value> for WeightedPercentile {
    fn init(&self, context: &mut Context<'_>) -> Result<WeightedValues> {
        Ok(WeightedValues { values: Vec::new(), share: share_of(context, 2)?, held: Allocation::new(&self.budget) })
    }

    fn step(&self, context: &mut Context<'_>, group: &mut WeightedValues) -> Result<()> {
        let pair = number(context, 0).zip(number(context, 1).map(Number::as_f64));
        if let Some((value, weight)) = pair.filter(|(_, weight)| *weight > 0.0 && weight.is_finite()) {
            group.held.take(size_of::<(Number, f64)>())?;
            group.values.push((value, weight));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, group: Option<WeightedValues>) -> Result<Value> {
        let Some(mut group) = group else { return Ok(Value::Null) };
        group.values.sort_unstable_by(|(a, _), (b, _)| a.order(b));
        let total: f64 = group.values.iter().map(|(_, weight)| weight).sum();
        let wanted = group.share * total - 1e-9 * total;
        let mut below = 0.0;
        let found = group.values.iter().find(|(_, weight)| {
            below += weight;
            below >= wanted
        });
        Ok(found.or(group.values.last()).map_or(Value::Null, |(value, _)| (*value).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::budget::Budget;
    use super::super::testing::{cell, connection};
    use super::*;

    fn of(values: &str, call: &str) -> String {
        cell(&connection(), &format!("WITH t (x, w) AS (VALUES {values}) SELECT {call} FROM t"))
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let five = "(15, 1), (20, 1), (35, 1), (40, 1), (50, 1)";
        // The example that every account of the nearest-rank method has.
        for (percent, expected) in [("0", "15"), ("5", "15"), ("30", "20"), ("40", "20"), ("50", "35"), ("100", "50")] {
            assert_eq!(of(five, &format!("percentile(x, {percent})")), expected, "{percent}");
        }
        assert_eq!(of("(2, 1), (1, 1)", "percentile(x, 50)"), "1", "no mean of two values");
        assert_eq!(of("(NULL, 1), ('text', 1), (7, 1)", "percentile(x, 50)"), "7", "only numbers count");
        assert_eq!(of("(1, 1), (2.5, 1)", "percentile(x, 99)"), "2.5");
        assert_eq!(of("(9007199254740993, 1), (9007199254740992, 1)", "percentile(x, 100)"), "9007199254740993");
        assert_eq!(of("(NULL, 1)", "percentile(x, 50)"), "NULL");
        assert_eq!(cell(&connection(), "SELECT percentile(1, 50) WHERE 0"), "NULL");
    }

    #[test]
    fn ranks_of_percentages_that_binary_has_not() {
        assert_eq!(
            [rank(0.999, 1000), rank(0.95, 100), rank(0.07, 100), rank(1.0, 3), rank(0.0, 3)],
            [998, 94, 6, 2, 0]
        );
    }

    #[test]
    fn weights_count_as_so_many_values() {
        assert_eq!(of("(1, 1), (2, 8), (3, 1)", "percentilew(x, w, 50)"), "2");
        assert_eq!(of("(1, 1), (2, 8), (3, 1)", "percentilew(x, w, 10)"), "1");
        assert_eq!(of("(1, 1), (2, 8), (3, 1)", "percentilew(x, w, 91)"), "3");
        assert_eq!(of("(1, 0), (2, 1)", "percentilew(x, w, 0)"), "2");
    }

    #[test]
    fn what_cannot_be_is_said() {
        assert_eq!(of("(1, 1)", "percentile(x, 101)"), "error: a percentile of 101, expected 0 to 100");
        assert_eq!(
            of("(1, 1)", "percentile(x, NULL)"),
            "error: a percentile of something that is no number, expected 0 to 100"
        );
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let connection = Connection::open_in_memory().unwrap();
        let budget = Arc::new(Budget::new(1000 * size_of::<Number>()));
        register(&connection, &budget).unwrap();
        let count = |rows: u32| {
            let rows = format!("WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < {rows})");
            cell(&connection, &format!("{rows} SELECT percentile(x, 50) FROM t"))
        };
        for _ in 0..3 {
            assert_eq!(count(1000), "500");
            assert!(count(1001).contains("more than 15.6 KiB of memory"), "{}", count(1001));
        }
    }
}
