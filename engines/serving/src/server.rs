//! A server's life: bind, serve, and on a signal finish requests in flight and send the last spans.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use narrows_listener::Listen;
use tokio::net::TcpListener;

use crate::problem::Problem;
use crate::telemetry::Telemetry;
use crate::{Error, connections};

/// How long requests in flight may take once the service is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Detail of the response to a request without the token.
pub const TOKEN_EXPECTED: &str = "expected the service's token in the header `Authorization: Bearer TOKEN`";

/// A service that has its port and waits to be run.
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    telemetry: Telemetry,
}

impl Service {
    /// Takes the address of `listen`. Serves `GET /health` besides the routes of `router`.
    pub async fn bind(listen: Listen, router: Router, telemetry: Telemetry) -> Result<Self, Error> {
        let (listener, address) = listen.bind().await?;
        let router = router.route("/health", get(async || StatusCode::OK));
        let router = match listen.token() {
            Some(_) => router.layer(from_fn_with_state(listen, admit)),
            None => router,
        };
        Ok(Self { listener, address, router, telemetry })
    }

    /// Where the service listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready; then takes no more, finishes requests in flight within two seconds, and sends the
    /// last spans.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) {
        connections::serve(self.listener, connections::limits(DRAIN_TIMEOUT), self.router, stop).await;
        self.telemetry.flush().await;
    }
}

/// Refuses requests that do not present the token.
async fn admit(State(listen): State<Listen>, request: Request, next: Next) -> Response {
    if listen.admits(request.uri().path(), request.headers()) {
        return next.run(request).await;
    }
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, TOKEN_EXPECTED).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}
