//! Fault of a query, and its place.
//!
//! Inside the crate a fault carries a place in bytes; the one step from there to a line and a column is here. The first
//! fault ends the compilation: a second one is nearly always its consequence.

/// Fault of a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Mistake {
    /// Fault, with the word.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// Advice, if there is any.
    pub hint: Option<String>,
}

/// A range of the query's text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl TextRange {
    /// From the start of this one to the end of the other.
    pub(crate) fn to(self, other: TextRange) -> TextRange {
        TextRange { start: self.start, end: other.end.max(self.start) }
    }
}

/// A mistake whose place is still in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: TextRange,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(place: TextRange, message: impl Into<String>) -> Fault {
        Fault { place, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// Adds "did you mean" when one of the known names is near.
    pub(crate) fn near<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Fault {
        match nearest(name, known) {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// The mistake in the text in which the place counts.
    pub(crate) fn in_text(self, text: &str) -> Mistake {
        let (line, column) = line_and_column(text, self.place.start);
        Mistake { message: self.message, line, column, hint: self.hint }
    }
}

/// The known name that is most like this one, if any is like it at all. Case does not count.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
    let (near, apart) = known.into_iter().map(|it| (it, distance(it))).min_by_key(|(_, apart)| *apart)?;
    let length = wanted.chars().count();
    (apart <= length.div_ceil(3).min(3) && apart < length).then_some(near)
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or(before);
    (line, last.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_reported_in_lines_and_characters() {
        let text = "let é = 1;\nlet ü";
        for (offset, wanted) in [(0, (1, 1)), (6, (1, 6)), (text.len(), (2, 6)), (9999, (2, 6))] {
            assert_eq!(line_and_column(text, offset), wanted, "offset {offset}");
        }
    }

    #[test]
    fn only_a_name_that_is_near_is_proposed() {
        let known = ["summarize", "where", "project", "top"];
        for (name, wanted) in [
            ("sumarize", Some("summarize")),
            ("WHERE", Some("where")),
            ("summarise", Some("summarize")),
            ("banana", None),
            ("x", None),
            ("tpo", Some("top")),
        ] {
            assert_eq!(nearest(name, known), wanted, "{name}");
        }
    }
}
