//! One line of an exposition: a sample, or what is said about a family of samples.
//!
//! Lenient where exporters differ (white space, the order of things, names in quotes), strict where a guess would make
//! up a value. Works on borrowed text and copies only names, labels and values that have an end.

use std::collections::BTreeMap;

/// The most labels of a sample.
pub(super) const LABELS_MAX: usize = 64;

/// A sample as it stands there.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
    /// The text of its time, whose unit the format decides.
    pub(super) time: Option<String>,
}

/// Meaning of a comment.
#[derive(Debug, PartialEq)]
pub(super) enum About<'a> {
    Type(&'a str, &'a str),
    Unit(&'a str, &'a str),
    End,
    Nothing,
}

/// Reads what follows a `#`.
pub(super) fn about(comment: &str) -> About<'_> {
    let mut words = comment.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("TYPE"), Some(name), Some(kind)) => About::Type(unquoted(name), kind),
        (Some("UNIT"), Some(name), Some(unit)) => About::Unit(unquoted(name), unit),
        (Some("EOF"), None, None) => About::End,
        _ => About::Nothing,
    }
}

fn unquoted(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// Reads a sample.
///
/// # Errors
/// In words, when it is not one.
pub(super) fn sample(line: &str) -> Result<Sample, &'static str> {
    let mut rest = Cursor { text: line };
    rest.skip_space();
    let mut name = rest.name();
    rest.skip_space();
    let mut labels = BTreeMap::new();
    if rest.take('{') {
        rest.labels(&mut name, &mut labels)?;
    }
    if name.is_empty() {
        name = labels.remove("__name__").unwrap_or_default();
    }
    if name.is_empty() {
        return Err("it has no name");
    }
    let value = rest.word().ok_or("it has no value")?;
    let value = value.parse::<f64>().map_err(|_| "its value is not a number")?;
    let time = rest.word().filter(|word| !word.starts_with('#'));
    let after = if time.is_some() { rest.word() } else { None };
    if after.is_some_and(|word| !word.starts_with('#')) {
        return Err("something follows its time");
    }
    Ok(Sample { name, labels, value, time: time.map(str::to_owned) })
}

struct Cursor<'a> {
    text: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        self.text = self.text.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, expected: char) -> bool {
        match self.text.strip_prefix(expected) {
            Some(rest) => {
                self.text = rest;
                true
            }
            None => false,
        }
    }

    /// Letters, digits, `_`, `:` and `.`, which some exporters write without quotes.
    fn name(&mut self) -> String {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.');
        let end = self.text.find(|c| !is_of_name(c)).unwrap_or(self.text.len());
        let (name, rest) = self.text.split_at(end);
        self.text = rest;
        name.to_owned()
    }

    /// The text up to white space; none at the end.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_space();
        let end = self.text.find([' ', '\t']).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        self.text = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Text between braces; a quoted name without a value is that of the metric.
    fn labels(&mut self, name: &mut String, labels: &mut BTreeMap<String, String>) -> Result<(), &'static str> {
        loop {
            self.skip_space();
            if self.take('}') {
                return Ok(());
            }
            let is_quoted = self.text.starts_with('"');
            let label = if is_quoted { self.quoted()? } else { self.name() };
            self.skip_space();
            if self.take('=') {
                self.skip_space();
                let value = self.quoted()?;
                if labels.len() >= LABELS_MAX {
                    return Err("it has more labels than are taken");
                }
                labels.insert(label, value);
            } else if is_quoted && name.is_empty() {
                *name = label;
            } else {
                return Err("a label has no value");
            }
            self.skip_space();
            if !self.take(',') && !self.text.starts_with('}') {
                return Err("its labels do not end");
            }
        }
    }

    fn quoted(&mut self) -> Result<String, &'static str> {
        if !self.take('"') {
            return Err("a label's value is not in quotes");
        }
        let mut out = String::new();
        let mut characters = self.text.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.text = &self.text[at + 1..];
                    return Ok(out);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, c @ ('"' | '\\'))) => out.push(c),
                    // As Prometheus reads it: an unknown escape is two characters.
                    Some((_, c)) => out.extend(['\\', c]),
                    None => break,
                },
                c => out.push(c),
            }
        }
        Err("a quote does not end")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (String, Vec<(String, String)>, f64, Option<String>) {
        let Sample { name, labels, value, time } = sample(line).unwrap();
        (name, labels.into_iter().collect(), value, time)
    }

    fn pairs(labels: &[(&str, &str)]) -> Vec<(String, String)> {
        labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn samples_are_read_as_exporters_write_them() {
        let time = |text: &str| Some(text.to_owned());
        let cases = [
            ("up 1", "up", pairs(&[]), 1.0, None),
            ("  up\t1.5e3  1395066363000 ", "up", pairs(&[]), 1500.0, time("1395066363000")),
            ("a{} 2", "a", pairs(&[]), 2.0, None),
            (r#"a{b="c",} -3"#, "a", pairs(&[("b", "c")]), -3.0, None),
            (r#"a { b = "c" , d = "e" } 4"#, "a", pairs(&[("b", "c"), ("d", "e")]), 4.0, None),
            (r#"a{path="C:\\D\n\"x\" \q"} 5"#, "a", pairs(&[("path", "C:\\D\n\"x\" \\q")]), 5.0, None),
            (r#"{"http.server.duration",b="é"} 6"#, "http.server.duration", pairs(&[("b", "é")]), 6.0, None),
            (
                r#"a_total 7 1520879607.789 # {trace_id="x"} 0.67 1.0"#,
                "a_total",
                pairs(&[]),
                7.0,
                time("1520879607.789"),
            ),
            (r#"a_total 8 # {trace_id="x"} 0.67"#, "a_total", pairs(&[]), 8.0, None),
        ];
        for (line, name, labels, value, time) in cases {
            assert_eq!(read(line), (name.to_owned(), labels, value, time), "{line}");
        }
        assert_eq!(sample("a +Inf").unwrap().value, f64::INFINITY);
        assert!(sample("a NaN").unwrap().value.is_nan());
    }

    #[test]
    fn what_is_no_sample_is_said() {
        let cases = [
            ("", "it has no name"),
            ("a", "it has no value"),
            ("a b", "its value is not a number"),
            ("<html>", "it has no name"),
            ("a{b} 1", "a label has no value"),
            ("a{b=c} 1", "a label's value is not in quotes"),
            (r#"a{b="c 1"#, "a quote does not end"),
            (r#"a{b="c\"#, "a quote does not end"),
            (r#"a{b="c" d="e"} 1"#, "its labels do not end"),
            ("a{", "a label has no value"),
            ("a 1 2 3", "something follows its time"),
        ];
        for (line, expected) in cases {
            assert_eq!(sample(line).unwrap_err(), expected, "{line}");
        }
        let many: String = (0..=LABELS_MAX).map(|n| format!("l{n}=\"\",")).collect();
        assert_eq!(sample(&format!("a{{{many}}} 1")).unwrap_err(), "it has more labels than are taken");
    }

    #[test]
    fn comments_tell_of_families() {
        let cases = [
            (" TYPE a_total counter", About::Type("a_total", "counter")),
            (" TYPE \"a.b\" gauge", About::Type("a.b", "gauge")),
            ("\tUNIT a_seconds seconds", About::Unit("a_seconds", "seconds")),
            (" EOF", About::End),
            (" HELP a what it is", About::Nothing),
            ("", About::Nothing),
        ];
        for (comment, expected) in cases {
            assert_eq!(about(comment), expected, "{comment}");
        }
    }
}
