//! Blanks what must not reach a disk: credentials in URLs and in captured HTTP headers.
//!
//! A name decides, never a value's look: query parameters and headers whose names say that they hold a secret lose
//! their value and keep their name, so that routes and shapes stay readable. Bodies and SQL literals are left alone.

use serde_json::{Map, Value};

/// What stands where a secret stood. The word of OpenTelemetry's conventions for `url.full`.
pub const REDACTED: &str = "REDACTED";

/// Query parameters whose value is a secret: those that OpenTelemetry names for `url.full` and the usual others.
/// Compared without regard to case and to `-` or `_`.
const SECRET_PARAMETERS: &[&str] = &[
    "accesstoken",
    "apikey",
    "auth",
    "authorization",
    "awsaccesskeyid",
    "clientsecret",
    "code",
    "idtoken",
    "key",
    "passwd",
    "password",
    "pwd",
    "refreshtoken",
    "secret",
    "sessionid",
    "sig",
    "signature",
    "token",
    "xamzcredential",
    "xamzsecuritytoken",
    "xamzsignature",
    "xgoogcredential",
    "xgoogsignature",
];

/// Headers whose value is a secret, compared like parameters.
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "proxyauthorization",
    "setcookie",
    "xamzsecuritytoken",
    "xapikey",
    "xauthtoken",
    "xcsrftoken",
    "xfunctionskey",
];

const URL_ATTRIBUTES: &[&str] = &["url.full", "http.url", "http.target"];
const HEADER_PREFIXES: &[&str] =
    &["http.request.header.", "http.response.header.", "rpc.grpc.request.metadata.", "rpc.grpc.response.metadata."];

/// Blanks the secrets in a span's attributes, in place.
pub fn redact(attributes: &mut Map<String, Value>) {
    for (name, value) in attributes.iter_mut() {
        let header = HEADER_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
        if header.is_some_and(|header| is_named(header, SECRET_HEADERS)) {
            *value = Value::from(REDACTED);
        } else if let Value::String(text) = value {
            if URL_ATTRIBUTES.contains(&name.as_str()) {
                *text = redact_url(std::mem::take(text));
            } else if name == "url.query" {
                *text = redact_query(text);
            }
        }
    }
}

/// A URL, or a path with a query, without user information and without the values of secret parameters.
pub fn redact_url(url: String) -> String {
    let url = redact_user(url);
    let (before, fragment) = split_at_char(&url, '#');
    let (path, query) = split_at_char(before, '?');
    match query {
        Some(query) if is_worth_redacting(query) => {
            let fragment = fragment.map(|text| format!("#{text}")).unwrap_or_default();
            format!("{path}?{}{fragment}", redact_query(query))
        }
        _ => url,
    }
}

fn redact_query(query: &str) -> String {
    let redacted: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_named(name, SECRET_PARAMETERS) => format!("{name}={REDACTED}"),
            _ => pair.to_owned(),
        })
        .collect();
    redacted.join("&")
}

fn is_worth_redacting(query: &str) -> bool {
    query.split('&').any(|pair| pair.split_once('=').is_some_and(|(name, _)| is_named(name, SECRET_PARAMETERS)))
}

/// `https://user:password@host/` becomes `https://REDACTED:REDACTED@host/`.
fn redact_user(url: String) -> String {
    let Some(scheme_end) = url.find("://") else { return url };
    let authority_start = scheme_end + 3;
    let rest = &url[authority_start..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => format!("{}{REDACTED}:{REDACTED}{}", &url[..authority_start], &rest[at..]),
        None => url,
    }
}

fn split_at_char(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_named(name: &str, names: &[&str]) -> bool {
    let plain = || name.bytes().filter(|byte| !matches!(byte, b'-' | b'_')).map(|byte| byte.to_ascii_lowercase());
    names.iter().any(|secret| plain().eq(secret.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn urls_lose_their_secrets_and_nothing_else() {
        let cases = [
            ("/api/invoices?ownerId=o1&year=2020", "/api/invoices?ownerId=o1&year=2020"),
            ("https://h:8443/a?token=t0p&x=1#part", "https://h:8443/a?token=REDACTED&x=1#part"),
            ("https://joe:pw@h/a", "https://REDACTED:REDACTED@h/a"),
            ("https://joe:p@w@h?sig=1", "https://REDACTED:REDACTED@h?sig=REDACTED"),
            ("/mail?to=joe@h://x@y", "/mail?to=joe@h://REDACTED:REDACTED@y"),
            ("/a?API-Key=1&Access_Token=2&tokens=3", "/a?API-Key=REDACTED&Access_Token=REDACTED&tokens=3"),
            ("/a?token", "/a?token"),
            ("", ""),
        ];
        for (url, expected) in cases {
            assert_eq!(redact_url(url.to_owned()), expected);
        }
    }

    #[test]
    fn attributes_lose_their_secrets() {
        let Value::Object(mut attributes) = json!({
            "http.request.header.authorization": ["Bearer abc"],
            "http.request.header.x_api_key": "abc",
            "http.response.header.retry-after": ["1"],
            "http.url": "http://h/?password=abc",
            "url.query": "q=1&password=abc",
            "db.query.text": "SELECT 'password=abc'",
        }) else {
            unreachable!()
        };
        redact(&mut attributes);
        let expected = json!({
            "http.request.header.authorization": "REDACTED",
            "http.request.header.x_api_key": "REDACTED",
            "http.response.header.retry-after": ["1"],
            "http.url": "http://h/?password=REDACTED",
            "url.query": "q=1&password=REDACTED",
            "db.query.text": "SELECT 'password=abc'",
        });
        assert_eq!(Value::Object(attributes), expected);
    }

    proptest! {
        #[test]
        fn redacting_twice_changes_nothing_more(url in "(https?://)?[a-z:@é/?#&=]{0,40}(token=[a-z]{0,5}&?){0,3}") {
            let once = redact_url(url);
            prop_assert_eq!(redact_url(once.clone()), once);
        }
    }
}
