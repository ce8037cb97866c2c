//! The store's HTTP interface: from a request to a route, from a result to a response.
//!
//! Paths are split by hand because clients may or may not end them with a slash, and address a container by name or by
//! resource id. All input is bounded: the body by [`MAX_BODY_BYTES`], its arrival by [`BODY_TIMEOUT`], and the
//! connections by [`connections::limits`]. A request that takes longer than others can wait runs on a separate thread.

mod batch;
mod binary_json;
mod containers;
mod databases;
mod descriptions;
mod dispatch;
mod documents;
mod feeds;
mod headers;
mod long_requests;
mod offers;
mod pages;
mod point_operations;
mod prometheus;
mod queries;
mod response;
mod route;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

use std::future::{Future, ready};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::Response;
use axum::http::header::HOST;
use axum::http::request::Parts;
use tokio::net::TcpListener;

use self::dispatch::RequestParts;
use self::long_requests::LongRequests;
use self::response::{Failure, Reply};
use self::route::Route;
use self::signature::Gate;
use crate::clock::Monotonic;
use crate::latency::Latency;
use crate::metrics::{Export, Settings};
use crate::moment::Moment;
use crate::storage::Ticket;
use crate::store::Store;
use crate::tls::{Scheme, Tls};
use crate::{Access, Config, Error};
use narrows_serving::connections::{self, Serving};

/// Cosmos DB's limit of a document.
const MAX_BODY_BYTES: usize = 2 << 20;
/// How long requests under way may take to end once the store is to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A store that is open and has its port.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
    latency: Latency,
    tls: Option<Tls>,
    store: Arc<Store>,
    export: Option<Export>,
}

impl Server {
    /// Takes the address of `config`, and opens or seeds the store. Connections that arrive before it
    /// serves wait. Metrics are exported if the environment names an endpoint; see the crate's opening comment.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] for a setting outside its range, [`Error::Serving`] if the address is not to be had, [`Error::Metrics`]
    /// for an endpoint that is not an address. For a folder: [`Error::Folder`] and [`Error::Storage`] if it cannot be read or
    /// written, [`Error::InUse`] if another process has it, [`Error::Foreign`], [`Error::OtherVersion`] and
    /// [`Error::Damaged`] for a file that cannot be read as one of the store's. For TLS: [`Error::Certificate`].
    pub async fn open(config: Config) -> Result<Self, Error> {
        Self::open_with(config, Settings::read(|name| std::env::var(name).ok())).await
    }

    async fn open_with(config: Config, metrics: Option<Settings>) -> Result<Self, Error> {
        config.validate()?;
        let (listener, address) = config.listen.bind().await.map_err(narrows_serving::Error::from)?;
        let (latency, access) = (Latency::new(&config), config.access.clone());
        let tls = config.tls.as_deref().map(Tls::open).transpose()?;
        let opening = tokio::task::spawn_blocking(move || Store::open(&config, Monotonic::start()));
        let store = Arc::new(opening.await.map_err(|panicked| Error::Serve(panicked.into()))??);
        let export = metrics.map(|settings| Export::start(&settings, &store)).transpose()?;
        Ok(Self { listener, address, access, latency, tls, store, export })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file with the certificate that clients have to trust to use HTTPS, if the port serves it.
    #[must_use]
    pub fn certificate(&self) -> Option<&Path> {
        self.tls.as_ref().map(Tls::certificate)
    }

    /// Serves requests until `shutdown` is done.
    ///
    /// Then requests under way have half a second to end and the last metrics are sent, all within 2 seconds; then the folder
    /// gets what is still under way.
    ///
    /// # Errors
    ///
    /// [`Error::Serve`] if the store cannot be closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let Self { listener, address, access, latency, tls, store, export } = self;
        let service = Arc::new(Service {
            store: Arc::clone(&store),
            latency,
            gate: Gate::new(&access),
            long: LongRequests::new(),
        });
        // A client goes on at the address that the account names, so that has the scheme of its connection.
        let served = |scheme: Scheme| {
            let endpoint = format!("{}://{address}/", scheme.name()).into();
            // All addresses of a machine are no address of one.
            let named_by_client = address.ip().is_unspecified().then_some(scheme);
            Endpoint { service: Arc::clone(&service), endpoint, named_by_client }
        };
        let shutdown = Box::pin(shutdown);
        match tls {
            None => plain(listener, served(Scheme::Http), shutdown).await,
            Some(tls) => both(listener, tls, (served(Scheme::Http), served(Scheme::Https)), shutdown).await,
        }
        if let Some(export) = export {
            export.finish().await;
        }
        let closing = tokio::task::spawn_blocking(move || store.close());
        closing.await.map_err(|panicked| Error::Serve(panicked.into()))
    }
}

/// Serves HTTP. Like every [`Serving`], it is compiled with the crate that puts it into its box.
fn plain(listener: TcpListener, served: Endpoint, shutdown: Serving) -> Serving {
    let accept = move |stream| {
        let served = served.clone();
        ready(Some((stream, move |request| handle(served.clone(), request))))
    };
    Box::pin(connections::serve_over(listener, connections::limits(DRAIN_TIMEOUT), shutdown, accept))
}

/// Serves HTTP by the first and HTTPS by the second.
fn both(listener: TcpListener, tls: Tls, served: (Endpoint, Endpoint), shutdown: Serving) -> Serving {
    let accept = move |stream| {
        let (tls, (plain, secure)) = (tls.clone(), served.clone());
        async move {
            let (scheme, stream) = tls.accept(stream).await?;
            let served = if scheme == Scheme::Https { secure } else { plain };
            Some((stream, move |request| handle(served.clone(), request)))
        }
    };
    Box::pin(connections::serve_over(listener, connections::limits(DRAIN_TIMEOUT), shutdown, accept))
}

/// The store and what surrounds it on the wire.
struct Service {
    store: Arc<Store>,
    latency: Latency,
    gate: Gate,
    long: LongRequests,
}

/// A service at one address.
#[derive(Clone)]
struct Endpoint {
    service: Arc<Service>,
    /// The address that responses give clients for their next requests.
    endpoint: Arc<str>,
    /// The scheme, if the address is the one that a client has called instead.
    named_by_client: Option<Scheme>,
}

async fn handle(Endpoint { service, endpoint, named_by_client }: Endpoint, request: Request) -> Response<Body> {
    let called = named_by_client.and_then(|scheme| {
        let host = request.headers().get(HOST)?.to_str().ok()?;
        Some(format!("{}://{host}/", scheme.name()).into())
    });
    service.respond(request, &called.unwrap_or(endpoint)).await
}

impl Service {
    async fn respond(&self, request: Request, endpoint: &Arc<str>) -> Response<Body> {
        if self.gate.admits_pages(request.headers())
            && let Some(page) = pages::page(&self.store, request.method(), request.uri().path())
        {
            return page;
        }
        self.latency.around(self.try_respond(request, endpoint)).await.unwrap_or_else(Reply::from).into_response()
    }

    async fn try_respond(&self, request: Request, endpoint: &Arc<str>) -> Result<Reply, Failure> {
        let (head, body) = request.into_parts();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.gate.admit(&head.method, head.uri.path(), &head.headers, since.as_secs())?;
        let mut asked = CompleteRequest { head, body: Bytes::new(), endpoint: Arc::clone(endpoint) };
        let route = Route::parse(asked.head.uri.path())?;
        asked.body = as_text(read(body).await?)?;
        self.store.journal().room().await;
        let responded = match asked.run(&self.store, &route, Moment::at(self.store.now())) {
            Some(responded) => responded,
            None => self.long.run(&self.store, asked).await,
        };
        self.store.journal().durable(responded.seen).await?;
        responded.result
    }
}

/// A request that has been received completely.
struct CompleteRequest {
    head: Parts,
    body: Bytes,
    endpoint: Arc<str>,
}

/// Result of a request, and the last change that it saw.
struct RequestOutcome {
    result: Result<Reply, Failure>,
    seen: Ticket,
}

impl CompleteRequest {
    /// `None` if it takes too long for the pace of `moment`; then nothing was done.
    fn run(&self, store: &Store, route: &Route, moment: Moment) -> Option<RequestOutcome> {
        let Self { head, body, endpoint } = self;
        let incoming = RequestParts { moment: &moment, method: &head.method, headers: &head.headers, body };
        let result = dispatch::run(store, endpoint, route, &incoming);
        moment.saw(store.journal().described());
        (!moment.is_deferred()).then(|| RequestOutcome { result, seen: moment.seen() })
    }
}

/// A body as JSON text, also if a client sent it as binary JSON.
fn as_text(body: Bytes) -> Result<Bytes, Failure> {
    if !binary_json::is_binary(&body) {
        return Ok(body);
    }
    binary_json::text(&body, MAX_BODY_BYTES).map(Bytes::from).map_err(|fault| match fault {
        binary_json::Fault::TooLarge => Failure::too_large(MAX_BODY_BYTES),
        damaged => Failure::bad_request(&format!("the body is {damaged}")),
    })
}

async fn read(body: Body) -> Result<Bytes, Failure> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // Besides the limit, a body only fails with its connection, which then gets no response.
        Ok(Err(_)) => Err(Failure::too_large(MAX_BODY_BYTES)),
        Err(_) => Err(Failure::slow_body(BODY_TIMEOUT)),
    }
}
