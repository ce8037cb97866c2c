//! Functions of a value's type, and the choice between two values.

use super::{Arguments, Entry};
use crate::sql::evaluate::whole;
use crate::sql::value::Value;

pub(super) const ALL: &[Entry] = &[
    Entry::new("IS_ARRAY", 1, 1, |given| is(given, |value| matches!(value, Value::Array(_)))),
    Entry::new("IS_BOOL", 1, 1, |given| is(given, |value| matches!(value, Value::Bool(_)))),
    // The same by another name, which the client for Java uses.
    Entry::new("IS_BOOLEAN", 1, 1, |given| is(given, |value| matches!(value, Value::Bool(_)))),
    Entry::new("IS_DEFINED", 1, 1, |given| is(given, |value| !value.is_undefined())),
    Entry::new("IS_FINITE_NUMBER", 1, 1, |given| is(given, Value::is_number)),
    Entry::new("IS_INTEGER", 1, 1, |given| {
        is(given, |value| value.double().is_some_and(|number| whole(number).is_some()))
    }),
    Entry::new("IS_NULL", 1, 1, |given| is(given, |value| matches!(value, Value::Null))),
    Entry::new("IS_NUMBER", 1, 1, |given| is(given, Value::is_number)),
    Entry::new("IS_OBJECT", 1, 1, |given| is(given, |value| matches!(value, Value::Object(_)))),
    Entry::new("IS_PRIMITIVE", 1, 1, |given| is(given, |value| !value.is_undefined() && value.is_scalar())),
    Entry::new("IS_STRING", 1, 1, |given| is(given, |value| matches!(value, Value::Text(_)))),
    Entry::new("IIF", 3, 3, |given| given.value(if given.value(0).is_true() { 1 } else { 2 }).clone()),
];

fn is(given: &Arguments<'_>, holds: fn(&Value) -> bool) -> Value {
    Value::Bool(holds(given.value(0)))
}

#[cfg(test)]
mod tests {
    use crate::sql::functions::tests::check;

    #[test]
    fn types() {
        check(&[
            ("IS_DEFINED(undefined)", "false"),
            ("IS_DEFINED(null)", "true"),
            ("IS_PRIMITIVE([])", "false"),
            ("IS_PRIMITIVE(undefined)", "false"),
            ("IS_INTEGER(1.5)", "false"),
            ("IS_INTEGER(2)", "true"),
            ("IS_NUMBER('1')", "false"),
            ("IS_ARRAY([])", "true"),
            ("IS_OBJECT({})", "true"),
            ("is_string('')", "true"),
            ("IS_BOOL(false)", "true"),
            ("IS_NULL(undefined)", "false"),
            ("IIF(true, 'a', 'b')", "\"a\""),
            ("IIF(1, 'a', 'b')", "\"b\""),
        ]);
    }
}
