//! Cuts a query into tokens, each with the byte it begins at.

/// One token of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Word(String),
    /// With its `@`.
    Parameter(String),
    Text(String),
    Number(f64),
    Symbol(char),
    /// Characters that begin no token, or a token that does not end.
    Unknown(String),
    End,
}

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
        self.take(char::is_whitespace);
        let begin = self.at;
        let Some(first) = self.rest().chars().next() else { return (begin, Token::End) };
        let token = match first {
            '\'' | '"' => self.text(first),
            '@' => {
                self.at += 1;
                let name = self.take(in_word);
                if name.is_empty() { Token::Unknown("@".to_owned()) } else { Token::Parameter(format!("@{name}")) }
            }
            '-' | '0'..='9' => self.number(),
            '*' | '=' | '.' | '[' | ']' | '(' | ')' | ',' => {
                self.at += 1;
                Token::Symbol(first)
            }
            _ if in_word(first) => Token::Word(self.take(in_word).to_owned()),
            _ => {
                self.at += first.len_utf8();
                Token::Unknown(first.to_string())
            }
        };
        (begin, token)
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
        let digits = self.take(|character| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '+'));
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Token::Number(number),
            _ => Token::Unknown(digits.to_owned()),
        }
    }

    /// A quoted text with the escapes of JSON that are one character long.
    fn text(&mut self, quote: char) -> Token {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                _ if character == quote => {
                    self.at += offset + quote.len_utf8();
                    return Token::Text(text);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, escaped @ ('\\' | '/' | '\'' | '"'))) => text.push(escaped),
                    _ => break,
                },
                _ => text.push(character),
            }
        }
        self.at = self.query.len();
        Token::Unknown(format!("a text after {quote} without its end"))
    }
}

fn in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
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
            tokens("c.a=@p"),
            [word("c"), Token::Symbol('.'), word("a"), Token::Symbol('='), Token::Parameter("@p".to_owned())]
        );
        assert_eq!(tokens("'it\\'s' \"ü\""), [text("it's"), text("ü")]);
        assert_eq!(tokens("-1.5e3 7"), [Token::Number(-1500.0), Token::Number(7.0)]);
        assert_eq!(tokens("; 1x"), [Token::Unknown(";".to_owned()), Token::Unknown("1x".to_owned())]);
        assert!(matches!(tokens("'open").as_slice(), [Token::Unknown(_)]));
    }
}
