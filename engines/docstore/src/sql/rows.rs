//! The rows of FROM and JOIN: one for each combination of the sources' values, the last source fastest.

use std::ops::ControlFlow;

use super::ast::{Rows, Source};
use super::evaluate::{Frame, Scope};
use super::value::Value;
use super::{TooMuchWork, subquery};

/// Whether to go on to the next row.
pub(super) type Flow = Result<ControlFlow<()>, TooMuchWork>;

/// Calls `visit` with each row of `sources`, until it breaks off.
pub(super) fn each(sources: &[Source], frame: &Frame<'_>, visit: &mut dyn FnMut(&Frame<'_>) -> Flow) -> Flow {
    let Some((source, others)) = sources.split_first() else { return visit(frame) };
    let mut bind = |value: &Value| {
        frame.context.work(1)?;
        let scope = Scope { name: &source.alias, value, outer: frame.scope };
        each(others, &Frame { scope: Some(&scope), ..*frame }, visit)
    };
    match &source.rows {
        Rows::Below(path) => match &*frame.evaluate(path)? {
            Value::Undefined => Ok(ControlFlow::Continue(())),
            value => bind(value),
        },
        Rows::Each(path) => elements(&*frame.evaluate(path)?, &mut bind),
        Rows::Subquery(query) => in_turn(&subquery::subquery(query, frame)?, &mut bind),
        Rows::EachOf(query) => {
            for value in subquery::subquery(query, frame)? {
                if elements(&value, &mut bind)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }
    }
}

fn elements(value: &Value, bind: &mut dyn FnMut(&Value) -> Flow) -> Flow {
    match value {
        Value::Array(elements) => in_turn(elements, bind),
        _ => Ok(ControlFlow::Continue(())),
    }
}

fn in_turn(values: &[Value], bind: &mut dyn FnMut(&Value) -> Flow) -> Flow {
    for value in values {
        if bind(value)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
