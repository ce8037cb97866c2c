//! KQL's `has`, `hasprefix` and `hassuffix`: search for a term in a text. Terms are separated by characters that are
//! neither letters nor digits.

use rusqlite::{Connection, Result};

use super::FLAGS;
use super::arguments::text;
use super::text::fold;

pub(super) fn register(connection: &Connection) -> Result<()> {
    let all = [("kql_has", Ends::BOTH), ("kql_has_prefix", Ends::START), ("kql_has_suffix", Ends::END)];
    for (name, ends) in all {
        connection.create_scalar_function(name, 2, FLAGS, move |context| {
            let pair = text(context, 0).zip(text(context, 1));
            Ok(pair.map(|(text, term)| has(&fold(&text), &fold(&term), ends)))
        })?;
        connection.create_scalar_function(format!("{name}_cs").as_str(), 2, FLAGS, move |context| {
            Ok(text(context, 0).zip(text(context, 1)).map(|(text, term)| has(&text, &term, ends)))
        })?;
    }
    Ok(())
}

/// The ends of the searched text at which a term must also end.
#[derive(Clone, Copy)]
struct Ends {
    start: bool,
    end: bool,
}

impl Ends {
    const BOTH: Ends = Ends { start: true, end: true };
    const START: Ends = Ends { start: true, end: false };
    const END: Ends = Ends { start: false, end: true };
}

/// Whether `text` contains `term` with a boundary at the given ends. A term that itself begins or ends with a separator
/// needs no other boundary there. Every text contains the empty term. Occurrences may overlap.
fn has(text: &str, term: &str, ends: Ends) -> bool {
    let (Some(first), Some(last)) = (term.chars().next(), term.chars().next_back()) else { return true };
    let mut from = 0;
    while let Some(at) = text[from..].find(term).map(|at| at + from) {
        let before = text[..at].chars().next_back();
        let after = text[at + term.len()..].chars().next();
        if (!ends.start || is_boundary(before, first)) && (!ends.end || is_boundary(after, last)) {
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
            ("kql_has_prefix('North America', 'AME')", "1"),
            ("kql_has_prefix('NorthAmerica', 'ame')", "0"),
            ("kql_has_prefix_cs('North America', 'ame')", "0"),
            ("kql_has_prefix_cs('North America', 'Ame')", "1"),
            ("kql_has_suffix('North America', 'ORTH')", "1"),
            ("kql_has_suffix('Northern', 'north')", "0"),
            ("kql_has_suffix_cs('North America', 'North')", "1"),
            ("kql_has_suffix_cs('North America', 'NORTH')", "0"),
        ]);
    }
}
