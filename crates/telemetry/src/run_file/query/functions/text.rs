//! Text: comparison without regard to case, in all of Unicode, and parts.

use std::borrow::Cow;

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::arguments::text;
use super::scalar;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_contains", 2, |context| folded(context, |text, part| text.contains(part)))?;
    scalar(connection, "kql_starts_with", 2, |context| folded(context, |text, part| text.starts_with(part)))?;
    scalar(connection, "kql_ends_with", 2, |context| folded(context, |text, part| text.ends_with(part)))?;
    scalar(connection, "kql_equal_ci", 2, |context| folded(context, |text, part| text == part))?;
    scalar(connection, "kql_lower", 1, |context| Ok(text(context, 0).map(|text| text.to_lowercase())))?;
    scalar(connection, "kql_upper", 1, |context| Ok(text(context, 0).map(|text| text.to_uppercase())))?;
    scalar(connection, "kql_split", 2, |context| {
        Ok(text(context, 0).zip(text(context, 1)).map(|(text, by)| split(&text, &by)))
    })
}

/// Compares two texts once the case of their letters is gone.
fn folded(context: &Context<'_>, compare: fn(&str, &str) -> bool) -> Result<Option<bool>> {
    let both = text(context, 0).zip(text(context, 1));
    Ok(both.map(|(text, part)| compare(&fold(&text), &fold(&part))))
}

/// Text without case: lower case, letter by letter.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    let is_folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_folded { text.into() } else { text.chars().flat_map(char::to_lowercase).collect() }
}

/// The parts between separators, as JSON. Without a separator, the text is the only part.
fn split(text: &str, by: &str) -> String {
    // Part by part: a list of them would take many times the memory of the text.
    let mut json = String::from("[");
    let mut push = |part: &str| {
        json.push_str(if json.len() > 1 { "," } else { "" });
        json.push_str(&serde_json::Value::from(part).to_string());
    };
    if by.is_empty() {
        push(text)
    } else {
        text.split(by).for_each(push)
    }
    json + "]"
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn case_does_not_matter_in_any_script() {
        check(&[
            ("kql_contains('GET /Orders', 'orders')", "1"),
            ("kql_contains('ÄPFEL', 'äpf')", "1"),
            ("kql_contains('abc', '')", "1"),
            ("kql_contains('abc', 'd')", "0"),
            ("kql_contains(NULL, 'd')", "NULL"),
            ("kql_contains(4290, '29')", "1"),
            ("kql_starts_with('GET /x', 'get')", "1"),
            ("kql_starts_with('xGET', 'get')", "0"),
            ("kql_ends_with('GET /X', '/x')", "1"),
            ("kql_equal_ci('Straße', 'STRAßE')", "1"),
            ("kql_equal_ci('a', 'b')", "0"),
            ("kql_equal_ci('a', NULL)", "NULL"),
            ("kql_lower('ÀB')", "àb"),
            ("kql_upper('àb')", "ÀB"),
        ]);
    }

    #[test]
    fn parts_are_a_json_array() {
        check(&[
            ("kql_split('aa_bb', '_')", r#"["aa","bb"]"#),
            ("kql_split('', '_')", r#"[""]"#),
            ("kql_split('a__b', '_')", r#"["a","","b"]"#),
            ("kql_split('aabbcc', 'bb')", r#"["aa","cc"]"#),
            ("kql_split('a\"b', '')", r#"["a\"b"]"#),
            ("kql_split(NULL, '_')", "NULL"),
        ]);
    }
}
