//! `join`: the columns of the left, then those of the right, which get a number where a name is taken.

use super::steps::not_dynamic;
use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Column, Relation, Value};
use crate::syntax::{Binary, Expression, Join, JoinKind, Logic, Shape};

/// A column of the left and the one of the right that it equals.
struct Pair {
    left: Value,
    right: Value,
}

impl Lowering<'_> {
    pub(super) fn joined(&mut self, left: Relation, join: &Join, place: TextRange) -> Result<Relation, Fault> {
        let right = self.table(&join.right)?;
        // A limit cuts rows in their order, which the rows of a join do not have.
        let mut left = self.seal(left, place)?;
        left.order.clear();
        let mut right = self.seal(right, place)?;
        right.order.clear();
        let mut pairs = self.all_pairs(&join.conditions, &left, &right)?;
        if join.kind == JoinKind::InnerUnique {
            left = self.unique(&left, &pairs, place)?;
            pairs = self.all_pairs(&join.conditions, &left, &right)?;
        }
        let on = pairs.iter().map(|pair| format!("{} = {}", pair.left.sql, pair.right.sql)).collect::<Vec<_>>();
        let on = on.join(" AND ");
        let (Some(from), Some(other)) = (left.from, right.from) else {
            return Err(Fault::new(place, "this table has no rows to join"));
        };
        let result = Relation { is_costly: true, ..Relation::default() };
        let some = |columns: Vec<Column>, from: String, negation: &str, other: String| Relation {
            columns,
            from: Some(from),
            filters: vec![format!("{negation}EXISTS (SELECT 1 FROM {other} WHERE {on})")],
            ..result.clone()
        };
        let word = match join.kind {
            JoinKind::LeftSemi => return Ok(some(left.columns, from, "", other)),
            JoinKind::LeftAnti => return Ok(some(left.columns, from, "NOT ", other)),
            JoinKind::RightSemi => return Ok(some(right.columns, other, "", from)),
            JoinKind::RightAnti => return Ok(some(right.columns, other, "NOT ", from)),
            JoinKind::InnerUnique | JoinKind::Inner => "JOIN",
            JoinKind::LeftOuter => "LEFT JOIN",
            JoinKind::RightOuter => "RIGHT JOIN",
            JoinKind::FullOuter => "FULL JOIN",
        };
        let mut result =
            Relation { columns: left.columns, from: Some(format!("{from} {word} {other} ON {on}")), ..result };
        for column in right.columns {
            let is_key = pairs.iter().any(|pair| pair.right.sql == column.value.sql);
            if join.is_lookup && is_key {
                continue;
            }
            let name = result.free_name(&column.name);
            result.columns.push(Column { name, value: column.value });
        }
        Ok(result)
    }

    fn all_pairs(&mut self, conditions: &[Expression], left: &Relation, right: &Relation) -> Result<Vec<Pair>, Fault> {
        let mut pairs = Vec::new();
        conditions.iter().try_for_each(|condition| self.pairs(condition, left, right, &mut pairs))?;
        Ok(pairs)
    }

    /// One row, whichever, for each value of the columns that a join goes by.
    fn unique(&mut self, left: &Relation, pairs: &[Pair], place: TextRange) -> Result<Relation, Fault> {
        let keys: Vec<_> = pairs.iter().map(|pair| pair.left.sql.clone()).collect();
        self.grouped(left, &format!(" GROUP BY {}", keys.join(", ")), place)
    }

    /// The pairs of one condition: a name that both have, `$left.a == $right.b`, or several with `and`.
    fn pairs(
        &mut self,
        condition: &Expression,
        left: &Relation,
        right: &Relation,
        pairs: &mut Vec<Pair>,
    ) -> Result<(), Fault> {
        let place = condition.place;
        match &condition.kind {
            Shape::Name(_) => {
                let pair = Pair {
                    left: self.value(condition, Scope::Rows(left)).map_err(|fault| on_side(fault, "left"))?,
                    right: self.value(condition, Scope::Rows(right)).map_err(|fault| on_side(fault, "right"))?,
                };
                checked(pair, place).map(|pair| pairs.push(pair))
            }
            Shape::All(Logic::And, all) => all.iter().try_for_each(|it| self.pairs(it, left, right, pairs)),
            Shape::Binary(Binary::Equal, a, b) => {
                let (first, second) = (self.side(a, left, right)?, self.side(b, left, right)?);
                let pair = match (first, second) {
                    ((true, left), (false, right)) | ((false, right), (true, left)) => Pair { left, right },
                    _ => return Err(Fault::new(place, "one side is of `$left` and the other of `$right`")),
                };
                checked(pair, place).map(|pair| pairs.push(pair))
            }
            _ => Err(Fault::new(place, "a join goes by names, or by `$left.a == $right.b`")),
        }
    }

    /// Whether a side of a condition is the left one, and its value.
    fn side(&mut self, expression: &Expression, left: &Relation, right: &Relation) -> Result<(bool, Value), Fault> {
        if let Shape::Member(table, key) = &expression.kind
            && let Shape::Name(side) = &table.kind
        {
            let is_left = side == "$left";
            if is_left || side == "$right" {
                let column = Expression { kind: Shape::Name(key.text.clone()), place: key.place, height: 1 };
                let relation = if is_left { left } else { right };
                return Ok((is_left, self.value(&column, Scope::Rows(relation))?));
            }
        }
        Err(Fault::new(expression.place, "this is no column of `$left` or `$right`")
            .hint("write `$left.a == $right.b`, or one name that both sides have"))
    }
}

fn on_side(mut fault: Fault, side: &str) -> Fault {
    fault.message = format!("{} on the {side} of the join", fault.message);
    fault
}

fn checked(pair: Pair, place: TextRange) -> Result<Pair, Fault> {
    not_dynamic(&pair.left, place)?;
    not_dynamic(&pair.right, place)?;
    match pair.left.kind == pair.right.kind {
        true => Ok(pair),
        false => Err(Fault::new(
            place,
            format!("the left is a {} and the right a {}", pair.left.kind.word(), pair.right.kind.word()),
        )),
    }
}
