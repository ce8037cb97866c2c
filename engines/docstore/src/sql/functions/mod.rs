//! The functions of the language by name, one file per family. The value of a function is undefined for arguments to
//! which it does not apply.
//!
//! A call counts the bytes of its arguments as work. An entry declares the additional bytes that a function reads and
//! writes, which are counted before the function runs.

mod arrays;
mod dates;
mod math;
mod texts;
mod types;

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use super::TooMuchWork;
use super::evaluate::Context;
use super::value::Value;

/// Every family's functions.
const FAMILIES: [&[Entry]; 5] = [types::ALL, texts::ALL, arrays::ALL, math::ALL, dates::ALL];
/// The longest text a function makes, in bytes; the value of a longer one is undefined.
const MAX_TEXT_BYTES: usize = 2 << 20;
/// Maximum size of a function's value in memory, in bytes.
const MAX_VALUE_BYTES: usize = 64 << 20;

/// One function.
#[derive(Debug)]
struct Entry {
    name: &'static str,
    least: usize,
    most: usize,
    run: Run,
    /// Bytes that it reads in addition to its arguments, including repeated reads.
    reads: fn(&Arguments<'_>) -> usize,
    /// Bytes of its value, if that may be larger than its arguments.
    makes: fn(&Arguments<'_>) -> usize,
}

#[derive(Debug)]
enum Run {
    Plain(fn(&Arguments<'_>) -> Value),
    /// A function that counts its own work.
    Counted(fn(&Arguments<'_>) -> Result<Value, TooMuchWork>),
}

impl Entry {
    const fn new(name: &'static str, least: usize, most: usize, run: fn(&Arguments<'_>) -> Value) -> Self {
        Self { name, least, most, run: Run::Plain(run), reads: |_| 0, makes: |_| 0 }
    }

    const fn counted(
        name: &'static str,
        least: usize,
        most: usize,
        run: fn(&Arguments<'_>) -> Result<Value, TooMuchWork>,
    ) -> Self {
        Self { name, least, most, run: Run::Counted(run), reads: |_| 0, makes: |_| 0 }
    }

    const fn reading(self, reads: fn(&Arguments<'_>) -> usize) -> Self {
        Self { reads, ..self }
    }

    const fn making(self, makes: fn(&Arguments<'_>) -> usize) -> Self {
        Self { makes, ..self }
    }
}

/// A function of the table.
#[derive(Clone, Copy)]
pub(crate) struct Function(&'static Entry);

impl fmt::Debug for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.name)
    }
}

impl Function {
    /// The function with this name in capital or small letters.
    pub(crate) fn named(name: &str) -> Option<Self> {
        FAMILIES.into_iter().flatten().find(|entry| entry.name.eq_ignore_ascii_case(name)).map(Self)
    }

    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    /// How many arguments it takes.
    pub(crate) fn arguments(self) -> RangeInclusive<usize> {
        self.0.least..=self.0.most
    }

    pub(super) fn run(self, arguments: &Arguments<'_>) -> Result<Value, TooMuchWork> {
        let made = (self.0.makes)(arguments);
        if made > MAX_VALUE_BYTES {
            return Err(TooMuchWork);
        }
        arguments.context.work(made.saturating_add((self.0.reads)(arguments)) / 8)?;
        match self.0.run {
            Run::Plain(run) => Ok(run(arguments)),
            Run::Counted(run) => run(arguments),
        }
    }
}

/// The arguments of a call.
pub(crate) struct Arguments<'a> {
    pub(super) values: &'a [Cow<'a, Value>],
    pub(super) context: &'a Context<'a>,
}

impl Arguments<'_> {
    fn value(&self, index: usize) -> &Value {
        self.values.get(index).map_or(&Value::Undefined, |value| &**value)
    }

    fn text(&self, index: usize) -> Option<&str> {
        match self.value(index) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, index: usize) -> Option<f64> {
        self.value(index).double()
    }

    /// A whole number.
    fn whole(&self, index: usize) -> Option<i64> {
        self.number(index).and_then(super::evaluate::whole)
    }

    fn array(&self, index: usize) -> Option<&[Value]> {
        match self.value(index) {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// An optional flag, false if left out.
    fn flag(&self, index: usize) -> Option<bool> {
        match self.values.get(index).map(|value| &**value) {
            None => Some(false),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(_) => None,
        }
    }
}

/// A text value; undefined if it is too long.
pub(super) fn text_of(text: String) -> Value {
    if text.len() <= MAX_TEXT_BYTES { Value::Text(text) } else { Value::Undefined }
}

/// Memory of all arguments, in bytes.
fn weight(given: &Arguments<'_>) -> usize {
    given.values.iter().fold(0_usize, |sum, value| sum.saturating_add(value.weight()))
}

fn defined(value: Option<Value>) -> Value {
    value.unwrap_or(Value::Undefined)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sql::evaluate::{Frame, Parameters};
    use crate::sql::{Allowance, parse, subquery};

    /// The value of an expression as JSON, or `undefined`; the clock stands at 2021-03-04T05:06:07.
    pub(in crate::sql) fn value_of(expression: &str) -> String {
        let query =
            parse(&format!("SELECT VALUE {expression}")).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let parameters = Parameters::new();
        let context = Context::new(&parameters, 16_148_343_670_000_000, Allowance::unwatched());
        let frame = Frame { context: &context, document: &Value::Undefined, scope: None, aggregates: &[] };
        let values = subquery::subquery(&query, &frame).unwrap();
        values.first().map_or("undefined".to_owned(), ToString::to_string)
    }

    /// Checks pairs of an expression and its value.
    pub(in crate::sql) fn check(cases: &[(&str, &str)]) {
        for (expression, expected) in cases {
            assert_eq!(value_of(expression), *expected, "{expression}");
        }
    }

    #[test]
    fn each_name_is_there_once() {
        let names: Vec<&str> = FAMILIES.into_iter().flatten().map(|entry| entry.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn no_function_panics_on_any_type() {
        let values = ["undefined", "null", "true", "-1", "1e300", "0.5", "''", "'ü'", "[]", "[1,'a']", "{}", "{'a':1}"];
        for entry in FAMILIES.into_iter().flatten() {
            for count in entry.least..=entry.most.min(4) {
                for first in 0..values.len() {
                    let arguments: Vec<&str> =
                        (0..count).map(|index| values[(first + index * 5) % values.len()]).collect();
                    value_of(&format!("{}({})", entry.name, arguments.join(",")));
                    let alike = vec![values[first]; count].join(",");
                    value_of(&format!("{}({alike})", entry.name));
                }
            }
        }
    }
}
