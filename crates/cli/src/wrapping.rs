//! Lines as wide as a terminal: broken at spaces rather than within words, which is what terminals do.

/// A text with each line wrapped by [`wrapped`]; unchanged without a width.
pub(crate) fn wrapped_to(text: &str, width: Option<usize>) -> String {
    match width {
        Some(width) => text.lines().map(|line| wrapped(line, width)).collect(),
        None => text.to_owned(),
    }
}

/// A line and a line feed; where it is wider than `width`, broken at spaces, the rest below the first word after a label.
pub(crate) fn wrapped(line: &str, width: usize) -> String {
    const INDENT: usize = 2;
    let led = line.len() - line.trim_start().len();
    let label = line.find(":  ").map_or(led.max(INDENT), |at| {
        let after = &line[at + 1..];
        line[..=at].chars().count() + after.chars().take_while(|c| *c == ' ').count()
    });
    let mut out = String::new();
    let mut rest = line;
    let mut indent = 0;
    while rest.chars().count() + indent > width {
        let room = rest.char_indices().nth(width.saturating_sub(indent) + 1).map_or(rest.len(), |(at, _)| at);
        // A line is not broken within its indent and label.
        let least = if indent == 0 { label } else { 0 };
        let Some(at) = rest[..room].rfind(' ').filter(|at| *at > least) else { break };
        out += &format!("{:indent$}{}\n", "", rest[..at].trim_end());
        (rest, indent) = (rest[at..].trim_start(), label);
    }
    out + &format!("{:indent$}{rest}\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces_below_their_first_word() {
        assert_eq!(wrapped("short", 10), "short\n");
        assert_eq!(wrapped("Validity: one two three", 15), "Validity: one\n  two three\n");
        assert_eq!(wrapped("  Model:   one two three", 17), "  Model:   one\n           two\n           three\n");
        assert_eq!(wrapped("  Model:   http://127.0.0.1/", 17), "  Model:   http://127.0.0.1/\n");
        assert_eq!(wrapped("     ab cd", 8), "     ab\n     cd\n");
        assert_eq!(wrapped("ab cd", 5), "ab cd\n");
        assert_eq!(wrapped("ab cd", 0), "ab cd\n");
        assert_eq!(wrapped("■ ■ ■ ■", 4), "■ ■\n  ■\n  ■\n");
    }
}
