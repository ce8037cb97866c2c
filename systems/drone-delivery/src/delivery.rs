//! `delivery`: how many deliveries an owner had in a month. As in the original, no database stands behind it.

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

pub(crate) const PATH: &str = "/api/deliveries/summary";
/// Deliveries are from here on, as in the original.
const COUNT_MIN: u32 = 1_000;
/// How many different counts there are: 1,000 to 9,998, as in the original.
const COUNTS: u32 = 8_999;

/// Listens there. Each response takes `delay`, which stands for the platform's share of the time.
///
/// # Errors
///
/// [`Error::Serving`] if the address is not to be had or spans cannot be exported as requested.
pub async fn open(listen: Listen, delay: Duration) -> Result<Service, Error> {
    let telemetry = Telemetry::from_env(crate::SCOPE, "delivery")?;
    let route = Route { path: PATH, tracer: telemetry.tracer() };
    let traced = get(summary).route_layer(axum::middleware::from_fn_with_state(route, trace));
    Ok(Service::bind(listen, Router::new().route(PATH, traced).with_state(delay), telemetry).await?)
}

async fn summary(State(delay): State<Duration>, request: Request) -> Response {
    let period = match Period::from_uri(request.uri()) {
        Ok(period) => period,
        Err(problem) => return problem.into_response(),
    };
    tokio::time::sleep(delay).await;
    ok(&json!({ "count": count(&period.owner) }))
}

/// The same for the same owner: FNV-1a (Fowler, Noll and Vo) of the name.
fn count(owner: &str) -> u32 {
    let hash = owner.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    COUNT_MIN + hash % COUNTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_always_has_the_same_count() {
        assert_eq!(count("o0001"), count("o0001"));
        assert_ne!(count("o0001"), count("o0002"));
        assert!((0..1_000).all(|owner| (1_000..=9_998).contains(&count(&format!("o{owner}")))));
    }
}
