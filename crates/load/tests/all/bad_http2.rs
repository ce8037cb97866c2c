//! HTTP/2 servers that break the rules byte by byte: every request ends and is counted by its kind, nothing hangs or grows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::running::{iterations, plan, run_whole, step};
use narrows_model::load::{Check, ErrorKind, Protocol};

// Frames of RFC 9113, 6.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, by its index in RFC 7541, appendix A.
const OK: &[u8] = &[0x88];
/// `:status: 103`, written out.
const HINTS: &[u8] = b"\x08\x03103";
/// `content-length: 5`, written out.
const FIVE: &[u8] = b"\x0f\x0d\x015";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Sends its settings and `first` on every connection that speaks, then `again` for as long as it is heard.
fn server(first: Vec<u8>, again: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let greeting = [frame(SETTINGS, 0, 0, &[]), first.clone()].concat();
            if hear_request(&mut stream) && stream.write_all(&greeting).is_ok() {
                // Bytes of the client are read meanwhile, or neither side could go on.
                let mut other = stream.try_clone().unwrap();
                std::thread::spawn(move || std::io::copy(&mut other, &mut std::io::sink()));
                while !again.is_empty() && stream.write_all(&again).is_ok() {}
                if again.is_empty() {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
            }
        }
    });
    address
}

/// Waits for the client's preface and the head of its first request.
fn hear_request(stream: &mut TcpStream) -> bool {
    let mut preface = [0; 24];
    let mut head = [0; 9];
    if stream.read_exact(&mut preface).is_err() {
        return false;
    }
    while stream.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if stream.read_exact(&mut vec![0; length]).is_err() {
            return false;
        }
        if head[3] == HEADERS {
            return true;
        }
    }
    false
}

/// Name, preamble, repeated frame, accepted kinds of error.
type Case = (&'static str, Vec<u8>, Vec<u8>, &'static [ErrorKind]);

#[test]
fn rules_that_are_broken_are_counted_and_what_never_ends_is_given_up() {
    use ErrorKind::{Protocol as Rule, Reset, Timeout};
    let head = frame(HEADERS, END_HEADERS, 1, OK);
    let long = frame(DATA, 0, 1, &[b'x'; 1 << 14]);
    let lying = [frame(HEADERS, END_HEADERS, 1, &[OK, FIVE].concat()), frame(DATA, END_STREAM, 1, b"abc")].concat();
    let cases: [Case; 12] = [
        // Whether the window or the time is used up first depends on who is faster.
        ("a body without an end", head.clone(), long.clone(), &[Timeout, Rule]),
        ("a body without a head", Vec::new(), long, &[Rule]),
        ("a body shorter than its length", lying, Vec::new(), &[Rule]),
        ("half a body", [head, frame(DATA, 0, 1, b"half")].concat(), Vec::new(), &[Reset]),
        ("a frame of 16 MiB", vec![0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1], vec![0; 1 << 14], &[Rule]),
        ("a head without an end", frame(HEADERS, 0, 1, OK), frame(CONTINUATION, 0, 1, &[0; 1 << 10]), &[Rule]),
        ("a head that cannot be unpacked", frame(HEADERS, END_HEADERS, 1, &[0xff; 12]), Vec::new(), &[Rule]),
        ("a head without a status", frame(HEADERS, END_HEADERS, 1, FIVE), Vec::new(), &[Rule]),
        ("hints without an end", Vec::new(), frame(HEADERS, END_HEADERS, 1, HINTS), &[Timeout, Rule]),
        ("pings without an end", Vec::new(), frame(PING, 0, 0, &[0; 8]), &[Timeout, Rule]),
        ("settings without an end", Vec::new(), frame(SETTINGS, 0, 0, &[]), &[Timeout, Rule]),
        ("no response", Vec::new(), Vec::new(), &[Reset]),
    ];
    for (name, first, again, kinds) in cases {
        let mut step = step("GET", "/");
        step.checks = vec![Check::BodyContains("z".into())];
        let mut plan = plan(server(first, again), iterations(1, 2), vec![step]);
        plan.protocol = Protocol::Http2;
        // A case that may not be a timeout has time enough on any machine.
        plan.timeout = if kinds.contains(&Timeout) { Duration::from_millis(300) } else { Duration::from_secs(60) };
        let ran = run_whole(&plan);
        assert_eq!(ran.ended(), (0, 2), "{name}: {:?}", ran.causes());
        assert!(ran.causes().iter().all(|(kind, ..)| kinds.contains(kind)), "{name}: {:?}", ran.causes());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    assert!(peak.parse::<u64>().unwrap() < 300 << 10, "{peak} kB");
}
