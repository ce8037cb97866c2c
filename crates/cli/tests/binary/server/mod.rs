//! Small servers on loopback for tests of `narrows load`: HTTP/1.1, plain or over TLS, and HTTP/2 in plain text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) from: IpAddr,
    /// `GET /path HTTP/1.1`
    pub(crate) line: String,
    /// In lower case, with their values.
    pub(crate) headers: Vec<String>,
}

impl ReceivedRequest {
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server that lives as long as the test's process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// The certificate, for TLS.
    pub(crate) pem: String,
}

/// A response from the end of its status line, its headers and its body.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

pub(crate) fn hello(_: &ReceivedRequest) -> String {
    response("200 OK", "", "hello")
}

impl Server {
    /// Serves HTTP/1.1 on every connection. An empty response closes it.
    pub(crate) fn plain(respond: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static) -> Self {
        Self::start(None, String::new(), respond)
    }

    /// The same over TLS, as `localhost`, with a certificate of its own authority.
    pub(crate) fn secure(respond: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static) -> Self {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        Self::start(Some(Arc::new(config)), own.cert.pem(), respond)
    }

    fn start(
        config: Option<Arc<ServerConfig>>,
        pem: String,
        respond: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (respond, noted) = (Arc::new(respond), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (respond, noted, config) = (respond.clone(), noted.clone(), config.clone());
                std::thread::spawn(move || {
                    let from = stream.peer_addr().unwrap().ip();
                    match config {
                        None => serve(stream, from, &noted, &*respond),
                        Some(config) => {
                            let connection = ServerConnection::new(config).unwrap();
                            serve(StreamOwned::new(connection, stream), from, &noted, &*respond);
                        }
                    }
                });
            }
        });
        Self { address, asked, pem }
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Serves a connection until it ends or breaks.
fn serve(
    stream: impl Read + Write,
    from: IpAddr,
    noted: &Mutex<Vec<ReceivedRequest>>,
    respond: &dyn Fn(&ReceivedRequest) -> String,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match stream.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim_end().is_empty() => break,
                Ok(_) => lines.push(line.trim_end().to_owned()),
            }
        }
        let headers = lines.iter().skip(1).map(|header| header.to_ascii_lowercase()).collect();
        let asked = ReceivedRequest { from, line: lines[0].clone(), headers };
        noted.lock().unwrap().push(asked.clone());
        let said = respond(&asked);
        if said.is_empty() {
            return;
        }
        if stream.get_mut().write_all(said.as_bytes()).and_then(|()| stream.get_mut().flush()).is_err() {
            return;
        }
    }
}

/// Serves HTTP/2 by prior knowledge: 200 and `hello`.
pub(crate) fn http2() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_http2(stream));
            }
        });
    });
    address
}

async fn serve_http2(stream: tokio::net::TcpStream) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let head = http::Response::builder().status(200).body(()).unwrap();
        if let Ok(mut body) = respond.send_response(head, false) {
            let _ = body.send_data("hello".into(), true);
        }
    }
}
