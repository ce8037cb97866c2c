//! Has payments approved by a bank, which takes 15 ms, over connections that it keeps. ROLE is cashier or bank.
//!
//! `FAULT=1` has one connection, for which requests wait; else there are 32.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};

const REQUEST: &[u8] = b"GET /approvals HTTP/1.1\r\nHost: bank\r\n\r\n";

/// Connections that are free, and a permit for each that may be open.
struct Pool {
    free: Mutex<Vec<TcpStream>>,
    permits: Semaphore,
}

impl Pool {
    async fn approve(&self) -> io::Result<()> {
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let free = self.free.lock().await.pop();
        let mut connection = match free {
            Some(connection) => connection,
            None => connect().await?,
        };
        connection.write_all(REQUEST).await?;
        let mut response = [0; 512];
        if connection.read(&mut response).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.free.lock().await.push(connection);
        Ok(())
    }
}

async fn connect() -> io::Result<TcpStream> {
    let bank = std::env::var("BANK_PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8081);
    let connection = TcpStream::connect(("127.0.0.1", bank)).await?;
    connection.set_nodelay(true)?;
    Ok(connection)
}

async fn approval() -> &'static str {
    tokio::time::sleep(Duration::from_millis(15)).await;
    "approved"
}

fn main() -> io::Result<()> {
    let routes = Router::new().route("/health", get(async || "ok"));
    if std::env::var("ROLE").as_deref() == Ok("bank") {
        return zoo::serve(routes.route("/approvals", get(approval)));
    }
    let permits = Semaphore::new(if zoo::is_faulty() { 1 } else { 32 });
    let pool = Arc::new(Pool { free: Mutex::default(), permits });
    let pay = move || {
        let pool = Arc::clone(&pool);
        async move { pool.approve().await.map_err(|error| (StatusCode::BAD_GATEWAY, error.to_string())) }
    };
    zoo::serve(routes.route("/payments", post(pay)))
}
