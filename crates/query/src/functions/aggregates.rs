//! The table of aggregates.
//!
//! Over no rows, counts and sums are 0, lists are empty, and everything else is NULL, as KQL has it. Aggregates leave NULLs
//! out.

use super::conversions::text;
use super::typed::constant_number;
use crate::error::{Fault, TextRange};
use crate::sql::Value;
use crate::types::Type;

pub(crate) struct Aggregate {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// Prefix of the column's name, before `_`.
    pub(crate) prefix: &'static str,
    /// The aggregate in SQL.
    pub(crate) sql: &'static str,
}

/// Arguments of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing: `count()`.
    Rows,
    /// A condition: `countif(x)`.
    Condition,
    /// A value of any type.
    Value,
    /// A number or a length of time, whose type the sum keeps.
    Sum,
    /// The same, for the mean.
    Mean,
    /// A number, giving a real.
    Spread,
    /// A value that has an order.
    Ordered,
    /// A value, giving a JSON array, and how many at most.
    List,
    ListIf,
    /// The same as [`Form::Sum`] … with a condition behind it.
    SumIf,
    MeanIf,
    SpreadIf,
    ValueIf,
    OrderedIf,
    Percentiles,
    /// The same, with how many times each value counts.
    WeightedPercentiles,
    /// `arg_max`, `arg_min`.
    Extreme,
    /// `take_any`.
    Any,
}

const MANY: usize = 64;

impl Form {
    /// How few and how many values it takes.
    pub(crate) fn counts(self) -> (usize, usize) {
        match self {
            Form::Rows => (0, 0),
            Form::Condition | Form::Value | Form::Sum | Form::Mean | Form::Spread | Form::Ordered => (1, 1),
            Form::List => (1, 2),
            Form::SumIf | Form::MeanIf | Form::SpreadIf | Form::ValueIf | Form::OrderedIf | Form::ListIf => (2, 2),
            Form::Percentiles => (2, MANY),
            Form::WeightedPercentiles => (3, MANY),
            Form::Extreme | Form::Any => (1, MANY),
        }
    }

    pub(crate) fn takes(self) -> &'static str {
        match self {
            Form::Rows => "no value",
            Form::Condition => "one condition",
            Form::Value | Form::Sum | Form::Mean | Form::Spread | Form::Ordered => "one value",
            Form::List => "a value, and how many at most",
            Form::SumIf | Form::MeanIf | Form::SpreadIf | Form::ValueIf | Form::OrderedIf | Form::ListIf => {
                "a value and a condition"
            }
            Form::Percentiles => "a value and 1 to 63 percentages",
            Form::WeightedPercentiles => "a value, its weight and 1 to 62 percentages",
            Form::Extreme => "1 to 64 values: what is compared, then what is given",
            Form::Any => "1 to 64 values",
        }
    }
}

const fn row(name: &'static str, form: Form, prefix: &'static str, sql: &'static str) -> Aggregate {
    Aggregate { name, form, prefix, sql }
}

pub(crate) const AGGREGATES: [Aggregate; 38] = [
    row("count", Form::Rows, "count", "count"),
    row("countif", Form::Condition, "countif", "count"),
    row("sum", Form::Sum, "sum", "sum"),
    row("sumif", Form::SumIf, "sumif", "sum"),
    row("avg", Form::Mean, "avg", "avg"),
    row("avgif", Form::MeanIf, "avgif", "avg"),
    row("min", Form::Ordered, "min", "min"),
    row("max", Form::Ordered, "max", "max"),
    row("dcount", Form::Value, "dcount", "dcount"),
    row("dcountif", Form::ValueIf, "dcountif", "dcount"),
    row("stdev", Form::Spread, "stdev", "stdev"),
    row("stdevif", Form::SpreadIf, "stdevif", "stdev"),
    row("variance", Form::Spread, "variance", "variance"),
    row("varianceif", Form::SpreadIf, "varianceif", "variance"),
    row("minif", Form::OrderedIf, "minif", "min"),
    row("maxif", Form::OrderedIf, "maxif", "max"),
    row("count_distinct", Form::Value, "count_distinct", "dcount"),
    row("count_distinctif", Form::ValueIf, "count_distinctif", "dcount"),
    row("stdevp", Form::Spread, "stdevp", "stdevp"),
    row("variancep", Form::Spread, "variancep", "variancep"),
    row("make_list_if", Form::ListIf, "list", "make_list"),
    row("make_set_if", Form::ListIf, "set", "make_set"),
    row("percentilew", Form::WeightedPercentiles, "percentile", "percentilew"),
    row("percentilesw", Form::WeightedPercentiles, "percentile", "percentilew"),
    row("make_list", Form::List, "list", "make_list"),
    row("makelist", Form::List, "list", "make_list"),
    row("make_set", Form::List, "set", "make_set"),
    row("makeset", Form::List, "set", "make_set"),
    row("percentile", Form::Percentiles, "percentile", "percentile"),
    row("percentiles", Form::Percentiles, "percentile", "percentile"),
    row("arg_max", Form::Extreme, "max", "arg_max"),
    row("argmax", Form::Extreme, "max", "arg_max"),
    row("arg_min", Form::Extreme, "min", "arg_min"),
    row("argmin", Form::Extreme, "min", "arg_min"),
    row("take_any", Form::Any, "", "max"),
    row("any", Form::Any, "any", "max"),
    row("takeany", Form::Any, "", "max"),
    row("take_anyif", Form::ValueIf, "", "max"),
];

pub(crate) fn find(name: &str) -> Option<&'static Aggregate> {
    AGGREGATES.iter().find(|aggregate| aggregate.name == name)
}

/// A constant percentage as it is written into a column's name.
pub(crate) fn percent(value: &Value) -> Option<String> {
    let number = constant_number(value)?;
    (0.0..=100.0).contains(&number).then(|| number.to_string())
}

impl Aggregate {
    /// The aggregate over values; `order` is what its table is sorted by.
    pub(crate) fn value(&self, values: &[Value], places: &[TextRange], order: Option<&str>) -> Result<Value, Fault> {
        let Some(first) = values.first() else { return Ok(Value::new(Type::Long, "count(*)")) };
        let place = places.first().copied().unwrap_or(TextRange { start: 0, end: 0 });
        let second = places.get(1).copied().unwrap_or(place);
        if self.form == Form::Condition {
            let condition = condition(first, place)?;
            return Ok(Value::new(Type::Long, format!("count(CASE WHEN {condition} THEN 1 END)")));
        }
        self.check(first.kind, place)?;
        let (function, subject) = match self.form {
            Form::List | Form::ListIf => self.element(first),
            _ => (self.sql.to_owned(), first.sql.clone()),
        };
        let subject = match values.get(1) {
            None => subject,
            Some(most) if self.form == Form::List => match most.as_whole() {
                Some(most) if most > 0 => format!("{subject}, {most}"),
                _ => return Err(Fault::new(second, "how many at most is a constant whole number above 0")),
            },
            Some(filter) => format!("CASE WHEN {} THEN {subject} END", condition(filter, second)?),
        };
        Ok(self.over(first.kind, &function, &subject, order))
    }

    /// The function that makes an array of values like this one, and what it is given.
    fn element(&self, value: &Value) -> (String, String) {
        match value.kind {
            Type::Text | Type::Long | Type::Real => (self.sql.to_owned(), value.sql.clone()),
            Type::Datetime | Type::Timespan => (self.sql.to_owned(), text(value)),
            Type::Dynamic => (format!("{}_json", self.sql), value.sql.clone()),
            Type::Bool => (format!("{}_json", self.sql), text(value)),
        }
    }

    fn over(&self, kind: Type, function: &str, x: &str, order: Option<&str>) -> Value {
        match self.form {
            Form::Sum | Form::SumIf if kind == Type::Real => Value::new(kind, format!("total({x})")),
            Form::Sum | Form::SumIf => Value::new(kind, format!("ifnull(sum({x}), 0)")),
            Form::Mean | Form::MeanIf if kind.is_number() => Value::new(Type::Real, format!("avg({x})")),
            Form::Mean | Form::MeanIf => Value::new(kind, format!("CAST(avg({x}) AS INTEGER)")),
            Form::Spread | Form::SpreadIf => Value::new(Type::Real, format!("ifnull({function}({x}), 0.0)")),
            Form::Value | Form::ValueIf if function == "dcount" => {
                Value::new(Type::Long, format!("count(DISTINCT {x})"))
            }
            Form::List | Form::ListIf => {
                let is_ordered = self.sql == "make_list";
                let order = order.filter(|_| is_ordered).map_or(String::new(), |keys| format!(" ORDER BY {keys}"));
                Value::new(Type::Dynamic, format!("ifnull({function}({x}{order}), '[]')"))
            }
            _ => Value::new(kind, format!("{function}({x})")),
        }
    }

    fn check(&self, kind: Type, place: TextRange) -> Result<(), Fault> {
        let is_fit = match self.form {
            Form::Sum | Form::SumIf => kind.is_number() || kind == Type::Timespan,
            Form::Mean | Form::MeanIf => kind.is_number() || matches!(kind, Type::Timespan | Type::Datetime),
            Form::Spread | Form::SpreadIf => kind.is_number(),
            Form::Ordered | Form::OrderedIf => kind != Type::Dynamic,
            _ => true,
        };
        if is_fit {
            return Ok(());
        }
        let fault = Fault::new(place, format!("`{}` is not defined for a {}", self.name, kind.word()));
        Err(match kind {
            Type::Dynamic | Type::Text => fault.hint("convert it first, such as by `toreal(…)` or `tostring(…)`"),
            Type::Bool => fault.hint("`countif(…)` counts where a condition holds"),
            _ => fault,
        })
    }
}

fn condition(value: &Value, place: TextRange) -> Result<&str, Fault> {
    match value.kind {
        Type::Bool => Ok(&value.sql),
        kind => Err(Fault::new(place, format!("this is a {}, where a condition was expected", kind.word()))),
    }
}
