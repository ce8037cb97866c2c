//! `person`: the people, each with their name.

use http::{Method, Request};
use hyper::body::Incoming;
use narrows_listener::Listen;

use crate::response::{FullResponse, Problem, healthy, json, wrong_method};
use crate::server::Handler;
use crate::telemetry::Telemetry;
use crate::trace::Trace;
use crate::upstream::{Config, Upstream};
use crate::{Error, Service, name, payload};

pub(crate) const PATH: &str = "/api/person";

struct Person {
    name: Upstream,
}

/// Listens there, and calls, with the same token, the service that `name` names.
///
/// # Errors
///
/// [`Error::Serving`] if the address is not to be had or telemetry cannot be exported as requested.
pub async fn open(listen: Listen, name: Config) -> Result<Service, Error> {
    open_with(listen, name, Telemetry::from_env("person")?).await
}

pub(crate) async fn open_with(listen: Listen, name: Config, telemetry: Telemetry) -> Result<Service, Error> {
    let name = Upstream::new("name", name::ALL, name, listen.token());
    Ok(Service::bind(listen, Person { name }, telemetry).await?)
}

impl Handler for Person {
    fn route(&self, _: &Method, path: &str) -> Option<&'static str> {
        (path == PATH).then_some(PATH)
    }

    async fn respond(&self, trace: &Trace, request: Request<Incoming>) -> FullResponse {
        match (request.uri().path(), request.method()) {
            (PATH, &Method::GET) => self.people(trace).await.map_or_else(Problem::into_response, json),
            ("/health", &Method::GET) => healthy(),
            (PATH | "/health", _) => wrong_method("GET"),
            (path, _) => Problem::unknown_route(path).into_response(),
        }
    }
}

impl Person {
    async fn people(&self, trace: &Trace) -> Result<Vec<u8>, Problem> {
        let names = self.name.get(trace).await?;
        payload::people(&names).map_err(|error| self.name.unreadable(&error))
    }
}
