//! Seals documents with a checksum.
//!
//! `FAULT=1` takes 600,000 rounds for each instead of 100.

use std::hash::{DefaultHasher, Hasher};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;

fn checksum(document: u64, rounds: u32) -> u64 {
    (0..rounds).fold(document, |sum, round| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(sum);
        hasher.write_u32(round);
        hasher.finish()
    })
}

async fn seal(Path(document): Path<u64>) -> String {
    let rounds = if zoo::is_faulty() { 600_000 } else { 100 };
    format!("{:016x}", checksum(document, rounds))
}

fn main() -> std::io::Result<()> {
    let routes = Router::new().route("/health", get(async || "ok")).route("/seals/{document}", get(seal));
    zoo::serve_traced(routes)
}
