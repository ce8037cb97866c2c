//! Colour, wrapping and the removal of what a terminal would obey.
//!
//! Names, queries and messages come from the system under test, so every control character in them is replaced before
//! it can reach a terminal. Width is counted in characters.

use narrows_model::printable;

use super::Color;
use crate::section::Tone;

/// Every control sequence that this module puts around text (ECMA-48, "Select graphic rendition").
pub const SEQUENCES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// Puts ANSI colours around text, or does not.
#[derive(Clone, Copy)]
pub(crate) struct Paint(pub(crate) Color);

impl Paint {
    pub(crate) fn bold(self, text: &str) -> String {
        self.around("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.around("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.around("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.around("32", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.around("33", text)
    }

    /// Text in the colour of its meaning.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Soft => self.dim(text),
            Tone::Strong => self.bold(text),
            Tone::Good => self.green(text),
            Tone::Bad => self.red(text),
            Tone::Doubtful => self.yellow(text),
        }
    }

    fn around(self, code: &str, text: &str) -> String {
        match self.0 {
            Color::Always => format!("\x1b[{code}m{text}\x1b[0m"),
            Color::Never => text.to_owned(),
        }
    }
}

/// Text on one line, without terminal control characters.
pub(crate) fn clean(text: &str) -> String {
    printable::line(text).into_owned()
}

/// Breaks text at spaces so that no line is wider than `width`; a word wider than that is cut. At least one line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let (mut rest, mut length) = (word, word.chars().count());
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        while length > width {
            let (part, tail) = rest.split_at(rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at));
            push(&mut lines, part, 0);
            lines.push(String::new());
            (rest, length) = (tail, length - width);
        }
        push(&mut lines, rest, used);
        used += length + usize::from(used > 0);
    }
    lines
}

fn push(lines: &mut [String], word: &str, used: usize) {
    if let Some(line) = lines.last_mut() {
        if used > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
}

/// Wrapped text behind a label, later lines under the first: `Try        Fetch them together …`.
pub(super) fn hanging(label: &str, painted_label: &str, text: &str, indent: usize, width: usize) -> String {
    let gutter = indent + LABEL_WIDTH;
    let pad = " ".repeat(LABEL_WIDTH.saturating_sub(label.chars().count()));
    let lines = wrap(&clean(text), width.saturating_sub(gutter));
    let between = format!("\n{}", " ".repeat(gutter));
    format!("{}{painted_label}{pad}{}\n", " ".repeat(indent), lines.join(&between))
}

/// The column in which the text behind a label begins.
const LABEL_WIDTH: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_cuts_long_words() {
        let cases: [(&str, usize, &[&str]); 5] = [
            ("", 10, &[""]),
            ("one two three", 7, &["one two", "three"]),
            ("abcdefghij", 4, &["abcd", "efgh", "ij"]),
            ("a abcdefgh b", 4, &["a", "abcd", "efgh", "b"]),
            ("x", 0, &["x"]),
        ];
        for (text, width, expected) in cases {
            assert_eq!(wrap(text, width), expected, "{text:?} at {width}");
        }
    }

    /// This would take hours if the rest of the word were moved for each line.
    #[test]
    fn a_very_long_word_is_cut_in_one_go() {
        const CHARS: usize = 20_000_000;
        let lines = wrap(&"x".repeat(CHARS), 80);
        assert_eq!((lines.len(), lines[0].len()), (CHARS / 80, 80));
    }

    #[test]
    fn control_characters_do_not_survive() {
        assert_eq!(clean("a\x1b[31mb\nc\u{9b}d\u{202e}e"), "a\u{fffd}[31mb c\u{fffd}d\u{fffd}e");
    }
}
