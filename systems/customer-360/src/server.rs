//! A service's life over hyper: listen, serve, and on a signal finish requests in flight and send the last spans.
//!
//! Every connection is one task. A response goes out in one write, at once (`TCP_NODELAY`): a measured system must not
//! wait for Nagle's algorithm. The number of connections is bounded, and `narrows_listener` says which one gives way.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use narrows_listener::{Connection, Limits, Listen, Places, drive};
use tokio::net::{TcpListener, TcpStream};

use crate::response::{FullResponse, Problem, Reason};
use crate::telemetry::Telemetry;
use crate::trace::Trace;

/// Limits of the service for its callers.
const LIMITS: Limits = Limits {
    connections_max: 4_096,
    peer_connections_max: 4_096,
    first_request_timeout: Duration::from_secs(30),
    // Pools keep their connections for as long as they like.
    idle_timeout: None,
    drain: Duration::from_secs(2),
};
/// A request's head may be this long.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A service's routes and its responses.
pub(crate) trait Handler: Send + Sync + 'static {
    /// The pattern that `path` is an instance of, for the name of its span.
    fn route(&self, method: &Method, path: &str) -> Option<&'static str>;

    /// The response to a request, whatever it is.
    fn respond(&self, trace: &Trace, request: Request<Incoming>) -> impl Future<Output = FullResponse> + Send;
}

type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Serves what arrives at a listener until a future is ready. Boxed as a whole, so that connections are not.
type Serve = Box<dyn FnOnce(TcpListener, ServeFuture) -> ServeFuture + Send>;

/// A service that has its port and waits to be run.
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    telemetry: Telemetry,
    serve: Serve,
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Service").field("address", &self.address).finish_non_exhaustive()
    }
}

/// State that all requests of a connection share.
struct Shared<H> {
    handler: Arc<H>,
    listen: Arc<Listen>,
    telemetry: Telemetry,
    connection: Arc<Connection>,
}

impl Service {
    /// Takes the address of `listen` for `handler` to serve.
    pub(crate) async fn bind(
        listen: Listen,
        handler: impl Handler,
        telemetry: Telemetry,
    ) -> Result<Self, narrows_serving::Error> {
        let (listener, address) = listen.bind().await?;
        let (handler, listen) = (Arc::new(handler), Arc::new(listen));
        let of_requests = telemetry.clone();
        let serve_one = move |stream, connection| {
            let telemetry = of_requests.clone();
            let shared = Shared { handler: Arc::clone(&handler), listen: Arc::clone(&listen), telemetry, connection };
            serve_one(stream, Arc::new(shared))
        };
        let serve = move |listener, stop| {
            let serving = async { narrows_listener::serve(listener, &Places::new(LIMITS), stop, serve_one).await };
            Box::pin(serving) as ServeFuture
        };
        Ok(Self { listener, address, telemetry, serve: Box::new(serve) })
    }

    /// Where the service listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready; then takes no more, finishes requests in flight within two seconds, and sends the
    /// last spans.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) {
        (self.serve)(self.listener, Box::pin(stop)).await;
        self.telemetry.flush().await;
    }
}

async fn serve_one<H: Handler>(stream: TcpStream, shared: Arc<Shared<H>>) {
    let connection = Arc::clone(&shared.connection);
    let service = service_fn(move |request| respond(Arc::clone(&shared), request));
    let http = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service);
    // A peer that breaks the protocol or goes away ends its own connection only.
    drop(drive(&connection, http).await);
}

async fn respond<H: Handler>(shared: Arc<Shared<H>>, request: Request<Incoming>) -> Result<FullResponse, Infallible> {
    let _in_progress = shared.connection.begin();
    if !shared.listen.admits(request.uri().path(), request.headers()) {
        return Ok(unauthorized());
    }
    let handler = &*shared.handler;
    let trace = Trace::begin(&shared.telemetry, &request, |method, path| handler.route(method, path));
    let response = handler.respond(&trace, request).await;
    trace.finish(&response);
    Ok(response)
}

/// The response to a request without the token.
fn unauthorized() -> FullResponse {
    let problem = Problem::new(StatusCode::UNAUTHORIZED, Reason("unauthorized"), narrows_serving::TOKEN_EXPECTED);
    let mut response = problem.into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}
