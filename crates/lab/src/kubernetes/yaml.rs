//! Writes values as YAML that people read and change: block style, keys in their order, quotes only where YAML needs them.

use std::fmt::Write;

use serde_json::Value;

/// Words that YAML reads as something other than a text, in any case.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// Several documents, with `---` between them.
pub(super) fn documents(values: &[Value]) -> String {
    let written = values.iter().map(|value| {
        let mut text = String::new();
        block(value, 0, &mut text);
        text
    });
    written.collect::<Vec<_>>().join("---\n")
}

/// Writes a value as lines of their own, from a column on.
fn block(value: &Value, column: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                indent(column, text);
                text.push_str(&scalar(key));
                text.push(':');
                // A list may begin in the column of its key.
                entry(value, if value.is_array() { column } else { column + 2 }, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(column, text);
                text.push('-');
                item_of_list(item, column + 2, text);
            }
        }
        other => {
            indent(column, text);
            let _ = writeln!(text, "{}", flow(other));
        }
    }
}

/// Writes the value of a key behind its colon.
fn entry(value: &Value, column: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            block(value, column, text);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            block(value, column, text);
        }
        Value::String(lines) if is_block(lines) => {
            text.push_str(if lines.ends_with('\n') { " |\n" } else { " |-\n" });
            for line in lines.lines() {
                if !line.is_empty() {
                    indent(column, text);
                }
                let _ = writeln!(text, "{line}");
            }
        }
        other => {
            let _ = writeln!(text, " {}", flow(other));
        }
    }
}

/// Writes an item behind its dash: a map begins on the same line.
fn item_of_list(item: &Value, column: usize, text: &mut String) {
    match item {
        Value::Object(map) if !map.is_empty() => {
            let mut lines = String::new();
            block(item, column, &mut lines);
            text.push(' ');
            text.push_str(&lines[column..]);
        }
        other => entry(other, column, text),
    }
}

/// Whether a text is written as a YAML block: it has several lines, and YAML reads them back unchanged.
fn is_block(text: &str) -> bool {
    let is_plain = |line: &str| !line.contains(|c: char| c.is_control() && c != '\t') && !line.ends_with(' ');
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
        && text.lines().all(is_plain)
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // Of a list or a map, only an empty one comes here.
        other => other.to_string(),
    }
}

fn scalar(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./=$(),+".contains(c) || c == ':' || c == ' ';
    let begins_safely = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '$')
        || text.starts_with("--") && text.len() > 3;
    let is_word = WORDS.contains(&text.to_ascii_lowercase().as_str());
    let has_mark = text.contains(": ") || text.contains(" #") || text.ends_with([':', ' ']);
    if begins_safely && !is_word && !has_mark && text.chars().all(is_safe) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

fn indent(column: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', column));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_in_blocks_and_texts_in_quotes_where_yaml_needs_them() {
        let value = json!({
            "a": { "b": [1, "two", { "c": true, "d": ["x"] }, {}], "e": {} },
            "f": "one\n\n two\n",
            "g": ["--port", "8080", "on", "a: b", "#", "", "- x", "$(NAME)", "http://a:1", "é", "1e3", "---"],
            "h/i": "last\nwithout end",
            "j": "ends in space \nx",
        });
        let expected = "\
a:
  b:
  - 1
  - two
  - c: true
    d:
    - x
  - {}
  e: {}
f: |
  one

   two
g:
- --port
- \"8080\"
- \"on\"
- \"a: b\"
- \"#\"
- \"\"
- \"- x\"
- $(NAME)
- http://a:1
- \"é\"
- \"1e3\"
- \"---\"
h/i: |-
  last
  without end
j: \"ends in space \\nx\"
";
        assert_eq!(documents(&[value]), expected);
        assert_eq!(documents(&[json!({"a": 1}), json!({"b": []})]), "a: 1\n---\nb: []\n");
    }
}
