//! Pages, one file each, and their routes.

mod ask;
mod assets;
mod changes;
mod compare;
mod distinct;
mod live;
mod map;
mod report;
mod runs;
mod trace;
mod traces;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use crate::address::Parameters;
use crate::error::Refusal;
use crate::library::{Entry, Library};

/// Routes of all pages.
pub(crate) fn router(library: Arc<Library>) -> Router {
    let router = Router::new()
        .route("/", get(runs::list))
        .route("/compare", get(compare::compare))
        .route("/runs/{run}", of_run(report::page))
        .route("/runs/{run}/traces", of_run(traces::page))
        .route("/runs/{run}/distinct", of_run(distinct::page))
        .route("/runs/{run}/ask", of_run(ask::page))
        .route("/runs/{run}/live", of_run(live::page))
        .route("/runs/{run}/map", of_run(map::page))
        .route("/runs/{run}/events", get(live::events))
        .route("/runs/{run}/stop", post(live::stop))
        .route("/runs/{run}/traces/{trial}/{trace}", get(trace::page))
        .route("/runs/{run}/download", get(changes::download))
        .route("/runs/{run}/rename", post(changes::rename))
        .route("/runs/{run}/delete", post(changes::delete));
    assets::routes(router).fallback(missing).with_state(library)
}

async fn missing() -> Refusal {
    Refusal::NotFound("There is no such page.".to_owned())
}

/// A view of a run, made apart from the threads that take requests.
fn of_run<P: IntoResponse + Send + 'static>(
    make: fn(&Library, &Entry, &Parameters) -> Result<P, Refusal>,
) -> MethodRouter<Arc<Library>> {
    get(move |State(library): State<Arc<Library>>, Path(run): Path<String>, RawQuery(query): RawQuery| async move {
        apart(move || {
            let entry = library.find(&run)?;
            make(&library, &entry, &Parameters::parse(query.as_deref()))
        })
        .await
    })
}

/// Runs work that may read files or compute for long on a blocking thread, and responds with its page.
async fn apart<P: IntoResponse + Send + 'static>(
    work: impl FnOnce() -> Result<P, Refusal> + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(page)) => page.into_response(),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(error) => Refusal::from(error).into_response(),
    }
}
