//! A call of a scalar function: its values fitted to what the function takes.

use crate::error::{Fault, TextRange};
use crate::sql::Value;
use crate::syntax::Name;
use crate::types::Type;

/// A function that takes a row's values.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Parameters, a letter each: `s`tring, `n`umber, `l`ong, `d`atetime, `t`imespan, `b`ool, d`y`namic, `a`nything.
    /// Those after `?` may be left out; `*` repeats the letter before it.
    pub(crate) takes: &'static str,
    pub(crate) gives: Gives,
    pub(crate) meaning: Meaning,
}

#[derive(Clone, Copy)]
pub(crate) enum Gives {
    Is(Type),
    /// The type of the first value.
    First,
    /// Result of the function itself.
    Own,
}

#[derive(Clone, Copy)]
pub(crate) enum Meaning {
    /// SQL in which `{0}` is the first value and `{*}` all of them with commas.
    Sql(&'static str),
    Made(fn(&Call<'_>) -> Result<Value, Fault>),
}

/// A call, with its values worked out.
pub(crate) struct Call<'a> {
    pub(crate) name: &'a Name,
    pub(crate) values: Vec<Value>,
    pub(crate) places: Vec<TextRange>,
}

fn letters(takes: &str) -> (Vec<char>, usize, bool) {
    let is_repeated = takes.ends_with('*');
    let takes = takes.trim_end_matches('*');
    let least = takes.find('?').unwrap_or(takes.len());
    (takes.chars().filter(|c| *c != '?').collect(), least, is_repeated)
}

impl Call<'_> {
    pub(crate) fn fault(&self, position: usize, message: impl Into<String>) -> Fault {
        Fault::new(self.places.get(position).copied().unwrap_or(self.name.place), message)
    }

    pub(crate) fn check_count(&self, function: &Function) -> Result<(), Fault> {
        let (letters, least, is_repeated) = letters(function.takes);
        let given = self.values.len();
        if given >= least && (is_repeated || given <= letters.len()) {
            return Ok(());
        }
        let most = letters.len();
        let wanted = match (is_repeated, least == most) {
            (true, _) => format!("at least {least}"),
            (false, true) => most.to_string(),
            (false, false) => format!("{least} to {most}"),
        };
        Err(Fault::new(self.name.place, format!("`{}` takes {wanted} values and was given {given}", self.name.text)))
    }

    /// The value at a position as SQL of one of the kinds that a letter stands for.
    pub(crate) fn fitted(&self, position: usize, letter: char) -> Result<String, Fault> {
        let Some(value) = self.values.get(position) else {
            return Err(Fault::new(self.name.place, format!("`{}` was given too few values", self.name.text)));
        };
        let is_fit = match letter {
            's' if value.kind == Type::Dynamic => return Ok(format!("CAST({} AS TEXT)", value.scalar())),
            's' => value.kind == Type::Text,
            'n' => value.kind.is_number(),
            'l' => value.kind == Type::Long,
            'd' => value.kind == Type::Datetime,
            't' => value.kind == Type::Timespan,
            'b' => value.kind == Type::Bool,
            'y' => value.kind == Type::Dynamic,
            _ => true,
        };
        if is_fit {
            return Ok(value.sql.clone());
        }
        let wanted = wanted(letter);
        let fault =
            self.fault(position, format!("`{}` takes a {wanted} here, not a {}", self.name.text, value.kind.word()));
        Err(match letter {
            's' | 'l' | 'd' | 't' | 'b' => fault.hint(format!("`to{wanted}(…)` converts it")),
            'n' => fault.hint("`toreal(…)` converts it"),
            'y' => fault.hint("`parse_json(…)` makes one of a string"),
            _ => fault,
        })
    }

    /// The function's SQL with the values in it.
    pub(crate) fn filled(&self, function: &Function, template: &str) -> Result<Value, Fault> {
        self.check_count(function)?;
        let (letters, _, _) = letters(function.takes);
        let last = letters.last().copied().unwrap_or('a');
        let mut texts = Vec::new();
        for position in 0..self.values.len() {
            texts.push(self.fitted(position, letters.get(position).copied().unwrap_or(last))?);
        }
        let kind = match function.gives {
            Gives::Is(kind) => kind,
            Gives::First | Gives::Own => self.values.first().map_or(Type::Text, |value| value.kind),
        };
        Ok(Value::new(kind, fill(template, &texts)))
    }
}

fn wanted(letter: char) -> &'static str {
    match letter {
        's' => "string",
        'n' => "number",
        'l' => "long",
        'd' => "datetime",
        't' => "timespan",
        'b' => "bool",
        'y' => "dynamic",
        _ => "value",
    }
}

/// Puts texts into a template, going over it once: what is put in is not looked at again.
fn fill(template: &str, texts: &[String]) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let (slot, behind) = after.split_once('}').unwrap_or((after, ""));
        match slot.parse::<usize>() {
            Ok(position) => filled.push_str(texts.get(position).map_or("NULL", String::as_str)),
            Err(_) => filled.push_str(&texts.join(", ")),
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        let texts = ["'{1}'".to_owned(), "b".to_owned()];
        assert_eq!(fill("f({0}, {1}, {*})", &texts), "f('{1}', b, '{1}', b)");
    }
}
