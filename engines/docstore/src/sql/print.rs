//! Writes a query as text again, for the rewritten queries of plans. Operators stand in parentheses, so that no rule of
//! precedence matters.

use std::fmt::{self, Display, Formatter};

use super::ast::{Bound, Expression, Projection, Query, Rows, Source, Unary};
use super::value::write_text;

impl Display for Query {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("SELECT ")?;
        if self.distinct {
            out.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.top {
            write!(out, "TOP {top} ")?;
        }
        write!(out, "{}", self.projection)?;
        write_list(out, " FROM ", " JOIN ", &self.sources)?;
        if let Some(filter) = &self.filter {
            write!(out, " WHERE {filter}")?;
        }
        write_list(out, " GROUP BY ", ", ", &self.group_by)?;
        for (index, key) in self.order_by.iter().enumerate() {
            let (before, after) =
                (if index == 0 { " ORDER BY " } else { ", " }, if key.descending { "DESC" } else { "ASC" });
            write!(out, "{before}{} {after}", key.expression)?;
        }
        if let Some((offset, limit)) = &self.offset_limit {
            write!(out, " OFFSET {offset} LIMIT {limit}")?;
        }
        Ok(())
    }
}

impl Display for Bound {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(out, "{number}"),
            Self::Parameter(name) => out.write_str(name),
        }
    }
}

impl Display for Projection {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Star => out.write_str("*"),
            Self::Value(expression) => write!(out, "VALUE {expression}"),
            Self::Items(items) => {
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(out, "{comma}{} AS ", item.expression)?;
                    if is_word(&item.name) { out.write_str(&item.name)? } else { write_text(out, &item.name)? }
                }
                Ok(())
            }
        }
    }
}

impl Display for Source {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let alias = &self.alias;
        match &self.rows {
            Rows::Below(path) => write!(out, "{path} AS {alias}"),
            Rows::Each(path) => write!(out, "{alias} IN {path}"),
            Rows::Subquery(query) => write!(out, "({query}) AS {alias}"),
            Rows::EachOf(query) => write!(out, "{alias} IN ({query})"),
        }
    }
}

impl Display for Expression {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(value) => write!(out, "{value}"),
            Self::Parameter(name) | Self::Name(name, _) => out.write_str(name),
            Self::Member(inner, name) => {
                write!(out, "{inner}[")?;
                write_text(out, name)?;
                out.write_str("]")
            }
            Self::Index(inner, index) => write!(out, "{inner}[({index})]"),
            Self::Unary(Unary::Not, inner) => write!(out, "(NOT {inner})"),
            Self::Unary(operator, inner) => write!(out, "({} {inner})", operator.symbol()),
            Self::Binary(operator, left, right) => write!(out, "({left} {} {right})", operator.symbol()),
            Self::And(operands) => write_operands(out, " AND ", operands),
            Self::Or(operands) => write_operands(out, " OR ", operands),
            Self::Ternary(parts) => write!(out, "({} ? {} : {})", parts[0], parts[1], parts[2]),
            Self::In(value, list) => {
                write!(out, "({value}")?;
                write_list(out, " IN (", ", ", list)?;
                out.write_str("))")
            }
            Self::Between(parts) => write!(out, "({} BETWEEN {} AND {})", parts[0], parts[1], parts[2]),
            Self::Like(like) => {
                write!(out, "({} LIKE {}", like.text, like.pattern)?;
                if let Some(escape) = like.escape {
                    out.write_str(" ESCAPE ")?;
                    write_text(out, &escape.to_string())?;
                }
                out.write_str(")")
            }
            Self::Call(function, arguments) => {
                write!(out, "{}(", function.name())?;
                write_list(out, "", ", ", arguments)?;
                out.write_str(")")
            }
            Self::Aggregate(call) => write!(out, "{}({})", call.function.name(), call.argument),
            Self::Array(elements) => {
                out.write_str("[")?;
                write_list(out, "", ", ", elements)?;
                out.write_str("]")
            }
            Self::Object(properties) => write_object(out, properties),
            Self::Exists(query) => write!(out, "EXISTS({query})"),
            Self::ArrayOf(query) => write!(out, "ARRAY({query})"),
            Self::Subquery(query) => write!(out, "({query})"),
        }
    }
}

fn write_object(out: &mut Formatter<'_>, properties: &[(String, Expression)]) -> fmt::Result {
    out.write_str("{")?;
    for (index, (name, value)) in properties.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_text(out, name)?;
        write!(out, ": {value}")?;
    }
    out.write_str("}")
}

fn write_operands(out: &mut Formatter<'_>, between: &str, operands: &[Expression]) -> fmt::Result {
    write_list(out, "(", between, operands)?;
    out.write_str(")")
}

/// Nothing for an empty list, else `before` and its members.
fn write_list(out: &mut Formatter<'_>, before: &str, between: &str, list: &[impl Display]) -> fmt::Result {
    for (index, member) in list.iter().enumerate() {
        write!(out, "{}{member}", if index == 0 { before } else { between })?;
    }
    Ok(())
}

fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

impl Unary {
    fn symbol(self) -> &'static str {
        match self {
            Self::Not => "NOT",
            Self::Minus => "-",
            Self::Plus => "+",
            Self::BitNot => "~",
        }
    }
}
