//! Tables in the terminal: only the header is ruled, and numbers stand right-aligned.
//!
//! A table too wide first loses the columns that it can spare. Then it is continued below, or its cells are broken.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::{Cell as GridCell, CellAlignment, ContentArrangement, LineStyle, Table as GridTable, presets};
use narrows_model::published::Standing;

use super::Color;
use super::paint::{Paint, clean, hanging, wrap};
use crate::section::{Align, Cell, Column, Figure, Group, Row, SmallPrint, Table};

/// Character of the line under the header.
const RULE: char = '─';
/// Columns between two columns of a table.
const GAP: u16 = 2;
/// Wider than any table.
const UNBOUND: usize = u16::MAX as usize;
/// Begins the first row of a group while the table is laid out; it has no width.
const GROUP_MARK: char = '\u{2060}';
/// Characters of the longest bar.
const BAR_WIDTH: usize = 8;
/// Blocks of one to seven eighths of a character.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The table, then its remarks and notes; empty without rows.
pub(super) fn table(table: &Table, paint: Paint, width: usize) -> String {
    let grid = Grid::new(table);
    if grid.rows.is_empty() {
        return String::new();
    }
    let titles = grid.rows.iter().filter(|row| row.title.is_some()).count();
    let mut out = match &grid.rows[0].title {
        Some(title) if titles == 1 => bold(title, paint, width),
        _ => String::new(),
    };
    out += &marks(&grid.fitted(table.continues, paint, width), paint);
    if grid.more > 0 {
        out += &dim(&format!("{} more rows in the page and the JSON", grid.more), paint, width);
    }
    out += &remarks(table, paint, width);
    out + &standings(table, paint, width)
}

/// Colours the marks for kept and missed.
fn marks(text: &str, paint: Paint) -> String {
    text.replace('✓', &paint.green("✓")).replace('✗', &paint.red("✗"))
}

fn remarks(table: &Table, paint: Paint, width: usize) -> String {
    let rows = table.groups.iter().flat_map(|group| &group.rows).filter(|row| !row.remark.is_empty());
    let line = |row: &Row| {
        let name = row.cells.first().map_or(String::new(), |cell| cell_text(cell, &SmallPrint::Dropped));
        hanging("remark", &paint.dim("remark"), &format!("{name}: {}", row.remark), 0, width)
    };
    rows.map(line).collect()
}

/// Meaning of the marks behind figures, a line each; empty if no figure has one.
fn standings(table: &Table, paint: Paint, width: usize) -> String {
    let cells = table.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.cells);
    let figures = cells.flat_map(|cell| match cell {
        Cell::One(figure) => vec![figure],
        Cell::Pair(first, second) => vec![first, second],
    });
    let mut lines = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (_, line, by) in figures.filter_map(|figure| standing(&figure.standing)) {
        lines.entry(line).or_default().insert(by);
    }
    let line = |(line, by): (&str, BTreeSet<&str>)| {
        dim(&format!("{line}: {}", by.into_iter().collect::<Vec<_>>().join(", ")), paint, width)
    };
    lines.into_iter().map(line).collect()
}

/// Mark of a figure's standing, the line that explains it, and what the figure rests on.
fn standing(standing: &Standing) -> Option<(&'static str, &'static str, &str)> {
    match standing {
        Standing::Free => None,
        Standing::Fitted(by) => Some(("*", "* made to come out by what was chosen for it", by)),
        Standing::Given(by) => Some(("†", "† follows by arithmetic from what was published", by)),
        Standing::Restated(name) => Some(("‡", "‡ in another unit", name)),
    }
}

fn bold(text: &str, paint: Paint, width: usize) -> String {
    wrap(&clean(text), width).iter().map(|line| format!("{}\n", paint.bold(line))).collect()
}

fn dim(text: &str, paint: Paint, width: usize) -> String {
    wrap(&clean(text), width).iter().map(|line| format!("{}\n", paint.dim(line))).collect()
}

/// A table as text cells.
struct Grid<'a> {
    columns: &'a [Column],
    rows: Vec<GridRow>,
    /// Rows left out.
    more: usize,
}

struct GridRow {
    cells: Vec<String>,
    /// Bar behind each figure.
    bars: Vec<String>,
    /// Title above it.
    title: Option<String>,
}

impl<'a> Grid<'a> {
    fn new(table: &'a Table) -> Self {
        let mut rows = Vec::new();
        let mut left = table.terminal_rows.unwrap_or(usize::MAX);
        let mut more = 0;
        for group in table.groups.iter().filter(|group| !group.is_for_page) {
            let shown = group.rows.len().min(left);
            left -= shown;
            more += group.rows.len() - shown;
            let first = rows.len();
            rows.extend(group.rows[..shown].iter().flat_map(|row| grid_rows(row, table)));
            if let Some(row) = rows.get_mut(first) {
                row.title = title(group);
            }
        }
        Self { columns: &table.columns, rows, more }.with_bars()
    }

    /// Puts bars behind the figures of the columns that have them.
    fn with_bars(mut self) -> Self {
        for (at, _) in self.columns.iter().enumerate().filter(|(_, column)| column.has_bars) {
            let with_bars = || self.rows.iter().filter(|row| !row.bars.is_empty());
            let widest = with_bars().map(|row| row.cells[at].chars().count()).max().unwrap_or(0);
            for row in self.rows.iter_mut().filter(|row| !row.bars.is_empty()) {
                row.cells[at] = format!("{:>widest$} {}", row.cells[at], row.bars[at]).trim_end().to_owned();
            }
        }
        self
    }

    fn fitted(&self, continues: bool, paint: Paint, width: usize) -> String {
        let mut columns: Vec<usize> = (0..self.columns.len()).collect();
        let mut spared: Vec<usize> = columns.iter().copied().filter(|at| self.columns[*at].spared.is_some()).collect();
        spared.sort_by_key(|at| self.columns[*at].spared);
        for at in spared {
            if self.fits(&columns, width) {
                break;
            }
            columns.retain(|column| *column != at);
        }
        if !continues || self.fits(&columns, width) {
            return self.write(&columns, paint, width);
        }
        let (first, rest) = (columns[0], &columns[1..]);
        let with_first = |chunk: &[usize]| [&[first], chunk].concat();
        let parts = rest.chunk_by(|_, at| !self.columns[*at].begins_part);
        let tables = parts.flat_map(|part| {
            let fits = |size: &usize| part.chunks(*size).all(|chunk| self.fits(&with_first(chunk), width));
            let size = (1..=part.len()).rev().find(fits).unwrap_or(1);
            part.chunks(size).map(|chunk| self.write(&with_first(chunk), paint, width)).collect::<Vec<_>>()
        });
        tables.collect::<Vec<_>>().join("\n")
    }

    fn fits(&self, columns: &[usize], width: usize) -> bool {
        let text = self.laid_out(columns, Paint(Color::Never), UNBOUND);
        text.lines().all(|line| line.chars().filter(|c| *c != GROUP_MARK).count() <= width)
    }

    fn write(&self, columns: &[usize], paint: Paint, width: usize) -> String {
        let mut titles = self.rows.iter().filter_map(|row| row.title.as_ref());
        if self.rows.iter().filter(|row| row.title.is_some()).count() < 2 {
            return self.laid_out(columns, paint, width).replace(GROUP_MARK, "");
        }
        let mut out = String::new();
        for line in self.laid_out(columns, paint, width).lines() {
            if line.starts_with(GROUP_MARK) {
                out += &titles.next().map_or(String::new(), |title| bold(title, paint, width));
            }
            out += &format!("{}\n", line.trim_start_matches(GROUP_MARK));
        }
        out
    }

    /// The columns with a mark at the first row of each group that has a title. Rows without a figure are left out.
    fn laid_out(&self, columns: &[usize], paint: Paint, width: usize) -> String {
        let header: Vec<(String, Align)> = columns.iter().map(|at| self.header(*at)).collect();
        let is_all = columns.len() == self.columns.len();
        let has_figure = |row: &&GridRow| is_all || columns[1..].iter().any(|at| !row.cells[*at].is_empty());
        let cells = |row: &GridRow| {
            let mut cells: Vec<String> = columns.iter().map(|at| row.cells[*at].clone()).collect();
            if row.title.is_some() {
                cells[0].insert(0, GROUP_MARK);
            }
            cells
        };
        render(&header, &self.rows.iter().filter(has_figure).map(cells).collect::<Vec<_>>(), paint, width)
    }

    /// Above the first column stand the names of the figures of a pair.
    fn header(&self, at: usize) -> (String, Align) {
        let column = &self.columns[at];
        let align = if column.has_bars { Align::Left } else { column.align };
        match self.columns.iter().find_map(|column| column.pair) {
            Some([first, second]) if at == 0 => (format!("{first} → {second}"), align),
            _ => (clean(&column.short), align),
        }
    }
}

fn title(group: &Group) -> Option<String> {
    group.title.as_ref().map(|title| clean(&title.text()))
}

/// A row, and the one below it with its small texts.
fn grid_rows(row: &Row, table: &Table) -> Vec<GridRow> {
    let cells = row.cells.iter().map(|cell| cell_text(cell, &table.small)).collect();
    let bars = row.cells.iter().map(bar_of).collect();
    let mut rows = vec![GridRow { cells, bars, title: None }];
    if let SmallPrint::Below(label) = &table.small {
        let small: Vec<String> = row.cells.iter().map(small_text).collect();
        if small.iter().any(|cell| !cell.is_empty()) {
            let label = if small[0].is_empty() { clean(label) } else { small[0].clone() };
            let cells = std::iter::once(format!("  {label}")).chain(small.into_iter().skip(1)).collect();
            rows.push(GridRow { cells, bars: Vec::new(), title: None });
        }
    }
    rows
}

fn cell_text(cell: &Cell, small: &SmallPrint) -> String {
    match cell {
        Cell::One(figure) => figure_text(figure, small),
        Cell::Pair(first, second) => format!("{} → {}", figure_text(first, small), figure_text(second, small)),
    }
}

fn figure_text(figure: &Figure, small: &SmallPrint) -> String {
    let mark = standing(&figure.standing).map_or("", |(mark, ..)| mark);
    let text = format!("{}{mark}", clean(&figure.text));
    if *small == SmallPrint::Behind && !figure.small.is_empty() {
        return format!("{text} ({})", clean(&figure.small));
    }
    text
}

fn small_text(cell: &Cell) -> String {
    match cell {
        Cell::One(figure) => clean(&figure.small),
        Cell::Pair(first, second) if first.small.is_empty() && second.small.is_empty() => String::new(),
        Cell::Pair(first, second) => {
            let or_dash = |text: &str| if text.is_empty() { "–".to_owned() } else { clean(text) };
            format!("{} → {}", or_dash(&first.small), or_dash(&second.small))
        }
    }
}

fn bar_of(cell: &Cell) -> String {
    let Cell::One(Figure { bar: Some(share), .. }) = cell else { return String::new() };
    let eighths = (share * (BAR_WIDTH * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend((eighths % 8).checked_sub(1).and_then(|at| EIGHTHS.get(at)));
    bar
}

/// A table with a ruled header. Cells are broken rather than that a line exceeds the width.
pub(crate) fn render(header: &[(String, Align)], rows: &[Vec<String>], paint: Paint, width: usize) -> String {
    let mut table = GridTable::new();
    table
        .load_style(presets::NOTHING.header_separator(LineStyle::none().fill(RULE)))
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.min(usize::from(u16::MAX)) as u16);
    table.set_header(header.iter().map(|(name, align)| grid_cell(name, *align)));
    for row in rows {
        table.add_row(row.iter().zip(header).map(|(text, (_, align))| grid_cell(text, *align)));
    }
    let last = header.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP }));
    }
    let mut in_header = true;
    let mut out = String::new();
    for line in table.lines() {
        let line = line.trim_end();
        let is_rule = in_header && !line.is_empty() && line.chars().all(|c| c == RULE);
        out += &match (is_rule, in_header) {
            (true, _) => paint.dim(line),
            (false, true) => paint.bold(line),
            (false, false) => line.to_owned(),
        };
        out.push('\n');
        in_header &= !is_rule;
    }
    out
}

fn grid_cell(text: &str, align: Align) -> GridCell {
    GridCell::new(text).set_alignment(match align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    })
}
