//! A service's life over hyper: listen, answer, and on a signal finish what is in flight and send the last spans.
//!
//! Every connection is one task. An answer goes out in one write, at once (`TCP_NODELAY`): a measured system must not
//! wait for Nagle's algorithm. The number of connections is bounded; past it the next one waits in the kernel's queue.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Answer;
use crate::in_flight::InFlight;
use crate::telemetry::Telemetry;
use crate::trace::Trace;

/// Connections open at a time, and so requests under way.
const CONNECTIONS_MAX: usize = 4_096;
/// A request's head may be this long.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long requests in flight may take once the service was asked to end.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
/// How long nobody is taken after the system had no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a service answers.
pub(crate) trait Handler: Send + Sync + 'static {
    /// The pattern that `path` is an instance of, for the name of its span.
    fn route(&self, method: &Method, path: &str) -> Option<&'static str>;

    /// The answer to a request, whatever it is.
    fn answer(&self, trace: &Trace, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

/// A service that has its port and waits to be run.
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    telemetry: Telemetry,
    serve: Box<dyn Fn(TcpStream, OwnedSemaphorePermit, Arc<InFlight>) + Send + Sync>,
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Service").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What all requests of a service share.
struct Shared<H> {
    handler: H,
    telemetry: Telemetry,
    in_flight: Arc<InFlight>,
}

impl Service {
    /// Takes `port` on the loopback interface, 0 for any, for `handler` to answer.
    pub(crate) async fn bind(
        port: u16,
        handler: impl Handler,
        telemetry: Telemetry,
    ) -> Result<Self, narrows_serving::Error> {
        let refused = |source| narrows_serving::Error::Bind { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let handler = Arc::new(handler);
        let of_requests = telemetry.clone();
        let serve = move |stream: TcpStream, place, in_flight| {
            let shared = Shared { handler: Arc::clone(&handler), telemetry: of_requests.clone(), in_flight };
            tokio::spawn(connection(stream, place, Arc::new(shared)));
        };
        Ok(Self { listener, address, telemetry, serve: Box::new(serve) })
    }

    /// Where the service listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; then takes no more, finishes what is in flight within two seconds, and sends the
    /// last spans.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let in_flight = Arc::new(InFlight::default());
        tokio::select! {
            () = accept(&self.listener, &*self.serve, &in_flight) => {}
            () = stop => {}
        }
        drop(self.listener);
        // What takes longer is cut off with the process.
        let _ = tokio::time::timeout(DRAIN_PATIENCE, in_flight.end()).await;
        self.telemetry.flush().await;
    }
}

async fn accept(
    listener: &TcpListener,
    serve: &(dyn Fn(TcpStream, OwnedSemaphorePermit, Arc<InFlight>) + Send + Sync),
    in_flight: &Arc<InFlight>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Nobody closes the semaphore, so a place comes in the end.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A peer that is gone already cannot take the option; reading will say so.
                let _ = stream.set_nodelay(true);
                serve(stream, place, Arc::clone(in_flight));
            }
            // The peer went away again, or the process has no descriptor left until another connection ends.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection<H: Handler>(stream: TcpStream, _place: OwnedSemaphorePermit, shared: Arc<Shared<Arc<H>>>) {
    let service = service_fn(|request| respond(Arc::clone(&shared), request));
    let served = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // A peer that breaks the protocol or goes away ends its own connection; it was told what could be told.
    drop(served);
}

async fn respond<H: Handler>(shared: Arc<Shared<Arc<H>>>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let _flight = shared.in_flight.begin();
    let handler = &*shared.handler;
    let trace = Trace::begin(&shared.telemetry, &request, |method, path| handler.route(method, path));
    let mut answer = handler.answer(&trace, request).await;
    trace.finish(&answer);
    if shared.in_flight.is_ending() {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}
