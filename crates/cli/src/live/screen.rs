//! Lines on standard error that renew themselves in place on a terminal; elsewhere a plain line now and then.
//!
//! No line is wider than the terminal. One that was made narrower meanwhile has wrapped what was drawn before; the rows
//! that this takes are reckoned with. Where there are fewer rows than lines, those below are left out.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use narrows_model::printable::is_obeyed;

use crate::stderr;
use crate::wrapping::wrapped;

const PLAIN_EVERY: Duration = Duration::from_secs(5);
const UP_TO_START: &str = "\x1b[F";
const CLEAR_BELOW: &str = "\x1b[J";

/// Columns and rows of the terminal behind standard error, if it is one.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Screen {
    is_terminal: bool,
    /// The widths of the lines that may be replaced.
    drawn: Vec<usize>,
    last_plain: Option<Instant>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), drawn: Vec::new(), last_plain: None }
    }

    /// Columns that a line may take; `None` where nothing is renewed.
    pub(crate) fn width(&self) -> Option<usize> {
        let columns = || terminal_size().map_or(80, |(columns, _)| columns);
        // A character in the last column makes some terminals begin a new row.
        self.is_terminal.then(|| columns().saturating_sub(1))
    }

    /// Shows lines that the next ones may replace.
    pub(crate) fn show(&mut self, lines: &[String]) {
        let Some(width) = self.width() else { return };
        // The cursor stands on a row of its own below.
        let rows = terminal_size().map_or(lines.len(), |(_, rows)| rows.saturating_sub(1)).max(1);
        let lines: Vec<String> = lines.iter().take(rows).map(|line| cut(line, width)).collect();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        stderr::draw(&self.back(), &text);
        self.drawn = lines.iter().map(|line| line.chars().count()).collect();
    }

    /// Writes the same on a line of its own where nothing is renewed, but not every time.
    pub(crate) fn say_now_and_then(&mut self, line: impl FnOnce() -> String) {
        if !self.is_terminal && self.last_plain.is_none_or(|at| at.elapsed() >= PLAIN_EVERY) {
            stderr::say(&line());
            self.last_plain = Some(Instant::now());
        }
    }

    /// Shows a line that another may replace, but that is always printed where nothing is renewed.
    pub(crate) fn phase(&mut self, line: &str) {
        if self.is_terminal {
            self.show(&[line.to_owned()]);
        } else {
            stderr::say(line);
            self.last_plain = Some(Instant::now());
        }
    }

    /// Prints a line that stays, in place of those that are renewed.
    pub(crate) fn keep(&mut self, line: &str) {
        self.clear();
        match self.width() {
            Some(width) => stderr::write(&wrapped(line, width)),
            None => stderr::say(line),
        }
        self.last_plain = None;
    }

    /// Takes the renewed lines away.
    pub(crate) fn clear(&mut self) {
        stderr::draw(&self.back(), "");
        self.drawn.clear();
    }

    /// Escape codes that move the cursor up to the first drawn line and clear the lines.
    fn back(&self) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        let columns = terminal_size().map_or(80, |(columns, _)| columns);
        format!("{}{CLEAR_BELOW}", UP_TO_START.repeat(rows_of(&self.drawn, columns)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Rows that lines of these widths take on a terminal.
fn rows_of(widths: &[usize], columns: usize) -> usize {
    widths.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum()
}

/// A line without control characters, at most so wide.
fn cut(line: &str, width: usize) -> String {
    let clean: Vec<char> = line.chars().filter(|c| !is_obeyed(*c)).collect();
    if clean.len() <= width {
        return clean.into_iter().collect();
    }
    let kept = clean.into_iter().take(width.saturating_sub(1));
    kept.chain(std::iter::once('…').take(width.min(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_width() {
        let cases =
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abcd", 1, "…"), ("ab", 0, ""), ("a\x1b[2Jb\n", 9, "a[2Jb")];
        for (line, width, expected) in cases {
            assert_eq!(cut(line, width), expected);
        }
    }

    #[test]
    fn lines_drawn_on_a_wider_terminal_take_more_rows_on_a_narrow_one() {
        assert_eq!(rows_of(&[0, 10, 79], 80), 3);
        assert_eq!(rows_of(&[0, 10, 79], 40), 4);
        assert_eq!(rows_of(&[10], 0), 10);
    }
}
