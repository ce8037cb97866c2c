//! A call graph as a table of `caller,callee`.

use std::path::Path;

use narrows_model::series::{Point, SeriesKey, services};

use super::cut;
use super::mapping::table;
use crate::Store;
use crate::exchange::ImportError;
use crate::exchange::feed::{Feed, ImportCounts};
use crate::exchange::formats::Records;

/// Keeps the calls that a file lists, as of an instant. Blocks; not to be called on a runtime's thread.
///
/// # Errors
/// When the file cannot be read, a row is incomplete, or the store cannot be written to.
pub fn import_graph(
    path: &Path,
    time_ns: i64,
    store: &dyn Store,
    imported: &mut ImportCounts,
) -> Result<(), ImportError> {
    let call = |(_, [caller, callee, ..]): (u64, [String; 5])| {
        let labels = [(services::PEER.to_owned(), cut(callee))].into();
        let name = services::CALLS.to_owned();
        let key = SeriesKey { name, unit: "{call}".into(), service: cut(caller), replica: 0, labels };
        (key, Point { time_ns, value: 1.0 })
    };
    let points = table(path, &["caller", "callee"])?.into_iter().map(call).collect();
    let mut feed = Feed::new(store, imported);
    let kept = feed.take(Records { points, ..Records::default() }).and_then(|()| feed.finish());
    kept.map_err(|what| ImportError::Store { path: path.to_owned(), what })
}
