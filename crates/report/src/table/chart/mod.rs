//! Charts of a table in a terminal: what KQL's `render` requests.
//!
//! Lines over time or over another column are drawn in braille dots, one panel for each series, so that they need no
//! colour to be distinguished; bars stand flat, a line each, whichever way was requested, since names are easier to
//! read so. A table without what a chart needs is not drawn.

mod bars;
mod canvas;
mod panels;
mod scale;
mod series;
mod unrolled;

use narrows_model::table::{Chart, Table};

use crate::text::Style;

/// Narrower than this nothing is drawn; the chart is then wider than requested.
const WIDTH_MIN: usize = 40;
/// Wider than this nothing becomes clearer.
const WIDTH_MAX: usize = 200;

/// A line over time that a query requests.
pub(crate) struct TimeLine {
    pub(crate) name: String,
    /// Whether its values are lengths of time, in nanoseconds.
    pub(crate) is_duration: bool,
    /// Points in order: seconds since the first of all lines, and value.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Lines over time, for a page; `None` without a request for them, and if the table has no instants or no numbers.
pub(crate) fn over_time(table: &Table) -> Option<Vec<TimeLine>> {
    if table.chart? != Chart::Time {
        return None;
    }
    let lines = series::lines(unrolled::unrolled(table).as_ref().unwrap_or(table))?;
    let series = || lines.series.iter();
    let first_ns = series().flat_map(|one| &one.points).map(|(at_ns, _)| *at_ns).fold(f64::INFINITY, f64::min);
    let line = |one: &series::Series| TimeLine {
        name: one.name.clone(),
        is_duration: one.unit == scale::Unit::Duration,
        points: one.points.iter().map(|(at_ns, value)| ((at_ns - first_ns) / 1e9, *value)).collect(),
    };
    (lines.bottom == scale::Unit::Instant).then(|| series().map(line).collect())
}

/// The chart that the query requests. Ends with a line feed. `None` without such a request, and if the table has no
/// numbers, or nothing to put them over. `style.width` is filled, from 40 to 200 columns.
pub fn chart(table: &Table, style: Style) -> Option<String> {
    let style = Style { width: style.width.clamp(WIDTH_MIN, WIDTH_MAX), ..style };
    match table.chart? {
        Chart::Table => None,
        Chart::Time | Chart::Line => panels::draw(unrolled::unrolled(table).as_ref().unwrap_or(table), style),
        Chart::Bar | Chart::Column => bars::draw(table, bars::Value::AsItIs, style),
        Chart::Pie => bars::draw(table, bars::Value::Share, style),
    }
}
