//! A mistake in the text that it is in: name, line and column, the line itself, and a caret below.

/// Where in a text, from 1, in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Characters of a line that are shown at most.
const SHOWN_MAX: usize = 100;
/// Of them, how many before the place.
const BEFORE: usize = 60;

/// `NAME:LINE:COLUMN: what is wrong`, then the line and a caret under the column. Of a long line, the part around it.
pub(super) fn pointed(name: &str, text: &str, place: Position, message: &str) -> String {
    let first = format!("{name}:{}:{}: {message}", place.line, place.column);
    let Some(line) = text.lines().nth(place.line.saturating_sub(1)) else { return first };
    let start = place.column.saturating_sub(1).saturating_sub(BEFORE);
    let shown: String =
        line.chars().skip(start).take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let number = place.line.to_string();
    let (margin, indent) = (" ".repeat(number.len()), " ".repeat(place.column.saturating_sub(1) - start));
    format!("{first}\n {number} | {}\n {margin} | {indent}^", shown.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_column() {
        let text = "let é = 1;\n\trequests | wher x";
        let said = pointed("q.kql", text, Position { line: 2, column: 13 }, "no operator is called `wher`");
        assert_eq!(said, "q.kql:2:13: no operator is called `wher`\n 2 |  requests | wher x\n   |             ^");
        let said = pointed("q.kql", text, Position { line: 3, column: 1 }, "the query ends here");
        assert_eq!(said, "q.kql:3:1: the query ends here");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let text = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let said = pointed("SQL", &text, Position { line: 1, column: 501 }, "no");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[1], format!(" 1 | {}!{}", "a".repeat(60), "b".repeat(39)));
        assert_eq!(lines[2].find('^'), lines[1].find('!'));
    }
}
