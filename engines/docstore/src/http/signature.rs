//! Signatures of requests with the account's master key.
//!
//! The signature is an HMAC-SHA256 over the verb, the type of the resource, the link to it and the date, as Cosmos DB's
//! REST reference describes. A link is signed as its path with names as they are or percent-encoded, or, for a client that
//! addresses by resource id, as the last id in lower case; the store takes all three.

use std::borrow::Cow;

use axum::http::header::{AUTHORIZATION, DATE};
use axum::http::{HeaderMap, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use narrows_serving::{TOKEN_EXPECTED, Token};
use ring::hmac;

use super::headers;
use super::response::Failure;
use super::route::decoded;
use crate::access::{Access, AccountKey};
use crate::http_date;

/// How far the date of a request may lie from the store's.
const TOLERANCE_S: u64 = 15 * 60;
const X_DATE: &str = "x-ms-date";

/// Lets requests in that are signed with the key or present the token, or all.
pub(super) enum Gate {
    Open,
    Signed(hmac::Key),
    Token(Token),
}

/// Parts that a signature covers besides the date.
struct Subject<'a> {
    verb: String,
    kind: String,
    /// The path of the resource, or of the owner of a list.
    link: Vec<&'a str>,
}

impl Gate {
    pub(super) fn new(access: &Access) -> Self {
        let key = |key: &AccountKey| hmac::Key::new(hmac::HMAC_SHA256, key.bytes());
        match access {
            Access::Anyone => Self::Open,
            Access::Signed(account_key) => Self::Signed(key(account_key)),
            Access::Token(token) => Self::Token(token.clone()),
        }
    }

    /// Whether a request may see the pages, which are no part of the REST interface and which nobody signs requests for.
    pub(super) fn admits_pages(&self, headers: &HeaderMap) -> bool {
        !matches!(self, Self::Token(token) if !token.is_shown(headers))
    }

    /// Checks the signature or token of a request that arrived at `now_unix_s`.
    pub(super) fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        now_unix_s: u64,
    ) -> Result<(), Failure> {
        let key = match self {
            Self::Open => return Ok(()),
            Self::Token(token) if token.is_shown(headers) => return Ok(()),
            Self::Token(_) => return Err(Failure::unauthorized(TOKEN_EXPECTED.to_owned())),
            Self::Signed(key) => key,
        };
        let signature = signature(headers)?;
        let dates = dates(headers)?;
        let subject = Subject::of(method, path);
        let links = subject.links();
        let is_signed = |link: &String| hmac::verify(key, subject.payload(link, &dates).as_bytes(), &signature).is_ok();
        if !links.iter().any(is_signed) {
            let payload = subject.payload(&links[0], &dates);
            return Err(Failure::unauthorized(format!(
                "The input authorization token can't serve the request. The wrong key is being used or the expected \
                 payload is not built as per the protocol. Server used the following payload to sign: '{payload}'"
            )));
        }
        check_age(&dates, now_unix_s)
    }
}

/// The date headers of a request; of both, `x-ms-date` counts.
struct Dates<'a> {
    x_date: &'a str,
    date: &'a str,
}

impl<'a> Subject<'a> {
    fn of(method: &Method, path: &'a str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let is_list = parts.len() % 2 == 1;
        let (kind, link) = match parts.split_last() {
            None => ("", &parts[..]),
            Some((kind, owner)) if is_list => (*kind, owner),
            Some((_, before)) => (before.last().copied().unwrap_or_default(), &parts[..]),
        };
        Self { verb: method.as_str().to_ascii_lowercase(), kind: kind.to_ascii_lowercase(), link: link.to_vec() }
    }

    /// The link in every form a client may have signed, at least one.
    fn links(&self) -> Vec<String> {
        let names: Vec<_> = self.link.iter().map(|part| decoded(part).unwrap_or(Cow::Borrowed(part))).collect();
        let last = names.last().map(|name| name.to_lowercase()).unwrap_or_default();
        let mut links = vec![names.join("/"), self.link.join("/"), last];
        links.dedup();
        links
    }

    fn payload(&self, link: &str, dates: &Dates) -> String {
        let [x_date, date] = [dates.x_date, dates.date].map(str::to_ascii_lowercase);
        format!("{}\n{}\n{link}\n{x_date}\n{date}\n", self.verb, self.kind)
    }
}

/// The signature in `authorization`: percent-encoded `type=master&ver=1.0&sig=…`.
fn signature(headers: &HeaderMap) -> Result<Vec<u8>, Failure> {
    let Some(token) = headers::text(headers, AUTHORIZATION.as_str())? else {
        let message = "Required Header authorization is missing. Ensure a valid Authorization token is passed.";
        return Err(Failure::unauthorized(message.to_owned()));
    };
    let token = decoded(token).ok_or_else(|| unusable_token("it is not percent-encoded UTF-8"))?;
    let part = |name: &str| {
        let mut parts = token.split('&').filter_map(|part| part.split_once('='));
        parts.find(|(found, _)| *found == name).map(|(_, value)| value)
    };
    if part("type") != Some("master") || part("ver") != Some("1.0") {
        return Err(unusable_token("its type or version is another one"));
    }
    STANDARD.decode(part("sig").unwrap_or_default()).map_err(|_| unusable_token("its signature is not base64"))
}

fn unusable_token(found: &str) -> Failure {
    let message = format!("{found}, expected type=master&ver=1.0&sig=SIGNATURE, percent-encoded");
    Failure::unauthorized(format!("The authorization token is not usable: {message}"))
}

fn dates(headers: &HeaderMap) -> Result<Dates<'_>, Failure> {
    match (headers::text(headers, X_DATE)?, headers::text(headers, DATE.as_str())?) {
        (Some(x_date), _) => Ok(Dates { x_date, date: "" }),
        (None, Some(date)) => Ok(Dates { x_date: "", date }),
        (None, None) => Err(Failure::unauthorized("Required Header x-ms-date or date is missing.".to_owned())),
    }
}

fn check_age(dates: &Dates, now_unix_s: u64) -> Result<(), Failure> {
    let text = if dates.x_date.is_empty() { dates.date } else { dates.x_date };
    let Some(signed_unix_s) = http_date::unix_s(text) else {
        let message = "The input date header is invalid format. Please pass in RFC 1123 style date format.";
        return Err(Failure::unauthorized(message.to_owned()));
    };
    if signed_unix_s.abs_diff(now_unix_s) <= TOLERANCE_S {
        return Ok(());
    }
    let [start, expiry, now] = [signed_unix_s, signed_unix_s + TOLERANCE_S, now_unix_s].map(http_date::text);
    Err(Failure::forbidden(format!(
        "The authorization token is not valid at the current time. Please create another token and retry (token start \
         time: {start}, token expiry time: {expiry}, current server time: {now})."
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in Cosmos DB's REST reference: key, date and token.
    const KEY: &str = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
    const AT: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
    const AT_UNIX_S: u64 = 1_493_254_272;
    const TOKEN: &str = "type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D";

    fn gate() -> Gate {
        Gate::new(&Access::Signed(AccountKey::from_base64(KEY).unwrap()))
    }

    fn admit(path: &str, headers: &[(&str, &str)], now_unix_s: u64) -> Result<(), (u16, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(axum::http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let refused = |failure: Failure| (failure.status().as_u16(), failure.result()["message"].to_string());
        gate().admit(&Method::GET, path, &map, now_unix_s).map_err(refused)
    }

    fn sign(kind: &str, link: &str) -> String {
        let payload = format!("get\n{kind}\n{link}\n{}\n\n", AT.to_ascii_lowercase());
        format!("type=master&ver=1.0&sig={}", signed(&payload).replace('+', "%2B"))
    }

    /// The signature of a text, in base64.
    fn signed(payload: &str) -> String {
        let Gate::Signed(key) = gate() else { unreachable!("the gate of a key") };
        STANDARD.encode(hmac::sign(&key, payload.as_bytes()))
    }

    #[test]
    fn a_token_takes_the_place_of_signatures() {
        let gate = Gate::new(&Access::Token(Token::parse("secret").unwrap()));
        let with = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        let is_admitted = |headers: &HeaderMap| gate.admit(&Method::GET, "/dbs/a", headers, AT_UNIX_S).is_ok();
        assert!(is_admitted(&with("Bearer secret")) && gate.admits_pages(&with("Bearer secret")));
        for headers in [HeaderMap::new(), with("Bearer wrong"), with(TOKEN)] {
            assert!(!is_admitted(&headers) && !gate.admits_pages(&headers), "{headers:?}");
        }
        assert!(Gate::new(&Access::Anyone).admits_pages(&HeaderMap::new()));
    }

    #[test]
    fn the_reference_example_is_admitted_and_nothing_else_by_its_token() {
        let signed = [("authorization", TOKEN), ("x-ms-date", AT)];
        assert_eq!(admit("/dbs/ToDoList", &signed, AT_UNIX_S), Ok(()));
        let by_date = [("authorization", TOKEN), ("date", AT)];
        assert_eq!(admit("/dbs/ToDoList", &by_date, AT_UNIX_S).unwrap_err().0, 401, "the date is on another line");
        let (status, message) = admit("/dbs/Other", &signed, AT_UNIX_S).unwrap_err();
        assert_eq!(status, 401);
        assert!(message.contains(r"'get\ndbs\ndbs/Other\nthu, 27 apr 2017 00:51:12 gmt\n\n'"), "{message}");
    }

    #[test]
    fn every_resource_is_signed_by_its_type_and_link() {
        for (path, kind, link) in [
            ("/", "", ""),
            ("/dbs", "dbs", ""),
            ("/dbs/d%20b/", "dbs", "dbs/d b"),
            ("/dbs/d%20b/", "dbs", "dbs/d%20b"),
            ("/dbs/D/colls", "colls", "dbs/D"),
            ("/dbs/D/colls/c/pkranges", "pkranges", "dbs/D/colls/c"),
            ("/dbs/D/colls/c/docs", "docs", "dbs/D/colls/c"),
            ("//dbs/D/colls/c/docs/A%2B1", "docs", "dbs/D/colls/c/docs/A+1"),
            ("/dbs/AbC=/colls/AbCdEf=/docs", "docs", "abcdef="),
            ("/offers/AbC=", "offers", "abc="),
        ] {
            let token = sign(kind, link);
            let headers = [("authorization", token.as_str()), ("x-ms-date", AT)];
            assert_eq!(admit(path, &headers, AT_UNIX_S), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_date_fifteen_minutes_away_is_refused() {
        let signed = [("authorization", TOKEN), ("x-ms-date", AT)];
        for now_unix_s in [AT_UNIX_S - 900, AT_UNIX_S + 900] {
            assert_eq!(admit("/dbs/ToDoList", &signed, now_unix_s), Ok(()));
        }
        assert_eq!(admit("/dbs/ToDoList", &signed, AT_UNIX_S - 901).unwrap_err().0, 403);
        let (status, message) = admit("/dbs/ToDoList", &signed, AT_UNIX_S + 901).unwrap_err();
        let times =
            "token expiry time: Thu, 27 Apr 2017 01:06:12 GMT, current server time: Thu, 27 Apr 2017 01:06:13 GMT";
        assert!(status == 403 && message.contains(times), "{message}");
    }

    #[test]
    fn a_token_that_cannot_be_read_is_refused() {
        let date = ("x-ms-date", AT);
        let token = |token| admit("/", &[("authorization", token), date], AT_UNIX_S).unwrap_err();
        for (found, expected) in [
            (admit("/", &[date], AT_UNIX_S).unwrap_err(), "Required Header authorization is missing"),
            (admit("/", &[("authorization", TOKEN)], AT_UNIX_S).unwrap_err(), "Required Header x-ms-date or date"),
            (token("%zz"), "it is not percent-encoded"),
            (token("type=aad&ver=1.0&sig=c09P"), "its type or version"),
            (token("type=master&ver=1.0&sig=%"), "it is not percent-encoded"),
            (token("type=master&ver=1.0&sig=*"), "its signature is not base64"),
            (token("type=master&ver=1.0"), "The wrong key is being used"),
        ] {
            assert!(found.0 == 401 && found.1.contains(expected), "{found:?}, expected {expected}");
        }
        let payload = "get\n\n\nyesterday\n\n";
        let signature = signed(payload);
        let token = format!("type=master&ver=1.0&sig={}", signature.replace('+', "%2B"));
        let headers = [("authorization", token.as_str()), ("x-ms-date", "yesterday")];
        assert!(admit("/", &headers, AT_UNIX_S).unwrap_err().1.contains("invalid format"));
    }
}
