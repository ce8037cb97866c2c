//! Bars: a line for each row and value, longest for the largest.

use narrows_model::table::{Cell, Table};
use narrows_model::units;

use super::super::cells::{number, shown};
use super::scale::{Scale, Unit, number as short};
use super::series::{is_value, unit};
use crate::text::Style;
use crate::text::paint::{Paint, clean};

/// Rows that are drawn at most; those that come first.
const ROWS_MAX: usize = 50;
/// The longest name before a bar, in columns.
const NAME_MAX: usize = 40;
/// Eighths of a character, from one to seven.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Data behind a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// The value.
    AsItIs,
    /// The value and its share of all.
    Share,
}

/// One bar.
struct Bar {
    name: String,
    value: f64,
    words: String,
}

/// The bars, grouped by value column where there are several.
pub(super) fn draw(table: &Table, value: Value, style: Style) -> Option<String> {
    let names = (0..table.columns.len()).find(|at| !is_value(table, *at)).unwrap_or(0);
    let values: Vec<usize> = (0..table.columns.len()).filter(|at| *at != names && is_value(table, *at)).collect();
    if values.is_empty() {
        return None;
    }
    let paint = Paint(style.color);
    let mut out = String::new();
    for at in values {
        out += &format!("{}\n", paint.bold(&clean(&table.columns[at].name)));
        out += &group(&bars(table, names, at, value), style.width, paint);
    }
    let left_out = table.rows.len().saturating_sub(ROWS_MAX);
    if left_out > 0 {
        out += &format!("{}\n", paint.dim(&format!("not drawn: {} more rows", units::count(left_out as u64))));
    }
    Some(out)
}

fn bars(table: &Table, names: usize, at: usize, value: Value) -> Vec<Bar> {
    let numbers = || table.rows.iter().map(|row| row.get(at).and_then(number));
    let total: f64 = numbers().flatten().sum();
    let bar = |(row, number): (&Vec<Cell>, Option<f64>)| {
        let name: String = row.get(names).map(|cell| clean(&shown(cell))).unwrap_or_default();
        let number = number?;
        let words = match unit(table, at) {
            Unit::Duration => Scale { low: 0.0, high: 0.0 }.label(number, Unit::Duration),
            Unit::Number | Unit::Instant => short(number),
        };
        let share = if value == Value::Share && total > 0.0 {
            format!(" ({})", units::percent(number / total))
        } else {
            String::new()
        };
        Some(Bar { name, value: number, words: words + &share })
    };
    table.rows.iter().zip(numbers()).take(ROWS_MAX).filter_map(bar).collect()
}

fn group(bars: &[Bar], width: usize, paint: Paint) -> String {
    let longest = |of: fn(&Bar) -> &String| bars.iter().map(|bar| of(bar).chars().count()).max().unwrap_or(0);
    let names = longest(|bar| &bar.name).min(NAME_MAX.min(width / 3));
    let words = longest(|bar| &bar.words);
    let room = width.saturating_sub(names + words + 2).max(5);
    let largest = bars.iter().map(|bar| bar.value.abs()).fold(0.0, f64::max);
    let line = |bar: &Bar| {
        let length = if largest > 0.0 { bar.value.abs() / largest * room as f64 } else { 0.0 };
        let name: String = match bar.name.chars().count() {
            count if count > names => bar.name.chars().take(names.saturating_sub(1)).chain(['…']).collect(),
            count => format!("{}{}", bar.name, " ".repeat(names - count)),
        };
        let filled = filled(length);
        let gap = if filled.is_empty() { "" } else { " " };
        format!("{name} {}{gap}{}\n", paint.green(&filled), bar.words)
    };
    bars.iter().map(line).collect()
}

/// A bar of so many characters, to an eighth.
fn filled(length: f64) -> String {
    let eighths = (length * 8.0).round() as usize;
    let last = (eighths % 8).checked_sub(1).and_then(|at| EIGHTHS.get(at));
    "█".repeat(eighths / 8).chars().chain(last.copied()).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::table::{Chart, ColumnType};

    use super::super::super::fixture::{self, text};
    use super::*;
    use crate::text::Color;

    fn table(chart: Chart) -> Table {
        let columns = [("service", ColumnType::Text), ("calls", ColumnType::Integer), ("time", ColumnType::Span)];
        let row = |name: &str, calls: i64, ms: i64| vec![text(name), Cell::Integer(calls), Cell::Span(ms * 1_000_000)];
        let rows = vec![row("gateway", 1200, 30), row("orders", 300, 45), row("idle", 0, 0)];
        Table { chart: Some(chart), ..fixture::table(&columns, rows) }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let style = Style { width: 50, color: Color::Never };
        insta::assert_snapshot!(draw(&table(Chart::Bar), Value::AsItIs, style).unwrap(), @r"
        calls
        gateway ████████████████████████████████████ 1,200
        orders  █████████ 300
        idle    0
        time
        gateway ██████████████████████▋ 30.0 ms
        orders  ██████████████████████████████████ 45.0 ms
        idle    0 ns
        ");
        let shares = draw(&table(Chart::Pie), Value::Share, style).unwrap();
        assert!(shares.contains("1,200 (80 %)"), "{shares}");
        assert!(shares.lines().all(|line| line.chars().count() <= 50), "{shares}");
    }

    #[test]
    fn without_numbers_there_are_no_bars() {
        let words = fixture::table(&[("a", ColumnType::Text)], vec![vec![text("x")]]);
        assert!(draw(&words, Value::AsItIs, Style { width: 50, color: Color::Never }).is_none());
    }
}
