//! `parse` and `parse-where`: columns extracted from a text by a pattern, which is compiled to a regular expression.

use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::functions::{of_text, text};
use crate::sql::{Column, Relation, Value, quoted};
use crate::syntax::{Parse, ParseKind, ParsePart};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn parsed(&mut self, relation: Relation, parse: &Parse, place: TextRange) -> Result<Relation, Fault> {
        let mut relation = if parse.is_filter { self.without_limit(relation, place)? } else { relation };
        let value = self.value(&parse.value, Scope::Rows(&relation))?;
        self.no_window(parse.value.place)?;
        let subject = format!("ifnull({}, '')", text(&value));
        let pattern = Pattern::of(parse, place)?;
        let regex = quoted(&pattern.regex);
        if parse.is_filter {
            relation.filters.push(format!("kql_matches({subject}, {regex})"));
        }
        for (name, kind, group) in pattern.columns {
            let found = format!("kql_extract({regex}, {group}, {subject})");
            relation.set(Column { name, value: Value::new(kind, of_text(kind, &found)) });
        }
        self.fenced(relation, place)
    }
}

/// A pattern as a regular expression, and the columns that its groups fill.
struct Pattern {
    regex: String,
    columns: Vec<(String, Type, usize)>,
}

impl Pattern {
    fn of(parse: &Parse, place: TextRange) -> Result<Pattern, Fault> {
        let is_regex = parse.kind == ParseKind::Regex;
        let is_swapped = parse.flags.contains('U');
        let flags = if is_regex { parse.flags.clone() } else { "s".to_owned() };
        let mut regex = if flags.is_empty() { "^".to_owned() } else { format!("(?{flags})^") };
        let (mut columns, mut group) = (Vec::new(), 0);
        for (at, part) in parse.pattern.iter().enumerate() {
            match part {
                ParsePart::Any => {
                    let before = at.checked_sub(1).and_then(|at| parse.pattern.get(at));
                    if let Some(ParsePart::Column(name, Type::Text)) = before {
                        let message =
                            format!("`*` cannot stand behind the string `{}`: where that ends is open", name.text);
                        return Err(Fault::new(name.place, message));
                    }
                    regex.push_str(if is_swapped { ".*" } else { ".*?" });
                }
                ParsePart::Text(text) if is_regex => {
                    group += groups(text);
                    regex.push_str(&format!("(?:{text})"));
                }
                ParsePart::Text(text) => regex.push_str(&escaped(text)),
                ParsePart::Column(name, kind) => {
                    if columns.iter().any(|(other, _, _)| *other == name.text) {
                        return Err(Fault::new(name.place, format!("there are two columns `{}`", name.text)));
                    }
                    group += 1;
                    columns.push((name.text.clone(), *kind, group));
                    let is_last = at + 1 == parse.pattern.len();
                    regex.push_str(&format!("({})", form(parse.kind, *kind, is_last)));
                }
            }
        }
        if regex.len() > super::EXPRESSION_BYTES_MAX {
            return Err(Fault::new(place, "this pattern is too long"));
        }
        Ok(Pattern { regex, columns })
    }
}

/// The regular expression for a value. A type without its own form matches everything up to the next part.
fn form(parse: ParseKind, kind: Type, is_last: bool) -> &'static str {
    match kind {
        Type::Long if parse != ParseKind::Relaxed => r"-?\d+",
        Type::Real if parse != ParseKind::Relaxed => r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?",
        Type::Bool if parse != ParseKind::Relaxed => "(?i:true|false|0|1)",
        _ if is_last || parse == ParseKind::Regex => ".*",
        _ => ".*?",
    }
}

/// A regular expression that matches exactly this text.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Number of capturing groups in a regular expression.
fn groups(regex: &str) -> usize {
    let (mut count, mut is_class) = (0, false);
    let mut rest = regex.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => {
                let after = rest.as_str();
                let is_named = after.starts_with("?P<") || (after.starts_with("?<") && !after.starts_with("?<="));
                count += usize::from(!after.starts_with('?') || is_named);
            }
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_that_count() {
        for (regex, wanted) in [("a", 0), ("(a)(?:b)", 1), (r"\(a[(]", 0), ("(?P<x>a)(?<y>b)(?i)", 2), ("((a))", 2)] {
            assert_eq!(groups(regex), wanted, "{regex}");
        }
    }
}
