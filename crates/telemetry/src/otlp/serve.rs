//! Accepts connections and tells the protocols apart.
//!
//! HTTP/2 is what begins with its preface (gRPC's clients know that without encryption nobody negotiates), everything
//! else is HTTP/1.1; hyper looks. Of the requests, those whose content type says so are gRPC, on either port that OTLP
//! has for its protocols: which program uses which is a setting that nobody should have to match.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::answer::Body;
use super::connections::Room;
use super::export::{Exporter, IN_FLIGHT_MAX};
use super::{grpc, http};

/// What an HTTP/2 peer may send before it is read, on one connection.
const WINDOW_BYTES: u32 = 512 << 10;
/// The most bytes of a request's headers.
const HEADER_BYTES_MAX: u32 = 16 << 10;

/// Serves until it is told to stop, and then until the requests in flight are answered.
pub(super) async fn serve(listeners: Vec<TcpListener>, exporter: Arc<Exporter>, stop: watch::Receiver<()>) {
    let room = Room::new();
    let each = |listener| listen(listener, room.clone(), Arc::clone(&exporter), stop.clone());
    let serving: JoinSet<()> = listeners.into_iter().map(each).collect();
    serving.join_all().await;
}

async fn listen(listener: TcpListener, room: Room, exporter: Arc<Exporter>, mut stop: watch::Receiver<()>) {
    let connections = GracefulShutdown::new();
    let server = server();
    loop {
        let connection = tokio::select! {
            connection = room.accept(&listener) => connection,
            // Said by dropping the other end.
            _ = stop.changed() => break,
        };
        let exporter = Arc::clone(&exporter);
        let service = service_fn(move |request| answer(Arc::clone(&exporter), request));
        let served = server.serve_connection(TokioIo::new(connection), service).into_owned();
        let served = connections.watch(served);
        // A connection that broke is its sender's matter, who sees it too.
        tokio::spawn(async move { drop(served.await) });
    }
    drop(listener);
    connections.shutdown().await;
}

fn server() -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().max_buf_size(64 << 10);
    server
        .http2()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_concurrent_streams(u32::try_from(IN_FLIGHT_MAX).unwrap_or(u32::MAX))
        .max_header_list_size(HEADER_BYTES_MAX);
    server
}

async fn answer(exporter: Arc<Exporter>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(match grpc::is_meant(request.headers()) {
        true => grpc::answer(&exporter, request).await,
        false => http::answer(&exporter, request).await,
    })
}
