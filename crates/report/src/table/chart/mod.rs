//! Pictures of a table in a terminal: what KQL's `render` asks for.
//!
//! Lines over time or over another column are drawn in braille dots, one panel for each series, so that they need no
//! colour to be told apart; bars stand flat, a line each, whichever way they were asked for, since names are easier to
//! read so. A table that has not what a picture needs is no picture.

mod bars;
mod canvas;
mod panels;
mod scale;
mod series;

use narrows_model::table::{Chart, Table};

use crate::text::Style;

/// Narrower than this nothing is drawn; the picture is then wider than asked for.
const WIDTH_MIN: usize = 40;
/// Wider than this nothing becomes clearer.
const WIDTH_MAX: usize = 200;

/// The picture that the query asked for. Ends with a line feed. None when it asked for none, and when the table has no
/// numbers, or nothing to put them over. `style.width` is filled, from 40 to 200 columns.
pub fn chart(table: &Table, style: Style) -> Option<String> {
    let style = Style { width: style.width.clamp(WIDTH_MIN, WIDTH_MAX), ..style };
    match table.chart? {
        Chart::Table => None,
        Chart::Time | Chart::Line => panels::draw(table, style),
        Chart::Bar | Chart::Column => bars::draw(table, bars::Value::AsItIs, style),
        Chart::Pie => bars::draw(table, bars::Value::Share, style),
    }
}
