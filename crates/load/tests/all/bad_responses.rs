//! Servers with bad responses: every request ends and is counted, nothing hangs or grows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::running::{LoadRun, die_and_return, iterations, plan, run_whole, step};
use flate2::Compression;
use flate2::write::GzEncoder;
use narrows_model::load::{Check, Cookies, ErrorKind, Extract, LoadPlan, Place};
use rustix::net::listen;
use rustix::net::sockopt::set_socket_linger;

/// A server that handles each connection as its test wants.
struct Bad {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Bad {
    fn start(serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), serve)
    }

    fn start_at(address: SocketAddr, serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (ends, serve) = (Arc::new(AtomicBool::new(false)), Arc::new(serve));
        let over = ends.clone();
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (serve, mut stream) = (serve.clone(), stream.unwrap());
                std::thread::spawn(move || serve(&mut stream));
            }
        });
        Self { address, ends, acceptor: Some(acceptor) }
    }

    /// Responds to each request with these bytes, then waits for the next.
    fn responding(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |stream| while hear(stream) && stream.write_all(&bytes).is_ok() {})
    }

    /// Responds to the first request with these bytes again and again.
    fn never_ending(first: &'static [u8], again: Vec<u8>) -> Self {
        Self::start(move |stream| {
            if hear(stream) && stream.write_all(first).is_ok() {
                while stream.write_all(&again).is_ok() {}
            }
        })
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.acceptor.take().unwrap().join().unwrap();
    }
}

/// Takes a request without a body; false when none comes any more.
fn hear(stream: &mut TcpStream) -> bool {
    let mut heard = Vec::new();
    let mut byte = [0; 1];
    while !heard.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        heard.push(byte[0]);
    }
    true
}

/// A plan that looks at all of a response.
fn looking(server: &Bad, count: u64) -> LoadPlan {
    let mut step = step("GET", "/");
    step.checks = vec![Check::BodyContains("x".into()), Check::Json { pointer: "/a".into(), value: None }];
    step.extract = vec![Extract { variable: 0, name: "v".into(), from: Place::Json("/a".into()) }];
    step.redirects_max = 3;
    let mut plan = plan(server.address, iterations(2, count), vec![step]);
    plan.scenarios[0].cookies = Cookies::PerUser;
    plan
}

fn plain(server: &Bad, count: u64) -> LoadPlan {
    plan(server.address, iterations(2, count), vec![step("GET", "/")])
}

fn assert_all(ran: &LoadRun, kind: ErrorKind, count: u64, text: &str) {
    assert_eq!((ran.ended(), ran.outcome.totals.errors.of(kind)), ((0, count), count), "{:?}", ran.causes());
    let other: Vec<_> = ran.causes().into_iter().filter(|cause| cause.0 != kind || !cause.1.contains(text)).collect();
    assert_eq!(other, []);
}

/// The most memory this process ever held, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_response_without_an_end_times_out_and_is_not_kept() {
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 0x10000], b"\r\n".to_vec()].concat();
    let cases: [(&'static [u8], Vec<u8>); 3] =
        [(length, vec![b'x'; 1 << 16]), (chunked, chunk), (b"HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 1 << 16])];
    for (first, again) in cases {
        let server = Bad::never_ending(first, again);
        for mut plan in [plain(&server, 2), looking(&server, 2)] {
            plan.timeout = Duration::from_millis(200);
            let ran = run_whole(&plan);
            assert_all(&ran, ErrorKind::Timeout, 2, "no complete response in time");
        }
    }
    assert!(peak_bytes() < 300 << 20, "{} bytes", peak_bytes());
}

#[test]
fn an_endless_head_or_trailer_or_row_of_continues_ends() {
    let trailer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    let extension = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;";
    let cases: [(&'static [u8], &'static [u8], &str); 5] = [
        (b"HTTP/1.1 200 OK\r\nX: ", b"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", "its head is longer than 64 KiB"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", "it has more than 1,000 headers"),
        (trailer, b"X: y\r\n", "its trailer is longer than 64 KiB"),
        (extension, b"x=yyyyyyyyyy;", "a chunk's extension is longer than 4 KiB"),
        (b"\x16\x03\x01\x02", b"\0\0", "its head is not HTTP/1"),
    ];
    for (first, again, text) in cases {
        let server = Bad::never_ending(first, again.repeat(100));
        assert_all(&run_whole(&looking(&server, 4)), ErrorKind::Protocol, 4, text);
    }
    let server = Bad::never_ending(b"", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100));
    let mut plan = plain(&server, 2);
    plan.timeout = Duration::from_millis(100);
    assert_all(&run_whole(&plan), ErrorKind::Timeout, 2, "no complete response in time");
}

#[test]
fn a_length_that_is_too_long_times_out_or_breaks_off_and_one_too_short_costs_the_connection() {
    let server = Bad::responding("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    let mut waits = plain(&server, 2);
    waits.timeout = Duration::from_millis(50);
    assert_all(&run_whole(&waits), ErrorKind::Timeout, 2, "no complete response in time");
    let server = Bad::start(|stream| {
        if hear(stream) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        }
    });
    assert_all(&run_whole(&plain(&server, 4)), ErrorKind::Reset, 4, "during a response");
    let server = Bad::responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ntoo much of it");
    let ran = run_whole(&plain(&server, 6));
    assert_eq!((ran.ended(), ran.outcome.body_bytes, ran.outcome.phases.connect.count), ((6, 0), 12, 6));
}

#[test]
fn absurd_heads_are_not_http_and_whatever_they_say_is_survived() {
    let many = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{}\r\n", "X: y\r\n".repeat(1_000));
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "its length is not a number"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", "its length is not a number"),
        ("HTTP/1.1 99999 OK\r\n\r\n", "its head is not HTTP/1"),
        ("HTTP/3.7 200 OK\r\n\r\n", "its head is not HTTP/1"),
        ("HTTP/1.1 200 OK\r\n: no name\r\n\r\n", "its head is not HTTP/1"),
        (many.as_str(), "it has more than 1,000 headers"),
    ];
    for (response, text) in cases {
        let server = Bad::responding(response);
        for plan in [plain(&server, 4), looking(&server, 4)] {
            assert_all(&run_whole(&plan), ErrorKind::Protocol, 4, text);
        }
    }
}

#[test]
fn a_body_that_is_not_what_it_says_fails_its_check() {
    let cases: [(&str, &[u8], &str); 4] = [
        ("gzip", b"\x1f\x8b\x08garbage", "check failed: body is not gzip as it says"),
        ("deflate", b"\xff\xff\xff", "check failed: body is not deflate as it says"),
        ("br", b"x", "check failed: body has an encoding other than gzip and deflate"),
        ("identity", b"x{", "check failed: body is not JSON"),
    ];
    for (coding, body, text) in cases {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
        let server = Bad::responding([head.as_bytes(), body].concat());
        assert_all(&run_whole(&looking(&server, 4)), ErrorKind::Check, 4, text);
    }
}

#[test]
fn absurd_cookies_and_locations_are_survived() {
    for headers in [
        "Set-Cookie: \r\nSet-Cookie: =;;;=\r\nSet-Cookie: a\r\nSet-Cookie: a=b; Max-Age=x; Expires=; Path\r\n",
        "Location: \r\n",
        "Location: ../../..//%\r\n",
    ] {
        let status = if headers.starts_with('L') { 302 } else { 200 };
        let body = "{\"a\":\"x\"}";
        let server = Bad::responding(format!("HTTP/1.1 {status} OK\r\nContent-Length: 9\r\n{headers}\r\n{body}"));
        let ran = run_whole(&looking(&server, 4));
        let expected = if status == 200 { (4, 0) } else { (0, 4) };
        assert_eq!(ran.ended(), expected, "{headers}: {:?}", ran.causes());
    }
}

#[test]
fn a_connection_that_is_refused_or_closed_at_once_ends_the_iteration() {
    let server = Bad::start(|_| {});
    assert_all(&run_whole(&looking(&server, 4)), ErrorKind::Reset, 4, "");
    let mut plan = looking(&server, 3);
    // No other test listens at this address, whatever port it is given.
    let listener = TcpListener::bind("127.0.0.9:0").unwrap();
    plan.targets = vec![listener.local_addr().unwrap()];
    drop(listener);
    assert_all(&run_whole(&plan), ErrorKind::Connect, 3, "Connection refused");
}

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_response_that_drips_for_ever_times_out() {
    for first in [&b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nX: "] {
        // One byte for each time that the socket gives up waiting for another request.
        let server = Bad::start(move |stream| {
            stream.set_nodelay(true).unwrap();
            if hear(stream) && stream.write_all(first).is_ok() {
                stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
                while stream.write_all(b"y").is_ok() && !matches!(stream.read(&mut [0; 16]), Ok(0)) {}
            }
        });
        let mut plan = plain(&server, 2);
        plan.timeout = Duration::from_millis(150);
        assert_all(&run_whole(&plan), ErrorKind::Timeout, 2, "no complete response in time");
    }
}

#[test]
fn a_connection_that_is_reset_within_a_response_is_a_reset() {
    let server = Bad::start(|stream| {
        if hear(stream) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
            // Closed with nothing waited for, which the kernel signals to the other side by a reset.
            set_socket_linger(&*stream, Some(Duration::ZERO)).unwrap();
        }
    });
    assert_all(&run_whole(&plain(&server, 4)), ErrorKind::Reset, 4, "Connection reset by peer");
}

#[test]
fn a_connection_that_nobody_takes_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    // The kernel accepts this many connections on its own; beyond them it does not respond.
    let taken: Vec<TcpStream> =
        (0..8).map_while(|_| TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok()).collect();
    assert!(taken.len() < 8, "the queue is never full");
    let mut plan = plan(address, iterations(2, 4), vec![step("GET", "/")]);
    plan.timeout = Duration::from_millis(100);
    assert_all(&run_whole(&plan), ErrorKind::Timeout, 4, "no complete response in time");
}

#[test]
fn a_body_that_unpacks_to_a_thousand_times_its_size_is_not_unpacked_to_its_end() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    (0..256).for_each(|_| packed.write_all(&[b'y'; 1 << 20]).unwrap());
    let body = packed.finish().unwrap();
    assert!(body.len() < 1 << 20, "{} bytes", body.len());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    let server = Bad::responding([head.as_bytes(), &body].concat());
    assert_all(&run_whole(&looking(&server, 4)), ErrorKind::Check, 4, "check failed: body is longer than 1 MiB");
    assert!(peak_bytes() < 300 << 20, "{} bytes", peak_bytes());
}

/// Responds until `is_dead` is set, and then no more on any connection.
fn mortal(address: SocketAddr, is_dead: &Arc<AtomicBool>) -> Bad {
    let is_dead = is_dead.clone();
    Bad::start_at(
        address,
        move |stream| {
            while hear(stream) && !is_dead.load(Ordering::SeqCst) && stream.write_all(GOOD).is_ok() {}
        },
    )
}

#[test]
fn a_target_that_dies_is_counted_as_refusing_and_used_again_when_it_returns() {
    let is_dead = Arc::new(AtomicBool::new(false));
    let mut server = Some(mortal("127.0.0.1:0".parse().unwrap(), &is_dead));
    let address = server.as_ref().unwrap().address;
    let mut plan = plan(address, iterations(1, 1), vec![step("GET", "/")]);
    die_and_return(&mut plan, |exists| {
        is_dead.store(!exists, Ordering::SeqCst);
        server = exists.then(|| mortal(address, &is_dead));
    });
}
