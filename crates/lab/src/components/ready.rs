//! Waiting until a service answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::process::Process;
use crate::Error;
use crate::experiment::Ready;

const POLL: Duration = Duration::from_millis(20);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits until the process is ready or `patience` is over. `is_stopped` is asked between probes.
pub fn wait(
    process: &mut Process,
    ready: &Ready,
    port: u16,
    patience: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let deadline = Instant::now() + patience;
    loop {
        let problem = match probe(process, ready, port) {
            Ok(()) => return Ok(()),
            Err(problem) => problem,
        };
        if let Some(how) = process.ended() {
            return Err(not_ready(process, format!("{how} before it was ready")));
        }
        if is_stopped() {
            return Err(Error::Interrupted);
        }
        if Instant::now() > deadline {
            let waited = narrows_model::units::duration(patience.as_nanos() as f64);
            return Err(not_ready(process, format!("was not ready after {waited}: {problem}")));
        }
        std::thread::sleep(POLL);
    }
}

fn not_ready(process: &Process, how: String) -> Error {
    Error::NotReady { service: process.name().to_owned(), how, last_lines: process.last_lines().get() }
}

fn probe(process: &Process, ready: &Ready, port: u16) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match ready {
        Ready::Tcp => connect(address).map(drop),
        Ready::Http { method, path } => http(address, method, path),
        Ready::Log { text } if process.last_lines().saw_wanted(POLL) => {
            let _ = text;
            Ok(())
        }
        Ready::Log { text } => Err(format!("it has not printed `{text}`")),
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&address, PROBE_TIMEOUT).map_err(|error| format!("connecting to {address}: {error}"))
}

fn http(address: SocketAddr, method: &str, path: &str) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("{method} http://{address}{path}: {error}");
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).map_err(broken)?;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(broken)?;
    let mut head = Vec::new();
    stream.take(64).read_to_end(&mut head).map_err(broken)?;
    match status(&head) {
        Some(status) if status < 400 => Ok(()),
        Some(status) => Err(format!("{method} http://{address}{path} answered {status}")),
        None => Err(format!("{method} http://{address}{path} did not answer in HTTP")),
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn status_lines() {
        assert_eq!(super::status(b"HTTP/1.1 204 No Content\r\nA: b"), Some(204));
        assert_eq!(super::status(b"HTTP/1.0 503 x"), Some(503));
        assert_eq!(super::status(b"SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(super::status(b"\xff\xfe"), None);
    }
}
