//! The table of names whose values are secrets.
//!
//! The last words of a name decide (`app.db_password`, `X-Api-Key`, `userToken`). A word begins after `.`, `-`, `_` or
//! with a capital letter: `messaging.token_count` is not secret. The plural and the numbered form of a secret name are
//! also secret and, for passwords and keys, so are forms such as `password_confirmation` and `secret_key_base`. In the
//! query part of URLs, a few more names are secret that mean other things elsewhere.

/// Last words of secret names, in lower case, the words written together.
const LAST_WORDS: &[&str] = &[
    "accesskey",
    "accesskeyid",
    "accesstoken",
    "accountkey",
    "adminpass",
    "apikey",
    "apitoken",
    "authkey",
    "authorization",
    "authtoken",
    "bearer",
    "clientsecret",
    "connectionstring",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "csrfmiddlewaretoken",
    "csrftoken",
    "dbpass",
    "dbpassword",
    "encryptionkey",
    "functionskey",
    "idtoken",
    "jwt",
    "masterauth",
    "mysqlpass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pgpass",
    "pgpassword",
    "privatekey",
    "pwd",
    "redispass",
    "refreshtoken",
    "requirepass",
    "rootpass",
    "rootpassword",
    "secret",
    "secretkey",
    "securitytoken",
    "sessiontoken",
    "sharedaccesssignature",
    "signingkey",
    "smtppass",
    "sshpass",
    "subscriptionkey",
    "token",
    "userpass",
    "xsrftoken",
];

/// The names above that are also secret at the end of a longer word (`newpassword`) and before a word of [`FORMS`].
const PASSWORDS: [&str; 9] =
    ["accesskey", "apikey", "passcode", "passphrase", "passwd", "password", "privatekey", "secret", "secretkey"];
/// The names above that are also secret at the end of a longer word only.
const ENDINGS_OF_WORDS: [&str; 3] = ["accesstoken", "authtoken", "connectionstring"];
/// The names above that are also secret before a word of [`FORMS`] only.
const FORMED: [&str; 2] = ["credential", "encryptionkey"];
/// The names above whose plural is a count: `output_tokens`.
const COUNTED: [&str; 1] = ["token"];
/// Words after the name of a password that keep it a secret, in lower case.
const FORMS: [&str; 19] = [
    "again",
    "base",
    "confirm",
    "confirmation",
    "confirmed",
    "current",
    "digest",
    "encoded",
    "encrypted",
    "hash",
    "new",
    "old",
    "pem",
    "plain",
    "plaintext",
    "previous",
    "repeat",
    "salt",
    "value",
];

/// Whole names that are secret in the query part of an address, besides those above.
const PARAMETERS: &[&str] = &["auth", "code", "key", "sessionid", "sig"];
/// Last words that are secret there, besides those above.
const PARAMETER_LAST_WORDS: &[&str] = &["signature"];

/// Whether a name of an attribute, a label or a header says that its value is a secret.
pub fn is_secret_key(key: &str) -> bool {
    // Nearly every key differs in its last two letters already; this runs for each attribute of each span.
    if let [.., before, last] = key.as_bytes()
        && before.is_ascii_alphanumeric()
        && last.is_ascii_alphabetic()
        && ENDINGS[letter(*last)] & (1 << letter(*before)) == 0
    {
        return false;
    }
    let length = key.bytes().rev().skip_while(|byte| byte.is_ascii_digit() || is_separator(byte)).count();
    // Only ASCII characters were removed, so this is a character boundary.
    let name = &key[..length];
    is_secret_word(name) || singular(name).is_some() || is_form_of_password(name)
}

/// Whether a name is the plural of a secret name and its value is a count: `secrets: 3`.
pub(crate) fn is_count(name: &str, value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) && singular(name).is_some()
}

/// Whether a name ends in one of [`LAST_WORDS`].
fn is_secret_word(name: &str) -> bool {
    last_letters_of(name).is_some_and(|last| {
        LAST_LETTERS.iter().zip(LAST_WORDS).any(|(letters, words)| *letters == last && ends_in(name, words))
    })
}

/// The last two letters of a name, in lower case.
fn last_letters_of(name: &str) -> Option<[u8; 2]> {
    let mut letters = name.bytes().rev().filter(|byte| !is_separator(byte));
    let (last, before) = (letters.next()?, letters.next()?);
    Some([before.to_ascii_lowercase(), last.to_ascii_lowercase()])
}

/// A secret name without the `s` of its plural.
fn singular(name: &str) -> Option<&str> {
    let one = name.strip_suffix(['s', 'S']).filter(|one| is_secret_word(one))?;
    let is_counted = COUNTED.iter().any(|words| ends_in(one, words));
    let is_other = || LAST_WORDS.iter().any(|words| !COUNTED.contains(words) && ends_in(one, words));
    (!is_counted || is_other()).then_some(one)
}

/// Whether a name consists of a password's name and a word of [`FORMS`].
fn is_form_of_password(name: &str) -> bool {
    let Some(last) = last_letters_of(name) else { return false };
    let form = FORMS.iter().filter(|form| last_letters(form) == last && ends_in(name, form));
    let mut stems = form.filter_map(|form| name.get(..name.len() - form.len()));
    stems.any(|stem| PASSWORDS.iter().chain(&FORMED).any(|words| ends_in(stem, words)))
}

/// The last two letters of each of [`LAST_WORDS`].
const LAST_LETTERS: [[u8; 2]; LAST_WORDS.len()] = {
    let mut letters = [[0; 2]; LAST_WORDS.len()];
    let mut at = 0;
    while at < LAST_WORDS.len() {
        letters[at] = last_letters(LAST_WORDS[at]);
        at += 1;
    }
    letters
};

/// For each last letter of a secret name, the possible letters before it as a bit set.
const ENDINGS: [u32; 32] = {
    let mut endings = [0; 32];
    let mut at = 0;
    while at < LAST_WORDS.len() {
        let [before, last] = LAST_LETTERS[at];
        endings[letter(last)] |= 1 << letter(before);
        if last != b's' {
            // The plural form.
            endings[letter(b's')] |= 1 << letter(last);
        }
        at += 1;
    }
    let mut at = 0;
    while at < FORMS.len() {
        let [before, last] = last_letters(FORMS[at]);
        endings[letter(last)] |= 1 << letter(before);
        at += 1;
    }
    endings
};

const fn last_letters(word: &str) -> [u8; 2] {
    match word.as_bytes() {
        [.., before, last] => [*before, *last],
        _ => [0; 2],
    }
}

/// The same number for both cases of a letter, below 32.
const fn letter(byte: u8) -> usize {
    (byte & 31) as usize
}

/// Whether a parameter's name in the query part of an address says that its value is a secret.
pub(super) fn is_secret_parameter(name: &str) -> bool {
    is_secret_key(name)
        || PARAMETERS.iter().any(|words| before(name, words).is_some_and(|rest| rest.iter().all(is_separator)))
        || PARAMETER_LAST_WORDS.iter().any(|words| ends_in(name, words))
}

/// Whether a name's last words, written together, are these.
pub(super) fn ends_in(name: &str, words: &str) -> bool {
    let may_end_word = || PASSWORDS.iter().chain(&ENDINGS_OF_WORDS).any(|ending| *ending == words);
    before(name, words).is_some_and(|rest| begins_word(name.as_bytes(), rest.len()) || may_end_word())
}

/// The part of a name before these words, if it ends in them but for case and separators.
fn before<'a>(name: &'a str, words: &str) -> Option<&'a [u8]> {
    let mut rest = name.as_bytes();
    for expected in words.bytes().rev() {
        while let Some((_, less)) = rest.split_last().filter(|(last, _)| is_separator(last)) {
            rest = less;
        }
        let (last, less) = rest.split_last()?;
        if last.to_ascii_lowercase() != expected {
            return None;
        }
        rest = less;
    }
    Some(rest)
}

/// Whether the byte at this place begins a word.
fn begins_word(name: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|at| name[at]) else { return true };
    // `userToken`, and the T of `CSRFToken`.
    let is_capital = name[at].is_ascii_uppercase()
        && (!before.is_ascii_uppercase() || name.get(at + 1).is_some_and(u8::is_ascii_lowercase));
    is_separator(&before) || is_capital
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b'.' | b'-' | b'_' | b' ' | b'/' | b'?' | b':' | b'[' | b']' | b'$')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_secret_by_its_last_words() {
        for key in [
            "password",
            "app.db_password",
            "user_token",
            "userToken",
            "aws_secret_access_key",
            "AWSAccessKeyId",
            "http.request.header.authorization",
            "http.request.header.proxy-authorization",
            "http.request.header.Cookie",
            "http.response.header.set-cookie",
            "http.request.header.x_api_key",
            "X-CSRFToken",
            "x-csrf-token",
            "rpc.grpc.request.metadata.x-amz-security-token",
            "Ocp-Apim-Subscription-Key",
            "x-functions-key",
            "db.connection_string",
            "ConnectionString",
            "enduser.api-key",
            "client_secret",
            "password_confirmation",
            "passwordConfirmation",
            "user[password_confirm]",
            "newpassword",
            "OLDPASSWORD",
            "password2",
            "api_key_1",
            "secret_key_base",
            "SecretKeyBase",
            "app.passwords",
            "access_tokens",
            "apiKeys",
            "client_secrets",
            "password_hash",
            "appsecret",
        ] {
            assert!(is_secret_key(key), "{key}");
        }
        for key in [
            "",
            "token_count",
            "messaging.token_count",
            "gen_ai.usage.output_tokens",
            "password_changed",
            "monkey",
            "sort_key",
            "key",
            "code",
            "session.id",
            "nontoken",
            "tokens",
            "prompt_tokens",
            "password_hash_seconds",
            "password_resets_total",
            "secret_version",
            "auth.token.count",
            "key_base",
            "token_base",
            "hash",
            "bypass",
            "tokenizer",
            "secretary",
            "cookie_policy",
            "basic_auth_enabled",
            "http2",
            "sha256",
            "http.response.header.retry-after",
            "clé",
        ] {
            assert!(!is_secret_key(key), "{key}");
        }
    }

    #[test]
    fn every_entry_of_the_table_can_match() {
        for words in LAST_WORDS {
            assert!(words.bytes().all(|byte| byte.is_ascii_lowercase()), "{words}");
            assert!(is_secret_key(words) && is_secret_key(&format!("a.{words}")), "{words}");
            let has_plural = !COUNTED.contains(words) && !words.ends_with('s');
            assert!(!has_plural || is_secret_key(&format!("a.{words}s")), "{words}s");
        }
        for words in PASSWORDS.iter().chain(&FORMED) {
            assert!(LAST_WORDS.contains(words), "{words}");
            FORMS.iter().for_each(|form| assert!(is_secret_key(&format!("{words}_{form}")), "{words}_{form}"));
        }
        for words in ENDINGS_OF_WORDS.iter().chain(&COUNTED) {
            assert!(LAST_WORDS.contains(words), "{words}");
        }
    }

    proptest! {
        #[test]
        fn any_key_may_precede_a_secret_word(key in any::<String>(), separator in "[._-]") {
            let (secret, plain) = (format!("{key}{separator}password"), format!("{key}{separator}count"));
            prop_assert!(is_secret_key(&secret));
            prop_assert!(!is_secret_key(&plain));
        }
    }
}
