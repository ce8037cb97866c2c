//! Effect of a change on one span.

/// Treatment of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Treatment {
    /// When it starts.
    pub(crate) start: Start,
    /// The factor on the wait between what it started after and its start: 1 keeps it, 0 leaves none.
    pub(crate) gap: f64,
    /// How long it is.
    pub(crate) length: Length,
    /// The factor on its own time: what passes in it outside its children, their gaps included.
    pub(crate) own: f64,
}

/// When a span starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// After all siblings that had ended before it.
    InOrder,
    /// Together with this sibling, which started earlier.
    With(usize),
    /// After this sibling alone, which started earlier.
    After(usize),
}

/// How long a span is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Length {
    /// As long as what is in it.
    OfContent,
    /// So long, nanoseconds, whatever is in it.
    Fixed(f64),
}

impl Default for Treatment {
    fn default() -> Self {
        Self { start: Start::InOrder, gap: 1.0, length: Length::OfContent, own: 1.0 }
    }
}

impl Treatment {
    /// It is gone, with all below it. What its parent did before it stays.
    pub(crate) fn gone() -> Self {
        Self { length: Length::Fixed(0.0), ..Self::default() }
    }

    /// Treatment of a span by two changes together. Where both say when it starts, the first one does.
    pub(crate) fn and(self, other: Self) -> Self {
        let length = match (self.length, other.length) {
            (Length::Fixed(one), Length::Fixed(other)) => Length::Fixed(one.min(other)),
            (fixed @ Length::Fixed(_), _) | (_, fixed) => fixed,
        };
        let start = if self.start == Start::InOrder { other.start } else { self.start };
        Self { start, gap: self.gap * other.gap, length, own: self.own * other.own }
    }

    /// It is gone, with all below it and with the time before it.
    pub(crate) fn gone_with_gap() -> Self {
        Self { gap: 0.0, ..Self::gone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_is_gone_stays_gone_with_another_change() {
        let half = Treatment { own: 0.5, start: Start::With(1), ..Treatment::default() };
        for both in [half.and(Treatment::gone_with_gap()), Treatment::gone_with_gap().and(half)] {
            assert_eq!((both.length, both.gap, both.own), (Length::Fixed(0.0), 0.0, 0.5));
            assert_eq!(both.start, Start::With(1));
        }
    }
}
