//! Reports of one cause by the types and texts of errors, such as `EMFILE`.

use narrows_model::trace::Span;

use super::calls::went_wrong;
use super::errors::{bare_name, exceptions, own_words, says, texts};

/// The words of one cause.
#[derive(Debug)]
pub(crate) struct ErrorWords {
    /// Types of errors, without their packages.
    pub(crate) types: &'static [&'static str],
    /// Texts of errors, lower case, with the name that they are reported by.
    pub(crate) texts: &'static [(&'static str, &'static str)],
    /// Words, lower case, by which the same error is known to have another cause.
    pub(crate) others: &'static [&'static str],
}

impl ErrorWords {
    /// The name of what a span reports, and the text of the error if it has one; `None` if it reports nothing or another
    /// cause.
    pub(crate) fn reported<'s>(&self, span: &'s Span) -> Option<(&'static str, Option<&'s str>)> {
        let failed = went_wrong(span).then_some(span)?;
        let texts: Vec<&str> = texts(failed).collect();
        let words: Vec<String> = texts.iter().map(|text| own_words(text)).collect();
        if words.iter().any(|words| self.others.iter().any(|other| words.contains(other))) {
            return None;
        }
        let mut kinds = exceptions(failed).map(|one| one.kind).chain(failed.facts.error_type.as_deref());
        let by_type = kinds.find_map(|kind| self.types.iter().copied().find(|known| *known == bare_name(kind)));
        let named = |words: &String| self.texts.iter().find(|(text, _)| says(words, text)).map(|(_, name)| *name);
        let name = by_type.or_else(|| words.iter().find_map(named))?;
        Some((name, texts.first().copied()))
    }
}
