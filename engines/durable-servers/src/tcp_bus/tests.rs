//! Nodes that send to each other, strangers, and nodes that end.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

use super::*;

const WAIT: Duration = Duration::from_secs(60);

fn bus(secret: &str) -> TcpBus {
    TcpBus::new(IpAddr::V4(Ipv4Addr::LOCALHOST), secret)
}

fn open(bus: &TcpBus, room: usize) -> (Box<dyn Line>, Receiver<Bytes>) {
    let (arrived, messages) = sync_channel(room);
    let line = bus.open("node", Arc::new(move |message| drop(arrived.try_send(message)))).expect("opened");
    (line, messages)
}

/// Sends until a message arrives: the first ones may be lost.
fn reach(from: &dyn Line, to: &dyn Line, messages: &Receiver<Bytes>) {
    for _ in 0..1000 {
        let _ = from.send(to.address(), Bytes::from_static(b"there?"));
        if messages.recv_timeout(Duration::from_millis(50)).is_ok() {
            return;
        }
    }
    panic!("no message arrived");
}

#[test]
fn messages_arrive_in_order_also_large_ones() {
    let (one, _) = open(&bus("x"), 1);
    let (two, messages) = open(&bus("x"), 10_100);
    let large = Bytes::from(vec![7; MESSAGE_BYTES_MAX]);
    for number in 0..10_000_u32 {
        one.send(two.address(), Bytes::copy_from_slice(&number.to_le_bytes())).expect("sent");
    }
    one.send(two.address(), large.clone()).expect("sent");
    one.send(two.address(), Bytes::new()).expect("sent");
    for number in 0..10_000_u32 {
        assert_eq!(messages.recv_timeout(WAIT).expect("arrived")[..], number.to_le_bytes());
    }
    assert!(messages.recv_timeout(WAIT).expect("arrived") == large);
    assert_eq!(messages.recv_timeout(WAIT).expect("arrived"), Bytes::new());
    let error = one.send(two.address(), Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1])).expect_err("too long");
    assert!(error.to_string().contains("expected at most"), "{error}");
}

#[test]
fn strangers_are_not_let_in() {
    let (ours, messages) = open(&bus("ours"), 10);
    let (theirs, _) = open(&bus("theirs"), 1);
    // A stranger's message is lost, or sending it is an error once the connection was closed.
    let _ = theirs.send(ours.address(), Bytes::from_static(b"stranger"));
    let mut stream = TcpStream::connect(ours.address()).expect("connected");
    let _ = stream.write_all(&[b"GET / HTTP/1.1\r\n".repeat(100), vec![255; 1000]].concat());
    let (friend, _) = open(&bus("ours"), 1);
    friend.send(ours.address(), Bytes::from_static(b"friend")).expect("sent");
    assert_eq!(messages.recv_timeout(WAIT).expect("arrived"), "friend");
    drop((theirs, stream, friend, ours));
    assert!(messages.recv_timeout(WAIT).is_err(), "nothing else arrived");
}

#[test]
fn a_node_that_is_gone_is_an_error_and_its_heir_at_the_same_address_is_reached() {
    let (one, _) = open(&bus("x"), 1);
    let (two, messages) = open(&bus("x"), 10);
    reach(&*one, &*two, &messages);
    let address = two.address().to_owned();
    drop(two);
    let begun = std::time::Instant::now();
    let error = loop {
        // The system takes some bytes before it knows.
        match one.send(&address, Bytes::from(vec![0; 1 << 20])) {
            Err(error) => break error.to_string(),
            Ok(()) => assert!(begun.elapsed() < WAIT, "no error"),
        }
    };
    assert!(error.contains(&format!("cannot send to the node of {address}")), "{error}");
    let (three, messages) = open(&bus("x"), 10);
    reach(&*one, &*three, &messages);
}

#[test]
fn nothing_arrives_after_the_line_was_dropped() {
    let (one, _) = open(&bus("x"), 1);
    let (two, messages) = open(&bus("x"), 10);
    reach(&*one, &*two, &messages);
    let address = two.address().to_owned();
    drop(two);
    let _ = one.send(&address, Bytes::from_static(b"late"));
    // Its sender has gone with the line, so this ends when all messages that had arrived are taken out.
    while let Ok(message) = messages.recv_timeout(WAIT) {
        assert_eq!(message, "there?");
    }
}

#[test]
fn an_address_that_is_none_is_an_error_in_the_end() {
    let (one, _) = open(&bus("x"), 1);
    for address in ["", "nowhere", "127.0.0.1:0", "a\0b:1"] {
        let begun = std::time::Instant::now();
        while one.send(address, Bytes::from_static(b"m")).is_ok() {
            assert!(begun.elapsed() < WAIT, "no error for {address:?}");
        }
    }
}
