//! `top-nested`.

use super::{Parser, unsupported};
use crate::error::Fault;
use crate::syntax::NestedLevel;

impl Parser {
    /// All levels. The name of the first one has already been read.
    pub(super) fn top_nested(&mut self) -> Result<Vec<NestedLevel>, Fault> {
        let mut levels = vec![self.nested_level()?];
        while self.eat(",") {
            for word in ["top", "nested"] {
                self.expect_name(word)?;
                if word == "top" {
                    self.expect("-")?;
                }
            }
            levels.push(self.nested_level()?);
        }
        Ok(levels)
    }

    fn nested_level(&mut self) -> Result<NestedLevel, Fault> {
        let count = if self.is_name("of") { None } else { Some(self.sum()?) };
        self.expect_name("of")?;
        let value = self.item()?;
        if self.is_name("with") {
            return Err(unsupported::word("the part of `top-nested`", "with others", self.place()));
        }
        self.expect_name("by")?;
        let by = self.item()?;
        let is_ascending = self.eat_name("asc");
        if !is_ascending {
            self.eat_name("desc");
        }
        Ok(NestedLevel { count, value, by, is_ascending })
    }
}
