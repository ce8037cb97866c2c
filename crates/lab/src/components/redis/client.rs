//! A connection to a server for commands without arguments, in Redis's protocol (RESP 2).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest response: `INFO` has a few KiB, and a line more for each database.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A client that keeps its connection, and makes a new one after an error.
#[derive(Debug)]
pub(super) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    /// To the server at a port; connects with the first command.
    pub(super) fn new(port: u16) -> Self {
        Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), stream: None }
    }

    /// The response to a command without arguments: a simple or a bulk string. Errors in the server's words, and when
    /// there is no response within `timeout`.
    pub(super) fn call(&mut self, command: &str, timeout: Duration) -> Result<String, String> {
        let deadline = Instant::now() + timeout;
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect_timeout(&self.address, timeout).map_err(|error| error.to_string())?,
        };
        let response = exchange(&mut stream, command, deadline).map_err(|error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => format!("no response within {} s", timeout.as_secs()),
            _ => error.to_string(),
        })?;
        self.stream = Some(stream);
        response
    }
}

/// Sends a command and reads until its response is whole. The inner error is the server's own.
fn exchange(stream: &mut TcpStream, command: &str, deadline: Instant) -> std::io::Result<Result<String, String>> {
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(std::io::Error::from(ErrorKind::TimedOut)),
        left => Ok(Some(left)),
    };
    stream.set_write_timeout(left()?)?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut received = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match parse(&received)? {
            Some(response) => return Ok(response),
            None if received.len() > RESPONSE_BYTES_MAX => return Err(invalid("a response that does not end")),
            None => {}
        }
        stream.set_read_timeout(left()?)?;
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A response once it is whole: `+text`, `-error` or `$length` and so many bytes (Redis serialization protocol).
fn parse(received: &[u8]) -> std::io::Result<Option<Result<String, String>>> {
    let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&received[..end]);
    let (kind, rest) = line.split_at_checked(1).unwrap_or_default();
    match kind {
        "+" => Ok(Some(Ok(rest.to_owned()))),
        "-" => Ok(Some(Err(rest.to_owned()))),
        "$" => {
            let length = rest.parse::<usize>().ok().filter(|length| *length <= RESPONSE_BYTES_MAX);
            let length = length.ok_or_else(|| invalid("a response with an invalid length"))?;
            let body = received.get(end + 2..end + 2 + length + 2);
            Ok(body.map(|body| Ok(String::from_utf8_lossy(&body[..length]).into_owned())))
        }
        _ => Err(invalid("a response that is not Redis's")),
    }
}

fn invalid(what: &str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The longest that a test waits for a response.
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn responses_are_read_once_they_are_whole() {
        let read = |bytes: &[u8]| parse(bytes).map_err(|error| error.to_string());
        assert_eq!(read(b"+PONG\r\n"), Ok(Some(Ok("PONG".to_owned()))));
        assert_eq!(read(b"-LOADING Redis\r\n"), Ok(Some(Err("LOADING Redis".to_owned()))));
        assert_eq!(read(b"$6\r\na:1\r\nb\r\n"), Ok(Some(Ok("a:1\r\nb".to_owned()))));
        assert_eq!(read(b"$0\r\n\r\n"), Ok(Some(Ok(String::new()))));
        for part in ["", "+PON", "$6", "$6\r\n", "$6\r\na:1\r\nb", "$6\r\na:1\r\nb\r"] {
            assert_eq!(read(part.as_bytes()), Ok(None), "{part:?}");
        }
        for bytes in ["\r\n", "HTTP/1.1 200 OK\r\n", "$-1\r\n", "$99999999999999999999\r\n", "$2000000\r\n", "é\r\n"] {
            assert!(read(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        assert!(read(b"\xff\xfe\r\n").is_err());
    }

    #[test]
    fn a_server_that_closes_is_connected_to_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = Client::new(listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            for response in ["+one\r\n", "-no\r\n", ""] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut command = [0; 6];
                stream.read_exact(&mut command).unwrap();
                stream.write_all(response.as_bytes()).unwrap();
            }
        });
        assert_eq!(client.call("PING", TIMEOUT), Ok("one".to_owned()));
        assert!(client.call("PING", TIMEOUT).is_err(), "the connection has ended");
        assert_eq!(client.call("PING", TIMEOUT), Err("no".to_owned()), "a new connection");
        assert!(client.call("PING", TIMEOUT).is_err(), "the connection has ended");
        assert!(client.call("PING", TIMEOUT).is_err(), "a connection without a response");
        server.join().unwrap();
    }
}
