//! A bearer token (RFC 6750) that callers have to present.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};

/// The longest token, in bytes.
const BYTES_MAX: usize = 256;

/// A bearer token. It appears in neither debug output nor errors.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

/// Why a text is not a token. It does not contain the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {BYTES_MAX} letters, digits and `-._~+/`, with `=` only at the end")]
pub struct NotAToken;

impl Token {
    /// A token as RFC 6750 writes it, of 1 to 256 bytes.
    ///
    /// # Errors
    ///
    /// [`NotAToken`] for any other text.
    pub fn parse(text: &str) -> Result<Self, NotAToken> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let body = text.trim_end_matches('=');
        let is_token = !body.is_empty() && text.len() <= BYTES_MAX && body.chars().all(is_plain);
        if is_token { Ok(Self(text.into())) } else { Err(NotAToken) }
    }

    /// A token of 32 hexadecimal digits from the kernel's random source.
    ///
    /// # Errors
    ///
    /// When that cannot be read.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(format!("{:032x}", u128::from_ne_bytes(bytes)).into()))
    }

    /// The token of an environment variable; `None` if it is unset or empty.
    ///
    /// # Errors
    ///
    /// [`NotAToken`] if it holds something else.
    pub fn of_variable(name: &str) -> Result<Option<Self>, NotAToken> {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(|value| Self::parse(&value.to_string_lossy())).transpose()
    }

    /// The token itself, for the one who hands it to callers.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// The value of the header `Authorization` that presents it.
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        // A token has characters of headers only.
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).unwrap_or(HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    /// Whether a request presents it, as `Authorization: Bearer TOKEN`.
    #[must_use]
    pub fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
        let (scheme, shown) = shown.split_at_checked("Bearer ".len()).unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"Bearer ") && is_equal(shown.trim_ascii(), self.0.as_bytes())
    }
}

/// Takes the same time wherever two texts of one length differ.
fn is_equal(shown: &[u8], expected: &[u8]) -> bool {
    let differing = shown.iter().zip(expected).fold(0, |differing, (a, b)| black_box(differing | (a ^ b)));
    shown.len() == expected.len() && differing == 0
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_and_never_shown() {
        for text in ["a", "abc-._~+/9==", &"x".repeat(256)] {
            let token = Token::parse(text).unwrap();
            assert_eq!((token.secret(), format!("{token:?}").as_str()), (text, "Token(…)"));
        }
        for text in ["", "=", "a b", "a=b", "ä", "a\r\n", "a%20", &"x".repeat(257)] {
            assert_eq!(Token::parse(text), Err(NotAToken), "{text:?}");
        }
    }

    #[test]
    fn random_tokens_are_tokens_and_differ() {
        let [one, two] = [(); 2].map(|()| Token::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(Token::parse(one.secret()), Ok(one));
    }

    #[test]
    fn a_request_with_its_header_shows_it() {
        let token = Token::random().unwrap();
        let header = token.header();
        assert!(!format!("{header:?}").contains(token.secret()));
        assert!(token.is_shown(&HeaderMap::from_iter([(AUTHORIZATION, header)])));
    }

    #[test]
    fn only_the_token_itself_is_taken() {
        let token = Token::parse("secret").unwrap();
        let is_shown =
            |value: &'static str| token.is_shown(&HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]));
        assert!(is_shown("Bearer secret") && is_shown("bearer  secret "));
        for value in
            ["", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret", "Basic secret"]
        {
            assert!(!is_shown(value), "{value:?}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
    }
}
