//! Frame of every page: head, navigation, scripts.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use narrows_model::printable;

use crate::address;
use crate::error::Refusal;

/// Pages of a run, by what follows its address, with their names.
const PAGES: [(&str, &str); 6] = [
    ("", "Report"),
    (LIVE, "Live"),
    ("/map", "Map"),
    ("/traces", "Traces"),
    ("/distinct", "Slow against fast"),
    ("/ask", "Ask"),
];

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// The run that it is about, with what follows the run's address in that of the page.
    pub(crate) run: Option<(String, &'static str)>,
    pub(crate) body: Markup,
}

/// End of the address of a run's page that is live.
const LIVE: &str = "/live";

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Narrows" }
                    link rel="stylesheet" href="/assets/report.css";
                    link rel="stylesheet" href="/assets/app.css";
                    link rel="icon" href="data:,";
                    noscript { style { ".panel[hidden]{display:block}.chooser{display:none}" } }
                }
                body {
                    a.skip href="#main" { "To the content" }
                    (navigation(self.run.as_ref()))
                    main id="main" { (self.body) }
                    script src="/assets/report.js" {}
                    script src="/assets/app.js" {}
                    @if self.run.as_ref().is_some_and(|(_, here)| *here == LIVE) { script src="/assets/live.js" {} }
                }
            }
            "\n"
        };
        with_type("text/html; charset=utf-8", printable::lines(&page.0).into_owned())
    }
}

fn navigation(run: Option<&(String, &'static str)>) -> Markup {
    html! {
        nav.bar-top aria-label="Pages" {
            a.brand href="/" { "Narrows" }
            @if let Some((run, here)) = run {
                b { (run) }
                @for (below, name) in PAGES {
                    a href=(address::run(run, below)) aria-current=[(below == *here).then_some("page")] { (name) }
                }
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Refusal::NotFound(_) => StatusCode::NOT_FOUND,
            Refusal::Invalid(_) | Refusal::Query(_) => StatusCode::BAD_REQUEST,
            Refusal::Lab(_) | Refusal::RunFile(_) | Refusal::Io { .. } | Refusal::Ended(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        let body = html! { header.top { h1 { "This page cannot be shown" } p.lead.wordy { (with_causes(&self)) } } };
        let mut response = Page { title: "Error".to_owned(), run: None, body }.into_response();
        *response.status_mut() = status;
        response
    }
}

/// An error with its causes, each once.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// A response of a type.
pub(crate) fn with_type(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
