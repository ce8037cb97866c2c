//! Greets, after it has waited 20 ms for a translation.
//!
//! There is nothing wrong with the program: under `FAULT=1`, the experiment's load asks for no more than a little.

use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;

const TRANSLATION: Duration = Duration::from_millis(20);

async fn hello(Path(name): Path<String>) -> String {
    tokio::time::sleep(TRANSLATION).await;
    format!("hei, {name}")
}

fn main() -> std::io::Result<()> {
    let routes = Router::new().route("/health", get(async || "ok")).route("/hello/{name}", get(hello));
    zoo::serve_traced(routes)
}
