//! Makes connections: TCP, TLS if the plan wants it, then HTTP/1.1 or HTTP/2.

use std::net::{IpAddr, SocketAddr, TcpStream as StdStream};
use std::rc::Rc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use narrows_model::load::{ErrorKind, Protocol};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{AbortHandle, spawn_local};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::events::{Events, Flight, Report};
use super::failure::{Progress, broken_by};
use super::meter::{Meter, MeteredStream};
use crate::clock::Clock;
use crate::drivers::socket;
use crate::drivers::transport::{Event, Failure, HEAD_BYTES_MAX};
use crate::recorder::Cause;
use crate::tls::{Encryption, handshake_cause};

/// Maximum number of headers of a response over HTTP/1.1; over HTTP/2 only their bytes are limited.
const HEADERS_MAX: usize = 1_000;

/// Makes the connections of one thread.
pub(super) struct Dialer {
    pub(super) protocol: Protocol,
    pub(super) encryption: Option<Encryption>,
    pub(super) clock: Clock,
    pub(super) events: Rc<Events>,
}

/// An open connection. Closed in good order when it is dropped between exchanges, at once when within one.
pub(super) struct Link {
    sender: Sender,
    pub(super) meter: Rc<Meter>,
    /// Stream that moves its bytes.
    engine: AbortHandle,
    pub(super) is_busy: bool,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.is_busy {
            self.engine.abort();
        }
    }
}

impl Link {
    /// Waits until a request can be sent; false when none can be any more.
    pub(super) async fn is_ready(&mut self) -> bool {
        let ready = match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await,
            Sender::Http2(sender) => sender.ready().await,
        };
        ready.is_ok()
    }

    /// Whether the server has closed it, as far as known.
    pub(super) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => sender.send_request(request).await,
            Sender::Http2(sender) => sender.send_request(request).await,
        }
    }
}

/// Runs what the library wants run on the thread's own runtime.
#[derive(Clone, Copy)]
struct Here;

impl<F: Future + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}

impl Dialer {
    /// Opens a connection to `target`, from an address if there is one.
    pub(super) async fn dial(&self, flight: Flight, target: SocketAddr, from: Option<IpAddr>) -> Result<Link, Failure> {
        let socket = socket::open(&target, from).map_err(|errno| Failure::new(ErrorKind::Connect, errno.into()))?;
        let opened_ns = self.clock.now_ns();
        let socket = TcpSocket::from_std_stream(StdStream::from(socket));
        let tcp = socket.connect(target).await.map_err(|error| refused(&error))?;
        let connected_ns = self.clock.now_ns();
        let connected = |secured_ns| Report::On(Event::Connected { opened_ns, connected_ns, secured_ns });
        match &self.encryption {
            None => {
                self.events.push(flight, connected(None));
                self.speak(tcp).await
            }
            Some(encryption) => {
                let tls = secure(encryption, tcp).await?;
                self.events.push(flight, connected(Some(self.clock.now_ns())));
                self.speak(tls).await
            }
        }
    }

    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Result<Link, Failure> {
        let meter = Rc::new(Meter::new(self.clock, self.events.clone()));
        let stream = TokioIo::new(MeteredStream::new(stream, meter.clone()));
        // The task that waits for the response learns how the connection ends.
        let (sender, engine) = match self.protocol {
            Protocol::Http1 => {
                let mut builder = http1::Builder::new();
                builder.max_headers(HEADERS_MAX).max_buf_size(HEAD_BYTES_MAX);
                let (sender, connection) =
                    builder.handshake(stream).await.map_err(|error| broken_by(&error, Progress::Nothing))?;
                let engine = spawn_local(async move { connection.await.is_ok() });
                (Sender::Http1(sender), engine)
            }
            Protocol::Http2 => {
                let mut builder = http2::Builder::new(Here);
                builder.max_header_list_size(HEAD_BYTES_MAX as u32);
                let (sender, connection) =
                    builder.handshake(stream).await.map_err(|error| broken_by(&error, Progress::Nothing))?;
                let engine = spawn_local(async move { connection.await.is_ok() });
                (Sender::Http2(sender), engine)
            }
        };
        Ok(Link { sender, meter, engine: engine.abort_handle(), is_busy: false })
    }
}

async fn secure(encryption: &Encryption, tcp: TcpStream) -> Result<TlsStream<TcpStream>, Failure> {
    let connector = TlsConnector::from(encryption.config.clone());
    let tls = connector.connect(encryption.server_name.clone(), tcp).await;
    let tls = tls.map_err(|error| Failure::new(ErrorKind::Connect, handshake_cause(&error)))?;
    if encryption.protocol == Protocol::Http2 && tls.get_ref().1.alpn_protocol() != Some(b"h2") {
        let cause = Cause::Text("TLS: the server does not offer HTTP/2 (ALPN h2)");
        return Err(Failure::new(ErrorKind::Connect, cause));
    }
    Ok(tls)
}

fn refused(error: &std::io::Error) -> Failure {
    let cause = error.raw_os_error().map_or(Cause::Text("no connection could be opened"), Cause::Os);
    Failure::new(ErrorKind::Connect, cause)
}
