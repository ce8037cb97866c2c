//! Access rules: which requests are served, and what a browser may load into the pages.
//!
//! - On loopback the `Host` of a request has to be loopback too. A stranger's page can have its own name lead to 127.0.0.1
//!   (DNS rebinding); its requests then come with that name.
//! - Beyond loopback, requests present the token: as a bearer token, or as the cookie that `?token=…` sets once.
//! - What changes something is a POST from a page of this server: the browser's `Origin` has to be this host.
//! - Pages load nothing from elsewhere and stand in no frame. Styles may be inline, since lengths of bars are; scripts may not.

use std::net::IpAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use narrows_listener::{Listen, is_loopback};

/// The parameter of an address, and the cookie, with the token.
pub(crate) const TOKEN: &str = "token";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The routes behind these rules.
pub(crate) fn guarded(router: Router, listen: Listen) -> Router {
    router.layer(from_fn_with_state(listen, guard))
}

async fn guard(State(listen): State<Listen>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&listen, &request) {
        None => next.run(request).await,
        Some(response) => response,
    };
    let headers = response.headers_mut();
    let set = |headers: &mut HeaderMap, name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(headers, CONTENT_SECURITY_POLICY, POLICY);
    set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(headers, REFERRER_POLICY, "no-referrer");
    set(headers, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(headers, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    // Pages change with their runs.
    set(headers, CACHE_CONTROL, "no-cache");
    response
}

/// The response to a request that is not let in.
fn refusal(listen: &Listen, request: &Request) -> Option<Response> {
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    match listen.token() {
        None if !host.is_some_and(names_loopback) => {
            return Some(refused(StatusCode::MISDIRECTED_REQUEST, "this server is reached as localhost or 127.0.0.1"));
        }
        Some(token) if !token.is_shown(headers) && cookie(headers) != Some(token.secret()) => {
            let given = parameter(request.uri());
            return Some(match given.is_some_and(|given| given == token.secret()) {
                true => welcome(token.secret(), request.uri()),
                false => refused(StatusCode::UNAUTHORIZED, "open the address with `?token=…` that the server printed"),
            });
        }
        _ => {}
    }
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    (is_change && !is_own(headers, host)).then(|| refused(StatusCode::FORBIDDEN, "the request is from another page"))
}

/// Whether a host is a name or an address of loopback.
fn names_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(is_loopback)
}

/// Whether a request comes from a page of this server, or from no page.
fn is_own(headers: &HeaderMap, host: Option<&str>) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return !headers.contains_key("sec-fetch-site") };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| Some(origin) == host)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix("token="))
}

fn parameter(uri: &Uri) -> Option<String> {
    let pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.into_iter().find(|(name, _)| name == TOKEN).map(|(_, value)| value.into_owned())
}

/// Hands the token to a browser, which comes again without it in the address.
fn welcome(token: &str, uri: &Uri) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let cookie = format!("token={token}; HttpOnly; SameSite=Strict; Path=/");
    for (name, value) in [(SET_COOKIE, cookie.as_str()), (LOCATION, uri.path())] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn refused(status: StatusCode, why: &'static str) -> Response {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use narrows_listener::{Guard, Token};

    use super::*;

    fn request(method: Method, uri: &str, headers: &[(&'static str, &'static str)]) -> Request {
        let mut request = Request::new(Body::empty());
        (*request.method_mut(), *request.uri_mut()) = (method, uri.parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        request
    }

    fn status(listen: &Listen, request: &Request) -> Option<u16> {
        refusal(listen, request).map(|response| response.status().as_u16())
    }

    #[test]
    fn on_loopback_only_names_of_loopback_are_served() {
        let listen = Listen::loopback(0);
        for (host, expected) in [
            ("127.0.0.1:8080", None),
            ("localhost", None),
            ("[::1]:80", None),
            ("LOCALHOST:1", None),
            ("evil.example:8080", Some(421)),
            ("localhost.evil.example", Some(421)),
            ("10.0.0.1", Some(421)),
            ("", Some(421)),
        ] {
            assert_eq!(status(&listen, &request(Method::GET, "/", &[("host", host)])), expected, "{host}");
        }
        assert_eq!(status(&listen, &request(Method::GET, "/", &[])), Some(421));
    }

    #[test]
    fn changes_come_from_own_pages() {
        let listen = Listen::loopback(0);
        let host = ("host", "127.0.0.1:80");
        let cases = [
            (&[host][..], None),
            (&[host, ("origin", "http://127.0.0.1:80"), ("sec-fetch-site", "same-origin")], None),
            (&[host, ("origin", "http://127.0.0.1:81")], Some(403)),
            (&[host, ("origin", "https://evil.example")], Some(403)),
            (&[host, ("origin", "null")], Some(403)),
            (&[host, ("sec-fetch-site", "cross-site")], Some(403)),
        ];
        for (headers, expected) in cases {
            assert_eq!(status(&listen, &request(Method::POST, "/runs/a/delete", headers)), expected, "{headers:?}");
        }
    }

    #[test]
    fn beyond_loopback_a_token_is_needed_and_becomes_a_cookie() {
        let token = Token::parse("secret").unwrap();
        let listen = Listen::new("10.0.0.1:80".parse().unwrap(), Guard::Token(token)).unwrap();
        let at = |uri, headers: &[(&'static str, &'static str)]| refusal(&listen, &request(Method::GET, uri, headers));
        let code = |response: Option<Response>| response.map(|response| response.status().as_u16());
        assert_eq!(code(at("/", &[("host", "10.0.0.1")])), Some(401));
        assert_eq!(code(at("/?token=wrong", &[])), Some(401));
        let response = at("/runs/a?token=secret", &[]).unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()[LOCATION]),
            (303, &HeaderValue::from_static("/runs/a"))
        );
        assert_eq!(code(at("/", &[("cookie", "a=b; token=secret")])), None);
        assert_eq!(code(at("/", &[("authorization", "Bearer secret")])), None);
        assert_eq!(code(at("/", &[("cookie", "token=secretly")])), Some(401));
    }
}
