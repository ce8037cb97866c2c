//! The configuration of each proxy, and whether the proxies accept it and carry requests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::*;
use crate::components::sidecar::hops::Direction;
use crate::experiment::Protocol;

/// The longest time in which a proxy comes up.
const TIMEOUT: Duration = Duration::from_secs(60);

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn hop(name: &str, direction: Direction, listen: u16, upstream: u16) -> Hop {
    Hop {
        name: name.to_owned(),
        direction,
        listen: at(listen),
        protocol: Protocol::Http,
        accept_tls: false,
        upstream: at(upstream),
        upstream_tls: None,
    }
}

/// One of each sort of hop.
fn example() -> Plan {
    let folder = PathBuf::from("/trial/name.sidecar-0");
    Plan {
        service: "name.sidecar".to_owned(),
        hops: vec![
            hop("inbound", Direction::Inbound, 4001, 4000),
            Hop { accept_tls: true, ..hop("inbound-tls", Direction::Inbound, 4002, 4000) },
            Hop { upstream_tls: Some("person".to_owned()), ..hop("to person", Direction::Outbound, 4003, 5002) },
            Hop {
                protocol: Protocol::Tcp,
                upstream_tls: Some("database".to_owned()),
                ..hop("to database", Direction::Outbound, 4004, 6002)
            },
            Hop { protocol: Protocol::Tcp, ..hop("to cache", Direction::Outbound, 4005, 7000) },
        ],
        tls: Some(Files::of(Path::new("/trial/certificates"), "name")),
        access_log: Some(access_log_in(&folder)),
        folder,
    }
}

/// The configuration of the example equals the file of that name below `components/`.
pub(in crate::components) fn is_golden(name: &str, render: impl Fn(&Plan) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/components").join(name);
    let text = render(&example());
    assert!(std::fs::read_to_string(path).unwrap() == text, "=== {name}\n{text}");
}

/// Without TLS and log there is nothing of them in what is written, apart from these `words`.
pub(in crate::components) fn is_bare(render: impl Fn(&Plan) -> String, words: &str) {
    let mut plan = example();
    plan.tls = None;
    plan.access_log = None;
    plan.hops = vec![hop("inbound", Direction::Inbound, 4001, 4000)];
    let text = render(&plan);
    let rest = text.replace(words, "");
    let stray = ["ssl", "tls\": {", "certificate", "access.log", "backing-file", "stream {", "Tls"];
    assert!(stray.iter().all(|word| !rest.contains(word)), "{text}");
}

/// A child that is killed with its workers, and waited for, when dropped.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

impl Proxy {
    fn start(command: &[String], folder: &Path) -> Self {
        let output = || std::fs::File::create(folder.join("output")).unwrap();
        let mut starting = Command::new(&command[0]);
        starting.args(&command[1..]).current_dir(folder).stdin(Stdio::null()).stdout(output()).stderr(output());
        starting.process_group(0);
        Self(starting.spawn().unwrap())
    }
}

fn free_port() -> u16 {
    TcpListener::bind(at(0)).unwrap().local_addr().unwrap().port()
}

/// Responds to each connection's first request with its request line, then closes.
fn server() -> u16 {
    let listener = TcpListener::bind(at(0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut seen = Vec::new();
            let mut byte = [0];
            while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                seen.push(byte[0]);
            }
            let first = String::from_utf8_lossy(&seen).lines().next().unwrap_or_default().to_owned();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", first.len());
            let _ = stream.write_all(format!("{head}{first}").as_bytes());
        }
    });
    port
}

/// The whole response of a port to a plain request; empty when it just closes.
fn ask(port: u16) -> String {
    let mut stream = TcpStream::connect(at(port)).unwrap();
    let mut response = Vec::new();
    let request = b"GET /asked HTTP/1.1\r\nhost: name\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(request).and_then(|()| stream.read_to_end(&mut response));
    String::from_utf8_lossy(&response).into_owned()
}

fn await_port(port: u16, folder: &Path) {
    let begun = Instant::now();
    while TcpStream::connect(at(port)).is_err() {
        let said = std::fs::read_to_string(folder.join("output")).unwrap_or_default();
        assert!(begun.elapsed() < TIMEOUT, "port {port} does not open: {said}");
        std::thread::yield_now();
    }
}

/// A caller's and a callee's sidecar, with mutual TLS between them, before a server: one request goes all the way; the
/// port between them takes nobody else.
pub(in crate::components) fn carries(protocol: Protocol, start: impl Fn(&Plan) -> Vec<String>) {
    let root = tempfile::tempdir().unwrap();
    certificates::make(root.path(), &["a", "b", "c"]).unwrap();
    let (outer, trusting, inner) = (free_port(), free_port(), free_port());
    let plan = |service: &str, hops: Vec<Hop>| {
        let folder = root.path().join(service);
        std::fs::create_dir(&folder).unwrap();
        let (tls, access_log) = (Some(Files::of(root.path(), service)), Some(access_log_in(&folder)));
        Plan { service: service.to_owned(), hops, tls, access_log, folder }
    };
    let towards = |listen, name: &str| Hop {
        protocol,
        upstream_tls: Some(name.to_owned()),
        ..hop(&format!("to {name}"), Direction::Outbound, listen, inner)
    };
    let of_b = Hop { accept_tls: true, protocol, ..hop("inbound-tls", Direction::Inbound, inner, server()) };
    let plans = [plan("b", vec![of_b]), plan("a", vec![towards(outer, "b"), towards(trusting, "c")])];
    let running: Vec<Proxy> = plans.iter().map(|plan| Proxy::start(&start(plan), &plan.folder)).collect();
    await_port(inner, &plans[0].folder);
    await_port(outer, &plans[1].folder);
    let response = ask(outer);
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("GET /asked HTTP/1.1"), "{response}");
    // Whoever is not who it should be gets nothing, and neither does who shows no certificate.
    assert!(!ask(trusting).contains("GET /asked"), "another's certificate was taken");
    assert!(!ask(inner).contains("GET /asked"), "a plain request was carried");
    drop(running);
}

pub(in crate::components) fn written(plan: &Plan, name: &str, text: &str) -> String {
    let path = plan.folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}
