//! `gateway`: one invoice out of three calls in parallel.
//!
//! A call that fails with 500, 502 or 503, or whose connection fails, is made again, twice at most.
//! A part that is still missing is left out of the invoice and named under `omitted`: an invoice without a part is
//! worth more than none. Only when every part is missing is there no invoice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use opentelemetry::Context;
use opentelemetry_sdk::trace::SdkTracer;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::outgoing::{self, Reply};
use crate::period::Period;
use crate::{BaseUrl, BaseUrls, Error, Service, delivery, dronescheduler, package};
use narrows_serving::client::{CallError, Client};
use narrows_serving::problem::{Problem, ok};
use narrows_serving::server_span::{Route, Trace, trace};
use narrows_serving::{Listen, Telemetry, Token};

const PATH: &str = "/api/invoices";
/// Calls for one part, repeats included.
const ATTEMPTS_MAX: u32 = 3;
/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(35);
/// Open connections that are kept for each service.
const IDLE_CONNECTIONS_MAX: usize = 256;
/// How much of a failed part's own words is passed on, in characters.
const REASON_CHARACTERS_MAX: usize = 300;

/// Where the parts of an invoice come from.
#[derive(Debug, Clone)]
pub struct Config {
    /// The service of deliveries.
    pub delivery: BaseUrl,
    /// The service of packages.
    pub package: BaseUrl,
    /// The replicas of the service of drones, which take turns.
    pub dronescheduler: BaseUrls,
    /// The wait before the second attempt; the wait before the third is twice as long.
    pub retry_delay: Duration,
}

/// Listens there, and presents the same token to the services that it calls.
///
/// # Errors
///
/// [`Error::Serving`] if the address is not to be had or spans cannot be exported.
pub async fn open(listen: Listen, config: &Config) -> Result<Service, Error> {
    let telemetry = Telemetry::from_env(crate::SCOPE, "gateway")?;
    let router = router(config, listen.token(), &telemetry)?;
    Ok(Service::bind(listen, router, telemetry).await?)
}

fn router(config: &Config, token: Option<&Token>, telemetry: &Telemetry) -> Result<Router, Error> {
    let gateway = Gateway {
        client: Client::new(ATTEMPT_TIMEOUT, IDLE_CONNECTIONS_MAX).with_token(token),
        tracer: telemetry.tracer(),
        parts: [
            Part::new("deliveries", [config.delivery.at(delivery::PATH)])?,
            Part::new("packages", [config.package.at(package::PATH)])?,
            Part::new("drones", config.dronescheduler.iter().map(|replica| replica.at(dronescheduler::PATH)))?,
        ],
        retry_delay: config.retry_delay,
    };
    let route = Route { path: PATH, tracer: telemetry.tracer() };
    let traced = get(invoice).route_layer(axum::middleware::from_fn_with_state(route, trace));
    Ok(Router::new().route(PATH, traced).with_state(Arc::new(gateway)))
}

struct Gateway {
    client: Client,
    tracer: SdkTracer,
    parts: [Part; 3],
    retry_delay: Duration,
}

/// A part of an invoice and where it comes from.
struct Part {
    name: &'static str,
    /// One for each replica, at least one.
    urls: Vec<Uri>,
    /// How many calls there were.
    calls: AtomicUsize,
}

impl Part {
    fn new(name: &'static str, urls: impl IntoIterator<Item = Result<Uri, Error>>) -> Result<Self, Error> {
        Ok(Self { name, urls: urls.into_iter().collect::<Result<_, _>>()?, calls: AtomicUsize::new(0) })
    }

    /// The URL of the replica whose turn it is.
    fn url(&self, period: &Period) -> Result<Uri, axum::http::Error> {
        let turn = self.calls.fetch_add(1, Ordering::Relaxed) % self.urls.len();
        with_query(&self.urls[turn], period)
    }
}

/// A part that is missing, as reported to the caller.
#[derive(Debug, Serialize)]
struct MissingPart {
    part: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    reason: String,
}

async fn invoice(
    State(gateway): State<Arc<Gateway>>,
    Extension(Trace(cx)): Extension<Trace>,
    request: Request,
) -> Response {
    let period = match Period::from_uri(request.uri()) {
        Ok(period) => period,
        Err(problem) => return problem.into_response(),
    };
    let [first, second, third] = &gateway.parts;
    let (first, second, third) = tokio::join!(
        gateway.part(&cx, first, &period),
        gateway.part(&cx, second, &period),
        gateway.part(&cx, third, &period),
    );
    assemble([first, second, third])
}

/// The invoice of the available parts, or a problem if there is no part.
fn assemble(parts: [Result<(&'static str, Value), MissingPart>; 3]) -> Response {
    let mut invoice = Map::new();
    let mut omitted = Vec::new();
    for part in parts {
        match part {
            Ok((name, value)) => _ = invoice.insert(name.to_owned(), value),
            Err(missing) => omitted.push(missing),
        }
    }
    if invoice.is_empty() {
        return Problem::new(StatusCode::BAD_GATEWAY, "no part of the invoice could be had")
            .with("omitted", json!(omitted))
            .into_response();
    }
    if !omitted.is_empty() {
        invoice.insert("omitted".to_owned(), json!(omitted));
    }
    ok(&invoice)
}

impl Gateway {
    async fn part(&self, cx: &Context, part: &Part, period: &Period) -> Result<(&'static str, Value), MissingPart> {
        let omitted = |status, reason| MissingPart { part: part.name, status, reason };
        let url = part.url(period).map_err(|error| omitted(None, error.to_string()))?;
        match self.attempts(cx, url).await {
            Ok(reply) if reply.status == StatusCode::OK => match serde_json::from_slice(&reply.body) {
                Ok(value) => Ok((part.name, value)),
                Err(error) => Err(omitted(Some(200), format!("the response is not JSON: {error}"))),
            },
            Ok(reply) => Err(omitted(Some(reply.status.as_u16()), reason(&reply))),
            Err(error) => Err(omitted(None, error.to_string())),
        }
    }

    /// The last attempt's outcome.
    async fn attempts(&self, cx: &Context, url: Uri) -> Result<Reply, CallError> {
        let mut wait = self.retry_delay;
        let mut outcome = outgoing::get(&self.client, &self.tracer, cx, url.clone(), 0).await;
        for resend in 1..ATTEMPTS_MAX {
            if !is_worth_repeating(&outcome) {
                break;
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2);
            outcome = outgoing::get(&self.client, &self.tracer, cx, url.clone(), resend).await;
        }
        outcome
    }
}

/// `url`, which has no query yet, with the parameters of a period.
fn with_query(url: &Uri, period: &Period) -> Result<Uri, axum::http::Error> {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(period.parameters()).finish();
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{query}", url.path()).try_into()?);
    Ok(Uri::from_parts(parts)?)
}

fn is_worth_repeating(outcome: &Result<Reply, CallError>) -> bool {
    match outcome {
        Ok(reply) => matches!(reply.status.as_u16(), 500 | 502 | 503),
        Err(error) => matches!(error, CallError::Connection(_)),
    }
}

/// The `detail` of a problem, or else the status in words.
fn reason(reply: &Reply) -> String {
    let problem: Option<Value> = serde_json::from_slice(&reply.body).ok();
    match problem.as_ref().and_then(|problem| problem["detail"].as_str()) {
        Some(detail) => detail.chars().take(REASON_CHARACTERS_MAX).collect(),
        None => reply.status.canonical_reason().unwrap_or("no reason given").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, SpanRecorder, attribute, body_of, serve, url_of_nobody};

    const ASKED: &str = "/api/invoices?ownerId=o0001&year=2021&month=3";

    struct Case {
        deliveries: Fake,
        packages: Fake,
        drones: Fake,
        recorded: SpanRecorder,
        gateway: BaseUrl,
    }

    async fn case(deliveries: &[(u16, &str)], packages: &[(u16, &str)], drones: &[(u16, &str)]) -> Case {
        let fakes = [Fake::start(deliveries).await, Fake::start(packages).await, Fake::start(drones).await];
        let [deliveries, packages, drones] = fakes;
        let recorded = SpanRecorder::default();
        let config = Config {
            delivery: deliveries.url.clone(),
            package: packages.url.clone(),
            dronescheduler: drones.url.clone().into(),
            retry_delay: Duration::from_millis(1),
        };
        let gateway = serve(router(&config, None, &recorded.telemetry()).unwrap()).await;
        Case { deliveries, packages, drones, recorded, gateway }
    }

    impl Case {
        async fn ask(&self, path: &str) -> (u16, Value) {
            body_of(&self.gateway, path, &[]).await
        }
    }

    const COUNT: (u16, &str) = (200, r#"{"count":7}"#);
    const WEIGHT: (u16, &str) = (200, r#"{"totalWeight":400}"#);
    const MILES: (u16, &str) = (200, r#"{"traveledMiles":1.5,"assignedHours":2.0}"#);
    const BUSY: (u16, &str) = (503, r#"{"detail":"the store is throttling"}"#);

    #[tokio::test]
    async fn three_parts_make_an_invoice() {
        let case = case(&[COUNT], &[WEIGHT], &[MILES]).await;
        let expected = json!({
            "deliveries": { "count": 7 },
            "packages": { "totalWeight": 400 },
            "drones": { "traveledMiles": 1.5, "assignedHours": 2.0 },
        });
        assert_eq!(case.ask(ASKED).await, (200, expected));
        let path = "/api/dronedeliveries/utilization?ownerId=o0001&year=2021&month=3";
        assert_eq!(case.drones.paths(), [path]);
        assert_eq!(case.deliveries.paths(), ["/api/deliveries/summary?ownerId=o0001&year=2021&month=3"]);
        assert_eq!(case.packages.paths(), ["/api/packages/summary?ownerId=o0001&year=2021&month=3"]);
    }

    #[tokio::test]
    async fn replicas_take_turns() {
        let [calls, drones, others] =
            [Fake::start(&[COUNT]).await, Fake::start(&[MILES]).await, Fake::start(&[MILES]).await];
        let config = Config {
            delivery: calls.url.clone(),
            package: calls.url.clone(),
            dronescheduler: BaseUrls::of(drones.url.clone(), [others.url.clone()]),
            retry_delay: Duration::from_millis(1),
        };
        let gateway = serve(router(&config, None, &SpanRecorder::default().telemetry()).unwrap()).await;
        for _ in 0..6 {
            assert_eq!(body_of(&gateway, ASKED, &[]).await.0, 200);
        }
        assert_eq!((drones.paths().len(), others.paths().len()), (3, 3));
    }

    #[tokio::test]
    async fn a_part_is_asked_for_three_times_and_then_named_as_omitted() {
        let case = case(&[COUNT], &[WEIGHT], &[BUSY, (500, ""), BUSY]).await;
        let (status, invoice) = case.ask(ASKED).await;
        assert_eq!(status, 200);
        assert_eq!(
            invoice["omitted"],
            json!([{ "part": "drones", "status": 503, "reason": "the store is throttling" }])
        );
        assert!(invoice.get("drones").is_none());
        assert_eq!(case.drones.paths().len(), 3);
        assert_eq!(case.packages.paths().len(), 1);
    }

    #[tokio::test]
    async fn a_repeat_that_succeeds_leaves_nothing_out_and_is_counted_on_its_span() {
        let case = case(&[COUNT], &[WEIGHT], &[(502, ""), MILES]).await;
        let (_, invoice) = case.ask(ASKED).await;
        assert!(invoice.get("omitted").is_none());
        let spans = case.recorded.spans("GET");
        assert_eq!(spans.len(), 4);
        let resends: Vec<String> =
            spans.iter().filter_map(|span| attribute(span, "http.request.resend_count")).collect();
        assert_eq!(resends, ["1"]);
        let failed: Vec<String> = spans.iter().filter_map(|span| attribute(span, "error.type")).collect();
        assert_eq!(failed, ["502"]);
    }

    #[tokio::test]
    async fn a_part_that_says_not_found_is_not_asked_again() {
        let case = case(&[COUNT], &[WEIGHT], &[(404, r#"{"detail":"nothing in this month"}"#)]).await;
        let (status, invoice) = case.ask(ASKED).await;
        assert_eq!((status, case.drones.paths().len()), (200, 1));
        assert_eq!(invoice["omitted"], json!([{ "part": "drones", "status": 404, "reason": "nothing in this month" }]));
    }

    #[tokio::test]
    async fn a_response_that_is_not_json_is_not_a_part() {
        let case = case(&[COUNT], &[(200, "<html>")], &[MILES]).await;
        let (status, invoice) = case.ask(ASKED).await;
        assert_eq!((status, &invoice["omitted"][0]["status"]), (200, &json!(200)));
        assert!(invoice["omitted"][0]["reason"].as_str().unwrap().starts_with("the response is not JSON"));
    }

    #[tokio::test]
    async fn without_any_part_there_is_no_invoice() {
        let case = case(&[(404, "")], &[BUSY; 3], &[(500, ""); 3]).await;
        let (status, problem) = case.ask(ASKED).await;
        assert_eq!((status, &problem["status"], &problem["title"]), (502, &json!(502), &json!("Bad Gateway")));
        let omitted: Vec<&Value> = problem["omitted"].as_array().unwrap().iter().map(|part| &part["status"]).collect();
        assert_eq!(omitted, [404, 503, 500]);
    }

    #[tokio::test]
    async fn services_that_are_not_there_are_tried_three_times() {
        let recorded = SpanRecorder::default();
        let nobody = url_of_nobody().await;
        let config = Config {
            delivery: nobody.clone(),
            package: nobody.clone(),
            dronescheduler: nobody.into(),
            retry_delay: Duration::from_millis(1),
        };
        let gateway = serve(router(&config, None, &recorded.telemetry()).unwrap()).await;
        let (status, problem) = body_of(&gateway, ASKED, &[]).await;
        assert_eq!(status, 502);
        assert!(problem["omitted"][0].get("status").is_none());
        assert!(problem["omitted"][0]["reason"].as_str().unwrap().starts_with("no connection"), "{problem}");
        let spans = recorded.spans("GET");
        assert_eq!(spans.len(), 9);
        assert!(spans.iter().all(|span| attribute(span, "error.type").as_deref() == Some("connection")));
    }

    #[tokio::test]
    async fn wrong_parameters_are_reported_all_at_once_before_any_call() {
        let case = case(&[COUNT], &[WEIGHT], &[MILES]).await;
        for (query, wrong) in [
            ("", json!(["ownerId", "year", "month"])),
            ("?ownerId=o1&year=x&month=13", json!(["year", "month"])),
            ("?ownerId=&year=0&month=1", json!(["ownerId", "year"])),
        ] {
            let (status, problem) = case.ask(&format!("/api/invoices{query}")).await;
            assert_eq!((status, &problem["status"], &problem["parameter"]), (400, &json!(400), &wrong));
        }
        assert_eq!(case.deliveries.paths().len() + case.packages.paths().len() + case.drones.paths().len(), 0);
    }

    #[tokio::test]
    async fn the_callers_trace_goes_on_and_an_unsampled_one_stays_so() {
        let case = case(&[COUNT], &[WEIGHT], &[MILES]).await;
        let trace = "0af7651916cd43dd8448eb211c80319c";
        for (flag, spans) in [("01", 4), ("00", 0)] {
            case.recorded.reset();
            let traceparent = format!("00-{trace}-b7ad6b7169203331-{flag}");
            body_of(&case.gateway, ASKED, &[("traceparent", &traceparent)]).await;
            let recorded = case.recorded.all();
            assert_eq!(recorded.len(), spans);
            assert!(recorded.iter().all(|span| span.span_context.trace_id().to_string() == trace));
            let sent = case.drones.headers("traceparent").pop().unwrap();
            assert!(sent.starts_with(&format!("00-{trace}-")) && sent.ends_with(flag), "{sent}");
            let call = case
                .recorded
                .spans("GET")
                .into_iter()
                .find(|span| attribute(span, "url.full").is_some_and(|url| url.contains("/utilization")));
            let parent = call.map(|call| call.span_context.span_id().to_string());
            assert!(parent.is_none_or(|parent| sent.contains(&parent)), "the call's own span is the parent: {sent}");
        }
    }

    #[tokio::test]
    async fn the_servers_span_says_what_was_asked_and_parents_the_calls() {
        let case = case(&[COUNT], &[WEIGHT], &[MILES]).await;
        case.ask(ASKED).await;
        let server = case.recorded.spans("GET /api/invoices").pop().unwrap();
        for (name, value) in [
            ("http.request.method", "GET"),
            ("http.route", "/api/invoices"),
            ("url.path", "/api/invoices"),
            ("url.query", "ownerId=o0001&year=2021&month=3"),
            ("url.scheme", "http"),
            ("http.response.status_code", "200"),
            ("server.address", "127.0.0.1"),
        ] {
            assert_eq!(attribute(&server, name).as_deref(), Some(value), "{name}");
        }
        let calls = case.recorded.spans("GET");
        assert_eq!(calls.len(), 3);
        assert!(calls.iter().all(|call| call.parent_span_id == server.span_context.span_id()));
    }
}
