//! Forwarding of messages and their headers: all but those that belong to one connection (RFC 9110, section
//! 7.6.1).
//!
//! A message that is ambiguous about its host or its end is refused, or the ambiguity is removed (RFC 9112, sections
//! 3.2 and 6.3), so that the next server cannot read it differently.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, Parts, Uri};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};

use crate::fault::{Failure, Fault};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const OF_ONE_CONNECTION: [HeaderName; 8] =
    [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE];

/// Most headers that `Connection` may name and have taken out.
const NOMINATED_MAX: usize = 32;

/// Removes the headers that belong to the incoming connection, and a length that another framing overrides.
pub(crate) fn strip(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
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
    names.filter(|name| *name != HOST && *name != CONTENT_LENGTH).take(NOMINATED_MAX).collect()
}

/// Checks that a caller's request can be forwarded.
pub(crate) fn check_request<B>(request: &Request<B>) -> Result<(), Failure> {
    let asks_for_websocket =
        || request.headers().get_all(UPGRADE).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if request.method() == Method::CONNECT || asks_for_websocket() {
        return Err(Failure::new(Fault::NotCarried, "websockets and CONNECT do not go through this hop"));
    }
    check_host(request).map_err(|what| Failure::new(Fault::CallerMalformed, what))?;
    match transfer_codings(request.headers()).as_slice() {
        [] => Ok(()),
        [coding] if coding == "chunked" => Ok(()),
        codings if codings.iter().filter(|coding| *coding == "chunked").count() > 1 => {
            Err(Failure::new(Fault::CallerMalformed, "the body is chunked more than once"))
        }
        codings => {
            let what =
                format!("transfer codings other than chunked do not go through this hop: {}", codings.join(", "));
            Err(Failure::new(Fault::NotCarried, what))
        }
    }
}

/// Checks that an upstream's response fits the requests of this hop, which offer neither upgrades nor transfer codings.
pub(crate) fn check_response<B>(response: &Response<B>) -> Result<(), Failure> {
    let broken = |what: String| Err(Failure::new(Fault::UpstreamBroken, what));
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return broken("it switched protocols, which the request did not ask for".to_owned());
    }
    match transfer_codings(response.headers()).as_slice() {
        [] => Ok(()),
        [coding] if coding == "chunked" || coding == "identity" => Ok(()),
        codings => broken(format!("it used transfer codings that the request did not offer: {}", codings.join(", "))),
    }
}

fn transfer_codings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(TRANSFER_ENCODING).iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    values.flat_map(|value| value.split(',').map(|coding| coding.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// RFC 9112, section 3.2, and RFC 9110, section 4.2.4.
fn check_host<B>(request: &Request<B>) -> Result<(), &'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() >= Version::HTTP_11 => Err("the request has no Host"),
        (_, Some(_)) => Err("the request has more than one Host"),
        (Some(host), None) if !is_host(host.as_bytes()) => {
            Err("the request's Host is invalid, expected HOST or HOST:PORT")
        }
        _ if request.uri().authority().is_some_and(|authority| !is_host(authority.as_str().as_bytes())) => {
            Err("the authority of the request's target is invalid, expected HOST or HOST:PORT")
        }
        _ => Ok(()),
    }
}

/// Whether this is a host, with or without a port, or empty.
fn is_host(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    let Ok(authority) = Authority::try_from(text) else { return false };
    let Some(port) = authority.as_str().strip_prefix(authority.host()) else { return false };
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok_and(|_| !port.starts_with('+'));
    port.is_empty() || port.strip_prefix(':').is_some_and(is_port)
}

/// Declares a body of unknown length as chunked. Otherwise the client would send no body with methods that seldom have
/// one.
pub(crate) fn frame(headers: &mut HeaderMap) {
    if !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
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
            ("upgrade", "h2c"),
            ("host", "a"),
            ("content-length", "3"),
        ]);
        strip(&mut stripped);
        assert_eq!(stripped, headers(&[("x-three", "3"), ("host", "a"), ("content-length", "3")]));
        stripped.insert("transfer-encoding", HeaderValue::from_static("chunked"));
        strip(&mut stripped);
        assert_eq!(stripped, headers(&[("x-three", "3"), ("host", "a")]), "a length beside chunked is false");
    }

    #[test]
    fn websockets_and_tunnels_are_not_carried() {
        let request = |method: &str, upgrade: &str| {
            Request::builder().method(method).uri("/").header(HOST, "h").header(UPGRADE, upgrade).body(()).unwrap()
        };
        let fault = |request: Request<()>| check_request(&request).err().map(|failure| failure.fault);
        assert_eq!(fault(request("GET", "h2c")), None);
        assert_eq!(fault(request("GET", "WebSocket")), Some(Fault::NotCarried));
        let connect = Request::builder().method("CONNECT").uri("a:1").body(()).unwrap();
        assert_eq!(fault(connect), Some(Fault::NotCarried));
    }

    #[test]
    fn a_host_has_a_name_and_perhaps_a_port() {
        for host in ["", "a", "a.b-c_d:80", "a:", "127.0.0.1:65535", "[::1]:80"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in ["a:65536", "a:x", "a:+1", "u@a", "u:p@a:80", "a b", "a/b", "a?b", "a,b:1:2", "[::1", "é"] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
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
