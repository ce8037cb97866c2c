//! Pages to look at runs: a list of them, the report of each, its traces, questions to it, and runs beside each other.
//!
//! Everything is HTML that is made here and is whole without JavaScript; the scripts add what a pointer does. Figures come
//! from where reports have them too: a run is concluded by `narrows_lab`, sections are rendered by `narrows_report`, and
//! searches are SQL on the run file. Nothing is kept but a few conclusions, in memory.
//!
//! Access (`access.rs`) is denied to other people's pages and to other machines without the token.

mod access;
mod address;
mod charts;
mod distinction;
mod error;
mod frame;
mod library;
mod live;
pub mod mcp;
mod pages;
mod search;
mod sql;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_serving::connections;
pub use narrows_serving::{Guard, Listen, Token};

pub use error::Error;
use library::Library;

/// How long requests in progress may take once the server is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the flag to stop is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Runs that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Run files of this folder.
    Folder(PathBuf),
    /// One run file.
    Run(PathBuf),
}

/// Serves pages about runs until `stop` is set. `ready` gets the address for a browser, with the token where one is needed.
///
/// # Errors
/// When the address cannot be had, or the folder cannot be read.
pub fn serve(listen: Listen, source: Source, stop: &Arc<AtomicBool>, ready: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let library = Arc::new(Library::open(source)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(Error::Threads)?.block_on(async {
        let (listener, address) = listen.bind().await?;
        let token = listen.token().map(|token| format!("?{}={}", access::TOKEN, token.secret()));
        let router = access::guarded(pages::router(library), listen);
        ready(&format!("http://{address}/{}", token.unwrap_or_default()));
        connections::serve(listener, connections::limits(DRAIN_TIMEOUT), router, stopped(Arc::clone(stop))).await;
        Ok(())
    })
}

/// Where the page of a run that is under way is, after the address of a server.
#[must_use]
pub fn live_page(run: &Path) -> String {
    let name = run.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    address::run(&name, "/live").trim_start_matches('/').to_owned()
}

async fn stopped(stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(POLL).await;
    }
}
