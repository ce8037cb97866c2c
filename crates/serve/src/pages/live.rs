//! A run while it lasts: figures each second, and the buttons that end it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use maud::html;

use super::apart;
use crate::address::{self, Parameters};
use crate::error::Refusal;
use crate::frame::{Page, with_type};
use crate::library::{Entry, Library};
use crate::live::Progress;

/// Charts of the page: what the script draws, with the name and the unit.
const CHARTS: [(&str, &str); 4] = [
    ("rate", "Requests per second"),
    ("latency", "Latency: median and 95 %"),
    ("cores", "CPU, cores"),
    ("users", "Users"),
];

pub(super) fn page(_: &Library, entry: &Entry, _: &Parameters) -> Result<Page, Refusal> {
    let at = |below| address::run(&entry.name, below);
    let body = html! {
        header.top { h1 { "Live" } p.lead id="live-lead" role="status" { "Waiting for the run …" } }
        noscript { p { "Figures of each second need JavaScript; " a href=(at("")) { "the report so far" } " does not." } }
        div.live id="live" data-events=(at("/events")) data-report=(at("")) {
            @for (name, title) in CHARTS {
                figure.chart { figcaption { (title) " " b id=(format!("now-{name}")) {} } svg id=(format!("live-{name}")) viewBox="0 0 560 180" role="img" aria-label=(title) {} ul.legend id=(format!("legend-{name}")) {} }
            }
        }
        div.actions {
            a href=(at("")) { "What is in the way so far" }
            form method="post" action=(at("/stop")) { button.danger { "Stop the run" } }
        }
        p.note { "The findings so far are made when the link is opened: they cost the machine CPU. Stopping keeps what was measured." }
    };
    Ok(Page { title: format!("{}, live", entry.name), run: Some((entry.name.clone(), "/live")), body })
}

/// Server-sent events: all seconds at first, then each new one.
pub(super) async fn events(State(library): State<Arc<Library>>, Path(run): Path<String>) -> Response {
    let found = tokio::task::spawn_blocking({
        let library = Arc::clone(&library);
        move || library.find(&run)
    });
    let entry = match found.await {
        Ok(Ok(entry)) => entry,
        Ok(Err(refusal)) => return refusal.into_response(),
        Err(error) => return Refusal::from(error).into_response(),
    };
    let progress = library.live.follow(&entry.edition.path);
    let stream = unfold(Some((progress, (0i64, 0usize))), |state| async move {
        let (mut progress, (first_ns, sent)) = state?;
        progress.changed().await.ok()?;
        let now = Arc::clone(&progress.borrow_and_update());
        // Another trial begins anew, as does one whose first seconds were let go.
        let begins = now.seconds.first().map_or(0, |second| second.start_ns);
        let from = if begins == first_ns { sent } else { 0 };
        let next = (!now.is_over()).then(|| (progress, (begins, now.seconds.len())));
        Some((Ok::<_, std::convert::Infallible>(event(&now, from)), next))
    });
    with_type("text/event-stream", Body::from_stream(stream))
}

fn event(progress: &Progress, from: usize) -> Bytes {
    format!("data: {}\n\n", progress.json(from)).into()
}

/// Ends a run as Ctrl-C does.
pub(super) async fn stop(State(library): State<Arc<Library>>, Path(run): Path<String>) -> Response {
    apart(move || {
        let entry = library.find(&run)?;
        library.stop(&entry)?;
        Ok(super::changes::to(&address::run(&entry.name, "/live")))
    })
    .await
}
