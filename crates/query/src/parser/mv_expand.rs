//! `mv-expand`.

use super::Parser;
use crate::error::{Fault, TextRange};
use crate::syntax::{Item, Literal, MvExpand, Shape};
use crate::types::Type;

impl Parser {
    pub(super) fn mv_expand(&mut self) -> Result<MvExpand, Fault> {
        let (mut is_pairs, mut index) = (false, None);
        loop {
            if self.is_option("kind") || self.is_option("bagexpansion") {
                self.at += 2;
                is_pairs = self.is_name("array");
                if !self.eat_name("array") {
                    self.expect_name("bag")?;
                }
            } else if self.is_option("with_itemindex") {
                self.at += 2;
                index = Some(self.name("the name of a column")?);
            } else {
                break;
            }
        }
        let values = self.list(Parser::expanded)?;
        let limit = if self.eat_name("limit") { Some(self.sum()?) } else { None };
        Ok(MvExpand { is_pairs, index, values, limit })
    }

    /// `mvexpand`, which expands up to 128 elements by default.
    pub(super) fn old_mv_expand(&mut self, place: TextRange) -> Result<MvExpand, Fault> {
        let mut expand = self.mv_expand()?;
        if expand.limit.is_none() {
            expand.limit = Some(self.made(place, Shape::Literal(Literal::Long(128)))?);
        }
        Ok(expand)
    }

    /// A value, and the type of its elements.
    fn expanded(&mut self) -> Result<(Item, Option<Type>), Fault> {
        let item = self.item()?;
        if !self.eat_name("to") {
            return Ok((item, None));
        }
        self.expect_name("typeof")?;
        self.expect("(")?;
        let kind = self.type_name()?;
        self.expect(")")?;
        Ok((item, Some(kind)))
    }
}
