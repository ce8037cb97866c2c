//! The service as a whole: its settings, its routes, and the state that they share.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, get, post, put};
use axum::{Router, middleware};

use crate::cache::Cache;
use crate::database::{Node, Pool, PoolConfig};
use crate::ledger::Ledger;
use crate::meters::Meters;
use crate::owners::Owners;
use crate::retry::{RETRIES_MAX, Retries};
use crate::session::{MovedSession, Sessions, keep};
use crate::transaction::Writes;
use crate::{Error, Queries, Service, routes};
use narrows_serving::server_span::{Route, trace};
use narrows_serving::{Listen, Telemetry};

const OWNERS: &str = "/owners";
const OWNER: &str = "/owners/{id}";
const ITEMS: &str = "/items";
const ITEM: &str = "/items/{id}";
const SEARCH: &str = "/search";
const TRANSFERS: &str = "/transfers";
const LEDGER: &str = "/ledger";
/// The largest body of a request: a name of 64 characters, each escaped, has less than 1,000 bytes.
const BODY_BYTES_MAX: usize = 4_096;
const NODES_MAX: usize = 100;
const INSTANCES_MAX: usize = 1_000;
const CONNECTIONS_MAX: usize = 1_000;
const CACHED_MAX: usize = 1_000_000;
/// How long the ledger waits for its one connection to a node.
const LEDGER_WAIT: Duration = Duration::from_secs(10);

/// The database and how it is used.
#[derive(Debug, Clone)]
pub struct Config {
    /// The nodes of the database, 1 to 100.
    pub databases: Vec<Node>,
    /// Which instance this is, counted from 0, at most 999: it uses the node of this number, modulo their count.
    pub instance: usize,
    /// Treatment of a session that comes from another instance.
    pub moved: MovedSession,
    /// How owners come to their items.
    pub queries: Queries,
    /// How often a transaction is begun again after the database undid it, 0 to 100.
    pub retries_max: u32,
    /// Connections to the node at a time, 1 to 1,000.
    pub connections_max: usize,
    /// The longest wait for one of them.
    pub connection_wait: Duration,
    /// How long a page is good in the cache.
    pub cache_ttl: Duration,
    /// Pages in the cache, at most 1,000,000; with none, each request queries the database.
    pub cache_entries_max: usize,
    /// Time that passes before each statement: the network to the database.
    pub network_delay: Duration,
}

impl Config {
    fn validate(&self) -> Result<(), Error> {
        let retries_max = usize::try_from(self.retries_max).unwrap_or(usize::MAX);
        for (name, value, range, expected) in [
            ("number of databases", self.databases.len(), 1..=NODES_MAX, "1 to 100"),
            ("instance", self.instance, 0..=INSTANCES_MAX - 1, "0 to 999"),
            ("retries", retries_max, 0..=RETRIES_MAX as usize, "0 to 100"),
            ("max-connections", self.connections_max, 1..=CONNECTIONS_MAX, "1 to 1000"),
            ("cache-entries", self.cache_entries_max, 0..=CACHED_MAX, "0 to 1000000"),
        ] {
            if !range.contains(&value) {
                return Err(Error::Setting { name, value: value.to_string(), expected });
            }
        }
        Ok(())
    }
}

/// Listens there. Connects to the database with the first request that needs it.
///
/// # Errors
///
/// [`Error::Setting`] for a setting outside its range, [`Error::Serving`] if the address is not to be had or spans and
/// metrics cannot be exported as requested.
pub async fn open(listen: Listen, config: Config) -> Result<Service, Error> {
    let telemetry = Telemetry::from_env(crate::SCOPE, "micron")?;
    Ok(Service::bind(listen, router(config, &telemetry)?, telemetry).await?)
}

/// State that all requests share.
pub(crate) struct Micron {
    pub(crate) pool: Pool,
    /// One connection to each node, for the ledger.
    pub(crate) nodes: Vec<Pool>,
    pub(crate) owners: Owners,
    pub(crate) writes: Writes,
    pub(crate) ledger: Ledger,
}

fn router(config: Config, telemetry: &Telemetry) -> Result<Router, Error> {
    config.validate()?;
    let meters = Meters::new(&telemetry.meter());
    let sessions = Sessions { instance: config.instance, moved: config.moved, meters: meters.clone() };
    let traced = |path: &'static str, methods: MethodRouter<Arc<Micron>>| {
        let route = Route { path, tracer: telemetry.tracer() };
        methods
            .route_layer(middleware::from_fn_with_state(sessions.clone(), keep))
            .route_layer(middleware::from_fn_with_state(route, trace))
    };
    let router = Router::new()
        .route(OWNERS, traced(OWNERS, get(routes::owners)))
        .route(OWNER, traced(OWNER, get(routes::owner)))
        .route(ITEMS, traced(ITEMS, get(routes::items)))
        .route(ITEM, traced(ITEM, put(routes::rename)))
        .route(SEARCH, traced(SEARCH, get(routes::search)))
        .route(TRANSFERS, traced(TRANSFERS, post(routes::transfer)))
        .route(LEDGER, traced(LEDGER, get(routes::ledger)))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
    Ok(router.with_state(Arc::new(Micron::new(config, meters, telemetry))))
}

impl Micron {
    fn new(config: Config, meters: Meters, telemetry: &Telemetry) -> Self {
        let own = PoolConfig {
            connections_max: config.connections_max,
            wait_max: config.connection_wait,
            network_delay: config.network_delay,
        };
        let single = PoolConfig { connections_max: 1, wait_max: LEDGER_WAIT, network_delay: Duration::ZERO };
        let node = config.databases[config.instance % config.databases.len()].clone();
        let nodes = config.databases.into_iter().map(|node| Pool::new(node, single.clone(), telemetry));
        Self {
            pool: Pool::new(node, own, telemetry),
            nodes: nodes.collect(),
            owners: Owners::new(
                config.queries,
                Cache::new(config.cache_ttl, config.cache_entries_max),
                meters.clone(),
                telemetry.tracer(),
            ),
            writes: Writes { retries: Retries { max: config.retries_max }, meters },
            ledger: Ledger::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::http::header::{COOKIE, SET_COOKIE};
    use axum::http::{HeaderMap, Request};
    use narrows_serving::client::Client;
    use opentelemetry::trace::SpanKind;
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;

    const NOBODY: &str = "mysql://root@127.0.0.1:1/micron";
    const TRACED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const NOT_TRACED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    fn config(instance: usize) -> Config {
        Config {
            databases: vec![NOBODY.parse().unwrap()],
            instance,
            moved: MovedSession::Served,
            queries: Queries::Joined,
            retries_max: 3,
            connections_max: 2,
            connection_wait: Duration::from_secs(5),
            cache_ttl: Duration::ZERO,
            cache_entries_max: 10,
            network_delay: Duration::from_millis(1),
        }
    }

    /// An instance whose database is away, and the spans it makes.
    async fn serve(instance: usize) -> (String, InMemorySpanExporter) {
        serve_with(config(instance)).await
    }

    async fn serve_with(config: Config) -> (String, InMemorySpanExporter) {
        let spans = InMemorySpanExporter::default();
        let telemetry = Telemetry::with_provider(
            crate::SCOPE,
            SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build(),
        );
        let router = router(config, &telemetry).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        (url, spans)
    }

    async fn get(url: &str, name: &'static str, value: &str) -> (u16, HeaderMap, Value) {
        let request = Request::builder().uri(url).header(name, value).body(Bytes::new()).unwrap();
        let (head, body) = Client::new(Duration::from_secs(60), 1).send(request).await.unwrap().into_parts();
        (head.status.as_u16(), head.headers, serde_json::from_slice(&body).unwrap())
    }

    fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
        headers[name].to_str().unwrap()
    }

    /// The spans of requests, without those within.
    fn of_requests(spans: &InMemorySpanExporter) -> Vec<SpanData> {
        let all = spans.get_finished_spans().unwrap();
        all.into_iter().filter(|span| span.span_kind == SpanKind::Server).collect()
    }

    fn attribute(span: &SpanData, name: &str) -> Option<String> {
        let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
        found.map(|attribute| attribute.value.to_string())
    }

    #[tokio::test]
    async fn a_session_is_new_then_kept_and_moves_with_its_client() {
        let ((first, spans), (second, _)) = (serve(0).await, serve(1).await);
        let owners = |base: &str| format!("{base}/owners");
        let (status, headers, problem) = get(&owners(&first), "traceparent", TRACED).await;
        assert_eq!((status, &problem["reason"]), (503, &json!("unavailable")));
        assert_eq!((text(&headers, "micron-session"), text(&headers, "micron-instance")), ("new", "0"));
        let cookie = headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        let (_, headers, _) = get(&owners(&first), COOKIE.as_str(), &cookie).await;
        assert_eq!((text(&headers, "micron-session"), headers.get(SET_COOKIE)), ("kept", None));
        let (_, headers, _) = get(&owners(&second), COOKIE.as_str(), &cookie).await;
        assert_eq!((text(&headers, "micron-session"), text(&headers, "micron-instance")), ("moved", "1"));
        let moved = headers[SET_COOKIE].to_str().unwrap();
        assert_eq!(moved.split('.').next(), cookie.split('.').next());
        let spans = of_requests(&spans);
        let states: Vec<_> = spans.iter().filter_map(|span| attribute(span, "micron.session.state")).collect();
        assert_eq!(states, ["new", "kept"]);
        assert_eq!(attribute(&spans[0], "session.id"), attribute(&spans[1], "session.id"));
    }

    #[tokio::test]
    async fn a_session_that_went_astray_is_refused_and_keeps_its_cookie() {
        let (first, _) = serve(0).await;
        let (second, _) = serve_with(Config { moved: MovedSession::Refused, ..config(1) }).await;
        let (_, headers, _) = get(&format!("{first}/owners"), "traceparent", TRACED).await;
        let cookie = headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        let (status, headers, problem) = get(&format!("{second}/owners"), COOKIE.as_str(), &cookie).await;
        assert_eq!((status, &problem["reason"]), (421, &json!("moved")));
        assert_eq!((text(&headers, "micron-session"), headers.get(SET_COOKIE)), ("moved", None));
        let (status, headers, _) = get(&format!("{second}/owners"), "traceparent", TRACED).await;
        assert_eq!(
            (status, text(&headers, "micron-session")),
            (503, "new"),
            "without a session there is none to refuse"
        );
    }

    #[tokio::test]
    async fn a_request_is_a_span_of_its_callers_trace_unless_that_is_not_sampled() {
        let (url, spans) = serve(0).await;
        get(&format!("{url}/owners?page=2"), "traceparent", TRACED).await;
        get(&format!("{url}/owners?page=2"), "traceparent", NOT_TRACED).await;
        let all = spans.get_finished_spans().unwrap();
        assert!(all.iter().all(|span| span.span_context.trace_id().to_string() == TRACED[3..35]), "{all:?}");
        let spans = of_requests(&spans);
        assert_eq!(spans.len(), 1);
        assert_eq!(spans[0].name, "GET /owners");
        assert_eq!(spans[0].span_context.trace_id().to_string(), &TRACED[3..35]);
        assert_eq!(spans[0].parent_span_id.to_string(), &TRACED[36..52]);
        for (name, value) in [("http.route", "/owners"), ("url.query", "page=2"), ("error.type", "503")] {
            assert_eq!(attribute(&spans[0], name).as_deref(), Some(value));
        }
    }

    #[tokio::test]
    async fn a_span_names_its_client_as_the_first_proxy_saw_it() {
        let (url, spans) = serve(0).await;
        get(&format!("{url}/owners"), "x-forwarded-for", "127.0.0.7, 127.0.0.1").await;
        get(&format!("{url}/owners"), "accept", "*/*").await;
        let spans = of_requests(&spans);
        let clients: Vec<_> = spans.iter().map(|span| attribute(span, "client.address")).collect();
        assert_eq!(clients, [Some("127.0.0.7".to_owned()), None]);
    }

    #[test]
    fn settings_have_ranges() {
        let telemetry = Telemetry::with_provider(crate::SCOPE, SdkTracerProvider::default());
        type Change = fn(&mut Config);
        let wrong: [(Change, &str); 5] = [
            (|config| config.databases.clear(), "number of databases is \"0\", expected 1 to 100"),
            (|config| config.instance = 1_000, "instance is \"1000\", expected 0 to 999"),
            (|config| config.retries_max = 101, "retries is \"101\", expected 0 to 100"),
            (|config| config.connections_max = 0, "max-connections is \"0\", expected 1 to 1000"),
            (|config| config.cache_entries_max = 1_000_001, "cache-entries is \"1000001\", expected 0 to 1000000"),
        ];
        for (change, message) in wrong {
            let mut config = config(0);
            change(&mut config);
            assert_eq!(router(config, &telemetry).err().unwrap().to_string(), message);
        }
    }

    #[test]
    fn each_instance_has_its_node() {
        let telemetry = Telemetry::with_provider(crate::SCOPE, SdkTracerProvider::default());
        let meters = Meters::new(&telemetry.meter());
        let nodes = || (1..=3).map(|port| format!("mysql://root@127.0.0.1:{port}/micron").parse().unwrap());
        let ports: Vec<u16> = (0..6)
            .map(|instance| {
                let config = Config { databases: nodes().collect(), ..config(instance) };
                Micron::new(config, meters.clone(), &telemetry).pool.node().port()
            })
            .collect();
        assert_eq!(ports, [1, 2, 3, 1, 2, 3]);
    }
}
