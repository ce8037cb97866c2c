//! Reads single values off a checked part of the document. What does not read has been told by the check.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::tree::At;
use super::{kind, quantity};

pub(crate) fn text(at: At<'_>, key: &str) -> Option<String> {
    at.get(key)?.text().map(str::to_owned)
}

/// A path of the file, which starts from `dir`, without the `./` in it.
pub(crate) fn path(dir: &Path, text: &str) -> PathBuf {
    dir.join(text).components().collect()
}

pub(crate) fn duration(at: At<'_>, key: &str) -> Option<Duration> {
    quantity::duration(at.get(key)?.text()?)
}

pub(crate) fn whole<T: TryFrom<u64>>(at: At<'_>, key: &str) -> Option<T> {
    let number: u64 = at.get(key)?.text()?.parse().ok()?;
    T::try_from(number).ok()
}

pub(crate) fn number(at: At<'_>, key: &str) -> Option<f64> {
    kind::number(at.get(key)?.text()?)
}

pub(crate) fn bytes(at: At<'_>, key: &str) -> Option<u64> {
    quantity::bytes(at.get(key)?.text()?)
}
