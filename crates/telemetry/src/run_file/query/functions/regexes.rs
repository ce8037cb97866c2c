//! Regular expressions: match, extract, replace. Their syntax is that of the crate `regex`, which like KQL's is RE2's.
//!
//! An expression is compiled once for a query when it is a constant, and never takes more than [`COMPILED_BYTES_MAX`]:
//! matching takes time in proportion to the text.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::super::session::VALUE_BYTES_MAX;
use super::arguments::{integer, text};
use super::{scalar, wrong};

/// Maximum size of a compiled expression, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_matches", 2, matches)?;
    scalar(connection, "kql_extract", 3, extract)?;
    scalar(connection, "kql_replace_regex", 3, replace)
}

fn matches(context: &Context<'_>) -> Result<Option<bool>> {
    let Some(text) = text(context, 0) else { return Ok(None) };
    Ok(regex(context, 1)?.map(|regex| regex.is_match(&text)))
}

/// Match of a group. Nothing is empty text: KQL's strings have no null.
fn extract(context: &Context<'_>) -> Result<Option<String>> {
    let (Some(regex), Some(group), Some(text)) = (regex(context, 0)?, integer(context, 1), text(context, 2)) else {
        return Ok(None);
    };
    let found = usize::try_from(group).ok().and_then(|group| regex.captures(&text)?.get(group));
    Ok(Some(found.map_or_else(String::new, |found| found.as_str().to_owned())))
}

fn replace(context: &Context<'_>) -> Result<Option<String>> {
    let (Some(text), Some(regex), Some(with)) = (text(context, 0), regex(context, 1)?, text(context, 2)) else {
        return Ok(None);
    };
    let with = replacement(&with);
    let (mut out, mut from) = (String::new(), 0);
    for captures in regex.captures_iter(&text) {
        let found = captures.get_match();
        out.push_str(&text[from..found.start()]);
        captures.expand(&with, &mut out);
        from = found.end();
        if out.len() > VALUE_BYTES_MAX as usize {
            return Err(wrong("string or blob too big"));
        }
    }
    out.push_str(&text[from..]);
    Ok(Some(out))
}

/// KQL writes `\1` for a group and `$` for itself; the crate writes `${1}` and `$$`.
fn replacement(kql: &str) -> String {
    let mut out = String::with_capacity(kql.len());
    let mut rest = kql.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                out.push_str(&format!("${{{digit}}}"));
                rest.next();
            }
            ('\\', Some('\\')) => {
                out.push('\\');
                rest.next();
            }
            ('$', _) => out.push_str("$$"),
            _ => out.push(c),
        }
    }
    out
}

/// The expression at a place; `None` if it is NULL.
fn regex(context: &Context<'_>, at: usize) -> Result<Option<Arc<Regex>>> {
    if matches!(context.get_raw(at), ValueRef::Null) {
        return Ok(None);
    }
    let Some(source) = text(context, at) else { return Ok(None) };
    let compiled = context.get_or_create_aux(at as i32, |_| {
        RegexBuilder::new(&source).size_limit(COMPILED_BYTES_MAX).build().map_err(|error| error.to_string())
    });
    compiled.map(Some).map_err(|error| wrong(format!("`{source}` is no regular expression: {error}")))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cell, check, connection};

    #[test]
    fn expressions_match_a_part() {
        check(&[
            ("kql_matches('GET /orders/7', '/orders/[0-9]+$')", "1"),
            ("kql_matches('GET /orders/x', '/orders/[0-9]+$')", "0"),
            ("kql_matches(NULL, 'a')", "NULL"),
            ("kql_matches('a', NULL)", "NULL"),
            ("kql_extract('x=([0-9.]+)', 1, 'hello x=45.6|wo')", "45.6"),
            ("kql_extract('x=([0-9.]+)', 0, 'hello x=45.6|wo')", "x=45.6"),
            ("kql_extract('x=([0-9.]+)', 1, 'hello')", ""),
            ("kql_extract('x=([0-9.]+)', 7, 'x=1')", ""),
            ("kql_extract('x', -1, 'x')", ""),
            ("kql_extract('x', 0, NULL)", "NULL"),
            (r"kql_replace_regex('Number is 1', 'is (\d+)', 'was: \1')", "Number was: 1"),
            (r"kql_replace_regex('a1', '[0-9]', '$\0\\')", r"a$1\"),
        ]);
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        let connection = connection();
        let said = cell(&connection, "SELECT kql_matches('a', '(')");
        assert!(said.starts_with("error: `(` is no regular expression: "), "{said}");
        let said = cell(&connection, "SELECT kql_matches('a', '(\\w{500}){500}')");
        assert!(said.contains("size limit"), "{said}");
        let huge = "SELECT kql_replace_regex(hex(zeroblob(100000)), '0', hex(zeroblob(5000)))";
        assert_eq!(cell(&connection, huge), "error: string or blob too big");
    }
}
