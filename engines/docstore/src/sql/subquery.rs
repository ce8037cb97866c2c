//! Results of a query within another one, for a row of the outer query.

use std::ops::ControlFlow;

use super::TooMuchWork;
use super::ast::Query;
use super::evaluate::Frame;
use super::result_collector::{ResultCollector, ResultWindow};
use super::run::{MAX_STORED_BYTES, Window, each_match, is_gathered, project};
use super::value::Value;

/// The results of a subquery in a row of the outer query.
pub(super) fn subquery(query: &Query, frame: &Frame<'_>) -> Result<Vec<Value>, TooMuchWork> {
    let window = Window::of(query, frame.context);
    if is_gathered(query) {
        let mut gathering = ResultCollector::new(query, ResultWindow { results: window.end, page_begin: None }, None);
        let _ = each_match(query, frame, &mut |frame| gathering.take(frame, None))?;
        let results = gathering.finish(frame)?;
        let within = results.iter().take(usize::try_from(window.end).unwrap_or(usize::MAX));
        let within = within.skip(usize::try_from(window.skip).unwrap_or(usize::MAX));
        let mut values = Vec::new();
        for result in within {
            // One byte may be half of a number with its comma.
            frame.context.work(result.text.len() * size_of::<Value>() / 16)?;
            // The text was printed as JSON, so it parses.
            values.extend(serde_json::from_str::<Value>(&result.text));
        }
        return Ok(values);
    }
    let (mut values, mut seen, mut stored_bytes) = (Vec::new(), 0, 0);
    let _ = each_match(query, frame, &mut |frame| {
        if seen >= window.end {
            return Ok(ControlFlow::Break(()));
        }
        let value = project(query, frame)?;
        if !value.is_undefined() {
            seen += 1;
            if seen > window.skip {
                stored_bytes += value.weight();
                if stored_bytes > MAX_STORED_BYTES {
                    return Err(TooMuchWork);
                }
                values.push(value);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(values)
}

/// Whether a subquery has any result.
pub(super) fn has_rows(query: &Query, frame: &Frame<'_>) -> Result<bool, TooMuchWork> {
    if is_gathered(query) || query.top.is_some() || query.offset_limit.is_some() {
        return Ok(!subquery(query, frame)?.is_empty());
    }
    Ok(each_match(query, frame, &mut |_| Ok(ControlFlow::Break(())))?.is_break())
}
