//! Finds the street of a position, with the help of a device that takes 25 ms.
//!
//! `FAULT=1` waits for the device in a way that blocks the runtime's threads.

use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;

const DEVICE: Duration = Duration::from_millis(25);

async fn street(Path(position): Path<u32>) -> String {
    if zoo::is_faulty() {
        std::thread::sleep(DEVICE);
    } else {
        tokio::time::sleep(DEVICE).await;
    }
    format!("street {}", position % 1_000)
}

fn main() -> std::io::Result<()> {
    let routes = Router::new().route("/health", get(async || "ok")).route("/streets/{position}", get(street));
    zoo::serve_traced(routes)
}
