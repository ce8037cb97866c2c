//! Operators behind a bar.

use super::{OPERATORS_MAX, Parser, unsupported};
use crate::error::{Fault, TextRange};
use crate::lexer::Kind;
use crate::syntax::{Expression, Item, Name, Operator, Pattern, Pipeline, Shape, SortKey, Source, Step};

/// The operators of our part.
pub(super) const OPERATORS: [&str; 30] = [
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
    "lookup",
    "union",
    "make-series",
    "mv-expand",
    "parse",
    "parse-where",
    "top-nested",
    "getschema",
    "invoke",
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
            "distinct" => {
                self.skip_hints()?;
                Step::Distinct(self.list(Parser::expression)?)
            }
            "join" => Step::Join(self.join()?),
            "lookup" => Step::Join(self.lookup()?),
            "make-series" => Step::MakeSeries(Box::new(self.make_series()?)),
            "mv-expand" => Step::MvExpand(self.mv_expand()?),
            "mvexpand" => Step::MvExpand(self.old_mv_expand(place)?),
            "parse" | "parse-where" => Step::Parse(self.parse(name == "parse-where")?),
            "top-nested" => Step::TopNested(self.top_nested()?),
            "getschema" => Step::GetSchema,
            "invoke" => {
                let name = self.name("the name of a function")?;
                Step::Invoke(name, self.arguments()?)
            }
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
            other if unsupported::is_operator(other) => return Err(unsupported::word("the operator", other, place)),
            other => return Err(Fault::new(place, format!("`{other}` is no operator")).near(other, OPERATORS)),
        })
    }

    fn summarize(&mut self) -> Result<Step, Fault> {
        self.skip_hints()?;
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
    pub(super) fn pattern(&mut self) -> Result<Pattern, Fault> {
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
                Err(unsupported::word("the order of columns", word, self.place()))
            }
            _ => Ok(pattern),
        }
    }
}
