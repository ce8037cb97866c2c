//! Handlers of all routes, and the response to each failure.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{Response, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::database::Failure;
use crate::owners::{PAGE_MAX, Page};
use crate::rename::{NAME_MAX, NewName};
use crate::service::Micron;
use crate::transaction::NotDone;
use crate::transfer::{AMOUNT_MAX, Transfer};
use crate::{lookups, proof, rename, transfer};
use narrows_serving::problem::{Problem, encoded, ok, with_status};
use narrows_serving::server_span::Trace;

/// Delay before the next request that a response recommends while the database is unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
pub(crate) struct PageParams {
    page: Option<u32>,
    size: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ItemParams {
    kind: String,
    region: String,
    page: Option<u32>,
    size: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SearchParams {
    /// The beginning of a name.
    name: String,
}

/// `GET /owners`
pub(crate) async fn owners(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
    params: Result<Query<PageParams>, QueryRejection>,
) -> Response<Body> {
    let Query(params) = match params {
        Ok(params) => params,
        Err(rejection) => return bad_request(&rejection.body_text()),
    };
    let Some(page) = Page::new(params.page, params.size) else { return no_such_page() };
    match micron.owners.page(&cx, &micron.pool, page).await {
        Ok(body) => encoded(StatusCode::OK, body),
        Err(failure) => failed(&failure, failure.reason(), &failure.to_string()).into_response(),
    }
}

/// `GET /owners/{id}`
pub(crate) async fn owner(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
    id: Result<Path<u32>, PathRejection>,
) -> Response<Body> {
    let Path(id) = match id {
        Ok(id) => id,
        Err(rejection) => return bad_request(&rejection.body_text()),
    };
    match lookups::owner(&cx, &micron.pool, id).await.transpose() {
        Some(found) => read(found),
        None => Problem::new(StatusCode::NOT_FOUND, &format!("there is no owner {id}")).into_response(),
    }
}

/// `GET /items`
pub(crate) async fn items(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
    params: Result<Query<ItemParams>, QueryRejection>,
) -> Response<Body> {
    let Query(params) = match params {
        Ok(params) => params,
        Err(rejection) => return bad_request(&rejection.body_text()),
    };
    let Some(page) = Page::new(params.page, params.size) else { return no_such_page() };
    read(lookups::items(&cx, &micron.pool, &params.kind, &params.region, page).await)
}

/// `GET /search`
pub(crate) async fn search(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
    params: Result<Query<SearchParams>, QueryRejection>,
) -> Response<Body> {
    match params {
        Ok(Query(params)) => read(lookups::search(&cx, &micron.pool, &params.name).await),
        Err(rejection) => bad_request(&rejection.body_text()),
    }
}

/// `PUT /items/{id}`
pub(crate) async fn rename(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
    id: Result<Path<u32>, PathRejection>,
    body: Result<Json<NewName>, JsonRejection>,
) -> Response<Body> {
    let (id, name) = match (id, body) {
        (Ok(Path(id)), Ok(Json(name))) => (id, name),
        (Err(rejection), _) => return bad_request(&rejection.body_text()),
        (_, Err(rejection)) => return bad_request(&rejection.body_text()),
    };
    if !name.is_valid() {
        return bad_request(&format!("name has 1 to {NAME_MAX} characters"));
    }
    match rename::rename(&cx, &micron.pool, &micron.writes, id, &name).await {
        Ok(done) => ok(&done),
        Err(not_done) => problem_of(&not_done).into_response(),
    }
}

/// `POST /transfers`
pub(crate) async fn transfer(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
    body: Result<Json<Transfer>, JsonRejection>,
) -> Response<Body> {
    let Json(transfer) = match body {
        Ok(transfer) => transfer,
        Err(rejection) => return bad_request(&rejection.body_text()),
    };
    if transfer.from == transfer.to || !(1..=AMOUNT_MAX).contains(&transfer.amount) {
        return bad_request(&format!("from and to are different items, and amount is from 1 to {AMOUNT_MAX}"));
    }
    match transfer::transfer(&cx, &micron.pool, &micron.writes, &micron.ledger, transfer).await {
        Ok(done) => with_status(StatusCode::CREATED, &done),
        Err(not_done) => problem_of(&not_done).into_response(),
    }
}

/// `GET /ledger`
pub(crate) async fn ledger(
    State(micron): State<Arc<Micron>>,
    Extension(Trace(cx)): Extension<Trace>,
) -> Response<Body> {
    let claim = micron.ledger.claim();
    let mut nodes = Vec::with_capacity(micron.nodes.len());
    for pool in &micron.nodes {
        nodes.push(proof::of_node(&cx, pool, &claim).await);
    }
    let status = if nodes.iter().any(|node| node.matches == Some(false)) {
        StatusCode::INTERNAL_SERVER_ERROR
    } else if nodes.iter().any(|node| node.matches.is_none()) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let body = json!({
        "instance": format!("{:016x}", claim.instance),
        "acknowledged": claim.acknowledged,
        "unknown": claim.excepted.len() as u64 + claim.left_out,
        "nodes": nodes,
        "matches": status == StatusCode::OK,
    });
    with_status(status, &body)
}

/// The response to a read.
fn read(found: Result<impl Serialize, Failure>) -> Response<Body> {
    match found {
        Ok(found) => ok(&found),
        Err(failure) => failed(&failure, failure.reason(), &failure.to_string()).into_response(),
    }
}

fn no_such_page() -> Response<Body> {
    bad_request(&format!("page counts from 1, and size is from 1 to {PAGE_MAX}"))
}

fn bad_request(detail: &str) -> Response<Body> {
    Problem::new(StatusCode::BAD_REQUEST, detail).into_response()
}

fn problem_of(not_done: &NotDone) -> Problem {
    let detail = not_done.to_string();
    match not_done {
        NotDone::NoItem(item) => Problem::new(StatusCode::NOT_FOUND, &detail).with("item", json!(item)),
        NotDone::TooFew { item, .. } => Problem::new(StatusCode::CONFLICT, &detail).with("item", json!(item)),
        NotDone::Failed { failure, retries } => {
            failed(failure, failure.reason(), &detail).with("retries", json!(retries))
        }
        NotDone::Unknown(failure) => failed(failure, "unknown", &detail),
    }
}

/// A problem with its reason: 503 if the database or a connection is unavailable, else 500.
fn failed(failure: &Failure, reason: &str, detail: &str) -> Problem {
    let problem = match failure {
        Failure::Unavailable { .. } | Failure::PoolTimeout => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_retry_after(RETRY_AFTER)
        }
        _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail),
    };
    problem.with("reason", json!(reason))
}
