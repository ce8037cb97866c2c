//! The pages of a server's monitoring port: JSON over HTTP (NATS documentation, *Monitoring*).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use serde_json::Value;

use crate::components::gauges::TIMEOUT;

/// The longest response: a page has a few KiB, and a little more for each server of the cluster.
const RESPONSE_BYTES_MAX: u64 = 1 << 20;

/// Report of the server about JetStream. Errors when JetStream does not run there, yet or any more.
pub(super) fn jetstream(port: u16) -> Result<Value, String> {
    let page = page(port, "/jsz")?;
    if page["disabled"] == true { Err("JetStream is not running".to_owned()) } else { Ok(page) }
}

/// A page of the server whose monitoring listens at a port.
pub(super) fn page(port: u16, path: &str) -> Result<Value, String> {
    let response = get(port, path).map_err(|error| format!("{path}: {error}"))?;
    parse(&response).map_err(|problem| format!("{path}: {problem}"))
}

/// The whole response. HTTP/1.0, so that the server closes the connection after it.
fn get(port: u16, path: &str) -> std::io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut response = String::new();
    stream.take(RESPONSE_BYTES_MAX).read_to_string(&mut response)?;
    Ok(response)
}

/// The JSON of a response with status 200.
fn parse(response: &str) -> Result<Value, String> {
    let (head, body) = response.split_once("\r\n\r\n").ok_or("the response is not HTTP")?;
    let status = head.lines().next().and_then(|line| line.strip_prefix("HTTP/1.")?.split(' ').nth(1));
    match status {
        Some("200") => serde_json::from_str(body).map_err(|error| format!("the response is not JSON: {error}")),
        Some(status) => Err(format!("the response has status {status}")),
        None => Err("the response is not HTTP".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_json_of_a_response_with_status_200() {
        assert_eq!(parse("HTTP/1.0 200 OK\r\nDate: x\r\n\r\n{\"a\": 1}").unwrap()["a"], 1);
        for (response, problem) in [
            ("", "the response is not HTTP"),
            ("+PONG\r\n\r\n", "the response is not HTTP"),
            ("HTTP/1.0 404 Not Found\r\n\r\n", "the response has status 404"),
        ] {
            assert_eq!(parse(response), Err(problem.to_owned()));
        }
        let cut = parse("HTTP/1.0 200 OK\r\n\r\n{\"a\": ").unwrap_err();
        assert!(cut.starts_with("the response is not JSON: "), "{cut}");
    }
}
