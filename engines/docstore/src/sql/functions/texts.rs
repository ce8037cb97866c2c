//! Functions on texts. Positions and lengths count characters.

use super::{Arguments, Entry, MAX_TEXT_BYTES, defined, text_of, weight};
use crate::sql::TooMuchWork;
use crate::sql::value::Value;

pub(super) const ALL: &[Entry] = &[
    Entry::new("CONCAT", 2, 64, |given| defined(concatenated(given))),
    Entry::new("CONTAINS", 2, 3, |given| compared(given, |text, part| text.contains(part))),
    Entry::new("ENDSWITH", 2, 3, |given| compared(given, |text, part| text.ends_with(part))),
    Entry::new("STARTSWITH", 2, 3, |given| compared(given, |text, part| text.starts_with(part))),
    Entry::new("STRINGEQUALS", 2, 3, |given| compared(given, |text, other| text == other)),
    Entry::new("INDEX_OF", 2, 3, |given| defined(index_of(given))),
    Entry::new("LEFT", 2, 2, |given| {
        defined(
            given.text(0).zip(length(given, 1)).map(|(text, count)| Value::Text(text.chars().take(count).collect())),
        )
    }),
    Entry::new("RIGHT", 2, 2, |given| {
        defined(given.text(0).zip(length(given, 1)).map(|(text, count)| {
            let before = text.chars().count().saturating_sub(count);
            Value::Text(text.chars().skip(before).collect())
        }))
    }),
    Entry::new("LENGTH", 1, 1, |given| defined(given.text(0).map(|text| Value::Number(text.chars().count() as f64)))),
    Entry::new("LOWER", 1, 1, |given| mapped(given, str::to_lowercase)),
    Entry::new("UPPER", 1, 1, |given| mapped(given, str::to_uppercase)),
    Entry::new("LTRIM", 1, 2, |given| trimmed(given, Sides { left: true, right: false })).making(bytes_of_set),
    Entry::new("RTRIM", 1, 2, |given| trimmed(given, Sides { left: false, right: true })).making(bytes_of_set),
    Entry::new("TRIM", 1, 2, |given| trimmed(given, Sides { left: true, right: true })).making(bytes_of_set),
    Entry::counted("REGEXMATCH", 2, 3, regex_match),
    Entry::new("REPLACE", 3, 3, |given| defined(replace(given))).making(bytes_of_replaced),
    Entry::new("REPLICATE", 2, 2, |given| defined(replicate(given))).making(bytes_of_replicated),
    Entry::new("REVERSE", 1, 1, |given| mapped(given, |text| text.chars().rev().collect())),
    Entry::new("STRINGJOIN", 2, 2, |given| defined(join(given))).making(bytes_of_joined),
    Entry::new("STRINGSPLIT", 2, 2, |given| {
        defined(given.text(0).zip(given.text(1)).map(|(text, separator)| match separator {
            "" => Value::Array(vec![Value::text(text)]),
            _ => Value::Array(text.split(separator).map(Value::text).collect()),
        }))
    })
    .making(bytes_of_split),
    Entry::new("STRINGTOARRAY", 1, 1, |given| read(given, |value| matches!(value, Value::Array(_))))
        .making(bytes_of_read),
    Entry::new("STRINGTOBOOLEAN", 1, 1, |given| read(given, |value| matches!(value, Value::Bool(_)))),
    Entry::new("STRINGTONULL", 1, 1, |given| read(given, |value| matches!(value, Value::Null))),
    Entry::new("STRINGTONUMBER", 1, 1, |given| read(given, Value::is_number)),
    Entry::new("STRINGTOOBJECT", 1, 1, |given| read(given, |value| matches!(value, Value::Object(_))))
        .making(bytes_of_read),
    Entry::new("SUBSTRING", 3, 3, |given| {
        let bounds = length(given, 1).zip(length(given, 2));
        defined(
            given
                .text(0)
                .zip(bounds)
                .map(|(text, (begin, count))| Value::Text(text.chars().skip(begin).take(count).collect())),
        )
    }),
    Entry::new("TOSTRING", 1, 1, |given| match given.value(0) {
        Value::Undefined => Value::Undefined,
        Value::Text(text) => Value::text(text),
        value => text_of(value.to_string()),
    })
    .making(weight),
];

/// A number of characters; a negative one counts as zero.
fn length(given: &Arguments<'_>, index: usize) -> Option<usize> {
    given.number(index).map(|number| number.max(0.0) as usize)
}

fn mapped(given: &Arguments<'_>, map: fn(&str) -> String) -> Value {
    defined(given.text(0).map(|text| text_of(map(text))))
}

/// Two texts compared, without regard to capitals if the third argument says so.
fn compared(given: &Arguments<'_>, holds: fn(&str, &str) -> bool) -> Value {
    let texts = given.text(0).zip(given.text(1)).zip(given.flag(2));
    defined(texts.map(|((text, part), ignore_case)| {
        Value::Bool(if ignore_case { holds(&text.to_lowercase(), &part.to_lowercase()) } else { holds(text, part) })
    }))
}

fn index_of(given: &Arguments<'_>) -> Option<Value> {
    let (text, part) = (given.text(0)?, given.text(1)?);
    let begin = if given.values.len() > 2 { length(given, 2)? } else { 0 };
    let Some((begin_bytes, _)) = text.char_indices().chain([(text.len(), ' ')]).nth(begin) else {
        return Some(Value::Number(-1.0));
    };
    let found = text[begin_bytes..].find(part).map(|offset| text[..begin_bytes + offset].chars().count() as f64);
    Some(Value::Number(found.unwrap_or(-1.0)))
}

struct Sides {
    left: bool,
    right: bool,
}

/// Bytes of the character set that [`trimmed`] searches.
fn bytes_of_set(given: &Arguments<'_>) -> usize {
    given.text(1).map_or(0, |set| set.len().saturating_mul(size_of::<char>()))
}

/// Without white space at its ends, or without the characters of the second argument.
fn trimmed(given: &Arguments<'_>, sides: Sides) -> Value {
    let Some(mut text) = given.text(0) else { return Value::Undefined };
    let characters = given.text(1);
    if given.values.len() > 1 && characters.is_none() {
        return Value::Undefined;
    }
    let set = characters.map(|characters| {
        let mut set: Vec<char> = characters.chars().collect();
        set.sort_unstable();
        set
    });
    let goes = |character: char| match &set {
        Some(set) => set.binary_search(&character).is_ok(),
        None => character.is_whitespace(),
    };
    if sides.left {
        text = text.trim_start_matches(goes);
    }
    if sides.right {
        text = text.trim_end_matches(goes);
    }
    Value::text(text)
}

/// The modifiers of the real service: i, m, s and x.
fn regex_match(given: &Arguments<'_>) -> Result<Value, TooMuchWork> {
    let modifiers = if given.values.len() > 2 { given.text(2) } else { Some("") };
    let (Some(text), Some(pattern), Some(modifiers)) = (given.text(0), given.text(1), modifiers) else {
        return Ok(Value::Undefined);
    };
    if !modifiers.chars().all(|modifier| "imsx".contains(modifier)) {
        return Ok(Value::Undefined);
    }
    let pattern = if modifiers.is_empty() { pattern.to_owned() } else { format!("(?{modifiers}){pattern}") };
    Ok(defined(given.context.matches(&pattern, text)?.map(Value::Bool)))
}

fn concatenated(given: &Arguments<'_>) -> Option<Value> {
    let texts: Vec<&str> = (0..given.values.len()).map(|index| given.text(index)).collect::<Option<_>>()?;
    let length: usize = texts.iter().map(|text| text.len()).sum();
    (length <= MAX_TEXT_BYTES).then(|| Value::Text(texts.concat()))
}

fn replace(given: &Arguments<'_>) -> Option<Value> {
    let (text, part, with) = (given.text(0)?, given.text(1)?, given.text(2)?);
    if part.is_empty() {
        return Some(Value::text(text));
    }
    (replaced_bytes(text, part, with) <= MAX_TEXT_BYTES).then(|| Value::Text(text.replace(part, with)))
}

/// Maximum length of a text after replacements.
fn replaced_bytes(text: &str, part: &str, with: &str) -> usize {
    text.len().saturating_add(text.matches(part).count().saturating_mul(with.len()))
}

fn bytes_of_replaced(given: &Arguments<'_>) -> usize {
    let texts = given.text(0).zip(given.text(1)).zip(given.text(2));
    let bytes = texts.filter(|((_, part), _)| !part.is_empty());
    bytes.map_or(0, |((text, part), with)| replaced_bytes(text, part, with).min(MAX_TEXT_BYTES))
}

fn bytes_of_replicated(given: &Arguments<'_>) -> usize {
    let count = given.whole(1).and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    given.text(0).map_or(0, |text| text.len().saturating_mul(count).min(MAX_TEXT_BYTES))
}

fn bytes_of_joined(given: &Arguments<'_>) -> usize {
    let separators = given.array(0).map_or(0, <[Value]>::len).saturating_mul(given.text(1).map_or(0, str::len));
    separators.min(MAX_TEXT_BYTES)
}

fn bytes_of_split(given: &Arguments<'_>) -> usize {
    let texts = given.text(0).zip(given.text(1)).filter(|(_, separator)| !separator.is_empty());
    texts.map_or(0, |(text, separator)| text.len() + (text.matches(separator).count() + 1) * size_of::<Value>())
}

/// Memory of the value that a JSON text may hold: in `[1,1]` an element has two bytes.
fn bytes_of_read(given: &Arguments<'_>) -> usize {
    given.text(0).map_or(0, |text| text.len().saturating_mul(size_of::<Value>() / 2))
}

fn replicate(given: &Arguments<'_>) -> Option<Value> {
    let (text, count) = (given.text(0)?, given.whole(1)?);
    let count = usize::try_from(count).ok()?;
    (text.len().saturating_mul(count) <= MAX_TEXT_BYTES).then(|| Value::Text(text.repeat(count)))
}

fn join(given: &Arguments<'_>) -> Option<Value> {
    let separator = given.text(1)?;
    let texts: Option<Vec<&str>> = given
        .array(0)?
        .iter()
        .map(|element| match element {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let texts = texts?;
    let length = texts.iter().fold(0_usize, |sum, text| sum.saturating_add(text.len()).saturating_add(separator.len()));
    (length <= MAX_TEXT_BYTES).then(|| Value::Text(texts.join(separator)))
}

/// The JSON value of a text, if it is one of the wanted type.
fn read(given: &Arguments<'_>, wanted: fn(&Value) -> bool) -> Value {
    let value = given.text(0).and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
    defined(value.filter(wanted))
}

#[cfg(test)]
mod tests {
    use crate::sql::functions::tests::check;

    #[test]
    fn texts() {
        check(&[
            ("CONCAT('a', 'b', 'c')", "\"abc\""),
            ("CONCAT('a', 1)", "undefined"),
            ("CONTAINS('abc', 'BC')", "false"),
            ("CONTAINS('abc', 'BC', true)", "true"),
            ("STARTSWITH('abc', 'ab')", "true"),
            ("ENDSWITH('abc', 'b')", "false"),
            ("STRINGEQUALS('a', 'A', true)", "true"),
            ("INDEX_OF('büb', 'b')", "0"),
            ("INDEX_OF('büb', 'b', 1)", "2"),
            ("INDEX_OF('büb', 'x')", "-1"),
            ("INDEX_OF('b', 'b', 9)", "-1"),
            ("LEFT('büb', 2)", "\"bü\""),
            ("RIGHT('büb', 2)", "\"üb\""),
            ("RIGHT('b', -2)", "\"\""),
            ("LENGTH('büb')", "3"),
            ("LENGTH(3)", "undefined"),
            ("UPPER('ab') || LOWER('CD')", "\"ABcd\""),
            ("TRIM('  a ')", "\"a\""),
            ("LTRIM('xxa', 'x') || RTRIM(' a ')", "\"a a\""),
            ("REGEXMATCH('abcd', '^A.*D$', 'i')", "true"),
            ("REGEXMATCH('abcd', '(')", "undefined"),
            ("REPLACE('aXbX', 'X', '--')", "\"a--b--\""),
            ("REPLICATE('ab', 3)", "\"ababab\""),
            ("REPLICATE('ab', 100000000000)", "undefined"),
            ("REVERSE('abü')", "\"üba\""),
            ("STRINGJOIN(['a','b'], '-')", "\"a-b\""),
            ("STRINGSPLIT('a-b', '-')", "[\"a\",\"b\"]"),
            ("SUBSTRING('abcdef', 1, 3)", "\"bcd\""),
            ("SUBSTRING('abc', 5, 3)", "\"\""),
            ("TOSTRING({'a': [1, null]})", "\"{\\\"a\\\":[1,null]}\""),
            ("STRINGTONUMBER(' 1.5 ')", "1.5"),
            ("STRINGTONUMBER('true')", "undefined"),
            ("STRINGTOBOOLEAN('true')", "true"),
            ("STRINGTONULL('null')", "null"),
            ("STRINGTOARRAY('[1]')", "[1]"),
            ("STRINGTOOBJECT('{\"a\":1}').a", "1"),
            ("'abc' LIKE 'a%' AND 'abc' NOT LIKE '_'", "true"),
        ]);
    }
}
