//! `package`: what an owner's packages weigh. As in the original, a constant.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use crate::period::Period;
use crate::server_span::{Route, trace};
use crate::telemetry::Telemetry;
use crate::{Error, Service, problem};

pub(crate) const PATH: &str = "/api/packages/summary";
const TOTAL_WEIGHT: u32 = 400;

/// Listens on `port`, 0 for any. Each answer takes `delay`, which stands for the platform's share of the time.
///
/// # Errors
///
/// [`Error::Bind`] if the port is not to be had, [`Error::Telemetry`] if spans cannot be exported as asked for.
pub async fn open(port: u16, delay: Duration) -> Result<Service, Error> {
    let telemetry = Telemetry::from_env("package")?;
    let route = Arc::new(Route { path: PATH, tracer: telemetry.tracer() });
    let traced = get(summary).route_layer(axum::middleware::from_fn_with_state(route, trace));
    Service::bind(port, Router::new().route(PATH, traced).with_state(delay), telemetry).await
}

async fn summary(State(delay): State<Duration>, request: Request) -> Response {
    if let Err(problem) = Period::of(request.uri()) {
        return problem.into_response();
    }
    tokio::time::sleep(delay).await;
    problem::ok(&json!({ "totalWeight": TOTAL_WEIGHT }))
}
