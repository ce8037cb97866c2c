//! Connections and their bounds: how many there may be, and how long a request may take to arrive.
//!
//! HTTP/1.1, and HTTP/2 by prior knowledge. How long a response may take is the service's own matter.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use narrows_listener::{Connection, Limits, Places, Timely, drive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Bounds for a server on loopback that may take `drain` to end: 4,096 connections, each with 30 s to send the head of
/// its first request.
#[must_use]
pub fn limits(drain: Duration) -> Limits {
    const CONNECTIONS_MAX: usize = 4_096;
    Limits {
        connections_max: CONNECTIONS_MAX,
        peer_connections_max: CONNECTIONS_MAX,
        first_request_timeout: Duration::from_secs(30),
        // Pools keep their connections for as long as they like.
        idle_timeout: None,
        drain,
    }
}

/// How long the body of a request may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves requests by `router` until `stop` is ready, then finishes those in progress within the drain of `limits`.
pub async fn serve(listener: TcpListener, limits: Limits, router: Router, stop: impl Future<Output = ()>) {
    let accept = |stream| std::future::ready(Some((stream, router.clone())));
    serve_over(listener, limits, stop, accept).await;
}

/// Serves as [`serve`] does, over the stream and by the router that `accept` makes of a connection. Without them it is
/// closed; what `accept` does counts towards the time of the first request.
pub async fn serve_over<S, A>(
    listener: TcpListener,
    limits: Limits,
    stop: impl Future<Output = ()>,
    accept: impl Fn(TcpStream) -> A,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Future<Output = Option<(S, Router)>> + Send + 'static,
{
    let places = Places::new(limits);
    narrows_listener::serve(listener, &places, stop, |stream, connection| one(accept(stream), connection)).await;
}

async fn one<S>(accepting: impl Future<Output = Option<(S, Router)>>, connection: Arc<Connection>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some((stream, router)) = accepting.await else { return };
    let (counting, router) = (Arc::clone(&connection), TowerToHyperService::new(router));
    let service = service_fn(move |request: Request<Incoming>| {
        let in_progress = counting.begin();
        let response = router.call(request.map(|body| Timely::new(body, BODY_TIMEOUT)));
        async move {
            let response = response.await;
            drop(in_progress);
            response
        }
    });
    let server = Builder::new(TokioExecutor::new());
    // A peer that breaks off or does not speak HTTP ends its own connection only.
    drop(drive(&connection, server.serve_connection(TokioIo::new(stream), service)).await);
}
