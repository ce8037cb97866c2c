//! What counts as a secret, and how addresses lose theirs. The only such table of Narrows.
//!
//! A name decides, never a value's look: a pattern that guesses at secrets would be wrong both ways. In free text too it
//! is the name before a `=`, a parameter's in an address, or a header's that makes what follows it a secret. A name
//! is secret by its last words (`app.db_password`, `X-Api-Key`, `userToken`), where `.`, `-`, `_` and a capital letter
//! begin a word: `messaging.token_count` is none. In the query part of addresses a few more names are secret that mean
//! other things elsewhere.

use std::borrow::Cow;

/// What stands where a secret stood. The word of OpenTelemetry's conventions for `url.full`.
pub(super) const REDACTED: &str = "REDACTED";

/// Last words of secret names, in lower case, the words written together.
const LAST_WORDS: &[&str] = &[
    "accesskey",
    "accesskeyid",
    "accesstoken",
    "accountkey",
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
    "encryptionkey",
    "functionskey",
    "idtoken",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "refreshtoken",
    "secret",
    "secretkey",
    "securitytoken",
    "sessiontoken",
    "sharedaccesssignature",
    "signingkey",
    "subscriptionkey",
    "token",
    "xsrftoken",
];

/// Whole names that are secret in the query part of an address, besides those above.
const PARAMETERS: &[&str] = &["auth", "code", "key", "sessionid", "sig"];
/// Last words that are secret there, besides those above.
const PARAMETER_LAST_WORDS: &[&str] = &["signature"];

/// Headers whose whole value is a secret, in free text.
const HEADERS: &[&str] = &["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];
/// What ends a word of free text, besides white space.
const WORD_ENDS: [char; 7] = ['"', '\'', '`', '<', '>', ',', ';'];

/// Whether a name of an attribute, a label or a header says that its value is a secret.
pub(super) fn is_secret_key(key: &str) -> bool {
    // Nearly every key differs in its last two letters already; this is asked for each attribute of each span.
    if let [.., before, last] = key.as_bytes()
        && before.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && ENDINGS[letter(*last)] & (1 << letter(*before)) == 0
    {
        return false;
    }
    let mut letters = key.bytes().rev().filter(|byte| !is_separator(byte));
    let (Some(last), Some(before)) = (letters.next(), letters.next()) else { return false };
    let (last, before) = (last.to_ascii_lowercase(), before.to_ascii_lowercase());
    ENDINGS[letter(last)] & (1 << letter(before)) != 0
        && LAST_WORDS.iter().any(|words| words.as_bytes().ends_with(&[before, last]) && ends_in(key, words))
}

/// The last letter of each of [`LAST_WORDS`], and as bits the letters before it.
const ENDINGS: [u32; 32] = {
    let mut endings = [0; 32];
    let mut at = 0;
    while at < LAST_WORDS.len() {
        if let [.., before, last] = LAST_WORDS[at].as_bytes() {
            endings[letter(*last)] |= 1 << letter(*before);
        }
        at += 1;
    }
    endings
};

/// The same number for both cases of a letter, below 32.
const fn letter(byte: u8) -> usize {
    (byte & 31) as usize
}

/// An address, or a path with a query, without its user part and without the values of secret parameters, those after a
/// `#` included.
pub(super) fn redact_url(url: &mut String) {
    redact_user(url);
    if let Some(at) = url.find(['?', '#']) {
        let mut query = url.split_off(at + 1);
        redact_query(&mut query);
        url.push_str(&query);
    }
}

/// Free text, such as a message or a line of output: addresses in it lose what [`redact_url`] takes from them, words such
/// as `password=…` their value, and what follows the name of a secret header up to the end of the line goes.
pub(super) fn redact_text(text: &mut String) {
    if !text.contains(['=', ':']) {
        return;
    }
    let redacted: String = text.split_inclusive('\n').map(redacted_line).collect();
    if redacted != *text {
        *text = redacted;
    }
}

fn redacted_line(line: &str) -> Cow<'_, str> {
    if let Some(at) = after_secret_header(line) {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        return format!("{}{REDACTED}{end}", redacted_words(&line[..at])).into();
    }
    redacted_words(line)
}

fn redacted_words(line: &str) -> Cow<'_, str> {
    if !line.contains('=') && !line.contains("://") {
        return line.into();
    }
    line.split_inclusive(|c: char| c.is_whitespace() || WORD_ENDS.contains(&c))
        .map(redacted_word)
        .collect::<String>()
        .into()
}

/// A word with the character that ends it, if one does.
fn redacted_word(word: &str) -> Cow<'_, str> {
    let end = word.char_indices().last().filter(|(_, c)| c.is_whitespace() || WORD_ENDS.contains(c));
    let (content, end) = word.split_at(end.map_or(word.len(), |(at, _)| at));
    if content.contains("://") || content.contains('?') {
        let mut url = content.to_owned();
        redact_url(&mut url);
        return format!("{url}{end}").into();
    }
    match content.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret_key(name) => format!("{name}={REDACTED}{end}").into(),
        _ => word.into(),
    }
}

/// Where the value of a header begins that is always a secret.
fn after_secret_header(line: &str) -> Option<usize> {
    line.match_indices(':').find_map(|(at, _)| {
        let after = &line[at + 1..];
        let is_secret = HEADERS.iter().any(|header| ends_in_word(&line[..at], header)) && !after.trim().is_empty();
        is_secret.then(|| at + 1 + usize::from(after.starts_with(' ')))
    })
}

/// Whether the last word of a line is this one, but for case. Looks at no more of the line: it is asked for every colon.
fn ends_in_word(line: &str, word: &str) -> bool {
    let Some(start) = line.len().checked_sub(word.len()) else { return false };
    line.as_bytes()[start..].eq_ignore_ascii_case(word.as_bytes())
        && line[..start].chars().next_back().is_none_or(|c| c.is_whitespace() || WORD_ENDS.contains(&c))
}

/// A statement of a database, without the password that it sets or shows: `IDENTIFIED BY '…'`, `PASSWORD '…'` and Redis'
/// `AUTH …`. What a statement compares or stores stays: whether that is a secret its name does not say.
pub(super) fn redact_statement(statement: &mut String) {
    if statement.len() > 5 && statement.as_bytes()[..5].eq_ignore_ascii_case(b"auth ") {
        statement.truncate(5);
        statement.push_str(REDACTED);
        return;
    }
    for words in ["identified by", "password"] {
        redact_literals_after(statement, words);
    }
}

fn redact_literals_after(statement: &mut String, words: &str) {
    let mut from = 0;
    while let Some(at) = find_ignoring_case(&statement[from..], words).map(|at| from + at + words.len()) {
        from = at;
        let rest = &statement[at..];
        let quoted = rest.trim_start();
        if quoted.len() < rest.len() && quoted.starts_with('\'') {
            let start = at + rest.len() - quoted.len() + 1;
            let end = statement[start..].find('\'').map_or(statement.len(), |length| start + length);
            statement.replace_range(start..end, REDACTED);
            from = start + REDACTED.len();
        }
    }
}

fn find_ignoring_case(text: &str, words: &str) -> Option<usize> {
    let words = words.as_bytes();
    let first = words.first()?.to_ascii_lowercase();
    // Nearly every place differs in its first letter already.
    let begins = |window: &[u8]| window[0].to_ascii_lowercase() == first && window.eq_ignore_ascii_case(words);
    text.as_bytes().windows(words.len()).position(begins)
}

/// What follows the `?` of an address.
pub(super) fn redact_query(query: &mut String) {
    *query = query.split_inclusive(['&', '#']).map(redacted_pair).collect();
}

/// A `name=value`, with the separator that ends it if there is one.
fn redacted_pair(pair: &str) -> Cow<'_, str> {
    match pair.split_once('=') {
        Some((name, value)) if is_secret_parameter(name) => {
            let separator = if value.ends_with(['&', '#']) { &value[value.len() - 1..] } else { "" };
            format!("{name}={REDACTED}{separator}").into()
        }
        _ => pair.into(),
    }
}

fn is_secret_parameter(name: &str) -> bool {
    is_secret_key(name)
        || PARAMETERS.iter().any(|words| before(name, words).is_some_and(|rest| rest.iter().all(is_separator)))
        || PARAMETER_LAST_WORDS.iter().any(|words| ends_in(name, words))
}

/// `https://user:password@host/` becomes `https://REDACTED:REDACTED@host/`.
fn redact_user(url: &mut String) {
    let Some(scheme_end) = url.find("://") else { return };
    let start = scheme_end + 3;
    let length = url[start..].find(['/', '?', '#']).unwrap_or(url.len() - start);
    if let Some(at) = url[start..start + length].rfind('@') {
        url.replace_range(start..start + at, &format!("{REDACTED}:{REDACTED}"));
    }
}

/// Whether a name's last words, written together, are these.
fn ends_in(name: &str, words: &str) -> bool {
    before(name, words).is_some_and(|rest| begins_word(name.as_bytes(), rest.len()))
}

/// What stands before these words, when a name ends in them but for case and separators.
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
    use super::*;
    use proptest::prelude::*;

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
        }
    }

    #[test]
    fn addresses_lose_their_secrets_and_nothing_else() {
        let cases = [
            ("/api/invoices?ownerId=o1&year=2020", "/api/invoices?ownerId=o1&year=2020"),
            ("https://h:8443/a?token=t0p&x=1#part", "https://h:8443/a?token=REDACTED&x=1#part"),
            ("https://h/back#access_token=abc&x=1", "https://h/back#access_token=REDACTED&x=1"),
            ("/a?token=b?c=d&e?f=g#h", "/a?token=REDACTED&e?f=g#h"),
            ("https://h/#/reset?token=abc", "https://h/#/reset?token=REDACTED"),
            ("https://joe:pw@h/a", "https://REDACTED:REDACTED@h/a"),
            ("https://joe:p@w@h?sig=1", "https://REDACTED:REDACTED@h?sig=REDACTED"),
            ("/mail?to=joe@h://x@y", "/mail?to=joe@h://REDACTED:REDACTED@y"),
            ("/a?API-Key=1&Access_Token=2&tokens=3", "/a?API-Key=REDACTED&Access_Token=REDACTED&tokens=3"),
            ("/a?reset_token=1&zip_code=2&code=3", "/a?reset_token=REDACTED&zip_code=2&code=REDACTED"),
            ("/a?X-Amz-Signature=1&X-Amz-Date=2", "/a?X-Amz-Signature=REDACTED&X-Amz-Date=2"),
            ("/a?sv=1&sig=a%2Bb", "/a?sv=1&sig=REDACTED"),
            ("/a?token", "/a?token"),
            ("", ""),
        ];
        for (url, expected) in cases {
            let mut got = url.to_owned();
            redact_url(&mut got);
            assert_eq!(got, expected);
        }
        let mut query = "password=p&a=b".to_owned();
        redact_query(&mut query);
        assert_eq!(query, "password=REDACTED&a=b");
    }

    #[test]
    fn free_text_loses_addresses_pairs_and_headers() {
        let cases = [
            ("GET /a?token=abc&x=1 took 3 ms", "GET /a?token=REDACTED&x=1 took 3 ms"),
            ("cannot reach https://joe:pw@h/a, again", "cannot reach https://REDACTED:REDACTED@h/a, again"),
            ("login user=joe password=hunter2 ok", "login user=joe password=REDACTED ok"),
            ("sent \"Authorization: Bearer abc def\"", "sent \"Authorization: REDACTED"),
            ("> Cookie: a=1; b=2\n> Accept: x\n", "> Cookie: REDACTED\n> Accept: x\n"),
            ("bad token: unexpected end, code=7", "bad token: unexpected end, code=7"),
            ("a = b; c == d", "a = b; c == d"),
            ("no secret in here: 17", "no secret in here: 17"),
        ];
        for (text, expected) in cases {
            let mut got = text.to_owned();
            redact_text(&mut got);
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn statements_lose_the_passwords_they_set_and_nothing_else() {
        let cases = [
            ("AUTH hunter2", "AUTH REDACTED"),
            ("auth user hunter2", "auth REDACTED"),
            ("CREATE USER a IDENTIFIED BY 'x y' REQUIRE SSL", "CREATE USER a IDENTIFIED BY 'REDACTED' REQUIRE SSL"),
            ("alter role a with password  'x", "alter role a with password  'REDACTED"),
            ("SELECT * FROM t WHERE password = 'x' AND é = 'y'", "SELECT * FROM t WHERE password = 'x' AND é = 'y'"),
            ("SELECT password, 'x' FROM t", "SELECT password, 'x' FROM t"),
            ("GET author", "GET author"),
        ];
        for (statement, expected) in cases {
            let mut got = statement.to_owned();
            redact_statement(&mut got);
            assert_eq!(got, expected);
        }
    }

    proptest! {
        #[test]
        fn redacting_text_never_panics_and_settles(text in "[a-zé=:?&'\"/ \n,]{0,60}") {
            let mut once = format!("Cookie {text} password='x' token={text}");
            redact_text(&mut once);
            redact_statement(&mut once);
            let mut twice = once.clone();
            redact_text(&mut twice);
            redact_statement(&mut twice);
            prop_assert_eq!(twice, once);
        }

        #[test]
        fn redacting_twice_changes_nothing_more(url in "(https?://)?[a-z:@é/?#&=]{0,40}(token=[a-z]{0,5}&?){0,3}") {
            let mut once = url;
            redact_url(&mut once);
            let mut twice = once.clone();
            redact_url(&mut twice);
            prop_assert_eq!(twice, once);
        }

        #[test]
        fn any_key_may_precede_a_secret_word(key in any::<String>(), separator in "[._-]") {
            let (secret, plain) = (format!("{key}{separator}password"), format!("{key}{separator}count"));
            prop_assert!(is_secret_key(&secret));
            prop_assert!(!is_secret_key(&plain));
        }
    }
}
