//! Lines over a common bottom axis, one panel under the other.

use narrows_model::table::Table;

use super::canvas::Canvas;
use super::scale::{Scale, Unit};
use super::series::{Lines, Series, lines};
use crate::text::Style;
use crate::text::paint::Paint;

/// Lines of text of a panel, when there are 1, 2, 3 and more.
const HEIGHTS: [usize; 3] = [12, 8, 5];
/// Columns between two words on the bottom axis, at least.
const GAP: usize = 3;

/// Size of a panel, in characters.
#[derive(Clone, Copy)]
struct Size {
    /// Room for labels at the left.
    gutter: usize,
    columns: usize,
    height: usize,
}

/// The panels with their axes.
pub(super) fn draw(table: &Table, style: Style) -> Option<String> {
    let lines = lines(table)?;
    let paint = Paint(style.color);
    let height = HEIGHTS[(lines.series.len() - 1).min(HEIGHTS.len() - 1)];
    let bottom = Scale::between(lines.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)));
    let scales: Vec<Scale> =
        lines.series.iter().map(|series| Scale::around(series.points.iter().map(|p| p.1))).collect();
    let labels: Vec<[String; 3]> =
        lines.series.iter().zip(&scales).map(|(series, scale)| labels(series, *scale)).collect();
    let gutter = labels.iter().flatten().map(|label| label.chars().count()).max().unwrap_or(0);
    let columns = style.width.saturating_sub(gutter + 2).max(10);
    let mut out = String::new();
    for ((series, scale), labels) in lines.series.iter().zip(scales).zip(&labels) {
        out += &format!("{}\n", paint.bold(&series.name));
        out += &panel(series, bottom, scale, labels, Size { gutter, columns, height }, paint);
    }
    out += &format!("{}{}\n", " ".repeat(gutter + 1), paint.dim(&format!("└{}", "─".repeat(columns))));
    out += &format!("{}{}\n", " ".repeat(gutter + 2), bottom_words(&lines, bottom, columns).trim_end());
    if lines.left_out > 0 {
        out += &format!("{}\n", paint.dim(&format!("not drawn: {} more series", lines.left_out)));
    }
    Some(out)
}

/// The labels at the top, the middle and the bottom of a panel.
fn labels(series: &Series, scale: Scale) -> [String; 3] {
    [1.0, 0.5, 0.0].map(|share| scale.label(scale.at(share), series.unit))
}

fn panel(series: &Series, bottom: Scale, scale: Scale, labels: &[String; 3], size: Size, paint: Paint) -> String {
    let Size { gutter, columns, height } = size;
    let mut canvas = Canvas::new(columns, height);
    let place = |&(x, y): &(f64, f64)| (bottom.position(x), scale.position(y));
    for pair in series.points.windows(2) {
        canvas.line(place(&pair[0]), place(&pair[1]));
    }
    if let [only] = &series.points[..] {
        canvas.line(place(only), place(only));
    }
    let label_at = |row: usize| match row {
        0 => labels[0].as_str(),
        row if row == height / 2 => labels[1].as_str(),
        row if row + 1 == height => labels[2].as_str(),
        _ => "",
    };
    let line = |(row, drawn): (usize, String)| {
        let axis = if label_at(row).is_empty() { "│" } else { "┤" };
        let label = format!("{:>gutter$} {axis}", label_at(row));
        format!("{}{drawn}", paint.dim(&label)).trim_end().to_owned() + "\n"
    };
    canvas.lines().into_iter().enumerate().map(line).collect()
}

/// The words under the bottom axis, as many as fit: its ends, and what lies between at even distances.
fn bottom_words(lines: &Lines, bottom: Scale, columns: usize) -> String {
    let word = |value: f64| bottom.label(value, lines.bottom);
    let longest = word(bottom.high).chars().count().max(word(bottom.low).chars().count());
    let count = (columns / (longest + GAP)).clamp(2, 7);
    let mut row = vec![' '; columns];
    for number in 0..count {
        let share = number as f64 / (count - 1) as f64;
        let text: Vec<char> = word(bottom.at(share)).chars().collect();
        let middle = share * columns as f64 - text.len() as f64 / 2.0;
        let start = (middle.round().max(0.0) as usize).min(columns.saturating_sub(text.len()));
        row.iter_mut().skip(start).zip(text).for_each(|(cell, c)| *cell = c);
    }
    let words: String = row.into_iter().collect();
    match lines.bottom {
        Unit::Instant => words,
        _ => format!("{}\n{}", words.trim_end(), lines.bottom_name),
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::table::{Cell, Chart, ColumnType};

    use super::super::super::fixture::{self, START_NS};
    use super::*;
    use crate::text::Color;

    fn drawn(table: &Table) -> String {
        draw(table, Style { width: 60, color: Color::Never }).unwrap()
    }

    #[test]
    fn a_line_over_time() {
        let columns = [("at", ColumnType::Instant), ("avg_duration", ColumnType::Real)];
        let row = |second: i64| {
            let height = 30.0 + 20.0 * (second as f64 / 8.0).sin();
            vec![Cell::Instant(START_NS + second * 1_000_000_000), Cell::Real(height)]
        };
        let table = Table { chart: Some(Chart::Time), ..fixture::table(&columns, (0..60).map(row).collect()) };
        insta::assert_snapshot!(drawn(&table), @r"
        avg_duration
        50 ┤       ⢀⡠⠔⠊⠉⠉⠑⠢⢄⡀                                     ⢀⡠
           │     ⡠⠊⠁        ⠈⠑⢄                                 ⡠⠔⠁
           │   ⢀⠜              ⠑⢄                             ⢀⠜
           │ ⢀⠔⠁                ⠈⠢⡀                          ⡰⠁
           │⡰⠁                    ⠈⠢⡀                      ⡠⠊
           │                        ⠑⢄                   ⢀⠜
        25 ┤                          ⠑⡄                ⡔⠁
           │                           ⠈⢆⡀            ⡠⠊
           │                             ⠈⠢⢄       ⢀⡠⠊
           │                                ⠑⠒⠢⠤⠔⠒⠊⠁
           │
         0 ┤
           └────────────────────────────────────────────────────────
            20:59:00  20:59:14      20:59:29      20:59:44  20:59:59
        ");
        assert!(drawn(&table).lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn several_series_are_panels_with_their_own_scales() {
        let columns = [("users", ColumnType::Integer), ("rate", ColumnType::Real), ("wait", ColumnType::Span)];
        let row = |n: i64| vec![Cell::Integer(n), Cell::Real((n * 10) as f64), Cell::Span((50 - n) * 1_000_000)];
        let table = Table { chart: Some(Chart::Line), ..fixture::table(&columns, (1..=40).map(row).collect()) };
        insta::assert_snapshot!(drawn(&table), @r"
        rate
            400 ┤                                             ⣀⡠⠤⠤⠒⠉
                │                                      ⢀⣀⠤⠒⠒⠊⠉
                │                                ⣀⡠⠔⠒⠒⠊⠁
                │                         ⢀⣀⠤⠒⠊⠉⠉
            200 ┤                  ⣀⣀⡠⠔⠒⠉⠉⠁
                │           ⢀⡠⠤⠤⠒⠊⠉
                │     ⣀⠤⠤⠤⠒⠉⠁
              0 ┤⠤⠒⠒⠊⠉
        wait
        50.0 ms ┤⠒⠒⠤⠤⢄⣀
                │      ⠉⠉⠑⠒⠤⠤⢄⣀⣀
                │               ⠉⠑⠒⠒⠤⣀⣀⣀
                │                       ⠉⠉⠑⠢⠤⠤⢄⡀
        25.0 ms ┤                              ⠈⠉⠉⠒⠒⠒⠤⣀⣀⡀
                │                                       ⠈⠉⠉⠒⠢⠤⠤⣀⡀
                │                                               ⠈⠉⠉⠒
           0 ns ┤
                └───────────────────────────────────────────────────
                 1      7.50     14      20.5     27      33.5    40
        users
        ");
    }
}
