//! Relays files from a store, with at most 256 open files. ROLE is relay or store.
//!
//! `FAULT=1` keeps each connection to the store for later, and never uses it again.

use std::io;
use std::sync::Mutex;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const REQUEST: &[u8] = b"GET /file HTTP/1.1\r\nHost: store\r\nConnection: close\r\n\r\n";

static KEPT: Mutex<Vec<TcpStream>> = Mutex::new(Vec::new());

async fn fetch() -> io::Result<String> {
    let store = std::env::var("STORE_PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8081);
    let mut connection = TcpStream::connect(("127.0.0.1", store)).await?;
    connection.write_all(REQUEST).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    if zoo::is_faulty()
        && let Ok(mut kept) = KEPT.lock()
    {
        kept.push(connection);
    }
    Ok(response.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned())
}

async fn relay() -> Result<String, (StatusCode, String)> {
    fetch().await.map_err(|error| (StatusCode::BAD_GATEWAY, error.to_string()))
}

fn main() -> io::Result<()> {
    let routes = Router::new().route("/health", get(async || "ok"));
    match std::env::var("ROLE").as_deref() {
        Ok("store") => zoo::serve(routes.route("/file", get(async || "content"))),
        _ => zoo::serve(routes.route("/files/{name}", get(relay))),
    }
}
