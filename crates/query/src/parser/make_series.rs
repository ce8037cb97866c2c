//! `make-series`.

use super::Parser;
use crate::error::Fault;
use crate::syntax::{Expression, Item, MakeSeries};

impl Parser {
    pub(super) fn make_series(&mut self) -> Result<MakeSeries, Fault> {
        let mut is_nonempty = false;
        self.skip_hints()?;
        if self.is_option("kind") {
            self.at += 2;
            self.expect_name("nonempty")?;
            is_nonempty = true;
        }
        self.skip_hints()?;
        let values = self.list(Parser::series_value)?;
        self.expect_name("on")?;
        let axis = Item { names: self.item_names()?, value: self.sum()? };
        let (from, to, step, is_range) = if self.eat_name("in") {
            self.expect_name("range")?;
            self.expect("(")?;
            let from = self.expression()?;
            self.expect(",")?;
            let to = self.expression()?;
            self.expect(",")?;
            let step = self.expression()?;
            self.expect(")")?;
            (Some(from), Some(to), step, true)
        } else {
            let from = self.bound("from")?;
            let to = self.bound("to")?;
            self.expect_name("step")?;
            (from, to, self.sum()?, false)
        };
        let by = if self.eat_name("by") { self.list(Parser::item)? } else { Vec::new() };
        Ok(MakeSeries { is_nonempty, values, axis, from, to, is_range, step, by })
    }

    /// An aggregate, and its value for steps without rows.
    fn series_value(&mut self) -> Result<(Item, Option<Expression>), Fault> {
        let item = self.item()?;
        if !self.eat_name("default") {
            return Ok((item, None));
        }
        self.expect("=")?;
        Ok((item, Some(self.sum()?)))
    }

    fn bound(&mut self, word: &str) -> Result<Option<Expression>, Fault> {
        if self.eat_name(word) { self.sum().map(Some) } else { Ok(None) }
    }
}
