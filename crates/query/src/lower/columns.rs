//! The operators that choose, order and rename columns by patterns of their names.

use super::expression::listed;
use crate::error::{Fault, TextRange};
use crate::sql::Relation;
use crate::syntax::{Name, Pattern};

/// Whether a name matches a pattern, in which `*` stands for any text.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

fn is_named(pattern: &Pattern, name: &str) -> bool {
    if pattern.is_quoted { pattern.text == name } else { is_like(&pattern.text, name) }
}

/// Where the columns are that a pattern names. One without a star has to name one.
fn positions(relation: &Relation, pattern: &Pattern) -> Result<Vec<usize>, Fault> {
    let named = relation.columns.iter().enumerate().filter(|(_, column)| is_named(pattern, &column.name));
    let positions: Vec<usize> = named.map(|(position, _)| position).collect();
    if positions.is_empty() && (pattern.is_quoted || !pattern.text.contains('*')) {
        return Err(unknown_column(relation, &pattern.text, pattern.place));
    }
    Ok(positions)
}

fn unknown_column(relation: &Relation, name: &str, place: TextRange) -> Fault {
    let fault = Fault::new(place, format!("there is no column `{name}`")).near(name, relation.names());
    match fault.hint {
        Some(_) => fault,
        None => fault.hint(format!("columns are {}", listed(relation.names()))),
    }
}

fn selected(relation: &Relation, patterns: &[Pattern]) -> Result<Vec<usize>, Fault> {
    let mut all = Vec::new();
    for pattern in patterns {
        for position in positions(relation, pattern)? {
            if !all.contains(&position) {
                all.push(position);
            }
        }
    }
    Ok(all)
}

pub(super) fn away(mut relation: Relation, patterns: &[Pattern]) -> Result<Relation, Fault> {
    let gone = selected(&relation, patterns)?;
    if gone.len() == relation.columns.len() {
        return Err(Fault::new(patterns[0].place, "this leaves no column"));
    }
    let mut position = 0;
    relation.columns.retain(|_| {
        position += 1;
        !gone.contains(&(position - 1))
    });
    Ok(relation)
}

pub(super) fn kept(mut relation: Relation, patterns: &[Pattern]) -> Result<Relation, Fault> {
    let kept = selected(&relation, patterns)?;
    if kept.is_empty() {
        return Err(Fault::new(patterns[0].place, "this leaves no column"));
    }
    let mut position = 0;
    relation.columns.retain(|_| {
        position += 1;
        kept.contains(&(position - 1))
    });
    Ok(relation)
}

pub(super) fn reordered(mut relation: Relation, patterns: &[Pattern]) -> Result<Relation, Fault> {
    let first = selected(&relation, patterns)?;
    let rest = (0..relation.columns.len()).filter(|position| !first.contains(position));
    let order: Vec<usize> = first.iter().copied().chain(rest).collect();
    relation.columns = order.into_iter().map(|position| relation.columns[position].clone()).collect();
    Ok(relation)
}

pub(super) fn renamed(mut relation: Relation, names: &[(Name, Name)]) -> Result<Relation, Fault> {
    let before = relation.clone();
    for (new, old) in names {
        let Some(position) = before.columns.iter().position(|column| column.name == old.text) else {
            return Err(unknown_column(&before, &old.text, old.place));
        };
        relation.columns[position].name.clone_from(&new.text);
    }
    for (new, _) in names {
        if relation.columns.iter().filter(|column| column.name == new.text).count() > 1 {
            return Err(Fault::new(new.place, format!("there are two columns `{}`", new.text)));
        }
    }
    Ok(relation)
}
