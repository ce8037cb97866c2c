//! Reads a query by recursive descent; no rule calls itself, so no query can be too deep.

use super::lexer::{Lexer, Token};
use super::{Condition, Operand, Statement, SyntaxError};
use crate::scalar::Scalar;

/// The longest query in bytes.
const MAX_QUERY_BYTES: usize = 64 * 1024;
const MAX_CONDITIONS: usize = 64;
const MAX_PATH_STEPS: usize = 32;
/// How much of an unexpected token an error repeats, in characters.
const MAX_FOUND: usize = 40;

/// Reads `query`, or says where it leaves the language.
pub(crate) fn parse(query: &str) -> Result<Statement, SyntaxError> {
    if query.len() > MAX_QUERY_BYTES {
        let found = format!("{} bytes", query.len());
        return Err(SyntaxError { character: 1, found, expected: "at most 65536 bytes" });
    }
    let mut lexer = Lexer::new(query);
    let (at, token) = lexer.next();
    Parser { query, lexer, at, token }.statement()
}

struct Parser<'a> {
    query: &'a str,
    lexer: Lexer<'a>,
    at: usize,
    token: Token,
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<Statement, SyntaxError> {
        self.keyword("SELECT", "SELECT")?;
        let (selected_at, selected) = (self.at, self.selected()?);
        self.keyword("FROM", "FROM")?;
        let alias = self.alias()?;
        if selected.as_ref().is_some_and(|name| *name != alias) {
            return Err(self.error(selected_at, "* or VALUE and the alias of FROM"));
        }
        let mut conditions = Vec::new();
        if self.is_keyword("WHERE") {
            self.advance();
            conditions.push(self.condition(&alias)?);
            while self.is_keyword("AND") {
                if conditions.len() == MAX_CONDITIONS {
                    return Err(self.error(self.at, "at most 64 conditions"));
                }
                self.advance();
                conditions.push(self.condition(&alias)?);
            }
        }
        match (&self.token, conditions.is_empty()) {
            (Token::End, _) => Ok(Statement { conditions }),
            (_, true) => Err(self.error(self.at, "WHERE or the end")),
            (_, false) => Err(self.error(self.at, "AND or the end")),
        }
    }

    /// None for `*`, else the name after VALUE.
    fn selected(&mut self) -> Result<Option<String>, SyntaxError> {
        if self.token == Token::Symbol('*') {
            self.advance();
            return Ok(None);
        }
        self.keyword("VALUE", "* or VALUE")?;
        self.word("the alias of FROM").map(Some)
    }

    fn alias(&mut self) -> Result<String, SyntaxError> {
        let name = self.word("the container's name")?;
        if self.is_keyword("AS") {
            self.advance();
            return self.word("an alias");
        }
        if matches!(self.token, Token::Word(_)) && !self.is_keyword("WHERE") {
            return self.word("an alias");
        }
        Ok(name)
    }

    fn condition(&mut self, alias: &str) -> Result<Condition, SyntaxError> {
        let path = self.path(alias)?;
        self.symbol('=', "=")?;
        let operand = match &self.token {
            Token::Parameter(name) => Operand::Parameter(name.clone()),
            Token::Number(number) => Operand::Literal(Scalar::Number(*number)),
            Token::Text(text) => Operand::Literal(Scalar::Text(text.clone())),
            Token::Word(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Operand::Literal(Scalar::Bool(true)),
                "false" => Operand::Literal(Scalar::Bool(false)),
                "null" => Operand::Literal(Scalar::Null),
                _ => return Err(self.error(self.at, "a parameter or a value")),
            },
            _ => return Err(self.error(self.at, "a parameter or a value")),
        };
        self.advance();
        Ok(Condition { path, operand })
    }

    fn path(&mut self, alias: &str) -> Result<Vec<String>, SyntaxError> {
        if self.token != Token::Word(alias.to_owned()) {
            return Err(self.error(self.at, "a path that begins with the alias of FROM"));
        }
        self.advance();
        let mut steps = Vec::new();
        loop {
            match self.token {
                Token::Symbol('.') => {
                    self.advance();
                    steps.push(self.word("a property's name")?);
                }
                Token::Symbol('[') => {
                    self.advance();
                    steps.push(self.quoted("a property's name in quotes")?);
                    self.symbol(']', "]")?;
                }
                _ if steps.is_empty() => return Err(self.error(self.at, ". or [ and a property's name")),
                _ => return Ok(steps),
            }
            if steps.len() > MAX_PATH_STEPS {
                return Err(self.error(self.at, "a path of at most 32 steps"));
            }
        }
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(&self.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn keyword(&mut self, keyword: &str, expected: &'static str) -> Result<(), SyntaxError> {
        if !self.is_keyword(keyword) {
            return Err(self.error(self.at, expected));
        }
        self.advance();
        Ok(())
    }

    fn symbol(&mut self, symbol: char, expected: &'static str) -> Result<(), SyntaxError> {
        if self.token != Token::Symbol(symbol) {
            return Err(self.error(self.at, expected));
        }
        self.advance();
        Ok(())
    }

    fn word(&mut self, expected: &'static str) -> Result<String, SyntaxError> {
        let Token::Word(word) = &self.token else { return Err(self.error(self.at, expected)) };
        let word = word.clone();
        self.advance();
        Ok(word)
    }

    fn quoted(&mut self, expected: &'static str) -> Result<String, SyntaxError> {
        let Token::Text(text) = &self.token else { return Err(self.error(self.at, expected)) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    fn advance(&mut self) {
        (self.at, self.token) = self.lexer.next();
    }

    fn error(&self, at: usize, expected: &'static str) -> SyntaxError {
        let rest = &self.query[at..];
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let found = match &rest[..end] {
            "" => "the end".to_owned(),
            word => format!("{:?}", word.chars().take(MAX_FOUND).collect::<String>()),
        };
        SyntaxError { character: self.query[..at].chars().count() + 1, found, expected }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn condition(path: &[&str], operand: Operand) -> Condition {
        Condition { path: path.iter().map(|&step| step.to_owned()).collect(), operand }
    }

    #[test]
    fn the_case_study_queries() {
        let parameter = |name: &str| Operand::Parameter(name.to_owned());
        let statement = parse("SELECT VALUE root FROM root WHERE root.year=@year AND root.ownerId = 'o0001'").unwrap();
        assert_eq!(
            statement.conditions,
            [
                condition(&["year"], parameter("@year")),
                condition(&["ownerId"], Operand::Literal(Scalar::Text("o0001".to_owned()))),
            ]
        );
        assert_eq!(parse("select * from c").unwrap().conditions, []);
        let statement = parse("SELECT * FROM drones AS d WHERE d.a[\"b c\"] = null").unwrap();
        assert_eq!(statement.conditions, [condition(&["a", "b c"], Operand::Literal(Scalar::Null))]);
    }

    #[test]
    fn an_error_names_the_place() {
        let cases = [
            ("", "character 1 of the query: found the end, expected SELECT"),
            ("SELECT COUNT(1) FROM c", "character 8 of the query: found \"COUNT(1)\", expected * or VALUE"),
            ("SELECT * FORM c", "character 10 of the query: found \"FORM\", expected FROM"),
            ("SELECT * FROM c WHERE c.a > 1", "character 27 of the query: found \">\", expected ="),
            (
                "SELECT * FROM c WHERE c.a = 1 OR c.b = 2",
                "character 31 of the query: found \"OR\", expected AND or the end",
            ),
            ("SELECT * FROM c WHERE d.a = 1", "found \"d.a\", expected a path that begins with the alias of FROM"),
            (
                "SELECT * FROM ü WHERE ü.a = x",
                "character 29 of the query: found \"x\", expected a parameter or a value",
            ),
            ("SELECT VALUE d FROM c", "character 8 of the query: found \"VALUE\", expected * or VALUE and the alias"),
        ];
        for (query, expected) in cases {
            let error = parse(query).unwrap_err().to_string();
            assert!(error.contains(expected), "{query}: {error}");
        }
    }

    #[test]
    fn too_many_conditions_are_refused() {
        let query = |count| format!("SELECT * FROM c WHERE {}", vec!["c.a = 1"; count].join(" AND "));
        assert_eq!(parse(&query(64)).unwrap().conditions.len(), 64);
        assert_eq!(parse(&query(65)).unwrap_err().expected, "at most 64 conditions");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(query in "\\PC*", tail in "([a-z.='\"@*\\[\\]\\\\ü]|SELECT |FROM |WHERE ){0,30}") {
            let _ = parse(&query);
            if let Err(error) = parse(&format!("SELECT * FROM c WHERE {tail}")) {
                prop_assert!(error.character > "SELECT * FROM c WHERE".len());
            }
        }
    }
}
