//! Connections and their bounds: how many there may be, and how long a request may take to arrive.
//!
//! HTTP/1.1, and HTTP/2 by prior knowledge. How long a response may take is the service's own matter.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http;
use axum::response::Response;
use hyper::body::{Body as _, Incoming};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
pub use narrows_listener::Serving;
use narrows_listener::{Connection, Limits, Places, TimelyBody, drive};
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
pub fn serve(
    listener: TcpListener,
    limits: Limits,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Serving {
    serve_until(listener, limits, router, Box::pin(stop))
}

fn serve_until(listener: TcpListener, limits: Limits, router: Router, stop: Serving) -> Serving {
    Box::pin(async move {
        let router = TowerToHyperService::new(router);
        let respond = move |request| infallible(router.call(request));
        let accept = |stream| std::future::ready(Some((stream, respond.clone())));
        serve_over(listener, limits, stop, accept).await;
    })
}

async fn infallible(responding: impl Future<Output = Result<Response, Infallible>>) -> Response {
    let Ok(response) = responding.await;
    response
}

/// Serves as [`serve`] does, over the stream and by the function that `accept` makes of a connection. Without them it is
/// closed; what `accept` does counts towards the time of the first request.
pub async fn serve_over<S, A, R, F>(
    listener: TcpListener,
    limits: Limits,
    stop: impl Future<Output = ()>,
    accept: impl Fn(TcpStream) -> A,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Future<Output = Option<(S, R)>> + Send + 'static,
    R: Fn(Request) -> F + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let places = Places::new(limits);
    narrows_listener::serve(listener, &places, stop, |stream, connection| one(accept(stream), connection)).await;
}

async fn one<S, R, F>(accepting: impl Future<Output = Option<(S, R)>>, connection: Arc<Connection>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Fn(Request) -> F + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let Some((stream, respond)) = accepting.await else { return };
    let counting = Arc::clone(&connection);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let in_progress = counting.begin();
        let responding = respond(request.map(body));
        async move {
            let response = responding.await;
            drop(in_progress);
            Ok::<_, Infallible>(response)
        }
    });
    let server = Builder::new(TokioExecutor::new());
    // A peer that breaks off or does not speak HTTP ends its own connection only.
    drop(drive(&connection, server.serve_connection(TokioIo::new(stream), service)).await);
}

/// Most requests have no body, and nothing has to be timed then.
fn body(incoming: Incoming) -> Body {
    if incoming.is_end_stream() { Body::empty() } else { Body::new(TimelyBody::new(incoming, BODY_TIMEOUT)) }
}
