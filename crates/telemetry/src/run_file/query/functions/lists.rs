//! `make_list` and `make_set`: the values of a group as a JSON array, in the order they come.
//!
//! Text becomes JSON strings and numbers JSON numbers; NULL is left out, as KQL does. `make_list_json` and
//! `make_set_json` take text that is JSON already. At most [`ELEMENTS_MAX`] elements are taken, or as many as a second
//! argument says; what comes after them is left out.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::functions::{Aggregate, Context};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::super::budget::{Allocation, Budget};
use super::arguments::integer;
use super::{FLAGS, wrong};

/// KQL's own limit.
const ELEMENTS_MAX: usize = 1_048_576;
/// Bytes of an element besides its text, roughly.
const ELEMENT_BYTES: usize = 64;

pub(super) fn register(connection: &Connection, budget: &Arc<Budget>) -> Result<()> {
    let all = [
        ("make_list", Keep::All, Text::IsText),
        ("make_set", Keep::Distinct, Text::IsText),
        ("make_list_json", Keep::All, Text::IsJson),
        ("make_set_json", Keep::Distinct, Text::IsJson),
    ];
    all.into_iter().try_for_each(|(name, keep, text)| {
        (1..=2).try_for_each(|arguments| {
            let list = List { keep, text, budget: Arc::clone(budget) };
            connection.create_aggregate_function(name, arguments, FLAGS, list)
        })
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    All,
    Distinct,
}

#[derive(Clone, Copy, PartialEq)]
enum Text {
    IsText,
    IsJson,
}

struct List {
    keep: Keep,
    text: Text,
    budget: Arc<Budget>,
}

struct Elements {
    /// The array without its brackets.
    json: String,
    count: usize,
    count_max: usize,
    seen: HashSet<String>,
    held: Allocation,
}

impl Aggregate<Elements, String> for List {
    fn init(&self, context: &mut Context<'_>) -> Result<Elements> {
        let asked = if context.len() > 1 { integer(context, 1) } else { None };
        let count_max = asked.map_or(ELEMENTS_MAX, |asked| usize::try_from(asked).unwrap_or(0).min(ELEMENTS_MAX));
        let held = Allocation::new(&self.budget);
        Ok(Elements { json: String::new(), count: 0, count_max, seen: HashSet::new(), held })
    }

    fn step(&self, context: &mut Context<'_>, elements: &mut Elements) -> Result<()> {
        let Some(element) = self.element(context.get_raw(0))? else { return Ok(()) };
        if elements.count >= elements.count_max || self.keep == Keep::Distinct && elements.seen.contains(&element) {
            return Ok(());
        }
        elements.held.take(element.len() + 1)?;
        if elements.count > 0 {
            elements.json.push(',');
        }
        elements.json.push_str(&element);
        elements.count += 1;
        if self.keep == Keep::Distinct {
            elements.held.take(element.len() + ELEMENT_BYTES)?;
            elements.seen.insert(element);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, elements: Option<Elements>) -> Result<String> {
        Ok(format!("[{}]", elements.map_or_else(String::new, |elements| elements.json)))
    }
}

impl List {
    /// A value as JSON; `None` if it is NULL or infinity, which JSON does not have.
    fn element(&self, value: ValueRef<'_>) -> Result<Option<String>> {
        Ok(match value {
            ValueRef::Null => None,
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => serde_json::Number::from_f64(number).map(|number| number.to_string()),
            ValueRef::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                match self.text {
                    Text::IsText => Some(serde_json::Value::from(text).to_string()),
                    Text::IsJson => {
                        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
                        Some(
                            is_json
                                .then(|| text.into_owned())
                                .ok_or_else(|| wrong("an element of a list is not JSON"))?,
                        )
                    }
                }
            }
            ValueRef::Blob(_) => return Err(wrong("bytes cannot be an element of a list")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cell, connection};

    #[test]
    fn groups_become_arrays() {
        let connection = connection();
        let of = |call: &str, values: &str| {
            cell(&connection, &format!("WITH t (x) AS (VALUES {values}) SELECT {call} FROM t"))
        };
        let values = "('b'), (NULL), (2), ('b'), (2.5), ('say \"a\"'), (2)";
        assert_eq!(of("make_list(x)", values), r#"["b",2,"b",2.5,"say \"a\"",2]"#);
        assert_eq!(of("make_set(x)", values), r#"["b",2,2.5,"say \"a\""]"#);
        assert_eq!(of("make_list(x, 2)", values), r#"["b",2]"#);
        assert_eq!(of("make_set(x, 0)", values), "[]");
        assert_eq!(of("make_list(x)", "(NULL)"), "[]");
        assert_eq!(of("make_list_json(x)", r#"('{"a":1}'), ('[true]')"#), r#"[{"a":1},[true]]"#);
        assert_eq!(of("make_set_json(x)", "('1'), ('1')"), "[1]");
        assert_eq!(of("make_list_json(x)", "('{')"), "error: an element of a list is not JSON");
        assert_eq!(of("make_list(x)", "(x'00')"), "error: bytes cannot be an element of a list");
        assert_eq!(cell(&connection, "SELECT make_list(1) WHERE 0"), "[]");
    }

    #[test]
    fn memory_is_bounded() {
        let endless = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 1000000)";
        for call in ["make_list(x)", "make_set(x)"] {
            let said = cell(&connection(), &format!("{endless} SELECT {call} FROM t"));
            assert!(said.contains("more than 1.00 MiB of memory"), "{said}");
        }
    }
}
