//! Translates between HTTP/1.1, in which templates are rendered and responses are captured, and the library's types.
//!
//! So templates, cookies, checks and extraction know one form only. Of a request for HTTP/2, `Host` becomes
//! `:authority`, and the headers that speak of an HTTP/1.1 connection are left out (RFC 9113, 8.2.2).

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use narrows_model::load::Protocol;

use crate::encoding::percent_encode;
use crate::recorder::Cause;
use crate::session::Security;

const HEADERS_MAX: usize = 256;
/// Headers that HTTP/2 has no place for.
const OF_CONNECTIONS: [&str; 6] =
    ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// A request for the library.
pub(super) type Wanted = Request<Full<Bytes>>;

/// A rendered request for the library.
///
/// # Errors
/// When the protocol cannot express it, such as a request for an invalid host.
pub(super) fn request(rendered: &Bytes, protocol: Protocol, security: Security) -> Result<Wanted, Cause> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(rendered) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) | Err(_) => return Err(Cause::Text("the request has more than 256 headers")),
    };
    let mut request = Request::new(Full::new(rendered.slice(head..)));
    let method = parsed.method.unwrap_or_default().as_bytes();
    *request.method_mut() = Method::from_bytes(method).map_err(|_| Cause::Text("invalid HTTP method"))?;
    let path = path(rendered, parsed.path.unwrap_or_default())?;
    let mut host = Bytes::new();
    for header in parsed.headers.iter() {
        if header.name.eq_ignore_ascii_case("host") {
            host = rendered.slice_ref(header.value);
        }
        if protocol == Protocol::Http1 || !OF_CONNECTIONS.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
            let (name, value) = (HeaderName::from_bytes(header.name.as_bytes()), rendered.slice_ref(header.value));
            let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value)) else {
                return Err(Cause::Text("a header of the request is malformed"));
            };
            request.headers_mut().append(name, value);
        }
    }
    *request.uri_mut() = match protocol {
        Protocol::Http1 => path.into(),
        Protocol::Http2 => whole_uri(host, path, security)?,
    };
    Ok(request)
}

/// The path, with characters encoded that the library does not take.
fn path(rendered: &Bytes, path: &str) -> Result<PathAndQuery, Cause> {
    if let Ok(path) = PathAndQuery::from_maybe_shared(rendered.slice_ref(path.as_bytes())) {
        return Ok(path);
    }
    let mut encoded = Vec::with_capacity(path.len() + 16);
    percent_encode(path.as_bytes(), |byte| byte.is_ascii_graphic() && !b"\"<>`".contains(&byte), &mut encoded);
    PathAndQuery::from_maybe_shared(Bytes::from(encoded)).map_err(|_| Cause::Text("invalid request path"))
}

fn whole_uri(host: Bytes, path: PathAndQuery, security: Security) -> Result<Uri, Cause> {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(if security == Security::Tls { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Some(Authority::from_maybe_shared(host).map_err(|_| Cause::Text("invalid request host"))?);
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| Cause::Text("invalid request address"))
}

/// The head of a response as it is captured.
pub(super) fn head(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} \r\n", status.as_str()).into_bytes();
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn translated(rendered: &'static [u8], protocol: Protocol) -> Result<Wanted, Cause> {
        request(&Bytes::from_static(rendered), protocol, Security::Tls)
    }

    const POST: &[u8] = b"POST /a?b=c HTTP/1.1\r\nHost: shop:1\r\nX-A: 1\r\nX-a: 2\r\nConnection: close\r\n\
        Content-Length: 2\r\n\r\nhi";

    #[test]
    fn http1_stays_as_it_was() {
        let request = translated(POST, Protocol::Http1).unwrap();
        assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("POST", "/a?b=c"));
        assert_eq!(request.headers().len(), 5);
        assert_eq!(request.headers()["host"], "shop:1");
    }

    #[test]
    fn http2_speaks_of_no_connection() {
        let request = translated(POST, Protocol::Http2).unwrap();
        assert_eq!(request.uri().to_string(), "https://shop:1/a?b=c");
        let names: Vec<String> = request.headers().iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        assert_eq!(names, ["x-a=\"1\"", "x-a=\"2\"", "content-length=\"2\""]);
        let body = futures_free(request.into_body());
        assert_eq!(&body[..], b"hi");
    }

    /// A body in memory is ready at once.
    fn futures_free(body: Full<Bytes>) -> Bytes {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(body.collect()).unwrap().to_bytes()
    }

    #[test]
    fn paths_and_hosts_that_no_one_may_have_are_encoded_or_refused() {
        let odd = translated(b"GET /a<b>`^{c}?d=<\"e\"> HTTP/1.1\r\nHost: a\r\n\r\n", Protocol::Http1);
        assert_eq!(odd.unwrap().uri().to_string(), "/a%3Cb%3E%60^{c}?d=%3C%22e%22%3E");
        let star = translated(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", Protocol::Http1);
        assert_eq!(star.unwrap().uri().to_string(), "*");
        let nowhere = translated(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Protocol::Http2);
        assert_eq!(nowhere.unwrap_err(), Cause::Text("invalid request host"));
    }

    #[test]
    fn a_captured_head_reads_like_one_from_the_wire() {
        let mut headers = HeaderMap::new();
        headers.append("set-cookie", HeaderValue::from_static("a=1"));
        headers.append("set-cookie", HeaderValue::from_bytes(b"b=\xfc").unwrap());
        let head = head(StatusCode::FOUND, &headers);
        assert_eq!(head, b"HTTP/1.1 302 \r\nset-cookie: a=1\r\nset-cookie: b=\xfc\r\n\r\n");
        let mut parsed = [httparse::EMPTY_HEADER; 4];
        let mut response = httparse::Response::new(&mut parsed);
        assert!(response.parse(&head).unwrap().is_complete());
        assert_eq!((response.code, response.headers.len()), (Some(302), 2));
    }
}
