//! Which headers go on: all but those that belong to one connection (RFC 9110, section 7.6.1).

use http::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Parts, Uri};
use http::{HeaderValue, Method, Request, Version};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const OF_ONE_CONNECTION: [HeaderName; 8] =
    [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE];

/// Most headers that `Connection` may name and have taken out.
const NOMINATED_MAX: usize = 32;

/// Takes out what belongs to the connection that the headers came over.
pub(crate) fn strip(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        for name in nominated(headers) {
            headers.remove(name);
        }
    }
    for name in &OF_ONE_CONNECTION {
        if headers.contains_key(name) {
            headers.remove(name);
        }
    }
}

fn nominated(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    // Who needs these to find the end of a message may not have them taken away.
    names.filter(|name| *name != HOST && *name != http::header::CONTENT_LENGTH).take(NOMINATED_MAX).collect()
}

/// Whether a request needs what a hop does not carry.
pub(crate) fn is_carried<B>(request: &Request<B>) -> bool {
    let asks_for_websocket =
        || request.headers().get_all(UPGRADE).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    request.method() != Method::CONNECT && !asks_for_websocket()
}

/// Makes of a caller's request one to an upstream: HTTP/1.1, in origin form, with a `Host`.
pub(crate) fn readdress<B>(request: &mut Request<B>) {
    *request.version_mut() = Version::HTTP_11;
    if let Some(authority) = request.uri().authority() {
        // The target's authority wins over a Host beside it (RFC 9112, section 3.2.2).
        if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = origin_form(request.uri());
    } else if !request.headers().contains_key(HOST) {
        request.headers_mut().insert(HOST, HeaderValue::from_static(""));
    }
}

fn origin_form(uri: &Uri) -> Uri {
    let mut parts = Parts::default();
    parts.path_and_query = uri.path_and_query().cloned();
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_belongs_to_one_connection_does_not_go_on() {
        let mut stripped = headers(&[
            ("connection", "close, x-one , Host,content-length"),
            ("connection", "x-two"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("host", "a"),
            ("content-length", "3"),
        ]);
        strip(&mut stripped);
        assert_eq!(stripped, headers(&[("x-three", "3"), ("host", "a"), ("content-length", "3")]));
    }

    #[test]
    fn websockets_and_tunnels_are_not_carried() {
        let request = |method: &str, upgrade: &str| {
            Request::builder().method(method).uri("/").header(UPGRADE, upgrade).body(()).unwrap()
        };
        assert!(is_carried(&request("GET", "h2c")));
        assert!(!is_carried(&request("GET", "WebSocket")));
        assert!(!is_carried(&Request::builder().method("CONNECT").uri("a:1").body(()).unwrap()));
    }

    #[test]
    fn a_request_goes_on_in_origin_form_with_a_host() {
        for (uri, host, expected) in [
            ("http://a:80/p?q=1", Some("b"), ("/p?q=1", "a:80")),
            ("/p", Some("b"), ("/p", "b")),
            ("/p", None, ("/p", "")),
            ("*", Some("b"), ("*", "b")),
        ] {
            let builder = Request::builder().uri(uri).version(Version::HTTP_10);
            let builder = host.into_iter().fold(builder, |builder, host| builder.header(HOST, host));
            let mut request = builder.body(()).unwrap();
            readdress(&mut request);
            let got = (request.uri().to_string(), request.headers()[HOST].to_str().unwrap());
            assert_eq!((got.0.as_str(), got.1), expected);
            assert_eq!(request.version(), Version::HTTP_11);
        }
    }
}
