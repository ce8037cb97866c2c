//! Style sheets and scripts.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use narrows_report::html;

use crate::frame::with_type;
use crate::library::Library;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [(&str, &str, &str); 5] = [
    ("/assets/report.css", CSS, html::STYLE),
    ("/assets/report.js", SCRIPT, html::SCRIPT),
    ("/assets/app.css", CSS, include_str!("../assets/app.css")),
    ("/assets/app.js", SCRIPT, include_str!("../assets/app.js")),
    ("/assets/live.js", SCRIPT, include_str!("../assets/live.js")),
];

pub(super) fn routes(router: Router<Arc<Library>>) -> Router<Arc<Library>> {
    FILES
        .into_iter()
        .fold(router, |router, (path, kind, text)| router.route(path, get(async move || with_type(kind, text))))
}
