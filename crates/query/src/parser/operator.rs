//! What stands behind a bar.

use narrows_model::table::Chart;

use super::{OPERATORS_MAX, Parser, refused};
use crate::error::{Fault, TextRange};
use crate::lexer::Kind;
use crate::syntax::{Expression, Item, JoinKind, Name, Operator, Pattern, Pipeline, Shape, SortKey, Source, Step};

/// The operators of our part.
pub(super) const OPERATORS: [&str; 22] = [
    "where",
    "filter",
    "extend",
    "project",
    "project-away",
    "project-keep",
    "project-rename",
    "project-reorder",
    "summarize",
    "distinct",
    "join",
    "union",
    "sort",
    "order",
    "top",
    "take",
    "limit",
    "count",
    "serialize",
    "render",
    "print",
    "range",
];

const CHARTS: [(&str, Chart); 6] = [
    ("timechart", Chart::Time),
    ("linechart", Chart::Line),
    ("barchart", Chart::Bar),
    ("columnchart", Chart::Column),
    ("piechart", Chart::Pie),
    ("table", Chart::Table),
];

const JOIN_KINDS: [(&str, JoinKind); 7] = [
    ("innerunique", JoinKind::InnerUnique),
    ("inner", JoinKind::Inner),
    ("leftouter", JoinKind::LeftOuter),
    ("leftsemi", JoinKind::LeftSemi),
    ("leftanti", JoinKind::LeftAnti),
    ("leftantisemi", JoinKind::LeftAnti),
    ("anti", JoinKind::LeftAnti),
];

/// Properties of `render` that change no number and have no place in a terminal.
const CHART_LABELS: [&str; 5] = ["title", "xtitle", "ytitle", "legend", "accumulate"];

impl Parser {
    /// The operators behind a source, of which the first bar stands here.
    pub(super) fn operators(&mut self, source: Expression) -> Result<Expression, Fault> {
        let start = source.place;
        let mut pipeline = match source.kind {
            Shape::Pipeline(pipeline) => *pipeline,
            _ => Pipeline { source: Source::Expression(source), operators: Vec::new() },
        };
        while self.eat("|") {
            if pipeline.operators.len() == OPERATORS_MAX {
                return Err(Fault::new(self.place(), format!("this table has more than {OPERATORS_MAX} operators")));
            }
            let place = self.place();
            let kind = self.operator()?;
            pipeline.operators.push(Operator { kind, place: place.to(self.before()) });
        }
        let place = start.to(self.before());
        self.made(place, Shape::Pipeline(Box::new(pipeline)))
    }

    /// The name of an operator, whose parts hyphens may join.
    fn operator_name(&mut self) -> Result<(String, TextRange), Fault> {
        let first = self.name("an operator")?;
        let (mut name, mut place) = (first.text, first.place);
        while self.is("-") && self.place().start == place.end {
            let Kind::Name(part) = self.kind_at(1) else { break };
            if self.place_at(1).start != self.place().end {
                break;
            }
            name = format!("{name}-{part}");
            place = place.to(self.place_at(1));
            self.at += 2;
        }
        Ok((name, place))
    }

    fn operator(&mut self) -> Result<Step, Fault> {
        let (name, place) = self.operator_name()?;
        Ok(match name.as_str() {
            "where" | "filter" => Step::Where(self.expression()?),
            "extend" => Step::Extend(self.list(Parser::item)?),
            "project" => Step::Project(self.list(Parser::item)?),
            "project-away" => Step::ProjectAway(self.list(Parser::pattern)?),
            "project-keep" => Step::ProjectKeep(self.list(Parser::pattern)?),
            "project-reorder" => Step::ProjectReorder(self.list(Parser::ordered_pattern)?),
            "project-rename" => Step::ProjectRename(self.list(Parser::renaming)?),
            "summarize" => self.summarize()?,
            "distinct" => Step::Distinct(self.list(Parser::expression)?),
            "join" => self.join()?,
            "union" => Step::Union(self.union()?),
            "sort" | "order" => {
                self.expect_name("by")?;
                Step::Sort(self.list(Parser::sort_key)?)
            }
            "take" | "limit" => Step::Take(self.sum()?),
            "top" => {
                let count = self.sum()?;
                self.expect_name("by")?;
                let key = self.sort_key()?;
                if self.is(",") {
                    let fault = Fault::new(self.place(), "`top` goes by one value");
                    return Err(fault.hint("write `sort by …` and `take`"));
                }
                Step::Top(count, vec![key])
            }
            "count" => Step::Count,
            "serialize" => match self.is("|") || self.is_end() || self.is(")") || self.is(";") {
                true => Step::Serialize(Vec::new()),
                false => Step::Serialize(self.list(Parser::item)?),
            },
            "render" => self.render()?,
            "print" | "range" | "datatable" => {
                return Err(Fault::new(place, format!("`{name}` begins a table and cannot follow a bar")));
            }
            other if refused::is_operator(other) => return Err(refused::word("the operator", other, place)),
            other => return Err(Fault::new(place, format!("`{other}` is no operator")).near(other, OPERATORS)),
        })
    }

    fn summarize(&mut self) -> Result<Step, Fault> {
        if self.peek_name().is_some_and(|word| word.starts_with("hint")) {
            return Err(refused::word("the option", "hint", self.place()));
        }
        let values = match self.is_name("by") {
            true => Vec::new(),
            false => self.list(Parser::item)?,
        };
        let by: Vec<Item> = match self.eat_name("by") {
            true => self.list(Parser::item)?,
            false => Vec::new(),
        };
        Ok(Step::Summarize(values, by))
    }

    fn join(&mut self) -> Result<Step, Fault> {
        let mut kind = JoinKind::InnerUnique;
        if self.is_name("kind") {
            self.at += 1;
            self.expect("=")?;
            let word = self.name("a kind of join")?;
            kind = match JOIN_KINDS.iter().find(|(name, _)| *name == word.text) {
                Some((_, kind)) => *kind,
                None if ["rightouter", "fullouter", "rightsemi", "rightanti", "rightantisemi"]
                    .contains(&&*word.text) =>
                {
                    return Err(refused::word("the kind of join", &word.text, word.place));
                }
                None => {
                    let fault = Fault::new(word.place, format!("`{}` is no kind of join", word.text));
                    return Err(fault.near(&word.text, JOIN_KINDS.iter().map(|(name, _)| *name)));
                }
            };
        }
        if self.is_name("hint") {
            return Err(refused::word("the option", "hint", self.place()));
        }
        let right = self.table_operand()?;
        self.expect_name("on")?;
        Ok(Step::Join(kind, right, self.list(Parser::expression)?))
    }

    fn sort_key(&mut self) -> Result<SortKey, Fault> {
        let value = self.expression()?;
        let is_ascending = self.eat_name("asc");
        if !is_ascending {
            self.eat_name("desc");
        }
        let mut nulls_first = None;
        if self.eat_name("nulls") {
            nulls_first = Some(self.is_name("first"));
            if !self.eat_name("first") {
                self.expect_name("last")?;
            }
        }
        Ok(SortKey { value, is_ascending, nulls_first })
    }

    fn renaming(&mut self) -> Result<(Name, Name), Fault> {
        let new = self.name("a new name")?;
        self.expect("=")?;
        Ok((new, self.name("the name of a column")?))
    }

    /// A name in which stars may stand.
    fn pattern(&mut self) -> Result<Pattern, Fault> {
        if self.is("[") {
            let name = self.name("the name of a column")?;
            return Ok(Pattern { text: name.text, place: name.place, is_quoted: true });
        }
        let mut pattern = Pattern { text: String::new(), place: self.place(), is_quoted: false };
        loop {
            let is_glued = pattern.text.is_empty() || self.place().start == self.before().end;
            match self.kind_at(0) {
                Kind::Name(part) if is_glued => pattern.text.push_str(part),
                Kind::Symbol("*") if is_glued => pattern.text.push('*'),
                _ if pattern.text.is_empty() => return Err(self.expected("the name of a column")),
                _ => break,
            }
            self.at += 1;
        }
        pattern.place = pattern.place.to(self.before());
        Ok(pattern)
    }

    fn ordered_pattern(&mut self) -> Result<Pattern, Fault> {
        let pattern = self.pattern()?;
        match self.peek_name() {
            Some(word @ ("asc" | "desc" | "granny-asc" | "granny-desc")) => {
                Err(refused::word("the order of columns", word, self.place()))
            }
            _ => Ok(pattern),
        }
    }

    fn render(&mut self) -> Result<Step, Fault> {
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
            return Err(refused::word("the property of `render`", &label.text, label.place));
        }
        self.expect("=")?;
        self.primary_label()
    }

    fn primary_label(&mut self) -> Result<(), Fault> {
        match self.kind_at(0) {
            Kind::Text(_) | Kind::Name(_) | Kind::Long(_) | Kind::Real(_) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.expected("a literal")),
        }
    }
}
