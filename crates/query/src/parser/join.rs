//! `join` and `lookup`.

use super::Parser;
use crate::error::Fault;
use crate::lexer::Kind;
use crate::syntax::{Join, JoinKind};

const JOIN_KINDS: [(&str, JoinKind); 12] = [
    ("innerunique", JoinKind::InnerUnique),
    ("inner", JoinKind::Inner),
    ("leftouter", JoinKind::LeftOuter),
    ("rightouter", JoinKind::RightOuter),
    ("fullouter", JoinKind::FullOuter),
    ("leftsemi", JoinKind::LeftSemi),
    ("leftanti", JoinKind::LeftAnti),
    ("leftantisemi", JoinKind::LeftAnti),
    ("anti", JoinKind::LeftAnti),
    ("rightsemi", JoinKind::RightSemi),
    ("rightanti", JoinKind::RightAnti),
    ("rightantisemi", JoinKind::RightAnti),
];

const LOOKUP_KINDS: [(&str, JoinKind); 2] = [("leftouter", JoinKind::LeftOuter), ("inner", JoinKind::Inner)];

impl Parser {
    pub(super) fn join(&mut self) -> Result<Join, Fault> {
        self.joined_by("join", JoinKind::InnerUnique, &JOIN_KINDS)
    }

    pub(super) fn lookup(&mut self) -> Result<Join, Fault> {
        let join = self.joined_by("lookup", JoinKind::LeftOuter, &LOOKUP_KINDS)?;
        Ok(Join { is_lookup: true, ..join })
    }

    fn joined_by(&mut self, operator: &str, implied: JoinKind, kinds: &[(&str, JoinKind)]) -> Result<Join, Fault> {
        let mut kind = implied;
        self.skip_hints()?;
        if self.is_option("kind") {
            self.at += 2;
            let word = self.name(&format!("a kind of {operator}"))?;
            let Some((_, named)) = kinds.iter().find(|(name, _)| *name == word.text) else {
                let fault = Fault::new(word.place, format!("`{}` is no kind of {operator}", word.text));
                return Err(fault.near(&word.text, kinds.iter().map(|(name, _)| *name)));
            };
            kind = *named;
        }
        self.skip_hints()?;
        let right = self.table_operand()?;
        self.expect_name("on")?;
        Ok(Join { kind, is_lookup: false, right, conditions: self.list(Parser::expression)? })
    }

    /// Whether an option, such as `kind =`, begins here.
    pub(super) fn is_option(&self, name: &str) -> bool {
        self.is_name(name) && self.kind_at(1) == &Kind::Symbol("=")
    }

    /// Skips `hint.strategy = shuffle` and the like: they tell a cluster how to share the work, and do not change the
    /// result.
    pub(super) fn skip_hints(&mut self) -> Result<(), Fault> {
        while self.is_name("hint") && self.kind_at(1) == &Kind::Symbol(".") {
            self.at += 2;
            self.name("the name of a hint")?;
            self.expect("=")?;
            self.label()?;
        }
        Ok(())
    }
}
