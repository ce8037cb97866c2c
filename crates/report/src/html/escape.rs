//! The one way text from outside gets into the page.
//!
//! Escapes for element content and for attribute values in double quotes alike, so no caller has to know which it is.
//! The page's script takes no data from the page's text except through attributes, so nothing is ever written into a
//! `<script>`.

use std::fmt::{self, Display, Write};

use narrows_model::printable::{REPLACEMENT, is_obeyed};

/// Writes text with everything HTML gives a meaning to escaped.
pub(crate) struct Esc<T>(pub(crate) T);

impl<T: AsRef<str>> Display for Esc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.as_ref().chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                c if is_obeyed(c) => f.write_char(REPLACEMENT)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// At most `chars_max` characters, the last an ellipsis when something was cut.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_keeps_a_meaning() {
        let cases = [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a & \"b\" 'c'", "a &amp; &quot;b&quot; &#39;c&#39;"),
            ("\u{0}\u{1b}x\ny", "\u{fffd}\u{fffd}x\ny"),
        ];
        for (text, expected) in cases {
            assert_eq!(Esc(text).to_string(), expected);
        }
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
