//! A server's life: bind, serve, and on a signal finish requests in flight and send the last spans.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::telemetry::Telemetry;
use crate::{Error, connections};

/// How long requests in flight may take once the service is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A service that has its port and waits to be run.
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    telemetry: Telemetry,
}

impl Service {
    /// Takes `port` on the loopback interface, 0 for any. Serves `GET /health` besides the routes of `router`.
    pub async fn bind(port: u16, router: Router, telemetry: Telemetry) -> Result<Self, Error> {
        let refused = |source| Error::Bind { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let router = router.route("/health", get(async || StatusCode::OK));
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
