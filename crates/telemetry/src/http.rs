//! A small HTTP/1.1 client: to request pages of metrics, and to hand telemetry to another receiver.
//!
//! One connection, kept while the other side keeps it; every response within a time and a size. No redirects, no
//! proxies: what it talks to stands beside the system under test. Only servers that are asked for what they store may be
//! reached by HTTPS (`tls.rs`) and need an authorisation.

mod tls;

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use narrows_model::printable;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::secrets::{redact_text, redact_url};

/// The longest URL that is taken, in bytes.
const URL_BYTES_MAX: usize = 2_048;
/// Maximum number of characters of a URL in an error.
const URL_CHARS_SHOWN: usize = 200;

/// The longest authorisation, in bytes.
const AUTHORIZATION_BYTES_MAX: usize = 8 << 10;

/// `http://HOST[:PORT][/PATH][?QUERY]`, or `https://` where that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    is_encrypted: bool,
    authority: String,
    path: String,
}

/// Why a text is no URL that can be talked to. The message says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {what}")]
pub struct NotAUrl {
    /// The URL as given, shortened and redacted.
    pub text: String,
    /// Fault.
    pub what: &'static str,
}

impl Url {
    /// Reads a URL. A path that is missing is `/`.
    ///
    /// # Errors
    /// When it is not plain HTTP, names no host, or holds a user's name.
    pub fn parse(text: &str) -> Result<Self, NotAUrl> {
        let url = Self::read(text, "is not a URL, expected such as http://127.0.0.1:9100/metrics")?;
        if url.is_encrypted { Err(not_a_url(text, "is https; only plain http is spoken here")) } else { Ok(url) }
    }

    /// Reads the URL of a server that stores telemetry: also of HTTPS.
    ///
    /// # Errors
    /// As with [`Self::parse`].
    pub fn parse_server(text: &str) -> Result<Self, NotAUrl> {
        Self::read(text, "is not the URL of a server, expected such as http://127.0.0.1:9090")
    }

    fn read(text: &str, expected: &'static str) -> Result<Self, NotAUrl> {
        let wrong = |what| not_a_url(text, what);
        if text.len() > URL_BYTES_MAX {
            return Err(wrong("is too long for a URL"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong(expected))?;
        let is_encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong(expected)),
        };
        let authority = uri.authority().ok_or_else(|| wrong("names no host"))?;
        if authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(wrong("names no host, or a user; expected http://HOST:PORT/…"));
        }
        if authority.as_str().len() > authority.host().len() && authority.port_u16().is_none() {
            return Err(wrong("has no valid port, expected 1 to 65535"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self { is_encrypted, authority: authority.as_str().to_owned(), path: path.to_owned() })
    }

    /// `HOST[:PORT]`, as it was given.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Path and query; `/` at least.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same host with another path.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The host without a port.
    fn host(&self) -> &str {
        let with_port = self.authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        with_port.map_or(self.authority.as_str(), |(host, _)| host)
    }

    /// Peer of a socket.
    fn host_and_port(&self) -> String {
        let port = if self.is_encrypted { 443 } else { 80 };
        if self.host() == self.authority { format!("{}:{port}", self.authority) } else { self.authority.clone() }
    }
}

/// The error of a text, without the user and the secrets in it.
fn not_a_url(text: &str, what: &'static str) -> NotAUrl {
    // Even without a scheme, an address may contain a user.
    let missing = if text.contains("://") { "" } else { "://" };
    let mut url: String = missing.chars().chain(text.chars().take(URL_CHARS_SHOWN)).collect();
    redact_url(&mut url);
    let mut text = url.strip_prefix(missing).unwrap_or(&url).to_owned();
    redact_text(&mut text);
    NotAUrl { text: printable::line(&text).into_owned(), what }
}

/// Prints the URL without the secrets in its query.
impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut path = self.path.clone();
        redact_url(&mut path);
        write!(f, "{}://{}{path}", if self.is_encrypted { "https" } else { "http" }, self.authority)
    }
}

/// Value of the header `Authorization`. It appears in neither debug output nor errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization(HeaderValue);

/// Why a text is not an authorisation. It does not contain the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a bearer token or USER:PASSWORD on one line, of {AUTHORIZATION_BYTES_MAX} bytes at most")]
pub struct NotAnAuthorization;

impl Authorization {
    /// Reads `USER:PASSWORD`, or a bearer token, which has no colon (RFC 6750). White space around it is left out.
    ///
    /// # Errors
    /// When the text is empty, too long, or has several lines.
    pub fn parse(text: &str) -> Result<Self, NotAnAuthorization> {
        let text = text.trim();
        if text.is_empty() || text.len() > AUTHORIZATION_BYTES_MAX || text.contains(char::is_control) {
            return Err(NotAnAuthorization);
        }
        let value = match text.contains(':') {
            true => format!("Basic {}", BASE64_STANDARD.encode(text)),
            false => format!("Bearer {text}"),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| NotAnAuthorization)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoResponse {
    #[error("cannot connect: {0}")]
    Connect(String),
    #[error("cannot encrypt the connection: {0}")]
    Encrypt(String),
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("no complete response within {0:?}")]
    TooSlow(Duration),
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
}

/// How long a response may take, and how large it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) body_bytes_max: usize,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A connection to one host, made when it is needed. Lives in one runtime.
#[derive(Debug)]
pub(crate) struct Client {
    url: Url,
    bounds: Bounds,
    authorization: Option<Authorization>,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub(crate) fn new(url: Url, bounds: Bounds) -> Self {
        Self { url, bounds, authorization: None, open: None }
    }

    /// The same with an authorisation in each request.
    pub(crate) fn with_authorization(self, authorization: Option<Authorization>) -> Self {
        Self { authorization, ..self }
    }

    /// `GET` of the URL; on a new connection if a kept one breaks.
    pub(crate) async fn get(&mut self, accept: &'static str) -> Result<Response, NoResponse> {
        let path = self.url.path.clone();
        self.get_path(&path, accept).await
    }

    /// The same of another path of the host.
    pub(crate) async fn get_path(&mut self, path: &str, accept: &'static str) -> Result<Response, NoResponse> {
        let headers = [("accept", HeaderValue::from_static(accept))];
        let was_kept = self.open.is_some();
        let response = self.send("GET", path, &headers, Bytes::new()).await;
        match response {
            // The other side may end a kept connection just when it is used again.
            Err(NoResponse::Broken(_)) if was_kept => self.send("GET", path, &headers, Bytes::new()).await,
            response => response,
        }
    }

    /// `POST` to a path of the host.
    pub(crate) async fn post(
        &mut self,
        path: &str,
        content_type: &'static str,
        body: Bytes,
    ) -> Result<Response, NoResponse> {
        let headers = [("content-type", HeaderValue::from_static(content_type))];
        self.send("POST", path, &headers, body).await
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&'static str, HeaderValue)],
        body: Bytes,
    ) -> Result<Response, NoResponse> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.url.authority());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(Authorization(value)) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| NoResponse::Broken(error.to_string()))?;
        let timeout = self.bounds.timeout;
        let response = tokio::time::timeout(timeout, self.exchange(request)).await;
        let response = response.unwrap_or(Err(NoResponse::TooSlow(timeout)));
        if response.is_err() {
            // The rest of a broken exchange would be read as the next response.
            self.open = None;
        }
        response
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Response, NoResponse> {
        let sender = self.connected().await?;
        let broken = |error: hyper::Error| NoResponse::Broken(error.to_string());
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let bytes_max = self.bounds.body_bytes_max;
        if body.size_hint().lower() > bytes_max as u64 {
            return Err(NoResponse::TooLarge(bytes_max));
        }
        let body = Limited::new(body, bytes_max).collect().await.map_err(|error| match error.downcast_ref() {
            Some(LengthLimitError { .. }) => NoResponse::TooLarge(bytes_max),
            None => NoResponse::Broken(error.to_string()),
        })?;
        Ok(Response { status: parts.status, headers: parts.headers, body: body.to_bytes() })
    }

    /// The open connection, or a new one when the other side closed it.
    async fn connected(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, NoResponse> {
        let is_open = match &mut self.open {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !is_open {
            let refused = |error: &dyn std::fmt::Display| NoResponse::Connect(error.to_string());
            let stream = TcpStream::connect(self.url.host_and_port()).await.map_err(|error| refused(&error))?;
            // A request is one write, and the next one waits for its response.
            let _ = stream.set_nodelay(true);
            let sender = if self.url.is_encrypted {
                let encrypted = tls::encrypted(stream, self.url.host()).await;
                sender(encrypted.map_err(NoResponse::Encrypt)?).await
            } else {
                sender(stream).await
            };
            self.open = Some(sender.map_err(|error| refused(&error))?);
        }
        self.open.as_mut().ok_or_else(|| NoResponse::Connect("no connection".to_owned()))
    }
}

/// Sends requests over a new connection.
async fn sender<S>(stream: S) -> hyper::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Ends with the connection; the sender gets the error that breaks it.
    drop(tokio::spawn(connection));
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_a_reason() {
        let url = Url::parse("http://127.0.0.1:9100/metrics?a=b").unwrap();
        assert_eq!((url.authority(), url.path()), ("127.0.0.1:9100", "/metrics?a=b"));
        assert_eq!(url.to_string(), "http://127.0.0.1:9100/metrics?a=b");
        assert_eq!(Url::parse("http://localhost").unwrap().host_and_port(), "localhost:80");
        assert_eq!(Url::parse("http://[::1]").unwrap().host_and_port(), "[::1]:80");
        assert_eq!(Url::parse("http://[::1]:4318").unwrap().host_and_port(), "[::1]:4318");
        for (text, expected) in [
            ("https://a/", "is https"),
            ("a/metrics", "not a URL"),
            ("127.0.0.1:9100", "not a URL"),
            ("ftp://a/", "not a URL"),
            ("http://user@a/", "or a user"),
            ("http://a:99999/", "port"),
            ("", "not a URL"),
            ("http://a b/", "not a URL"),
        ] {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(Url::parse(&format!("http://a/{}", "x".repeat(URL_BYTES_MAX))).is_err());
        let server = Url::parse_server("https://metrics.example").unwrap();
        assert_eq!(
            (server.host_and_port().as_str(), server.to_string().as_str()),
            ("metrics.example:443", "https://metrics.example/")
        );
        let error = Url::parse_server("nonsense").unwrap_err().to_string();
        assert_eq!(error, "`nonsense` is not the URL of a server, expected such as http://127.0.0.1:9090");
        assert_eq!(Url::parse("http://a/?token=x1").unwrap().to_string(), "http://a/?token=REDACTED");
        for text in ["http://joe:x1@a/", "https://joe:x1@a/?b", "joe:x1@a", "postgres://joe:x1@a/?password=x1"] {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(!error.contains("x1"), "{error}");
        }
    }

    #[test]
    fn an_authorisation_is_a_token_or_a_user_and_is_not_shown() {
        let value = |text| Authorization::parse(text).map(|one| one.0.to_str().unwrap().to_owned());
        assert_eq!(value(" ab.c-1=\n").unwrap(), "Bearer ab.c-1=");
        assert_eq!(value("joe:a b").unwrap(), "Basic am9lOmEgYg==");
        for text in ["", "\n", "x1\ny", &"x".repeat(AUTHORIZATION_BYTES_MAX + 1)] {
            assert!(!Authorization::parse(text).unwrap_err().to_string().contains("x1"), "{text}");
        }
        assert!(!format!("{:?}", Authorization::parse("x1").unwrap()).contains("x1"));
    }

    /// Responds once on each of its connections, and ends the first when it is used again.
    async fn respond_once_each(listener: tokio::net::TcpListener) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            let _ = stream.read(&mut request).await;
        }
    }

    #[test]
    fn a_kept_connection_that_ends_is_replaced() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
            let server = tokio::spawn(respond_once_each(listener));
            let bounds = Bounds { timeout: Duration::from_secs(60), body_bytes_max: 10 };
            let mut client = Client::new(url, bounds);
            for _ in 0..2 {
                assert_eq!(client.get("*/*").await.unwrap().body, "ok");
            }
            drop(client);
            server.await.unwrap();
        });
    }
}
