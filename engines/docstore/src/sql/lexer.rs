//! Cuts a query into tokens, each with the byte it begins at. Comments from `--` to the end of a line are skipped.

/// One token of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Word(String),
    /// With its `@`.
    Parameter(String),
    Text(String),
    Number(f64),
    Symbol(&'static str),
    /// Characters that begin no token, or a token that does not end.
    Unknown(String),
    End,
}

/// Longer symbols stand before the shorter ones that they begin with.
const SYMBOLS: [&str; 31] = [
    ">>>", "<<", ">>", "<=", ">=", "<>", "!=", "||", "??", "*", "=", "<", ">", "+", "-", "/", "%", "&", "|", "^", "~",
    ".", ",", ":", "?", "(", ")", "[", "]", "{", "}",
];

/// The tokens still to come.
pub(super) struct Lexer<'a> {
    query: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(query: &'a str) -> Self {
        Self { query, at: 0 }
    }

    /// The next token and the byte it begins at; [`Token::End`] for ever after the last.
    pub(super) fn next(&mut self) -> (usize, Token) {
        self.skip();
        let begin = self.at;
        let Some(first) = self.rest().chars().next() else { return (begin, Token::End) };
        let token = match first {
            '\'' | '"' => self.text(first),
            '@' => {
                self.at += 1;
                let name = self.take(in_word);
                if name.is_empty() { Token::Unknown("@".to_owned()) } else { Token::Parameter(format!("@{name}")) }
            }
            '0'..='9' => self.number(),
            '.' if self.rest()[1..].starts_with(|digit: char| digit.is_ascii_digit()) => self.number(),
            _ if in_word(first) => Token::Word(self.take(in_word).to_owned()),
            _ => self.symbol(first),
        };
        (begin, token)
    }

    /// Passes over spaces and comments.
    fn skip(&mut self) {
        self.take(char::is_whitespace);
        while self.rest().starts_with("--") {
            self.take(|character| character != '\n');
            self.take(char::is_whitespace);
        }
    }

    fn symbol(&mut self, first: char) -> Token {
        match SYMBOLS.into_iter().find(|symbol| self.rest().starts_with(symbol)) {
            Some(symbol) => {
                self.at += symbol.len();
                Token::Symbol(symbol)
            }
            None => {
                self.at += first.len_utf8();
                Token::Unknown(first.to_string())
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.query[self.at..]
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn number(&mut self) -> Token {
        let begin = self.at;
        self.take(|character| character.is_ascii_alphanumeric() || character == '.');
        // The sign of an exponent: 1e-3.
        if self.query[begin..self.at].ends_with(['e', 'E']) && self.rest().starts_with(['-', '+']) {
            self.at += 1;
            self.take(|character| character.is_ascii_alphanumeric());
        }
        let text = &self.query[begin..self.at];
        let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).map(|number| number as f64).ok(),
            None => text.parse::<f64>().ok(),
        };
        match parsed {
            Some(number) if number.is_finite() => Token::Number(number),
            _ => Token::Unknown(text.to_owned()),
        }
    }

    /// A quoted text with the escapes of JSON.
    fn text(&mut self, quote: char) -> Token {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                _ if character == quote => {
                    self.at += offset + quote.len_utf8();
                    return Token::Text(text);
                }
                '\\' => match escaped(&mut characters) {
                    Some(character) => text.push(character),
                    None => break,
                },
                _ => text.push(character),
            }
        }
        self.at = self.query.len();
        Token::Unknown(format!("a text after {quote} without its end or with an unknown escape"))
    }
}

fn escaped(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    Some(match characters.next()?.1 {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => {
            let first = code_unit(characters)?;
            let is_high = (0xD800..0xDC00).contains(&first);
            let units = if is_high { vec![first, low_surrogate(characters)?] } else { vec![first] };
            char::decode_utf16(units).next()?.ok()?
        }
        character @ ('\\' | '/' | '\'' | '"') => character,
        _ => return None,
    })
}

fn low_surrogate(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<u16> {
    (characters.next()?.1 == '\\' && characters.next()?.1 == 'u').then_some(())?;
    code_unit(characters)
}

fn code_unit(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<u16> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = unit * 16 + characters.next()?.1.to_digit(16)?;
    }
    u16::try_from(unit).ok()
}

fn in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(query: &str) -> Vec<Token> {
        let mut lexer = Lexer::new(query);
        std::iter::from_fn(|| Some(lexer.next().1).filter(|token| *token != Token::End)).collect()
    }

    #[test]
    fn every_kind_of_token() {
        let word = |text: &str| Token::Word(text.to_owned());
        let text = |text: &str| Token::Text(text.to_owned());
        assert_eq!(
            tokens("c.a=@p -- a comment\n<>"),
            [
                word("c"),
                Token::Symbol("."),
                word("a"),
                Token::Symbol("="),
                Token::Parameter("@p".to_owned()),
                Token::Symbol("<>")
            ]
        );
        assert_eq!(tokens("'it\\'s' \"ü\\u00e9\\ud83d\\ude00\""), [text("it's"), text("üé😀")]);
        assert_eq!(tokens("1.5e3 7 0x1F .5 1e-3"), [1500.0, 7.0, 31.0, 0.5, 0.001].map(Token::Number));
        assert_eq!(tokens("; 1x"), [Token::Unknown(";".to_owned()), Token::Unknown("1x".to_owned())]);
        for open in ["'open", "'\\q'", "'\\u12'", "'\\ud83d'"] {
            assert!(matches!(tokens(open).as_slice(), [Token::Unknown(_)]), "{open}");
        }
    }
}
