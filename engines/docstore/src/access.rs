//! Access to the store, and the master key that requests are signed with.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use narrows_serving::Token;

/// The key of Microsoft's emulators, which every client's documentation names; it protects nothing.
const EMULATOR_KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Whose requests are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Everybody's, signed or not.
    Anyone,
    /// Those signed with the key.
    Signed(AccountKey),
    /// Those that present the token.
    Token(Token),
}

/// The account's master key. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey(Vec<u8>);

impl AccountKey {
    /// Reads a key in base64; `None` for an empty or malformed one.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        if bytes.is_empty() { None } else { Some(Self(bytes)) }
    }

    /// The key of Microsoft's emulators.
    #[must_use]
    pub fn of_emulators() -> Self {
        let key = Self::from_base64(EMULATOR_KEY);
        assert!(key.is_some(), "the constant is base64");
        key.unwrap_or(Self(Vec::new()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AccountKey(not printed)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_base64_and_not_printed() {
        let key = AccountKey::from_base64(" c2VjcmV0\n").unwrap();
        assert_eq!(key.bytes(), b"secret");
        assert_eq!(format!("{:?}", Access::Signed(key)), "Signed(AccountKey(not printed))");
        for text in ["", "c2Vj cmV0", "secret!"] {
            assert_eq!(AccountKey::from_base64(text), None, "{text}");
        }
        assert_eq!(AccountKey::of_emulators().bytes().len(), 64);
    }
}
