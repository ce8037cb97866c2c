//! Templates: formats of SQLite's `printf()` that put a span's texts together again.
//!
//! `%s` prints the next slot, `%.0s` passes one by, `%%` is a percent sign. They are made here only; what reads them is
//! SQLite itself, in the view `spans` and wherever someone opens the file.

use serde_json::{Map, Value};

use super::layout::{Field, Place};
use super::slot::{ATTRIBUTE_SLOTS, escaped};

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Fixed(&'a str),
    /// The number of a slot, from 0; higher than those of the parts before.
    Slot(usize),
}

/// The template of a text.
pub(super) fn of_parts(parts: &[Part<'_>]) -> String {
    let (mut template, mut next) = (String::new(), 0);
    for part in parts {
        match part {
            Part::Fixed(text) => push_fixed(&mut template, text),
            Part::Slot(slot) => {
                (next..*slot).for_each(|_| template.push_str("%.0s"));
                template.push_str("%s");
                next = slot + 1;
            }
        }
    }
    if template.is_empty() {
        // Before 3.44, SQLite prints NULL for a format without anything in it.
        template.push_str("%.0s");
    }
    template
}

/// The template of a JSON object. Members stand in their order, but for those that share a slot: they are last.
pub(super) fn of_attributes(attributes: &Map<String, Value>, fields: &[Field]) -> String {
    let mut template = String::from("{");
    let mut shares_slot = false;
    for (field, (key, value)) in fields.iter().zip(attributes) {
        if field.place == Place::Rest {
            shares_slot = true;
            continue;
        }
        separate(&mut template);
        push_fixed(&mut template, &format!("\"{}\":", escaped(key)));
        match (field.place, value) {
            (Place::Shape | Place::Rest, value) => push_fixed(&mut template, &value.to_string()),
            (Place::Slot(_), Value::String(_)) => template.push_str("\"%s\""),
            (Place::Slot(_), _) => template.push_str("%s"),
        }
    }
    if shares_slot {
        separate(&mut template);
        let before = fields.iter().filter(|field| matches!(field.place, Place::Slot(_))).count();
        debug_assert_eq!(before, ATTRIBUTE_SLOTS - 1, "a slot is shared when all others are taken");
        template.push_str("%s");
    }
    template.push('}');
    template
}

/// Adds a member to those that share a slot.
pub(super) fn push_member(members: &mut String, key: &str, value: &Value) {
    if !members.is_empty() {
        members.push(',');
    }
    members.push('"');
    members.push_str(&escaped(key));
    members.push_str("\":");
    members.push_str(&value.to_string());
}

fn separate(template: &mut String) {
    if template.len() > 1 {
        template.push(',');
    }
}

/// Adds text that is printed as it is. SQLite ends a format at a NUL, so none may be in it.
fn push_fixed(template: &mut String, text: &str) {
    for piece in text.split_inclusive('%') {
        template.push_str(piece);
        if piece.ends_with('%') {
            template.push('%');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn printed(template: &str) -> String {
        let sql = "SELECT printf(?1, 'one', 2, 'thrée', NULL)";
        Connection::open_in_memory().unwrap().query_row(sql, [template], |row| row.get(0)).unwrap()
    }

    #[test]
    fn sqlite_prints_what_was_meant() {
        let cases: [(&[Part<'_>], &str); 5] = [
            (&[], ""),
            (&[Part::Fixed("100 %s of %% é")], "100 %s of %% é"),
            (&[Part::Slot(0)], "one"),
            (&[Part::Slot(1), Part::Fixed("?"), Part::Slot(2)], "2?thrée"),
            (&[Part::Fixed("a%"), Part::Slot(2), Part::Fixed("%"), Part::Slot(3)], "a%thrée%"),
        ];
        for (parts, expected) in cases {
            assert_eq!(printed(&of_parts(parts)), expected, "{parts:?}");
            assert_ne!(of_parts(parts), "", "of which older versions make NULL");
        }
    }
}
