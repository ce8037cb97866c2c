//! LIKE: `%` for any text, `_` for one character, `[abc]`, `[a-c]` and `[^…]` for one of several.

/// Whether all of `text` follows `pattern`. The time is at most the product of their lengths.
pub(super) fn matches(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let pieces = pieces(pattern, escape);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut piece) = (0, 0);
    // Where to go on after the last % if the rest does not fit: the piece after it and the next character it takes.
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                retry = Some((piece + 1, at));
                piece += 1;
                continue;
            }
            Some(Piece::One(one)) if one.accepts(text[at]) => {
                at += 1;
                piece += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, taken)) = retry else { return false };
        retry = Some((after, taken + 1));
        (piece, at) = (after, taken + 1);
    }
    pieces[piece..].iter().all(|piece| matches!(piece, Piece::Any))
}

enum Piece {
    Any,
    One(One),
}

enum One {
    Character(char),
    All,
    Set { ranges: Vec<(char, char)>, negated: bool },
}

impl One {
    fn accepts(&self, character: char) -> bool {
        match self {
            Self::Character(own) => *own == character,
            Self::All => true,
            Self::Set { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

fn pieces(pattern: &str, escape: Option<char>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    // After it each [ is literal; a search for its end each time would take quadratic time.
    let last_end = pattern.rfind(']');
    while let Some(first) = rest.chars().next() {
        let tail = &rest[first.len_utf8()..];
        rest = tail;
        let one = match first {
            _ if Some(first) == escape => match tail.chars().next() {
                Some(escaped) => {
                    rest = &tail[escaped.len_utf8()..];
                    One::Character(escaped)
                }
                None => One::Character(first),
            },
            '%' => {
                pieces.push(Piece::Any);
                continue;
            }
            '_' => One::All,
            '[' if last_end.is_none_or(|end| pattern.len() - tail.len() > end) => One::Character('['),
            '[' => match tail.find(']') {
                Some(end) => {
                    rest = &tail[end + 1..];
                    set(&tail[..end])
                }
                None => One::Character('['),
            },
            _ => One::Character(first),
        };
        pieces.push(Piece::One(one));
    }
    pieces
}

fn set(members: &str) -> One {
    let negated = members.starts_with('^');
    let members: Vec<char> = members.trim_start_matches('^').chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
            ranges.push((members[at], members[at + 2]));
            at += 3;
        } else {
            ranges.push((members[at], members[at]));
            at += 1;
        }
    }
    One::Set { ranges, negated }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (text, pattern) in [
            ("", ""),
            ("", "%"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "%b%"),
            ("abc", "a_c"),
            ("aXbXc", "a%b%c"),
            ("b", "[a-c]"),
            ("x", "[^a-c]"),
            ("-", "[a-]"),
        ] {
            assert!(matches(text, pattern, None), "{text:?} {pattern:?}");
        }
        for (text, pattern) in
            [("", "_"), ("abc", "b%"), ("abc", "a"), ("abc", "a_"), ("aab", "%aa"), ("d", "[a-c]"), ("a", "[^a]")]
        {
            assert!(!matches(text, pattern, None), "{text:?} {pattern:?}");
        }
        assert!(matches("10%", "10!%", Some('!')));
        assert!(!matches("10x", "10!%", Some('!')));
        assert!(matches("é_", "_!_", Some('!')));
    }
}
