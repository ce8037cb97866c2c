//! Accepts connections and detects their protocol.
//!
//! HTTP/2 is what begins with its preface (gRPC's clients know that without encryption nobody negotiates), everything
//! else is HTTP/1.1; hyper looks. Of the requests, those whose content type says so are gRPC, on either port that OTLP
//! has for its protocols: which program uses which is a setting that nobody should have to match.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use narrows_listener::{Connection, Limits, Places, Token, drive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::export::{Exporter, IN_FLIGHT_MAX, Refusal, Why};
use super::response::Body;
use super::{STOP_TIMEOUT, grpc, http};

/// Limits of senders, over all addresses together.
pub(super) const LIMITS: Limits = Limits {
    connections_max: 256,
    // A proxy or a Collector that stands for many senders needs fewer.
    peer_connections_max: 64,
    first_request_timeout: Duration::from_secs(10),
    // SDKs export metrics every 60 seconds by default and keep their connection for it.
    idle_timeout: Some(Duration::from_secs(150)),
    drain: STOP_TIMEOUT,
};
/// Bytes that an HTTP/2 peer may send before they are read, on one connection.
const WINDOW_BYTES: u32 = 512 << 10;
/// The most bytes of a request's headers.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// How often an HTTP/2 peer is pinged, and how long it may take to respond.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Where to listen, and the token that senders need there, if any.
pub(super) type Guarded<L> = (L, Option<Token>);

/// Serves until `stop` fires, and then until the requests in flight have their responses.
pub(super) async fn serve(
    listeners: Vec<Guarded<TcpListener>>,
    limits: Limits,
    exporter: Arc<Exporter>,
    stop: watch::Receiver<()>,
) {
    let places = Places::new(limits);
    let each = |listener| listen(listener, places.clone(), Arc::clone(&exporter), stop.clone());
    let serving: JoinSet<()> = listeners.into_iter().map(each).collect();
    serving.join_all().await;
}

async fn listen(
    (listener, token): Guarded<TcpListener>,
    places: Places,
    exporter: Arc<Exporter>,
    mut stop: watch::Receiver<()>,
) {
    let stopped = async {
        // Said by dropping the other end.
        let _ = stop.changed().await;
    };
    let server = Arc::new(server());
    let serve_one = |stream, connection| {
        let request = ConnectionState { token: token.clone(), exporter: Arc::clone(&exporter), connection };
        one(stream, Arc::clone(&server), Arc::new(request))
    };
    narrows_listener::serve(listener, &places, stopped, serve_one).await;
}

/// State that all requests of a connection share.
struct ConnectionState {
    token: Option<Token>,
    exporter: Arc<Exporter>,
    connection: Arc<Connection>,
}

async fn one(stream: TcpStream, server: Arc<Builder<TokioExecutor>>, shared: Arc<ConnectionState>) {
    let connection = Arc::clone(&shared.connection);
    let service = service_fn(move |request| handle(Arc::clone(&shared), request));
    // A connection that broke is its sender's matter, who sees it too.
    drop(drive(&connection, server.serve_connection(TokioIo::new(stream), service)).await);
}

fn server() -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().max_buf_size(64 << 10);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_concurrent_streams(u32::try_from(IN_FLIGHT_MAX).unwrap_or(u32::MAX))
        .max_header_list_size(HEADER_BYTES_MAX);
    server
}

async fn handle(shared: Arc<ConnectionState>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let _in_progress = shared.connection.begin();
    let exporter = &shared.exporter;
    let is_grpc = grpc::is_meant(request.headers());
    if shared.token.as_ref().is_some_and(|token| !token.is_shown(request.headers())) {
        let refusal = Refusal::new(Why::Unauthenticated, "expected the header `authorization: Bearer TOKEN`");
        exporter.count(&refusal);
        return Ok(if is_grpc { grpc::refused(&refusal) } else { http::refused(&request, &refusal) });
    }
    Ok(if is_grpc { grpc::handle(exporter, request).await } else { http::handle(exporter, request).await })
}
