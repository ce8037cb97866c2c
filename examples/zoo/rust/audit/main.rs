//! Appends entries of an audit log to a file in the folder DIR.
//!
//! FAULT=1 syncs the file to disk after each entry, while it holds the lock of the file; otherwise the kernel writes it back
//! when it likes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::sync::Mutex;

struct Log {
    file: Mutex<File>,
    syncs_each: bool,
}

async fn append(State(log): State<Arc<Log>>, entry: String) -> StatusCode {
    let mut file = log.file.lock().await;
    let written = tokio::task::block_in_place(|| {
        file.write_all(format!("{entry}\n").as_bytes())?;
        if log.syncs_each { file.sync_data() } else { Ok(()) }
    });
    if written.is_ok() { StatusCode::CREATED } else { StatusCode::INTERNAL_SERVER_ERROR }
}

fn main() -> std::io::Result<()> {
    let folder = std::env::var("DIR").unwrap_or_else(|_| ".".to_owned());
    let file = File::options().create(true).append(true).open(Path::new(&folder).join("audit.log"))?;
    let log = Log { file: Mutex::new(file), syncs_each: zoo::is_faulty() };
    let routes = Router::new().route("/health", get(async || "ok")).route("/entries", post(append));
    zoo::serve(routes.with_state(Arc::new(log)))
}
