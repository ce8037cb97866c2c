//! `top-nested`: the largest groups, within each of them the largest of the next level, and so on.

use super::Lowering;
use super::names::implied_name;
use super::steps::one_name;
use crate::error::{Fault, TextRange};
use crate::sql::{Column, Relation, Value};
use crate::syntax::{Item, Name, NestedLevel};
use crate::types::Type;

/// Name of the column with a group's rank within those above it. Queries cannot contain this name.
const RANK: &str = "\u{1}rank";
/// Maximum number of levels.
const LEVELS_MAX: usize = 32;

impl Lowering<'_> {
    pub(super) fn top_nested(
        &mut self,
        relation: Relation,
        levels: &[NestedLevel],
        place: TextRange,
    ) -> Result<Relation, Fault> {
        if levels.len() > LEVELS_MAX {
            return Err(Fault::new(place, format!("this has {} levels, expected at most {LEVELS_MAX}", levels.len())));
        }
        let relation = self.share(relation, place)?;
        let mut by: Vec<Item> = Vec::new();
        let mut result: Option<Relation> = None;
        for (position, level) in levels.iter().enumerate() {
            let name = named(&level.value, || implied_name(&level.value.value), position)?;
            let value = named(&level.by, || Some(format!("aggregated_{}", name.text)), position)?;
            by.push(Item { names: vec![name], value: level.value.value.clone() });
            let items = [Item { names: vec![value], value: level.by.value.clone() }];
            let groups = self.summarized(relation.clone(), &items, &by, place)?;
            let groups = self.ranked(groups, level, position, place)?;
            result = Some(match result {
                None => groups,
                Some(above) => self.under(&above, groups, position, place)?,
            });
        }
        result.ok_or_else(|| Fault::new(place, "`top-nested` needs a level"))
    }

    /// The groups of a level, limited to the first few within each group above.
    fn ranked(
        &mut self,
        mut groups: Relation,
        level: &NestedLevel,
        position: usize,
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let Some(count) = &level.count else { return Ok(groups) };
        let count = self.row_count(count)?;
        let sql = |columns: &[Column]| columns.iter().map(|it| it.value.sql.clone()).collect::<Vec<_>>().join(", ");
        let above = match position {
            0 => String::new(),
            _ => format!("PARTITION BY {} ", sql(&groups.columns[..position])),
        };
        let direction = if level.is_ascending { "" } else { " DESC" };
        let order = sql(&groups.columns[position + 1..]);
        let rank = format!("row_number() OVER ({above}ORDER BY {order}{direction})");
        groups.columns.push(Column { name: RANK.to_owned(), value: Value::new(Type::Long, rank) });
        let mut ranked = self.seal(groups, place)?;
        let rank = ranked.columns.pop().map_or_else(String::new, |column| column.value.sql);
        ranked.filters.push(format!("{rank} <= {count}"));
        self.seal(ranked, place)
    }

    /// The levels so far, with each row repeated for every group below it.
    fn under(
        &mut self,
        above: &Relation,
        groups: Relation,
        position: usize,
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let above = self.seal(above.clone(), place)?;
        let groups = self.seal(groups, place)?;
        // In the levels above, the group is followed by its aggregate.
        let same =
            (0..position).map(|at| format!("{} IS {}", above.columns[at * 2].value.sql, groups.columns[at].value.sql));
        let same = same.collect::<Vec<_>>().join(" AND ");
        let (left, right) = (above.from.unwrap_or_default(), groups.from.unwrap_or_default());
        let mut result = Relation {
            columns: above.columns,
            from: Some(format!("{left} JOIN {right} ON {same}")),
            is_costly: true,
            ..Relation::default()
        };
        for column in groups.columns.into_iter().skip(position) {
            if result.column(&column.name).is_some() {
                return Err(Fault::new(place, format!("there are two columns `{}`", column.name)));
            }
            result.columns.push(column);
        }
        Ok(result)
    }
}

/// The name of an item.
fn named(item: &Item, implied: impl Fn() -> Option<String>, position: usize) -> Result<Name, Fault> {
    Ok(match one_name(item)? {
        Some(name) => name.clone(),
        None => Name { text: implied().unwrap_or_else(|| format!("Column{}", position + 1)), place: item.value.place },
    })
}
