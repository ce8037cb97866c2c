//! A connection to a server for its commands, in Redis's protocol (RESP 2).

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::experiment::ServerUrl;

/// The longest response: `INFO` has a few KiB, and a line more for each database.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// The deepest array in arrays; the slow log has two.
const DEPTH_MAX: usize = 4;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    Text(String),
    Integer(i64),
    Array(Vec<Response>),
    /// Null.
    Nothing,
    /// The server's words.
    Error(String),
}

/// A client that keeps its connection, and makes a new one after an error.
#[derive(Debug)]
pub(super) struct Client {
    url: ServerUrl,
    stream: Option<TcpStream>,
}

impl Client {
    /// To a server; connects with the first command.
    pub(super) fn new(url: ServerUrl) -> Self {
        Self { url, stream: None }
    }

    /// The text that a command returns. Errors in the server's words, and when there is no response within `timeout`.
    pub(super) fn text(&mut self, command: &[&str], timeout: Duration) -> Result<String, String> {
        match self.call(command, timeout)? {
            Response::Text(text) => Ok(text),
            Response::Error(error) => Err(error),
            other => Err(format!("expected a text, found {other:?}")),
        }
    }

    /// The response to a command, which may be an error of the server's. Errors when there is none within `timeout`.
    pub(super) fn call(&mut self, command: &[&str], timeout: Duration) -> Result<Response, String> {
        let deadline = Instant::now() + timeout;
        let stream = self.stream.take();
        let called = || {
            let mut stream = match stream {
                Some(stream) => stream,
                None => connect(&self.url, deadline)?,
            };
            let response = exchange(&mut stream, command, deadline)?;
            Ok::<_, std::io::Error>((stream, response))
        };
        let (stream, response) = called().map_err(|error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => format!("no response within {} s", timeout.as_secs()),
            _ => error.to_string(),
        })?;
        self.stream = Some(stream);
        Ok(response)
    }
}

/// Connects and logs in, if there is a password.
fn connect(url: &ServerUrl, deadline: Instant) -> std::io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = (url.host.as_str(), url.port).to_socket_addrs()?.collect();
    let address = addresses.first().ok_or_else(|| std::io::Error::other("the host has no address"))?;
    let mut stream = TcpStream::connect_timeout(address, left(deadline)?)?;
    if let Some(password) = url.password() {
        let login: Vec<&str> = ["AUTH"].into_iter().chain(url.user.as_deref()).chain([password.as_str()]).collect();
        if let Response::Error(error) = exchange(&mut stream, &login, deadline)? {
            return Err(std::io::Error::other(error));
        }
    }
    Ok(stream)
}

fn left(deadline: Instant) -> std::io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// Sends a command and reads until its response is whole.
fn exchange(stream: &mut TcpStream, command: &[&str], deadline: Instant) -> std::io::Result<Response> {
    stream.set_write_timeout(Some(left(deadline)?))?;
    let words = command.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let command: String = std::iter::once(format!("*{}\r\n", command.len())).chain(words).collect();
    stream.write_all(command.as_bytes())?;
    let mut received = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match parse(&received, 0)? {
            Some((response, _)) => return Ok(response),
            None if received.len() > RESPONSE_BYTES_MAX => return Err(invalid("a response that does not end")),
            None => {}
        }
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
}

/// The first response and what follows it, once it is whole (Redis serialization protocol).
fn parse(received: &[u8], depth: usize) -> std::io::Result<Option<(Response, &[u8])>> {
    let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&received[..end]);
    let after = &received[end + 2..];
    let (kind, rest) = line.split_at_checked(1).unwrap_or_default();
    let length = || {
        let length = rest.parse::<usize>().ok().filter(|length| *length <= RESPONSE_BYTES_MAX);
        length.ok_or_else(|| invalid("a response with an invalid length"))
    };
    match kind {
        "+" => Ok(Some((Response::Text(rest.to_owned()), after))),
        "-" => Ok(Some((Response::Error(rest.to_owned()), after))),
        ":" => {
            let number = rest.parse().map_err(|_| invalid("a number that is none"))?;
            Ok(Some((Response::Integer(number), after)))
        }
        "$" | "*" if rest == "-1" => Ok(Some((Response::Nothing, after))),
        "$" => {
            let length = length()?;
            let body = after.get(..length + 2).map(|body| String::from_utf8_lossy(&body[..length]).into_owned());
            Ok(body.map(|body| (Response::Text(body), &after[length + 2..])))
        }
        "*" if depth < DEPTH_MAX => {
            let (mut items, mut after) = (Vec::new(), after);
            for _ in 0..length()? {
                let Some((item, rest)) = parse(after, depth + 1)? else { return Ok(None) };
                items.push(item);
                after = rest;
            }
            Ok(Some((Response::Array(items), after)))
        }
        _ => Err(invalid("a response that is not Redis's")),
    }
}

fn invalid(what: &str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::experiment::ServerKind;

    /// The longest that a test waits for a response.
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn responses_are_read_once_they_are_whole() {
        let read = |bytes: &[u8]| match parse(bytes, 0) {
            Ok(found) => Ok(found.map(|(response, _)| response)),
            Err(error) => Err(error.to_string()),
        };
        let text = |text: &str| Response::Text(text.to_owned());
        assert_eq!(read(b"+PONG\r\n"), Ok(Some(text("PONG"))));
        assert_eq!(read(b"-LOADING Redis\r\n"), Ok(Some(Response::Error("LOADING Redis".to_owned()))));
        assert_eq!(read(b"$6\r\na:1\r\nb\r\n"), Ok(Some(text("a:1\r\nb"))));
        assert_eq!(read(b"$0\r\n\r\n"), Ok(Some(text(""))));
        assert_eq!(read(b"$-1\r\n"), Ok(Some(Response::Nothing)));
        let nested = Response::Array(vec![Response::Integer(7), Response::Array(vec![text("KEYS"), text("*")])]);
        assert_eq!(read(b"*2\r\n:7\r\n*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n"), Ok(Some(nested)));
        let parts = ["", "+PON", "$6", "$6\r\n", "$6\r\na:1\r\nb", "$6\r\na:1\r\nb\r", "*2\r\n:7\r\n", "*1\r\n*1\r\n"];
        for part in parts {
            assert_eq!(read(part.as_bytes()), Ok(None), "{part:?}");
        }
        let damaged = ["\r\n", "HTTP/1.1 200 OK\r\n", "$99999999999999999999\r\n", "$2000000\r\n", "é\r\n", ":x\r\n"];
        for bytes in damaged {
            assert!(read(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        assert!(read("*1\r\n".repeat(9).as_bytes()).is_err(), "arrays in arrays");
        assert!(read(b"\xff\xfe\r\n").is_err());
    }

    #[test]
    fn a_server_that_closes_is_connected_to_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = Client::new(ServerUrl::local(ServerKind::Redis, port, "", ""));
        let server = std::thread::spawn(move || {
            for response in ["+one\r\n", "-no\r\n", ""] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut command = [0; 14];
                stream.read_exact(&mut command).unwrap();
                assert_eq!(&command, b"*1\r\n$4\r\nPING\r\n");
                stream.write_all(response.as_bytes()).unwrap();
            }
        });
        let mut ping = || client.text(&["PING"], TIMEOUT);
        assert_eq!(ping(), Ok("one".to_owned()));
        assert!(ping().is_err(), "the connection has ended");
        assert_eq!(ping(), Err("no".to_owned()), "a new connection");
        assert!(ping().is_err(), "the connection has ended");
        assert!(ping().is_err(), "a connection without a response");
        server.join().unwrap();
    }
}
