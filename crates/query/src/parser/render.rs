//! `render`: the chart at the end of a query.

use narrows_model::table::Chart;

use super::{Parser, unsupported};
use crate::error::Fault;
use crate::lexer::Kind;
use crate::syntax::Step;

/// Kinds of chart, each with the one that a terminal draws instead.
const CHARTS: [(&str, Chart); 16] = [
    ("timechart", Chart::Time),
    ("anomalychart", Chart::Time),
    ("linechart", Chart::Line),
    ("areachart", Chart::Line),
    ("stackedareachart", Chart::Line),
    ("scatterchart", Chart::Line),
    ("barchart", Chart::Bar),
    ("columnchart", Chart::Column),
    ("piechart", Chart::Pie),
    ("table", Chart::Table),
    ("card", Chart::Table),
    ("list", Chart::Table),
    ("ladderchart", Chart::Table),
    ("pivotchart", Chart::Table),
    ("timepivot", Chart::Table),
    ("treemap", Chart::Table),
];

/// Properties of `render` that change no number and have no equivalent in a terminal.
const CHART_LABELS: [&str; 16] = [
    "title",
    "xtitle",
    "ytitle",
    "legend",
    "accumulate",
    "kind",
    "series",
    "xcolumn",
    "ycolumns",
    "xaxis",
    "yaxis",
    "ysplit",
    "ymin",
    "ymax",
    "xmin",
    "xmax",
];

impl Parser {
    pub(super) fn render(&mut self) -> Result<Step, Fault> {
        let word = self.name("a kind of chart")?;
        let Some((_, chart)) = CHARTS.iter().find(|(name, _)| *name == word.text) else {
            let known = CHARTS.iter().map(|(name, _)| *name);
            let message = format!("`{}` is no chart that is known here", word.text);
            let list = "charts are timechart, linechart, barchart, columnchart, piechart and table";
            let fault = Fault::new(word.place, message).near(&word.text, known);
            return Err(if fault.hint.is_none() { fault.hint(list) } else { fault });
        };
        if self.eat_name("with") {
            self.expect("(")?;
            self.list(Parser::chart_label)?;
            self.expect(")")?;
        }
        if self.is("|") {
            return Err(Fault::new(self.place(), "`render` is the last operator of a query"));
        }
        Ok(Step::Render(*chart))
    }

    fn chart_label(&mut self) -> Result<(), Fault> {
        let label = self.name("a property of the chart")?;
        if !CHART_LABELS.contains(&label.text.as_str()) {
            return Err(unsupported::word("the property of `render`", &label.text, label.place));
        }
        self.expect("=")?;
        self.label()
    }

    /// Skips a literal that has no effect here.
    pub(super) fn label(&mut self) -> Result<(), Fault> {
        match self.kind_at(0) {
            Kind::Text(_) | Kind::Name(_) | Kind::Long(_) | Kind::Real(_) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.expected("a literal")),
        }
    }
}
