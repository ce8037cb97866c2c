//! `package`: the weight of an owner's packages. As in the original, a constant.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use crate::period::Period;
use crate::{Error, Service};
use narrows_serving::problem::ok;
use narrows_serving::server_span::{Route, trace};
use narrows_serving::{Listen, Telemetry};

pub(crate) const PATH: &str = "/api/packages/summary";
const TOTAL_WEIGHT: u32 = 400;

/// Listens there. Each response takes `delay`, which stands for the platform's share of the time.
///
/// # Errors
///
/// [`Error::Serving`] if the address is not to be had or spans cannot be exported as requested.
pub async fn open(listen: Listen, delay: Duration) -> Result<Service, Error> {
    let telemetry = Telemetry::from_env(crate::SCOPE, "package")?;
    let route = Route { path: PATH, tracer: telemetry.tracer() };
    let traced = get(summary).route_layer(axum::middleware::from_fn_with_state(route, trace));
    Ok(Service::bind(listen, Router::new().route(PATH, traced).with_state(delay), telemetry).await?)
}

async fn summary(State(delay): State<Duration>, request: Request) -> Response {
    if let Err(problem) = Period::from_uri(request.uri()) {
        return problem.into_response();
    }
    tokio::time::sleep(delay).await;
    ok(&json!({ "totalWeight": TOTAL_WEIGHT }))
}
