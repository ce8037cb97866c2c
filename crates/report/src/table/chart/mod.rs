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
