//! `customer`: the customers, each with the person they are.

use http::{Method, Request};
use hyper::body::Incoming;
use narrows_listener::Listen;

use crate::response::{FullResponse, Problem, healthy, json, wrong_method};
use crate::server::Handler;
use crate::telemetry::Telemetry;
use crate::trace::Trace;
use crate::upstream::{Config, Upstream};
use crate::{Error, Service, payload, person};

const PATH: &str = "/api/customer";

struct Customer {
    person: Upstream,
}

/// Listens there, and calls, with the same token, the service that `person` names.
///
/// # Errors
///
/// [`Error::Serving`] if the address is not to be had or telemetry cannot be exported as requested.
pub async fn open(listen: Listen, person: Config) -> Result<Service, Error> {
    open_with(listen, person, Telemetry::from_env("customer")?).await
}

pub(crate) async fn open_with(listen: Listen, person: Config, telemetry: Telemetry) -> Result<Service, Error> {
    let person = Upstream::new("person", person::PATH, person, listen.token());
    Ok(Service::bind(listen, Customer { person }, telemetry).await?)
}

impl Handler for Customer {
    fn route(&self, _: &Method, path: &str) -> Option<&'static str> {
        (path == PATH).then_some(PATH)
    }

    async fn respond(&self, trace: &Trace, request: Request<Incoming>) -> FullResponse {
        match (request.uri().path(), request.method()) {
            (PATH, &Method::GET) => self.customers(trace).await.map_or_else(Problem::into_response, json),
            ("/health", &Method::GET) => healthy(),
            (PATH | "/health", _) => wrong_method("GET"),
            (path, _) => Problem::unknown_route(path).into_response(),
        }
    }
}

impl Customer {
    async fn customers(&self, trace: &Trace) -> Result<Vec<u8>, Problem> {
        let people = self.person.get(trace).await?;
        payload::customers(&people).map_err(|error| self.person.unreadable(&error))
    }
}
