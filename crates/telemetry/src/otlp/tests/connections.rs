//! Connections without a request: they keep no sender out, and they are closed.

use std::time::Duration;

use super::*;
use crate::otlp::serve::LIMITS;

/// Only there to end a test that hangs.
const HANG: Duration = Duration::from_secs(60);
const PARTS: [&[u8]; 4] = [
    b"",
    b"POST /v1/traces HTTP/1.1\r\nhost: h\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM",
    // The whole preface and empty settings.
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
];

fn connect(receiver: &Receiver) -> TcpStream {
    let stream = TcpStream::connect(receiver.local_addr()).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream
}

fn half_open(receiver: &Receiver, part: &[u8]) -> TcpStream {
    let mut stream = connect(receiver);
    stream.write_all(part).unwrap();
    stream
}

fn limited(limits: Limits) -> Receiver {
    let store = FakeStore::returning(Ok(KeptCounts::default()));
    Receiver::start_within(limits, &[("127.0.0.1:0".parse().unwrap(), None)], store, Weights::new()).unwrap()
}

/// Sends a request over a connection that is kept, and reads the response, which has no body.
fn keeps(stream: &mut TcpStream) {
    stream
        .write_all(format!("POST /v1/traces HTTP/1.1\r\nhost: h\r\n{PROTOBUF}content-length: 0\r\n\r\n").as_bytes())
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
}

/// Whether the receiver has closed it, and not only left it waiting for as long as a test may take.
fn is_closed(mut stream: TcpStream) -> bool {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn half_open_connections_keep_no_sender_out() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    let mut sender = connect(&receiver);
    keeps(&mut sender);
    let half_open: Vec<TcpStream> =
        (0..LIMITS.connections_max + 40).map(|at| half_open(&receiver, PARTS[at % PARTS.len()])).collect();
    let mut newcomer = connect(&receiver);
    keeps(&mut newcomer);
    assert_eq!(half_open.len(), LIMITS.connections_max + 40, "they stay open on this side");
}

#[test]
fn a_first_request_has_a_time_limit() {
    let receiver = limited(Limits { first_request_timeout: Duration::from_millis(500), idle_timeout: None, ..LIMITS });
    let half_open = PARTS.map(|part| half_open(&receiver, part));
    let mut dripping = connect(&receiver);
    // Until the receiver closes the connection, which ends the writes.
    while dripping.write_all(b"x").is_ok() {}
    assert!(half_open.into_iter().all(is_closed));
    keeps(&mut connect(&receiver));
}

#[test]
fn silence_between_two_requests_has_a_time_limit_too() {
    let idle_timeout = Some(Duration::from_millis(500));
    let receiver = limited(Limits { first_request_timeout: Duration::from_secs(4), idle_timeout, ..LIMITS });
    let mut sender = connect(&receiver);
    keeps(&mut sender);
    // A second request that does not end does not gain time.
    sender.write_all(PARTS[1]).unwrap();
    assert!(is_closed(sender));
}

#[test]
fn requests_in_progress_are_not_cut_off_for_newcomers() {
    let (reached, has_reached) = mpsc::sync_channel(2);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let limits = Limits { connections_max: 2, ..LIMITS };
    let address = "127.0.0.1:0".parse().unwrap();
    let receiver = Receiver::start_within(limits, &[(address, None)], store.clone(), Weights::new()).unwrap();
    let request = || send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    let waiting = [request(), request()];
    waiting.iter().for_each(|_| has_reached.recv().unwrap());
    let newcomer = request();
    for sender in store.held_back.lock().unwrap().drain(..) {
        sender.send(Ok(KeptCounts::default())).unwrap();
    }
    assert!(waiting.into_iter().all(|stream| receive(stream).status == 200));
    has_reached.recv().unwrap();
    store.held_back.lock().unwrap().remove(0).send(Ok(KeptCounts::default())).unwrap();
    assert_eq!(receive(newcomer).status, 200);
}
