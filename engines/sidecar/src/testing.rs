//! Fixtures for tests of hops: an authority, a running sidecar, servers behind it, and a client before it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::{Config, Direction, HopConfig, Limits, Protocol, TlsFiles};
use crate::serve::Sidecar;
use crate::telemetry::Telemetry;

/// Signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Files with a certificate for `name`.
    pub(crate) fn issue(&self, folder: &Path, name: &str) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let write = |end: &str, text: &str| {
            let path = folder.join(format!("{name}-{end}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        TlsFiles {
            ca: write("ca.pem", &self.0.pem()),
            certificate: write("certificate.pem", &certificate.pem()),
            key: write("key.pem", &key.serialize_pem()),
        }
    }
}

/// A plain HTTP hop on any port.
pub(crate) fn hop(name: &str, upstream: SocketAddr) -> HopConfig {
    HopConfig {
        name: name.to_owned(),
        direction: Direction::Inbound,
        listen: "127.0.0.1:0".parse().unwrap(),
        protocol: Protocol::Http,
        accept_tls: false,
        upstream: upstream.into(),
        upstream_tls: false,
        upstream_name: None,
    }
}

pub(crate) fn config(hops: Vec<HopConfig>) -> Config {
    Config {
        service: "a.sidecar".to_owned(),
        tls: None,
        access_log: None,
        hops,
        limits: Limits::default(),
        is_insecure: false,
    }
}

/// A sidecar that runs.
pub(crate) struct RunningSidecar {
    pub(crate) addresses: Vec<SocketAddr>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl RunningSidecar {
    pub(crate) fn start(config: &Config) -> Self {
        Self::with(config, None)
    }

    pub(crate) fn with(config: &Config, telemetry: Option<Telemetry>) -> Self {
        let sidecar = Sidecar::with_telemetry(config, telemetry).unwrap();
        let addresses = sidecar.listeners().map(|(_, address)| address).collect();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(sidecar.serve(async { drop(stopped.await) }));
        Self { addresses, stop, serving }
    }

    /// Signals it to stop; what is left is to wait for it.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).unwrap();
        self.serving
    }
}

/// A server that responds to each request by a function.
pub(crate) async fn server<F, R>(respond: F) -> SocketAddr
where
    F: Fn(Request<hyper::body::Incoming>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let respond = respond.clone();
            let service = hyper::service::service_fn(move |request| {
                let response = respond(request);
                async move { Ok::<_, std::convert::Infallible>(response.await) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// A client's connection.
pub(crate) struct Client(hyper::client::conn::http1::SendRequest<Full<Bytes>>);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await
    }

    pub(crate) async fn over<S>(stream: S) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response<Bytes> {
        self.send(Request::builder().uri(path).header("host", "h").body(Full::default()).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Bytes>> {
        self.0.ready().await?;
        let (parts, body) = self.0.send_request(request).await?.into_parts();
        Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
    }
}

/// The error code in a refusal.
pub(crate) fn word(response: &Response<Bytes>) -> String {
    serde_json::from_slice::<serde_json::Value>(response.body()).unwrap()["error"].as_str().unwrap().to_owned()
}

/// Spans that have been exported.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<SpanData>>>);

impl Spans {
    pub(crate) fn take(&self) -> Vec<SpanData> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}
