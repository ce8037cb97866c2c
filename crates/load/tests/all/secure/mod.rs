//! A server on loopback that speaks HTTP/1.1 or HTTP/2, encrypted or not, and responds or breaks off as a test wants.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use http::{Request, Response};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    /// Of HTTP/2, with scheme and authority.
    pub(crate) uri: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) peer: IpAddr,
    /// The connection it came on, from 0.
    pub(crate) connection: usize,
    /// Its position on that connection, from 0.
    pub(crate) position: usize,
}

/// A client's connection.
#[derive(Debug, Clone, Copy)]
struct Client {
    /// Its number, from 0.
    connection: usize,
    peer: IpAddr,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Without the first slash.
    pub(crate) fn path(&self) -> &str {
        let after_scheme = self.uri.split_once("://").map_or(&self.uri[..], |(_, rest)| rest);
        after_scheme.split_once('/').map_or("", |(_, path)| path)
    }
}

/// Reaction of the server to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Responds.
    Response(u16, Vec<(&'static str, &'static str)>, &'static str),
    /// Sends nothing and waits.
    Silence,
    /// Closes the connection, without a word over HTTP/1.1.
    Close,
    /// Promises a longer body than it sends, and breaks off.
    Half,
    /// Writes this and closes. HTTP/1.1 only.
    Raw(&'static [u8]),
    /// Resets the stream. HTTP/2 only.
    Reset(h2::Reason),
    /// Closes the connection for a reason. HTTP/2 only.
    GoAway(h2::Reason),
    /// Responds, and announces that it will process no other request. HTTP/2 only.
    LastResponse,
}

pub(crate) fn ok() -> Reply {
    Reply::Response(200, Vec::new(), "hello")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

type Respond = dyn Fn(&ReceivedRequest) -> Reply + Send + Sync;

struct Inner {
    respond: Box<Respond>,
    asked: Mutex<Vec<ReceivedRequest>>,
    goodbyes: Mutex<SyncSender<Goodbye>>,
}

/// How an HTTP/1.1 connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goodbye {
    InGoodOrder,
    Broken,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
    goodbyes: Receiver<Goodbye>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(
        speaks: Speaks,
        tls: Option<ServerConfig>,
        respond: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), speaks, tls, respond)
    }

    /// At an address of choice, such as that of a server that is gone.
    pub(crate) fn start_at(
        address: SocketAddr,
        speaks: Speaks,
        tls: Option<ServerConfig>,
        respond: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (said, goodbyes) = sync_channel(1_000);
        let inner = Arc::new(Inner { respond: Box::new(respond), asked: Mutex::default(), goodbyes: Mutex::new(said) });
        let (stop, stopped) = oneshot::channel();
        let shared = inner.clone();
        let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).unwrap();
                spawn_local(accept(listener, speaks, acceptor, shared));
                let _ = stopped.await;
            });
        });
        Self { address, inner, goodbyes, stop: Some(stop), thread: Some(thread) }
    }

    /// How the next HTTP/1.1 connection ended that the client ended.
    pub(crate) fn goodbye(&self) -> Goodbye {
        self.goodbyes.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.inner.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn accept(listener: TcpListener, speaks: Speaks, acceptor: Option<TlsAcceptor>, inner: Arc<Inner>) {
    for connection in 0.. {
        let Ok((tcp, peer)) = listener.accept().await else { return };
        let (acceptor, inner, peer) = (acceptor.clone(), inner.clone(), peer.ip());
        spawn_local(async move {
            let _ = tcp.set_nodelay(true);
            match acceptor {
                None => serve(tcp, speaks, Client { connection, peer }, &inner).await,
                Some(acceptor) => {
                    if let Ok(tls) = acceptor.accept(tcp).await {
                        serve(tls, speaks, Client { connection, peer }, &inner).await;
                    }
                }
            }
        });
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    speaks: Speaks,
    client: Client,
    inner: &Arc<Inner>,
) {
    match speaks {
        Speaks::Http1 => serve_http1(stream, client, inner).await,
        Speaks::Http2 => serve_http2(stream, client, inner).await,
    }
}

async fn serve_http1(mut stream: impl AsyncRead + AsyncWrite + Unpin, client: Client, inner: &Inner) {
    let mut bytes = Vec::new();
    for position in 0.. {
        let asked = match read_http1(&mut stream, &mut bytes, client, position).await {
            Ok(asked) => asked,
            Err(goodbye) => {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
                let _ = inner.goodbyes.lock().unwrap().send(goodbye);
                // Closing before all is read would discard the response.
                let _ = stream.shutdown().await;
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                return;
            }
        };
        let reply = (inner.respond)(&asked);
        let is_head = asked.method == "HEAD";
        inner.asked.lock().unwrap().push(asked);
        let response = match reply {
            Reply::Response(status, ref headers, body) => {
                let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let length = body.len();
                let body = if is_head { "" } else { body };
                format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{lines}\r\n{body}").into_bytes()
            }
            Reply::Half => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec(),
            Reply::Raw(bytes) => bytes.to_vec(),
            Reply::Silence => return std::future::pending().await,
            _ => Vec::new(),
        };
        let _ = stream.write_all(&response).await;
        let _ = stream.flush().await;
        if matches!(reply, Reply::Half | Reply::Raw(_) | Reply::Close) {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

async fn read_http1(
    stream: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
    client: Client,
    position: usize,
) -> Result<ReceivedRequest, Goodbye> {
    let (head, length, mut asked) = loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(head) = request.parse(bytes).map_err(|_| Goodbye::Broken)? {
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
            let headers: Vec<(String, String)> =
                request.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
            let (method, uri) = (request.method.unwrap().to_owned(), request.path.unwrap().to_owned());
            let asked = ReceivedRequest {
                method,
                uri,
                headers,
                body: Vec::new(),
                peer: client.peer,
                connection: client.connection,
                position,
            };
            break (head, asked.header("content-length").map_or(0, |length| length.parse().unwrap()), asked);
        }
        if stream.read_buf(bytes).await.map_err(|_| Goodbye::Broken)? == 0 {
            return Err(Goodbye::InGoodOrder);
        }
    };
    while bytes.len() < head + length {
        if stream.read_buf(bytes).await.map_err(|_| Goodbye::Broken)? == 0 {
            return Err(Goodbye::Broken);
        }
    }
    asked.body = bytes[head..head + length].to_vec();
    bytes.drain(..head + length);
    Ok(asked)
}

async fn serve_http2(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, client: Client, inner: &Arc<Inner>) {
    let Ok(mut server) = Builder::new().handshake::<_, Bytes>(stream).await else { return };
    let mut position = 0;
    // A stream without a response has to be held, or it is reset.
    let mut silent = Vec::new();
    while let Some(Ok((request, mut respond))) = server.accept().await {
        // Bodies are small: they come with their heads.
        let asked = read_http2(&mut server, request, client, position).await;
        position += 1;
        let reply = (inner.respond)(&asked);
        inner.asked.lock().unwrap().push(asked);
        match reply {
            Reply::Response(status, headers, body) => send_http2(&mut respond, status, &headers, body),
            Reply::LastResponse => {
                send_http2(&mut respond, 200, &[], "bye");
                server.graceful_shutdown();
            }
            Reply::Silence => silent.push(respond),
            Reply::Half => {
                let response = Response::builder().status(200).body(()).unwrap();
                let mut body = respond.send_response(response, false).unwrap();
                body.send_data(Bytes::from_static(b"half"), false).unwrap();
                body.send_reset(h2::Reason::INTERNAL_ERROR);
            }
            Reply::Reset(reason) => respond.send_reset(reason),
            Reply::GoAway(reason) => server.abrupt_shutdown(reason),
            Reply::Close | Reply::Raw(_) => return,
        }
    }
}

async fn read_http2<S: AsyncRead + AsyncWrite + Unpin>(
    server: &mut h2::server::Connection<S, Bytes>,
    request: Request<h2::RecvStream>,
    client: Client,
    position: usize,
) -> ReceivedRequest {
    let (head, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while !stream.is_end_stream() {
        // The connection has to be driven for the body to come; no other request comes meanwhile.
        let data = poll_fn(|context| {
            let _ = server.poll_closed(context);
            stream.poll_data(context)
        });
        let Some(Ok(data)) = data.await else { break };
        body.extend_from_slice(&data);
    }
    let headers =
        head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let (method, uri) = (head.method.to_string(), head.uri.to_string());
    ReceivedRequest { method, uri, headers, body, peer: client.peer, connection: client.connection, position }
}

fn send_http2(respond: &mut SendResponse<Bytes>, status: u16, headers: &[(&str, &str)], body: &'static str) {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = response.body(()).unwrap();
    // The client may have gone.
    if let Ok(mut stream) = respond.send_response(response, body.is_empty())
        && !body.is_empty()
    {
        let _ = stream.send_data(Bytes::from_static(body.as_bytes()), true);
    }
}

/// A certificate authority of the test's own.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validity {
    Now,
    Over,
    NotYet,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// A server with a certificate of this authority.
    pub(crate) fn server(&self, name: &str, validity: Validity, offers: &[&[u8]]) -> ServerConfig {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        match validity {
            Validity::Now => {}
            Validity::Over => params.not_after = date_time_ymd(2001, 1, 1),
            Validity::NotYet => params.not_before = date_time_ymd(4000, 1, 1),
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = offers.iter().map(|name| name.to_vec()).collect();
        config
    }
}

/// Listens, and lets `act` have each connection.
pub(crate) fn raw(act: impl Fn(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(act));
    address
}
