//! Values given from outside in the place of those of `let`.
//!
//! Each is a text of its own. So that a place shows which text it is in, those of the n-th override begin at n times a
//! distance that no text reaches.

use crate::error::{Fault, Mistake, TextRange};
use crate::syntax::Query;
use crate::{QUERY_BYTES_MAX, parser};

const APART: usize = QUERY_BYTES_MAX + 1;

/// Puts a value in the place of a `let`'s. `position` counts the overrides from 0.
pub(crate) fn apply(query: &mut Query, position: usize, name: &str, value: &str) -> Result<(), Mistake> {
    let named = |mistake: Mistake| Mistake {
        message: format!("in the value given for `{name}`: {}", mistake.message),
        ..mistake
    };
    crate::check_length(value).map_err(|fault| named(fault.in_text(value)))?;
    let expression =
        parser::value(value, (position + 1) * APART).map_err(|fault| located(fault, "", &[(name, value)]))?;
    let names = query.lets.iter().map(|it| it.name.text.as_str());
    let unknown = Fault::new(TextRange { start: 0, end: 0 }, format!("no `let` of this query is called `{name}`"))
        .near(name, names);
    match query.lets.iter_mut().find(|it| it.name.text == name) {
        Some(it) => it.value = expression,
        None => return Err(unknown.in_text("")),
    }
    Ok(())
}

/// The mistake in the text, of the query or of an override, in which a fault lies.
pub(crate) fn located(mut fault: Fault, text: &str, overrides: &[(&str, &str)]) -> Mistake {
    let behind = fault.place.start / APART;
    let Some((name, value)) = behind.checked_sub(1).and_then(|position| overrides.get(position).or(overrides.last()))
    else {
        return fault.in_text(text);
    };
    fault.place = TextRange { start: fault.place.start % APART, end: fault.place.end % APART };
    fault.message = format!("in the value given for `{name}`: {}", fault.message);
    fault.in_text(value)
}

#[cfg(test)]
mod tests {
    use crate::compile;

    fn with(text: &str, name: &str, value: &str) -> Result<String, String> {
        let compiled = compile(text, &[(name.to_owned(), value.to_owned())]);
        compiled.map(|it| it.sql).map_err(|mistake| format!("{mistake}"))
    }

    const QUERY: &str = "let least = 5;\nrequests | where duration > least | count";

    #[test]
    fn a_value_takes_the_place_of_a_let() {
        assert_eq!(with(QUERY, "least", "7.5").unwrap(), compile(&QUERY.replace('5', "7.5"), &[]).unwrap().sql);
    }

    #[test]
    fn a_mistake_in_it_is_placed_in_it() {
        for (name, value, wanted) in [
            ("lest", "7", "line 1, column 1: no `let` of this query is called `lest`"),
            (
                "least",
                "7 8",
                "line 1, column 3: in the value given for `least`: a number stands behind the end of the value",
            ),
            ("least", "\n 'a", "line 2, column 2: in the value given for `least`: this string is never closed"),
            ("least", "1 + nope", "line 1, column 5: in the value given for `least`: nothing is called `nope`"),
            ("least", "'a'", "line 2, column 18: `>` is not defined between real and string"),
        ] {
            assert_eq!(with(QUERY, name, value).unwrap_err(), wanted, "{name}={value}");
        }
    }
}
