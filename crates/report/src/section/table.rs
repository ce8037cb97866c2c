//! Tables: named columns, rows in groups, and cells with one figure or a pair of them.

use narrows_model::published::Standing;

use super::{Phrase, Tone};

/// A table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) groups: Vec<Group>,
    /// Place of the small text of cells in the terminal.
    pub(crate) small: SmallPrint,
    /// Whether the terminal continues a table that is too wide as a further one below, with the first column again.
    /// Otherwise it breaks cells.
    pub(crate) continues: bool,
    /// Rows in the terminal at most; `None` for all.
    pub(crate) terminal_rows: Option<usize>,
}

/// Place of the small text of cells in the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum SmallPrint {
    /// In brackets behind the figure.
    #[default]
    Behind,
    /// In a separate row below, which begins with this unless the first cell has a small text too.
    Below(String),
    /// Left out.
    Dropped,
}

/// Alignment of a column's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Name in the terminal.
    pub(crate) short: String,
    pub(crate) align: Align,
    /// Names of the two figures of each cell, if it has two.
    pub(crate) pair: Option<[&'static str; 2]>,
    /// The terminal leaves out columns with a lower number first where it has no room; `None` for those that always stay.
    pub(crate) spared: Option<u8>,
    /// Whether the terminal breaks a table that is too wide before it.
    pub(crate) begins_part: bool,
    /// Whether the terminal draws the bars of its figures.
    pub(crate) has_bars: bool,
}

impl Column {
    pub(crate) fn left(name: impl Into<String>) -> Self {
        Self::new(name.into(), Align::Left)
    }

    pub(crate) fn right(name: impl Into<String>) -> Self {
        Self::new(name.into(), Align::Right)
    }

    fn new(name: String, align: Align) -> Self {
        Self { short: name.clone(), name, align, pair: None, spared: None, begins_part: false, has_bars: false }
    }

    pub(crate) fn pair(name: impl Into<String>, names: [&'static str; 2]) -> Self {
        Self { pair: Some(names), ..Self::right(name) }
    }

    pub(crate) fn short(self, short: impl Into<String>) -> Self {
        Self { short: short.into(), ..self }
    }

    pub(crate) fn spared(self, order: u8) -> Self {
        Self { spared: Some(order), ..self }
    }

    pub(crate) fn beginning_part(self) -> Self {
        Self { begins_part: true, ..self }
    }

    pub(crate) fn with_bars(self) -> Self {
        Self { has_bars: true, ..self }
    }
}

/// Rows with something in common.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Title above them; `None` in a table without groups.
    pub(crate) title: Option<Phrase>,
    pub(crate) rows: Vec<Row>,
    /// Whether only a page shows them.
    pub(crate) is_for_page: bool,
}

/// A row.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Remark on it; empty without one.
    pub(crate) remark: String,
    /// Whether it stands out among the others.
    pub(crate) stands_out: bool,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    One(Figure),
    Pair(Figure, Figure),
}

/// A figure, or a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Figure {
    pub(crate) text: String,
    /// Detail in small print; empty without one.
    pub(crate) small: String,
    pub(crate) tone: Tone,
    pub(crate) is_code: bool,
    pub(crate) is_strong: bool,
    /// Whether it links to the section whose anchor is its text.
    pub(crate) is_link: bool,
    /// Length of its bar, 0 to 1.
    pub(crate) bar: Option<f64>,
    /// Parts of its bar: class of the colour, length as a share of the bar, and text on hover.
    pub(crate) parts: Vec<(&'static str, f64, String)>,
    /// More of it, on hover.
    pub(crate) hover: String,
    /// The lowest and the highest of repetitions, for pages and Markdown; empty without any.
    pub(crate) range: String,
    /// Standing of a measured figure as evidence.
    pub(crate) standing: Standing,
}

impl Table {
    /// A table without groups.
    pub(crate) fn new(columns: Vec<Column>, rows: Vec<Row>) -> Self {
        Self { columns, groups: vec![Group { rows, ..Group::default() }], ..Self::default() }
    }

    pub(crate) fn grouped(columns: Vec<Column>, groups: Vec<Group>) -> Self {
        Self { columns, groups, ..Self::default() }
    }

    pub(crate) fn small(self, small: SmallPrint) -> Self {
        Self { small, ..self }
    }

    pub(crate) fn continued(self) -> Self {
        Self { continues: true, ..self }
    }

    pub(crate) fn terminal_rows(self, most: usize) -> Self {
        Self { terminal_rows: Some(most), ..self }
    }
}

impl Row {
    pub(crate) fn new<T: Into<Cell>>(cells: impl IntoIterator<Item = T>) -> Self {
        Self { cells: cells.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Figure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(crate) fn code(text: impl Into<String>) -> Self {
        Self { is_code: true, ..Self::new(text) }
    }

    /// A dash for a figure that is not known.
    pub(crate) fn unknown() -> Self {
        Self::new("–")
    }

    pub(crate) fn small(self, small: impl Into<String>) -> Self {
        Self { small: small.into(), ..self }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// A bar as long as the value is of the largest one.
    pub(crate) fn bar(self, value: f64, largest: f64) -> Self {
        let share = if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
        Self { bar: Some(share), ..self }
    }
}

impl From<Figure> for Cell {
    fn from(figure: Figure) -> Self {
        Cell::One(figure)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::One(Figure::new(text))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::One(Figure::new(text))
    }
}
