//! An HTTP hop: requests of a caller's connection, one after the other, over connections of the pool.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use narrows_listener::{Connection, InProgress, drive};

use crate::body::{Progress, RequestBody, ResponseBody, UpstreamBody};
use crate::exchange::Exchange;
use crate::fault::{Failure, Fault};
use crate::headers;
use crate::hop::Hop;
use crate::pool::{ConnectionChoice, Lease};
use crate::wire::Wire;

/// Largest head of a request, in bytes.
const HEAD_MAX: usize = 64 << 10;

/// Serves a caller's connection until it ends, or until the request in progress has when the sidecar is to stop.
pub(crate) async fn serve(hop: Arc<Hop>, wire: Wire, connection: Arc<Connection>) {
    let counted = Arc::clone(&hop);
    let counting = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let (hop, in_progress) = (Arc::clone(&hop), counting.begin());
        async move { Ok::<_, Infallible>(respond(&hop, in_progress, request).await) }
    });
    // A caller may close its sending side after the request and still wait for the response.
    let http =
        http1::Builder::new().max_buf_size(HEAD_MAX).half_close(true).serve_connection(TokioIo::new(wire), service);
    let ended = drive(&connection, http).await;
    if ended.is_err_and(|error| error.is_parse()) {
        counted.counts.fault(Fault::CallerMalformed);
    }
}

async fn respond(hop: &Arc<Hop>, in_progress: InProgress, mut request: Request<Incoming>) -> Response<ResponseBody> {
    let mut exchange = Exchange::begin(hop, in_progress, &mut request);
    match pass_on(hop, request).await {
        Ok((response, lease)) => {
            exchange.responded(response.status().as_u16());
            relay(hop, response, lease, exchange)
        }
        Err(failure) => refuse(hop, &failure, exchange),
    }
}

async fn pass_on(hop: &Hop, mut request: Request<Incoming>) -> Result<(Response<Incoming>, Lease), Failure> {
    headers::check_request(&request)?;
    headers::strip(request.headers_mut());
    headers::readdress(&mut request);
    let (mut parts, body) = request.into_parts();
    let (body, progress) = RequestBody::from_caller(body, &hop.counts);
    if let RequestBody::Caller { .. } = body {
        headers::frame(&mut parts.headers);
    }
    let (response, lease) = send(hop, Request::from_parts(parts, body), progress.as_deref()).await?;
    headers::check_response(&response)?;
    Ok((response, lease))
}

/// Retry of a request that a kept connection did not carry.
enum Retry {
    /// It was not sent, and here it is.
    Unsent(Request<RequestBody>),
    /// It may have been sent; what may be repeated was remembered.
    Repeatable(Request<RequestBody>),
}

async fn send(
    hop: &Hop,
    request: Request<RequestBody>,
    progress: Option<&Progress>,
) -> Result<(Response<Incoming>, Lease), Failure> {
    let mut lease = hop.pool.lease(ConnectionChoice::Any).await?;
    let spare = if lease.is_reused { spare(&request) } else { None };
    let again = match head(hop, &mut lease, request, progress).await? {
        Ok(response) => return Ok((response, lease)),
        Err(mut error) => match (error.take_message(), spare) {
            (Some(request), _) if lease.is_reused => Retry::Unsent(request),
            (_, Some(spare)) if is_broken(error.error()) => Retry::Repeatable(spare),
            _ => return Err(broken(error.error())),
        },
    };
    drop(lease);
    let (Retry::Unsent(request) | Retry::Repeatable(request)) = again;
    let mut lease = hop.pool.lease(ConnectionChoice::New).await?;
    match head(hop, &mut lease, request, progress).await? {
        Ok(response) => Ok((response, lease)),
        Err(error) => Err(broken(error.error())),
    }
}

type SendResult = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>;

/// The head of the response. The timeout starts anew for as long as the caller's body gets on.
async fn head(
    hop: &Hop,
    lease: &mut Lease,
    request: Request<RequestBody>,
    progress: Option<&Progress>,
) -> Result<SendResult, Failure> {
    let timeout = hop.limits.response_timeout();
    let mut sent = pin!(lease.sender.try_send_request(request));
    loop {
        match tokio::time::timeout(timeout, sent.as_mut()).await {
            Ok(sent) => return Ok(sent),
            Err(_) if progress.is_some_and(Progress::take) => {}
            Err(_) => {
                let what = format!("{} did not respond within {timeout:?}", hop.pool.upstream().address);
                return Err(Failure::new(Fault::ResponseTimeout, what));
            }
        }
    }
}

/// A copy of a request without a body that may be sent twice (RFC 9110, section 9.2.2).
fn spare(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let may_repeat =
        matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE);
    if !may_repeat || !matches!(request.body(), RequestBody::Empty) {
        return None;
    }
    let mut copy = Request::new(RequestBody::Empty);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// Whether the connection ended before a response began, rather than during one or with an invalid one.
fn is_broken(error: &hyper::Error) -> bool {
    !error.is_parse() && !error.is_user()
}

fn broken(error: &hyper::Error) -> Failure {
    // An error in the request's body is the caller's: it broke off while sending.
    let fault =
        if error.is_user() || error.is_body_write_aborted() { Fault::CallerLeft } else { Fault::UpstreamBroken };
    Failure::caused(fault, error)
}

fn relay(hop: &Hop, response: Response<Incoming>, lease: Lease, exchange: Exchange) -> Response<ResponseBody> {
    let (mut parts, body) = response.into_parts();
    headers::strip(&mut parts.headers);
    parts.version = Version::HTTP_11;
    let relayed = UpstreamBody::new(body, lease, exchange, hop.limits.response_timeout());
    Response::from_parts(parts, ResponseBody::Upstream(relayed))
}

fn refuse(hop: &Hop, failure: &Failure, mut exchange: Exchange) -> Response<ResponseBody> {
    let status = failure.fault.status();
    exchange.fail(failure.fault);
    exchange.responded(status.as_u16());
    let text = serde_json::json!({
        "error": failure.fault.word(),
        "hop": hop.name,
        "upstream": hop.pool.upstream().address.to_string(),
        "detail": failure.detail,
    });
    let text = Bytes::from(format!("{text}\n"));
    exchange.sent(text.len());
    let mut response = Response::new(ResponseBody::Own { text: Some(text), _exchange: exchange });
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
