//! Where a table comes from other than by its name: `union`, `print`, `datatable`, `range`.

use super::{Parser, unsupported};
use crate::error::Fault;
use crate::lexer::Kind;
use crate::syntax::{Expression, Item, Name, Pipeline, Shape, Source, Union};
use crate::types::Type;

impl Parser {
    /// A table that begins with a keyword, if one stands here.
    pub(super) fn tabular_source(&mut self) -> Result<Option<Box<Pipeline>>, Fault> {
        let Some(word) = self.peek_name() else { return Ok(None) };
        let is_call = self.kind_at(1) == &Kind::Symbol("(");
        let source = match word {
            "print" => self.print()?,
            "union" => {
                self.at += 1;
                Source::Union(self.union()?)
            }
            "datatable" if is_call => self.datatable()?,
            "range" if matches!(self.kind_at(1), Kind::Name(_)) => self.range()?,
            "search" | "find" | "externaldata"
                if !matches!(self.kind_at(1), Kind::Symbol("|" | "=" | ")" | ";") | Kind::End) =>
            {
                return Err(unsupported::word("the operator", word, self.place()));
            }
            _ => return Ok(None),
        };
        Ok(Some(Box::new(Pipeline { source, operators: Vec::new() })))
    }

    fn print(&mut self) -> Result<Source, Fault> {
        self.at += 1;
        Ok(Source::Print(self.list(Parser::item)?))
    }

    /// A value with the names it gets.
    pub(super) fn item(&mut self) -> Result<Item, Fault> {
        let names = self.item_names()?;
        Ok(Item { names, value: self.expression()? })
    }

    pub(super) fn item_names(&mut self) -> Result<Vec<Name>, Fault> {
        let symbol = |ahead: usize, symbol| self.kind_at(ahead) == &Kind::Symbol(symbol);
        let is_named = matches!(self.kind_at(0), Kind::Name(_)) && symbol(1, "=");
        let is_bracketed =
            symbol(0, "[") && matches!(self.kind_at(1), Kind::Text(_)) && symbol(2, "]") && symbol(3, "=");
        if is_named || is_bracketed {
            let name = self.name("a name")?;
            self.expect("=")?;
            return Ok(vec![name]);
        }
        if !self.is_name_tuple() {
            return Ok(Vec::new());
        }
        self.expect("(")?;
        let names = self.list(|parser| parser.name("a name"))?;
        self.expect(")")?;
        self.expect("=")?;
        Ok(names)
    }

    /// `(a, b) =`
    fn is_name_tuple(&self) -> bool {
        if !self.is("(") {
            return false;
        }
        let mut ahead = 1;
        while matches!(self.kind_at(ahead), Kind::Name(_)) && self.kind_at(ahead + 1) == &Kind::Symbol(",") {
            ahead += 2;
        }
        matches!(self.kind_at(ahead), Kind::Name(_))
            && self.kind_at(ahead + 1) == &Kind::Symbol(")")
            && self.kind_at(ahead + 2) == &Kind::Symbol("=")
    }

    /// The rest of a `union`, both as a source and as an operator.
    pub(super) fn union(&mut self) -> Result<Union, Fault> {
        let mut union = Union { is_inner: false, is_fuzzy: false, with_source: None, tables: Vec::new() };
        while let (Kind::Name(option), Kind::Symbol("=")) = (self.kind_at(0), self.kind_at(1)) {
            let option = option.clone();
            match option.as_str() {
                "kind" => {
                    self.at += 2;
                    union.is_inner = self.is_name("inner");
                    if !self.eat_name("inner") {
                        self.expect_name("outer")?;
                    }
                }
                "withsource" | "with_source" => {
                    self.at += 2;
                    union.with_source = Some(self.name("the name of a column")?);
                }
                "isfuzzy" => {
                    self.at += 2;
                    union.is_fuzzy = self.is_name("true");
                    if !self.eat_name("true") {
                        self.expect_name("false")?;
                    }
                }
                other => return Err(unsupported::word("the option", other, self.place())),
            }
        }
        self.skip_hints()?;
        union.tables = self.list(Parser::union_operand)?;
        Ok(union)
    }

    /// A table, or the tables whose names match a pattern, such as `App*`.
    fn union_operand(&mut self) -> Result<Expression, Fault> {
        let is_pattern = self.is("*")
            || (self.peek_name().is_some()
                && self.kind_at(1) == &Kind::Symbol("*")
                && self.place_at(1).start == self.place().end);
        if !is_pattern {
            return self.table_operand();
        }
        let pattern = self.pattern()?;
        self.made(pattern.place, Shape::Name(pattern.text))
    }

    /// A table by its name, by a call, or in parentheses.
    pub(super) fn table_operand(&mut self) -> Result<Expression, Fault> {
        if self.is("(") {
            return self.deeper(Parser::parenthesised_table);
        }
        let name = self.name("a table")?;
        if self.is("(") {
            self.at -= 1;
            return self.deeper(Parser::expression);
        }
        self.made(name.place, Shape::Name(name.text))
    }

    fn parenthesised_table(&mut self) -> Result<Expression, Fault> {
        self.expect("(")?;
        let inner = self.pipe_expression()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn datatable(&mut self) -> Result<Source, Fault> {
        let start = self.place();
        self.at += 1;
        self.expect("(")?;
        let columns = self.list(Parser::typed_name)?;
        self.expect(")")?;
        self.expect("[")?;
        let mut cells = Vec::new();
        while !self.is("]") {
            cells.push(self.expression()?);
            if !self.is("]") {
                self.expect(",")?;
            }
        }
        self.expect("]")?;
        Ok(Source::Datatable(columns, cells, start.to(self.before())))
    }

    /// `name: type`
    pub(super) fn typed_name(&mut self) -> Result<(Name, Type), Fault> {
        let name = self.name("the name of a column")?;
        self.expect(":")?;
        Ok((name, self.type_name()?))
    }

    pub(super) fn type_name(&mut self) -> Result<Type, Fault> {
        let word = self.name("a type")?;
        Type::named(&word.text).ok_or_else(|| match word.text.as_str() {
            "guid" | "decimal" => unsupported::word("the type", &word.text, word.place),
            _ => Fault::new(word.place, format!("`{}` is no type", word.text))
                .near(&word.text, ["bool", "int", "long", "real", "string", "datetime", "timespan", "dynamic"]),
        })
    }

    fn range(&mut self) -> Result<Source, Fault> {
        self.at += 1;
        let name = self.name("the name of a column")?;
        self.expect_name("from")?;
        let from = self.expression()?;
        self.expect_name("to")?;
        let to = self.expression()?;
        self.expect_name("step")?;
        let step = self.expression()?;
        Ok(Source::Range(name, Box::new([from, to, step])))
    }
}
