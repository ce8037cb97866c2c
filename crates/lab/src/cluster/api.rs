//! Requests to the API server of a cluster, over plain HTTP on loopback as `kubectl proxy` serves it.
//!
//! Credentials, certificates and the ways to get them are kubectl's, so that none of them comes near a run. A response is
//! bounded in time and size; a watch would bring nothing that a list before and after a load does not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use narrows_telemetry::http::Url;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::resolve::resolve;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest response, in bytes: a pod takes about 5 kB.
const RESPONSE_BYTES_MAX: u64 = 32 << 20;
/// Most characters of a server's message that are repeated.
const MESSAGE_CHARS_MAX: usize = 400;

/// Characters that need no escape in a part of a path or a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no response, or none of an API server.
    Unreachable(String),
    /// The API server refuses: status and message.
    Status(u16, String),
}

/// An API server.
#[derive(Debug, Clone)]
pub(super) struct Api {
    url: Url,
}

/// A text as a part of a path or a query.
pub(super) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

impl Api {
    pub(super) fn new(url: Url) -> Self {
        Self { url }
    }

    /// The URL of a path.
    pub(super) fn url(&self, path: &str) -> Url {
        self.url.with_path(path)
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.exchange(&format!(
            "GET {path} HTTP/1.0\r\nHost: {}\r\nAccept: application/json\r\n\r\n",
            self.url.authority()
        ))
    }

    /// Changes parts of an object by a merge patch, which joins maps and replaces lists.
    pub(super) fn patch(&self, path: &str, change: &Value) -> Result<Value, Refusal> {
        let body = change.to_string();
        self.exchange(&format!(
            "PATCH {path} HTTP/1.0\r\nHost: {}\r\nAccept: application/json\r\nContent-Type: \
             application/merge-patch+json\r\nContent-Length: {}\r\n\r\n{body}",
            self.url.authority(),
            body.len(),
        ))
    }

    /// HTTP/1.0, so that the server closes the connection after the response.
    fn exchange(&self, request: &str) -> Result<Value, Refusal> {
        let address = resolve(self.url.authority()).map_err(Refusal::Unreachable)?;
        let exchange = || -> std::io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            stream.write_all(request.as_bytes())?;
            read(stream.take(RESPONSE_BYTES_MAX))
        };
        parse(&exchange().map_err(|error| Refusal::Unreachable(error.to_string()))?)
    }
}

/// A response up to its stated length, or to the end of the connection.
fn read(mut stream: impl Read) -> std::io::Result<Vec<u8>> {
    let mut response = Vec::new();
    let mut piece = [0; 16 << 10];
    let mut whole = None;
    loop {
        let read = stream.read(&mut piece)?;
        response.extend_from_slice(&piece[..read]);
        whole = whole.or_else(|| length(&response));
        if read == 0 || whole.is_some_and(|whole| response.len() >= whole) {
            return Ok(response);
        }
    }
}

/// The length of a response with its head, if the head is there and says it.
fn length(response: &[u8]) -> Option<usize> {
    let end = head_end(response)?;
    let head = std::str::from_utf8(&response[..end]).ok()?;
    let stated = head.lines().filter_map(|line| line.split_once(':'));
    let mut stated = stated.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = stated.next()?.1.trim().parse().ok()?;
    end.checked_add(4)?.checked_add(length)
}

fn head_end(response: &[u8]) -> Option<usize> {
    response.windows(4).position(|four| four == b"\r\n\r\n")
}

fn parse(response: &[u8]) -> Result<Value, Refusal> {
    let foreign = || Refusal::Unreachable("the response is not one of an API server".to_owned());
    let end = head_end(response).ok_or_else(foreign)?;
    let head = std::str::from_utf8(&response[..end]).map_err(|_| foreign())?;
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.split([' ', '\r']).nth(1)?.parse().ok());
    let status: u16 = status.ok_or_else(foreign)?;
    // Bytes behind the stated length are of no response.
    let whole = length(response).map_or(response.len(), |length| length.min(response.len()));
    let body = serde_json::from_slice::<Value>(&response[end + 4..whole]);
    match (status, body) {
        (200..=299, Ok(body)) => Ok(body),
        (200..=299, Err(_)) => Err(foreign()),
        (_, body) => {
            let message = body.ok().and_then(|body| Some(body["message"].as_str()?.to_owned())).unwrap_or_default();
            Err(Refusal::Status(status, message.chars().take(MESSAGE_CHARS_MAX).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_where_it_says_or_with_the_connection() {
        let whole = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        // A connection that is kept has no end.
        let kept = (&whole[..]).chain(std::io::repeat(b'x'));
        assert_eq!(parse(&read(kept).unwrap()), Ok(serde_json::json!({})));
        assert_eq!(read(&b"HTTP/1.0 200 OK\r\n\r\n{}"[..]).unwrap().len(), 21);
        assert!(read(&b""[..]).unwrap().is_empty());
    }

    #[test]
    fn a_response_is_an_object_a_refusal_or_not_of_an_api_server() {
        assert_eq!(parse(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"kind\": \"PodList\"}").unwrap()["kind"], "PodList");
        assert_eq!(
            parse(b"HTTP/1.0 403 Forbidden\r\n\r\n{\"message\": \"pods is forbidden\"}"),
            Err(Refusal::Status(403, "pods is forbidden".to_owned()))
        );
        assert_eq!(parse(b"HTTP/1.1 502 Bad Gateway\r\n\r\n"), Err(Refusal::Status(502, String::new())));
        for foreign in ["", "+PONG\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n<html>", "HTTP/1.0 200 OK\r\n\r\n{\"cut\": "] {
            assert!(matches!(parse(foreign.as_bytes()), Err(Refusal::Unreachable(_))), "{foreign}");
        }
        assert_eq!(escaped("app in (a, b)/é"), "app%20in%20%28a%2C%20b%29%2F%C3%A9");
    }
}
