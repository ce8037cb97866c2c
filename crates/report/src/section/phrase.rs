//! Text with faces: what stands out in it, what is code, what stands back.

/// A line or a paragraph of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Phrase {
    pub(crate) parts: Vec<(Face, String)>,
}

/// Face of a part of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    Plain,
    Strong,
    Slanted,
    Code,
    Small,
}

impl Phrase {
    /// Text with the parts between backticks as code.
    pub(crate) fn coded(text: &str) -> Self {
        let parts = text.split('`').enumerate();
        parts.fold(
            Self::default(),
            |phrase, (at, part)| if at % 2 == 0 { phrase.plain(part) } else { phrase.code(part) },
        )
    }

    pub(crate) fn plain(self, text: impl Into<String>) -> Self {
        self.part(Face::Plain, text)
    }

    pub(crate) fn strong(self, text: impl Into<String>) -> Self {
        self.part(Face::Strong, text)
    }

    pub(crate) fn slanted(self, text: impl Into<String>) -> Self {
        self.part(Face::Slanted, text)
    }

    pub(crate) fn code(self, text: impl Into<String>) -> Self {
        self.part(Face::Code, text)
    }

    pub(crate) fn small(self, text: impl Into<String>) -> Self {
        self.part(Face::Small, text)
    }

    /// This phrase, and then another.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.parts.extend(other.parts.iter().cloned());
        self
    }

    /// An empty part leaves no trace.
    fn part(mut self, face: Face, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.parts.push((face, text));
        }
        self
    }

    /// The text without faces.
    pub(crate) fn text(&self) -> String {
        self.parts.iter().map(|(_, text)| text.as_str()).collect()
    }
}

impl<T: Into<String>> From<T> for Phrase {
    fn from(text: T) -> Self {
        Self::default().plain(text)
    }
}
