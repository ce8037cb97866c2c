//! KQL's `has`: a whole term within text, where terms are what stands between characters that are neither letters nor
//! digits.

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::arguments::text;
use super::scalar;
use super::text::fold;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_has", 2, |context| Ok(both(context).map(|(text, term)| has(&fold(&text), &fold(&term)))))?;
    scalar(connection, "kql_has_cs", 2, |context| Ok(both(context).map(|(text, term)| has(&text, &term))))
}

fn both(context: &Context<'_>) -> Option<(String, String)> {
    text(context, 0).zip(text(context, 1)).map(|(text, term)| (text.into_owned(), term.into_owned()))
}

/// Whether `term` stands in `text` with a boundary on both sides. A term that itself begins or ends with a separator
/// brings that boundary along. The empty term is everywhere. Occurrences may overlap.
fn has(text: &str, term: &str) -> bool {
    let (Some(first), Some(last)) = (term.chars().next(), term.chars().next_back()) else { return true };
    let mut from = 0;
    while let Some(at) = text[from..].find(term).map(|at| at + from) {
        let before = text[..at].chars().next_back();
        let after = text[at + term.len()..].chars().next();
        if is_boundary(before, first) && is_boundary(after, last) {
            return true;
        }
        from = at + first.len_utf8();
    }
    false
}

fn is_boundary(outside: Option<char>, inside: char) -> bool {
    !inside.is_alphanumeric() || !outside.is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn a_term_is_whole() {
        check(&[
            ("kql_has('North America', 'america')", "1"),
            ("kql_has('NorthAmerica', 'america')", "0"),
            ("kql_has('north_america', 'america')", "1"),
            ("kql_has('GET /orders/7', 'orders')", "1"),
            ("kql_has('GET /orders/7', '/orders')", "1"),
            ("kql_has('GET /orders/7', 'order')", "0"),
            ("kql_has('reorders orders', 'orders')", "1"),
            ("kql_has('x.x.xy', 'x.x')", "1"),
            ("kql_has('ax.x.x', 'x.x')", "1"),
            ("kql_has('été', 't')", "0"),
            ("kql_has('anything', '')", "1"),
            ("kql_has(NULL, 'a')", "NULL"),
            ("kql_has_cs('North America', 'america')", "0"),
            ("kql_has_cs('North America', 'America')", "1"),
        ]);
    }
}
