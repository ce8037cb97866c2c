//! Every listener of the binary: connections without a request keep no client out; OTLP beyond loopback needs a token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use crate::common::{Bench, ask, text};

/// Only there to end a test that hangs.
const HANG: Duration = Duration::from_secs(60);
/// File descriptors that a server has left when clients come; fewer than there are half-open connections.
const OPEN_FILES: u64 = 128;
const HALF_OPEN: usize = 300;

/// A server that is killed with the value.
struct Server {
    child: Child,
    address: SocketAddr,
    lines: BufReader<std::process::ChildStderr>,
    /// Its output up to the line that it listens, that line included.
    said: String,
}

impl Server {
    fn start(bench: &Bench, arguments: &[&str], listening: &str) -> Self {
        let mut child = bench.narrows(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let at = loop {
            let before = said.len();
            assert!(lines.read_line(&mut said).unwrap() > 0, "it ended:\n{said}");
            if let Some((_, rest)) = said[before..].split_once(listening) {
                break rest.trim().to_owned();
            }
        };
        let mut address: SocketAddr = at.trim_start_matches("http://").parse().unwrap();
        address.set_ip([127, 0, 0, 1].into());
        Self { child, address, lines, said }
    }

    /// Leaves it few file descriptors; those that it has stay open.
    fn limit_open_files(&self) {
        let limit = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limit).unwrap();
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream
    }

    /// The status of the response to `request`, which requests to close the connection.
    fn status(&self, request: &str) -> u16 {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        text(&response)[9..12].parse().unwrap()
    }

    /// Interrupts it; what it printed since it listened.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
}

fn export(headers: &str) -> String {
    format!(
        "POST /v1/traces HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: application/x-protobuf\r\n\
         content-length: 0\r\n{headers}\r\n"
    )
}

/// The response comes although more connections wait than the server has file descriptors for.
fn serves_beside_half_open_connections(server: &Server, request: &str) {
    assert_eq!(server.status(request), 200);
    server.limit_open_files();
    let half_open: Vec<TcpStream> = (0..HALF_OPEN)
        .map(|at| {
            let mut stream = server.connect();
            let part: &[u8] = if at % 2 == 0 { b"" } else { b"GET / HTTP/1.1\r\nhost:" };
            // The server may have closed it already.
            let _ = stream.write_all(part);
            stream
        })
        .collect();
    assert_eq!(server.status(request), 200);
    assert_eq!(half_open.len(), HALF_OPEN, "they stay open on this side");
}

#[test]
fn the_docstore_serves_beside_half_open_connections() {
    let bench = Bench::new("");
    let server =
        Server::start(&bench, &["engine", "docstore", "--no-auth", "--port", "0", "--documents", "1"], "listens on ");
    serves_beside_half_open_connections(&server, &get("/"));
}

#[test]
fn services_serve_beside_half_open_connections() {
    let bench = Bench::new("");
    let delivery = ["system", "drone-delivery", "delivery", "--port", "0"];
    let server = Server::start(&bench, &delivery, "listens on ");
    serves_beside_half_open_connections(&server, &get("/health"));
}

#[test]
fn sidecars_serve_beside_half_open_connections() {
    let bench = Bench::new("");
    let upstream = crate::server::Server::plain(|_| crate::server::response("200 OK", "", "ok"));
    let url = upstream.url("");
    let upstream = url.trim_start_matches("http://").trim_end_matches('/');
    let hop = format!(
        r#"{{"name": "in", "direction": "inbound", "protocol": "http", "listen": "127.0.0.1:0", "upstream": "{upstream}"}}"#
    );
    std::fs::write(bench.path("sidecar.json"), format!(r#"{{"service": "a", "hops": [{hop}]}}"#)).unwrap();
    let server = Server::start(&bench, &["engine", "sidecar", "--config", "sidecar.json"], "listens on ");
    serves_beside_half_open_connections(&server, &get("/"));
}

#[test]
fn customer_360_serves_beside_half_open_connections() {
    let bench = Bench::new("");
    let upstream = crate::server::Server::plain(|_| crate::server::response("200 OK", "", "{}"));
    let arguments = ["system", "customer-360", "customer", "--port", "0", "--person", &upstream.url("")];
    let server = Server::start(&bench, &arguments, "listens on ");
    serves_beside_half_open_connections(&server, &get("/health"));
}

#[test]
fn the_receiver_of_telemetry_serves_beside_half_open_connections() {
    let bench = Bench::new("");
    let arguments = ["attach", "--for", "10m", "--settle", "0s", "--otlp", "127.0.0.1:0", "--out", "a.narrows"];
    let server = Server::start(&bench, &arguments, "OTLP on ");
    serves_beside_half_open_connections(&server, &export(""));
}

#[test]
fn otlp_beyond_loopback_needs_a_token_that_no_file_keeps() {
    let bench = Bench::new("");
    let arguments = ["attach", "--for", "10m", "--settle", "0s", "--otlp", "0.0.0.0:0", "--out", "a.narrows"];
    let server = Server::start(&bench, &arguments, "OTLP on ");
    let said = server.said.clone();
    assert!(said.contains("caveat: other machines can reach 0.0.0.0:0"), "{said}");
    let (_, token) = said.split_once("OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20").unwrap();
    let token = token.lines().next().unwrap().to_owned();
    assert_eq!(token.len(), 32, "{token}");
    assert_eq!(server.status(&export("")), 401);
    assert_eq!(server.status(&export("authorization: Bearer 0123\r\n")), 401);
    assert_eq!(server.status(&export(&format!("authorization: Bearer {token}\r\n"))), 200);
    let said = server.end();
    assert!(said.contains("2 telemetry requests without the token were refused"), "{said}");
    assert!(!said.contains(&token) && !said.contains("Nothing was sent"), "{said}");
    let run = bench.path("a.narrows");
    assert!(ask(&run, "SELECT caveats FROM trials").contains("without the token"));
    let bytes = std::fs::read(run).unwrap();
    assert!(!bytes.windows(token.len()).any(|window| window == token.as_bytes()), "the run file has the token");
}

#[test]
fn a_token_that_is_given_is_needed_on_loopback_too_and_is_not_printed() {
    let bench = Bench::new("");
    let address = ["attach", "--for", "10m", "--settle", "0s", "--otlp", "127.0.0.1:0", "--out", "a.narrows"];
    let server = Server::start(&bench, &[&address[..], &["--token", "given-1"]].concat(), "OTLP on ");
    assert_eq!(server.status(&export("")), 401);
    assert_eq!(server.status(&export("authorization: Bearer given-1\r\n")), 200);
    assert!(!server.said.contains("given-1"), "{}", server.said);

    let invalid = bench.run(&[&address[..], &["--token", "two words"]].concat());
    let said = text(&invalid.stderr);
    assert_eq!(invalid.status.code(), Some(2), "{said}");
    assert!(
        said.contains("error: invalid --token: expected 1 to 256 letters") && !said.contains("two words"),
        "{said}"
    );
    let mut command = bench.narrows(&address);
    command.env("NARROWS_OTLP_TOKEN", "two words");
    let said = crate::common::end(command);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("error: invalid NARROWS_OTLP_TOKEN: expected"), "{}", text(&said.stderr));
}
