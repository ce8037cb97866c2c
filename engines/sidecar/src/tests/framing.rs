//! Ambiguous hosts and message ends (RFC 9112), tested with raw bytes over sockets.

use super::*;

/// The response to these bytes; the caller then closes its sending side.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut caller = TcpStream::connect(address).await.unwrap();
    caller.write_all(request.as_bytes()).await.unwrap();
    caller.shutdown().await.unwrap();
    let mut response = Vec::new();
    within_hang(caller.read_to_end(&mut response)).await.unwrap();
    String::from_utf8(response).unwrap()
}

/// The hop's response if the upstream responds to every request with these bytes.
async fn relayed(response: &'static str) -> String {
    let upstream = raw(move |mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(response.as_bytes()).await.unwrap();
    });
    let sidecar = RunningSidecar::start(&config(vec![hop("in", upstream.await)]));
    ask(sidecar.addresses[0], "GET / HTTP/1.1\r\nhost: h\r\n\r\n").await
}

#[tokio::test]
async fn a_request_goes_on_with_all_of_its_body_whatever_its_method() {
    let sidecar = RunningSidecar::start(&config(vec![hop("in", server(echo).await)]));
    let chunked = "4\r\nbody\r\n0\r\n\r\n";
    for (request, expected) in [
        (
            format!("GET / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n{chunked}"),
            "GET / [host=h,transfer-encoding=chunked] body",
        ),
        (
            format!("DELETE / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: Chunked\r\n\r\n{chunked}"),
            "DELETE / [host=h,transfer-encoding=chunked] body",
        ),
        (
            "GET / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nbody".to_owned(),
            "GET / [content-length=4,host=h] body",
        ),
        ("GET / HTTP/1.1\r\nhost: h:80\r\n\r\n".to_owned(), "GET / [host=h:80] "),
        ("GET / HTTP/1.1\r\nhost: [::1]:\r\n\r\n".to_owned(), "GET / [host=[::1]:] "),
        ("GET / HTTP/1.1\r\nhost:\r\n\r\n".to_owned(), "GET / [host=] "),
        ("GET http://a:1/x HTTP/1.1\r\nhost: b\r\n\r\n".to_owned(), "GET /x [host=a:1] "),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), "GET / [host=] "),
    ] {
        let response = ask(sidecar.addresses[0], &request).await;
        assert!(
            response.starts_with("HTTP/1.1 200 ") || response.starts_with("HTTP/1.0 200 "),
            "{request}: {response}"
        );
        assert!(response.ends_with(&format!("\r\n\r\n{expected}")), "{request}: {response}");
    }
}

#[tokio::test]
async fn a_length_beside_a_chunked_body_does_not_go_on() {
    let sidecar = RunningSidecar::start(&config(vec![hop("in", server(echo).await)]));
    for fields in ["transfer-encoding: chunked\r\ncontent-length: 3", "content-length: 3\r\ntransfer-encoding: chunked"]
    {
        let request = format!("POST / HTTP/1.1\r\nhost: h\r\n{fields}\r\n\r\n4\r\nbody\r\n0\r\n\r\n");
        let response = ask(sidecar.addresses[0], &request).await;
        assert!(response.ends_with("POST / [host=h,transfer-encoding=chunked] body"), "{fields}: {response}");
    }
    let response =
        relayed("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
            .await;
    assert!(!response.contains("content-length"), "{response}");
    assert!(response.ends_with("\r\n\r\n4\r\nbody\r\n0\r\n\r\n"), "{response}");
}

#[tokio::test]
async fn a_request_that_does_not_say_where_it_belongs_or_ends_is_refused_and_goes_nowhere() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&requests);
    let upstream = server(move |_| {
        counting.fetch_add(1, Ordering::Relaxed);
        async { text("ok") }
    });
    let sidecar = RunningSidecar::start(&config(vec![hop("in", upstream.await)]));
    let body = "4\r\nbody\r\n0\r\n\r\n";
    for (target, fields, expected) in [
        ("/", "host: a\r\nhost: a", "400 caller-malformed"),
        ("/", "x: 1", "400 caller-malformed"),
        ("/", "host: user:password@a", "400 caller-malformed"),
        ("/", "host: a b", "400 caller-malformed"),
        ("/", "host: a:port", "400 caller-malformed"),
        ("/", "host: a/b", "400 caller-malformed"),
        ("http://user@a/", "host: a", "400 caller-malformed"),
        ("/", "host: a\r\ntransfer-encoding: chunked, chunked", "400 caller-malformed"),
        ("/", "host: a\r\ntransfer-encoding: gzip, chunked", "501 not-carried"),
        ("/", "host: a\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked", "501 not-carried"),
    ] {
        let response = ask(sidecar.addresses[0], &format!("POST {target} HTTP/1.1\r\n{fields}\r\n\r\n{body}")).await;
        let (status, word) = expected.split_once(' ').unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {response}");
        assert!(response.contains(&format!("\"error\":\"{word}\"")), "{fields}: {response}");
    }
    assert_eq!(requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_response_that_nobody_asked_for_is_the_upstreams_fault() {
    for response in [
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nbytes",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nbody",
    ] {
        let relayed = relayed(response).await;
        assert!(relayed.starts_with("HTTP/1.1 502 "), "{response}: {relayed}");
        assert!(relayed.contains("\"error\":\"upstream-broken\""), "{response}: {relayed}");
    }
}

#[tokio::test]
async fn a_caller_that_closes_its_side_gets_the_response_that_comes_later() {
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
    let mut caller = TcpStream::connect(sidecar.addresses[0]).await.unwrap();
    caller.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    come.notified().await;
    caller.shutdown().await.unwrap();
    go.notify_one();
    let mut response = String::new();
    within_hang(caller.read_to_string(&mut response)).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\ndone"), "{response}");
}
