//! Calls to other servers over HTTP/1.1: kept connections, one timeout for a whole call, bounded responses.
//!
//! The client takes no proxy from the environment, follows no redirect and makes no spans; callers that trace do so
//! around it. A call on a kept connection that the server has closed meanwhile is sent again on a new one, as long as
//! nothing of it was sent.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use narrows_listener::Token;

/// The largest response body that is read, in bytes: Cosmos DB's limit of a page, and what OTLP exporters read.
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a connection is kept without a call.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// A call without a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The connection could not be made, or broke.
    #[error("no connection: {0}")]
    Connection(String),
    /// The call took longer than the client's timeout.
    #[error("no response in time")]
    Timeout,
    /// The response's body is longer than [`RESPONSE_BYTES_MAX`].
    #[error("the response is larger than {RESPONSE_BYTES_MAX} bytes")]
    TooLarge,
}

/// A call in progress. It is boxed, so that the code of a client is compiled here and not in every service again.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, CallError>> + Send + 'a>>;

/// A client that keeps connections open. Clones share them. It needs a runtime of tokio around each call.
#[derive(Debug, Clone)]
pub struct Client {
    inner: legacy::Client<HttpConnector, Full<Bytes>>,
    timeout: Duration,
    /// Header that presents a token.
    authorization: Option<HeaderValue>,
}

impl Client {
    /// A client whose calls may take `timeout`, from the connection to the end of the response; it keeps `idle_max`
    /// connections to each host.
    #[must_use]
    pub fn new(timeout: Duration, idle_max: usize) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(idle_max)
            .build(connector);
        Self { inner, timeout, authorization: None }
    }

    /// The client with a token, if there is one, which it sends with each call that has no `Authorization` header.
    #[must_use]
    pub fn with_token(self, token: Option<&Token>) -> Self {
        Self { authorization: token.map(Token::header), ..self }
    }

    /// Sends `request`, whose address is a whole `http` URL, and reads the response to its end.
    ///
    /// # Errors
    ///
    /// [`CallError`] when no response came, or not all of it. Any status is a response.
    pub fn send(&self, mut request: Request<Bytes>) -> CallFuture<'_> {
        if let Some(value) = &self.authorization {
            request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| value.clone());
        }
        Box::pin(async move {
            match tokio::time::timeout(self.timeout, self.exchange(request)).await {
                Ok(result) => result,
                Err(_) => Err(CallError::Timeout),
            }
        })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CallError> {
        let response = self.inner.request(request.map(Full::new)).await.map_err(|error| connection(&error))?;
        let (head, body) = response.into_parts();
        match Limited::new(body, RESPONSE_BYTES_MAX).collect().await {
            Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(CallError::TooLarge),
            Err(error) => Err(connection(&*error)),
        }
    }
}

/// The innermost cause, which has the system's message.
fn connection(error: &(dyn std::error::Error + 'static)) -> CallError {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    CallError::Connection(innermost.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
mod tests {
    use axum::Router;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Long enough for any machine.
    const TIMEOUT: Duration = Duration::from_secs(60);

    async fn serve(router: Router) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        url
    }

    fn request(method: &str, url: &str, body: &'static str) -> Request<Bytes> {
        Request::builder().method(method).uri(url).body(Bytes::from_static(body.as_bytes())).unwrap()
    }

    #[tokio::test]
    async fn calls_carry_bodies_and_any_status_is_a_response() {
        let url =
            serve(Router::new().route("/echo", post(async |body: String| (axum::http::StatusCode::CONFLICT, body))))
                .await;
        let client = Client::new(TIMEOUT, 1);
        let response = client.send(request("POST", &format!("{url}/echo"), "hello")).await.unwrap();
        assert_eq!((response.status().as_u16(), &response.body()[..]), (409, &b"hello"[..]));
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let to_nowhere = async || (axum::http::StatusCode::FOUND, [("location", "/nowhere")]);
        let url = serve(Router::new().route("/", get(to_nowhere))).await;
        let response = Client::new(TIMEOUT, 1).send(request("GET", &url, "")).await.unwrap();
        assert_eq!(response.status().as_u16(), 302);
    }

    #[tokio::test]
    async fn a_body_within_the_limit_is_read_and_a_longer_one_is_refused() {
        let bytes = async |axum::extract::Path(count): axum::extract::Path<usize>| vec![b'a'; count];
        let url = serve(Router::new().route("/{count}", get(bytes))).await;
        let client = Client::new(TIMEOUT, 1);
        let most = client.send(request("GET", &format!("{url}/{RESPONSE_BYTES_MAX}"), "")).await.unwrap();
        assert_eq!(most.body().len(), RESPONSE_BYTES_MAX);
        let more = client.send(request("GET", &format!("{url}/{}", RESPONSE_BYTES_MAX + 1), "")).await;
        assert_eq!(more.unwrap_err(), CallError::TooLarge);
    }

    #[tokio::test]
    async fn a_server_that_is_silent_before_or_within_its_response_is_a_timeout() {
        for said in ["", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await.unwrap();
                stream.write_all(said.as_bytes()).await.unwrap();
                std::future::pending::<()>().await;
            });
            let error = Client::new(Duration::from_millis(50), 1).send(request("GET", &url, "")).await.unwrap_err();
            assert_eq!(error, CallError::Timeout, "after {said:?}");
            server.abort();
        }
    }

    #[tokio::test]
    async fn nobody_listening_and_a_broken_response_are_connection_errors() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").await.unwrap();
        });
        let client = Client::new(TIMEOUT, 1);
        let broken = client.send(request("GET", &url, "")).await.unwrap_err();
        assert!(matches!(broken, CallError::Connection(_)), "{broken}");
        server.await.unwrap();
        let refused = client.send(request("GET", &url, "")).await.unwrap_err().to_string();
        assert!(refused.starts_with("no connection: Connection refused"), "{refused}");
    }

    #[tokio::test]
    async fn a_connection_is_kept_and_replaced_once_the_server_closed_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            for calls in [2, 1] {
                let (mut stream, _) = listener.accept().await.unwrap();
                for _ in 0..calls {
                    assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                }
            }
        });
        let client = Client::new(TIMEOUT, 1);
        for _ in 0..2 {
            client.send(request("GET", &url, "")).await.unwrap();
        }
        // Until the client has seen the end of the first connection, a call may still go there and break.
        while client.send(request("GET", &url, "")).await.is_err() {}
        server.await.unwrap();
    }
}
