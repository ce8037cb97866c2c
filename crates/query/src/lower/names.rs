//! The names that columns get without being given one, which are KQL's own, down to its oddities: a query that says
//! `sum_itemCount` in its next line has to find it.

use crate::sql::Relation;
use crate::syntax::{Expression, Literal, Shape};

/// Functions whose result keeps the name of their first value.
const KEEPING: [&str; 27] = [
    "abs",
    "bin",
    "ceiling",
    "exp",
    "floor",
    "format_datetime",
    "log",
    "log10",
    "log2",
    "parse_json",
    "parsejson",
    "pow",
    "round",
    "split",
    "sqrt",
    "startofday",
    "tobool",
    "toboolean",
    "todatetime",
    "todouble",
    "todynamic",
    "toint",
    "tolong",
    "toobject",
    "toreal",
    "tostring",
    "totimespan",
];

/// Functions that put their own name before it.
const PREFIXING: [&str; 2] = ["strlen", "string_size"];

/// `Column1`, `Column2` …
pub(super) fn numbered(relation: &Relation, unnamed: &mut usize) -> String {
    loop {
        *unnamed += 1;
        let name = format!("Column{unnamed}");
        if relation.column(&name).is_none() {
            return name;
        }
    }
}

impl Relation {
    /// The name, or with a number behind it when there is one already.
    pub(super) fn free_name(&self, name: &str) -> String {
        if self.column(name).is_none() {
            return name.to_owned();
        }
        let numbered = (1..).map(|number| format!("{name}{number}"));
        numbered.into_iter().find(|name| self.column(name).is_none()).unwrap_or_default()
    }
}

/// The name that a value has without being given one.
pub(super) fn implied_name(expression: &Expression) -> Option<String> {
    match &expression.kind {
        Shape::Name(name) => Some(name.clone()),
        Shape::Member(value, key) => Some(format!("{}_{}", implied_name(value)?, key.text)),
        Shape::Index(value, index) => {
            let value = implied_name(value)?;
            Some(match &index.kind {
                Shape::Literal(Literal::Text(key)) => format!("{value}_{key}"),
                Shape::Literal(Literal::Long(position)) => format!("{value}_{position}"),
                _ => format!("{value}_"),
            })
        }
        Shape::Call(name, arguments) if KEEPING.contains(&name.text.as_str()) => implied_name(arguments.first()?),
        Shape::Call(name, arguments) if PREFIXING.contains(&name.text.as_str()) => {
            let subject = arguments.first().and_then(implied_name).unwrap_or_default();
            Some(format!("{}_{subject}", name.text))
        }
        _ => None,
    }
}
