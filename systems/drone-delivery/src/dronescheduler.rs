//! `dronescheduler`: how far and how long an owner's drones flew in a month, summed over the documents of a store.
//!
//! The original's time outside the store is a setting, taken half before the store is queried and half after: processor
//! time that is really used (another language's framework, JSON, TLS), on as many threads as the original's node has cores,
//! and time that only passes (the platform's network and mesh).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, KeyValue};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::period::Period;
use crate::store::{Query, Store, StoreConfig, StoreError};
use crate::work::burn;
use crate::{BaseUrl, Error, Parallelism, Service};
use narrows_serving::problem::{Problem, ok};
use narrows_serving::server_span::{Route, Trace, trace};
use narrows_serving::{Listen, Telemetry, Token};

pub(crate) const PATH: &str = "/api/dronedeliveries/utilization";
/// The original's controller and action, which is how Application Insights names the operation: its own attribute for
/// that, so that the queries of the case study find it here.
const INSIGHTS_NAME: (&str, &str) = ("microsoft.request.name", "GET DroneDeliveries/GetDroneUtilization");
const QUERY: &str = "SELECT * FROM c WHERE c.ownerId = @ownerId AND c.year = @year AND c.month = @month";
/// When to come again after the store was not there.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The store, how it is queried, and the further time of a request.
#[derive(Debug, Clone)]
pub struct Config {
    /// The store's address.
    pub store: BaseUrl,
    /// The store's database.
    pub database: String,
    /// The container within it.
    pub container: String,
    /// How many partitions a query requests at a time.
    pub parallelism: Parallelism,
    /// Time that passes in each request without work: the platform's network.
    pub platform_delay: Duration,
    /// Processor time that each request uses.
    pub cpu_work: Duration,
    /// Threads that use it, at least 1.
    pub threads: u16,
    /// Requests to the store at a time, 1 to 10,000.
    pub connections_max: usize,
    /// Documents of one query that are held ahead of the partition that is being drained, 1 to 100,000.
    pub prefetch_max: usize,
    /// How often a request to the store is made again after 429.
    pub retries_max: u32,
}

/// Listens there, and presents the same token to the store.
///
/// # Errors
///
/// [`Error::Setting`] for a setting outside its range, [`Error::Serving`] if the address is not to be had or spans cannot
/// be exported.
pub async fn open(listen: Listen, config: Config) -> Result<Service, Error> {
    let telemetry = Telemetry::from_env(crate::SCOPE, "dronescheduler")?;
    let router = router(config, listen.token().cloned(), &telemetry)?;
    Ok(Service::bind(listen, router, telemetry).await?)
}

fn router(config: Config, token: Option<Token>, telemetry: &Telemetry) -> Result<Router, Error> {
    let store = Store::open(
        StoreConfig {
            url: config.store,
            token,
            database: config.database,
            container: config.container,
            parallelism: config.parallelism,
            connections_max: config.connections_max,
            prefetch_max: config.prefetch_max,
            retries_max: config.retries_max,
        },
        telemetry.tracer(),
    )?;
    let scheduler = Scheduler {
        store,
        half_delay: config.platform_delay / 2,
        half_work: config.cpu_work / 2,
        threads: Semaphore::new(usize::from(config.threads)),
    };
    let route = Route { path: PATH, tracer: telemetry.tracer() };
    let traced = get(utilization).route_layer(axum::middleware::from_fn_with_state(route, trace));
    Ok(Router::new().route(PATH, traced).with_state(Arc::new(scheduler)))
}

struct Scheduler {
    store: Store,
    half_delay: Duration,
    half_work: Duration,
    /// One permit for each thread that works on requests.
    threads: Semaphore,
}

/// The properties of a document that count.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    traveled_miles: f64,
    assigned_hours: f64,
}

/// Sums over the documents of a month.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Utilization {
    traveled_miles: f64,
    assigned_hours: f64,
    #[serde(skip)]
    documents: u64,
}

impl Utilization {
    fn add(&mut self, document: Document) {
        self.traveled_miles += document.traveled_miles;
        self.assigned_hours += document.assigned_hours;
        self.documents += 1;
    }
}

async fn utilization(
    State(scheduler): State<Arc<Scheduler>>,
    Extension(Trace(cx)): Extension<Trace>,
    request: Request,
) -> Response {
    cx.span().set_attribute(KeyValue::new(INSIGHTS_NAME.0, INSIGHTS_NAME.1));
    match Period::from_uri(request.uri()) {
        Ok(period) => scheduler.respond(&cx, &period).await.unwrap_or_else(Problem::into_response),
        Err(problem) => problem.into_response(),
    }
}

impl Scheduler {
    async fn respond(&self, cx: &Context, period: &Period) -> Result<Response, Problem> {
        tokio::time::sleep(self.half_delay).await;
        self.work().await;
        let sums = self.store.query(cx, &query(period), Utilization::add).await;
        self.work().await;
        tokio::time::sleep(self.half_delay).await;
        let sums = sums.map_err(|error| problem_of(&error))?;
        if sums.documents == 0 {
            let Period { owner, year, month } = period;
            let detail = format!("no utilization of owner {owner:?} in month {month} of {year}");
            return Err(Problem::new(StatusCode::NOT_FOUND, &detail));
        }
        Ok(ok(&sums))
    }

    /// Half of a request's work, on the next free thread.
    async fn work(&self) {
        let half = self.half_work;
        let _thread = self.threads.acquire().await;
        // It fails only when the process ends.
        let _ = tokio::task::spawn_blocking(move || burn(half)).await;
    }
}

fn query(period: &Period) -> Query {
    Query {
        text: QUERY,
        filter: vec![
            ("ownerId", period.owner.clone().into()),
            ("year", period.year.into()),
            ("month", period.month.into()),
        ],
    }
}

fn problem_of(error: &StoreError) -> Problem {
    let unavailable = |wait| Problem::new(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()).with_retry_after(wait);
    match error {
        StoreError::Throttled { retry_after, .. } => unavailable(*retry_after),
        StoreError::Unreachable(_) | StoreError::Unavailable { .. } | StoreError::RangesGone => {
            unavailable(RETRY_AFTER)
        }
        StoreError::Refused { .. } | StoreError::Malformed(_) | StoreError::TooManyPages | StoreError::Interrupted => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Fake, FakeResponse, SpanRecorder, ask, attribute, serve, url_of_nobody};

    const ASKED: &str = "/api/dronedeliveries/utilization?ownerId=o0001&year=2021&month=3";

    /// A store that gives every query this response.
    async fn store_with(status: u16, body: &str) -> Fake {
        let told = FakeResponse::new(status, body);
        Fake::container("ownerId", move |_| std::future::ready(told.clone())).await
    }

    async fn response_of(store: &BaseUrl, path: &str) -> (u16, Option<String>, Value) {
        let config = Config {
            store: store.clone(),
            database: "dronedelivery".to_owned(),
            container: "utilization".to_owned(),
            parallelism: Parallelism::Serial,
            platform_delay: Duration::ZERO,
            cpu_work: Duration::from_micros(10),
            threads: 2,
            connections_max: 1,
            prefetch_max: 100,
            retries_max: 9,
        };
        let recorded = SpanRecorder::default();
        let service = serve(router(config, None, &recorded.telemetry()).unwrap()).await;
        let (status, headers, body) = ask(&service, path, &[]).await;
        let server = recorded.spans("GET /api/dronedeliveries/utilization").pop().unwrap();
        let error_type = (status >= 500).then(|| status.to_string());
        assert_eq!(attribute(&server, "error.type"), error_type);
        assert_eq!(attribute(&server, INSIGHTS_NAME.0).as_deref(), Some(INSIGHTS_NAME.1));
        let retry_after = headers.get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        (status, retry_after, body)
    }

    #[tokio::test]
    async fn documents_are_summed() {
        let documents = json!({ "Documents": [
            { "traveledMiles": 1.5, "assignedHours": 2.0, "id": "x" },
            { "traveledMiles": 2.5, "assignedHours": 0.5 },
        ] });
        let store = store_with(200, &documents.to_string()).await;
        let expected = json!({ "traveledMiles": 4.0, "assignedHours": 2.5 });
        assert_eq!(response_of(&store.url, ASKED).await, (200, None, expected));
        let sent: Value = serde_json::from_str(&store.asked()[1].body).unwrap();
        assert_eq!(
            sent["parameters"],
            json!([
                { "name": "@ownerId", "value": "o0001" },
                { "name": "@year", "value": 2021 },
                { "name": "@month", "value": 3 },
            ])
        );
    }

    #[tokio::test]
    async fn failures_say_whose_they_are() {
        let none = store_with(200, r#"{"Documents":[]}"#).await;
        let away = Fake::start(&[(503, "")]).await;
        let wrong = store_with(400, "").await;
        let busy =
            Fake::container("ownerId", async |_| FakeResponse::new(429, "").with("x-ms-retry-after-ms", 30_500)).await;
        let nobody = url_of_nobody().await;
        for (store, status, retry_after) in [
            (&none.url, 404, None),
            (&away.url, 503, Some("1")),
            (&nobody, 503, Some("1")),
            (&busy.url, 503, Some("31")),
            (&wrong.url, 500, None),
        ] {
            let (found, told, problem) = response_of(store, ASKED).await;
            assert_eq!((found, told.as_deref()), (status, retry_after));
            assert_eq!(problem["status"], status);
        }
    }

    #[tokio::test]
    async fn a_wrong_month_does_not_reach_the_store() {
        let store = Fake::start(&[(500, "")]).await;
        let (status, _, problem) = response_of(&store.url, "/api/dronedeliveries/utilization?ownerId=o&month=0").await;
        assert_eq!((status, &problem["parameter"]), (400, &json!(["year", "month"])));
        assert_eq!(store.asked().len(), 0);
    }
}
