//! Changes to the file of a run: it is downloaded, renamed or deleted.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};

use super::apart;
use crate::address::{self, Parameters};
use crate::error::Refusal;
use crate::frame::with_type;
use crate::library::Library;

/// Bytes of a run file that a download has at most: it is read as a whole.
const DOWNLOAD_BYTES_MAX: u64 = 1 << 30;

pub(super) async fn download(State(library): State<Arc<Library>>, Path(run): Path<String>) -> Response {
    apart(move || {
        let entry = library.find(&run)?;
        let path = &entry.edition.path;
        if entry.edition.bytes > DOWNLOAD_BYTES_MAX {
            return Err(Refusal::Invalid(format!("The file is too large for a download: copy {}.", path.display())));
        }
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|source| Refusal::Io { what: format!("read {}", path.display()), source })?;
        let mut response = with_type("application/vnd.sqlite3", bytes);
        let name = format!("attachment; filename*=UTF-8''{}.narrows", address::segment(&entry.name));
        if let Ok(name) = HeaderValue::from_str(&name) {
            response.headers_mut().insert(CONTENT_DISPOSITION, name);
        }
        Ok(response)
    })
    .await
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
