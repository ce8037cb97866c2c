//! Hops as their callers and upstreams see them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::config::{Limits, Protocol};
use crate::testing::{Client, RunningSidecar, config, hop, server, word};

mod encrypted;
mod framing;
mod observed;

fn text(text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    Response::new(Full::new(text.into()))
}

fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/").header("host", "h").body(Full::new(body.into())).unwrap()
}

/// Reports the request it got.
async fn echo(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let mut headers: Vec<String> =
        parts.headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
    headers.sort();
    let body = body.collect().await.unwrap().to_bytes();
    text(format!("{} {} [{}] {}", parts.method, parts.uri, headers.join(","), String::from_utf8_lossy(&body)))
}

/// An upstream of raw bytes: each connection is given to `talk`.
async fn raw<F, T>(talk: F) -> SocketAddr
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream));
        }
    });
    address
}

/// Reads up to the end of a request's head.
async fn read_head(stream: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return false };
        seen.push(byte);
    }
    true
}

/// A port that nobody listens on.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn requests_and_responses_pass_without_what_belongs_to_one_connection() {
    let sidecar = RunningSidecar::start(&config(vec![hop("in", server(echo).await)]));
    let mut client = Client::connect(sidecar.addresses[0]).await;
    let request = Request::put("/a?b=c")
        .header("host", "customer")
        .header("connection", "keep-alive, x-hop")
        .header("x-hop", "1")
        .header("x-end", "2")
        .header("upgrade", "h2c")
        .body(Full::new("body".into()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.body(), "PUT /a?b=c [content-length=4,host=customer,x-end=2] body");
    assert_eq!(client.get("/").await.body(), "GET / [host=h] ");
}

#[tokio::test]
async fn upstream_connections_are_kept() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&connections);
    let upstream = raw(move |mut stream| {
        counting.fetch_add(1, Ordering::Relaxed);
        async move {
            while read_head(&mut stream).await {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            }
        }
    })
    .await;
    let sidecar = RunningSidecar::start(&config(vec![hop("in", upstream)]));
    for _ in 0..3 {
        let mut client = Client::connect(sidecar.addresses[0]).await;
        for _ in 0..5 {
            assert_eq!(client.get("/").await.body(), "ok");
        }
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_upstream_can_have_a_name() {
    let mut config = config(vec![hop("in", server(echo).await)]);
    config.hops[0].upstream.host = "localhost".to_owned();
    let sidecar = RunningSidecar::start(&config);
    assert_eq!(Client::connect(sidecar.addresses[0]).await.get("/").await.body(), "GET / [host=h] ");
}

#[tokio::test]
async fn an_upstream_that_is_down_slow_or_odd_is_distinguished() {
    let silent = raw(|stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    });
    let closing = raw(|mut stream| async move {
        read_head(&mut stream).await;
    });
    let talking = raw(|mut stream| async move { drop(stream.write_all(b"220 mail ready\r\n").await) });
    let cases = [
        (nobody().await, StatusCode::BAD_GATEWAY, "upstream-unreachable"),
        (closing.await, StatusCode::BAD_GATEWAY, "upstream-broken"),
        (talking.await, StatusCode::BAD_GATEWAY, "upstream-broken"),
        (silent.await, StatusCode::GATEWAY_TIMEOUT, "response-timeout"),
    ];
    for (upstream, status, expected) in cases {
        let mut config = config(vec![hop("in", upstream)]);
        if status == StatusCode::GATEWAY_TIMEOUT {
            config.limits = Limits { response_timeout_ms: 100, ..Limits::default() };
        }
        let sidecar = RunningSidecar::start(&config);
        let response = Client::connect(sidecar.addresses[0]).await.get("/").await;
        assert_eq!((response.status(), word(&response).as_str()), (status, expected));
        assert!(String::from_utf8_lossy(response.body()).contains(&upstream.to_string()));
    }
}

#[tokio::test]
async fn a_request_waits_for_a_connection_but_not_for_ever() {
    let (come, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrived, leave) = (Arc::clone(&come), Arc::clone(&go));
    let upstream = server(move |_| {
        let (arrived, leave) = (Arc::clone(&arrived), Arc::clone(&leave));
        async move {
            arrived.notify_one();
            leave.notified().await;
            text("done")
        }
    });
    let mut config = config(vec![hop("in", upstream.await)]);
    config.limits = Limits { upstream_connections_max: 1, pool_wait_ms: 1_000, ..Limits::default() };
    let sidecar = RunningSidecar::start(&config);
    let address = sidecar.addresses[0];
    let first = tokio::spawn(async move { Client::connect(address).await.get("/").await });
    come.notified().await;
    let refused = Client::connect(address).await.get("/").await;
    assert_eq!((refused.status(), word(&refused).as_str()), (StatusCode::SERVICE_UNAVAILABLE, "upstream-pool-full"));
    go.notify_one();
    assert_eq!(first.await.unwrap().body(), "done");
    go.notify_one();
    assert_eq!(Client::connect(address).await.get("/").await.body(), "done");
}

#[tokio::test]
async fn a_kept_connection_that_closes_costs_a_get_nothing_and_a_post_its_response() {
    let upstream = raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        // The next request is read and left without a response, as by a server that closes just then.
        read_head(&mut stream).await;
    });
    let sidecar = RunningSidecar::start(&config(vec![hop("in", upstream.await)]));
    let mut client = Client::connect(sidecar.addresses[0]).await;
    for _ in 0..4 {
        assert_eq!(client.get("/").await.body(), "ok");
    }
    let response = client.send(post("x")).await.unwrap();
    assert_eq!((response.status(), word(&response).as_str()), (StatusCode::BAD_GATEWAY, "upstream-broken"));
}

#[tokio::test]
async fn websockets_and_tunnels_are_refused() {
    let sidecar = RunningSidecar::start(&config(vec![hop("in", server(echo).await)]));
    let upgrade = Request::get("/").header("host", "h").header("connection", "upgrade").header("upgrade", "websocket");
    let connect = Request::connect("h:80").header("host", "h");
    for request in [upgrade, connect] {
        let mut client = Client::connect(sidecar.addresses[0]).await;
        let response = client.send(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!((response.status(), word(&response).as_str()), (StatusCode::NOT_IMPLEMENTED, "not-carried"));
    }
}

#[tokio::test]
async fn bodies_stream_both_ways() {
    let seen = Arc::new(Notify::new());
    let arrived = Arc::clone(&seen);
    let upstream = raw(move |mut stream| {
        let arrived = Arc::clone(&arrived);
        async move {
            read_head(&mut stream).await;
            let mut chunk = [0; 6];
            stream.read_exact(&mut chunk).await.unwrap();
            assert_eq!(&chunk, b"1\r\na\r\n");
            arrived.notify_one();
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nb\r\n").await.unwrap();
            let mut chunk = [0; 11];
            stream.read_exact(&mut chunk).await.unwrap();
            assert_eq!(&chunk, b"1\r\nc\r\n0\r\n\r\n");
            stream.write_all(b"1\r\nd\r\n0\r\n\r\n").await.unwrap();
        }
    });
    let sidecar = RunningSidecar::start(&config(vec![hop("in", upstream.await)]));
    let mut caller = TcpStream::connect(sidecar.addresses[0]).await.unwrap();
    caller.write_all(b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").await.unwrap();
    seen.notified().await;
    assert!(read_head(&mut caller).await);
    let mut chunk = [0; 6];
    caller.read_exact(&mut chunk).await.unwrap();
    assert_eq!(&chunk, b"1\r\nb\r\n");
    caller.write_all(b"1\r\nc\r\n0\r\n\r\n").await.unwrap();
    let mut rest = [0; 11];
    caller.read_exact(&mut rest).await.unwrap();
    assert_eq!(&rest, b"1\r\nd\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_response_that_stands_still_is_cut() {
    let upstream = raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok").await.unwrap();
        std::future::pending::<()>().await;
    });
    let mut config = config(vec![hop("in", upstream.await)]);
    // Long enough for the head on a busy machine.
    config.limits = Limits { response_timeout_ms: 2_000, ..Limits::default() };
    let sidecar = RunningSidecar::start(&config);
    let mut client = Client::connect(sidecar.addresses[0]).await;
    let request = Request::get("/").header("host", "h").body(Full::default()).unwrap();
    let said = format!("{:?}", client.send(request).await.unwrap_err());
    assert!(said.contains("IncompleteBody"), "{said}");
}

#[tokio::test]
async fn requests_under_way_finish_when_it_stops_and_no_more_come_in() {
    let (come, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrived, leave) = (Arc::clone(&come), Arc::clone(&go));
    let upstream = server(move |_| {
        let (arrived, leave) = (Arc::clone(&arrived), Arc::clone(&leave));
        async move {
            arrived.notify_one();
            leave.notified().await;
            text("done")
        }
    });
    let sidecar = RunningSidecar::start(&config(vec![hop("in", upstream.await)]));
    let address = sidecar.addresses[0];
    let mut idle = TcpStream::connect(address).await.unwrap();
    let under_way = tokio::spawn(async move { Client::connect(address).await.get("/").await });
    come.notified().await;
    let serving = sidecar.stop();
    // That an idle connection was closed says that stopping has begun.
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0);
    go.notify_one();
    assert_eq!(under_way.await.unwrap().body(), "done");
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn tcp_passes_bytes_both_ways_until_both_ends_close() {
    let upstream = raw(|mut stream| async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        all.reverse();
        stream.write_all(&all).await.unwrap();
    });
    let mut hop = hop("in", upstream.await);
    hop.protocol = Protocol::Tcp;
    let sidecar = RunningSidecar::start(&config(vec![hop]));
    let mut caller = TcpStream::connect(sidecar.addresses[0]).await.unwrap();
    let sent: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
    caller.write_all(&sent).await.unwrap();
    caller.shutdown().await.unwrap();
    let mut got = Vec::new();
    caller.read_to_end(&mut got).await.unwrap();
    got.reverse();
    assert_eq!(got, sent);
}

#[tokio::test]
async fn nonsense_is_refused_and_hurts_nobody() {
    let sidecar = RunningSidecar::start(&config(vec![hop("in", server(echo).await)]));
    let long = [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 100_000], b"\r\n\r\n".to_vec()].concat();
    let many = [b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(200), b"\r\n".to_vec()].concat();
    let cases: [&[u8]; 7] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  HTTP/1.1\r\nbroken\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        &long,
        &many,
    ];
    for bytes in cases {
        let mut caller = TcpStream::connect(sidecar.addresses[0]).await.unwrap();
        // It may be closed before all has been written.
        let _ = caller.write_all(bytes).await;
        let _ = caller.shutdown().await;
        let mut response = Vec::new();
        let _ = caller.read_to_end(&mut response).await;
        let said = String::from_utf8_lossy(&response);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    assert_eq!(Client::connect(sidecar.addresses[0]).await.get("/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut hop = hop("in", nobody().await);
    hop.listen = taken.local_addr().unwrap();
    let said = crate::Sidecar::with_telemetry(&config(vec![hop]), None).err().unwrap().to_string();
    assert_eq!(said, format!("hop \"in\" cannot listen on {}", taken.local_addr().unwrap()));
}

#[tokio::test]
async fn half_open_callers_keep_nobody_out() {
    let mut config = config(vec![hop("in", server(echo).await)]);
    config.limits = Limits { connections_max: 4, ..Limits::default() };
    let sidecar = RunningSidecar::start(&config);
    let mut half_open = Vec::new();
    for at in 0..12 {
        let mut caller = TcpStream::connect(sidecar.addresses[0]).await.unwrap();
        let part: &[u8] = if at % 2 == 0 { b"GET / HTTP/1.1\r\nhost:" } else { b"" };
        caller.write_all(part).await.unwrap();
        half_open.push(caller);
    }
    let asked = async { Client::connect(sidecar.addresses[0]).await.get("/").await };
    assert_eq!(within_hang(asked).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_caller_that_never_ends_its_head_is_closed_and_one_that_waits_for_its_response_is_not() {
    let (come, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrived, leave) = (Arc::clone(&come), Arc::clone(&go));
    let upstream = server(move |_| {
        let (arrived, leave) = (Arc::clone(&arrived), Arc::clone(&leave));
        async move {
            arrived.notify_one();
            leave.notified().await;
            text("done")
        }
    });
    let mut config = config(vec![hop("in", upstream.await)]);
    config.limits = Limits { first_request_timeout_ms: 500, ..Limits::default() };
    let sidecar = RunningSidecar::start(&config);
    let address = sidecar.addresses[0];
    let slow = tokio::spawn(async move { Client::connect(address).await.get("/").await });
    within_hang(come.notified()).await;
    let mut half_open = TcpStream::connect(address).await.unwrap();
    half_open.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    assert!(within_hang(half_open.read_u8()).await.is_err());
    go.notify_one();
    assert_eq!(slow.await.unwrap().body(), "done");
}

/// With an end for a test that hangs.
async fn within_hang<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(60), what).await.expect("it hangs")
}
