//! The service over HTTP, and one workload without it.
//!
//! One workload runs at a time, in its own task: a client that goes away does not leave half of one behind. Its
//! figures are exported before the response, so a client that has the response has the metrics too.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{Response, StatusCode};
use axum::routing::post;
use axum::{Extension, middleware};
use narrows_serving::problem::{Problem, ok};
use narrows_serving::server_span::{Route, Trace, trace};
use narrows_serving::{Listen, Telemetry};
use opentelemetry::Context;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::hub::{Config, Engine, OpenHub};
use crate::meters::Meters;
use crate::run::{forget, run};
use crate::{Error, Figures, Launch, Plan, SCOPE, SERVICE, Service, Workload};

const WORKLOADS: &str = "/workloads/{workload}";

/// Opens the hub and listens there. The future completes if the process is a node and another node was
/// opened under its name: the service should then end too.
///
/// # Errors
///
/// [`Error::Setting`] for a setting outside its range; [`Error::Folder`], [`Error::NotEmpty`] or [`Error::Hub`] if the
/// hub cannot be opened as requested; [`Error::Serving`] if the address is not to be had or spans and metrics cannot be
/// exported as requested.
pub async fn open(listen: Listen, config: &Config) -> Result<(Service, impl Future<Output = ()> + use<>), Error> {
    let telemetry = Telemetry::from_env(SCOPE, SERVICE)?;
    let runner = Arc::new(Runner::open(config, &telemetry).await?);
    let service = Service::bind(listen, router(Arc::clone(&runner), &telemetry), telemetry).await?;
    Ok((service, async move { runner.held.engine.replaced().await }))
}

/// Runs one workload on its own hub and closes it.
///
/// # Errors
///
/// As [`open`] has them, and [`Error::Incomplete`] or [`Error::Late`] if the workload did not end well.
pub async fn once(config: &Config, plan: &Plan) -> Result<Figures, Error> {
    let telemetry = Telemetry::from_env(SCOPE, SERVICE)?;
    let runner = Runner::open(config, &telemetry).await?;
    runner.held.ready().await?;
    let figures = run(&runner.held, runner.held.runs_before + 1, plan).await?;
    runner.held.engine.close()?;
    runner.meters.ended(&figures);
    telemetry.flush().await;
    Ok(figures)
}

/// The hub and its turns.
struct Runner {
    held: OpenHub,
    meters: Meters,
    telemetry: Telemetry,
    /// Runs so far; none once one of them failed, for what it left on the hub would count as the next one's.
    runs: Arc<Mutex<Option<u64>>>,
}

/// Why there are no figures.
enum RunRefusal {
    Busy,
    Spoilt,
    /// Another process of the hub runs a workload, or a node has just come or gone.
    NotReady(Error),
    Failed(Error),
}

impl Runner {
    async fn open(config: &Config, telemetry: &Telemetry) -> Result<Self, Error> {
        let held = OpenHub::open(config, telemetry)?;
        if matches!(held.engine, Engine::Alone(_)) {
            held.ready().await?;
        }
        let meters = Meters::new(&telemetry.meter());
        let runs = Arc::new(Mutex::new(Some(held.runs_before)));
        Ok(Self { held, meters, telemetry: telemetry.clone(), runs })
    }

    /// Runs a workload under the span of `request` if none is running.
    async fn run(&self, plan: Plan, request: Context) -> Result<Figures, RunRefusal> {
        let mut runs = Arc::clone(&self.runs).try_lock_owned().map_err(|_| RunRefusal::Busy)?;
        let number = runs.ok_or(RunRefusal::Spoilt)? + 1;
        self.held.ready().await.map_err(RunRefusal::NotReady)?;
        *runs = None;
        self.held.request.set(Some(request));
        let figures = run(&self.held, number, &plan).await;
        self.held.request.set(None);
        let figures = figures.map_err(RunRefusal::Failed)?;
        forget(&self.held, number, &plan).await.map_err(RunRefusal::Failed)?;
        *runs = Some(number);
        self.meters.ended(&figures);
        self.telemetry.export().await;
        Ok(figures)
    }
}

fn router(runner: Arc<Runner>, telemetry: &Telemetry) -> Router {
    let route = Route { path: WORKLOADS, tracer: telemetry.tracer() };
    let workloads = post(respond).route_layer(middleware::from_fn_with_state(route, trace));
    Router::new().route(WORKLOADS, workloads).with_state(runner)
}

#[derive(Debug, Deserialize)]
struct Params {
    n: Option<u64>,
    each: Option<u64>,
    launch: Option<String>,
}

impl Params {
    fn plan(&self, workload: Workload) -> Result<Plan, Error> {
        let launch: Option<Launch> = self.launch.as_deref().map(str::parse).transpose()?;
        Plan::new(workload, self.n, self.each, launch)
    }
}

async fn respond(
    State(runner): State<Arc<Runner>>,
    Path(name): Path<String>,
    Extension(Trace(request)): Extension<Trace>,
    params: Result<Query<Params>, QueryRejection>,
) -> Response<Body> {
    let Ok(workload) = name.parse::<Workload>() else {
        let names = Workload::ALL.map(Workload::as_str).join(", ");
        return problem(StatusCode::NOT_FOUND, "unknown_workload", &format!("{name:?} is none of {names}"));
    };
    let plan = match params {
        Ok(Query(params)) => params.plan(workload),
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, "bad_request", &rejection.body_text()),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return problem(StatusCode::BAD_REQUEST, "bad_request", &error.to_string()),
    };
    let running = tokio::spawn(async move { runner.run(plan, request).await });
    match running.await {
        Ok(Ok(figures)) => ok(&figures),
        Ok(Err(RunRefusal::Busy)) => problem(StatusCode::CONFLICT, "busy", "another workload is running"),
        Ok(Err(RunRefusal::NotReady(error))) => problem(StatusCode::CONFLICT, "busy", &error.to_string()),
        Ok(Err(RunRefusal::Spoilt)) => {
            let detail = "an earlier workload failed, and what it left would be counted; start the service anew";
            problem(StatusCode::SERVICE_UNAVAILABLE, "spoilt", detail)
        }
        Ok(Err(RunRefusal::Failed(error))) => problem(StatusCode::INTERNAL_SERVER_ERROR, "failed", &error.to_string()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "failed", &error.to_string()),
    }
}

fn problem(status: StatusCode, reason: &str, detail: &str) -> Response<Body> {
    Problem::new(status, detail).with("reason", json!(reason)).into_response()
}

#[cfg(test)]
mod tests;
