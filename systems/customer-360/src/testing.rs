//! For tests: services that respond from a script, a PostgreSQL server of the test's own, spans that are kept.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request};
use narrows_serving::client::Client;
use narrows_testing::postgres_programs;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

use crate::Service;
use crate::telemetry::Telemetry;

/// How long something may take that happens in the end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Treatment of a request by a fake.
pub(crate) enum FakeResponse {
    /// Sends these bytes and waits for the next request.
    Response(String),
    /// Sends these bytes and closes the connection.
    Last(String),
    /// Sends nothing until the client goes away.
    Nothing,
}

/// A 200 with this body.
pub(crate) fn ok(body: &str) -> FakeResponse {
    response(200, body)
}

pub(crate) fn response(status: u16, body: &str) -> FakeResponse {
    FakeResponse::Response(format!("HTTP/1.1 {status} FakeResponse\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

/// A service over bare sockets that remembers the heads of its requests.
pub(crate) struct Fake {
    pub(crate) url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// `script` is given the number of a request, from 0.
    pub(crate) async fn start(script: impl Fn(usize) -> FakeResponse + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (script, seen) = (Arc::new(script), Arc::clone(&heads));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen)));
            }
        });
        Self { url, heads }
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// A header's values, over all requests.
    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        let begin = format!("{name}: ");
        let heads = self.heads();
        let values = heads.iter().flat_map(|head| head.lines()).filter_map(|line| line.strip_prefix(&begin));
        values.map(str::to_owned).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<impl Fn(usize) -> FakeResponse + Send + Sync>,
    seen: Arc<Mutex<Vec<String>>>,
) {
    while let Some(head) = head_of(&mut stream).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(head);
            seen.len() - 1
        };
        match script(number) {
            FakeResponse::Response(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            FakeResponse::Last(text) => return stream.write_all(text.as_bytes()).await.unwrap(),
            FakeResponse::Nothing => {
                let _ = stream.read_u8().await;
                return;
            }
        }
    }
}

/// A request without a body; `None` if the client has gone.
async fn head_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap().to_ascii_lowercase())
}

/// An address where nobody listens: its port was free just now.
pub(crate) async fn address_of_nobody() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

/// A service that runs until it is dropped.
pub(crate) struct RunningService {
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl RunningService {
    pub(crate) fn new(service: Service) -> Self {
        let url = format!("http://{}", service.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(service.run(async move {
            // A test that is over counts as well.
            let _ = stopped.await;
        }));
        Self { url, stop: Some(stop), running }
    }

    /// Signals it to end.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) {
        self.running.await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, &[], "").await;
        (status, body)
    }

    /// Status, headers and body.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> (u16, HeaderMap, String) {
        ask(&self.url, method, path, headers, body).await
    }
}

/// Calls the service at `url`: status, headers and body.
pub(crate) async fn ask(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&'static str, &str)],
    body: &str,
) -> (u16, HeaderMap, String) {
    let mut request = Request::builder().method(method).uri(format!("{url}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Bytes::from(body.to_owned())).unwrap();
    let (head, body) = Client::new(TIMEOUT, 1).send(request).await.unwrap().into_parts();
    (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
}

/// The `reason` of a problem.
pub(crate) fn reason(body: &str) -> String {
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    problem["reason"].as_str().unwrap().to_owned()
}

/// Waits until something holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Spans that are kept in memory.
#[derive(Default)]
pub(crate) struct SpanRecorder(InMemorySpanExporter);

impl SpanRecorder {
    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::with_provider(SdkTracerProvider::builder().with_simple_exporter(self.0.clone()).build())
    }

    /// In the order of their ends.
    pub(crate) fn all(&self) -> Vec<SpanData> {
        self.0.get_finished_spans().unwrap()
    }

    pub(crate) fn only(&self, name: &str) -> SpanData {
        let mut found: Vec<SpanData> = self.all().into_iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name} among {:?}", self.all().iter().map(|span| &span.name).collect::<Vec<_>>());
        found.remove(0)
    }
}

/// The attribute's value as text.
pub(crate) fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string())
}

/// A PostgreSQL server of the test's own, with the schema and its rows.
pub(crate) struct Postgres {
    folder: tempfile::TempDir,
    port: u16,
    programs: PathBuf,
    server: Option<Child>,
}

impl Postgres {
    /// None, and says so, where PostgreSQL is not installed or tests with it are left out.
    pub(crate) async fn start() -> Option<Self> {
        let programs = postgres_programs()?;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut making = unprivileged(&programs.join("initdb"));
        making.arg("-D").arg(&data).args(["-A", "trust", "-U", "postgres", "-N"]).stdout(Stdio::null());
        assert!(making.status().unwrap().success());
        let port = address_of_nobody().await.rsplit(':').next().unwrap().parse().unwrap();
        let mut postgres = Self { folder, port, programs, server: None };
        postgres.run().await;
        postgres.client("postgres").await.batch_execute("CREATE DATABASE customers").await.unwrap();
        postgres.client("customers").await.batch_execute(crate::demo::SCHEMA).await.unwrap();
        Some(postgres)
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) async fn run(&mut self) {
        let url = self.url_of("postgres");
        let deadline = Instant::now() + TIMEOUT;
        while tokio_postgres::connect(&url, NoTls).await.is_err() {
            assert!(Instant::now() < deadline, "not in time: a connection to PostgreSQL");
            // One that ended by itself found that workers of a killed one before it were still there.
            if self.server.as_mut().is_none_or(|server| server.try_wait().unwrap().is_some()) {
                self.server = Some(self.launch());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn launch(&self) -> Child {
        let data = self.folder.path().join("data");
        let mut command = unprivileged(&self.programs.join("postgres"));
        command.arg("-D").arg(&data).args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "fsync=off", "-c"]).arg(format!("unix_socket_directories={}", data.display()));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("customers")
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) async fn client(&self, database: &str) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.url_of(database), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// PostgreSQL refuses to run as root, so root runs it as somebody else in a user namespace.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["-Ur", "--map-user=1000", "--map-group=1000"]).arg(program);
    command
}
