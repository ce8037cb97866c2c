//! `name`: the names, out of a table of PostgreSQL.
//!
//! Reading and writing go through [`database`], which bounds how many queries are under way and how long one waits for
//! its turn. `GET /health` is well as long as the database can be reached, for this service can do nothing without it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use narrows_listener::Listen;
use percent_encoding::percent_decode_str;

use crate::payload::Name;
use crate::response::{FullResponse, Problem, Reason, healthy, json, wrong_method};
use crate::server::Handler;
use crate::telemetry::Telemetry;
use crate::trace::Trace;
use crate::{Error, Service};

mod database;
mod failure;
mod metrics;
mod rows;
mod running_query;
mod session;
mod slot;
mod span;
mod statement;
#[cfg(test)]
mod tests;

pub use database::Config;
use database::Database;
use statement::Query;

/// The route of all names.
pub(crate) const ALL: &str = "/api/name";
const BY_ID: &str = "/api/name/{id}";
const BY_LAST: &str = "/api/name/last/{last}";
const POST: &str = "/api/name/post";
const HEALTH: &str = "/health";

/// The largest name that is taken.
const NAME_BYTES_MAX: usize = 16 << 10;

struct Names {
    database: Arc<Database>,
}

/// Listens there, and keeps connections to the database that `config` says. It need not be there yet.
///
/// # Errors
///
/// [`Error::Serving`] if the address is not to be had or telemetry cannot be exported as requested,
/// [`Error::Setting`] and [`Error::Database`] for settings that make no sense.
pub async fn open(listen: Listen, config: &Config) -> Result<Service, Error> {
    open_with(listen, config, Telemetry::from_env("name")?).await
}

pub(crate) async fn open_with(listen: Listen, config: &Config, telemetry: Telemetry) -> Result<Service, Error> {
    let database = Database::open(config)?;
    if let Some(meter) = telemetry.meter() {
        metrics::observe(&meter, &database);
    }
    Ok(Service::bind(listen, Names { database }, telemetry).await?)
}

/// Subject of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    All,
    Post,
    ById(&'a str),
    ByLast(&'a str),
    Health,
}

impl<'a> Route<'a> {
    fn parse(method: &Method, path: &'a str) -> Option<Self> {
        let is_one = |part: &&str| !part.is_empty() && !part.contains('/');
        Some(match path {
            ALL => Self::All,
            HEALTH => Self::Health,
            POST if method == Method::POST => Self::Post,
            _ => {
                let part = path.strip_prefix(ALL)?.strip_prefix('/')?;
                match part.strip_prefix("last/") {
                    Some(last) => Self::ByLast(Some(last).filter(is_one)?),
                    None => Self::ById(Some(part).filter(is_one)?),
                }
            }
        })
    }

    fn pattern(self) -> &'static str {
        match self {
            Self::All => ALL,
            Self::Post => POST,
            Self::ById(_) => BY_ID,
            Self::ByLast(_) => BY_LAST,
            Self::Health => HEALTH,
        }
    }
}

impl Handler for Names {
    fn route(&self, method: &Method, path: &str) -> Option<&'static str> {
        Route::parse(method, path).map(Route::pattern)
    }

    async fn respond(&self, trace: &Trace, request: Request<Incoming>) -> FullResponse {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let Some(route) = Route::parse(&head.method, path) else { return Problem::unknown_route(path).into_response() };
        let result = match (route, &head.method) {
            (Route::Post, _) => self.save(trace, body).await,
            (_, method) if method != Method::GET => return wrong_method("GET"),
            (Route::All, _) => self.database.query(trace, Query::All).await.map(|rows| rows.json),
            (Route::ById(id), _) => self.by_id(trace, id).await,
            (Route::ByLast(last), _) => self.by_last(trace, last).await,
            (Route::Health, _) => return self.health(),
        };
        result.map_or_else(Problem::into_response, json)
    }
}

impl Names {
    async fn by_id(&self, trace: &Trace, id: &str) -> Result<Vec<u8>, Problem> {
        let number: i64 = id.parse().map_err(|_| bad_request(format!("expected a number as the id, found {id:?}")))?;
        let missing =
            || Problem::new(StatusCode::NOT_FOUND, Reason("no_such_name"), format!("no name has the id {id}"));
        // The column holds 32 bits, so a larger number is in no row.
        let number = i32::try_from(number).map_err(|_| missing())?;
        let rows = self.database.query(trace, Query::ById(number)).await?;
        if rows.count == 0 { Err(missing()) } else { Ok(rows.json) }
    }

    async fn by_last(&self, trace: &Trace, last: &str) -> Result<Vec<u8>, Problem> {
        let last = percent_decode_str(last).decode_utf8().ok().filter(|last| !last.contains('\0'));
        let last = last.ok_or_else(|| bad_request("expected a name in UTF-8 without a zero byte".to_owned()))?;
        Ok(self.database.query(trace, Query::ByLast(last.into_owned())).await?.json)
    }

    async fn save(&self, trace: &Trace, body: Incoming) -> Result<Vec<u8>, Problem> {
        let body = body_of(body).await?;
        let name: Name<'_> = serde_json::from_slice(&body).map_err(|error| bad_request(format!("no name: {error}")))?;
        if name.person_id.is_none() {
            return Err(bad_request("a name needs a personId".to_owned()));
        }
        let saved = serde_json::to_vec(&name).map_err(|error| bad_request(error.to_string()))?;
        self.database.query(trace, Query::Insert(name.into_owned())).await?;
        Ok(saved)
    }

    fn health(&self) -> FullResponse {
        self.database.reachable().map_or_else(Problem::into_response, |()| healthy())
    }
}

async fn body_of(body: Incoming) -> Result<Bytes, Problem> {
    let collected = Limited::new(body, NAME_BYTES_MAX).collect().await;
    collected.map(|body| body.to_bytes()).map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => bad_request(format!("the body broke off: {error}")),
        Err(_) => {
            let detail = format!("a name may take {NAME_BYTES_MAX} bytes");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Reason("too_large"), detail)
        }
    })
}

fn bad_request(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, Reason("bad_request"), detail)
}
