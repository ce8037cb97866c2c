//! Changes to the file of a run: it is downloaded, renamed or deleted.

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};

use super::apart;
use crate::address::{self, Parameters};
use crate::error::Refusal;
use crate::frame::with_type;
use crate::library::Library;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that wait to be sent.
const PIECES_MAX: usize = 4;

pub(super) async fn download(State(library): State<Arc<Library>>, Path(run): Path<String>) -> Response {
    apart(move || {
        let entry = library.find(&run)?;
        let path = &entry.edition.path;
        entry.require_one_file()?;
        let file = std::fs::File::open(path);
        let file = file.map_err(|source| Refusal::Io { what: format!("read {}", path.display()), source })?;
        let length = file.metadata().map_or(entry.edition.bytes, |meta| meta.len());
        let mut response = with_type("application/vnd.sqlite3", Body::from_stream(pieces(file)));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        let name = format!("attachment; filename*=UTF-8''{}.narrows", address::segment(&entry.name));
        if let Ok(name) = HeaderValue::from_str(&name) {
            response.headers_mut().insert(CONTENT_DISPOSITION, name);
        }
        Ok(response)
    })
    .await
}

/// A file, read as it is sent.
fn pieces(mut file: std::fs::File) -> impl Stream<Item = io::Result<Bytes>> {
    let (send, receive) = tokio::sync::mpsc::channel(PIECES_MAX);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let read = file.read(&mut piece);
            let is_over = !matches!(read, Ok(1..));
            let piece = read.map(|length| {
                piece.truncate(length);
                Bytes::from(piece)
            });
            if send.blocking_send(piece).is_err() || is_over {
                break;
            }
        }
    });
    unfold(receive, |mut receive| async move { Some((receive.recv().await?, receive)) })
}

pub(super) async fn rename(State(library): State<Arc<Library>>, Path(run): Path<String>, body: Bytes) -> Response {
    apart(move || {
        let form = Parameters::parse(std::str::from_utf8(&body).ok());
        let name = form.get("name").unwrap_or_default().trim();
        library.rename(&library.find(&run)?, name)?;
        Ok(to("/"))
    })
    .await
}

pub(super) async fn delete(State(library): State<Arc<Library>>, Path(run): Path<String>, body: Bytes) -> Response {
    apart(move || {
        let form = Parameters::parse(std::str::from_utf8(&body).ok());
        if form.get("name") != Some(&run) {
            return Err(Refusal::Invalid("Write the run's name to delete it.".to_owned()));
        }
        library.delete(&library.find(&run)?)?;
        Ok(to("/"))
    })
    .await
}

/// To another page.
pub(super) fn to(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}
