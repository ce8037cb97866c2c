//! The contract of transports, tested with both over plain HTTP/1.1 against a scripted server on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_model::load::{ErrorKind, Protocol};
use tokio::net::TcpSocket;

use super::http1::Epoll;
use super::hyper::{Library, Setup};
use super::transport::{Event, Exchanges, Failure, Order, Repeat, Reuse, Transport};
use crate::clock::Clock;
use crate::request::ResponseForm;
use crate::session::Capture;

/// Detects hangs.
const WAIT_MAX: Duration = Duration::from_secs(30);
const TURN_NS: i64 = 10_000_000;
const SLOT: usize = 3;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Actions of the server on a connection, one after another.
#[derive(Clone, Copy)]
enum Act {
    /// Reads the head of a request.
    Read,
    Write(&'static [u8]),
    Close,
}

use Act::{Close, Read as Head, Write as Reply};

type Script = &'static [&'static [Act]];

/// Accepts a connection for each entry of its script, one after another. Those that the script does not close stay open
/// until the test is over.
struct Server {
    address: SocketAddr,
    over: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (over, is_over) = sync_channel(0);
        let thread = std::thread::spawn(move || {
            let serve = |acts: &&[Act]| serve(listener.accept().unwrap().0, acts);
            let open: Vec<Option<TcpStream>> = script.iter().map(serve).collect();
            let _ = is_over.recv();
            drop(open);
        });
        Self { address, over: Some(over), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over = None;
        // A test that fails may leave the server waiting for connections that never come.
        if let Some(thread) = self.thread.take().filter(|_| !std::thread::panicking()) {
            thread.join().unwrap();
        }
    }
}

fn serve(mut stream: TcpStream, acts: &[Act]) -> Option<TcpStream> {
    for act in acts {
        match act {
            Head => read_head(&mut stream)?,
            Reply(bytes) => stream.write_all(bytes).ok()?,
            Close => return None,
        }
    }
    Some(stream)
}

fn read_head(stream: &mut TcpStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(())
}

/// One request, whose response is not captured.
struct One(Vec<u8>);

impl Exchanges for One {
    fn request(&self, slot: usize) -> &[u8] {
        assert_eq!(slot, SLOT);
        &self.0
    }

    fn capture(&mut self, _: usize) -> Option<&mut Capture> {
        None
    }
}

/// A transport with one request, and a server for it.
struct Client<T> {
    transport: T,
    clock: Clock,
    one: One,
    target: SocketAddr,
    _server: Server,
}

fn client<T>(clock: Clock, transport: T, script: Script) -> Client<T> {
    let server = Server::start(script);
    Client { transport, clock, one: One(GET.to_vec()), target: server.address, _server: server }
}

fn epoll(script: Script) -> Client<Epoll> {
    let clock = Clock::new();
    client(clock, Epoll::new(clock).unwrap(), script)
}

fn library(script: Script) -> Client<Library> {
    let clock = Clock::new();
    client(clock, Library::new(Setup::new(Protocol::Http1, None, clock).unwrap()), script)
}

impl<T: Transport> Client<T> {
    fn send(&mut self) {
        let order =
            Order { target: self.target, from: None, form: ResponseForm::WithBody, now_ns: self.clock.now_ns() };
        self.transport.send(SLOT, order, &mut self.one);
    }

    /// Waits for events up to the first that is wanted.
    fn until(&mut self, is_last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let begun = Instant::now();
        let mut events: Vec<Event> = Vec::new();
        while begun.elapsed() < WAIT_MAX {
            while let Some((slot, event)) = self.transport.next(&mut self.one) {
                assert_eq!(slot, SLOT);
                events.push(event);
                if is_last(&events[events.len() - 1]) {
                    return events;
                }
            }
            let now = self.clock.now_ns();
            self.transport.wait(now + TURN_NS, TURN_NS);
        }
        panic!("no such event within {WAIT_MAX:?}: {events:?}");
    }

    /// Sends the request and waits for its end.
    fn exchange(&mut self) -> Vec<Event> {
        self.send();
        self.until(|event| matches!(event, Event::Response { .. } | Event::Failed(_)))
    }
}

fn names(events: &[Event]) -> Vec<&'static str> {
    let name = |event: &Event| match event {
        Event::Connected { .. } => "connected",
        Event::Sent { .. } => "sent",
        Event::Written { .. } => "written",
        Event::Received { .. } => "received",
        Event::Response { .. } => "response",
        Event::Failed(_) => "failed",
        Event::Closed => "closed",
    };
    events.iter().map(name).collect()
}

fn failure(events: &[Event]) -> &Failure {
    let Some(Event::Failed(failure)) = events.last() else { panic!("{events:?}") };
    failure
}

fn reuse(events: &[Event]) -> Reuse {
    let Some(Event::Response { response, .. }) = events.last() else { panic!("{events:?}") };
    response.reuse
}

#[test]
fn events_come_in_order_and_a_kept_connection_carries_the_next_request() {
    fn run(mut client: Client<impl Transport>) {
        assert!(!client.transport.has_dialled(SLOT));
        let first = client.exchange();
        assert_eq!(names(&first), ["connected", "sent", "written", "response"]);
        assert!(client.transport.has_dialled(SLOT));
        let second = client.exchange();
        assert_eq!(names(&second), ["sent", "written", "response"]);
        assert_eq!([reuse(&first), reuse(&second)], [Reuse::Open; 2]);
        client.transport.farewell();
    }
    const SCRIPT: Script = &[&[Head, Reply(OK), Head, Reply(OK)]];
    run(epoll(SCRIPT));
    run(library(SCRIPT));
}

#[test]
fn times_lie_in_the_order_of_what_happened() {
    fn run(mut client: Client<impl Transport>) {
        let before_ns = client.clock.now_ns();
        let mut times = vec![before_ns];
        for event in client.exchange() {
            match event {
                Event::Connected { opened_ns, connected_ns, secured_ns: None } => {
                    times.extend([opened_ns, connected_ns]);
                }
                Event::Sent { at_ns, delay_ns } => {
                    assert!((0..=at_ns - before_ns).contains(&delay_ns), "{delay_ns}");
                    times.push(at_ns);
                }
                Event::Written { at_ns } => times.push(at_ns),
                Event::Response { first_byte_ns, done_ns, .. } => times.extend([first_byte_ns, done_ns]),
                other => panic!("{other:?}"),
            }
        }
        times.push(client.clock.now_ns());
        assert!(times.is_sorted() && times.len() == 8, "{times:?}");
    }
    run(epoll(&[&[Head, Reply(OK)]]));
    run(library(&[&[Head, Reply(OK)]]));
}

#[test]
fn an_idempotent_request_may_be_repeated_when_a_kept_connection_breaks_without_a_response() {
    fn run(mut client: Client<impl Transport>) {
        client.exchange();
        let broken = client.exchange();
        assert_eq!((failure(&broken).kind, failure(&broken).received), (ErrorKind::Reset, 0));
        assert_eq!(failure(&broken).repeat, Repeat::IfIdempotent);
        client.transport.close(SLOT);
        assert_eq!(names(&client.exchange()), ["connected", "sent", "written", "response"]);
    }
    const SCRIPT: Script = &[&[Head, Reply(OK), Head, Close], &[Head, Reply(OK)]];
    run(epoll(SCRIPT));
    run(library(SCRIPT));
}

#[test]
fn a_request_is_unsent_when_its_kept_connection_was_closed_before() {
    /// Returns whether the transport tried to send.
    fn run(mut client: Client<impl Transport>) -> bool {
        client.one.0 = [GET, b"more"].concat();
        client.exchange();
        // The server accepts this connection once it has closed the other one. Bytes that it has not read turn that
        // close into a reset.
        let mut next = TcpStream::connect(client.target).unwrap();
        next.write_all(GET).unwrap();
        next.read_exact(&mut [0]).unwrap();
        let mut events = client.exchange();
        let has_tried = names(&events) == ["failed"];
        if has_tried {
            assert_eq!((failure(&events).kind, failure(&events).repeat), (ErrorKind::Reset, Repeat::Unsent));
            client.transport.close(SLOT);
            events = client.exchange();
        }
        assert_eq!(names(&events), ["connected", "sent", "written", "response"]);
        has_tried
    }
    const SCRIPT: Script = &[&[Head, Reply(OK), Close], &[Head, Reply(OK)], &[Head, Reply(OK)]];
    assert!(run(epoll(SCRIPT)));
    // The library reads before it writes, so it may have seen the close.
    run(library(SCRIPT));
}

#[test]
fn a_request_may_not_be_repeated_when_a_new_connection_breaks() {
    fn run(mut client: Client<impl Transport>) {
        let broken = client.exchange();
        assert_eq!((failure(&broken).kind, failure(&broken).repeat), (ErrorKind::Reset, Repeat::Never));
    }
    run(epoll(&[&[Head, Close]]));
    run(library(&[&[Head, Close]]));
}

#[test]
fn a_request_may_not_be_repeated_when_part_of_a_response_came() {
    fn run(mut client: Client<impl Transport>) {
        client.exchange();
        let broken = client.exchange();
        assert_eq!((failure(&broken).kind, failure(&broken).repeat), (ErrorKind::Reset, Repeat::Never));
        assert_eq!(failure(&broken).received, 15);
    }
    const SCRIPT: Script = &[&[Head, Reply(OK), Head, Reply(b"HTTP/1.1 200 OK"), Close]];
    run(epoll(SCRIPT));
    run(library(SCRIPT));
}

#[test]
fn nothing_is_reported_of_a_request_that_was_abandoned() {
    fn run(mut client: Client<impl Transport>) {
        client.send();
        client.until(|event| matches!(event, Event::Sent { .. }));
        client.transport.close(SLOT);
        assert_eq!(names(&client.exchange()), ["connected", "sent", "written", "response"]);
        assert!(client.transport.next(&mut client.one).is_none());
    }
    run(epoll(&[&[Head], &[Head, Reply(OK)]]));
    run(library(&[&[Head], &[Head, Reply(OK)]]));
}

#[test]
fn a_refused_connection_fails_and_reports_nothing_else() {
    fn run(mut client: Client<impl Transport>) {
        // A port that is taken, and nobody listens on it.
        let taken = TcpSocket::new_v4().unwrap();
        taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
        client.target = taken.local_addr().unwrap();
        let refused = client.exchange();
        assert_eq!(names(&refused), ["failed"]);
        assert_eq!((failure(&refused).kind, failure(&refused).repeat), (ErrorKind::Connect, Repeat::Never));
    }
    run(epoll(&[]));
    run(library(&[]));
}

#[test]
fn epoll_reports_a_connection_that_the_server_closes_between_requests() {
    let mut client = epoll(&[&[Head, Reply(OK), Close], &[Head, Reply(OK)]]);
    client.exchange();
    assert_eq!(client.until(|event| *event == Event::Closed), [Event::Closed]);
    assert_eq!(names(&client.exchange()), ["connected", "sent", "written", "response"]);
}

#[test]
fn epoll_does_not_keep_a_connection_whose_response_came_before_the_request_was_written() {
    const BODY_BYTES: usize = 64 << 20;
    let mut client = epoll(&[&[Head, Reply(OK)], &[Head, Reply(OK)]]);
    let head = format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    client.one.0 = [head.as_bytes(), &vec![b'x'; BODY_BYTES]].concat();
    let events = client.exchange();
    assert!(!names(&events).contains(&"written"), "{events:?}");
    assert_eq!(reuse(&events), Reuse::Closed);
    client.transport.close(SLOT);
    client.one.0 = GET.to_vec();
    assert_eq!(names(&client.exchange()), ["connected", "sent", "written", "response"]);
}
