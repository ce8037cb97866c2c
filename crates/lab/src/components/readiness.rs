//! Waiting until a service responds.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use narrows_sampler::listening_ports;
use narrows_telemetry::otlp::Token;

use crate::Error;
use crate::components::process::Process;
use crate::experiment::Ready;

const POLL: Duration = Duration::from_millis(20);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Ports named at most.
const PORTS_MAX: usize = 5;

/// Waits until a probe of the process finds nothing missing or `timeout` is over. `meanwhile` is called between
/// probes; its error ends the wait. `port` is where it should listen, where an
/// experiment can say so.
pub(crate) fn wait(
    process: &mut Process,
    port: Option<u16>,
    probe: &dyn Fn(&Process) -> Result<(), String>,
    timeout: Duration,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let deadline = Instant::now() + timeout;
    loop {
        let probed = probe(process);
        // Asked after the probe: a response counts only if the process was there to give it.
        if let Some(how) = process.ended() {
            let last_lines = process.last_lines().last_words();
            return Err(Error::EndedEarly { service: process.name().to_owned(), how, last_lines });
        }
        let Err(problem) = probed else { return Ok(()) };
        meanwhile()?;
        if Instant::now() > deadline {
            let waited = narrows_model::units::duration(timeout.as_nanos() as f64);
            let how = format!("was not ready after {waited}: {problem}");
            let last_lines = process.last_lines().get();
            let elsewhere = port.map_or_else(Vec::new, |port| elsewhere(process, port));
            return Err(Error::NotReady { service: process.name().to_owned(), how, elsewhere, last_lines });
        }
        std::thread::sleep(POLL);
    }
}

/// The ports that a process or one of its descendants listens on; empty if `port` is among them.
fn elsewhere(process: &Process, port: u16) -> Vec<u16> {
    let ports = listening_ports(process.tree());
    if ports.contains(&port) { Vec::new() } else { ports.into_iter().take(PORTS_MAX).collect() }
}

/// Looks once whether what tells that a process can be used is there; else what is lacking.
pub(crate) fn probe(process: &Process, ready: &Ready, port: u16) -> Result<(), String> {
    match ready {
        Ready::Log { text } if !process.last_lines().saw_wanted(POLL) => Err(format!("it has not printed `{text}`")),
        Ready::Log { .. } => Ok(()),
        _ => respond(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), ready, None),
    }
}

/// Looks once whether something at an address responds as it should; else what is missing. Its output is not known.
fn respond(address: SocketAddr, ready: &Ready, token: Option<&Token>) -> Result<(), String> {
    match ready {
        Ready::Http { method, path } => http(address, method, path, token),
        Ready::Tcp | Ready::Log { .. } => connect(address).map(drop),
    }
}

/// Waits until a service that somebody else has started responds, refuses the token, or `timeout` is over; then what is
/// missing. `meanwhile` is called between probes; its error ends the wait.
pub(crate) fn wait_elsewhere(
    address: SocketAddr,
    ready: &Ready,
    token: Option<&Token>,
    timeout: Duration,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Result<(), String>, Error> {
    let deadline = Instant::now() + timeout;
    loop {
        let Err(problem) = respond(address, ready, token) else { return Ok(Ok(())) };
        meanwhile()?;
        if Instant::now() > deadline || is_about_token(&problem) {
            return Ok(Err(problem));
        }
        std::thread::sleep(POLL);
    }
}

/// Whether a service refused its caller for the token alone.
pub(crate) fn is_about_token(problem: &str) -> bool {
    problem.ends_with(" returned 401")
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&address, PROBE_TIMEOUT).map_err(|error| format!("connecting to {address}: {error}"))
}

fn http(address: SocketAddr, method: &str, path: &str, token: Option<&Token>) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("{method} http://{address}{path}: {error}");
    let mut stream = connect(address)?;
    let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {}\r\n", token.secret()));
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(broken)?;
    match status(&read_start(&mut stream).map_err(broken)?) {
        Some(status) if status < 400 => Ok(()),
        Some(status) => Err(format!("{method} http://{address}{path} returned {status}")),
        None => Err(format!("{method} http://{address}{path} did not respond with HTTP")),
    }
}

/// The first bytes of a response: enough for its status line, read within the probe's time however slowly they come.
fn read_start(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    const ENOUGH: usize = 16;
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut start = Vec::new();
    let mut buffer = [0; ENOUGH];
    while start.len() < ENOUGH {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => break,
            n => start.extend_from_slice(&buffer[..n]),
        }
        if Instant::now() > deadline {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
    }
    Ok(start)
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
