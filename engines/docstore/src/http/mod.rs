//! The store behind HTTP: from a request to a route, from a route to a response.
//!
//! Paths are taken apart by hand because clients put slashes at their ends or not and address a container by name or by
//! resource id. Everything that comes in is bounded: the body by [`MAX_BODY_BYTES`], its arrival by [`BODY_TIMEOUT`],
//! and the connections by [`connections::limits`].

mod batch;
mod containers;
mod databases;
mod descriptions;
mod dispatch;
mod documents;
mod feeds;
mod headers;
mod offers;
mod pages;
mod points;
mod prometheus;
mod queries;
mod response;
mod route;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use tokio::net::TcpListener;

use self::dispatch::Incoming;
use self::response::{Failure, Reply};
use self::route::Route;
use self::signature::Gate;
use crate::clock::Monotonic;
use crate::latency::Latency;
use crate::metrics::{Export, Settings};
use crate::moment::Moment;
use crate::store::Store;
use crate::{Config, Error};
use narrows_serving::connections;

/// Cosmos DB's limit of a document.
const MAX_BODY_BYTES: usize = 2 << 20;
/// How long requests under way may take to end once the store is to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Listens on the loopback interface at the port of `config`.
///
/// # Errors
///
/// [`Error::Bind`] if the port is not to be had.
pub async fn bind(config: &Config) -> Result<TcpListener, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, config.port))
        .await
        .map_err(|source| Error::Bind { port: config.port, source })
}

/// Opens or seeds the store and serves requests until `shutdown` is done. Connections that arrive before it is open wait.
///
/// When `shutdown` is done, requests under way have half a second to end, then the last metrics are sent, all within
/// 2 seconds. Metrics are exported if the environment names an endpoint; see the crate's opening comment.
///
/// # Errors
///
/// [`Error::Setting`] for a setting outside its range, [`Error::Metrics`] for an endpoint that is no address,
/// [`Error::Serve`] if the listener has no address. For a folder: [`Error::Folder`] and [`Error::Storage`] if it cannot be read
/// or written, [`Error::InUse`] if another process has it, [`Error::Foreign`], [`Error::OtherVersion`] and [`Error::Damaged`]
/// for a file that cannot be read as one of the store's.
pub async fn serve(
    listener: TcpListener,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let settings = Settings::read(|name| std::env::var(name).ok());
    serve_with(listener, config, settings, shutdown).await
}

async fn serve_with(
    listener: TcpListener,
    config: Config,
    metrics: Option<Settings>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    config.validate()?;
    let address = listener.local_addr().map_err(Error::Serve)?;
    let (latency, gate) = (Latency::new(&config), Gate::new(&config.access));
    let mut shutdown = Box::pin(shutdown);
    let opening = tokio::task::spawn_blocking(move || Store::open(&config, Monotonic::start()));
    let store = tokio::select! {
        () = &mut shutdown => return Ok(()),
        opened = opening => Arc::new(opened.map_err(|panicked| Error::Serve(panicked.into()))??),
    };
    let export = metrics.map(|settings| Export::start(&settings, &store)).transpose()?;
    let service = Service { store: Arc::clone(&store), endpoint: format!("http://{address}/"), latency, gate };
    let router = Router::new().fallback(handle).with_state(Arc::new(service));
    connections::serve(listener, connections::limits(DRAIN_TIMEOUT), router, shutdown).await;
    if let Some(export) = export {
        export.finish().await;
    }
    let closing = tokio::task::spawn_blocking(move || store.close());
    closing.await.map_err(|panicked| Error::Serve(panicked.into()))
}

/// The store and what surrounds it on the wire.
struct Service {
    store: Arc<Store>,
    /// The address that responses give clients for their next requests.
    endpoint: String,
    latency: Latency,
    gate: Gate,
}

async fn handle(State(service): State<Arc<Service>>, request: Request) -> Response<Body> {
    service.respond(request).await
}

impl Service {
    async fn respond(&self, request: Request) -> Response<Body> {
        if let Some(page) = pages::page(&self.store, request.method(), request.uri().path()) {
            return page;
        }
        self.latency.around(self.try_respond(request)).await.unwrap_or_else(Reply::from).into_response()
    }

    async fn try_respond(&self, request: Request) -> Result<Reply, Failure> {
        let (head, body) = request.into_parts();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.gate.admit(&head.method, head.uri.path(), &head.headers, since.as_secs())?;
        let route = Route::parse(head.uri.path())?;
        let body = read(body).await?;
        let journal = self.store.journal();
        journal.room().await;
        let (result, seen) = {
            let moment = Moment::at(self.store.now());
            let incoming = Incoming { moment: &moment, method: &head.method, headers: &head.headers, body: &body };
            let result = dispatch::run(&self.store, &self.endpoint, &route, &incoming);
            moment.saw(journal.described());
            (result, moment.seen())
        };
        journal.durable(seen).await?;
        result
    }
}

async fn read(body: Body) -> Result<Bytes, Failure> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // The only error this body has besides the limit is a connection that is gone, where nobody reads the response.
        Ok(Err(_)) => Err(Failure::too_large(MAX_BODY_BYTES)),
        Err(_) => Err(Failure::slow_body(BODY_TIMEOUT)),
    }
}
