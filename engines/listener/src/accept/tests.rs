//! The loop with real connections. Time is real here, because data on a socket does not wait for a paused clock.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::drive;

/// Only there to end a test that hangs.
const HANG: Duration = Duration::from_secs(60);
const NEVER: Duration = Duration::from_secs(100_000);

const LIMITS: Limits = Limits {
    connections_max: 8,
    peer_connections_max: 8,
    first_request_timeout: NEVER,
    idle_timeout: None,
    drain: NEVER,
};

/// A server whose `/slow` responds after it was let go.
struct Server {
    address: SocketAddr,
    slow_began: Arc<Notify>,
    let_go: Arc<Notify>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (slow_began, let_go): (Arc<Notify>, Arc<Notify>) = Default::default();
        let (stop, stopped) = oneshot::channel();
        let (began, go) = (Arc::clone(&slow_began), Arc::clone(&let_go));
        let serving = tokio::spawn(async move {
            let places = Places::new(limits);
            let serve_one = |stream, connection: Arc<Connection>| one(stream, connection, began.clone(), go.clone());
            serve(listener, &places, async { drop(stopped.await) }, serve_one).await;
        });
        Self { address, slow_began, let_go, stop, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn half_open(&self) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
        stream
    }
}

async fn one(stream: TcpStream, connection: Arc<Connection>, began: Arc<Notify>, go: Arc<Notify>) {
    let counting = Arc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let (progress, began, go) = (counting.begin(), Arc::clone(&began), Arc::clone(&go));
        async move {
            let _progress = progress;
            if request.uri().path() == "/slow" {
                began.notify_one();
                go.notified().await;
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
        }
    });
    let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    drop(drive(&connection, http).await);
}

async fn ask(stream: &mut TcpStream, path: &str) {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").as_bytes()).await.unwrap();
}

/// The status of the next response, whose body is `ok`.
async fn response_status(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\nok") {
        response.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(response[9..12].to_vec()).unwrap()
}

async fn is_closed(mut stream: TcpStream) -> bool {
    // By an end or by a reset, as there was something left to read or not.
    stream.read_u8().await.is_err()
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    timeout(HANG, what).await.expect("it hangs")
}

#[tokio::test]
async fn half_open_connections_keep_nobody_out() {
    in_time(async {
        let server = Server::start(LIMITS).await;
        let mut half_open = Vec::new();
        for at in 0..LIMITS.connections_max * 3 {
            half_open.push(if at % 2 == 0 { server.half_open().await } else { server.connect().await });
        }
        let mut client = server.connect().await;
        ask(&mut client, "/").await;
        assert_eq!(response_status(&mut client).await, "200");
        let oldest = half_open.remove(0);
        assert!(is_closed(oldest).await);
    })
    .await;
}

#[tokio::test]
async fn a_first_request_has_a_time_limit_however_much_is_sent() {
    in_time(async {
        let limits = Limits { first_request_timeout: Duration::from_millis(500), ..LIMITS };
        let server = Server::start(limits).await;
        let (mut read, mut write) = server.half_open().await.into_split();
        // A byte at a time until the server closes the connection, which ends the writes. They stay below the size of a
        // head that is refused.
        let dripping = tokio::spawn(async move {
            while write.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let silent = server.connect().await;
        assert!(read.read_u8().await.is_err());
        dripping.await.unwrap();
        assert!(is_closed(silent).await);
        let mut client = server.connect().await;
        ask(&mut client, "/slow").await;
        server.slow_began.notified().await;
        // The time of a silent connection that came later has run out, so that of this one would have too.
        assert!(is_closed(server.connect().await).await);
        server.let_go.notify_one();
        assert_eq!(response_status(&mut client).await, "200");
    })
    .await;
}

#[tokio::test]
async fn a_newcomer_is_served_when_a_busy_connection_gives_up_its_place() {
    in_time(async {
        let server = Server::start(Limits { connections_max: 1, ..LIMITS }).await;
        let mut busy = server.connect().await;
        ask(&mut busy, "/slow").await;
        server.slow_began.notified().await;
        let mut newcomer = server.connect().await;
        ask(&mut newcomer, "/").await;
        server.let_go.notify_one();
        assert_eq!(response_status(&mut busy).await, "200", "it was not cut off");
        drop(busy);
        assert_eq!(response_status(&mut newcomer).await, "200");
    })
    .await;
}

#[tokio::test]
async fn stopping_waits_for_requests_and_not_for_idlers() {
    in_time(async {
        let server = Server::start(LIMITS).await;
        let (half_open, mut idle, mut busy) =
            (server.half_open().await, server.connect().await, server.connect().await);
        ask(&mut idle, "/").await;
        response_status(&mut idle).await;
        ask(&mut busy, "/slow").await;
        server.slow_began.notified().await;
        server.stop.send(()).unwrap();
        assert!(is_closed(half_open).await && is_closed(idle).await);
        server.let_go.notify_one();
        assert_eq!(response_status(&mut busy).await, "200");
        assert!(is_closed(busy).await);
        server.serving.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    in_time(async {
        let server = Server::start(Limits { drain: Duration::from_millis(10), ..LIMITS }).await;
        let mut busy = server.connect().await;
        ask(&mut busy, "/slow").await;
        server.slow_began.notified().await;
        server.stop.send(()).unwrap();
        server.serving.await.unwrap();
        assert!(is_closed(busy).await);
    })
    .await;
}
